//! The sections about the engines that several processes of one hub share.

use std::path::PathBuf;

use super::section::section;
use super::value::Secret;

section! {
    /// The engines that several processes of one hub share. What is left empty lies in the data folder, which belongs
    /// to one process. Addresses hold passwords: better set by the environment (`AIP_HUB__ENGINES__REGISTRY_URL`).
    pub struct EngineSettings {
        /// PostgreSQL, for names, tokens and invites: `postgres://USER:PASSWORD@HOST:5432/DATABASE`.
        pub registry_url: Secret = Secret::default();
        /// NATS with JetStream, for mailboxes: the servers of one cluster, separated by commas
        /// (`nats://a:4222,nats://b:4222`; `tls://` asks for TLS).
        pub mailboxes_url: Secret = Secret::default();
        /// Redis, for what the processes tell each other: `redis://:PASSWORD@HOST:6379/0` (`rediss://` asks for TLS).
        /// Losing it loses speed and takeover across processes, never a message.
        pub shared_url: Secret = Secret::default();
    }
}

section! {
    /// The connections to PostgreSQL (`engines.registry_url`).
    pub struct PostgresSettings {
        /// Connections of this process, at most.
        pub connections_max: u32 = 16, in 2..=1_000;
        /// Time for a connection to be made, in seconds.
        pub connect_timeout_secs: u64 = 5, in 1..=120;
        /// Time that a request waits for a free connection, in seconds.
        pub wait_timeout_secs: u64 = 5, in 1..=120;
        /// Time that one statement may take, in seconds.
        pub statement_timeout_secs: u64 = 10, in 1..=600;
        /// Whether a starting process brings an older schema up to date. If not, it refuses to start until
        /// `aip-hub migrate` was run.
        pub migrate_at_start: bool = false;
    }
}

section! {
    /// Mailboxes on NATS JetStream (`engines.mailboxes_url`). The streams are made at the first start and verified at
    /// every other one.
    pub struct NatsSettings {
        /// What the names of streams and subjects begin with, in lower case: one for each hub on the same servers.
        pub prefix: String = "aip".to_owned();
        /// Streams that the mailboxes of a new store are spread over: a power of two. Later `aip-hub shards move` adds
        /// streams and moves mailboxes between them, while the hubs run; this setting does not matter then.
        pub streams: u32 = 16, in 1..=256;
        /// Copies of every stream: 1, 3 or 5. With 1 a lost disk is lost mail.
        pub replicas: u32 = 3, in 1..=5;
        /// A credentials file (`.creds`) to sign in with. Empty: none.
        pub credentials_file: PathBuf = PathBuf::new();
        /// A user to sign in as, with `password`. Empty: none.
        pub user: String = String::new();
        /// The user's password. Better set by `AIP_HUB__NATS__PASSWORD` than in a file.
        pub password: Secret = Secret::default();
        /// A token to sign in with. Empty: none. Better set by `AIP_HUB__NATS__TOKEN` than in a file.
        pub token: Secret = Secret::default();
        /// Certificates (PEM) that a server's may be signed by, besides those of the system. Empty: none.
        pub ca_file: PathBuf = PathBuf::new();
        /// A certificate of this hub (PEM), for servers that ask for one, with `certificate_key_file`. Empty: none.
        pub certificate_file: PathBuf = PathBuf::new();
        /// The key of that certificate (PEM).
        pub certificate_key_file: PathBuf = PathBuf::new();
        /// The JetStream domain, if it is not the default one (a leaf node's).
        pub domain: String = String::new();
        /// Time for the acknowledgement of one publish, in milliseconds; then it is tried again with the same id.
        pub publish_timeout_millis: u64 = 2_000, in 50..=60_000;
        /// Time after which a publish without an acknowledgement is given up and the sender is told to come back, in
        /// seconds.
        pub publish_deadline_secs: u64 = 8, in 1..=120;
        /// Time for the answer to a read, in milliseconds.
        pub read_timeout_millis: u64 = 3_000, in 50..=60_000;
        /// The monitoring address of a server (`http://a:8222`): how the hub learns at the start whether the servers
        /// sync before they acknowledge. Empty: it cannot tell.
        pub monitor_url: String = String::new();
        /// Whether streams that are missing are made. Off, a stream that vanished is told and not replaced by an empty
        /// one; switch it off after the first start.
        pub create_streams: bool = true;
        /// Whether an empty stream takes the place of one that this hub had and that is gone, with the mail in it. Never
        /// without having looked why.
        pub replace_lost_streams: bool = false;
        /// Whether streams that differ from these settings are changed at the start. If not, the hub refuses and says
        /// what differs.
        pub update_streams: bool = false;
    }
}

section! {
    /// What the processes share on Redis (`engines.shared_url`).
    pub struct RedisSettings {
        /// What the names of keys and channels begin with, in lower case: one for each hub on the same server.
        pub prefix: String = "aip".to_owned();
        /// Time for a connection to be made, in milliseconds.
        pub connect_timeout_millis: u64 = 1_000, in 10..=60_000;
        /// Time for an answer, in milliseconds; a later one counts as none, and the process decides alone.
        pub answer_timeout_millis: u64 = 250, in 5..=10_000;
    }
}

/// What the names on an engine may begin with: 1 to 16 lower-case letters, digits or `-`.
pub(super) fn prefix_fits(prefix: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    (1..=16).contains(&prefix.len()) && prefix.bytes().all(plain)
}

impl EngineSettings {
    /// Whether every engine is the data folder.
    pub fn are_embedded(&self) -> bool {
        self.registry_url.is_empty() && self.mailboxes_url.is_empty() && self.shared_url.is_empty()
    }

    /// The addresses of the NATS servers; none when the mailboxes lie in the data folder.
    pub fn mailbox_servers(&self) -> impl Iterator<Item = &str> {
        let servers = self.mailboxes_url.reveal().split(',');
        servers.map(str::trim).filter(|server| !server.is_empty())
    }
}
