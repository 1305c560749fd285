//! Signed requests between hubs: RFC 9421, Ed25519 only (§8).
//!
//! A request with a body covers `@method`, `@authority`, `@path`, `content-type` and
//! `content-digest`; one without covers `@method`, `@authority`, `@path` and `@query`. More may be
//! covered, less is refused. There is exactly one signature.

use std::borrow::Cow;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest as _, Sha256};
use url::Url;

use crate::error::{ErrorCode, Refusal};
use crate::limits::{REQUEST_LIFE_SECS_MAX, TOLERANCE_SECS};
use crate::multikey::{SigningKey, VerifyingKey};
use crate::time::Timestamp;

mod input;

use input::SignatureInput;

/// The value of the parameter `tag`.
pub const TAG: &str = "aip-fed-1";
const WITH_BODY: [&str; 5] = ["@method", "@authority", "@path", "content-type", "content-digest"];
const WITHOUT_BODY: [&str; 4] = ["@method", "@authority", "@path", "@query"];

/// What is asked of whom: the derived components of RFC 9421 §2.2.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    /// The method, in upper case.
    pub method: String,
    /// Host, and port where it is not the scheme's own, in lower case: that of the discovery
    /// document's `hub`, whatever a proxy put into `Host`.
    pub authority: String,
    /// The path as it stands in the request line, still percent-encoded.
    pub path: String,
    /// The query with its `?`; `?` alone when there is none.
    pub query: String,
}

impl Target {
    /// Of the URL that a request is sent to.
    pub fn of_url(method: &str, url: &Url) -> Self {
        let host = url.host_str().unwrap_or_default();
        // `Url` has lower-cased the host and dropped the scheme's own port.
        let authority = url
            .port()
            .map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"));
        Self::new(method, &authority, url.path(), url.query())
    }

    /// From the parts of a request that came in; `query` without its `?`.
    pub fn new(method: &str, authority: &str, path: &str, query: Option<&str>) -> Self {
        Self {
            method: method.to_ascii_uppercase(),
            authority: authority.to_ascii_lowercase(),
            path: if path.is_empty() {
                "/".to_owned()
            } else {
                path.to_owned()
            },
            query: format!("?{}", query.unwrap_or_default()),
        }
    }
}

/// The body of a request to be signed.
#[derive(Debug, Clone, Copy)]
pub struct Body<'a> {
    /// The value of `Content-Type`.
    pub content_type: &'a str,
    /// The bytes that are sent.
    pub bytes: &'a [u8],
}

/// When a request was signed and how it is told from others.
#[derive(Debug, Clone, Copy)]
pub struct Stamp<'a> {
    /// Now, in Unix seconds.
    pub created_secs: i64,
    /// At most 60 s later, in Unix seconds.
    pub expires_secs: i64,
    /// Never used before; printable ASCII without quotes and backslashes.
    pub nonce: &'a str,
}

/// The header fields that a signature adds to a request, besides `Content-Type`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SignedHeaders {
    /// `Content-Digest`, for a request with a body.
    pub content_digest: Option<String>,
    /// `Signature-Input`.
    pub signature_input: String,
    /// `Signature`.
    pub signature: String,
}

/// The value of `Content-Digest` (RFC 9530), sha-256.
pub fn content_digest(body: &[u8]) -> String {
    format!("sha-256=:{}:", STANDARD.encode(Sha256::digest(body)))
}

