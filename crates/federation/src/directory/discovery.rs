//! Asking a domain who its hub is.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use aip_protocol::discovery::HubDocument;
use aip_protocol::name::Domain;

use super::{Directory, Found, Peer, PeerError};
use crate::egress::{EgressError, Method, Request, Response};
use crate::limits::{DISCOVERY_FRESH_DEFAULT, DISCOVERY_FRESH_MAX, DISCOVERY_FRESH_MIN, PEER_NEGATIVE};
use crate::peers::PeerRecord;

/// Where a hub's document is.
const PATH: &str = "/.well-known/aip";

impl Directory {
    /// Fetches the document of a domain, checks it against what is pinned, and keeps it.
    pub(super) async fn discover(&self, domain: &Domain, record: Option<&PeerRecord>) -> Found {
        let response = self.ask(domain).await?;
        let document = read(&response)?;
        self.check_hub(&document)?;
        let fresh_for = fresh_for(response.cache_control.as_deref());
        let fresh_until = self.seams.clock.now() + fresh_for;
        let (document, pinned) = self.judge(domain, document, record, fresh_until).await?;
        let hub = self.configured_hub(domain);
        Ok(Arc::new(Peer::documented(&document, &pinned, hub, fresh_until)))
    }

    async fn ask(&self, domain: &Domain) -> Result<Response, PeerError> {
        let urls = self.urls(domain);
        let mut answer = Err(PeerError::unreachable("there is nowhere to ask"));
        for url in urls {
            let request = Request {
                method: Method::Get,
                url,
                headers: vec![("accept", "application/json".to_owned())],
                body: bytes::Bytes::new(),
            };
            match self.seams.exchange.exchange(request, self.settings.limits).await {
                Ok(response) => return Ok(response),
                // Nobody speaks TLS there; where the operator allows it, plain HTTP comes next.
                Err(error @ EgressError::ConnectFailed(_)) => answer = Err(failed(&error)),
                Err(error) => return Err(failed(&error)),
            }
        }
        answer
    }

    /// Where to ask, in this order.
    fn urls(&self, domain: &Domain) -> Vec<String> {
        if let Some(hub) = self.configured_hub(domain) {
            return vec![format!("{}{PATH}", hub.as_str().trim_end_matches('/'))];
        }
        let at = |scheme: &str| format!("{scheme}://{domain}{PATH}");
        match (self.settings.allow_http, domain.host() == "localhost") {
            (false, _) => vec![at("https")],
            (true, true) => vec![at("http")],
            (true, false) => vec![at("https"), at("http")],
        }
    }

    /// Whether the hub is where one can be.
    fn check_hub(&self, document: &HubDocument) -> Result<(), PeerError> {
        let hub = &document.hub;
        let is_scheme = hub.scheme() == "https" || self.settings.allow_http && hub.scheme() == "http";
        let is_plain = hub.username().is_empty() && hub.password().is_none();
        let is_base = hub.query().is_none() && hub.fragment().is_none();
        if is_scheme && is_plain && is_base {
            return Ok(());
        }
        let detail = "the member hub is no https URL without user, query and fragment";
        Err(PeerError::Unfit(detail.into()))
    }
}

/// What it means that there is no answer.
fn failed(error: &EgressError) -> PeerError {
    let cause = error.to_string();
    if error.is_refusal() {
        PeerError::Unfit(cause.into())
    } else {
        PeerError::unreachable(cause)
    }
}

/// The document in an answer, if it is one. Only an answer that a hub could have given says anything about the hub: pages of
/// a proxy, say, do not.
fn read(response: &Response) -> Result<HubDocument, PeerError> {
    let status = response.status;
    match status {
        200 if response.content_type.as_deref() == Some("application/json") => {
            HubDocument::parse(&response.body).map_err(|refusal| PeerError::Unfit(refusal.to_string().into()))
        }
        200 => Err(PeerError::unreachable("the answer is not application/json")),
        300..=399 => Err(PeerError::Unfit(
            format!("it redirects ({status}), which is not followed").into(),
        )),
        408 | 425 | 429 => Err(later(response)),
        400..=499 => Err(PeerError::Unfit(
            format!("it has no hub document (status {status})").into(),
        )),
        _ => Err(later(response)),
    }
}

fn later(response: &Response) -> PeerError {
    let retry_after = response.retry_after.as_deref().and_then(|secs| secs.parse().ok());
    PeerError::Unreachable {
        cause: Cow::Owned(format!("status {}", response.status)),
        retry_after: retry_after.map(|secs| Duration::from_secs(secs).min(PEER_NEGATIVE)),
    }
}

/// How long a document is good, by its `Cache-Control` (RFC 9111 §5.2.2) and within our own bounds.
pub(super) fn fresh_for(cache_control: Option<&str>) -> Duration {
    let mut found = DISCOVERY_FRESH_DEFAULT;
    for directive in cache_control.unwrap_or_default().split(',') {
        let directive = directive.trim().to_ascii_lowercase();
        if directive == "no-store" || directive == "no-cache" {
            return DISCOVERY_FRESH_MIN;
        }
        if let Some(secs) = directive.strip_prefix("max-age=") {
            let secs = secs.trim_matches('"').parse();
            found = secs.map_or(DISCOVERY_FRESH_MIN, Duration::from_secs);
        }
    }
    found.clamp(DISCOVERY_FRESH_MIN, DISCOVERY_FRESH_MAX)
}
