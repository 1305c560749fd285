//! A worker whose effects happen exactly once, whatever crashes: its effect and what it knows of its inbox are one file,
//! replaced as a whole. With a database it is the same: the two go into one transaction.
//!
//! It adds up numbers that are sent to it.
//!
//! ```sh
//! cargo run --example worker -- http://localhost:8080 worker.key worker
//! ```

use std::fs;
use std::io::Write as _;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use aip_client::inbox::{Cursor, InboxState, MessageKey};
use aip_client::protocol::clock::Clock;
use aip_client::protocol::time::Timestamp;
use aip_client::{Client, Inbox, InboxError, Incoming, KeyFile, ListenOptions, Registration, SystemClock};
use serde::{Deserialize, Serialize};

/// Everything the worker knows. It is on disk as a whole, or not at all.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
struct Ledger {
    total: i64,
    inbox: InboxState,
}

#[derive(Debug)]
struct Store {
    path: PathBuf,
    ledger: Mutex<Ledger>,
}

impl Store {
    fn open(path: PathBuf) -> Result<Self, InboxError> {
        let ledger = match fs::read(&path) {
            Ok(bytes) => serde_json::from_slice(&bytes).map_err(failed)?,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ledger::default(),
            Err(error) => return Err(failed(error)),
        };
        Ok(Self {
            path,
            ledger: Mutex::new(ledger),
        })
    }

    /// The transaction: what `change` does is durable when this returns, or did not happen.
    fn commit(&self, change: impl FnOnce(&mut Ledger) -> bool) -> Result<(), InboxError> {
        let mut ledger = self.ledger.lock().unwrap_or_else(PoisonError::into_inner);
        let mut next = ledger.clone();
        if !change(&mut next) {
            return Ok(());
        }
        let beside = self.path.with_extension("part");
        let mut file = fs::File::create(&beside).map_err(failed)?;
        file.write_all(&serde_json::to_vec(&next).map_err(failed)?)
            .map_err(failed)?;
        file.sync_all().map_err(failed)?;
        fs::rename(&beside, &self.path).map_err(failed)?;
        *ledger = next;
        Ok(())
    }

    /// The effect, together with the note that it happened.
    fn add(&self, message: &Incoming, now: Timestamp) -> Result<i64, InboxError> {
        let number = message
            .content
            .as_json()
            .and_then(serde_json::Value::as_i64)
            .unwrap_or(0);
        self.commit(|ledger| {
            let first_time = !ledger.inbox.seen(&message.key());
            if first_time {
                ledger.total += number;
                ledger.inbox.record(&message.key(), now);
            }
            first_time
        })?;
        Ok(self.ledger.lock().unwrap_or_else(PoisonError::into_inner).total)
    }
}

fn failed(error: impl std::error::Error + Send + Sync + 'static) -> InboxError {
    InboxError::Store(Box::new(error))
}

/// The listener asks this inbox, so it never hands over what the ledger has counted.
#[async_trait::async_trait]
impl Inbox for Store {
    async fn cursor(&self) -> Result<Option<Cursor>, InboxError> {
        Ok(self
            .ledger
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .inbox
            .cursor())
    }

    async fn enter(&self, epoch: &str, floor: u64) -> Result<(), InboxError> {
        self.commit(|ledger| ledger.inbox.enter(epoch, floor))
    }

    async fn seen(&self, key: &MessageKey) -> Result<bool, InboxError> {
        Ok(self
            .ledger
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .inbox
            .seen(key))
    }

    /// Called before the hub is told. The effect has recorded the message already, so this writes nothing.
    async fn record(&self, keys: &[MessageKey], now: Timestamp) -> Result<(), InboxError> {
        self.commit(|ledger| {
            let mut changed = false;
            for key in keys {
                changed |= ledger.inbox.record(key, now);
            }
            changed
        })
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [hub, key, name] = arguments.as_slice() else {
        return Err("usage: worker HUB KEY-FILE NAME".into());
    };
    let file = KeyFile::at(key);
    let store = Arc::new(Store::open(file.path().with_extension("ledger.json"))?);
    let client = Client::builder(hub).key_file(file)?.build()?;
    if client.did().is_none() {
        client.register(name, Registration::default()).await?;
    }
    let mut listener = client.listen(Arc::clone(&store) as Arc<dyn Inbox>, ListenOptions::default());
    loop {
        let message = tokio::select! {
            message = listener.next() => message?,
            _ = tokio::signal::ctrl_c() => break,
        };
        let total = store.add(&message, SystemClock.now())?;
        listener.ack(&message).await?;
        writeln!(std::io::stdout(), "total: {total}")?;
    }
    listener.close().await;
    Ok(())
}
