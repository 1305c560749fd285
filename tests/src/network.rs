//! A network of a test's own: places on one wire, each a network namespace with an address, a name and a firewall, so that hubs
//! and strangers come from addresses of their own and the way between two of them can be taken. Linux, as root, with `ip` and
//! `nft`; elsewhere there is a reason to skip.
//!
//! The test itself stands at the side: it reaches every place over the same wire, and no cut concerns it.

use std::fmt::Write as _;
use std::fs::File;
use std::io::Write as _;
use std::net::Ipv4Addr;
use std::os::fd::AsFd as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use tokio::runtime::Builder;
use tokio::sync::oneshot;

use crate::{HubOptions, Skip};

/// Where hubs of such a network listen: names without a port lead here.
const PORT: u16 = 80;
/// Where their operators are.
const OPERATOR_PORT: u16 = 9_090;
/// Networks of one machine at the same time.
const NUMBERS: std::ops::Range<u8> = 0..32;
/// Places of a network, that of the test included. Each has 256 addresses for itself, as somebody elsewhere has: whoever counts by
/// network does not take neighbours for one.
const PLACES: u8 = 16;
/// The last byte of every address.
const HOST: u8 = 10;
/// Where the names that a namespace has of its own are kept.
const NAMES: &str = "/etc/netns";
/// Where namespaces are.
const NAMESPACES: &str = "/run/netns";
const WIRE: &str = "wire";

/// What each place lets in. A cut is an address in one of the sets.
const FIREWALL: &str = "table inet aip {
  set silent { type ipv4_addr; }
  set barred { type ipv4_addr; }
  chain input {
    type filter hook input priority 0; policy accept;
    ip saddr @silent counter drop
    ip saddr @barred tcp dport < 1024 counter drop
  }
}";

/// Places on a wire. Dropping it takes all of it away; what still runs there is alone then.
#[derive(Debug)]
pub struct Network {
    number: u8,
    places: Vec<String>,
}

impl Network {
    /// A network with these places, every one of which reaches every other.
    ///
    /// # Errors
    /// Why it cannot be had here.
    pub fn of(places: &[&str]) -> Result<Self, Skip> {
        // Both programs are asked before anything is made.
        run("nft", &["--version"])?;
        sweep()?;
        let mut network = Self {
            number: claim()?,
            places: Vec::new(),
        };
        network.lay_wire()?;
        for place in places {
            network.places.push((*place).to_owned());
            network.open_place(place)?;
        }
        network.name_places()?;
        Ok(network)
    }

    /// A development hub that lives in this place: it is called [`Network::domain`], and finds others by their names, as hubs do.
    /// `settings` (TOML) have neither `[http]` nor `[egress]`.
    ///
    /// # Panics
    /// When there is no such place.
    #[must_use]
    pub fn hub(&self, place: &str, settings: &str) -> HubOptions {
        let address = self.address(place);
        let config = format!(
            "{settings}\n[http]\noperator_listen = \"{address}:{OPERATOR_PORT}\"\n\
             [egress]\nallow_http = true\nallowed_private_ranges = [\"198.18.0.0/15\"]\n"
        );
        let namespace = self.namespace(place);
        let wrapper = [program("ip").display().to_string()];
        let inside = ["netns", "exec", &namespace].map(str::to_owned);
        HubOptions {
            config: Some(config),
            domain: Some(self.domain(place)),
            listen: Some((address, PORT).into()),
            wrapper: wrapper.into_iter().chain(inside).collect(),
            ..HubOptions::default()
        }
    }

    /// The name of a place, which every place knows.
    #[must_use]
    pub fn domain(&self, place: &str) -> String {
        format!("{place}.test")
    }

    /// The address of a place.
    ///
    /// # Panics
    /// When there is no such place.
    #[must_use]
    pub fn address(&self, place: &str) -> Ipv4Addr {
        match self.places.iter().position(|other| other == place) {
            Some(index) => self.numbered(u8::try_from(index).unwrap_or(PLACES).saturating_add(1)),
            None => panic!("no place {place} in {:?}", self.places),
        }
    }

    /// The address of a place by its number; 0 is the test's own. They are those for such purposes (RFC 2544).
    fn numbered(&self, place: u8) -> Ipv4Addr {
        assert!(place < PLACES, "a network has {} places at most", PLACES - 1);
        let (net, part) = (self.number / 16, self.number % 16);
        Ipv4Addr::new(198, 18 + net, part * PLACES + place, HOST)
    }

