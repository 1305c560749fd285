//! News of what other processes store: a subscription per watched mailbox.
//!
//! The streams republish the headers of every message they store. Such a hint may get lost, so nothing relies on
//! it: a gap, a slow subscription, a reconnect, and the passing of half a minute wake the mailbox as well, and
//! who is woken reads from its cursor.

use std::collections::HashMap;
use std::fmt;
use std::mem;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use aip_relay::mailbox::MailboxId;
use async_nats::header::{NATS_LAST_SEQUENCE, NATS_SEQUENCE, NATS_STREAM};
use async_nats::{Message, Subscriber};
use futures_util::StreamExt;
use tokio::sync::watch;
use tokio::task::AbortHandle;
use tokio::time::{MissedTickBehavior, interval};

use crate::limits;
use crate::nats::{Nats, STREAM_SOURCE};
use crate::shards::Follower;
use crate::streams::{Held, Layout};

/// The header that names a message's place in its mailbox.
pub(crate) const SEQ_HEADER: &str = "Aip-Seq";

/// Told of a mailbox that may have new messages, with the place of the newest if it is known. Must not block.
pub type Wake = Arc<dyn Fn(&MailboxId, Option<u64>) + Send + Sync>;

/// The mailboxes that this process watches.
pub(crate) struct Live {
    nats: Nats,
    layout: Arc<Layout>,
    follower: Follower,
    watched: Watched,
    wake: Wake,
    looker: AbortHandle,
}

type Watched = Arc<Mutex<HashMap<MailboxId, Listener>>>;

/// A subscription, read by a task. Dropping it ends both.
#[derive(Debug)]
struct Listener {
    shard: u8,
    task: Option<AbortHandle>,
}

impl Drop for Listener {
    fn drop(&mut self) {
        if let Some(task) = &self.task {
            task.abort();
        }
    }
}

impl fmt::Debug for Live {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Live")
            .field("watched", &locked(&self.watched).len())
            .finish_non_exhaustive()
    }
}

impl Live {
    /// Watches nothing yet.
    pub(crate) fn start(nats: Nats, layout: Arc<Layout>, follower: Follower, wake: Wake) -> Self {
        let watched = Watched::default();
        let (disturbed, moves) = (nats.disturbed(), follower.moves());
        let looker = look_now_and_then(disturbed, moves, Arc::clone(&watched), Arc::clone(&wake));
        Self {
            nats,
            layout,
            follower,
            watched,
            wake,
            looker: tokio::spawn(looker).abort_handle(),
        }
    }

    /// From its return on the mailbox is woken for every message that a process stores. Again is harmless.
    ///
    /// Without a connection it returns at once: the subscription is made when the connection is back, and the
    /// reconnect wakes the mailbox.
    pub(crate) async fn watch(&self, mailbox: &MailboxId) {
        let place = self.layout.mailbox_place(mailbox);
        if !self.claim(mailbox, place.shard) {
            return;
        }
        let subscribe = self.nats.client().subscribe(place.live_subject.to_string());
        let Ok(Ok(hints)) = tokio::time::timeout(limits::WATCH_TIMEOUT, subscribe).await else {
            // The look now and then makes good for it.
            return tracing::warn!("a mailbox cannot be watched for news");
        };
        let listen = listen(
            hints,
            *mailbox,
            place.shard,
            self.follower.clone(),
            Arc::clone(&self.wake),
        );
        // Not watched any more: the subscription ends here, unread.
        if let Some(listener) = locked(&self.watched).get_mut(mailbox) {
            let task = tokio::spawn(listen).abort_handle();
            if let Some(twin) = listener.task.replace(task) {
                twin.abort();
            }
        }
        if self.nats.round_trip(limits::WATCH_TIMEOUT).await.is_err() {
            tracing::debug!("NATS does not confirm a subscription yet");
        }
    }

