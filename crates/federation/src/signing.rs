//! Requests of this hub to other hubs, signed with its own key (spec §8, RFC 9421).

use std::sync::{Mutex, PoisonError};

use aip_protocol::clock::Clock;
use aip_protocol::discovery::hub_kid;
use aip_protocol::http_signature::{Body, SignedHeaders, Stamp, Target, sign_request};
use aip_protocol::limits::REQUEST_LIFE_SECS_MAX;
use aip_protocol::multikey::SigningKey;
use aip_protocol::name::Domain;
use bytes::Bytes;
use rand_core::CryptoRng;
use std::sync::Arc;
use url::Url;

use crate::egress::{Method, Request};

/// The media type of what hubs hand to each other.
const JSON: &str = "application/json";

/// Signs for this hub. Each signature has a nonce of its own and is good for 60 s.
pub struct Signer {
    domain: Domain,
    key: SigningKey,
    kid: String,
    clock: Arc<dyn Clock>,
    rng: Mutex<Box<dyn CryptoRng + Send>>,
}

impl std::fmt::Debug for Signer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Signer")
            .field("kid", &self.kid)
            .finish_non_exhaustive()
    }
}

impl Signer {
    /// Signs as `domain` with `key`, which its discovery document lists. `rng` makes the nonces.
    pub fn new(
        domain: Domain,
        key: SigningKey,
        clock: Arc<dyn Clock>,
        rng: Box<dyn CryptoRng + Send>,
    ) -> Self {
        Self {
            kid: hub_kid(&domain, key.public()),
            domain,
            key,
            clock,
            rng: Mutex::new(rng),
        }
    }

    /// The domain that it signs for.
    pub fn domain(&self) -> &Domain {
        &self.domain
    }

    /// The key that it signs with: domain, `#`, Multikey.
    pub fn kid(&self) -> &str {
        &self.kid
    }

    /// A signed `POST` of JSON to a hub that names itself `hub`, wherever it is reached.
    pub fn post(&self, url: &Url, hub: &Url, body: Bytes) -> Request {
        let signed = self.sign("POST", url, hub, Some(&body));
        let mut headers = vec![("content-type", JSON.to_owned())];
        headers.extend(signed.content_digest.map(|digest| ("content-digest", digest)));
        headers.push(("signature-input", signed.signature_input));
        headers.push(("signature", signed.signature));
        Request {
            method: Method::Post,
            url: url.to_string(),
            headers,
            body,
        }
    }

    /// A signed `GET`.
    pub fn get(&self, url: &Url, hub: &Url) -> Request {
        let signed = self.sign("GET", url, hub, None);
        Request {
            method: Method::Get,
            url: url.to_string(),
            headers: vec![
                ("signature-input", signed.signature_input),
                ("signature", signed.signature),
            ],
            body: Bytes::new(),
        }
    }

    fn sign(&self, method: &str, url: &Url, hub: &Url, body: Option<&Bytes>) -> SignedHeaders {
        let created_secs = self.clock.now().unix_millis().div_euclid(1_000);
        let nonce = self.nonce();
        let stamp = Stamp {
            created_secs,
            expires_secs: created_secs.saturating_add_unsigned(REQUEST_LIFE_SECS_MAX),
            nonce: &nonce,
        };
        let body = body.map(|bytes| Body {
            content_type: JSON,
            bytes,
        });
        let target = Target {
            authority: Target::of_url(method, hub).authority,
            ..Target::of_url(method, url)
        };
        sign_request(&self.key, &self.kid, &target, body, stamp)
    }

    /// 128 random bits.
    fn nonce(&self) -> String {
        let mut rng = self.rng.lock().unwrap_or_else(PoisonError::into_inner);
        format!("{:016x}{:016x}", rng.next_u64(), rng.next_u64())
    }
}

/// A path below the `hub` of a discovery document, which may have a path of its own.
pub fn below(hub: &Url, path: &str) -> Option<Url> {
    Url::parse(&format!("{}/{path}", hub.as_str().trim_end_matches('/'))).ok()
}

#[cfg(test)]
mod tests {
    use aip_protocol::clock::ManualClock;
    use aip_protocol::http_signature::SignedRequest;
    use aip_protocol::time::Timestamp;
    use rand::SeedableRng as _;
    use rand::rngs::StdRng;

    use super::*;

    fn signer() -> (Signer, Timestamp) {
        let now = Timestamp::from_unix_millis(1_796_000_000_123);
        let clock = Arc::new(ManualClock::new(now));
        let rng = Box::new(StdRng::seed_from_u64(1));
        let domain = Domain::parse("alpha.example").unwrap();
        (
            Signer::new(domain, SigningKey::from_seed([7; 32]), clock, rng),
            now,
        )
    }

    fn verified(signer: &Signer, request: &Request, method: &str, now: Timestamp) -> SignedRequest {
        let fields: Vec<(&str, &str)> = request
            .headers
            .iter()
            .map(|(name, value)| (*name, value.as_str()))
            .collect();
        let has_body = !request.body.is_empty();
        let parsed = SignedRequest::parse(&fields, has_body, now).unwrap();
        let target = Target::of_url(method, &Url::parse(&request.url).unwrap());
        let body = has_body.then_some(&request.body[..]);
        let keys = [signer.key.public().clone()];
        parsed.verify(&target, &fields, body, &keys).unwrap();
        parsed
    }

    #[test]
    fn what_is_signed_verifies_and_each_nonce_is_new() {
        let (signer, now) = signer();
        let hub = Url::parse("https://hub.beta.example:8443/base/").unwrap();
        let url = below(&hub, "federation/v1/messages").unwrap();
        assert_eq!(
            url.as_str(),
            "https://hub.beta.example:8443/base/federation/v1/messages"
        );
        let post = verified(
            &signer,
            &signer.post(&url, &url, Bytes::from_static(b"{}")),
            "POST",
            now,
        );
        let again = verified(
            &signer,
            &signer.post(&url, &url, Bytes::from_static(b"{}")),
            "POST",
            now,
        );
        let url = Url::parse("https://hub.beta.example/federation/v1/status?id=1").unwrap();
        let get = verified(&signer, &signer.get(&url, &url), "GET", now);
        assert_eq!(post.claimed_domain(), "alpha.example");
        assert_eq!(post.keyid, signer.kid());
        assert_ne!(post.nonce, again.nonce);
        assert_ne!(post.nonce, get.nonce);
    }

    #[test]
    fn a_request_is_signed_for_the_name_that_the_hub_gives_itself() {
        let (signer, now) = signer();
        let itself = Url::parse("https://hub.beta.example/").unwrap();
        let reached = Url::parse("http://10.0.0.7:8080/federation/v1/outbox?after=1").unwrap();
        let request = signer.get(&reached, &itself);
        assert_eq!(request.url, reached.as_str());
        let fields: Vec<(&str, &str)> = request
            .headers
            .iter()
            .map(|(name, value)| (*name, value.as_str()))
            .collect();
        let parsed = SignedRequest::parse(&fields, false, now).unwrap();
        let keys = [signer.key.public().clone()];
        let target = Target::new(
            "GET",
            "hub.beta.example",
            "/federation/v1/outbox",
            Some("after=1"),
        );
        parsed.verify(&target, &fields, None, &keys).unwrap();
        assert!(
            parsed
                .verify(&Target::of_url("GET", &reached), &fields, None, &keys)
                .is_err()
        );
    }
}
