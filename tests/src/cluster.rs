//! One hub of several processes, on real engines.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

use aip_engines::{Nats, Postgres, Redis};
use tempfile::TempDir;

use crate::clients::Home;
use crate::raw::{Answer, Request, ask};
use crate::{HubOptions, TestHub, binary};

/// The domain of every such hub.
pub const DOMAIN: &str = "hub.example";

/// The token of the operator's door of every process.
pub const OPERATOR_TOKEN: &str = "0123456789abcdef0123456789abcdef";

/// The engines of a hub, by their addresses. An empty one means the data folder of each process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Engines {
    /// `PostgreSQL`.
    pub registry: String,
    /// NATS.
    pub mailboxes: String,
    /// Redis.
    pub shared: String,
    /// What names on NATS and Redis begin with.
    pub prefix: String,
    /// Streams of mailboxes.
    pub streams: u32,
    /// Copies of every stream.
    pub replicas: u32,
    /// Further environment of a process that goes this way to them.
    pub more: Vec<(String, String)>,
}

impl Engines {
    /// The engines that all tests of this process share, with a database and a prefix of their own.
    ///
    /// # Panics
    /// When an engine does not start.
    #[must_use]
    pub fn shared() -> Self {
        static HUBS: AtomicU32 = AtomicU32::new(1);
        let number = HUBS.fetch_add(1, Ordering::Relaxed);
        Self {
            registry: Postgres::shared().database("hub"),
            mailboxes: Nats::shared().url(),
            shared: Redis::shared().url(),
            prefix: format!("h{number}"),
            streams: 2,
            replicas: 1,
            more: Vec::new(),
        }
    }

    /// The settings that name them, without the addresses.
    #[must_use]
    pub fn config(&self) -> String {
        let Self {
            prefix,
            streams,
            replicas,
            ..
        } = self;
        format!(
            "[postgres]\nmigrate_at_start = true\n[nats]\nprefix = \"{prefix}\"\nstreams = {streams}\n\
             replicas = {replicas}\n[redis]\nprefix = \"{prefix}\"\n"
        )
    }

    /// The environment that names their addresses, and the rest of it.
    #[must_use]
    pub fn environment(&self) -> Vec<(String, String)> {
        let named = [
            ("REGISTRY_URL", &self.registry),
            ("MAILBOXES_URL", &self.mailboxes),
            ("SHARED_URL", &self.shared),
        ];
        let named = named.map(|(key, url)| (format!("AIP_HUB__ENGINES__{key}"), url.clone()));
        named.into_iter().chain(self.more.iter().cloned()).collect()
    }
}

/// Several processes of one hub. Dropping it kills them.
#[derive(Debug)]
pub struct Cluster {
    engines: Engines,
    config: String,
    hubs: Vec<TestHub>,
    folder: TempDir,
}

impl Cluster {
    /// Starts `processes` of a hub on the shared engines, and waits until each is ready.
    ///
    /// # Panics
    /// When one does not become ready; the message holds its log.
    #[must_use]
    pub fn start(processes: usize) -> Self {
        Self::on(Engines::shared(), processes, "")
    }

    /// The same on other engines, with further settings (whole sections that are not the engines').
    ///
    /// # Panics
    /// When one does not become ready; the message holds its log.
    #[must_use]
    pub fn on(engines: Engines, processes: usize, config: &str) -> Self {
        let mut cluster = Self::prepare(engines, config);
        cluster.make_key();
        for _ in 0..processes {
            cluster.add();
        }
        cluster
    }

    /// The same with a process for each of these ways to the same engines, all started at once.
    ///
    /// # Panics
    /// When one does not become ready; the message holds its log.
    #[must_use]
    pub fn by_ways(ways: &[Engines], config: &str) -> Self {
        let first = match ways.first() {
            Some(first) => first.clone(),
            None => panic!("a hub of no processes"),
        };
        let mut cluster = Self::on(first, 0, config);
        let prepare = |way| TestHub::prepare(cluster.options_by(way));
        cluster.hubs = ways.iter().map(prepare).collect();
        std::thread::scope(|scope| {
            for hub in &mut cluster.hubs {
                scope.spawn(|| hub.restart());
            }
        });
        cluster
    }

