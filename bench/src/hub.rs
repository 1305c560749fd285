//! The hub under measurement, and its straw man, each a process of its own.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use aip_protocol::multikey::SigningKey;
use aip_protocol::name::Domain;
use anyhow::{Context, anyhow, bail};
use serde_json::{Value, json};

use crate::load::{self, Connection};
use crate::process::{Running, free_port, wait_for_port};

/// What a mailbox may hold in the data folder, and on NATS, where settled messages count for some minutes too.
const MAILBOX_MESSAGES: usize = 1_000_000;
pub(crate) const NATS_MAILBOX_MESSAGES: usize = 20_000;

/// Limits that the goals do not measure are out of the way; everything else is as it ships.
fn settings(engines: &Engines) -> String {
    let messages = if engines.mailboxes.is_empty() {
        MAILBOX_MESSAGES
    } else {
        NATS_MAILBOX_MESSAGES
    };
    let replicas = engines.replicas.max(1);
    format!(
        "[relay]\nsender_messages_per_sec = 1000000\nsender_burst_messages = 1000000\n\
         mailbox_messages_max = {messages}\nmailbox_messages_per_sender_max = {messages}\n\
         mailbox_bytes_max = 100000000000\n[nats]\nreplicas = {replicas}\n[postgres]\nmigrate_at_start = true\n"
    )
}

/// Where a hub keeps what it keeps. What is left empty lies in its data folder.
#[derive(Debug, Clone, Default)]
pub(crate) struct Engines {
    /// The registry: the URL of a PostgreSQL database.
    pub(crate) registry: String,
    /// Mailboxes: the URLs of NATS servers, separated by commas.
    pub(crate) mailboxes: String,
    /// What processes share: the URL of a Redis server.
    pub(crate) shared: String,
    /// Copies of each stream.
    pub(crate) replicas: u8,
}

impl Engines {
    fn environment(&self) -> [(&'static str, &str); 3] {
        [
            ("AIP_HUB__ENGINES__REGISTRY_URL", &self.registry),
            ("AIP_HUB__ENGINES__MAILBOXES_URL", &self.mailboxes),
            ("AIP_HUB__ENGINES__SHARED_URL", &self.shared),
        ]
    }
}

/// A hub process.
#[derive(Debug)]
pub(crate) struct Hub {
    process: Running,
    /// The port of the public listener.
    pub(crate) port: u16,
    /// The domain it serves.
    pub(crate) domain: Domain,
    /// From the start of the process to its ready line.
    pub(crate) ready_after: Duration,
}

impl Hub {
    /// Starts the hub beside this program on `folder`, on a free port.
    pub(crate) fn start(folder: &Path) -> anyhow::Result<Self> {
        Self::start_at(folder, free_port()?)
    }

    /// Starts the hub on a port of choice; a data folder belongs to the domain that it was made for.
    pub(crate) fn start_at(folder: &Path, port: u16) -> anyhow::Result<Self> {
        Self::start_on(folder, port, &Engines::default())
    }

    /// The same with further settings (TOML).
    pub(crate) fn start_with(folder: &Path, port: u16, more: &str) -> anyhow::Result<Self> {
        let engines = Engines::default();
        Self::launch(
            folder,
            port,
            None,
            &engines,
            &format!("{}{more}", settings(&engines)),
        )
    }

    /// A hub as in production, for this domain: it counts by where requests come from, which a development hub does not.
    pub(crate) fn start_public(folder: &Path, port: u16, domain: &str, more: &str) -> anyhow::Result<Self> {
        let engines = Engines::default();
        let settings = format!("{}{more}", settings(&engines));
        Self::launch(folder, port, Some(domain), &engines, &settings)
    }

    /// The same on engines.
    pub(crate) fn start_on(folder: &Path, port: u16, engines: &Engines) -> anyhow::Result<Self> {
        Self::launch(folder, port, None, engines, &settings(engines))
    }

    fn launch(
        folder: &Path,
        port: u16,
        public: Option<&str>,
        engines: &Engines,
        settings: &str,
    ) -> anyhow::Result<Self> {
        std::fs::create_dir_all(folder)?;
        let file = folder.join("bench.toml");
        std::fs::write(&file, settings)?;
        let name = public.map_or_else(|| format!("localhost:{port}"), str::to_owned);
        let kind: &[_] = match public {
            Some(_) => &["--operator-listen", "127.0.0.1:0"],
            None => &["--dev"],
        };
        let started = Instant::now();
        let mut process = Running::start(
            Command::new(beside("aip-hub")?)
                .arg("serve")
                .args(kind)
                .args(["--listen", &format!("127.0.0.1:{port}"), "--domain", &name])
                .arg("--config")
                .arg(&file)
                .arg("--data")
                .arg(folder.join("data"))
                .envs(engines.environment())
                .stdout(Stdio::piped())
                .stderr(std::fs::File::create(folder.join("hub.log"))?),
        )?;
        let out = process.stdout().context("no standard output")?;
        let mut lines = BufReader::new(out).lines();
        loop {
            match lines.next() {
                Some(Ok(line)) if line.starts_with("aip-hub ready") => break,
                Some(Ok(_)) => {}
                _ => bail!(
                    "the hub ended: {}",
                    std::fs::read_to_string(folder.join("hub.log")).unwrap_or_default()
                ),
            }
        }
        let domain = Domain::parse(&name).map_err(|refusal| anyhow!("{refusal}"))?;
        Ok(Self {
            process,
            port,
            domain,
            ready_after: started.elapsed(),
        })
    }