/// Signs a request; `keyid` is the domain of the hub, `#`, and the Multikey of `key`.
pub fn sign_request(
    key: &SigningKey,
    keyid: &str,
    target: &Target,
    body: Option<Body<'_>>,
    stamp: Stamp<'_>,
) -> SignedHeaders {
    let digest = body.map(|body| content_digest(body.bytes));
    let fields: Vec<(&str, &str)> = match (&body, &digest) {
        (Some(body), Some(digest)) => vec![("content-type", body.content_type), ("content-digest", digest)],
        _ => Vec::new(),
    };
    let covered = covered(body.is_some());
    let quoted: Vec<String> = covered.iter().map(|name| format!("\"{name}\"")).collect();
    let Stamp {
        created_secs,
        expires_secs,
        nonce,
    } = stamp;
    let parameters = format!(
        "({});created={created_secs};expires={expires_secs};nonce=\"{nonce}\";keyid=\"{keyid}\";tag=\"{TAG}\"",
        quoted.join(" ")
    );
    // Every covered component is at hand, so there is a base.
    let base = signature_base(target, &fields, covered.iter().copied(), &parameters).unwrap_or_default();
    let signature = STANDARD.encode(key.sign_bytes(base.as_bytes()));
    SignedHeaders {
        content_digest: digest,
        signature_input: format!("sig1={parameters}"),
        signature: format!("sig1=:{signature}:"),
    }
}

/// A request whose signature was read, not yet verified: enough to look up the peer's keys.
#[derive(Debug, Clone)]
pub struct SignedRequest {
    input: SignatureInput,
    signature: [u8; 64],
    /// The key that signed: domain, `#`, Multikey.
    pub keyid: String,
    /// Used once per peer.
    pub nonce: String,
    /// Until when the nonce is remembered: `expires` and 300 s.
    pub remember_until: Timestamp,
}

impl SignedRequest {
    /// Reads the signature fields and checks what needs no key: coverage, tag, algorithm, times.
    ///
    /// `fields` are the header fields, names in lower case. Everything amiss is
    /// `request_signature_invalid`.
    pub fn parse(fields: &[(&str, &str)], has_body: bool, now: Timestamp) -> Result<Self, Refusal> {
        let [Some(input), Some(signature)] = ["signature-input", "signature"].map(|name| field(fields, name))
        else {
            return Err(invalid("the request is not signed"));
        };
        let input = SignatureInput::parse(&input).ok_or_else(|| invalid("Signature-Input cannot be read"))?;
        if !covered(has_body).iter().all(|name| input.covers(name)) {
            let needed = covered(has_body).join(", ");
            return Err(invalid(format!("the signature must cover {needed}")));
        }
        if input.text("tag") != Some(TAG) || input.text("alg").unwrap_or("ed25519") != "ed25519" {
            return Err(invalid("tag must be aip-fed-1, the algorithm ed25519"));
        }
        let nonce = input.text("nonce").filter(|nonce| !nonce.is_empty());
        let nonce = nonce.ok_or_else(|| invalid("a nonce is needed"))?.to_owned();
        let expires = check_times(&input, now)?;
        let keyid = input
            .text("keyid")
            .ok_or_else(|| invalid("keyid is needed"))?
            .to_owned();
        let signature = read_signature(&signature, input.label());
        let signature = signature.ok_or_else(|| invalid("Signature cannot be read"))?;
        let remember_until = Timestamp::from_unix_secs(expires.saturating_add_unsigned(TOLERANCE_SECS));
        Ok(Self {
            input,
            signature,
            keyid,
            nonce,
            remember_until,
        })
    }

    /// The domain that `keyid` claims.
    pub fn claimed_domain(&self) -> &str {
        self.keyid.split_once('#').map_or("", |(domain, _)| domain)
    }

    /// The Multikey that `keyid` claims.
    pub fn claimed_key(&self) -> &str {
        self.keyid.split_once('#').map_or("", |(_, key)| key)
    }

    /// When it was signed, by the peer's clock.
    pub fn created(&self) -> Timestamp {
        // Checked when it was read.
        Timestamp::from_unix_secs(self.input.number("created").unwrap_or_default())
    }

