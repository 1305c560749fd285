//! Epochs of a peer's outbox: each is a window of its own, and there are not many.
//!
//! A push is taken in the epoch that the peer's document names, and in no other: the document is signed and can be asked for
//! again, so what it says is the peer's standing word. A batch of another epoch makes this hub look at the document past
//! every cache; if that does not name it either, the answer is `epoch_changed`, and the peer starts from the epoch that it
//! has. A peer whose keys are configured has no document to look at: there, its batches say what its epoch is.

use aip_protocol::error::{ErrorCode, Refusal};
use aip_protocol::name::Domain;

use super::Inbound;
use super::authenticate::Caller;
use crate::directory::Freshness;

impl Inbound {
    /// Whether items are taken in this epoch.
    pub(super) async fn check_epoch(&self, caller: &Caller, epoch: &str) -> Result<(), Refusal> {
        let Caller { domain, peer } = caller;
        let named = peer.epoch.as_deref();
        if named == Some(epoch) || (named.is_none() && self.gate.is_epoch(domain, epoch)) {
            return Ok(());
        }
        self.gate.new_epoch(domain, self.seams.clock.now())?;
        if named.is_some() && !self.look_for_epoch(domain, epoch).await? {
            let detail = "The batch has another epoch than your hub's discovery document.";
            return Err(Refusal::new(ErrorCode::EpochChanged, detail));
        }
        self.gate.set_epoch(domain, epoch);
        Ok(())
    }

    async fn look_for_epoch(&self, domain: &Domain, epoch: &str) -> Result<bool, Refusal> {
        self.counters.look();
        // It is the peer's own word that there is another one, so it may be asked however long ago it was asked last.
        self.seams.documents.forget(domain);
        let peer = self.seams.documents.peer(domain, Freshness::Fresh).await;
        let peer = peer.map_err(|error| error.refusal())?;
        Ok(peer.epoch.as_deref() == Some(epoch))
    }
}
