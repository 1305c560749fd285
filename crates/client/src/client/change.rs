//! Changing the agent's own identity (spec §3): written down before it is sent, so that no crash leaves an agent without
//! the keys that its hub knows.

use aip_protocol::identity::{Identity, Operation, OperationDraft, RouteMode};
use aip_protocol::name::Did;

use super::Client;
use super::lookup::is_unknown_agent;
use crate::error::{Error, Result};
use crate::identities::Freshness;
use crate::keys::{AgentKeys, FreshKeys, Pending, new_opening, new_signing};
use crate::transport::Request;

/// What a rotation replaces beside the signing and the sealing key.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Rotation {
    /// Calls the keys that are replaced compromised: nobody accepts them from then on. Without it they stay good for
    /// 900 s, for messages in flight.
    pub revoke_old: bool,
    /// Replaces the rotation key too.
    pub rotation_key: bool,
}

impl Client {
    /// Replaces the agent's keys. Messages that were sealed for the old ones still open.
    pub async fn rotate(&self, rotation: Rotation) -> Result<Identity> {
        let entropy = self.entropy().clone();
        self.change(|keys, draft| {
            let old = keys.current().ok_or(Error::NoKeys)?;
            let fresh = FreshKeys {
                signing: new_signing(&entropy),
                opening: new_opening(&entropy),
                rotation: if rotation.rotation_key {
                    new_signing(&entropy)
                } else {
                    old.rotation.clone()
                },
            };
            let mut dropped = vec![old.signing.public().to_string(), old.opening.public().to_string()];
            swap(
                &mut draft.keys.signing,
                old.signing.public(),
                fresh.signing.public(),
            );
            swap(
                &mut draft.keys.sealing,
                old.opening.public(),
                fresh.opening.public(),
            );
            if rotation.rotation_key {
                swap(
                    &mut draft.keys.rotation,
                    old.rotation.public(),
                    fresh.rotation.public(),
                );
                dropped.push(old.rotation.public().to_string());
            }
            if rotation.revoke_old {
                draft.revoked = dropped;
            }
            Ok(fresh)
        })
        .await
    }

    /// Moves the agent's mail to an endpoint of its own, or back to the mailbox.
    pub async fn set_endpoint(&self, endpoint: Option<String>) -> Result<Identity> {
        self.edit_identity(|draft| {
            draft.route_mode = if endpoint.is_some() {
                RouteMode::Direct
            } else {
                RouteMode::Relay
            };
            draft.endpoint = endpoint;
        })
        .await
    }

    /// Changes what is not a key: the profile, the route, further members.
    pub async fn edit_identity(&self, edit: impl FnOnce(&mut OperationDraft)) -> Result<Identity> {
        self.change(|keys, draft| {
            edit(draft);
            keys.current().ok_or(Error::NoKeys)
        })
        .await
    }

    /// Ends the agent: sending and receiving stop at once, and its name stays taken for ever.
    pub async fn deactivate(&self) -> Result<Identity> {
        self.edit_identity(|draft| draft.deactivated = true).await
    }

    /// Finishes a change that was interrupted, if there is one. Every change begins with this; call it after a crash to
    /// know where the agent stands. True when there was one and the hub has it.
    pub async fn finish_change(&self) -> Result<bool> {
        let _one_at_a_time = self.0.changing.lock().await;
        self.reload_keys().await?;
        self.finish(None).await
    }

    async fn change(
        &self,
        edit: impl FnOnce(&AgentKeys, &mut OperationDraft) -> Result<FreshKeys>,
    ) -> Result<Identity> {
        let _one_at_a_time = self.0.changing.lock().await;
        // What another process wrote since is kept: with keys that only it knows, mail under way would be lost.
        self.reload_keys().await?;
        self.finish(None).await?;
        let mut keys = AgentKeys::clone(&*self.keys()?);
        let did = keys.did().clone();
        let identity = self.look_up(&did, Freshness::Asked).await?;
        let mut draft = identity.next_draft(self.now());
        let fresh = edit(&keys, &mut draft)?;
        let operation = draft.sign(&keys.rotation)?;
        keys.pending = Some(Pending { operation, fresh });
        self.save_keys(keys).await?;
        self.finish(None).await?;
        self.look_up(&did, Freshness::Asked).await
    }

    /// Sends the change that is written down, if there is one, and settles it. The caller holds `changing`.
    pub(super) async fn finish(&self, invite: Option<&str>) -> Result<bool> {
        let mut keys = AgentKeys::clone(&*self.keys()?);
        let Some(pending) = keys.pending.clone() else {
            return Ok(false);
        };
        match self.submit_operation(&pending.operation, invite).await {
            Ok(()) => {}
            // Unknown is unknown: it stays written down, and the next call asks again.
            Err(error) if error.is_transient() => return Err(error),
            // An earlier attempt may have been admitted although its answer was lost; the history tells.
            Err(error) => {
                if !self.is_admitted(keys.did(), &pending.operation).await? {
                    keys.abandon();
                    self.save_keys(keys).await?;
                    return Err(error);
                }
            }
        }
        keys.settle();
        self.save_keys(keys).await?;
        Ok(true)
    }

    async fn submit_operation(&self, operation: &Operation, invite: Option<&str>) -> Result<()> {
        let path = match operation.seq {
            0 => "/api/v1/agents".to_owned(),
            _ => format!("/api/v1/agents/{}/operations", operation.did.name()),
        };
        let mut request = Request::post("changing the identity", path, operation.json.to_jcs());
        if let Some(invite) = invite {
            request = request.header("x-aip-invite", invite);
        }
        self.0.transport.call(request).await.map(drop)
    }

    async fn is_admitted(&self, did: &Did, operation: &Operation) -> Result<bool> {
        match self.look_up(did, Freshness::Asked).await {
            Ok(identity) => Ok(identity
                .check_extends(operation.seq, identity.genesis_hash(), operation.hash())
                .is_ok()),
            Err(error) if is_unknown_agent(&error) => Ok(false),
            Err(error) => Err(error),
        }
    }
}

/// Puts the new key first and takes the old one out; keys of the agent's other devices stay.
fn swap<K: PartialEq + Clone>(keys: &mut Vec<K>, old: &K, new: &K) {
    keys.retain(|key| key != old);
    keys.insert(0, new.clone());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_swap_keeps_the_keys_of_other_devices() {
        let mut keys = vec![1, 2, 3];
        swap(&mut keys, &2, &9);
        assert_eq!(keys, [9, 1, 3]);
    }
}
