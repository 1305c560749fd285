//! Whose request it is: policy, the peer's document, digest and signature, the nonce.

use std::sync::Arc;

use aip_protocol::error::{ErrorCode, Refusal};
use aip_protocol::multikey::VerifyingKey;
use aip_protocol::name::Domain;
use aip_protocol::time::Timestamp;
use bytes::Bytes;

use super::knock::invalid;
use super::{Inbound, Ticket, unavailable};
use crate::budgets::Verified;
use crate::directory::{Freshness, Peer, PeerError};
use crate::peers::PeerRecord;

/// A peer whose request was verified.
#[derive(Debug)]
pub(super) struct Caller {
    pub(super) domain: Domain,
    pub(super) peer: Arc<Peer>,
}

impl Inbound {
    /// Verifies a request. Whoever fails pays with the budget of the network that it comes from.
    pub(super) async fn authenticate(
        &self,
        ticket: &Arc<Ticket>,
        body: Option<&Bytes>,
    ) -> Result<Caller, Refusal> {
        let Ticket { domain, incoming, .. } = &**ticket;
        if body.is_some() != ticket.call.has_body() {
            // Its signature was read for another call, and may not cover the digest.
            return Err(invalid("the request is none of this call"));
        }
        let now = self.seams.clock.now();
        let record = self.seams.store.peer(domain).await.map_err(unavailable)?;
        let peer = match self.prove(ticket, body, record.as_ref(), now).await {
            Ok(peer) => peer,
            Err(refusal) => {
                if refusal.code != ErrorCode::Unavailable {
                    self.gate.failed(domain, incoming.address, now);
                }
                return Err(refusal);
            }
        };
        let request = Verified {
            address: incoming.address,
            body_bytes: body.map_or(0, |body| u64::try_from(body.len()).unwrap_or(u64::MAX)),
            skew_ms: now.millis_since(ticket.signed.created()),
            allowance: self.policy.allowance(domain, record.as_ref(), now),
        };
        self.gate.verified(domain, &ticket.place, request, now);
        self.seams.heard.heard(domain);
        Ok(Caller {
            domain: domain.clone(),
            peer,
        })
    }

    async fn prove(
        &self,
        ticket: &Arc<Ticket>,
        body: Option<&Bytes>,
        record: Option<&PeerRecord>,
        now: Timestamp,
    ) -> Result<Arc<Peer>, Refusal> {
        let domain = &ticket.domain;
        self.policy.incoming(domain, record)?;
        let is_known = record.is_some_and(|record| !record.pinned.is_empty()) || self.gate.is_met(domain);
        if !is_known {
            self.gate.look_up(ticket.incoming.address, now)?;
        }
        let found = self.seams.documents.peer(domain, Freshness::Cached).await;
        let mut peer = found.map_err(|error| error.refusal())?;
        if peer.key(&ticket.signed.keyid, now).is_none() {
            // What was never met was asked for just now.
            peer = if is_known {
                self.look_for_key(ticket, now).await?
            } else {
                return Err(unknown_key());
            };
        }
        let keys = peer.keys_at(now).cloned().collect();
        self.check_signature(ticket, body, keys).await?;
        let signed = &ticket.signed;
        let used = self
            .seams
            .store
            .use_nonce(domain, &signed.nonce, now, signed.remember_until);
        if used.await.map_err(unavailable)? {
            Ok(peer)
        } else {
            Err(invalid("the nonce was used before"))
        }
    }

    /// The document past the cache: its hub may have another key since. A signature that is wrong under a key that is listed
    /// needs no such look: a `keyid` is its key, and no document makes the signature right.
    async fn look_for_key(&self, ticket: &Ticket, now: Timestamp) -> Result<Arc<Peer>, Refusal> {
        self.counters.look();
        match self.seams.documents.peer(&ticket.domain, Freshness::Fresh).await {
            Ok(peer) if peer.key(&ticket.signed.keyid, now).is_some() => Ok(peer),
            Ok(_) => Err(unknown_key()),
            // It was asked a moment ago, and the key was not there.
            Err(PeerError::TooSoon { retry_after_secs }) => Err(unknown_key().retry_after(retry_after_secs)),
            Err(error) => Err(error.refusal()),
        }
    }

    async fn check_signature(
        &self,
        ticket: &Arc<Ticket>,
        body: Option<&Bytes>,
        keys: Vec<VerifyingKey>,
    ) -> Result<(), Refusal> {
        let (ticket, body) = (Arc::clone(ticket), body.cloned());
        self.counters.signature();
        self.cpu
            .run(move || {
                let Ticket { incoming, signed, .. } = &*ticket;
                let fields = incoming.fields();
                signed.verify(&incoming.target, &fields, body.as_deref(), &keys)
            })
            .await?
    }
}

fn unknown_key() -> Refusal {
    Refusal::new(ErrorCode::HubKeyUnknown, "keyid is no current key of the peer")
}
