//! HTTP to one hub: bounded answers, time-outs, no redirects, problem documents as values.

use std::time::Duration;

use bytes::Bytes;
use reqwest::header::{CONTENT_TYPE, HeaderMap, LOCATION, RETRY_AFTER};
use reqwest::{Method, StatusCode, Url};
use rustls::ClientConfig;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use zeroize::Zeroizing;

use crate::error::{Error, Problem, Result};
use crate::limits::{ANSWER_BYTES_MAX, CONNECT_TIMEOUT, REQUEST_TIMEOUT};
use crate::tls;

/// Media type of an envelope.
pub(crate) const AIP_JSON: &str = "application/aip+json";
/// Media type of one JSON value a line.
pub(crate) const NDJSON: &str = "application/x-ndjson";
const JSON: &str = "application/json";

/// A hub, reachable over HTTP.
#[derive(Debug, Clone)]
pub(crate) struct Transport {
    http: reqwest::Client,
    base: String,
    tls: std::sync::Arc<ClientConfig>,
}

/// One request. `doing` names it in errors.
pub(crate) struct Request {
    pub(crate) doing: &'static str,
    pub(crate) method: Method,
    /// Path and query, percent-encoded.
    pub(crate) path: String,
    pub(crate) token: Option<Zeroizing<String>>,
    pub(crate) headers: Vec<(&'static str, String)>,
    pub(crate) body: Option<(Bytes, &'static str)>,
    pub(crate) timeout: Duration,
}

impl Request {
    pub(crate) fn get(doing: &'static str, path: impl Into<String>) -> Self {
        Self {
            doing,
            method: Method::GET,
            path: path.into(),
            token: None,
            headers: Vec::new(),
            body: None,
            timeout: REQUEST_TIMEOUT,
        }
    }

    pub(crate) fn post(doing: &'static str, path: impl Into<String>, body: impl Into<Bytes>) -> Self {
        let body = Some((body.into(), JSON));
        Self {
            method: Method::POST,
            body,
            ..Self::get(doing, path)
        }
    }

    pub(crate) fn delete(doing: &'static str, path: impl Into<String>, body: impl Into<Bytes>) -> Self {
        Self {
            method: Method::DELETE,
            ..Self::post(doing, path, body)
        }
    }

    pub(crate) fn token(mut self, token: &str) -> Self {
        self.token = Some(Zeroizing::new(token.to_owned()));
        self
    }

    pub(crate) fn header(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.headers.push((name, value.into()));
        self
    }

    pub(crate) fn media_type(mut self, media_type: &'static str) -> Self {
        self.body = self.body.map(|(bytes, _)| (bytes, media_type));
        self
    }

    pub(crate) fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }
}

/// A 2xx answer.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) doing: &'static str,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

impl Answer {
    /// Reads the body as JSON.
    pub(crate) fn json<T: DeserializeOwned>(&self) -> Result<T> {
        serde_json::from_slice(&self.body).map_err(|error| Error::answer(self.doing, error))
    }
}

/// A 2xx answer whose body is still to come.
#[derive(Debug)]
pub(crate) struct Opened {
    doing: &'static str,
    response: reqwest::Response,
}

impl Opened {
    pub(crate) fn status(&self) -> StatusCode {
        self.response.status()
    }

    pub(crate) fn headers(&self) -> &HeaderMap {
        self.response.headers()
    }

    /// The next piece; `None` at the end. All of them are as many as the hub sends: who reads them has the bound.
    pub(crate) async fn chunk(&mut self) -> Result<Option<Bytes>> {
        let chunk = self.response.chunk().await;
        chunk.map_err(|error| unreachable(self.doing, error))
    }

