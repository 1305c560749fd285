//! The sections of the settings, in the order of the file. Units stand last in a key's name.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;

use ipnet::IpNet;

use super::section::section;
use super::value::{LogFormat, Registration, Secret};

const fn loopback(port: u16) -> SocketAddr {
    SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), port)
}

section! {
    /// Who this hub is.
    pub struct HubSettings {
        /// The domain that agents of this hub carry in their handles (`alice#example.org`), in lower case. It is
        /// part of every DID and cannot change later. Required; with `development` it may be `localhost:PORT`,
        /// which is also what empty means there.
        pub domain: String = String::new();
        /// Where the hub is reached from outside, without a path. Empty: `https://` and the domain.
        pub public_url: String = String::new();
        /// The folder that holds everything the hub keeps: names, mailboxes, its key. Readable by its owner only.
        pub data_dir: PathBuf = PathBuf::from("/var/lib/aip-hub");
        /// The hub's signing key, mode 0600. Empty: `hub.key` in the data folder, made at the first start. All
        /// processes of a hub have the same one.
        pub key_file: PathBuf = PathBuf::new();
        /// The signing key that the hub had before this one, mode 0600, after the key was changed: it signs the change
        /// of the hub's own agent (`hub#domain`). Empty: the key was never changed, or all is done.
        pub previous_key_file: PathBuf = PathBuf::new();
        /// What this process is called among those of its hub. Empty: the machine's name and something drawn by lot.
        pub process_name: String = String::new();
        /// Who may register: `open`, `invite` or `closed`.
        pub registration: Registration = Registration::Invite;
        /// Names nobody may register, in addition to the protocol's own list (admin, root, hub, …).
        pub reserved_names: Vec<String> = Vec::new();
        /// For trying out only: lets the domain be localhost and the public URL be http.
        pub development: bool = false;
    }
}

section! {
    /// The two listeners: the public one, and the operator's (metrics, administration).
    pub struct HttpSettings {
        /// Address and port of the public listener. TLS is the job of the reverse proxy in front of it.
        pub listen: SocketAddr = loopback(8080);
        /// Address and port of the operator's listener. Keep it on loopback or a private network.
        pub operator_listen: SocketAddr = loopback(9090);
        /// The token of the operator's door. Empty: one is made at the first start and kept in
        /// `operator.token` in the data folder, one for each process. Better set by
        /// `AIP_HUB__HTTP__OPERATOR_TOKEN` than in a file.
        pub operator_token: Secret = Secret::default();
        /// Worker threads of the public listener. 0: one per core.
        pub workers: usize = 0, in 0..=256;
        /// Connections held at once, sockets included; further ones wait in the system's queue.
        pub connections_max: usize = 16_000, in 1..=1_000_000;
        /// Requests per second from one network address in the long run, at the doors that need no token and no
        /// envelope (look-ups, challenges, operations); and, counted apart, envelopes and tokens that turn out not to
        /// be authentic. 0: no limit. In development there is none.
        pub requests_per_sec: u32 = 100;
        /// Such requests from one network address at once after a pause.
        pub request_burst: u32 = 1_000;
        /// Time for the head of a request to arrive, in seconds.
        pub header_timeout_secs: u64 = 5, in 1..=600;
        /// Time for the body of a request to arrive, in seconds; the least rate adds to it for large bodies.
        pub body_timeout_secs: u64 = 10, in 1..=600;
        /// The least rate of a body that takes longer than that, in bytes per second.
        pub body_bytes_per_sec_min: u64 = 1_024;
        /// Time an idle connection is kept for a next request, in seconds.
        pub keep_alive_secs: u64 = 30, in 1..=600;
        /// Time from the first signal to the end of the process, in seconds.
        pub shutdown_timeout_secs: u64 = 20, in 1..=600;
        /// Networks whose X-Forwarded-For is believed, in CIDR form (`127.0.0.1/32`): the reverse proxy. While it is
        /// missing here, all who come through it share what one network address may do.
        pub trusted_proxies: Vec<IpNet> = Vec::new();
        /// Origins whose web pages may open a WebSocket or call the API (`https://app.example.org`).
        /// Programs that are not browsers send no Origin and need no entry.
        pub allowed_origins: Vec<String> = Vec::new();
    }
}

