//! One identity operation: its form, its hash, its signature.

use std::collections::BTreeSet;
use std::time::Duration;

use url::Url;

use crate::error::{ErrorCode, Refusal};
use crate::json::{Json, Object};
use crate::limits::{KEYS_PER_LIST_MAX, OPERATION_BYTES_MAX, OPERATION_CLOCK_SECS};
use crate::members::{check_version, invalid, kid_fragment, require, text, time};
use crate::multikey::{SealingKey, VerifyingKey};
use crate::name::Did;
use crate::signature::{Signature, SignedBytes, Tag};
use crate::time::Timestamp;

const MEMBERS: [&str; 13] = [
    "aip",
    "did",
    "seq",
    "prev",
    "created_at",
    "keys",
    "route_mode",
    "endpoint",
    "profile",
    "revoked",
    "deactivated",
    "kid",
    "sig",
];

/// Where an agent's mail goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RouteMode {
    /// To the agent's own endpoint, else to its mailbox.
    Direct,
    /// To its mailbox.
    Relay,
}

impl RouteMode {
    /// As written in the operation.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Direct => "direct",
            Self::Relay => "relay",
        }
    }
}

/// What a direct endpoint may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct EndpointPolicy {
    /// Also take `http`, where the hub's configuration allows it.
    pub allow_http: bool,
}

/// The key lists of an operation: 1 to 8 each, newest first, each key once in its list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Keys {
    /// Ed25519 keys that sign envelopes, challenges and listings.
    pub signing: Vec<VerifyingKey>,
    /// X25519 keys that bodies are sealed for.
    pub sealing: Vec<SealingKey>,
    /// Ed25519 keys that sign the next operation.
    pub rotation: Vec<VerifyingKey>,
}

impl Keys {
    /// Every key of the three lists, as Multikey.
    pub fn texts(&self) -> impl Iterator<Item = &str> {
        let signers = self
            .signing
            .iter()
            .chain(&self.rotation)
            .map(VerifyingKey::as_str);
        signers.chain(self.sealing.iter().map(SealingKey::as_str))
    }
}

/// An operation of good form. Whether it may follow another one, [`super::Identity`] decides.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Operation {
    /// Whose history it belongs to.
    pub did: Did,
    /// Counts from 0.
    pub seq: u64,
    /// Hash of the operation before; `None` in operation 0.
    pub prev: Option<String>,
    /// When it was made.
    pub created_at: Timestamp,
    /// The keys from here on.
    pub keys: Keys,
    /// Where mail goes.
    pub route_mode: RouteMode,
    /// The direct endpoint; a URL in direct mode.
    pub endpoint: Option<String>,
    /// What the agent says of itself; an object.
    pub profile: Json,
    /// Keys (Multikeys) that are compromised.
    pub revoked: Vec<String>,
    /// Ends the history.
    pub deactivated: bool,
    /// The rotation key that signed: the DID, `#`, Multikey.
    pub kid: String,
    /// Over the operation without `sig`.
    pub sig: Signature,
    /// The whole operation, members unknown here included.
    pub json: Json,
    signer: VerifyingKey,
    bytes: SignedBytes,
    hash: String,
}

impl Operation {
    /// Reads and checks the form of one operation.
    ///
    /// The refusals are `json_invalid`, those of its DID, keys and signature text, `member_missing`,
    /// `member_invalid`, `version_unsupported`, `operation_invalid` and `body_too_large`.
    pub fn parse(bytes: &[u8], policy: EndpointPolicy) -> Result<Self, Refusal> {
        Self::from_json(Json::parse(bytes)?, policy)
    }

