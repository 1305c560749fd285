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

mod check;
#[cfg(test)]
mod tests;

pub use check::{Violation, check};

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
