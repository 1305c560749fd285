//! How a client is put together. The defaults are the machine's clock, chance and roots of trust.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, RwLock};
use std::time::Duration;

use aip_protocol::clock::Clock;
use tokio::sync::OnceCell;

use super::token::Tokens;
use super::{Client, Inner};
use crate::backoff::Backoff;
use crate::clock::SystemClock;
use crate::entropy::Entropy;
use crate::error::Result;
use crate::identities::Identities;
use crate::keys::{AgentKeys, KeyFile};
use crate::limits::SEND_WINDOW;
use crate::receipts::Receipts;
use crate::transport::Transport;

/// Puts a [`Client`] together.
#[derive(Debug)]
#[must_use = "build() makes the client"]
pub struct ClientBuilder {
    hub_url: String,
    allow_http: bool,
    keys: Option<AgentKeys>,
    key_file: Option<KeyFile>,
    state_folder: Option<PathBuf>,
    clock: Arc<dyn Clock>,
    entropy: Entropy,
    backoff: Backoff,
    send_window: Duration,
    answers_receipts: bool,
}

impl ClientBuilder {
    pub(super) fn new(hub_url: String) -> Self {
        Self {
            hub_url,
            allow_http: false,
            keys: None,
            key_file: None,
            state_folder: None,
            clock: Arc::new(SystemClock),
            entropy: Entropy::system(),
            backoff: Backoff::SEND,
            send_window: SEND_WINDOW,
            answers_receipts: true,
        }
    }

    /// Keys that live in memory only. A rotation is then lost with the process.
    pub fn keys(mut self, keys: AgentKeys) -> Self {
        self.keys = Some(keys);
        self
    }

    /// Keys in a file. A file that exists is read; one that does not is made by [`Client::register`]. Rotations are
    /// written to it before they are sent. Pinned identities lie in [`KeyFile::state_folder`] unless another folder is
    /// given.
    ///
    /// # Errors
    /// When the file exists and cannot be used.
    pub fn key_file(mut self, file: KeyFile) -> Result<Self> {
        if file.exists() {
            self.keys = Some(file.load()?);
        }
        self.key_file = Some(file);
        Ok(self)
    }

    /// Where pinned identities and receipts are kept. Without one and without a key file they are kept in memory.
    pub fn state_folder(mut self, folder: impl Into<PathBuf>) -> Self {
        self.state_folder = Some(folder.into());
        self
    }

    /// Also speak plain http to hubs that are not on this machine. Bodies stay sealed; who writes to whom does not.
    pub fn allow_http(mut self, allow: bool) -> Self {
        self.allow_http = allow;
        self
    }

    /// Another clock.
    pub fn clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = clock;
        self
    }

    /// Another source of chance.
    pub fn entropy(mut self, entropy: Entropy) -> Self {
        self.entropy = entropy;
        self
    }

    /// The pauses between attempts to send.
    pub fn backoff(mut self, backoff: Backoff) -> Self {
        self.backoff = backoff;
        self
    }

    /// How long a message is offered to a hub that does not answer. At most the window of the protocol, 900 s after
    /// the message was made: later, every hub refuses it.
    pub fn send_window(mut self, window: Duration) -> Self {
        self.send_window = window.min(SEND_WINDOW);
        self
    }

    /// Whether a processed message whose sender asks for a receipt is answered with one; it is, unless this says no. Saying
    /// no keeps back the proof only: that a message was acknowledged, and when, its sender learns from the hub.
    pub fn answer_receipts(mut self, answer: bool) -> Self {
        self.answers_receipts = answer;
        self
    }

    /// The client. Nothing is sent yet.
    ///
    /// # Errors
    /// [`crate::Error::Insecure`] for plain http to elsewhere, [`crate::Error::Url`] for what is no URL of a hub,
    /// [`crate::Error::Tls`] for a machine without root certificates.
    pub fn build(self) -> Result<Client> {
        let transport = Transport::new(&self.hub_url, self.allow_http)?;
        let beside_keys = || self.key_file.as_ref().map(KeyFile::state_folder);
        let folder = self.state_folder.clone().or_else(beside_keys);
        Ok(Client(Arc::new(Inner {
            transport,
            allow_http: self.allow_http,
            keys: RwLock::new(self.keys.map(Arc::new)),
            key_file: self.key_file,
            hub: OnceCell::new(),
            claims: super::follow::Claims::default(),
            receipts: Arc::new(Receipts::new(
                folder.as_ref().map(|folder| folder.join("receipts")),
            )),
            answers_receipts: self.answers_receipts,
            identities: Identities::new(folder.map(|folder| folder.join("pins"))),
            tokens: Tokens::default(),
            market_keys: Mutex::default(),
            changing: tokio::sync::Mutex::default(),
            clock: self.clock,
            entropy: self.entropy,
            backoff: self.backoff,
            send_window: self.send_window,
        })))
    }
}
