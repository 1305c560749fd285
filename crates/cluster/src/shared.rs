//! What all parts of this room share.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};

use aip_protocol::clock::Clock;
use aip_protocol::name::Did;
use aip_registry::Registry;
use aip_relay::mailbox::MailboxId;
use aip_relay::neighbours::Ears;
use tokio::sync::mpsc;

use crate::letter::{self, News};
use crate::link::Link;
use crate::names::Names;
use crate::options::Options;
use crate::post::Order;
use crate::stats::Counters;
use crate::wanted::Wanted;

/// See the module.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) options: Options,
    pub(crate) names: Names,
    /// Names this process among those of the hub.
    pub(crate) process: u64,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) link: Link,
    pub(crate) counters: Counters,
    pub(crate) wanted: Wanted,
    /// Agents whose sessions this process has told of.
    joined: Mutex<HashSet<MailboxId>>,
    pub(crate) post: mpsc::Sender<Order>,
    changed: mpsc::Sender<Did>,
    ears: OnceLock<Weak<dyn Ears>>,
    registry: OnceLock<Weak<Registry>>,
}

/// What [`Shared`] is made of beside its own.
pub(crate) struct Lines {
    pub(crate) post: mpsc::Sender<Order>,
    pub(crate) changed: mpsc::Sender<Did>,
}

impl Shared {
    pub(crate) fn new(options: Options, process: u64, clock: Arc<dyn Clock>, lines: Lines) -> Self {
        Self {
            names: Names::new(&options.prefix, options.secret.clone()),
            link: Link::new(options.answer_timeout),
            options,
            process,
            clock,
            counters: Counters::default(),
            wanted: Wanted::default(),
            joined: Mutex::default(),
            post: lines.post,
            changed: lines.changed,
            ears: OnceLock::new(),
            registry: OnceLock::new(),
        }
    }

    /// The process's name in Redis.
    pub(crate) fn own_name(&self) -> String {
        format!("{:016x}", self.process)
    }

    pub(crate) fn set_ears(&self, ears: Weak<dyn Ears>) {
        self.ears.get_or_init(|| ears);
    }

    pub(crate) fn ears(&self) -> Option<Arc<dyn Ears>> {
        self.ears.get().and_then(Weak::upgrade)
    }

    pub(crate) fn set_registry(&self, registry: Weak<Registry>) {
        self.registry.get_or_init(|| registry);
    }

    pub(crate) fn registry(&self) -> Option<Arc<Registry>> {
        self.registry.get().and_then(Weak::upgrade)
    }

    pub(crate) fn joined(&self) -> MutexGuard<'_, HashSet<MailboxId>> {
        self.joined.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Hands an order to the post, or drops it.
    pub(crate) fn order(&self, order: Order) {
        if let Err(refused) = self.post.try_send(order) {
            refused.into_inner().give_up(self);
        }
    }

    /// Takes in a message of another process.
    pub(crate) fn hear(&self, channel: &str, bytes: &[u8]) {
        let Some((from, news)) = letter::read(&self.names, channel, bytes) else {
            self.counters.bad_values.one();
            return;
        };
        if from == self.process {
            return;
        }
        self.counters.signals_received.one();
        match news {
            News::Signal(mailbox, signal) => {
                if let Some(ears) = self.ears() {
                    ears.hear(&mailbox, signal, self.clock.now());
                }
            }
            News::Changed(did) => {
                // A load that is under way is waited for elsewhere, not here.
                if self.changed.try_send(did).is_err() {
                    self.forget_all();
                }
            }
        }
    }

    /// News about agents may have been lost, or do not come.
    pub(crate) fn forget_all(&self) {
        if let Some(registry) = self.registry() {
            registry.forget_all();
        }
    }
}