    /// Verifies with the peer's current keys; the caller has found them for
    /// [`SignedRequest::claimed_domain`], and checks the nonce afterwards.
    ///
    /// Refuses with `hub_key_unknown`, `digest_mismatch`, `request_signature_invalid`.
    pub fn verify(
        &self,
        target: &Target,
        fields: &[(&str, &str)],
        body: Option<&[u8]>,
        keys: &[VerifyingKey],
    ) -> Result<(), Refusal> {
        let key = keys.iter().find(|key| key.as_str() == self.claimed_key());
        let key =
            key.ok_or_else(|| Refusal::new(ErrorCode::HubKeyUnknown, "keyid is no current key of the peer"))?;
        if body.is_some_and(|body| field(fields, "content-digest").as_deref() != Some(&content_digest(body)))
        {
            return Err(Refusal::new(
                ErrorCode::DigestMismatch,
                "Content-Digest is not that of the body",
            ));
        }
        let base = signature_base(target, fields, self.input.components(), self.input.parameters());
        let base = base.ok_or_else(|| invalid("a covered component is not in the request"))?;
        if key.verify_bytes(base.as_bytes(), &self.signature) {
            return Ok(());
        }
        Err(invalid("the request's signature does not verify"))
    }
}

fn covered(has_body: bool) -> &'static [&'static str] {
    if has_body { &WITH_BODY } else { &WITHOUT_BODY }
}

/// `created < expires <= created + 60`, and both within 300 s of the receiving hub's clock.
fn check_times(input: &SignatureInput, now: Timestamp) -> Result<i64, Refusal> {
    let [Some(created), Some(expires)] = ["created", "expires"].map(|name| input.number(name)) else {
        return Err(invalid("created and expires are needed"));
    };
    let (earliest, latest) = (
        created.saturating_sub_unsigned(TOLERANCE_SECS),
        expires.saturating_add_unsigned(TOLERANCE_SECS),
    );
    let is_short = created < expires && expires <= created.saturating_add_unsigned(REQUEST_LIFE_SECS_MAX);
    let is_timely = Timestamp::from_unix_secs(earliest) <= now && now <= Timestamp::from_unix_secs(latest);
    if is_short && is_timely {
        return Ok(expires);
    }
    let detail = "the request has expired, comes from the future, or is valid for more than 60 s";
    Err(invalid(detail).with("hub_time", now.to_string()))
}

/// The signature base (RFC 9421 §2.5), or `None` when a component is not in the request.
fn signature_base<'a>(
    target: &Target,
    fields: &[(&str, &str)],
    components: impl Iterator<Item = &'a str>,
    parameters: &str,
) -> Option<String> {
    let mut base = String::new();
    for name in components {
        let value = match name {
            "@method" => Cow::Borrowed(target.method.as_str()),
            "@authority" => Cow::Borrowed(target.authority.as_str()),
            "@path" => Cow::Borrowed(target.path.as_str()),
            "@query" => Cow::Borrowed(target.query.as_str()),
            name => field(fields, name)?,
        };
        base.extend(["\"", name, "\": ", &value, "\n"]);
    }
    base.extend(["\"@signature-params\": ", parameters]);
    Some(base)
}

/// The value of a field, several of the same name joined as RFC 9421 §2.1 says.
fn field<'a>(fields: &[(&str, &'a str)], name: &str) -> Option<Cow<'a, str>> {
    let mut values = fields
        .iter()
        .filter(|(other, _)| other.eq_ignore_ascii_case(name))
        .map(|(_, value)| value.trim());
    let first = values.next()?;
    Some(values.fold(Cow::Borrowed(first), |joined, value| {
        Cow::Owned(format!("{joined}, {value}"))
    }))
}

/// `label=:base64:`, 64 bytes.
fn read_signature(text: &str, label: &str) -> Option<[u8; 64]> {
    let encoded = text.strip_prefix(label)?.strip_prefix("=:")?.strip_suffix(':')?;
    STANDARD.decode(encoded).ok()?.try_into().ok()
}

fn invalid(detail: impl Into<Cow<'static, str>>) -> Refusal {
    Refusal::new(ErrorCode::RequestSignatureInvalid, detail)
}