    /// No process yet, of a hub that has this key.
    ///
    /// # Panics
    /// When the key cannot be copied.
    #[must_use]
    pub fn with_key(engines: Engines, key: &Path) -> Self {
        let cluster = Self::prepare(engines, "");
        if let Err(error) = std::fs::copy(key, cluster.key_file()) {
            panic!("{}: {error}", key.display());
        }
        cluster
    }

    fn prepare(engines: Engines, config: &str) -> Self {
        let folder = match tempfile::Builder::new().prefix("aip-cluster-").tempdir() {
            Ok(folder) => folder,
            Err(error) => panic!("no temporary folder: {error}"),
        };
        Self {
            engines,
            config: config.to_owned(),
            hubs: Vec::new(),
            folder,
        }
    }

    /// Starts one process more and returns its number.
    ///
    /// # Panics
    /// When it does not become ready; the message holds its log.
    pub fn add(&mut self) -> usize {
        self.add_by(&self.engines.clone())
    }

    /// The same by another way to the same engines.
    ///
    /// # Panics
    /// When it does not become ready; the message holds its log.
    pub fn add_by(&mut self, way: &Engines) -> usize {
        let hub = TestHub::start_with(self.options_by(way));
        self.hubs.push(hub);
        self.hubs.len() - 1
    }

    /// How a process of this hub is started.
    #[must_use]
    pub fn options(&self) -> HubOptions {
        self.options_by(&self.engines)
    }

    /// The same by another way to the engines.
    #[must_use]
    pub fn options_by(&self, engines: &Engines) -> HubOptions {
        let config = &self.config;
        let mut environment = engines.environment();
        let engines = engines.config();
        let set = |key: &str, value: String| (format!("AIP_HUB__{key}"), value);
        environment.extend([
            set("HUB__KEY_FILE", self.key_file().display().to_string()),
            set("HTTP__OPERATOR_TOKEN", OPERATOR_TOKEN.to_owned()),
        ]);
        HubOptions {
            config: Some(format!("{engines}{config}")),
            domain: Some(DOMAIN.to_owned()),
            environment,
            ..HubOptions::default()
        }
    }

    /// The file with the hub's key.
    #[must_use]
    pub fn key_file(&self) -> PathBuf {
        self.folder.path().join("hub.key")
    }

    fn make_key(&self) {
        let made = Command::new(binary("aip-hub"))
            .args(["keygen", "--out"])
            .arg(self.key_file())
            .output();
        match made {
            Ok(output) if output.status.success() => {}
            other => panic!("no key: {other:?}"),
        }
    }

    /// The engines.
    #[must_use]
    pub fn engines(&self) -> &Engines {
        &self.engines
    }

    /// A process.
    ///
    /// # Panics
    /// When there are fewer.
    #[must_use]
    pub fn hub(&self, number: usize) -> &TestHub {
        match self.hubs.get(number) {
            Some(hub) => hub,
            None => panic!("there is no process {number}"),
        }
    }

    /// A process, to be hurt.
    ///
    /// # Panics
    /// When there are fewer.
    pub fn hub_mut(&mut self, number: usize) -> &mut TestHub {
        match self.hubs.get_mut(number) {
            Some(hub) => hub,
            None => panic!("there is no process {number}"),
        }
    }

    /// All processes.
    #[must_use]
    pub fn hubs(&self) -> &[TestHub] {
        &self.hubs
    }

    /// Where the agents of this hub are at home when they connect to `url`.
    #[must_use]
    pub fn home(&self, url: &str) -> Home {
        Home {
            url: url.to_owned(),
            domain: DOMAIN.to_owned(),
            folder: self.folder.path().join("agents"),
        }
    }

    /// Asks the operator's door of a process.
    pub async fn operate(&self, number: usize, request: Request) -> Answer {
        ask(self.hub(number).operator_url(), &request.bearer(OPERATOR_TOKEN)).await
    }
}
