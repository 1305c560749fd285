//! Following an agent that has moved: only where both histories point at each other
//! (`docs/protocol/federation.md`, Moves).

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use aip_protocol::identity::{Identity, Operation};
use aip_protocol::name::Did;
use aip_protocol::time::Timestamp;

use super::Client;
use crate::error::Result;
use crate::identities::Freshness;
use crate::limits::{LOOKUP_PAUSE, MOVES_FOLLOWED_MAX, MOVES_REMEMBERED_MAX};

/// Names the new DID, in the newest operation of the old history.
pub(super) const MOVED_TO: &str = "moved_to";
/// Names the old DID, in operation 0 of the new history.
pub(super) const MOVED_FROM: &str = "moved_from";

/// Where this agent says that it went.
pub(super) fn moved_to(identity: &Identity) -> Option<Did> {
    named(identity.head(), MOVED_TO)
}

/// Where this agent says that it came from, by its operation 0.
pub(super) fn moved_from(genesis: &Operation) -> Option<Did> {
    named(genesis, MOVED_FROM)
}

fn named(operation: &Operation, member: &str) -> Option<Did> {
    Did::parse(operation.json.get(member)?.as_str()?).ok()
}

/// Whether one owner made both: the new history names the old one, signed by a rotation key that the old one lists.
fn is_claimed_back(old: &Identity, genesis: &Operation) -> bool {
    moved_from(genesis).as_ref() == Some(old.did()) && old.head().keys.rotation.contains(genesis.signer())
}

/// What is known of a claim to have moved.
#[derive(Debug, Clone, Copy)]
enum Claim {
    /// Both sides say so. A genesis never changes, so what was seen once holds.
    Confirmed,
    /// At this time the other side did not say so, or could not be looked at.
    Doubted(Timestamp),
}

/// Claims to have moved, by the head of the old history and where it points.
#[derive(Debug, Default)]
pub(super) struct Claims(Mutex<HashMap<(String, Did), Claim>>);

impl Claims {
    fn known(&self, old: &Identity, to: &Did) -> Option<Claim> {
        self.claims()
            .get(&(old.head_hash().to_owned(), to.clone()))
            .copied()
    }

    fn remember(&self, old: &Identity, to: &Did, claim: Claim) {
        let mut claims = self.claims();
        if claims.len() >= MOVES_REMEMBERED_MAX {
            claims.clear();
        }
        claims.insert((old.head_hash().to_owned(), to.clone()), claim);
    }

    fn claims(&self) -> MutexGuard<'_, HashMap<(String, Did), Claim>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Client {
    /// Who the agent is now: itself, or whom it moved to, over a few steps. A claim that the other side does not confirm
    /// is ignored and told, and so is one that cannot be looked at just now: the old mailbox still takes mail.
    pub(super) async fn follow(&self, identity: Identity) -> Identity {
        let mut seen = vec![identity.did().clone()];
        let mut identity = identity;
        while let Some(to) = moved_to(&identity) {
            if seen.contains(&to) || seen.len() > MOVES_FOLLOWED_MAX {
                tracing::warn!(from = %identity.did(), %to, "a move in circles, or one too many, is not followed");
                break;
            }
            match self.moved(&identity, &to).await {
                Ok(Some(next)) => identity = next,
                Ok(None) => {
                    tracing::warn!(from = %identity.did(), %to, "a move that the other side does not confirm is ignored");
                    break;
                }
                Err(error) => {
                    tracing::warn!(from = %identity.did(), %to, error = error.sentence(), "a move cannot be followed");
                    break;
                }
            }
            seen.push(to);
        }
        identity
    }

    /// The identity that this one moved to, if that one says so too. A claim that did not hold is not looked at again with
    /// every message.
    async fn moved(&self, old: &Identity, to: &Did) -> Result<Option<Identity>> {
        match self.0.claims.known(old, to) {
            Some(Claim::Confirmed) => {}
            Some(Claim::Doubted(at)) if at <= self.now() && self.now() < at + LOOKUP_PAUSE => {
                return Ok(None);
            }
            _ => {
                let confirmed = self.is_confirmed(old, to).await;
                let claim = match confirmed {
                    Ok(true) => Claim::Confirmed,
                    _ => Claim::Doubted(self.now()),
                };
                self.0.claims.remember(old, to, claim);
                if !confirmed? {
                    return Ok(None);
                }
            }
        }
        let new = self.look_up(to, Freshness::Remembered).await?;
        Ok((!new.is_deactivated()).then_some(new))
    }

    /// Whether the agent at which this one points, or is about to, is found at its domain and says so too.
    pub(super) async fn is_confirmed(&self, old: &Identity, to: &Did) -> Result<bool> {
        let operations = self.history(to.as_str()).await?;
        Ok(operations
            .first()
            .is_some_and(|genesis| is_claimed_back(old, genesis)))
    }
}
