//! Looking agents up, and believing only what checks (spec §3).

use aip_protocol::document::did_document;
use aip_protocol::error::ErrorCode;
use aip_protocol::identity::{Identity, Operation};
use aip_protocol::name::{Did, Domain};
use serde_json::Value;

use super::Client;
use crate::error::{Error, Result};
use crate::identities::{ANY_ENDPOINT, Freshness, History};
use crate::limits::{HISTORY_OPERATIONS_MAX, HISTORY_PAGES_MAX};
use crate::message::parse_agent;
use crate::transport::{Request, Transport};
use crate::wire::{HistoryPage, HubInfo, ResolveAnswer, cursor_text, encoded};

const READING_HISTORY: &str = "reading an identity history";
const RESOLVING: &str = "resolving an agent";
const ASKING_OTHER: &str = "asking the hub of another domain";

/// An agent that was looked up: what the hub says, and the identity that it was checked against.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Resolved {
    /// The hub's answer.
    pub answer: ResolveAnswer,
    /// The replayed history; its keys are those of the answer's DID document.
    pub identity: Identity,
}

impl Client {
    /// Looks an agent up by handle or DID. The history is replayed, must extend the one known before, and the DID
    /// document must be what follows from it. An agent that has moved is followed, where its new identity says so too.
    ///
    /// # Errors
    /// [`Error::Refused`] with `not_found`, `agent_deactivated` and so on; [`Error::Forked`], [`Error::Unverified`].
    pub async fn resolve(&self, agent: &str) -> Result<Resolved> {
        let did = parse_agent(agent)?;
        let resolved = self.resolve_here(&did).await?;
        let current = self.follow(resolved.identity.clone()).await;
        if current.did() == &did {
            return Ok(resolved);
        }
        self.resolve_here(current.did()).await
    }

    async fn resolve_here(&self, did: &Did) -> Result<Resolved> {
        let first = self.resolve_once(did).await;
        // The identity may have changed between the two questions; then they agree the next time.
        if matches!(first, Err(Error::Unverified { .. })) {
            self.resolve_once(did).await
        } else {
            first
        }
    }

    async fn resolve_once(&self, did: &Did) -> Result<Resolved> {
        let request = Request::get(RESOLVING, format!("/api/v1/resolve/{}", did.encoded()));
        let answer: ResolveAnswer = self.0.transport.call(request).await?.json()?;
        let identity = self.look_up(did, Freshness::Asked).await?;
        check_answer(did, &answer, &identity)?;
        Ok(Resolved { answer, identity })
    }

    /// The verified identity of an agent, as remembered for up to five minutes.
    pub async fn identity(&self, agent: &str) -> Result<Identity> {
        self.look_up(&parse_agent(agent)?, Freshness::Remembered).await
    }

    /// The operations of an agent's identity, oldest first, replayed and pinned.
    pub async fn history(&self, agent: &str) -> Result<Vec<Operation>> {
        let did = parse_agent(agent)?;
        let history = self.ask_history(&did).await?;
        self.0.identities.admit(&did, &history, self.now())?;
        Ok(history.operations)
    }

    /// Takes the identity that the hub gives out now in place of the pinned one. For the operator, after a look at the
    /// evidence: this is what [`Error::Forked`] asks for.
    pub async fn repin(&self, agent: &str) -> Result<Identity> {
        let did = parse_agent(agent)?;
        let history = self.ask_history(&did).await?;
        self.0.identities.repin(&did, &history, self.now())
    }

    pub(crate) async fn look_up(&self, did: &Did, freshness: Freshness) -> Result<Identity> {
        if let Some(identity) = self.0.identities.recall(did, freshness, self.now()) {
            return Ok(identity);
        }
        match self.ask_history(did).await {
            Ok(history) => self.0.identities.admit(did, &history, self.now()),
            // A hub that is away does not make a known agent unknown.
            Err(error) if error.is_transient() && freshness == Freshness::Remembered => {
                let pinned = self.0.identities.pinned(did)?.ok_or(error)?;
                self.0.identities.bridge(did, &pinned, self.now());
                Ok(pinned)
            }
            Err(error) => Err(error),
        }
    }

    pub(crate) fn may_doubt(&self, did: &Did) -> bool {
        self.0.identities.may_doubt(did, self.now())
    }

