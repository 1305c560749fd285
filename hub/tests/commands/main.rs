//! The command line, as an operator types it: the real binary in a temporary folder.
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::disallowed_methods,
    reason = "helpers of tests fail the test, and wait for a process with a deadline"
)]

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

mod accounts;
mod admin;
mod peers;

/// A busy machine may take long; a test that waits longer than this has failed.
const PATIENCE: Duration = Duration::from_mins(1);

fn command(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_aip-hub"));
    command
        .args(arguments)
        .env_remove("AIP_HUB_CONFIG")
        .env("AIP_HUB__HUB__DOMAIN", "localhost:8080");
    // The machine that runs the tests may be fuller than a hub would like.
    command
        .env("AIP_HUB__RELAY__DISK_USED_PERCENT_MAX", "0")
        .env("AIP_HUB__RELAY__DISK_FREE_BYTES_MIN", "0");
    command
}

/// Runs a command to its end: status, standard output, standard error.
fn run(arguments: &[&str]) -> (ExitStatus, String, String) {
    let output = command(arguments).output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status, text(&output.stdout), text(&output.stderr))
}

fn good(arguments: &[&str]) -> String {
    let (status, stdout, stderr) = run(arguments);
    assert!(status.success(), "{arguments:?}: {stdout}{stderr}");
    stdout
}

fn bad(arguments: &[&str]) -> String {
    let (status, stdout, stderr) = run(arguments);
    assert!(!status.success(), "{arguments:?}: {stdout}");
    assert!(!stderr.contains("panicked"), "{stderr}");
    stdout + &stderr
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

struct Folder(tempfile::TempDir);

impl Folder {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn at(&self, name: &str) -> String {
        self.path(name).to_str().unwrap().to_owned()
    }
}

/// A development hub on free ports; killed when it is dropped.
struct Hub {
    child: Child,
    ready: String,
}

impl Hub {
    fn start(data: &str) -> Self {
        let mut command = command(&["serve", "--dev", "--data", data, "--listen", "127.0.0.1:0"]);
        let mut child = command
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut ready = String::new();
        BufReader::new(child.stdout.take().unwrap())
            .read_line(&mut ready)
            .unwrap();
        if !ready.starts_with("aip-hub ready ") {
            let mut log = String::new();
            child.stderr.take().unwrap().read_to_string(&mut log).unwrap();
            panic!("the hub did not start: {log}");
        }
        Self { child, ready }
    }

    fn url(&self, which: &str) -> &str {
        let word = self
            .ready
            .split_whitespace()
            .find_map(|word| word.strip_prefix(which))
            .unwrap();
        word.strip_prefix('=').unwrap()
    }

    /// Sends SIGTERM and waits for the end; also what was logged.
    fn terminate(mut self) -> (ExitStatus, String) {
        let pid = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
        let deadline = Instant::now() + PATIENCE;
        let status = loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                break status;
            }
            assert!(Instant::now() < deadline, "the hub does not stop");
            std::thread::sleep(Duration::from_millis(20));
        };
        let mut log = String::new();
        self.child
            .stderr
            .take()
            .unwrap()
            .read_to_string(&mut log)
            .unwrap();
        (status, log)
    }
}

