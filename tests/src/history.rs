//! The history of a fault test, and the checker that judges it.
//!
//! Senders append every answer that they got or gave up on; recipients append every message that the client library
//! handed over and every effect that followed from one. The checker looks at the whole only after the last fault: what
//! was promised must hold, whatever was killed in between. An outcome that nobody knows may be either.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use aip_client::SentStatus;
use aip_client::protocol::envelope::Envelope;
use aip_client::{Error, Incoming, Sent};
use serde::{Deserialize, Serialize};

#[cfg(test)]
mod tests;

/// What a sender knows of one attempt to send.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// The hub took it.
    Ok,
    /// The hub had it already.
    Duplicate,
    /// The hub said no, for good.
    Refused,
    /// No answer, or one that leaves it open.
    Unknown,
}

/// One line of a history. `id` is the dedup key of spec §5 in hexadecimal: sender, recipient and message id in one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "op", rename_all = "snake_case")]
pub enum Event {
    /// One attempt to send is over.
    Send {
        /// The recipient.
        to: String,
        /// The message.
        id: String,
        /// Of the envelope.
        digest: String,
        /// What the sender knows.
        outcome: Outcome,
        /// Its place in the mailbox, where the hub told it.
        seq: Option<u64>,
    },
    /// The client library handed a message to the application.
    Deliver {
        /// The recipient.
        to: String,
        /// The message.
        id: String,
        /// Of the envelope.
        digest: String,
        /// The mailbox's epoch.
        epoch: String,
        /// Its place in the mailbox.
        seq: u64,
        /// Counts the offers, from 1.
        attempt: u32,
    },
    /// The application's effect and the inbox's record of it, in one step.
    Apply {
        /// The recipient.
        to: String,
        /// The message.
        id: String,
        /// The mailbox's epoch.
        epoch: String,
        /// Its place in the mailbox.
        seq: u64,
    },
    /// The hub holds it at the end: in its mailbox, or among the dead letters.
    Keep {
        /// The recipient.
        to: String,
        /// The message.
        id: String,
    },
    /// A hub died without a goodbye: how often it had offered a message, it may have forgotten.
    Crash,
}

impl Event {
    /// How one attempt to send `envelope` ended.
    pub fn sent(envelope: &Envelope, answer: &Result<Sent, Error>) -> Self {
        // A place in the outbox to another hub is none in a mailbox.
        let of_outbox = |sent: &Sent| sent.route.as_deref() == Some("peer");
        let (outcome, seq) = match answer {
            Ok(sent) if of_outbox(sent) && sent.status == SentStatus::Duplicate => (Outcome::Duplicate, None),
            Ok(sent) if of_outbox(sent) => (Outcome::Ok, None),
            Ok(sent) if sent.status == SentStatus::Duplicate => (Outcome::Duplicate, sent.seq),
            Ok(sent) => (Outcome::Ok, sent.seq),
            Err(error) if error.is_transient() => (Outcome::Unknown, None),
            Err(_) => (Outcome::Refused, None),
        };
        Self::Send {
            to: envelope.to.to_string(),
            id: hex::encode(envelope.dedup_key()),
            digest: hex::encode(envelope.digest()),
            outcome,
            seq,
        }
    }

    /// The hub holds it.
    pub fn kept(envelope: &Envelope) -> Self {
        Self::Keep {
            to: envelope.to.to_string(),
            id: hex::encode(envelope.dedup_key()),
        }
    }

    /// `message` was handed over.
    pub fn delivered(message: &Incoming) -> Self {
        Self::Deliver {
            to: message.envelope.to.to_string(),
            id: hex::encode(message.envelope.dedup_key()),
            digest: hex::encode(message.envelope.digest()),
            epoch: message.epoch.clone(),
            seq: message.seq,
            attempt: message.attempt,
        }
    }
}

/// A history that grows. Clones are the same history.
#[derive(Debug, Clone, Default)]
pub struct History(Arc<Mutex<Vec<Event>>>);