    async fn ask_history(&self, did: &Did) -> Result<History> {
        history_of(did, &self.hub_of(did).await?).await
    }

    /// The hub that an agent is registered at.
    pub(super) async fn hub_of(&self, did: &Did) -> Result<Transport> {
        let domain = did.domain();
        if domain.as_str() == self.home_domain().await? {
            return Ok(self.0.transport.clone());
        }
        self.remote(&domain).await
    }

    async fn home_domain(&self) -> Result<String> {
        match self.keys() {
            Ok(keys) => Ok(keys.did().domain().as_str().to_owned()),
            Err(_) => self.hub().await.map(|hub| hub.domain.clone()),
        }
    }

    /// The hub of another domain. A history proves itself, so the way to it needs no proof beyond TLS.
    async fn remote(&self, domain: &Domain) -> Result<Transport> {
        let scheme = if domain.host() == "localhost" {
            "http"
        } else {
            "https"
        };
        let door = Transport::new(&format!("{scheme}://{}", domain.as_str()), self.0.allow_http)?;
        let asked = door.call(Request::get(ASKING_OTHER, "/.well-known/aip")).await;
        let hub: HubInfo = asked.map_err(|error| of_other(domain, error))?.json()?;
        Transport::new(&hub.hub, self.0.allow_http)
    }
}

/// What kept the hub of another domain from being asked.
#[derive(Debug, thiserror::Error)]
#[error("{domain}")]
struct OtherHub {
    domain: Domain,
    #[source]
    cause: Box<dyn std::error::Error + Send + Sync>,
}

/// Names the domain: the client's own hub is another one, and is there.
fn of_other(domain: &Domain, error: Error) -> Error {
    match error {
        Error::Unreachable { doing, source } => Error::unreachable(
            doing,
            OtherHub {
                domain: domain.clone(),
                cause: source,
            },
        ),
        error => error,
    }
}

async fn history_of(did: &Did, hub: &Transport) -> Result<History> {
    let name = encoded(did.name());
    let mut path = format!("/api/v1/agents/{name}/history");
    let mut operations = Vec::new();
    for _ in 0..HISTORY_PAGES_MAX {
        let page: HistoryPage = hub.call(Request::get(READING_HISTORY, path)).await?.json()?;
        for operation in page.operations {
            let operation = Operation::parse(operation.get().as_bytes(), ANY_ENDPOINT);
            let unverified = |why: String| Error::Unverified {
                did: did.clone(),
                why,
            };
            operations.push(operation.map_err(|refusal| unverified(refusal.to_string()))?);
        }
        if operations.len() > HISTORY_OPERATIONS_MAX {
            break;
        }
        let Some(cursor) = page.next_cursor.as_ref().and_then(cursor_text) else {
            return History::replay(did, operations);
        };
        path = format!("/api/v1/agents/{name}/history?cursor={}", encoded(&cursor));
    }
    Err(Error::answer(READING_HISTORY, "it does not end"))
}

/// The answer speaks of this agent, its history is the one that was replayed, and its DID document follows from it.
fn check_answer(did: &Did, answer: &ResolveAnswer, identity: &Identity) -> Result<()> {
    let unverified = |why: &str| {
        Err(Error::Unverified {
            did: did.clone(),
            why: why.to_owned(),
        })
    };
    if answer.did != *did {
        return unverified("the answer is about another agent");
    }
    let told = &answer.history;
    if identity
        .check_extends(told.seq, &told.genesis, &told.head)
        .is_err()
    {
        return unverified("the answer and the history tell of different pasts");
    }
    if told.seq != identity.seq() {
        return unverified("the identity changed in between");
    }
    // The services name the hub's URL, which is not part of the history.
    let expected = Value::from(did_document(identity.head(), "https://hub.invalid"));
    let checked = [
        "id",
        "verificationMethod",
        "authentication",
        "assertionMethod",
        "keyAgreement",
        "route_mode",
    ];
    if checked
        .iter()
        .any(|member| expected.get(member) != answer.did_document.get(member))
    {
        return unverified("the DID document is not what follows from the history");
    }
    Ok(())
}

/// Whether the hub says that there is no such agent.
pub(crate) fn is_unknown_agent(error: &Error) -> bool {
    error.is_code(ErrorCode::NotFound) || error.is_code(ErrorCode::RecipientUnknown)
}