impl Drop for Hub {
    fn drop(&mut self) {
        // Both fail only when it has ended already.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

#[test]
fn init_makes_a_private_folder_a_key_and_a_settings_file() {
    let folder = Folder::new();
    let (data, file) = (folder.at("data"), folder.at("hub.toml"));
    let said = good(&[
        "init",
        "--data",
        &data,
        "--config",
        &file,
        "--domain",
        "example.org",
    ]);
    assert!(said.contains("example.org#z6Mk"), "{said}");
    assert_eq!(mode(&folder.path("data")), 0o700);
    assert_eq!(mode(&folder.path("data/hub.key")), 0o600);
    assert_eq!(mode(&folder.path("data/operator.token")), 0o600);
    let text = fs::read_to_string(&file).unwrap();
    assert!(
        text.contains("domain = \"example.org\"") && text.contains("# Who may register"),
        "{text}"
    );
    let key = fs::read(folder.path("data/hub.key")).unwrap();
    let again = good(&[
        "init",
        "--data",
        &data,
        "--config",
        &file,
        "--domain",
        "example.org",
    ]);
    assert_eq!(
        again.lines().collect::<Vec<_>>(),
        said.lines().take(2).collect::<Vec<_>>()
    );
    assert_eq!(
        fs::read(folder.path("data/hub.key")).unwrap(),
        key,
        "a second init changes nothing"
    );
}

#[test]
fn init_leaves_a_folder_of_another_domain_as_it_is() {
    let folder = Folder::new();
    let data = folder.at("data");
    good(&[
        "init",
        "--data",
        &data,
        "--config",
        &folder.at("hub.toml"),
        "--domain",
        "example.org",
    ]);
    let secrets = || ["data/hub.key", "data/operator.token"].map(|name| fs::read(folder.path(name)).unwrap());
    let before = secrets();
    let words = bad(&[
        "init",
        "--data",
        &data,
        "--config",
        &folder.at("other.toml"),
        "--domain",
        "example.net",
    ]);
    assert!(
        words.contains("belongs to example.org") && words.contains("another data folder"),
        "{words}"
    );
    assert!(!folder.path("other.toml").exists());
    assert_eq!(secrets(), before);
    let words = bad(&["serve", "--dev", "--data", &data, "--domain", "example.net"]);
    assert!(words.contains("belongs to example.org"), "{words}");
    good(&[
        "init",
        "--data",
        &data,
        "--config",
        &folder.at("hub.toml"),
        "--domain",
        "example.org",
    ]);
}

#[test]
fn init_needs_a_domain() {
    let folder = Folder::new();
    let output = command(&["init", "--data", &folder.at("data")])
        .env_remove("AIP_HUB__HUB__DOMAIN")
        .output()
        .unwrap();
    assert!(!output.status.success());
    assert!(String::from_utf8_lossy(&output.stderr).contains("--domain"));
    assert!(!folder.path("data").exists());
}

#[test]
fn keygen_writes_a_private_file_once() {
    let folder = Folder::new();
    let file = folder.at("hub.key");
    assert!(good(&["keygen", "--out", &file]).starts_with("z6Mk"));
    assert_eq!(mode(&folder.path("hub.key")), 0o600);
    assert!(bad(&["keygen", "--out", &file]).contains("hub.key"));
    assert_eq!(good(&["keygen", "--token"]).trim().len(), 64);
}

#[test]
fn serve_says_what_it_lacks() {
    let folder = Folder::new();
    let output = command(&["serve", "--data", &folder.at("data")])
        .env_remove("AIP_HUB__HUB__DOMAIN")
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1));
    let words = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(
        words.contains("`hub.domain` is empty") && words.contains("--dev"),
        "{words}"
    );
}

#[test]
fn row_47_a_second_hub_on_the_same_folder_is_refused() {
    let folder = Folder::new();
    let data = folder.at("data");
    let hub = Hub::start(&data);
    let words = bad(&["serve", "--dev", "--data", &data, "--listen", "127.0.0.1:0"]);
    assert!(
        words.contains("in use by another process") && words.contains(&hub.child.id().to_string()),
        "{words}"
    );
}

#[test]
fn row_86_a_taken_port_ends_the_start_and_is_named() {
    let folder = Folder::new();
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let words = bad(&[
        "serve",
        "--dev",
        "--data",
        &folder.at("data"),
        "--listen",
        &address,
    ]);
    assert!(
        words.contains(&address) && words.contains("with --listen"),
        "{words}"
    );
    assert_eq!(words.matches("os error").count(), 1, "{words}");
    assert!(!words.contains("has stopped"), "{words}");
    let words = bad(&[
        "serve",
        "--dev",
        "--data",
        &folder.at("data"),
        "--listen",
        "127.0.0.1:0",
        "--operator-listen",
        &address,
    ]);
    assert!(
        words.contains(&address) && words.contains("with --operator-listen"),
        "{words}"
    );
}

#[test]
fn a_key_that_others_can_read_ends_the_start() {
    let folder = Folder::new();
    good(&["init", "--data", &folder.at("data"), "--domain", "example.org"]);
    fs::set_permissions(folder.path("data/hub.key"), fs::Permissions::from_mode(0o644)).unwrap();
    let words = bad(&[
        "serve",
        "--dev",
        "--data",
        &folder.at("data"),
        "--listen",
        "127.0.0.1:0",
        "--domain",
        "example.org",
    ]);
    assert!(words.contains("chmod 600"), "{words}");
}

#[test]
fn a_hub_is_ready_healthy_and_stops_cleanly() {
    let folder = Folder::new();
    let data = folder.at("data");
    let hub = Hub::start(&data);
    assert!(hub.url("public").starts_with("http://127.0.0.1:"));
    assert_eq!(
        fs::read_to_string(folder.path("data/operator.url"))
            .unwrap()
            .trim(),
        hub.url("operator")
    );
    assert!(good(&["health", "--data", &data]).contains("ready"));
    let token = fs::read_to_string(folder.path("data/operator.token")).unwrap();
    let (status, log) = hub.terminate();
    assert!(status.success(), "{log}");
    assert!(
        log.contains("DEVELOPMENT HUB") && log.contains("SIGTERM") && log.contains("has stopped"),
        "{log}"
    );
    assert!(!log.contains(token.trim()), "a token is in the log");
    assert!(!folder.path("data/operator.url").exists());
    bad(&["health", "--data", &data]);
}

