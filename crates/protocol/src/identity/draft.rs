//! Making operations, on the side of the agent that owns the rotation key.

use super::{EndpointPolicy, Identity, Keys, Operation, RouteMode};
use crate::error::Refusal;
use crate::json::{Json, Object};
use crate::multikey::SigningKey;
use crate::name::Did;
use crate::signature::{Tag, sign};
use crate::time::Timestamp;

/// An operation that is not signed yet. Change what is to change, then [`OperationDraft::sign`].
#[derive(Debug, Clone)]
pub struct OperationDraft {
    /// Whose history it belongs to.
    pub did: Did,
    /// Counts from 0.
    pub seq: u64,
    /// Hash of the operation before; `None` in operation 0.
    pub prev: Option<String>,
    /// When it is made; never before the operation before.
    pub created_at: Timestamp,
    /// The keys from here on.
    pub keys: Keys,
    /// Where mail goes.
    pub route_mode: RouteMode,
    /// The direct endpoint.
    pub endpoint: Option<String>,
    /// What the agent says of itself; an object.
    pub profile: Json,
    /// Compromised keys, as Multikeys; none of those in `keys`.
    pub revoked: Vec<String>,
    /// Ends the history.
    pub deactivated: bool,
    /// Further members; they are kept and signed over.
    pub extra: Object,
}

impl OperationDraft {
    /// Operation 0 of a new agent in relay mode, named after itself.
    pub fn genesis(did: Did, created_at: Timestamp, keys: Keys) -> Self {
        let profile = Json::from([("name", Json::from(did.name())), ("kind", Json::from("personal"))]);
        Self {
            did,
            seq: 0,
            prev: None,
            created_at,
            keys,
            route_mode: RouteMode::Relay,
            endpoint: None,
            profile,
            revoked: Vec::new(),
            deactivated: false,
            extra: Object::new(),
        }
    }

    /// Signs with a rotation key and checks the form, so that a bad draft is refused here and not
    /// at the hub. An `http` endpoint passes; whether it may, the hub decides.
    pub fn sign(self, rotation_key: &SigningKey) -> Result<Operation, Refusal> {
        let kid = format!("{}#{}", self.did, rotation_key.public());
        let mut object = self.extra;
        object.insert("aip", "1");
        object.insert("did", self.did.as_str());
        object.insert("seq", Json::try_from(self.seq)?);
        object.insert("prev", self.prev);
        object.insert("created_at", self.created_at.to_string());
        object.insert("keys", keys_json(&self.keys));
        object.insert("route_mode", self.route_mode.as_str());
        object.insert("endpoint", self.endpoint);
        object.insert("profile", self.profile);
        object.insert("revoked", self.revoked);
        object.insert("deactivated", self.deactivated);
        object.insert("kid", kid);
        object.remove("sig");
        let unsigned = Json::Object(object.clone());
        object.insert("sig", sign(rotation_key, Tag::Identity, &unsigned).to_string());
        Operation::from_json(Json::Object(object), EndpointPolicy { allow_http: true })
    }
}

impl Identity {
    /// A draft of the next operation that changes nothing yet, but for `revoked`, which starts
    /// empty. `created_at` is moved up to that of the head when it lies before.
    pub fn next_draft(&self, created_at: Timestamp) -> OperationDraft {
        let head = self.head();
        OperationDraft {
            did: head.did.clone(),
            seq: head.seq + 1,
            prev: Some(head.hash().to_owned()),
            created_at: not_before(created_at, head.created_at),
            keys: head.keys.clone(),
            route_mode: head.route_mode,
            endpoint: head.endpoint.clone(),
            profile: head.profile.clone(),
            revoked: Vec::new(),
            deactivated: false,
            extra: Object::new(),
        }
    }
}

/// The later of the two, in the whole milliseconds that a draft writes, so never before `floor`.
fn not_before(created_at: Timestamp, floor: Timestamp) -> Timestamp {
    let written = Timestamp::from_unix_millis(created_at.unix_millis());
    if written >= floor {
        written
    } else {
        Timestamp::from_unix_nanos(floor.unix_nanos() + 999_999)
    }
}

fn keys_json(keys: &Keys) -> Json {
    Json::from([
        ("signing", texts(&keys.signing)),
        ("sealing", texts(&keys.sealing)),
        ("rotation", texts(&keys.rotation)),
    ])
}

fn texts<K: ToString>(keys: &[K]) -> Json {
    Json::from(keys.iter().map(ToString::to_string).collect::<Vec<_>>())
}