impl History {
    fn lock(&self) -> MutexGuard<'_, Vec<Event>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Appends an event.
    pub fn push(&self, event: Event) {
        self.lock().push(event);
    }

    /// The number of events so far.
    pub fn len(&self) -> usize {
        self.lock().len()
    }

    /// Whether nothing has happened yet.
    pub fn is_empty(&self) -> bool {
        self.lock().is_empty()
    }

    /// All events so far.
    pub fn events(&self) -> Vec<Event> {
        self.lock().clone()
    }

    /// Messages that the hub took, without an effect so far, and that it is not known to hold.
    pub fn unsettled(&self) -> usize {
        let events = self.lock();
        let mut open: BTreeSet<&str> = BTreeSet::new();
        for event in events.iter() {
            if let Event::Send {
                id,
                outcome: Outcome::Ok | Outcome::Duplicate,
                ..
            } = event
            {
                open.insert(id);
            }
        }
        for event in events.iter() {
            if let Event::Apply { id, .. } | Event::Keep { id, .. } = event {
                open.remove(id.as_str());
            }
        }
        open.len()
    }

    /// Attempts to send that ended like this.
    pub fn count(&self, wanted: Outcome) -> usize {
        let events = self.lock();
        let sends = events
            .iter()
            .filter(|event| matches!(event, Event::Send { outcome, .. } if *outcome == wanted));
        sends.count()
    }

    /// Messages that the hub said to have, however often it said so.
    pub fn acknowledged(&self) -> usize {
        let events = self.lock();
        let taken = events.iter().filter_map(|event| match event {
            Event::Send {
                id,
                outcome: Outcome::Ok | Outcome::Duplicate,
                ..
            } => Some(id),
            _ => None,
        });
        taken.collect::<BTreeSet<_>>().len()
    }

    /// Messages that were handed over, however often.
    pub fn delivered(&self) -> usize {
        let events = self.lock();
        let delivered = events.iter().filter_map(|event| match event {
            Event::Deliver { id, .. } => Some(id),
            _ => None,
        });
        delivered.collect::<BTreeSet<_>>().len()
    }

    /// Messages that were handed over more than once, as they may be.
    pub fn redelivered(&self) -> usize {
        let mut times: BTreeMap<String, usize> = BTreeMap::new();
        for event in self.events() {
            if let Event::Deliver { id, .. } = event {
                *times.entry(id).or_default() += 1;
            }
        }
        times.values().filter(|times| **times > 1).count()
    }

    /// What happened, in one line.
    #[must_use]
    pub fn summary(&self) -> String {
        format!(
            "{} events; sends: {} taken, {} known before, {} refused, {} open; {} came more than once, {} kept",
            self.len(),
            self.count(Outcome::Ok),
            self.count(Outcome::Duplicate),
            self.count(Outcome::Refused),
            self.count(Outcome::Unknown),
            self.redelivered(),
            self.events()
                .iter()
                .filter(|event| matches!(event, Event::Keep { .. }))
                .count()
        )
    }

    /// Writes it down, one JSON object a line.
    ///
    /// # Errors
    /// The system says no.
    pub fn save(&self, path: &Path) -> std::io::Result<()> {
        let mut file = std::io::BufWriter::new(std::fs::File::create(path)?);
        for event in self.events() {
            serde_json::to_writer(&mut file, &event)?;
            file.write_all(b"\n")?;
        }
        file.flush()
    }
}

/// What must not be. Each names the message or the place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Violation {
    /// Taken by the hub, and neither handed over nor still held.
    Lost(String),
    /// Taken twice, as if it were two messages.
    TakenTwice(String),
    /// Its effect happened twice.
    AppliedTwice(String),
    /// Handed over again after its effect.
    DeliveredAfterEffect(String),
    /// Handed over, and its effect never happened.
    NeverApplied(String),
    /// Handed over for the first time after a later one.
    DeliveredOutOfOrder(String),
    /// Took effect after a later one.
    AppliedOutOfOrder(String),
    /// Two messages had the same place in a mailbox.
    PlaceReused(String),
    /// One message had two places in a mailbox, or another one than its sender was told.
    Moved(String),
    /// Refused for good, and handed over.
    RefusedDelivered(String),
    /// Handed over, and sent by nobody.
    NeverSent(String),
    /// Handed over with other bytes than were sent, or with two kinds of bytes.
    Changed(String),
}

