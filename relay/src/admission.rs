//! The admission pipeline of spec §5, cheap checks first.
//!
//! Everything here is a function over values: the order of the checks is the order of the functions, and what has
//! to be asked elsewhere (identities, rates, the store) is asked in between by [`crate::relay`]. Until
//! [`inspect`] has passed nothing is looked up and nothing leaves this process.

use std::collections::HashSet;
use std::time::Duration;

use aip_protocol::envelope::{Envelope, check_expiry, check_window};
use aip_protocol::error::{ErrorCode, Refusal};
use aip_protocol::identity::Identity;
use aip_protocol::multikey::VerifyingKey;
use aip_protocol::name::{Did, Domain, Handle, Name};
use aip_protocol::time::Timestamp;
use bytes::Bytes;

use crate::mailbox::Quota;

/// Where an envelope came in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Door {
    /// The sender's own hub, `POST /api/v1/messages`: `from` is an agent of this hub.
    Home,
    /// The recipient's endpoint, `POST /relay/{name}`: `to` is that agent of this hub.
    Relay(Name),
    /// The socket of a signed-in agent: `from` is that agent.
    Socket(Did),
    /// The hub's own agent, inside the process: `from` is that agent, and what it sends costs no rate.
    Hub(Did),
}

/// What admission needs to know about an agent of this hub; cheap to clone.
#[derive(Debug, Clone)]
pub struct LocalAgent {
    /// Its checked history.
    pub identity: Identity,
    /// Whether the operator suspended it: it may not send, and its mail only waits.
    pub suspended: bool,
    /// What its mailbox may hold, where the operator set something else than the hub's quota.
    pub quota: Option<Quota>,
}

/// An envelope that passed every check that needs no look-up.
#[derive(Debug)]
pub struct Candidate {
    /// The parsed envelope.
    pub envelope: Envelope,
    /// The bytes as they were received, without white space around them.
    pub wire: Bytes,
    /// Until when a retry must meet the record of this one.
    pub remember_until: Timestamp,
    /// The moment that everything is judged at.
    pub now: Timestamp,
}

/// Size, strict JSON, members and their forms, window, expiry, door: in this order.
pub fn inspect(
    wire: &Bytes,
    door: &Door,
    domain: &Domain,
    bytes_max: usize,
    now: Timestamp,
) -> Result<Candidate, Refusal> {
    check_size(wire, bytes_max)?;
    let wire = trimmed(wire);
    let envelope = Envelope::parse(&wire)?;
    let remember_until = check_window(envelope.created_at, now)?;
    check_expiry(envelope.expires_at, now)?;
    check_door(&envelope, door, domain)?;
    Ok(Candidate {
        envelope,
        wire,
        remember_until,
        now,
    })
}

/// The size on the wire, white space included.
pub(crate) fn check_size(wire: &Bytes, bytes_max: usize) -> Result<(), Refusal> {
    if wire.len() <= bytes_max {
        return Ok(());
    }
    let detail = format!("The envelope is larger than {bytes_max} bytes; send a smaller body.");
    Err(Refusal::new(ErrorCode::EnvelopeTooLarge, detail).with("limit_bytes", bytes_max))
}

/// The same bytes without JSON white space before and after. Nothing inside is touched: recipients get what the
/// sender wrote.
fn trimmed(wire: &Bytes) -> Bytes {
    let blank = |byte: &u8| matches!(byte, b' ' | b'\t' | b'\n' | b'\r');
    let start = wire.iter().take_while(|byte| blank(byte)).count();
    let end = wire.len() - wire.iter().rev().take_while(|byte| blank(byte)).count();
    wire.slice(start.min(end)..end)
}

fn check_door(envelope: &Envelope, door: &Door, domain: &Domain) -> Result<(), Refusal> {
    match door {
        Door::Home if !is_local(&envelope.from, domain) => {
            let detail = "Send it at the sender's own hub, or to the recipient's endpoint /relay/{name}.";
            Err(Refusal::new(ErrorCode::SenderNotLocal, detail))
        }
        Door::Relay(name) if !is_local(&envelope.to, domain) || envelope.to.name() != name.as_str() => {
            let detail = "The envelope is for another agent than the one in the path; resolve the recipient.";
            Err(Refusal::new(ErrorCode::RecipientMismatch, detail))
        }
        Door::Socket(did) if envelope.from != *did => {
            let detail = "A socket sends in the name of the agent that signed in on it only.";
            Err(Refusal::new(ErrorCode::NotYours, detail))
        }
        Door::Hub(did) if envelope.from != *did => {
            let detail = "The hub sends in the name of its own agent only.";
            Err(Refusal::new(ErrorCode::NotYours, detail))
        }
        _ => Ok(()),
    }
}

