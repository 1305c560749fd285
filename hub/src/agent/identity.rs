//! The identity of the hub's own agent: registered at the first start, checked at every other, and moved on to the keys
//! of a new hub key by an operation that the former rotation key signs.

use std::sync::Arc;

use aip_protocol::error::{ErrorCode, Refusal};
use aip_protocol::identity::{Operation, OperationDraft};
use aip_protocol::json::Json;
use aip_protocol::name::{Did, HUB_NAME, Name};
use aip_registry::{Agent, Registered, RegistryError};

use super::limits::IDENTITY_ATTEMPTS_MAX;
use super::{AgentKeys, HubAgent};

/// How the identity came to be as it is to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Established {
    /// The agent is new.
    Registered,
    /// It was so before.
    Same,
    /// It had the keys of the former hub key.
    Rotated,
}

/// Why the agent has no identity that it can use. Each sentence says how to mend it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum IdentityError {
    /// Its history stands at keys that nobody here has.
    #[error(
        "the history of {did} stands at the keys of another hub key: put the file with the former key beside \
         the hub's key, as `hub.key.previous`, and start again; until then the hub's own agent is silent"
    )]
    AnotherKey {
        /// The agent.
        did: Did,
    },
    /// Its history was ended.
    #[error("{0} was ended, for ever: the hub goes on without an agent of its own")]
    Ended(Did),
    /// Other processes were always faster.
    #[error("the history of {0} changes again and again; do all processes have the same hub key?")]
    Unsteady(Did),
    /// A bug, or a setting that forbids it.
    #[error("the agent's operation was refused: {0}")]
    Refused(#[from] Refusal),
    /// The registry cannot be asked, or it refused.
    #[error(transparent)]
    Registry(#[from] RegistryError),
}

impl HubAgent {
    /// Sees to it that the agent is registered, with the keys of this hub key. Again is harmless, in any number of
    /// processes.
    ///
    /// # Errors
    /// What is in the way, and how to mend it.
    pub async fn establish(&self) -> Result<(Established, Arc<Agent>), IdentityError> {
        for _ in 0..IDENTITY_ATTEMPTS_MAX {
            let outcome = match self.registry.resolve(&self.did).await? {
                None => self.register().await,
                Some(agent) => match self.next_operation(&agent)? {
                    None => return Ok((Established::Same, agent)),
                    Some(operation) => self.rotate(&operation).await,
                },
            };
            match outcome {
                Err(error) if is_outrun(&error) => self.registry.forget(&self.did).await,
                outcome => return outcome,
            }
        }
        Err(IdentityError::Unsteady(self.did.clone()))
    }

    async fn register(&self) -> Result<(Established, Arc<Agent>), IdentityError> {
        let mut draft = OperationDraft::genesis(self.did.clone(), self.clock.now(), self.keys.public());
        draft.profile = Json::from([
            ("name", Json::from(self.did.handle().domain.to_string())),
            ("kind", Json::from(HUB_NAME)),
        ]);
        let genesis = draft.sign(&self.keys.rotation)?;
        let registered = self.registry.register_hub(&genesis.json.to_jcs()).await?;
        Ok(match registered {
            Registered::Created(agent) => (Established::Registered, agent),
            Registered::Same(agent) => (Established::Same, agent),
        })
    }

    /// What is to follow in the history; `None` when it stands where it should.
    fn next_operation(&self, agent: &Agent) -> Result<Option<Operation>, IdentityError> {
        let head = agent.identity.head();
        if head.deactivated {
            return Err(IdentityError::Ended(self.did.clone()));
        }
        let wanted = self.keys.public();
        if head.keys == wanted {
            return Ok(None);
        }
        let can_sign = |keys: &&AgentKeys| head.keys.rotation.contains(keys.rotation.public());
        let mut signers = std::iter::once(&self.keys).chain(&self.former);
        let Some(signer) = signers.find(can_sign) else {
            let did = self.did.clone();
            return Err(IdentityError::AnotherKey { did });
        };
        let mut draft = agent.identity.next_draft(self.clock.now());
        draft.keys = wanted;
        Ok(Some(draft.sign(&signer.rotation)?))
    }

    async fn rotate(&self, operation: &Operation) -> Result<(Established, Arc<Agent>), IdentityError> {
        let name = Name::parse(HUB_NAME)?;
        let wire = operation.json.to_jcs();
        let operated = self.registry.operate(&name, &wire).await?;
        Ok((Established::Rotated, operated.agent().clone()))
    }
}

/// Whether another process has changed the history in the meantime.
fn is_outrun(error: &IdentityError) -> bool {
    let IdentityError::Registry(error) = error else {
        return false;
    };
    matches!(error.code(), ErrorCode::HandleTaken | ErrorCode::HistoryConflict)
}
