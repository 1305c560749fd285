//! The checker: what must hold of a history whose end has come, whatever was killed in between.

use std::collections::{BTreeMap, BTreeSet};

use super::{Event, Outcome};

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
