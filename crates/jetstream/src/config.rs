//! What an operator decides about this room.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use crate::limits;

/// How this process is known to the servers.
#[derive(Clone, Default)]
pub enum Login {
    /// Not at all: only servers that let everyone in.
    #[default]
    None,
    /// A name and a password.
    Password {
        /// The name.
        user: String,
        /// The password.
        password: String,
    },
    /// A token.
    Token(String),
    /// A file with a JWT and its key, as `nsc` writes it.
    CredentialsFile(PathBuf),
}

impl fmt::Debug for Login {
    /// Without passwords and tokens.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => f.write_str("None"),
            Self::Password { user, .. } => write!(f, "Password({user:?}, …)"),
            Self::Token(_) => f.write_str("Token(…)"),
            Self::CredentialsFile(path) => write!(f, "CredentialsFile({})", path.display()),
        }
    }
}

/// A client certificate for servers that ask for one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClientCertificate {
    /// The certificate chain, PEM.
    pub certificate_file: PathBuf,
    /// Its key, PEM.
    pub key_file: PathBuf,
}

/// How to reach the servers and how the store lies on them.
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a switch of its own in the operator's file"
)]
#[derive(Clone)]
pub struct Options {
    /// Servers of one cluster, `nats://host:port` or `tls://host:port`; any that answers will do.
    pub urls: Vec<String>,
    /// How this process is known to them. A user in a URL is used when this is [`Login::None`].
    pub login: Login,
    /// Refuse a connection without TLS.
    pub tls_required: bool,
    /// A PEM file of authorities to trust besides the system's.
    pub tls_ca_file: Option<PathBuf>,
    /// A certificate of our own.
    pub tls_client: Option<ClientCertificate>,
    /// What the servers call this connection, in their logs.
    pub name: String,
    /// The JetStream domain, when it is not the default one.
    pub domain: Option<String>,
    /// What all subjects start with, and (in capitals) all streams: two stores with different ones share an
    /// account without meeting. Lower-case letters, digits and `-`, at most 32.
    pub prefix: String,
    /// Streams of mailboxes: a power of two up to 256. Read when the store is created; later the store's record
    /// decides.
    pub streams: u16,
    /// Copies of each stream: 1, 3 or 5.
    pub replicas: u8,
    /// How long mailboxes keep a message, seconds.
    pub retention_secs: u64,
    /// The largest envelope, bytes.
    pub envelope_bytes_max: usize,
    /// Make the streams of a store that does not exist yet.
    pub create_streams: bool,
    /// Make an empty stream in place of one that an existing store has lost. Its messages are gone: never without
    /// someone having looked.
    pub replace_lost_streams: bool,
    /// Change streams whose settings differ, where that loses nothing.
    pub update_streams: bool,
    /// `http://host:port` of a server's monitoring, to read how often it syncs to disk.
    pub monitoring_url: Option<String>,
    /// How long one try of a publish may take.
    pub publish_try: Duration,
    /// How long a publish may take with all its tries.
    pub publish_deadline: Duration,
    /// How long a read may take.
    pub read_timeout: Duration,
    /// Scatters the pauses of reconnects, so that many processes do not come back in step. Any number that
    /// differs between processes.
    pub seed: u64,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            urls: vec!["nats://127.0.0.1:4222".to_owned()],
            login: Login::None,
            tls_required: false,
            tls_ca_file: None,
            tls_client: None,
            name: "aip-hub".to_owned(),
            domain: None,
            prefix: "aip".to_owned(),
            streams: limits::STREAMS_DEFAULT,
            replicas: 1,
            retention_secs: aip_relay::limits::RETENTION_SECS,
            envelope_bytes_max: 256 * 1024,
            create_streams: true,
            replace_lost_streams: false,
            update_streams: false,
            monitoring_url: None,
            publish_try: limits::PUBLISH_TRY,
            publish_deadline: limits::PUBLISH_DEADLINE,
            read_timeout: limits::READ_TIMEOUT,
            seed: 0,
        }
    }
}

impl fmt::Debug for Options {
    /// Without secrets; URLs without their users.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Options")
            .field(
                "urls",
                &self.urls.iter().map(|url| shown(url)).collect::<Vec<_>>(),
            )
            .field("login", &self.login)
            .field("name", &self.name)
            .field("prefix", &self.prefix)
            .field("streams", &self.streams)
            .field("replicas", &self.replicas)
            .finish_non_exhaustive()
    }
}

impl Options {
    /// Whether the values make sense together.
    pub fn check(&self) -> Result<(), OptionsError> {
        if self.urls.is_empty() {
            return Err(OptionsError::Urls);
        }
        let plain = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-';
        if !(1..=32).contains(&self.prefix.len()) || !self.prefix.bytes().all(plain) {
            return Err(OptionsError::Prefix);
        }
        if !self.streams.is_power_of_two() || usize::from(self.streams) > limits::SHARDS {
            return Err(OptionsError::Streams(self.streams));
        }
        if !matches!(self.replicas, 1 | 3 | 5) {
            return Err(OptionsError::Replicas(self.replicas));
        }
        Ok(())
    }
}

/// An option has a value that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum OptionsError {
    /// No server is named.
    #[error("no NATS server is named")]
    Urls,
    /// The prefix has another form.
    #[error("the prefix must be 1 to 32 lower-case letters, digits or `-`")]
    Prefix,
    /// The number of streams is no power of two up to 256.
    #[error("the number of streams must be a power of two from 1 to 256, not {0}")]
    Streams(u16),
    /// The number of copies is not one that JetStream votes with.
    #[error("the number of replicas must be 1, 3 or 5, not {0}")]
    Replicas(u8),
}

/// A URL as it may be shown: without the user and what follows.
pub(crate) fn shown(url: &str) -> String {
    match (url.split_once("://"), url.rsplit_once('@')) {
        (Some((scheme, _)), Some((_, host))) => format!("{scheme}://…@{host}"),
        (None, Some((_, host))) => format!("…@{host}"),
        _ => url.to_owned(),
    }
}

#[cfg(test)]
mod tests;
