//! Registration and identity operations (spec §3): what is admitted into a history.

use std::sync::Arc;

use aip_protocol::error::{ErrorCode, Refusal};
use aip_protocol::identity::{EndpointPolicy, Identity, Operation};
use aip_protocol::name::{Did, HUB_NAME, Name};

use super::Registry;
use crate::agent::{Agent, Kept, QuotaOverride, Standing};
use crate::config::Policy;
use crate::directory::{AppendOutcome, CreateOutcome, NewAgent, NextOperation, StoredOperation};
use crate::error::{RegistryError, StoreError, refuse};
use crate::limits::{
    APPEND_ATTEMPTS_MAX, HISTORY_BYTES_MAX, OPERATION_WIRE_BYTES_MAX, OPERATIONS_PER_AGENT_MAX,
    SECRET_CHARS_MAX,
};
use crate::secret::SecretHash;

/// What became of a registration.
#[derive(Debug, Clone)]
pub enum Registered {
    /// The name is the agent's (201).
    Created(Arc<Agent>),
    /// It was already, by the same operation (200).
    Same(Arc<Agent>),
}

impl Registered {
    /// The agent.
    pub fn agent(&self) -> &Arc<Agent> {
        match self {
            Self::Created(agent) | Self::Same(agent) => agent,
        }
    }
}

/// What became of an operation.
#[derive(Debug, Clone)]
pub enum Operated {
    /// It is the new head.
    Appended(Arc<Agent>),
    /// It was the head already.
    Same(Arc<Agent>),
}

impl Operated {
    /// The agent.
    pub fn agent(&self) -> &Arc<Agent> {
        match self {
            Self::Appended(agent) | Self::Same(agent) => agent,
        }
    }
}

impl Registry {
    /// Registers the agent that operation 0 creates.
    ///
    /// Checked in this order: strict JSON and form (400), our domain (403 `not_yours`), reserved
    /// names (403 `name_reserved`), `created_at` within 300 s (422), signature (401), policy (403
    /// `registration_closed`, `invite_required`), and that the name is free (409 `handle_taken`).
    /// The same operation again is [`Registered::Same`] and uses up nothing, whatever the clock and
    /// the policy say by then.
    pub async fn register(&self, wire: &[u8], invite: Option<&str>) -> Result<Registered, RegistryError> {
        let operation = self.parse(wire)?;
        let handle = operation.did.handle();
        if handle.domain != self.domain {
            let detail = format!("this hub registers agents of {} only", self.domain);
            return Err(Refusal::new(ErrorCode::NotYours, detail).into());
        }
        if handle.name.is_reserved() || self.reserved.contains(&handle.name) {
            return Err(refuse(
                ErrorCode::NameReserved,
                "this name is reserved; choose another one",
            ));
        }
        let hash = operation.hash().to_owned();
        let did = operation.did.clone();
        match self.admit(operation, invite) {
            Ok((identity, invite)) => self.create(handle.name, identity, invite).await,
            Err(refusal) => self.same_registration(&did, &hash, refusal).await,
        }
    }

    /// Registers the hub's own agent, whose name is reserved for everybody else (spec §1): neither reserved names nor
    /// the policy stand in its way. Everything else is as in [`Registry::register`]. For the hub itself, never for what
    /// came over the wire.
    pub async fn register_hub(&self, genesis: &[u8]) -> Result<Registered, RegistryError> {
        let operation = self.parse(genesis)?;
        let handle = operation.did.handle();
        if handle.domain != self.domain || handle.name.as_str() != HUB_NAME {
            return Err(refuse(ErrorCode::NotYours, "this is not the hub's own agent"));
        }
        operation.check_clock(self.now())?;
        let identity = Identity::genesis(operation)?;
        self.create(handle.name, identity, None).await
    }

    fn admit(
        &self,
        operation: Operation,
        invite: Option<&str>,
    ) -> Result<(Identity, Option<SecretHash>), RegistryError> {
        operation.check_clock(self.now())?;
        let identity = Identity::genesis(operation)?;
        let invite = match (self.config.policy, invite) {
            (Policy::Open, _) => None,
            (Policy::Closed, _) => {
                return Err(refuse(
                    ErrorCode::RegistrationClosed,
                    "this hub takes no registrations",
                ));
            }
            (Policy::Invite, Some(code)) if code.len() <= SECRET_CHARS_MAX => Some(SecretHash::of(code)),
            (Policy::Invite, _) => return Err(invite_required()),
        };
        Ok((identity, invite))
    }

