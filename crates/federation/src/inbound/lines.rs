//! The items of a push on their way through the checks.

use std::collections::{BTreeMap, BTreeSet};

use aip_protocol::error::ErrorCode;
use aip_protocol::identity::Identity;
use aip_protocol::name::{Did, Domain};
use aip_protocol::peer::{AdmittedItem, Item, Known, verify_sender};
use aip_protocol::time::Timestamp;
use bytes::Bytes;

use super::Reception;
use super::batch::Arrival;
use crate::identities::IdentityError;
use crate::limits::{
    ABOVE_FAR_MAX, ABOVE_NEAR_MAX, FRESH_LOOKS_EVERY, UNAVAILABLE_RETRY_SECS, WINDOW_RETRY_SECS,
};
use crate::peers::Noted;

/// One item.
#[derive(Debug)]
pub(super) struct Line {
    pub(super) seq: u64,
    pub(super) stage: Stage,
    pub(super) wire: Bytes,
    /// Sender and recipient, once they are known.
    pub(super) pair: Option<(Did, Did)>,
}

/// What is known of a peer's epoch.
#[derive(Debug, Clone, Copy)]
pub(super) struct Window {
    /// Everything up to here is settled, …
    pub(super) floor: u64,
    /// … and so many items above it.
    pub(super) above: u64,
}

impl Window {
    /// Whether there is room for an item to be settled.
    fn takes(self, seq: u64) -> bool {
        seq <= self.floor.saturating_add(ABOVE_NEAR_MAX) || self.above < ABOVE_FAR_MAX
    }
}

/// How far it has come.
#[derive(Debug)]
pub(super) enum Stage {
    /// Its number is new. Or why its envelope cannot be read at all.
    Arrived(Result<Item, ErrorCode>),
    /// It passed every check that needs no look-up.
    Admitted(AdmittedItem),
    /// Its sender signed it.
    Verified(AdmittedItem),
    /// Decided now.
    Decided(Reception),
    /// Decided before, and remembered.
    Remembered(Reception),
}

/// The senders of a push.
pub(super) type Senders = BTreeMap<Did, Sender>;

/// What is known of a sender.
#[derive(Debug)]
pub(super) struct Sender {
    /// Its identity, or what becomes of its items without.
    pub(super) identity: Result<Identity, Reception>,
    /// Whether its hub was asked after its items were here: else it may know by now what would let them pass.
    pub(super) is_current: bool,
}

impl Sender {
    fn check(&self, item: &AdmittedItem) -> Result<(), Reception> {
        let identity = self.identity.as_ref().map_err(|reception| *reception)?;
        verify_sender(item, identity).map_err(|refusal| Reception::Refused(refusal.code))
    }
}

impl Line {
    /// At the beginning: what the window says about its number.
    pub(super) fn new(arrival: Arrival, known: Known, window: Window) -> Self {
        let Arrival { seq, item, wire } = arrival;
        let stage = match known {
            Known::Duplicate => Stage::Remembered(Reception::Duplicate),
            Known::Refused(code) => Stage::Remembered(Reception::Refused(code)),
            Known::New if !window.takes(seq) => Stage::Decided(Reception::Retry {
                code: ErrorCode::FutureCursor,
                after_secs: WINDOW_RETRY_SECS,
            }),
            Known::New => Stage::Arrived(item),
        };
        Self {
            seq,
            stage,
            wire,
            pair: None,
        }
    }

    pub(super) fn is_new(&self) -> bool {
        matches!(self.stage, Stage::Arrived(_))
    }

    pub(super) fn is_retry(&self) -> bool {
        matches!(self.stage, Stage::Decided(Reception::Retry { .. }))
    }

    /// The item, if its signature is still to be verified.
    pub(super) fn admitted(&self) -> Option<&AdmittedItem> {
        if let Stage::Admitted(item) = &self.stage {
            Some(item)
        } else {
            None
        }
    }

    pub(super) fn decide(&mut self, reception: Reception) {
        self.stage = Stage::Decided(reception);
    }

