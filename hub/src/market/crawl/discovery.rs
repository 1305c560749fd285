//! The discovery document of a peer, as it is read: its key, what it says about itself, where its manifest is, whom it knows.

use aip_market::peers::{Declared, peer_url};
use aip_protocol::market::origin::published_key;
use aip_protocol::market::{Value, document};
use aip_protocol::multikey::VerifyingKey;
use aip_protocol::time::Timestamp;
use url::Url;

use super::error::{CrawlError, Page};
use super::fresh::check_age;
use super::words::plain;
use crate::market::limits::{
    PEER_CATEGORIES_MAX, PEER_DESCRIPTION_CHARS_MAX, PEER_NAME_CHARS_MAX, PEER_VERSION_CHARS_MAX,
    PEER_WORD_CHARS_MAX, PEERS_NAMED_MAX,
};

/// Where it is, below the address of a peer.
pub(super) const PATH: &str = "/.well-known/ai-market.json";
/// Where the manifest is of a peer that does not say.
const MANIFEST_PATH: &str = "/ai-market/v2/manifest";

/// What a discovery document says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Discovery {
    /// The key that its signatures are checked with, if it is the pinned one.
    pub(super) key: VerifyingKey,
    /// What it says about itself.
    pub(super) declared: Declared,
    /// Where its manifest is, at its own origin.
    pub(super) manifest_url: String,
    /// Other hubs that it names, where it has signed that.
    pub(super) neighbours: Vec<String>,
}

/// Reads the discovery document of the peer at `url`.
///
/// # Errors
/// It is none of a hub of this version, it is a hub's and not signed, it is signed and not by its own key, it is old, or its
/// manifest is elsewhere.
pub(super) fn read(found: &Value, url: &str, now: Timestamp) -> Result<Discovery, CrawlError> {
    let wrong = |what: String| CrawlError::wrong(Page::Discovery, what);
    let versions = found.get("protocol_versions").and_then(Value::as_array);
    let mut versions = versions.into_iter().flatten().filter_map(Value::as_str);
    if !versions.any(|version| version == "v2") {
        return Err(wrong("does not name version v2 of AIMarket".to_owned()));
    }
    let key = published_key(found).map_err(|refusal| wrong(format!("has no key: {}", refusal.detail)))?;
    let is_signed = found
        .get("signature")
        .is_some_and(|signature| *signature != Value::Null);
    if is_signed {
        let check = document::verify(found, std::slice::from_ref(&key));
        if let Some(reason) = check.verdict.reason() {
            return Err(wrong(format!("is not signed by the key that it names: {reason}")));
        }
        if let Some(generated_at) = found.get("generated_at").and_then(Value::as_str) {
            check_age(Page::Discovery, generated_at, now)?;
        }
    }
    let declared = declared(found, url);
    if declared.hub_version.is_some() && !is_signed {
        return Err(wrong("is a hub's, and not signed".to_owned()));
    }
    Ok(Discovery {
        key,
        declared,
        manifest_url: manifest_url(found, url)?,
        neighbours: if is_signed {
            neighbours(found, url)
        } else {
            Vec::new()
        },
    })
}

fn declared(found: &Value, url: &str) -> Declared {
    let text = |name: &str, chars_max: usize| {
        let text = found.get(name).and_then(Value::as_str);
        text.map(|text| plain(text, chars_max))
            .filter(|text| !text.is_empty())
    };
    let categories = found
        .get("categories")
        .and_then(Value::as_array)
        .into_iter()
        .flatten();
    let categories = categories.filter_map(Value::as_str);
    let rails = found
        .get("payment_rails")
        .and_then(|rails| rails.get("seller_direct"));
    let count = found.get("capabilities_count").and_then(Value::as_number);
    let invoke_url = found.get("invoke_url").and_then(Value::as_str);
    Declared {
        name: text("name", PEER_NAME_CHARS_MAX),
        description: text("description", PEER_DESCRIPTION_CHARS_MAX),
        hub_version: text("hub_version", PEER_VERSION_CHARS_MAX),
        invoke_url: invoke_url
            .filter(|invoke| is_of_origin(invoke, url))
            .map(str::to_owned),
        categories: categories
            .take(PEER_CATEGORIES_MAX)
            .map(|category| plain(category, PEER_WORD_CHARS_MAX))
            .collect(),
        seller_direct: rails
            .and_then(|rail| rail.get("enabled"))
            .and_then(Value::as_bool)
            == Some(true),
        capabilities: count.map_or(0, |count| whole(count.as_f64())),
    }
}

/// How many, of a number that a stranger wrote.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "it is clamped before"
)]
fn whole(count: f64) -> u64 {
    if count.is_finite() {
        count.clamp(0.0, 1e9) as u64
    } else {
        0
    }
}

/// A manifest at another origin is not asked for: whoever answers there would speak for this peer.
fn manifest_url(found: &Value, url: &str) -> Result<String, CrawlError> {
    match found.get("manifest_url").and_then(Value::as_str) {
        None => Ok(format!("{url}{MANIFEST_PATH}")),
        Some(manifest) if is_of_origin(manifest, url) => Ok(manifest.to_owned()),
        Some(_) => Err(CrawlError::wrong(
            Page::Discovery,
            "names a manifest at another origin: add that hub by its own address",
        )),
    }
}