section! {
    /// Accepting and keeping envelopes (spec §5).
    pub struct RelaySettings {
        /// The largest envelope, in bytes. Other hubs expect at least 262,144.
        pub envelope_bytes_max: usize = 256 * 1024, in 4_096..=16 * 1024 * 1024;
        /// Envelopes in one batch.
        pub batch_envelopes_max: usize = 100, in 1..=1_000;
        /// The largest batch, in bytes.
        pub batch_bytes_max: usize = 4 * 1024 * 1024;
        /// Messages per second that one sender may send in the long run.
        pub sender_messages_per_sec: u32 = 20, in 1..=1_000_000;
        /// Messages that one sender may send at once after a pause.
        pub sender_burst_messages: u32 = 200, in 1..=1_000_000;
        /// Unacked messages in one mailbox.
        pub mailbox_messages_max: u32 = 1_000, in 1..=10_000_000;
        /// Unacked bytes in one mailbox.
        pub mailbox_bytes_max: u64 = 32 * 1024 * 1024;
        /// Unacked messages of one sender in one mailbox.
        pub mailbox_messages_per_sender_max: u32 = 100, in 1..=10_000_000;
        /// Time an unacked message is kept, in days.
        pub retention_days: u32 = 7, in 1..=3_650;
        /// Who may not send: DIDs, handles, or whole domains.
        pub blocked_senders: Vec<String> = Vec::new();
        /// Time a recipient's own endpoint has to answer in direct mode, in seconds.
        pub direct_timeout_secs: u64 = 10, in 1..=120;
        /// Stop accepting when the disk is fuller than this, in percent. Reads and acks go on. 0: never.
        pub disk_used_percent_max: u8 = 90, in 0..=100;
        /// Stop accepting when fewer bytes than this are free. 0: never.
        pub disk_free_bytes_min: u64 = 1024 * 1024 * 1024;
        /// Time between two sweeps of what has expired, in seconds.
        pub sweep_interval_secs: u64 = 2, in 1..=3_600;
    }
}

section! {
    /// Receiving: WebSocket, long poll and event stream (spec §6).
    pub struct ReceiveSettings {
        /// The largest WebSocket frame, in bytes.
        pub frame_bytes_max: usize = 1024 * 1024;
        /// The largest credit that an agent can ask for, in messages.
        pub credit_messages_max: u32 = 1_000, in 1..=1_024;
        /// Time a new socket has to authenticate, in seconds.
        pub auth_timeout_secs: u64 = 10, in 1..=600;
        /// Time after which a silent socket is closed, in seconds.
        pub silence_timeout_secs: u64 = 60, in 2..=3_600;
        /// Frames per second that one socket may send in the long run (bursts of ten times that).
        pub frames_per_sec_max: u32 = 1_000, in 1..=1_000_000;
        /// The longest wait that a long poll can ask for, in seconds.
        pub poll_wait_secs_max: u64 = 60, in 0..=600;
        /// Items in one answer of the inbox.
        pub poll_messages_max: u32 = 100, in 1..=1_000;
    }
}

section! {
    /// Names, identities, tokens and invites (spec §3 and §6).
    pub struct RegistrySettings {
        /// Agents kept in memory for resolution.
        pub cache_agents_max: u64 = 10_000, in 1..=100_000_000;
        /// Life of a token, in seconds.
        pub token_lifetime_secs: u64 = 3_600, in 60..=30 * 86_400;
        /// Life of a challenge, in seconds.
        pub challenge_lifetime_secs: u64 = 60, in 5..=600;
        /// Operations in one page of a history.
        pub history_page_operations_max: u32 = 100, in 1..=100;
        /// Registrations per minute from one network address in the long run.
        pub registrations_per_minute: u32 = 60, in 1..=1_000_000;
        /// Registrations from one network address at once after a pause.
        pub registration_burst: u32 = 120, in 1..=1_000_000;
    }
}

section! {
    /// Requests that leave the hub for addresses a stranger chose (direct endpoints).
    pub struct EgressSettings {
        /// Whether `http` endpoints are allowed beside `https`.
        pub allow_http: bool = false;
        /// Private networks that may be reached, in CIDR form (`10.1.0.0/16`). All others are refused.
        pub allowed_private_ranges: Vec<IpNet> = Vec::new();
        /// The largest answer that is read, in bytes.
        pub answer_bytes_max: usize = 64 * 1024, in 1..=16 * 1024 * 1024;
        /// Time for a connection to be made, TLS included, in seconds.
        pub connect_timeout_secs: u64 = 5, in 1..=120;
    }
}

section! {
    /// The log, on standard error.
    pub struct LogSettings {
        /// `text` for people, `json` for a log store.
        pub format: LogFormat = LogFormat::Text;
        /// What is logged: a level, or levels by module (`info,aip_relay=debug`).
        pub filter: String = "info,actix_server=warn".to_owned();
    }
}
