//! A row of a provider: an offer without a signature, for the agent that its key speaks for.

use aip_protocol::error::{ErrorCode, Refusal};
use aip_protocol::json::{Json, Object};
use aip_protocol::limits::JSON_INT_MAX;
use aip_protocol::listing::Offer;
use aip_protocol::name::Did;
use aip_protocol::time::Timestamp;
use aip_registry::listings::{NewListing, Origin};
use sha2::{Digest as _, Sha256};

use super::limits::ROW_VERSION_MAX;
use super::{check, flags};

/// What a row asks for.
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    /// Of the listing that it is about.
    pub listing_id: String,
    /// The version that it names, if it names one; otherwise the hub counts.
    pub version: Option<u64>,
    /// What it offers; `None` takes the listing away.
    pub offer: Option<Offered>,
}

/// What a row offers.
#[derive(Debug, Clone, PartialEq)]
pub struct Offered {
    offer: Offer,
    /// Of what it says, without what the hub adds: the same offer again changes nothing.
    pub digest: [u8; 32],
    created_at: Timestamp,
}

impl Row {
    /// Reads one line for the agent `agent`; what has no `created_at` was made `now`.
    ///
    /// # Errors
    /// `json_invalid`, `member_invalid`, `member_missing`, `version_unsupported`; `not_yours` for a row of another agent;
    /// `expired`.
    pub fn read(line: &[u8], agent: &Did, now: Timestamp) -> Result<Self, Refusal> {
        let mut object = framed(line, agent)?;
        if deleted(&object)? {
            return Self::deletion(&object);
        }
        let version = version(&object)?;
        // A feed that writes prices as whole numbers means the same.
        if let Some(price) = object.get("price").and_then(Json::as_int) {
            object.insert("price", price.to_string());
        }
        let created_at = created_at(&object, now)?;
        let offer = Offer::from_json(&Json::Object(object))?;
        check(&offer)?;
        if offer.expires_at.is_some_and(|end| end <= now.max(created_at)) {
            let refusal = Refusal::new(ErrorCode::Expired, "`expires_at` is past.");
            return Err(refusal.with("member", "expires_at"));
        }
        Ok(Self {
            listing_id: offer.listing_id.clone(),
            version,
            offer: Some(Offered {
                digest: Sha256::digest(Json::Object(offer.to_object()).to_jcs()).into(),
                offer,
                created_at,
            }),
        })
    }

    /// Reads one line that takes a listing away, whatever else it says.
    ///
    /// # Errors
    /// As [`Row::read`].
    pub fn read_deletion(line: &[u8], agent: &Did) -> Result<Self, Refusal> {
        Ok(Self {
            listing_id: listing_id(&framed(line, agent)?)?,
            version: None,
            offer: None,
        })
    }

    fn deletion(object: &Object) -> Result<Self, Refusal> {
        Ok(Self {
            listing_id: listing_id(object)?,
            version: version(object)?,
            offer: None,
        })
    }

    /// The listing to store as `version`, in the name of `provider`.
    pub fn into_listing(self, agent: &Did, version: u64, provider: &str) -> NewListing {
        let origin = Origin::Ingested {
            provider: provider.to_owned(),
        };
        let (json, digest, flags, expires_at) = match self.offer {
            None => (Vec::new(), [0; 32], Vec::new(), None),
            Some(offered) => {
                let json = offered.to_json(agent, version);
                let flags = flags(&offered.offer);
                (json.to_jcs(), offered.digest, flags, offered.offer.expires_at)
            }
        };
        NewListing {
            agent: agent.clone(),
            listing_id: self.listing_id,
            version,
            deleted: json.is_empty(),
            json,
            digest,
            origin,
            flags,
            expires_at,
        }
    }
}

impl Offered {
    /// As a listing that nobody signed.
    fn to_json(&self, agent: &Did, version: u64) -> Json {
        let mut object = self.offer.to_object();
        object.insert("aip", "1");
        object.insert("agent", agent.as_str());
        object.insert(
            "version",
            Json::try_from(version).unwrap_or(Json::Int(JSON_INT_MAX)),
        );
        object.insert("created_at", self.created_at.to_string());
        object.into()
    }
}

fn invalid(member: &'static str, should: &str) -> Refusal {
    let detail = format!("The member `{member}` is {should}.");
    Refusal::new(ErrorCode::MemberInvalid, detail).with("member", member)
}

/// The members of a row, which is of this version of the protocol and for no other agent.
fn framed(line: &[u8], agent: &Did) -> Result<Object, Refusal> {
    let Json::Object(object) = Json::parse(line)? else {
        return Err(Refusal::new(ErrorCode::MemberInvalid, "A row is a JSON object."));
    };
    let names_another = |named: &Json| named.as_str() != Some(agent.as_str());
    if object.get("agent").is_some_and(names_another) {
        let detail = format!("The key speaks for {agent} only.");
        return Err(Refusal::new(ErrorCode::NotYours, detail).with("member", "agent"));
    }
    if object
        .get("aip")
        .is_some_and(|version| version.as_str() != Some("1"))
    {
        return Err(Refusal::new(
            ErrorCode::VersionUnsupported,
            "`aip` must be \"1\".",
        ));
    }
    Ok(object)
}