    /// Reads the rest, at most [`ANSWER_BYTES_MAX`].
    pub(crate) async fn whole(self) -> Result<Answer> {
        let Self { doing, response } = self;
        let headers = response.headers().clone();
        let body = read_bounded(doing, response).await?;
        Ok(Answer { doing, headers, body })
    }
}

impl Transport {
    /// For the hub at this URL. Plain http is for this machine, unless it is allowed explicitly.
    pub(crate) fn new(url: &str, allow_http: bool) -> Result<Self> {
        let base = parse_base(url, allow_http)?;
        let tls = if base.scheme() == "https" {
            tls::with_machine_roots()?
        } else {
            tls::without_roots()?
        };
        let http = reqwest::Client::builder()
            .tls_backend_preconfigured(tls.clone())
            .redirect(reqwest::redirect::Policy::none())
            .no_proxy()
            .connect_timeout(CONNECT_TIMEOUT)
            .user_agent(concat!("aip/", env!("CARGO_PKG_VERSION")))
            .build()
            .map_err(|error| Error::Tls(error.to_string()))?;
        let base = base.as_str().trim_end_matches('/').to_owned();
        Ok(Self {
            http,
            base,
            tls: std::sync::Arc::new(tls),
        })
    }

    /// The hub's URL, without a slash at the end.
    pub(crate) fn base(&self) -> &str {
        &self.base
    }

    /// The URL of the hub's WebSocket.
    pub(crate) fn socket_url(&self) -> String {
        let rest = self.base.strip_prefix("http").unwrap_or_default();
        format!("ws{rest}/api/v1/agents/connect")
    }

    pub(crate) fn tls(&self) -> std::sync::Arc<ClientConfig> {
        std::sync::Arc::clone(&self.tls)
    }

    /// Sends one request once. A refusal of the hub is [`Error::Refused`].
    pub(crate) async fn call(&self, request: Request) -> Result<Answer> {
        self.open(request).await?.whole().await
    }

