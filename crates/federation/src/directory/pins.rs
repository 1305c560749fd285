//! Pins: which document of a peer counts, and what happens to one that shows another key.

use std::time::Duration;

use aip_protocol::discovery::{HubDocument, hub_kid};
use aip_protocol::error::{ErrorCode, Refusal};
use aip_protocol::json::Json;
use aip_protocol::limits::TOLERANCE_SECS;
use aip_protocol::multikey::VerifyingKey;
use aip_protocol::name::Domain;
use aip_protocol::time::Timestamp;

use super::{Directory, PeerError, check_decided};
use crate::peers::{Frozen, PeerChange, PeerRecord};

/// Who the audit log says decided.
const ACTOR: &str = "hub";

/// Members that differ between two documents that say the same.
const STAMPS: [&str; 4] = ["generated_at", "sig", "prev_kid", "prev_sig"];

impl Directory {
    /// Checks a document against what is pinned, and pins it. Returns the document that counts from now on, with its pins.
    pub(super) async fn judge(
        &self,
        domain: &Domain,
        shown: HubDocument,
        record: Option<&PeerRecord>,
        fresh_until: Timestamp,
    ) -> Result<(HubDocument, Vec<VerifyingKey>), PeerError> {
        let now = self.seams.clock.now();
        let record = record.filter(|record| !record.pinned.is_empty());
        let known = record.and_then(|record| record.document.clone());
        let known = known.and_then(|document| HubDocument::from_json(document).ok());
        check_clock(&shown, now)?;
        let document = newer(known.as_ref(), shown)?;
        let pins = record.map(|record| record.pinned.as_slice());
        match document.verify(domain, now, pins) {
            Ok(pinned) => {
                self.keep(domain, &document, &pinned, fresh_until).await?;
                self.tell(domain, known.as_ref(), &document, pins, &pinned)
                    .await?;
                Ok((document, pinned))
            }
            Err(refusal) if refusal.code == ErrorCode::HubKeyNotPinned => {
                Err(self.freeze(domain, known.as_ref(), &document, now).await?)
            }
            Err(refusal) => Err(unfit(&refusal)),
        }
    }

    async fn keep(
        &self,
        domain: &Domain,
        document: &HubDocument,
        pinned: &[VerifyingKey],
        fresh_until: Timestamp,
    ) -> Result<(), PeerError> {
        let change = PeerChange::Documented {
            document: document.json.clone(),
            pinned: pinned.to_vec(),
            fresh_until,
        };
        let now = self.seams.clock.now();
        // Another process may have frozen or blocked it meanwhile.
        check_decided(&self.seams.store.change(domain, change, now).await?)
    }

    /// Notes what is new: first keys, other keys, another epoch.
    async fn tell(
        &self,
        domain: &Domain,
        known: Option<&HubDocument>,
        document: &HubDocument,
        pins: Option<&[VerifyingKey]>,
        pinned: &[VerifyingKey],
    ) -> Result<(), PeerError> {
        let shown = kids(domain, pinned);
        match pins {
            None => {
                tracing::info!(peer = %domain, keys = %shown, hub = %document.hub, "The first keys of the peer {domain} are pinned");
                self.audit(domain, "pin", &shown).await?;
            }
            Some(pins) if !is_same_set(pins, pinned) => {
                let before = kids(domain, pins);
                tracing::info!(peer = %domain, before, after = %shown, "The peer {domain} changed its keys, vouched for by a pinned one");
                self.audit(domain, "rotate", &format!("{before} -> {shown}"))
                    .await?;
            }
            Some(_) => {}
        }
        let before = known.and_then(|known| known.epoch.as_deref());
        let after = document.epoch.as_deref();
        if let Some((before, after)) = before.zip(after).filter(|(before, after)| before != after) {
            tracing::warn!(peer = %domain, before, after, "The peer {domain} began a new epoch: its store is new, or was restored");
            self.audit(domain, "epoch", &format!("{before} -> {after}"))
                .await?;
        }
        Ok(())
    }

    /// Stops everything with a peer that shows a key of its own making, until the operator decides.
    async fn freeze(
        &self,
        domain: &Domain,
        known: Option<&HubDocument>,
        shown: &HubDocument,
        now: Timestamp,
    ) -> Result<PeerError, PeerError> {
        let store = &self.seams.store;
        let frozen = Frozen {
            code: "key_mismatch".to_owned(),
            kid: shown.kid.clone(),
            since: now,
        };
        store.change(domain, PeerChange::Frozen(frozen), now).await?;
        let code = ErrorCode::HubKeyNotPinned.as_str();
        let objects: Vec<Json> = known
            .into_iter()
            .chain([shown])
            .map(|document| document.json.clone())
            .collect();
        store
            .add_evidence(domain, code, &shown.kid, &objects, now)
            .await?;
        tracing::error!(
            peer = %domain, kid = %shown.kid,
            "The peer {domain} shows a key that no pinned key vouches for. Nothing is taken from it or sent to it until the \
             operator decides: `aip-hub peers show {domain}`, then `repin` or `block`",
        );
        self.audit(domain, "freeze", &format!("key_mismatch: {}", shown.kid))
            .await?;
        Ok(PeerError::Frozen {
            kid: shown.kid.clone(),
        })
    }

    async fn audit(&self, domain: &Domain, action: &str, detail: &str) -> Result<(), PeerError> {
        let now = self.seams.clock.now();
        Ok(self.seams.store.audit(domain, ACTOR, action, detail, now).await?)
    }
}

/// A document from the future would shut out every later one.
fn check_clock(shown: &HubDocument, now: Timestamp) -> Result<(), PeerError> {
    let latest = now + Duration::from_secs(TOLERANCE_SECS);
    match shown.generated_at {
        Some(at) if at > latest => Err(PeerError::Unfit(
            format!("its document is of {at}, and here it is {now}").into(),
        )),
        _ => Ok(()),
    }
}

/// The newer of the two, which has to be the one that is shown, unless both say the same: the processes of one hub need not
/// sign at the same moment.
fn newer(known: Option<&HubDocument>, shown: HubDocument) -> Result<HubDocument, PeerError> {
    let Some(known) = known.filter(|known| known.generated_at > shown.generated_at) else {
        return Ok(shown);
    };
    if known.json.without(&STAMPS) == shown.json.without(&STAMPS) {
        return Ok(known.clone());
    }
    Err(PeerError::unreachable(
        "it shows a document that is older than one seen before",
    ))
}

fn unfit(refusal: &Refusal) -> PeerError {
    PeerError::Unfit(refusal.to_string().into())
}

fn kids(domain: &Domain, keys: &[VerifyingKey]) -> String {
    let kids: Vec<String> = keys.iter().map(|key| hub_kid(domain, key)).collect();
    kids.join(", ")
}

fn is_same_set(one: &[VerifyingKey], other: &[VerifyingKey]) -> bool {
    one.len() == other.len() && one.iter().all(|key| other.contains(key))
}