    /// Its process id.
    pub(crate) fn pid(&self) -> u32 {
        self.process.pid()
    }

    /// Makes a provider's key for an agent; `folder` is the one that the hub was started on.
    pub(crate) fn provider(&self, folder: &Path, agent: &str) -> anyhow::Result<String> {
        let output = Command::new(beside("aip-hub")?)
            .args([
                "providers",
                "add",
                "bench",
                "--agent",
                agent,
                "--domain",
                self.domain.as_str(),
            ])
            .arg("--config")
            .arg(folder.join("bench.toml"))
            .arg("--data")
            .arg(folder.join("data"))
            .output()?;
        if !output.status.success() {
            bail!("no provider: {}", String::from_utf8_lossy(&output.stderr));
        }
        Ok(String::from_utf8(output.stdout)?.trim().to_owned())
    }

    /// What it counts, as Prometheus reads it; `folder` is the one that the hub was started on.
    pub(crate) async fn metrics(&self, folder: &Path) -> anyhow::Result<String> {
        let mut operator = operator(folder).await?;
        Ok(String::from_utf8(operator.call(&load::get("/metrics")).await?)?)
    }

    /// Decides about a peer as its operator; `folder` is the one that the hub was started on.
    pub(crate) async fn decide(&self, folder: &Path, peer: &str, stance: &str) -> anyhow::Result<()> {
        let what = format!("PUT /admin/peers/{peer}/stance");
        self.operate(folder, &what, &json!({ "stance": stance }))
            .await
            .map(drop)
    }

    /// Asks as its operator, with a method and a path; `folder` is the one that the hub was started on. No answer is null.
    pub(crate) async fn operate(&self, folder: &Path, what: &str, body: &Value) -> anyhow::Result<Value> {
        let token = std::fs::read_to_string(folder.join("data").join("operator.token"))?;
        let body = if body.is_null() {
            String::new()
        } else {
            body.to_string()
        };
        let request = format!(
            "{what} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {}\r\n\
             Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
            token.trim(),
            body.len()
        );
        let answer = operator(folder).await?.call(request.as_bytes()).await?;
        Ok(serde_json::from_slice(&answer).unwrap_or_default())
    }
}

/// A connection to the operator's listener of the hub that was started on `folder`.
async fn operator(folder: &Path) -> anyhow::Result<Connection> {
    let url = std::fs::read_to_string(folder.join("data").join("operator.url"))?;
    let port = url
        .trim()
        .trim_end_matches('/')
        .rsplit(':')
        .next()
        .unwrap_or_default();
    Connection::open(port.parse().context("the operator's port")?).await
}

/// What a straw man stores in.
#[derive(Debug, Clone, Copy)]
pub(crate) enum StrawStore<'a> {
    /// RocksDB, with a record of each id.
    Dedup,
    /// RocksDB, without.
    NoDedup,
    /// A stream of a NATS server.
    JetStream {
        /// The URLs of the servers, separated by commas.
        url: &'a str,
        /// Copies of the stream.
        replicas: usize,
    },
}

/// A straw-man process.
#[derive(Debug)]
pub(crate) struct Straw {
    process: Running,
    /// Its port.
    pub(crate) port: u16,
}

impl Straw {
    /// Starts a straw man that knows the public part of `key`.
    pub(crate) fn start(folder: &Path, key: &[u8; 32], store: StrawStore<'_>) -> anyhow::Result<Self> {
        std::fs::create_dir_all(folder)?;
        let port = free_port()?;
        let public = SigningKey::from_seed(*key);
        let hex = hex::encode(public.public().as_bytes());
        let mut command = Command::new(std::env::current_exe()?);
        command
            .args(["strawman", "--port", &port.to_string(), "--key", &hex])
            .arg("--folder")
            .arg(folder.join("straw"))
            .stdout(Stdio::null());
        match store {
            StrawStore::Dedup => {}
            StrawStore::NoDedup => {
                command.args(["--dedup", "false"]);
            }
            StrawStore::JetStream { url, replicas } => {
                command.args(["--nats", url, "--replicas", &replicas.to_string()]);
            }
        }
        let process = Running::start(&mut command)?;
        wait_for_port(port)?;
        Ok(Self { process, port })
    }

    /// Its process id.
    pub(crate) fn pid(&self) -> u32 {
        self.process.pid()
    }
}

/// A program of the same profile.
fn beside(name: &str) -> anyhow::Result<PathBuf> {
    let path = std::env::current_exe()?.with_file_name(name);
    if !path.exists() {
        bail!("{} is not built: run `make bench`", path.display());
    }
    Ok(path)
}