    /// The same for a value that was parsed already.
    pub fn from_json(json: Json, policy: EndpointPolicy) -> Result<Self, Refusal> {
        json.check()?;
        let Json::Object(object) = &json else {
            return Err(Refusal::new(
                ErrorCode::OperationInvalid,
                "an operation is an object",
            ));
        };
        require(object, &MEMBERS)?;
        check_version(object)?;
        let did = Did::parse(text(object, "did")?)?;
        let seq = seq(object)?;
        let prev = prev(object, seq)?;
        let created_at = time(object, "created_at")?;
        let (key_lists, keys) = keys(object)?;
        let (route_mode, endpoint) = route(object, policy)?;
        let profile = object
            .get("profile")
            .filter(|profile| profile.as_object().is_some())
            .cloned();
        let profile = profile.ok_or_else(|| invalid("profile", "is an object"))?;
        let revoked = revoked(object, key_lists)?;
        let deactivated = object.get("deactivated").and_then(Json::as_bool);
        let deactivated = deactivated.ok_or_else(|| invalid("deactivated", "is true or false"))?;
        if seq == 0 && deactivated {
            return Err(Refusal::new(
                ErrorCode::OperationInvalid,
                "operation 0 cannot deactivate",
            ));
        }
        check_size(&json)?;
        let kid = text(object, "kid")?.to_owned();
        let signer = signer(&kid, &did, &keys.rotation)?;
        let sig = Signature::parse(object.get("sig").and_then(Json::as_str).unwrap_or_default())?;
        let bytes = SignedBytes::of(Tag::Identity, object);
        let hash = multihash(&bytes.digest);
        Ok(Self {
            did,
            seq,
            prev,
            created_at,
            keys,
            route_mode,
            endpoint,
            profile,
            revoked,
            deactivated,
            kid,
            sig,
            json,
            signer,
            bytes,
            hash,
        })
    }

    /// `sha2-256` of the canonical bytes, signature included, as a multibase multihash: the next
    /// operation's `prev`.
    pub fn hash(&self) -> &str {
        &self.hash
    }

    /// The key that `kid` names.
    pub fn signer(&self) -> &VerifyingKey {
        &self.signer
    }

    /// Whether `sig` was made by the key that `kid` names; whether that key may sign is another
    /// question.
    pub fn verify(&self) -> bool {
        self.signer.verify_bytes(&self.bytes.input, self.sig.as_bytes())
    }

    /// `created_at` lies within 300 s of the hub's clock, else `created_at_out_of_window` with both
    /// times.
    pub fn check_clock(&self, now: Timestamp) -> Result<(), Refusal> {
        let tolerance = Duration::from_secs(OPERATION_CLOCK_SECS);
        if now - tolerance <= self.created_at && self.created_at <= now + tolerance {
            return Ok(());
        }
        let detail = format!(
            "created_at is {}, this hub's clock says {now}; 300 s are tolerated",
            self.created_at
        );
        Err(Refusal::new(ErrorCode::CreatedAtOutOfWindow, detail)
            .with("created_at", self.created_at.to_string())
            .with("hub_time", now.to_string()))
    }
}

/// Multibase base58btc of the multihash `sha2-256` (0x12, 32 bytes).
pub(crate) fn multihash(digest: &[u8; 32]) -> String {
    let mut bytes = vec![0x12, 0x20];
    bytes.extend_from_slice(digest);
    format!("z{}", bs58::encode(bytes).into_string())
}

fn seq(object: &Object) -> Result<u64, Refusal> {
    let seq = object
        .get("seq")
        .and_then(Json::as_int)
        .and_then(|seq| u64::try_from(seq).ok());
    seq.ok_or_else(|| invalid("seq", "is an integer from 0 on"))
}

fn prev(object: &Object, seq: u64) -> Result<Option<String>, Refusal> {
    match (object.get("prev"), seq) {
        (Some(Json::Null), 0) => Ok(None),
        (Some(Json::Str(prev)), 1..) => Ok(Some(prev.clone())),
        _ => Err(invalid(
            "prev",
            "is null in operation 0 and the hash of the one before later on",
        )),
    }
}

fn keys(object: &Object) -> Result<(&Object, Keys), Refusal> {
    let lists = object.get("keys").and_then(Json::as_object);
    let lists = lists.ok_or_else(|| invalid("keys", "is an object"))?;
    let keys = Keys {
        signing: key_list(lists, "signing", VerifyingKey::parse)?,
        sealing: key_list(lists, "sealing", SealingKey::parse)?,
        rotation: key_list(lists, "rotation", VerifyingKey::parse)?,
    };
    Ok((lists, keys))
}

/// The key that `kid` names: in operation 0 one of its own, whose point is decoded already.
fn signer(kid: &str, did: &Did, rotation: &[VerifyingKey]) -> Result<VerifyingKey, Refusal> {
    let text = kid_fragment(kid, did.as_str(), "kid")?;
    let own = rotation.iter().find(|key| key.as_str() == text);
    own.map_or_else(|| VerifyingKey::parse(text), |key| Ok(key.clone()))
}

