//! A history that was shown, held against the one known before.

use aip_protocol::error::{ErrorCode, Refusal};
use aip_protocol::identity::Identity;
use aip_protocol::json::Json;
use aip_protocol::name::Did;

use super::{Found, IdentityError, RemoteIdentities, is_within, resolved};
use crate::directory::PeerError;
use crate::limits::{EVIDENCE_PER_PEER_MAX, IDENTITY_REWRITE};
use crate::peers::KnownHistory;

/// Who the audit log says decided.
const ACTOR: &str = "hub";

impl RemoteIdentities {
    /// Takes a history that replays, if it extends what was known before it was asked for.
    ///
    /// Another process may have learned more while this one was asking: that is no lie of the hub.
    pub(super) async fn admit(
        &self,
        shown: KnownHistory,
        identity: Identity,
        before: Option<&KnownHistory>,
    ) -> Found {
        let did = &shown.did;
        if let Some(before) = before.filter(|before| !extends(&shown, before)) {
            return Err(self.contradiction(before, &shown).await?);
        }
        let known = self.seams.store.history(did).await.map_err(PeerError::from)?;
        match known {
            Some(known) if !extends(&shown, &known) => {
                if extends(&known, &shown) {
                    return self.resolved(&known).await;
                }
                Err(self.contradiction(&known, &shown).await?)
            }
            Some(known)
                if known.operations.len() == shown.operations.len()
                    && is_within(&known, IDENTITY_REWRITE, shown.fetched_at) =>
            {
                Ok(resolved(identity, shown.fetched_at))
            }
            _ => {
                self.seams
                    .store
                    .keep_history(&shown, self.limits.histories)
                    .await
                    .map_err(PeerError::from)?;
                Ok(resolved(identity, shown.fetched_at))
            }
        }
    }

    async fn contradiction(
        &self,
        known: &KnownHistory,
        shown: &KnownHistory,
    ) -> Result<IdentityError, IdentityError> {
        let mut pairs = known.operations.iter().zip(&shown.operations);
        let (was, is, how) = match pairs.find(|(was, is)| was != is) {
            Some((was, is)) => (
                Some(was),
                Some(is),
                "another operation in the place of a known one",
            ),
            None => (
                known.operations.last(),
                shown.operations.last(),
                "fewer operations than before",
            ),
        };
        let objects: Vec<Json> = was.into_iter().chain(is).cloned().collect();
        self.record(&known.did, &objects, how).await?;
        Ok(IdentityError::Forked)
    }

    /// What a history that does not replay is: a lie, if somebody signed it who may not; else nonsense.
    pub(super) async fn refuse(
        &self,
        did: &Did,
        operations: &[Json],
        refusal: &Refusal,
    ) -> Result<IdentityError, IdentityError> {
        let is_signer = matches!(
            refusal.code,
            ErrorCode::RotationKeyUnknown | ErrorCode::SignatureInvalid
        );
        let index = refusal.members.iter().find(|(name, _)| *name == "index");
        let index = index.and_then(|(_, index)| usize::try_from(index.as_u64()?).ok());
        let Some(index) = index.filter(|_| is_signer) else {
            return Ok(IdentityError::Unsound(refusal.to_string().into()));
        };
        let first = index.saturating_sub(1);
        let objects: Vec<Json> = operations.iter().take(index + 1).skip(first).cloned().collect();
        self.record(
            did,
            &objects,
            "an operation that is not signed by a rotation key of the one before",
        )
        .await?;
        Ok(IdentityError::Forked)
    }

    /// Keeps the evidence, and tells the operator of what is new.
    async fn record(&self, did: &Did, objects: &[Json], how: &str) -> Result<(), PeerError> {
        let (store, peer, now) = (&self.seams.store, did.domain(), self.seams.clock.now());
        let code = ErrorCode::HistoryForked.as_str();
        let before = store.evidence(Some(&peer), 0, EVIDENCE_PER_PEER_MAX).await?;
        let is_known = |subject: &str, kept: &[Json]| subject == did.as_str() && kept == objects;
        if before
            .iter()
            .any(|e| e.code == code && is_known(&e.subject, &e.objects))
        {
            tracing::warn!(peer = %peer, did = %did, how, "The hub of {did} still shows a history that is not believed");
            return Ok(());
        }
        store
            .add_evidence(&peer, code, did.as_str(), objects, now)
            .await?;
        tracing::error!(
            peer = %peer, did = %did, how,
            "The hub of {did} shows a history that is not believed: {how}. Both operations are kept as evidence; until the \
             operator decides (`aip-hub peers show {peer}`), mail of this agent is refused",
        );
        store
            .audit(&peer, ACTOR, "fork", &format!("{did}: {how}"), now)
            .await?;
        Ok(())
    }
}

/// Whether every operation of `known` is in `shown`, in its place.
fn extends(shown: &KnownHistory, known: &KnownHistory) -> bool {
    shown.operations.starts_with(&known.operations)
}