    /// Every check that needs no look-up.
    pub(super) fn admit(self, rules: &Rules) -> Self {
        let Stage::Arrived(item) = self.stage else {
            return self;
        };
        let item = item.and_then(|item| rules.admit(item, self.wire.len()));
        match item {
            Ok(item) => Self {
                pair: Some((item.envelope.from.clone(), item.envelope.to.clone())),
                stage: Stage::Admitted(item),
                ..self
            },
            Err(code) => Self {
                stage: Stage::Decided(Reception::Refused(code)),
                ..self
            },
        }
    }

    /// The sender's own signature. A sender of whom it is not known that it has such a key, or that it exists, goes to
    /// `unknown`, when there is somewhere else to look; else the item is refused, by what is known since it came in.
    pub(super) fn verify(self, senders: &Senders, unknown: Option<&mut BTreeSet<Did>>) -> Self {
        let Stage::Admitted(item) = self.stage else {
            return self;
        };
        let Some(sender) = senders.get(&item.envelope.from) else {
            return Self {
                stage: Stage::Admitted(item),
                ..self
            };
        };
        let stage = match (sender.check(&item), unknown) {
            (Ok(()), _) => Stage::Verified(item),
            (Err(Reception::Refused(ErrorCode::KeyUnknown | ErrorCode::SenderUnknown)), Some(unknown)) => {
                unknown.insert(item.envelope.from.clone());
                Stage::Admitted(item)
            }
            (Err(Reception::Refused(ErrorCode::KeyUnknown)), None) if !sender.is_current => {
                Stage::Decided(Reception::Retry {
                    code: ErrorCode::Unavailable,
                    after_secs: FRESH_LOOKS_EVERY.as_secs(),
                })
            }
            (Err(reception), _) => Stage::Decided(reception),
        };
        Self { stage, ..self }
    }

    /// How it ended. What nobody decided comes again.
    pub(super) fn reception(&self) -> Reception {
        match self.stage {
            Stage::Decided(reception) | Stage::Remembered(reception) => reception,
            Stage::Arrived(_) | Stage::Admitted(_) | Stage::Verified(_) => Reception::Retry {
                code: ErrorCode::Unavailable,
                after_secs: UNAVAILABLE_RETRY_SECS,
            },
        }
    }

    /// What is to be remembered of it.
    pub(super) fn noted(&self) -> Option<Noted> {
        let refused = match self.stage {
            Stage::Decided(Reception::Stored | Reception::Duplicate) => None,
            Stage::Decided(Reception::Refused(code)) => Some(code),
            _ => return None,
        };
        Some(Noted {
            peer_seq: self.seq,
            refused,
        })
    }
}

/// What items are judged by.
#[derive(Debug, Clone)]
pub(super) struct Rules {
    pub(super) peer: Domain,
    pub(super) own: Domain,
    pub(super) envelope_bytes_max: usize,
    pub(super) now: Timestamp,
}

impl Rules {
    fn admit(&self, item: Item, wire_bytes: usize) -> Result<AdmittedItem, ErrorCode> {
        if wire_bytes > self.envelope_bytes_max {
            return Err(ErrorCode::EnvelopeTooLarge);
        }
        item.admit(&self.peer, &self.own, self.now)
            .map_err(|refusal| refusal.code)
    }
}

/// What becomes of the items of a sender that has no identity. What its hub says of it is final; that its hub cannot be asked,
/// or is not believed at the moment, is not.
pub(super) fn without_identity(error: &IdentityError) -> Reception {
    match error {
        IdentityError::NotFound => Reception::Refused(ErrorCode::SenderUnknown),
        IdentityError::Forked | IdentityError::Unsound(_) => Reception::Refused(error.code()),
        IdentityError::Peer(cause) => Reception::Retry {
            code: error.code(),
            after_secs: cause.refusal().retry_after_secs.unwrap_or(UNAVAILABLE_RETRY_SECS),
        },
    }
}