fn version(object: &Object) -> Result<Option<u64>, Refusal> {
    let Some(version) = object.get("version") else {
        return Ok(None);
    };
    let number = version.as_int().and_then(|version| u64::try_from(version).ok());
    let number = number.filter(|number| *number <= ROW_VERSION_MAX);
    number
        .map(Some)
        .ok_or_else(|| invalid("version", &format!("a whole number from 0 to {ROW_VERSION_MAX}")))
}

fn deleted(object: &Object) -> Result<bool, Refusal> {
    let Some(deleted) = object.get("deleted") else {
        return Ok(false);
    };
    deleted
        .as_bool()
        .ok_or_else(|| invalid("deleted", "true or false"))
}

fn created_at(object: &Object, now: Timestamp) -> Result<Timestamp, Refusal> {
    let Some(created_at) = object.get("created_at") else {
        return Ok(now);
    };
    let parsed = created_at.as_str().and_then(|text| Timestamp::parse(text).ok());
    parsed.ok_or_else(|| invalid("created_at", "an RFC 3339 time in UTC, with `Z`"))
}

fn listing_id(object: &Object) -> Result<String, Refusal> {
    let id = object
        .get("listing_id")
        .and_then(Json::as_str)
        .filter(|id| !id.is_empty());
    id.map(str::to_owned).ok_or_else(|| {
        let detail = "The member `listing_id` is missing.";
        Refusal::new(ErrorCode::MemberMissing, detail).with("member", "listing_id")
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn agent() -> Did {
        Did::parse("did:aip:hub.example:shop").unwrap()
    }

    fn read(row: &Value) -> Result<Row, Refusal> {
        let now = Timestamp::parse("2026-11-29T20:15:30Z").unwrap();
        Row::read(row.to_string().as_bytes(), &agent(), now)
    }

    fn row() -> Value {
        json!({ "listing_id": "a", "kind": "product", "name": "Telephone" })
    }

    #[test]
    fn a_row_becomes_a_listing_of_the_keys_agent() {
        let mut given = row();
        given["price"] = json!(79000);
        given["kid"] = json!("forged");
        let listing = read(&given).unwrap().into_listing(&agent(), 7, "feed");
        let json: Value = serde_json::from_slice(&listing.json).unwrap();
        assert_eq!(json["agent"], "did:aip:hub.example:shop");
        assert_eq!((&json["version"], &json["price"]), (&json!(7), &json!("79000")));
        assert_eq!(json["created_at"], "2026-11-29T20:15:30.000Z");
        assert!(!listing.deleted && json.get("kid").is_none());
    }

    #[test]
    fn the_same_words_have_one_digest_whatever_the_version() {
        let digest = |row: &Value| read(row).unwrap().offer.unwrap().digest;
        let mut other = row();
        other["version"] = json!(9);
        other["agent"] = json!(agent().as_str());
        assert_eq!(digest(&row()), digest(&other));
        other["name"] = json!("Phone");
        assert_ne!(digest(&row()), digest(&other));
    }

    #[test]
    fn a_row_can_take_its_listing_away() {
        let gone = read(&json!({ "listing_id": "a", "deleted": true })).unwrap();
        let listing = gone.into_listing(&agent(), 2, "feed");
        assert!(listing.deleted && listing.json.is_empty());
        assert_eq!(
            read(&json!({ "deleted": true })).unwrap_err().code,
            ErrorCode::MemberMissing
        );
    }

    #[test]
    fn of_a_row_to_delete_only_its_id_counts() {
        let mut given = row();
        given["version"] = json!(1);
        let gone = Row::read_deletion(given.to_string().as_bytes(), &agent()).unwrap();
        assert_eq!(
            (gone.listing_id.as_str(), gone.version, gone.offer),
            ("a", None, None)
        );
    }

    #[test]
    fn what_is_no_row_is_refused() {
        for (member, value, code) in [
            ("agent", json!("did:aip:hub.example:other"), ErrorCode::NotYours),
            ("version", json!("1"), ErrorCode::MemberInvalid),
            ("version", json!(JSON_INT_MAX), ErrorCode::MemberInvalid),
            ("deleted", json!(1), ErrorCode::MemberInvalid),
            ("price", json!("1e400"), ErrorCode::MemberInvalid),
            ("price", json!(-1), ErrorCode::MemberInvalid),
            ("currency", json!("eur"), ErrorCode::MemberInvalid),
            ("expires_at", json!("2026-11-29T20:15:30Z"), ErrorCode::Expired),
            ("created_at", json!("yesterday"), ErrorCode::MemberInvalid),
            ("aip", json!("2"), ErrorCode::VersionUnsupported),
        ] {
            let mut given = row();
            given[member] = value;
            assert_eq!(read(&given).unwrap_err().code, code, "{given}");
        }
        assert_eq!(read(&json!([])).unwrap_err().code, ErrorCode::MemberInvalid);
        let float = br#"{"listing_id":"a","price":1.5}"#;
        let refusal = Row::read(float, &agent(), Timestamp::UNIX_EPOCH).unwrap_err();
        assert_eq!(refusal.code, ErrorCode::JsonInvalid);
    }
}