    /// The same, and gives the answer back when its head is there.
    pub(crate) async fn open(&self, request: Request) -> Result<Opened> {
        let doing = request.doing;
        let url = format!("{}{}", self.base, request.path);
        let mut builder = self.http.request(request.method, url).timeout(request.timeout);
        if let Some(token) = request.token {
            builder = builder.bearer_auth(token.as_str());
        }
        for (name, value) in request.headers {
            builder = builder.header(name, value);
        }
        if let Some((body, media_type)) = request.body {
            builder = builder.header(CONTENT_TYPE, media_type).body(body);
        }
        let response = builder.send().await.map_err(|error| unreachable(doing, error))?;
        let status = response.status();
        let retry_after = retry_after_secs(&response);
        let elsewhere = elsewhere(&response);
        if status.is_success() {
            return Ok(Opened { doing, response });
        }
        let body = read_bounded(doing, response).await?;
        let mut problem = problem(status, retry_after, &body);
        if let Some(url) = elsewhere.filter(|_| !problem.is_of_hub()) {
            problem.detail =
                format!("the address leads on to {url}, and a client goes nowhere by itself; name that one");
        }
        Err(Error::Refused(Box::new(problem)))
    }
}

/// The URL of a request may hold a DID, its headers a token: the error is kept without either.
fn unreachable(doing: &'static str, error: reqwest::Error) -> Error {
    Error::unreachable(doing, error.without_url())
}

async fn read_bounded(doing: &'static str, mut response: reqwest::Response) -> Result<Bytes> {
    let mut body = Vec::new();
    while let Some(chunk) = response
        .chunk()
        .await
        .map_err(|error| unreachable(doing, error))?
    {
        if body.len() + chunk.len() > ANSWER_BYTES_MAX {
            return Err(Error::answer(
                doing,
                format_args!("it is longer than {ANSWER_BYTES_MAX} bytes"),
            ));
        }
        body.extend_from_slice(&chunk);
    }
    Ok(body.into())
}

/// Whole seconds; the form with a date is not used by hubs and is ignored.
fn retry_after_secs(response: &reqwest::Response) -> Option<u64> {
    response
        .headers()
        .get(RETRY_AFTER)?
        .to_str()
        .ok()?
        .trim()
        .parse()
        .ok()
}

/// Where a redirect leads, without path and query: often from http to https.
fn elsewhere(response: &reqwest::Response) -> Option<String> {
    if !response.status().is_redirection() {
        return None;
    }
    let location = response.headers().get(LOCATION)?.to_str().ok()?;
    let url = response.url().join(location).ok().filter(Url::has_host)?;
    Some(url.origin().ascii_serialization())
}

/// The refusal in a body that came otherwise than as an answer of this status.
pub(crate) fn problem_of(status: u16, body: &[u8]) -> Problem {
    let status = StatusCode::from_u16(status).unwrap_or(StatusCode::BAD_GATEWAY);
    problem(status, None, body)
}

/// A problem document, or what stands in for one where something before the hub answered.
fn problem(status: StatusCode, retry_after_secs: Option<u64>, body: &[u8]) -> Problem {
    let members: Map<String, Value> = serde_json::from_slice(body).unwrap_or_default();
    let code = format!("http_{}", status.as_u16());
    let problem =
        Problem::from_members(members.clone()).or_else(|| Problem::from_market(members, code.clone()));
    let mut problem = problem.unwrap_or_else(|| {
        Problem::new(
            code,
            "the answer carries no problem document; is this URL that of a hub?",
        )
    });
    problem.status = status.as_u16();
    problem.retry_after_secs = retry_after_secs.or(problem.retry_after_secs);
    problem
}

fn parse_base(url: &str, allow_http: bool) -> Result<Url> {
    let parsed = Url::parse(url).ok().filter(Url::has_host);
    let parsed = parsed.ok_or_else(|| Error::Url(url.to_owned()))?;
    match parsed.scheme() {
        "https" => Ok(parsed),
        "http" if allow_http || is_this_machine(&parsed) => Ok(parsed),
        "http" => Err(Error::Insecure(url.to_owned())),
        _ => Err(Error::Url(url.to_owned())),
    }
}

fn is_this_machine(url: &Url) -> bool {
    match url.host() {
        Some(url::Host::Domain(name)) => name == "localhost" || name.ends_with(".localhost"),
        Some(url::Host::Ipv4(address)) => address.is_loopback(),
        Some(url::Host::Ipv6(address)) => address.is_loopback(),
        None => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_http_is_for_this_machine_only() {
        for url in [
            "http://localhost:8080",
            "http://127.0.0.1:1/",
            "http://[::1]:2",
            "http://a.localhost",
        ] {
            assert!(parse_base(url, false).is_ok(), "{url}");
        }
        for url in [
            "http://hub.example",
            "http://10.0.0.1",
            "http://localhost.example",
        ] {
            assert!(matches!(parse_base(url, false), Err(Error::Insecure(_))), "{url}");
        }
        assert!(parse_base("http://hub.example", true).is_ok());
        for url in ["hub.example", "ws://localhost", "", "https://", "file:///etc"] {
            assert!(matches!(parse_base(url, true), Err(Error::Url(_))), "{url}");
        }
    }

    #[test]
    fn the_socket_lies_beside_the_api() {
        let transport = Transport::new("http://localhost:8080/aip/", false).unwrap();
        assert_eq!(
            transport.socket_url(),
            "ws://localhost:8080/aip/api/v1/agents/connect"
        );
    }

    #[test]
    fn an_answer_that_is_no_problem_document_still_has_a_code() {
        let found = problem(StatusCode::BAD_GATEWAY, Some(3), b"<html>");
        assert_eq!(
            (found.code.as_str(), found.status, found.retry_after_secs),
            ("http_502", 502, Some(3))
        );
        assert!(found.is_transient());
        let found = problem(
            StatusCode::TOO_MANY_REQUESTS,
            Some(9),
            br#"{"code":"rate_limited","retry_after_s":1}"#,
        );
        assert_eq!(
            (found.code.as_str(), found.retry_after_secs),
            ("rate_limited", Some(9))
        );
    }
}
