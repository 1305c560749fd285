//! What an operator asks and decides. No route of an agent leads here.

use std::sync::Arc;

use aip_protocol::error::{ErrorCode, Refusal};
use aip_protocol::name::Name;
use aip_protocol::time::Timestamp;

use super::Registry;
use crate::agent::{AgentSummary, QuotaOverride, Standing};
use crate::directory::{AgentChange, Counts};
use crate::error::{RegistryError, refuse};
use crate::grants::{Invite, InviteGrant, InviteId};
use crate::limits::{INVITE_NOTE_BYTES_MAX, INVITE_USES_MAX, LIST_PAGE_MAX, SWEEP_ROWS_MAX};
use crate::secret::SecretHash;

/// An invite, its code told once.
#[derive(Clone, PartialEq, Eq)]
pub struct NewInvite {
    /// What the agent sends as `X-AIP-Invite`.
    pub code: String,
    /// What the operator lists and revokes it by.
    pub id: InviteId,
}

impl std::fmt::Debug for NewInvite {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("NewInvite")
            .field("id", &self.id)
            .finish_non_exhaustive()
    }
}

impl Registry {
    /// Agents in the order of their names, after `after`; at most [`LIST_PAGE_MAX`].
    pub async fn list_agents(
        &self,
        after: Option<&Name>,
        limit: u32,
    ) -> Result<Vec<AgentSummary>, RegistryError> {
        Ok(self.directory.list(after, limit.clamp(1, LIST_PAGE_MAX)).await?)
    }

    /// Suspends an agent, or lets it back in. Its tokens stop working at once while it is suspended.
    pub async fn set_standing(&self, name: &Name, standing: Standing) -> Result<(), RegistryError> {
        self.update(name, AgentChange::Standing(standing)).await
    }

    /// Replaces an agent's quotas.
    pub async fn set_quota(&self, name: &Name, quota: QuotaOverride) -> Result<(), RegistryError> {
        self.update(name, AgentChange::Quota(quota)).await
    }

    async fn update(&self, name: &Name, change: AgentChange) -> Result<(), RegistryError> {
        let (directory, own_name) = (Arc::clone(&self.directory), name.clone());
        let update = async move { directory.update(&own_name, change).await };
        if self.agents.change(&self.did_of(name), update).await? {
            return Ok(());
        }
        Err(refuse(ErrorCode::NotFound, "no agent has this name here"))
    }

    /// Makes an invite that lets `uses` agents register, until `expires_at`.
    ///
    /// Refuses with `parameter_invalid`.
    pub async fn create_invite(
        &self,
        uses: u32,
        expires_at: Option<Timestamp>,
        note: &str,
    ) -> Result<NewInvite, RegistryError> {
        let invalid = |detail: String| Err(Refusal::new(ErrorCode::ParameterInvalid, detail).into());
        if !(1..=INVITE_USES_MAX).contains(&uses) {
            return invalid(format!("an invite is good for 1 to {INVITE_USES_MAX} agents"));
        }
        if note.len() > INVITE_NOTE_BYTES_MAX || note.contains('\0') {
            return invalid(format!("a note is text of at most {INVITE_NOTE_BYTES_MAX} bytes"));
        }
        let created_at = self.now();
        if expires_at.is_some_and(|end| end <= created_at) {
            return invalid("an invite ends in the future".to_owned());
        }
        let code = self.chance.secret::<16>();
        let hash = SecretHash::of(&code);
        let invite = InviteGrant {
            hash,
            note: note.to_owned(),
            uses,
            created_at,
            expires_at,
        };
        self.grants.create_invite(invite).await?;
        Ok(NewInvite {
            code,
            id: InviteId::of(hash),
        })
    }

    /// Invites in the order of their ids, after `after`; at most [`LIST_PAGE_MAX`].
    pub async fn list_invites(
        &self,
        after: Option<&InviteId>,
        limit: u32,
    ) -> Result<Vec<Invite>, RegistryError> {
        Ok(self
            .grants
            .list_invites(after, limit.clamp(1, LIST_PAGE_MAX))
            .await?)
    }

    /// Ends an invite; `false` if it is unknown or was revoked before.
    pub async fn revoke_invite(&self, id: &InviteId) -> Result<bool, RegistryError> {
        Ok(self.grants.revoke_invite(id, self.now()).await?)
    }

    /// Removes tokens and spent challenges that are over; call it now and then.
    pub async fn sweep(&self) -> Result<u64, RegistryError> {
        let (now, mut removed) = (self.now(), 0);
        loop {
            let more = self.grants.sweep(now, SWEEP_ROWS_MAX).await?;
            removed += more;
            if more < u64::from(SWEEP_ROWS_MAX) {
                return Ok(removed);
            }
        }
    }

    /// How much there is, for metrics.
    pub async fn counts(&self) -> Result<Counts, RegistryError> {
        Ok(self.directory.counts().await?)
    }
}
