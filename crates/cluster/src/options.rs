//! What an operator decides about Redis.

use std::fmt;
use std::time::Duration;

use redis::Client;
use zeroize::Zeroizing;

/// The way to Redis, and the place of one hub in it.
#[derive(Clone)]
pub struct Options {
    /// `redis://…` or, with TLS, `rediss://…`; it may hold a password.
    pub url: Zeroizing<String>,
    /// What keys and signals are made unguessable and unforgeable with; the same in every process of the hub.
    pub secret: Zeroizing<[u8; 32]>,
    /// What the names of keys and channels begin with; one for each hub on the same Redis.
    pub prefix: String,
    /// Time for a connection to be made.
    pub connect_timeout: Duration,
    /// Time for an answer; a later one counts as none.
    pub answer_timeout: Duration,
}

impl Options {
    pub(crate) fn client(&self) -> Result<Client, ConnectError> {
        // The library's own sentence may quote the URL.
        Client::open(self.url.as_str()).map_err(|_quoting| ConnectError::Url)
    }
}

impl fmt::Debug for Options {
    /// Without the URL and the secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Options")
            .field("prefix", &self.prefix)
            .field("connect_timeout", &self.connect_timeout)
            .field("answer_timeout", &self.answer_timeout)
            .finish_non_exhaustive()
    }
}

/// Why this room cannot begin at all. A Redis that is away is no reason.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ConnectError {
    /// The URL.
    #[error("the URL of Redis is none: write `redis://:PASSWORD@HOST:6379/0`, or `rediss://…` for TLS")]
    Url,
}