/// Everything that is wrong with a history whose end has come: all senders have stopped, all mailboxes were emptied.
pub fn check(events: &[Event]) -> Vec<Violation> {
    let sends = Sends::of(events);
    let mut found = acknowledged_is_delivered(events, &sends);
    found.extend(applied_once(events));
    found.extend(in_order(events));
    found.extend(places(events));
    found.extend(only_what_was_sent(events, &sends));
    found
}

/// The attempts to send, by message.
struct Sends<'a>(BTreeMap<&'a str, Vec<(&'a str, Outcome)>>);

impl<'a> Sends<'a> {
    fn of(events: &'a [Event]) -> Self {
        let mut sends: BTreeMap<_, Vec<_>> = BTreeMap::new();
        for event in events {
            if let Event::Send {
                id, digest, outcome, ..
            } = event
            {
                sends
                    .entry(id.as_str())
                    .or_default()
                    .push((digest.as_str(), *outcome));
            }
        }
        Self(sends)
    }
}

/// I1: what was acknowledged was handed over, or is still there. And it was taken once only.
fn acknowledged_is_delivered(events: &[Event], sends: &Sends<'_>) -> Vec<Violation> {
    let there: BTreeSet<&str> = events
        .iter()
        .filter_map(|event| match event {
            Event::Deliver { id, .. } | Event::Keep { id, .. } => Some(id.as_str()),
            _ => None,
        })
        .collect();
    let mut found = Vec::new();
    for (id, attempts) in &sends.0 {
        let taken = attempts
            .iter()
            .filter(|(_, outcome)| *outcome == Outcome::Ok)
            .count();
        let known = taken > 0 || attempts.iter().any(|(_, outcome)| *outcome == Outcome::Duplicate);
        if known && !there.contains(id) {
            found.push(Violation::Lost((*id).to_owned()));
        }
        if taken > 1 {
            found.push(Violation::TakenTwice((*id).to_owned()));
        }
    }
    found
}

/// I2: one effect for each message that was handed over, and nothing of it after that.
fn applied_once(events: &[Event]) -> Vec<Violation> {
    let (mut delivered, mut applied) = (BTreeSet::new(), BTreeSet::new());
    let mut kept = BTreeSet::new();
    let mut found = Vec::new();
    for event in events {
        match event {
            Event::Deliver { id, .. } => {
                delivered.insert(id);
                if applied.contains(id) {
                    found.push(Violation::DeliveredAfterEffect(id.clone()));
                }
            }
            Event::Apply { id, .. } => {
                if !applied.insert(id) {
                    found.push(Violation::AppliedTwice(id.clone()));
                }
            }
            Event::Keep { id, .. } => drop(kept.insert(id)),
            Event::Send { .. } | Event::Crash => {}
        }
    }
    let open = delivered.difference(&applied).filter(|id| !kept.contains(*id));
    found.extend(open.map(|id| Violation::NeverApplied((*id).clone())));
    found
}

/// I3: the order of first deliveries and of their effects is the order of the mailbox. What was offered before and not
/// settled may come later.
///
/// A recipient that cannot check a message just now puts it back and goes on. After a crash the hub may offer such a
/// message as if for the first time: so with each crash a mailbox may begin once more further down.
fn in_order(events: &[Event]) -> Vec<Violation> {
    let mut offers: BTreeMap<&str, u32> = BTreeMap::new();
    let mut first_offers: BTreeSet<&str> = BTreeSet::new();
    let (mut delivered, mut applied) = (Order::default(), Order::default());
    let mut crashes = 0;
    let mut found = Vec::new();
    for event in events {
        match event {
            Event::Deliver {
                to,
                id,
                epoch,
                seq,
                attempt,
                ..
            } => {
                let times = offers.entry(id).or_default();
                *times += 1;
                if *times == 1 && *attempt == 1 {
                    first_offers.insert(id);
                    if !delivered.goes_on((to, epoch), *seq, crashes) {
                        found.push(Violation::DeliveredOutOfOrder(id.clone()));
                    }
                } else {
                    first_offers.remove(id.as_str());
                }
            }
            Event::Apply { to, id, epoch, seq }
                if first_offers.contains(id.as_str()) && !applied.goes_on((to, epoch), *seq, crashes) =>
            {
                found.push(Violation::AppliedOutOfOrder(id.clone()));
            }
            Event::Crash => crashes += 1,
            _ => {}
        }
    }
    found
}

/// How far each mailbox has come, and the last crash that it began again after.
#[derive(Default)]
struct Order<'a>(BTreeMap<(&'a str, &'a str), (u64, u32)>);

impl<'a> Order<'a> {
    /// Whether `seq` is further than what came before, or the mailbox begins again after a crash.
    fn goes_on(&mut self, mailbox: (&'a str, &'a str), seq: u64, crashes: u32) -> bool {
        let (highest, begun_after) = self.0.entry(mailbox).or_insert((0, crashes));
        if seq > *highest {
            *highest = seq;
            return true;
        }
        if *begun_after == crashes {
            return false;
        }
        (*highest, *begun_after) = (seq, crashes);
        true
    }
}

/// Within an epoch a place belongs to one message, a message has one place, and its sender was told that one.
fn places(events: &[Event]) -> Vec<Violation> {
    let mut owners: BTreeMap<(&str, &str, u64), &str> = BTreeMap::new();
    let mut seqs: BTreeMap<(&str, &str), u64> = BTreeMap::new();
    let mut epochs: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    let mut found = Vec::new();
    for event in events {
        if let Event::Deliver {
            to, id, epoch, seq, ..
        } = event
        {
            epochs.entry(to).or_default().insert(epoch);
            if *owners.entry((to, epoch, *seq)).or_insert(id) != id {
                found.push(Violation::PlaceReused(format!("{to} {epoch}:{seq}")));
            }
            if *seqs.entry((id, epoch)).or_insert(*seq) != *seq {
                found.push(Violation::Moved(id.clone()));
            }
        }
    }
    for event in events {
        let Event::Send {
            to,
            id,
            seq: Some(told),
            ..
        } = event
        else {
            continue;
        };
        // Under several epochs nobody can say which one the sender was told about.
        let Some(epoch) = epochs
            .get(to.as_str())
            .filter(|of| of.len() == 1)
            .and_then(BTreeSet::first)
        else {
            continue;
        };
        if seqs.get(&(id.as_str(), *epoch)).is_some_and(|seq| seq != told) {
            found.push(Violation::Moved(id.clone()));
        }
    }
    found
}

/// I4 and I5: nothing that was refused or that nobody sent, and everything byte for byte.
fn only_what_was_sent(events: &[Event], sends: &Sends<'_>) -> Vec<Violation> {
    let mut bytes: BTreeMap<&str, &str> = BTreeMap::new();
    let mut found = Vec::new();
    for event in events {
        let Event::Deliver { id, digest, .. } = event else {
            continue;
        };
        let Some(attempts) = sends.0.get(id.as_str()) else {
            found.push(Violation::NeverSent(id.clone()));
            continue;
        };
        let mut outcomes = attempts
            .iter()
            .filter(|(of, _)| of == digest)
            .map(|(_, outcome)| *outcome)
            .peekable();
        if outcomes.peek().is_none() || *bytes.entry(id).or_insert(digest) != digest {
            found.push(Violation::Changed(id.clone()));
        } else if outcomes.all(|outcome| outcome == Outcome::Refused) {
            found.push(Violation::RefusedDelivered(id.clone()));
        }
    }
    found
}
