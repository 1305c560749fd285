//! The hub's discovery document, `/.well-known/aip`, and the pinning of hub keys (§8).

use url::Url;

use crate::error::{ErrorCode, Refusal};
use crate::json::{Json, Object};
use crate::members::{check_version, invalid, kid_fragment, optional_text, optional_time, require, text};
use crate::multikey::{SigningKey, VerifyingKey};
use crate::name::Domain;
use crate::signature::{Signature, Tag, sign, verify};
use crate::time::Timestamp;

/// `sig` and `prev_sig` are both over the document without these.
const UNSIGNED: [&str; 3] = ["sig", "prev_kid", "prev_sig"];

/// A key of a hub, as its document lists it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HubKey {
    /// The Ed25519 key.
    pub key: VerifyingKey,
    /// The last moment it is good; `None` for open end.
    pub not_after: Option<Timestamp>,
}

impl HubKey {
    /// Whether the key is good at this moment.
    pub fn is_current(&self, at: Timestamp) -> bool {
        self.not_after.is_none_or(|not_after| at <= not_after)
    }
}

/// A discovery document of good form. Nothing in it counts before [`HubDocument::verify`].
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct HubDocument {
    /// The domain it speaks for.
    pub domain: Domain,
    /// The hub's base URL.
    pub hub: Url,
    /// The hub's keys, ended ones perhaps among them.
    pub keys: Vec<HubKey>,
    /// What the hub offers.
    pub features: Vec<String>,
    /// Its limits, as it tells them; an object.
    pub limits: Object,
    /// The epoch of its outboxes.
    pub epoch: Option<String>,
    /// When it was made.
    pub generated_at: Option<Timestamp>,
    /// The key that signed: domain, `#`, Multikey.
    pub kid: String,
    /// The whole document, members unknown here included.
    pub json: Json,
    signer: VerifyingKey,
}

/// A discovery document to be signed.
#[derive(Debug, Clone)]
pub struct HubDocumentDraft {
    /// The domain it speaks for.
    pub domain: Domain,
    /// The hub's base URL.
    pub hub: Url,
    /// The hub's keys.
    pub keys: Vec<HubKey>,
    /// What the hub offers.
    pub features: Vec<String>,
    /// Its limits; an object.
    pub limits: Object,
    /// Name and version of the software; an object.
    pub software: Object,
    /// The epoch of its outboxes.
    pub epoch: String,
    /// Now.
    pub generated_at: Timestamp,
}

/// The `kid` of a hub's key: domain, `#`, Multikey.
pub fn hub_kid(domain: &Domain, key: &VerifyingKey) -> String {
    format!("{domain}#{key}")
}

impl HubDocument {
    /// Reads and checks the form; the caller has capped the size.
    pub fn parse(bytes: &[u8]) -> Result<Self, Refusal> {
        Self::from_json(Json::parse(bytes)?)
    }

    /// The same for a value that was parsed already.
    pub fn from_json(json: Json) -> Result<Self, Refusal> {
        json.check()?;
        let object = json
            .as_object()
            .ok_or_else(|| invalid("the hub document", "is an object"))?;
        require(object, &["aip", "domain", "hub", "keys", "kid", "sig"])?;
        check_version(object)?;
        let domain = canonical_domain(text(object, "domain")?)?;
        let hub = hub_url(text(object, "hub")?)?;
        let listed = object
            .get("keys")
            .and_then(Json::as_array)
            .ok_or_else(|| invalid("keys", "is a list"))?;
        let keys = listed
            .iter()
            .map(|entry| hub_key(entry, &domain))
            .collect::<Result<Vec<_>, _>>()?;
        let kid = text(object, "kid")?.to_owned();
        let signer = signer(&kid, &domain, &keys)?;
        let features = object
            .get("features")
            .and_then(Json::as_array)
            .unwrap_or_default();
        let features = features
            .iter()
            .filter_map(Json::as_str)
            .map(str::to_owned)
            .collect();
        let limits = object
            .get("limits")
            .and_then(Json::as_object)
            .cloned()
            .unwrap_or_default();
        let epoch = optional_text(object, "epoch")?.map(str::to_owned);
        let generated_at = optional_time(object, "generated_at")?;
        Ok(Self {
            domain,
            hub,
            keys,
            features,
            limits,
            epoch,
            generated_at,
            kid,
            json,
            signer,
        })
    }