    /// Nothing that `from` sends arrives at `to`; what `to` sends arrives at `from`.
    ///
    /// # Panics
    /// When the firewall does not take it.
    pub fn silence(&self, from: &str, to: &str) {
        self.block("silent", from, to);
    }

    /// `from` does not reach what `to` serves; `to` reaches what `from` serves.
    ///
    /// # Panics
    /// When the firewall does not take it.
    pub fn bar(&self, from: &str, to: &str) {
        self.block("barred", from, to);
    }

    /// Nothing passes between the two.
    ///
    /// # Panics
    /// When the firewall does not take it.
    pub fn cut(&self, one: &str, other: &str) {
        self.silence(one, other);
        self.silence(other, one);
    }

    /// Everything passes again, everywhere.
    ///
    /// # Panics
    /// When the firewall does not take it.
    pub fn heal(&self) {
        for place in &self.places {
            self.firewall(place, "flush set inet aip silent; flush set inet aip barred");
        }
    }

    /// Does some work in a place: its connections begin and end there. It has a thread and a runtime of its own, which end with
    /// it.
    ///
    /// # Panics
    /// When it panics, or there is no such place.
    pub async fn inside<F>(&self, place: &str, work: impl FnOnce() -> F + Send + 'static) -> F::Output
    where
        F: Future,
        F::Output: Send + 'static,
    {
        let path = Path::new(NAMESPACES).join(self.namespace(place));
        let (tell, told) = oneshot::channel();
        let thread = std::thread::spawn(move || {
            let runtime = enter(&path).and_then(|()| Builder::new_current_thread().enable_all().build());
            match runtime {
                // Whoever asked may be gone.
                Ok(runtime) => drop(tell.send(runtime.block_on(work()))),
                Err(error) => panic!("{}: {error}", path.display()),
            }
        });
        match told.await {
            Ok(output) => output,
            Err(_ended) => match thread.join() {
                Err(cause) => std::panic::resume_unwind(cause),
                Ok(()) => panic!("the work in {place} ended without a word"),
            },
        }
    }

    fn block(&self, set: &str, from: &str, to: &str) {
        let address = self.address(from);
        self.firewall(to, &format!("add element inet aip {set} {{ {address} }}"));
    }

    fn firewall(&self, place: &str, rules: &str) {
        if let Err(Skip(reason)) = feed(&self.namespace(place), rules) {
            panic!("the firewall of {place}: {reason}");
        }
    }

    fn namespace(&self, place: &str) -> String {
        namespace(self.number, std::process::id(), place)
    }

    /// The end of the wire outside; its name is what [`claim`] took.
    fn door(&self) -> String {
        format!("aip-{}", self.number)
    }

    /// A bridge in a namespace of its own, so that no rule of the machine's is about it, and the end of the claimed pair in it.
    fn lay_wire(&self) -> Result<(), Skip> {
        let (wire, door) = (self.namespace(WIRE), self.door());
        let address = format!("{}/20", self.numbered(0));
        ip(&["netns", "add", &wire])?;
        ip(&[
            "link",
            "set",
            &format!("{door}-in"),
            "netns",
            &wire,
            "name",
            "door",
        ])?;
        ip(&["address", "add", &address, "dev", &door])?;
        ip(&["link", "set", &door, "up"])?;
        ip(&["-n", &wire, "link", "add", WIRE, "type", "bridge"])?;
        ip(&["-n", &wire, "link", "set", WIRE, "up"])?;
        ip(&["-n", &wire, "link", "set", "door", "master", WIRE, "up"])
    }

    fn open_place(&self, place: &str) -> Result<(), Skip> {
        let (wire, here) = (self.namespace(WIRE), self.namespace(place));
        let address = format!("{}/20", self.address(place));
        ip(&["netns", "add", &here])?;
        ip(&["-n", &here, "link", "set", "lo", "up"])?;
        ip(&[
            "-n", &wire, "link", "add", place, "type", "veth", "peer", "name", "eth0", "netns", &here,
        ])?;
        ip(&["-n", &wire, "link", "set", place, "master", WIRE, "up"])?;
        ip(&["-n", &here, "address", "add", &address, "dev", "eth0"])?;
        ip(&["-n", &here, "link", "set", "eth0", "up"])?;
        feed(&here, FIREWALL)
    }

    /// What runs in a place sees these names instead of the machine's.
    fn name_places(&self) -> Result<(), Skip> {
        let mut hosts = "127.0.0.1 localhost\n".to_owned();
        for place in &self.places {
            let line = writeln!(hosts, "{} {}", self.address(place), self.domain(place));
            line.map_err(|error| Skip(error.to_string()))?;
        }
        for place in &self.places {
            let folder = Path::new(NAMES).join(self.namespace(place));
            let written =
                std::fs::create_dir_all(&folder).and_then(|()| std::fs::write(folder.join("hosts"), &hosts));
            written.map_err(|error| Skip(format!("{}: {error}", folder.display())))?;
        }
        Ok(())
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        for place in self.places.iter().map(String::as_str).chain([WIRE]) {
            remove(&self.namespace(place));
        }
        // Gone with the wire, unless it never got there.
        drop(ip(&["link", "del", &self.door()]));
    }
}

/// Moves this thread into a namespace, for good.
fn enter(namespace: &Path) -> std::io::Result<()> {
    let file = File::open(namespace)?;
    move_into_link_name_space(file.as_fd(), Some(LinkNameSpaceType::Network))?;
    Ok(())
}

fn namespace(number: u8, process: u32, place: &str) -> String {
    format!("aip-{number}-{process}-{place}")
}

/// Takes a number that no other network of this machine has: a pair of interfaces cannot be made twice.
fn claim() -> Result<u8, Skip> {
    let mut failed = Skip("every network number is taken".to_owned());
    for number in NUMBERS {
        let (door, inner) = (format!("aip-{number}"), format!("aip-{number}-in"));
        match ip(&["link", "add", &door, "type", "veth", "peer", "name", &inner]) {
            Ok(()) => return Ok(number),
            Err(Skip(reason)) if reason.contains("File exists") => {}
            Err(skip) => {
                failed = skip;
                break;
            }
        }
    }
    Err(failed)
}

/// Takes away what tests left that were killed.
fn sweep() -> Result<(), Skip> {
    let listed = run("ip", &["netns", "list"])?;
    let names = listed.lines().filter_map(|line| line.split_whitespace().next());
    for name in names {
        let mut parts = name.strip_prefix("aip-").unwrap_or_default().splitn(3, '-');
        let (Some(_number), Some(process), Some(_place)) = (parts.next(), parts.next(), parts.next()) else {
            continue;
        };
        let is_over = process.parse::<u32>().is_ok() && !Path::new("/proc").join(process).exists();
        if is_over {
            remove(name);
        }
    }
    Ok(())
}

fn remove(namespace: &str) {
    drop(ip(&["netns", "del", namespace]));
    // A namespace without names of its own has no such folder.
    drop(std::fs::remove_dir_all(Path::new(NAMES).join(namespace)));
}

/// Gives the firewall of a namespace further rules.
fn feed(namespace: &str, rules: &str) -> Result<(), Skip> {
    let failed = |error: std::io::Error| Skip(format!("nft cannot be run: {error}"));
    let mut child = Command::new(program("ip"))
        .args(["netns", "exec", namespace])
        .arg(program("nft"))
        .args(["-f", "-"])
        .stdin(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(failed)?;
    if let Some(mut stdin) = child.stdin.take() {
        stdin.write_all(rules.as_bytes()).map_err(failed)?;
    }
    let output = child.wait_with_output().map_err(failed)?;
    if output.status.success() {
        return Ok(());
    }
    Err(Skip(format!(
        "nft: {}",
        String::from_utf8_lossy(&output.stderr).trim()
    )))
}

fn ip(arguments: &[&str]) -> Result<(), Skip> {
    run("ip", arguments).map(drop)
}

/// What a program writes.
fn run(name: &str, arguments: &[&str]) -> Result<String, Skip> {
    let output = Command::new(program(name)).args(arguments).output();
    let output = output.map_err(|error| Skip(format!("{name} cannot be run: {error}")))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(Skip(format!("{name} {}: {}", arguments.join(" "), said.trim())))
}

/// Where a program of the system's administrator is: not everybody has its folder on the path.
fn program(name: &str) -> PathBuf {
    let folders = ["/usr/sbin", "/sbin", "/usr/bin", "/bin"];
    let found = folders.map(|folder| Path::new(folder).join(name));
    found
        .into_iter()
        .find(|path| path.exists())
        .unwrap_or_else(|| PathBuf::from(name))
}