    async fn create(
        &self,
        name: Name,
        identity: Identity,
        invite: Option<SecretHash>,
    ) -> Result<Registered, RegistryError> {
        let operation = StoredOperation::from(identity.head());
        let history_bytes = operation.json.len() as u64;
        let did = identity.did().clone();
        let new = NewAgent {
            name,
            operation,
            registered_at: self.now(),
            invite,
        };
        let registered_at = new.registered_at;
        let directory = Arc::clone(&self.directory);
        let outcome = self
            .agents
            .change(&did, async move { directory.create(new).await })
            .await?;
        let (standing, quota) = (Standing::Active, QuotaOverride::default());
        match outcome {
            CreateOutcome::Created => {
                let agent = Agent {
                    identity,
                    standing,
                    quota,
                    registered_at,
                    kept: Kept::default(),
                    history_bytes,
                };
                Ok(Registered::Created(Arc::new(agent)))
            }
            CreateOutcome::InviteRefused => Err(invite_required()),
            CreateOutcome::Exists => {
                let taken = refuse(ErrorCode::HandleTaken, "this name is taken; choose another one");
                self.same_registration(&did, identity.head_hash(), taken).await
            }
        }
    }

    /// A refusal turns into [`Registered::Same`] if exactly this operation was admitted before: who
    /// lost the first answer gets it again.
    async fn same_registration(
        &self,
        did: &Did,
        hash: &str,
        refusal: RegistryError,
    ) -> Result<Registered, RegistryError> {
        match self.agents.get(did).await? {
            Some(agent) if agent.identity.genesis_hash() == hash => Ok(Registered::Same(agent)),
            _ => Err(refusal),
        }
    }

    /// Puts the next operation on an agent's history.
    ///
    /// Checked in this order: strict JSON and form, that it is this agent's (403 `not_yours`), that
    /// the agent exists (404), `created_at` within 300 s (422), then what [`Identity::apply`]
    /// refuses. The head again is [`Operated::Same`].
    pub async fn operate(&self, name: &Name, wire: &[u8]) -> Result<Operated, RegistryError> {
        let operation = self.parse(wire)?;
        if operation.did != self.did_of(name) {
            return Err(refuse(
                ErrorCode::NotYours,
                "the operation belongs to another agent than the URL names",
            ));
        }
        for _ in 0..APPEND_ATTEMPTS_MAX {
            let agent = self.known(name).await?;
            if agent.identity.head_hash() == operation.hash() {
                return Ok(Operated::Same(agent));
            }
            operation.check_clock(self.now())?;
            check_room(&agent, &operation)?;
            let identity = agent.identity.apply(operation.clone())?;
            if let Some(agent) = self.append(name, agent, identity).await? {
                return Ok(Operated::Appended(agent));
            }
            // Another operation came first; on the new head this one is judged again.
        }
        Err(StoreError::unavailable("the history changed again and again").into())
    }

    async fn append(
        &self,
        name: &Name,
        before: Arc<Agent>,
        identity: Identity,
    ) -> Result<Option<Arc<Agent>>, RegistryError> {
        let operation = StoredOperation::from(identity.head());
        let history_bytes = before.history_bytes + operation.json.len() as u64;
        let next = NextOperation {
            name: name.clone(),
            operation,
            admitted_at: self.now(),
        };
        let directory = Arc::clone(&self.directory);
        let append = async move { Ok(directory.append(next).await? == AppendOutcome::Appended) };
        let after = Arc::new(Agent {
            identity,
            history_bytes,
            ..Agent::clone(&before)
        });
        let is_appended = self.agents.replace(before, Arc::clone(&after), append).await?;
        Ok(is_appended.then_some(after))
    }

    fn parse(&self, wire: &[u8]) -> Result<Operation, Refusal> {
        if wire.len() > OPERATION_WIRE_BYTES_MAX {
            let detail = "an operation is at most 16 KiB";
            let limit = aip_protocol::limits::OPERATION_BYTES_MAX;
            return Err(Refusal::new(ErrorCode::BodyTooLarge, detail).with("limit", limit));
        }
        Operation::parse(
            wire,
            EndpointPolicy {
                allow_http: self.config.allow_http_endpoints,
            },
        )
    }
}

/// Replaying a history costs time and room, so it does not grow for ever; ending it is always possible.
fn check_room(agent: &Agent, operation: &Operation) -> Result<(), RegistryError> {
    if operation.deactivated {
        return Ok(());
    }
    let (name, limit) = if agent.identity.seq() + 1 >= OPERATIONS_PER_AGENT_MAX {
        ("limit", OPERATIONS_PER_AGENT_MAX)
    } else if agent.history_bytes + operation.json.to_jcs().len() as u64 > HISTORY_BYTES_MAX {
        ("limit_bytes", HISTORY_BYTES_MAX)
    } else {
        return Ok(());
    };
    let detail = "the history is full; deactivate this agent and register another one";
    Err(Refusal::new(ErrorCode::OperationInvalid, detail)
        .with(name, limit)
        .into())
}

fn invite_required() -> RegistryError {
    let detail = "send a good invite in X-AIP-Invite; this one is missing, unknown, used up or past its end";
    refuse(ErrorCode::InviteRequired, detail)
}