    /// Checks that the document speaks for `domain` now and returns the keys to pin: those that
    /// are current.
    ///
    /// `pinned` is `None` on first contact. Later the signer, or the key that `prev_kid` names and
    /// `prev_sig` proves, is one of the pinned keys; else `hub_key_not_pinned`. The other refusals
    /// are `member_invalid` (another domain), `hub_key_unknown`, `signature_invalid`,
    /// `signature_malformed`.
    pub fn verify(
        &self,
        domain: &Domain,
        at: Timestamp,
        pinned: Option<&[VerifyingKey]>,
    ) -> Result<Vec<VerifyingKey>, Refusal> {
        if self.domain != *domain {
            return Err(invalid("domain", "is the domain that was asked"));
        }
        let current: Vec<VerifyingKey> = self
            .keys
            .iter()
            .filter(|key| key.is_current(at))
            .map(|key| key.key.clone())
            .collect();
        if !current.contains(&self.signer) {
            return Err(key_unknown());
        }
        let signed = self.json.without(&UNSIGNED);
        let sig = Signature::parse(self.json.get("sig").and_then(Json::as_str).unwrap_or_default())?;
        if !verify(&self.signer, Tag::Hub, &signed, &sig) {
            let detail = "the hub document's signature does not verify";
            return Err(Refusal::new(ErrorCode::SignatureInvalid, detail));
        }
        match pinned {
            Some(pinned) if !pinned.contains(&self.signer) && !self.is_vouched(pinned, &signed) => {
                let detail =
                    "the hub has a new key and no pinned key vouches for it; an operator may approve it";
                Err(Refusal::new(ErrorCode::HubKeyNotPinned, detail).with("kid", self.kid.as_str()))
            }
            _ => Ok(current),
        }
    }

    /// Whether a pinned key signed the same bytes.
    fn is_vouched(&self, pinned: &[VerifyingKey], signed: &Json) -> bool {
        let member = |name| self.json.get(name).and_then(Json::as_str);
        let previous =
            member("prev_kid").and_then(|kid| kid_fragment(kid, self.domain.as_str(), "prev_kid").ok());
        let key = pinned.iter().find(|key| previous == Some(key.as_str()));
        let sig = member("prev_sig").and_then(|sig| Signature::parse(sig).ok());
        key.zip(sig)
            .is_some_and(|(key, sig)| verify(key, Tag::Hub, signed, &sig))
    }
}

impl HubDocumentDraft {
    /// Signs with a key that is among `keys`; `previous` is the key that peers have pinned, while a
    /// new one takes over.
    pub fn sign(self, key: &SigningKey, previous: Option<&SigningKey>) -> Result<HubDocument, Refusal> {
        let kid = hub_kid(&self.domain, key.public());
        let keys: Vec<Json> = self.keys.iter().map(|key| key_json(key, &self.domain)).collect();
        let mut object = Object::from([
            ("aip", Json::from("1")),
            ("domain", Json::from(self.domain.as_str())),
            ("hub", Json::from(self.hub.as_str().trim_end_matches('/'))),
            ("keys", Json::Array(keys)),
            ("features", Json::from(self.features)),
            ("limits", Json::Object(self.limits)),
            ("software", Json::Object(self.software)),
            ("epoch", Json::from(self.epoch)),
            ("generated_at", Json::from(self.generated_at.to_string())),
            ("kid", Json::from(kid)),
        ]);
        let unsigned = Json::Object(object.clone());
        object.insert("sig", sign(key, Tag::Hub, &unsigned).to_string());
        if let Some(previous) = previous {
            object.insert("prev_kid", hub_kid(&self.domain, previous.public()));
            object.insert("prev_sig", sign(previous, Tag::Hub, &unsigned).to_string());
        }
        HubDocument::from_json(Json::Object(object))
    }
}

fn key_unknown() -> Refusal {
    Refusal::new(
        ErrorCode::HubKeyUnknown,
        "kid is no current key of the hub document",
    )
}

/// The domain in its canonical spelling, byte for byte.
fn canonical_domain(text: &str) -> Result<Domain, Refusal> {
    let domain = Domain::parse(text)?;
    if domain.as_str() == text {
        Ok(domain)
    } else {
        Err(invalid("domain", "is spelled canonically"))
    }
}

fn hub_url(text: &str) -> Result<Url, Refusal> {
    let url = Url::parse(text)
        .ok()
        .filter(|url| matches!(url.scheme(), "https" | "http") && url.has_host());
    url.ok_or_else(|| invalid("hub", "is an https URL"))
}

fn hub_key(entry: &Json, domain: &Domain) -> Result<HubKey, Refusal> {
    let entry = entry
        .as_object()
        .ok_or_else(|| invalid("keys", "holds objects"))?;
    let key = VerifyingKey::parse(text(entry, "key")?)?;
    if text(entry, "kid")? != hub_kid(domain, &key) {
        return Err(invalid(
            "keys",
            "name a key by the hub's domain, '#' and its Multikey",
        ));
    }
    let is_open = entry.get("not_after").is_some_and(Json::is_null);
    let not_after = if is_open {
        None
    } else {
        optional_time(entry, "not_after")?
    };
    Ok(HubKey { key, not_after })
}

fn signer(kid: &str, domain: &Domain, keys: &[HubKey]) -> Result<VerifyingKey, Refusal> {
    let listed = keys.iter().find(|key| kid == hub_kid(domain, &key.key));
    listed.map(|key| key.key.clone()).ok_or_else(key_unknown)
}

fn key_json(key: &HubKey, domain: &Domain) -> Json {
    Json::from([
        ("kid", Json::from(hub_kid(domain, &key.key))),
        ("key", Json::from(key.key.as_str())),
        (
            "not_after",
            Json::from(key.not_after.map(|not_after| not_after.to_string())),
        ),
    ])
}