/// Whether two addresses have one scheme, host and port, and nobody logs in.
fn is_of_origin(one: &str, other: &str) -> bool {
    let parsed = Url::parse(one).ok().zip(Url::parse(other).ok());
    parsed.is_some_and(|(one, other)| {
        one.origin() == other.origin() && one.username().is_empty() && one.password().is_none()
    })
}

/// Under `peers` and `observed_hubs`, in their one spelling, without the peer itself.
fn neighbours(found: &Value, url: &str) -> Vec<String> {
    let named = ["peers", "observed_hubs"]
        .into_iter()
        .filter_map(|name| found.get(name)?.as_array());
    let named = named.flatten().take(PEERS_NAMED_MAX);
    let urls = named.filter_map(|hub| hub.get("url").and_then(Value::as_str));
    let mut urls: Vec<String> = urls.filter_map(peer_url).filter(|named| named != url).collect();
    urls.sort();
    urls.dedup();
    urls
}

#[cfg(test)]
mod tests {
    use aip_protocol::market::Members;
    use aip_protocol::market::signature::key_text;
    use aip_protocol::multikey::SigningKey;

    use super::*;

    const HUB: &str = "https://hub.example/family";

    fn key() -> SigningKey {
        SigningKey::from_seed([1; 32])
    }

    fn now() -> Timestamp {
        Timestamp::parse("2026-11-30T12:00:00Z").unwrap()
    }

    fn said(change: impl FnOnce(&mut serde_json::Value)) -> Value {
        let mut said = serde_json::json!({
            "name": "A\nhub", "protocol_versions": ["v1", "v2"], "hub_version": "3.16.0",
            "signer_public_key": key_text(key().public()), "generated_at": "2026-11-30T11:00:00Z",
            "manifest_url": "https://hub.example/family/ai-market/v2/manifest", "capabilities_count": 7,
            "peers": [{ "url": "https://Other.example/" }, { "url": HUB }, {}, 7],
            "observed_hubs": [{ "url": "https://other.example" }, { "url": "http://user@x.example" }],
            "categories": ["a", 1, "b"],
        });
        change(&mut said);
        Value::from(said)
    }

    fn signed(said: Value) -> Value {
        let Value::Object(members) = said else {
            unreachable!()
        };
        document::sign(members, &key())
    }

    /// A provider that is no hub.
    fn bare(said: &mut serde_json::Value) {
        said.as_object_mut().unwrap().remove("hub_version");
    }

    #[test]
    fn what_it_says_is_read() {
        let read_signed = read(&signed(said(|_| {})), HUB, now()).unwrap();
        assert_eq!(&read_signed.key, key().public());
        assert_eq!(read_signed.declared.name.as_deref(), Some("A hub"));
        assert_eq!(read_signed.declared.categories, ["a", "b"]);
        assert_eq!(read_signed.declared.capabilities, 7);
        assert_eq!(read_signed.neighbours, ["https://other.example"]);
        // A bare provider need not sign it, and is then not believed about others.
        let unsigned = read(&said(bare), HUB, now()).unwrap();
        assert_eq!((unsigned.key, unsigned.neighbours), (read_signed.key, Vec::new()));
        assert_eq!(unsigned.declared.hub_version, None);
    }

    #[test]
    fn what_is_no_document_of_a_hub_is_refused() {
        let refused = |found: Value| read(&found, HUB, now()).unwrap_err().to_string();
        for found in [Value::Null, Value::from("v2"), Value::Object(Members::new())] {
            assert!(refused(found).contains("version v2"));
        }
        assert!(refused(said(|said| said["signer_public_key"] = "AAAA".into())).contains("no key"));
        assert!(refused(said(|_| {})).contains("not signed"));
        let mut changed = signed(said(|_| {}));
        if let Value::Object(members) = &mut changed {
            members.insert("name".to_owned(), "Another".into());
        }
        assert!(refused(changed).contains("not signed by the key"));
        assert!(refused(said(|said| said["signature"] = "base64".into())).contains("an object is wanted"));
        let old = signed(said(|said| said["generated_at"] = "2026-11-22T11:00:00Z".into()));
        assert!(refused(old).contains("days ago"));
    }

    /// Pitfall 47: where a manifest is, is not for a stranger to say.
    #[test]
    fn pitfall_47_a_manifest_is_at_the_peers_own_origin() {
        for elsewhere in [
            "http://127.0.0.1/manifest",
            "https://hub.example:8443/manifest",
            "http://hub.example/manifest",
            "https://user@hub.example/manifest",
            "file:///etc/passwd",
            "manifest",
        ] {
            let found = signed(said(|said| said["manifest_url"] = elsewhere.into()));
            let refused = read(&found, HUB, now()).unwrap_err().to_string();
            assert!(refused.contains("another origin"), "{elsewhere}: {refused}");
        }
        let silent = said(|said| drop(said.as_object_mut().unwrap().remove("manifest_url")));
        let read = read(&signed(silent), HUB, now()).unwrap();
        assert_eq!(
            read.manifest_url,
            "https://hub.example/family/ai-market/v2/manifest"
        );
    }

    #[test]
    fn numbers_of_strangers_are_clamped() {
        for count in [
            serde_json::json!(-1),
            serde_json::json!(1e300),
            serde_json::json!("7"),
            serde_json::json!(null),
        ] {
            let found = said(|said| {
                bare(said);
                said["capabilities_count"] = count.clone();
            });
            assert!(read(&found, HUB, now()).unwrap().declared.capabilities <= 1_000_000_000);
        }
    }
}