fn key_list<K>(lists: &Object, name: &str, parse: fn(&str) -> Result<K, Refusal>) -> Result<Vec<K>, Refusal> {
    let listed = lists.get(name).and_then(Json::as_array).unwrap_or_default();
    if !(1..=KEYS_PER_LIST_MAX).contains(&listed.len()) {
        return Err(invalid(&format!("keys.{name}"), "holds 1 to 8 keys"));
    }
    let texts = unique_texts(
        listed,
        || invalid(&format!("keys.{name}"), "lists a key once, as text"),
        parse,
    )?;
    Ok(texts.into_iter().map(|(_, key)| key).collect())
}

/// Parses every item first (a bad key is `key_invalid`), then refuses one that comes twice.
fn unique_texts<'a, K>(
    items: &'a [Json],
    refusal: impl Fn() -> Refusal,
    parse: impl Fn(&str) -> Result<K, Refusal>,
) -> Result<Vec<(&'a str, K)>, Refusal> {
    let not_text = || Refusal::new(ErrorCode::KeyInvalid, "a key is a Multikey, as text");
    let read = |item: &'a Json| {
        let text = item.as_str().ok_or_else(not_text)?;
        parse(text).map(|key| (text, key))
    };
    let parsed = items.iter().map(read).collect::<Result<Vec<_>, _>>()?;
    let unique: BTreeSet<&str> = parsed.iter().map(|(text, _)| *text).collect();
    if unique.len() == parsed.len() {
        Ok(parsed)
    } else {
        Err(refusal())
    }
}

fn route(object: &Object, policy: EndpointPolicy) -> Result<(RouteMode, Option<String>), Refusal> {
    let route_mode = match object.get("route_mode").and_then(Json::as_str) {
        Some("direct") => RouteMode::Direct,
        Some("relay") => RouteMode::Relay,
        _ => return Err(invalid("route_mode", "is direct or relay")),
    };
    let endpoint = match object.get("endpoint") {
        Some(Json::Str(endpoint)) => Some(endpoint.clone()),
        Some(Json::Null) => None,
        _ => return Err(invalid("endpoint", "is a URL or null")),
    };
    let is_usable = endpoint
        .as_deref()
        .is_some_and(|endpoint| is_endpoint(endpoint, policy));
    if route_mode == RouteMode::Direct && !is_usable {
        return Err(invalid("endpoint", "is an https URL in direct mode"));
    }
    Ok((route_mode, endpoint))
}

fn is_endpoint(endpoint: &str, policy: EndpointPolicy) -> bool {
    // The URL standard repairs what RFC 3986 does not allow (spaces, line breaks, letters beyond ASCII), and not
    // every reader repairs alike.
    let is_plain = endpoint.bytes().all(|byte| byte.is_ascii_graphic());
    is_plain
        && Url::parse(endpoint).is_ok_and(|url| {
            let is_scheme = url.scheme() == "https" || policy.allow_http && url.scheme() == "http";
            is_scheme && url.host_str().is_some_and(|host| !host.is_empty())
        })
}

fn revoked(object: &Object, key_lists: &Object) -> Result<Vec<String>, Refusal> {
    let listed = object.get("revoked").and_then(Json::as_array);
    let listed = listed.ok_or_else(|| invalid("revoked", "is a list of Multikeys"))?;
    let parse = |text: &str| {
        let is_sealing = text.starts_with("z6LS");
        if is_sealing {
            SealingKey::parse(text).map(drop)
        } else {
            VerifyingKey::parse(text).map(drop)
        }
    };
    let revoked = unique_texts(listed, || invalid("revoked", "lists a key once"), parse)?;
    let lists = key_lists.iter().filter_map(|(_, list)| list.as_array());
    let good: BTreeSet<&str> = lists.flatten().filter_map(Json::as_str).collect();
    if revoked.iter().any(|(key, ())| good.contains(key)) {
        return Err(invalid("revoked", "names no key that the operation still lists"));
    }
    Ok(revoked.into_iter().map(|(key, ())| key.to_owned()).collect())
}

fn check_size(json: &Json) -> Result<(), Refusal> {
    if json.to_jcs().len() <= OPERATION_BYTES_MAX {
        return Ok(());
    }
    let detail = format!("an operation is at most {OPERATION_BYTES_MAX} bytes");
    Err(Refusal::new(ErrorCode::BodyTooLarge, detail).with("limit", OPERATION_BYTES_MAX))
}