    /// Whether nobody has begun to watch it.
    fn claim(&self, mailbox: &MailboxId, shard: u8) -> bool {
        let mut watched = locked(&self.watched);
        let free = !watched.contains_key(mailbox);
        if free {
            watched.insert(*mailbox, Listener { shard, task: None });
        }
        free
    }

    /// Ends [`Self::watch`].
    pub(crate) fn unwatch(&self, mailbox: &MailboxId) {
        drop(locked(&self.watched).remove(mailbox));
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        self.looker.abort();
    }
}

fn locked(watched: &Watched) -> MutexGuard<'_, HashMap<MailboxId, Listener>> {
    // The map is whole between any two of its operations.
    watched.lock().unwrap_or_else(PoisonError::into_inner)
}

async fn listen(mut hints: Subscriber, mailbox: MailboxId, shard: u8, follower: Follower, wake: Wake) {
    let (mut last, stats) = (0, Arc::clone(follower.stats()));
    while let Some(hint) = hints.next().await {
        if header(&hint, STREAM_SOURCE).is_some() {
            // A copy, made by the servers while the shard moves, of what was hinted at before.
            continue;
        }
        stats.hints.one();
        if missed(&hint, &mut last) {
            stats.missed_hints.one();
        }
        if let Some(stream) = header(&hint, NATS_STREAM.as_ref()) {
            follower.expect(shard, stream).await;
        }
        // Whatever was missed lies before this one, and the reader starts at its cursor.
        wake(&mailbox, number(&hint, SEQ_HEADER));
    }
}

/// Whether the mailbox's message before this one was hinted at and did not arrive. After a purge there may be none
/// before it, or an older one, so only a later one than the last seen counts.
fn missed(hint: &Message, last: &mut u64) -> bool {
    let before = number(hint, NATS_LAST_SEQUENCE.as_ref()).unwrap_or(0);
    let missed = *last > 0 && before > *last;
    *last = number(hint, NATS_SEQUENCE.as_ref()).unwrap_or(*last);
    missed
}

fn number(hint: &Message, name: &str) -> Option<u64> {
    header(hint, name)?.parse().ok()
}

fn header<'a>(hint: &'a Message, name: &str) -> Option<&'a str> {
    Some(hint.headers.as_ref()?.get(name)?.as_str())
}

/// Wakes all watched mailboxes when something may have been lost, those whose shard has moved, and each of them once
/// in a while.
async fn look_now_and_then(
    mut disturbed: watch::Receiver<u64>,
    mut moves: watch::Receiver<Arc<Held>>,
    watched: Watched,
    wake: Wake,
) {
    let parts = limits::LOOK_EVERY.as_secs().max(1);
    let mut ticks = interval(Duration::from_secs(1));
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let (mut part, mut held) = (0, Arc::clone(&moves.borrow()));
    loop {
        let due: Vec<MailboxId> = tokio::select! {
            _ = ticks.tick() => {
                part = (part + 1) % parts;
                locked(&watched).keys().filter(|mailbox| part_of(mailbox, parts) == part).copied().collect()
            }
            changed = disturbed.changed() => match changed {
                Ok(()) => locked(&watched).keys().copied().collect(),
                Err(_) => return,
            },
            changed = moves.changed() => {
                if changed.is_err() {
                    return;
                }
                let before = mem::replace(&mut held, Arc::clone(&moves.borrow_and_update()));
                let moved = |listener: &Listener| held.era(listener.shard) != before.era(listener.shard);
                locked(&watched).iter().filter(|(_, one)| moved(one)).map(|(mailbox, _)| *mailbox).collect()
            },
        };
        for mailbox in due {
            wake(&mailbox, None);
        }
    }
}

/// Spreads the looks evenly over their interval.
fn part_of(mailbox: &MailboxId, parts: u64) -> u64 {
    u128::from_be_bytes(*mailbox.as_bytes())
        .checked_rem(u128::from(parts))
        .and_then(|part| u64::try_from(part).ok())
        .unwrap_or(0)
}

#[cfg(test)]
mod tests;