/// Whether an agent belongs to this hub.
pub fn is_local(did: &Did, domain: &Domain) -> bool {
    did.domain() == *domain
}

/// The sender exists, may send, and its key was valid when the envelope was made. `sender` is `None` when nobody of
/// that name is registered here.
pub fn check_sender<'a>(
    envelope: &Envelope,
    sender: Option<&'a LocalAgent>,
) -> Result<&'a VerifyingKey, Refusal> {
    let Some(sender) = sender else {
        return Err(sender_unknown());
    };
    if sender.suspended {
        let detail = "This hub's operator suspended the sender; ask the operator.";
        return Err(Refusal::new(ErrorCode::SenderBlocked, detail));
    }
    if sender.identity.is_deactivated() {
        let detail = "The sender's identity was ended and sends no more.";
        return Err(Refusal::new(ErrorCode::SenderDeactivated, detail));
    }
    sender
        .identity
        .signing_key(&envelope.kid, envelope.created_at)
        .ok_or_else(|| {
            let detail =
                "`kid` names no key of the sender that was valid at `created_at`; sign with a current key.";
            Refusal::new(ErrorCode::KeyUnknown, detail)
        })
}

/// Nobody of that name is registered where the envelope says.
pub fn sender_unknown() -> Refusal {
    let detail = "The sender is not registered at this hub; register it, or correct `from`.";
    Refusal::new(ErrorCode::SenderUnknown, detail)
}

/// The signature covers the envelope and is by the sender's key.
pub fn check_signature(envelope: &Envelope, key: &VerifyingKey) -> Result<(), Refusal> {
    if envelope.verify(key) {
        return Ok(());
    }
    let detail = "The signature does not match; sign the JCS bytes of the envelope without `sig`, tag `aip/1 envelope`.";
    Err(Refusal::new(ErrorCode::SignatureInvalid, detail))
}

/// The recipient exists and takes messages. `recipient` is `None` when nobody of that name is registered here.
pub fn check_recipient(recipient: Option<&LocalAgent>) -> Result<&LocalAgent, Refusal> {
    match recipient {
        None => {
            let detail = "No agent of that name is registered at this hub; check `to`.";
            Err(Refusal::new(ErrorCode::RecipientUnknown, detail))
        }
        Some(recipient) if recipient.identity.is_deactivated() => {
            let detail = "The recipient's identity was ended; it receives no more.";
            Err(Refusal::new(ErrorCode::RecipientDeactivated, detail))
        }
        Some(recipient) => Ok(recipient),
    }
}

/// The recipient is at another hub, and this one delivers to no other.
pub fn recipient_remote() -> Refusal {
    let detail = "The recipient is at another hub and federation is switched off at this one; send to the recipient's own hub.";
    Refusal::new(ErrorCode::RecipientUnknown, detail)
}

/// Senders that the operator does not let in: single agents and whole domains.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Blocklist {
    agents: HashSet<Did>,
    domains: HashSet<Domain>,
}

impl Blocklist {
    /// Reads the operator's list: each entry is a DID, a handle or a domain.
    ///
    /// # Errors
    ///
    /// The refusal of the first entry that is none of them; its `entry` member holds the text.
    pub fn parse<'a>(entries: impl IntoIterator<Item = &'a str>) -> Result<Self, Refusal> {
        let mut list = Self::default();
        for entry in entries {
            if let Ok(did) = Did::parse_input(entry) {
                list.agents.insert(did);
            } else if let Ok(handle) = Handle::parse(entry) {
                list.agents.insert(handle.did());
            } else {
                let domain = Domain::parse(entry).map_err(|refusal| refusal.with("entry", entry))?;
                list.domains.insert(domain);
            }
        }
        Ok(list)
    }

    /// Refuses a sender that is on the list.
    pub fn check(&self, sender: &Did) -> Result<(), Refusal> {
        if self.agents.contains(sender)
            || (!self.domains.is_empty() && self.domains.contains(&sender.domain()))
        {
            let detail = "This hub's operator blocked the sender; ask the operator.";
            return Err(Refusal::new(ErrorCode::SenderBlocked, detail));
        }
        Ok(())
    }
}

/// When a message stops being offered: at its own expiry or at the end of the mailbox's retention.
pub fn offered_until(envelope: &Envelope, now: Timestamp, retention: Duration) -> Timestamp {
    let retained_until = now + retention;
    envelope
        .expires_at
        .map_or(retained_until, |expires_at| expires_at.min(retained_until))
}

#[cfg(test)]
mod tests;
