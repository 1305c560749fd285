//! Becoming an agent (spec §3): keys, operation 0, a place at the hub.

use aip_protocol::identity::{Keys, Operation, OperationDraft, RouteMode};
use aip_protocol::json::Json;
use aip_protocol::name::{Domain, Handle, Name};

use super::lookup::is_unknown_agent;
use super::{Client, Resolved, blocking};
use crate::error::{Error, Result};
use crate::identities::Freshness;
use crate::keys::{AgentKeys, Pending};

/// How an agent registers. The default: at an open hub, in relay mode, named after itself.
#[derive(Debug, Clone, Default)]
pub struct Registration {
    /// What a hub with invites asks for.
    pub invite: Option<String>,
    /// An https endpoint of the agent's own that its mail goes to.
    pub direct: Option<String>,
    /// What the agent says of itself, an object; by default its name and the kind `personal`.
    pub profile: Option<Json>,
}

impl Client {
    /// Registers under this name at the client's hub.
    ///
    /// Keys that the client has are used, else fresh ones are made; with a key file they are written before anything is
    /// sent. Calling it again after a lost answer, in this process or the next, finishes the same registration.
    ///
    /// # Errors
    /// [`Error::Refused`] with `handle_taken`, `name_reserved`, `registration_closed`, `invite_required` and so on;
    /// then a key file that this call made is removed again. [`Error::KeysOfAnother`] when the client has keys under
    /// another name.
    pub async fn register(&self, name: &str, registration: Registration) -> Result<Resolved> {
        let _one_at_a_time = self.0.changing.lock().await;
        let name = Name::parse(name)?;
        let made = self.ensure_keys(&name).await?;
        let outcome = self.found(&name, &registration, made).await;
        if let (true, Err(Error::Refused(problem))) = (made, &outcome)
            && problem.is_of_hub()
            && !problem.is_transient()
        {
            self.discard_keys()?;
        }
        outcome?;
        let did = self.keys()?.did().to_string();
        self.resolve(&did).await
    }

    /// Makes and writes keys where there are none. True when it did.
    async fn ensure_keys(&self, name: &Name) -> Result<bool> {
        if self.keys().is_ok() {
            return Ok(false);
        }
        let domain = Domain::parse(&self.hub().await?.domain)?;
        let did = Handle {
            name: name.clone(),
            domain,
        }
        .did();
        let keys = AgentKeys::generate(did, self.entropy()).at_hub(self.hub_url());
        if let Some(file) = self.0.key_file.clone() {
            let (entropy, keys) = (self.entropy().clone(), keys.clone());
            blocking(move || file.create(&keys, &entropy)).await??;
        }
        self.set_keys(std::sync::Arc::new(keys));
        Ok(true)
    }

    async fn found(&self, name: &Name, registration: &Registration, made: bool) -> Result<()> {
        let mut keys = AgentKeys::clone(&*self.keys()?);
        if keys.did().name() != name.as_str() {
            return Err(Error::KeysOfAnother(keys.did().clone()));
        }
        if keys.pending.is_none() {
            if !made && self.is_registered(&keys).await? {
                return Ok(());
            }
            let operation = genesis(&keys, registration, self)?;
            let fresh = keys.current().ok_or(Error::NoKeys)?;
            keys.pending = Some(Pending { operation, fresh });
            self.save_keys(keys).await?;
        }
        self.finish(registration.invite.as_deref()).await.map(drop)
    }

    /// Whether the hub knows this agent under these very keys.
    async fn is_registered(&self, keys: &AgentKeys) -> Result<bool> {
        match self.look_up(keys.did(), Freshness::Asked).await {
            Ok(identity) => Ok(identity.current_signing(&keys.kid()).is_some()),
            Err(error) if is_unknown_agent(&error) => Ok(false),
            Err(error) => Err(error),
        }
    }

    fn discard_keys(&self) -> Result<()> {
        if let Some(file) = &self.0.key_file {
            std::fs::remove_file(file.path()).map_err(Error::file(file.path()))?;
        }
        *self
            .0
            .keys
            .write()
            .unwrap_or_else(std::sync::PoisonError::into_inner) = None;
        Ok(())
    }
}

fn genesis(keys: &AgentKeys, registration: &Registration, client: &Client) -> Result<Operation> {
    let current = keys.current().ok_or(Error::NoKeys)?;
    let lists = Keys {
        signing: vec![current.signing.public().clone()],
        sealing: vec![current.opening.public().clone()],
        rotation: vec![current.rotation.public().clone()],
    };
    let mut draft = OperationDraft::genesis(keys.did().clone(), client.now(), lists);
    if let Some(endpoint) = &registration.direct {
        draft.route_mode = RouteMode::Direct;
        draft.endpoint = Some(endpoint.clone());
    }
    if let Some(profile) = &registration.profile {
        draft.profile = profile.clone();
    }
    Ok(draft.sign(&current.rotation)?)
}
