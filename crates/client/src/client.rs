//! One agent's connection to its hub: everything but listening, which is [`crate::Listener`].

mod ask;
mod builder;
mod change;
mod follow;
mod ingest;
mod listings;
mod lookup;
mod mailbox;
mod market;
mod moving;
mod offers;
mod receipts;
mod register;
mod search;
mod send;
mod status;
mod token;

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Duration;

use aip_protocol::clock::Clock;
use aip_protocol::market::origin::OriginKeys;
use aip_protocol::name::Did;
use aip_protocol::time::Timestamp;
use tokio::sync::OnceCell;

use crate::backoff::Backoff;
use crate::entropy::Entropy;
use crate::error::{Error, Result};
use crate::identities::Identities;
use crate::keys::{AgentKeys, KeyFile};
use crate::receipts::Receipts;
use crate::transport::{Request, Transport};
use crate::wire::HubInfo;

pub use builder::ClientBuilder;
pub use change::Rotation;
pub use lookup::Resolved;
pub use mailbox::{DeadLetter, DeadLetters, InboxPage, Unreadable};
pub use moving::{Move, Moved};
pub(crate) use receipts::Taken;
pub use register::Registration;

/// An agent at its hub. Cheap to clone; clones share everything.
///
/// ```no_run
/// # async fn example() -> aip_client::Result<()> {
/// use aip_client::{Client, Draft, KeyFile};
///
/// let client = Client::builder("https://hub.example").key_file(KeyFile::at("alice.key"))?.build()?;
/// let sent = client.send(&Draft::text("bob#hub.example", "hello")).await?;
/// println!("{} is {:?}", sent.id, sent.status);
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Client(Arc<Inner>);

struct Inner {
    transport: Transport,
    allow_http: bool,
    keys: RwLock<Option<Arc<AgentKeys>>>,
    key_file: Option<KeyFile>,
    hub: OnceCell<HubInfo>,
    identities: Identities,
    claims: follow::Claims,
    receipts: Arc<Receipts>,
    answers_receipts: bool,
    tokens: token::Tokens,
    /// Keys that markets sign receipts with.
    market_keys: Mutex<OriginKeys>,
    /// One change of the identity at a time.
    changing: tokio::sync::Mutex<()>,
    clock: Arc<dyn Clock>,
    entropy: Entropy,
    backoff: Backoff,
    send_window: Duration,
}

impl Client {
    /// A client of the hub at this URL. Plain http is for localhost only.
    pub fn builder(hub_url: impl Into<String>) -> ClientBuilder {
        ClientBuilder::new(hub_url.into())
    }

    /// The URL of the hub.
    pub fn hub_url(&self) -> &str {
        self.0.transport.base()
    }

    /// The agent's DID, if the client has keys.
    pub fn did(&self) -> Option<Did> {
        self.keys().ok().map(|keys| keys.did().clone())
    }

    /// The agent's keys.
    ///
    /// # Errors
    /// [`Error::NoKeys`] for a client that only looks things up.
    pub fn keys(&self) -> Result<Arc<AgentKeys>> {
        let keys = self.0.keys.read().unwrap_or_else(PoisonError::into_inner);
        keys.clone().ok_or(Error::NoKeys)
    }

    /// What the hub says of itself; asked once.
    pub async fn hub(&self) -> Result<&HubInfo> {
        let ask = || async {
            let request = Request::get("asking the hub what it is", "/.well-known/aip");
            self.0.transport.call(request).await?.json()
        };
        self.0.hub.get_or_try_init(ask).await
    }

    /// Reads the key file again: another process may have rotated the keys. Where there is none, nothing happens; nor where it
    /// holds the keys of whom the agent has moved to meanwhile, which are no use for the mail of this one.
    pub(crate) async fn reload_keys(&self) -> Result<()> {
        let Some(file) = self.0.key_file.clone().filter(KeyFile::exists) else {
            return Ok(());
        };
        let loaded = blocking(move || file.load()).await??;
        if self.did().is_none_or(|did| did == *loaded.did()) {
            self.set_keys(Arc::new(loaded));
        }
        Ok(())
    }

    /// Writes the keys down, then uses them. Those of another agent are never overwritten: this one may have moved since
    /// its keys were read, and the file holds the only copy of the new ones.
    pub(crate) async fn save_keys(&self, keys: AgentKeys) -> Result<()> {
        let keys = Arc::new(keys);
        if let Some(file) = self.0.key_file.clone() {
            let (entropy, saved) = (self.0.entropy.clone(), Arc::clone(&keys));
            let save = move || -> Result<()> {
                if file.exists() {
                    let held = file.did()?;
                    if held != *saved.did() {
                        return Err(Error::KeysOfAnother(held));
                    }
                }
                Ok(file.save(&saved, &entropy)?)
            };
            blocking(save).await??;
        }
        self.set_keys(keys);
        Ok(())
    }

    fn set_keys(&self, keys: Arc<AgentKeys>) {
        *self.0.keys.write().unwrap_or_else(PoisonError::into_inner) = Some(keys);
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.0.clock.now()
    }

    pub(crate) fn entropy(&self) -> &Entropy {
        &self.0.entropy
    }

    pub(crate) fn transport(&self) -> &Transport {
        &self.0.transport
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client")
            .field("hub", &self.hub_url())
            .field("did", &self.did())
            .finish_non_exhaustive()
    }
}

/// Runs what reads or writes a disk, or derives a key from a passphrase, off the async threads.
async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T> {
    let done = tokio::task::spawn_blocking(work).await;
    done.map_err(|error| Error::file("background work")(std::io::Error::other(error)))
}