#[test]
fn doctor_reports_on_a_folder_at_rest_and_on_a_running_hub() {
    let folder = Folder::new();
    let data = folder.at("data");
    let words = bad(&["doctor", "--data", &data]);
    assert!(
        words.contains("FAIL") && words.contains("aip-hub init"),
        "{words}"
    );
    let hub = Hub::start(&data);
    let report = run(&["doctor", "--data", &data]).1;
    assert!(report.contains("ok    the hub runs and takes work"), "{report}");
    let (status, _) = hub.terminate();
    assert!(status.success());
    let report = run(&["doctor", "--data", &data]).1;
    assert!(
        report.contains("ok    both stores open")
            && report.contains("ok    the registry's database is whole"),
        "{report}"
    );
}

#[test]
fn row_78_backup_and_restore_while_the_hub_runs_and_while_it_does_not() {
    let folder = Folder::new();
    let (data, new) = (folder.at("data"), folder.at("new"));
    let hub = Hub::start(&data);
    let epoch = discovered_epoch(&hub);
    assert!(good(&["backup", "--data", &data, "--to", &folder.at("online")]).contains("verified"));
    assert_eq!(mode(&folder.path("online")), 0o700);
    assert!(bad(&["backup", "--data", &data, "--to", &folder.at("online")]).contains("not empty"));
    assert!(hub.terminate().0.success());
    good(&["backup", "--data", &data, "--to", &folder.at("offline")]);

    assert!(bad(&["restore", "--from", &folder.at("online"), "--data", &data]).contains("not empty"));
    good(&["restore", "--from", &folder.at("online"), "--data", &new]);
    let key = |name: &str| fs::read(folder.path(name).join("hub.key")).unwrap();
    assert_eq!(key("new"), key("data"));
    let restored = Hub::start(&new);
    assert_ne!(
        discovered_epoch(&restored),
        epoch,
        "a restored store has a new epoch"
    );

    fs::write(folder.path("offline/hub.key"), "changed").unwrap();
    let words = bad(&[
        "restore",
        "--from",
        &folder.at("offline"),
        "--data",
        &folder.at("third"),
    ]);
    assert!(words.contains("hub.key is not as it was"), "{words}");
    assert!(!folder.path("third").exists());
}

#[test]
fn a_backup_says_which_hub_it_looked_for() {
    let folder = Folder::new();
    let (data, to) = (folder.at("data"), folder.at("copy"));
    let backup = || {
        let mut command = command(&["backup", "--data", &data, "--to", &to]);
        let output = command.env_remove("AIP_HUB__HUB__DOMAIN").output().unwrap();
        assert!(!output.status.success());
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    let words = backup();
    assert!(words.contains(&data) && words.contains("--data"), "{words}");
    good(&["init", "--data", &data, "--domain", "example.org"]);
    let words = backup();
    assert!(
        words.contains("no hub runs on") && words.contains("--config") && words.contains("--data"),
        "{words}"
    );
    assert!(!folder.path("copy").exists());
}

#[test]
fn an_epoch_is_renewed_while_no_hub_runs() {
    let folder = Folder::new();
    let data = folder.at("data");
    assert!(bad(&["epoch", "renew", "--data", &data]).contains("does not exist"));
    let hub = Hub::start(&data);
    let before = discovered_epoch(&hub);
    assert!(bad(&["epoch", "renew", "--data", &data]).contains("in use by another process"));
    assert!(hub.terminate().0.success());
    let said = good(&["epoch", "renew", "--data", &data]);
    let after = discovered_epoch(&Hub::start(&data));
    assert_ne!(after, before);
    assert!(said.contains(&after), "{said}");
}

/// The way back is for a clock that was far ahead only.
#[test]
fn a_clock_that_is_right_is_told_and_not_reset() {
    let folder = Folder::new();
    let data = folder.at("data");
    good(&["init", "--data", &data, "--domain", "example.org"]);
    assert!(good(&["clock", "--data", &data]).contains("none yet"));
    let words = bad(&["clock", "--reset", "--data", &data, "--domain", "example.org"]);
    assert!(words.contains("nothing to reset"), "{words}");
}

/// The epoch that the hub's discovery document names.
fn discovered_epoch(hub: &Hub) -> String {
    use std::io::Write as _;
    let address = hub.url("public").trim_start_matches("http://");
    let mut stream = std::net::TcpStream::connect(address).unwrap();
    write!(
        stream,
        "GET /.well-known/aip HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n"
    )
    .unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (_, body) = answer.split_once("\r\n\r\n").unwrap();
    let document: Value = serde_json::from_str(body).unwrap();
    document["epoch"].as_str().unwrap().to_owned()
}

#[test]
fn openapi_prints_the_document() {
    let document: Value = serde_json::from_str(&good(&["openapi"])).unwrap();
    assert!(document["paths"]["/api/v1/agents"].is_object());
}
