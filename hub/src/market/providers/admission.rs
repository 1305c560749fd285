//! The hub's signed word that it admitted a call, so that a provider can refuse everybody else (AIMarket, "provider request
//! auth").

use std::sync::Arc;

use aip_protocol::clock::Clock;
use aip_protocol::market::digest;
use aip_protocol::multikey::SigningKey;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use url::Url;
use uuid::Uuid;

use super::spelled;

/// Domain separation.
const ADMISSION: &str = "aimarket-hub-request/v1";

/// What a hub signs the calls that it admitted with.
#[derive(Debug)]
pub struct Admission {
    /// The hub's key.
    pub key: Arc<SigningKey>,
    /// The hub's public URL.
    pub hub: String,
    /// The time.
    pub clock: Arc<dyn Clock>,
}

impl Admission {
    /// The headers that say so of one call, at this URL. A URL that has no canonical form gets none, and neither does an input
    /// that cannot be spelled as both sides spell it.
    pub(super) fn headers(
        &self,
        url: &str,
        capability_id: &str,
        id: Uuid,
        input: &Value,
    ) -> Vec<(&'static str, String)> {
        let urls = canonical(&self.hub).zip(canonical(url));
        let Some(((hub, audience), input)) = urls.zip(spelled(input)) else {
            return Vec::new();
        };
        let (timestamp, nonce) = (self.clock.now().unix_millis() / 1_000, id.simple().to_string());
        let statement = json!({
            "aud": audience,
            "capability_id": capability_id,
            "hub": hub,
            "input_sha256": digest::sha256_hex(&input),
            "nonce": nonce,
            "ts": timestamp,
        });
        let mut signed = format!("{ADMISSION}\n").into_bytes();
        signed.extend(spelled(&statement).unwrap_or_default());
        let signature = STANDARD.encode(self.key.sign_bytes(&signed));
        vec![
            ("x-aimarket-hub-signer", hub),
            ("x-aimarket-hub-audience", audience),
            ("x-aimarket-hub-timestamp", timestamp.to_string()),
            ("x-aimarket-hub-nonce", nonce),
            ("x-aimarket-hub-signature", signature),
        ]
    }
}

/// As both sides compare URLs: scheme and host in lower case, no default port, no query, no slash at the end.
fn canonical(url: &str) -> Option<String> {
    let url = Url::parse(url).ok()?;
    let host = url.host_str()?;
    let port = url.port().map(|port| format!(":{port}")).unwrap_or_default();
    let path = url.path().trim_end_matches('/');
    matches!(url.scheme(), "http" | "https").then(|| format!("{}://{host}{port}{path}", url.scheme()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_are_compared_as_the_other_side_does() {
        for (url, expected) in [
            ("HTTPS://A.Example:443/x/", Some("https://a.example/x")),
            ("http://a.example:80", Some("http://a.example")),
            ("http://a.example:8080/x?y=1#z", Some("http://a.example:8080/x")),
            ("https://[::1]:9/", Some("https://[::1]:9")),
            ("ftp://a.example/", None),
            ("nothing", None),
        ] {
            assert_eq!(canonical(url).as_deref(), expected, "{url}");
        }
    }
}
