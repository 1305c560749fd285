//! The guarded client on reqwest.

mod kept;

use std::error::Error;
use std::sync::Arc;

use async_trait::async_trait;
use bytes::{Bytes, BytesMut};
use futures_util::stream;
use reqwest::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderMap, RETRY_AFTER};
use rustls::crypto::{CryptoProvider, ring};
use tokio::time::Instant;

use self::kept::KeptHosts;
use super::resolver::GuardedResolver;
use super::{
    Answer, Body, EgressError, Exchange, Limits, Method, Outbound, Policy, Request, Resolve, Response,
    Streamed,
};
use crate::limits::{FIELD_BYTES_MAX, FIELDS_KEPT, IDLE_CONNECTIONS_PER_HOST_MAX, IDLE_TIMEOUT};

/// What we call ourselves to strangers.
const USER_AGENT: &str = concat!("aip-hub/", env!("CARGO_PKG_VERSION"));

/// The HTTP client for addresses that a stranger can choose. Cheap to clone.
#[derive(Debug, Clone)]
pub struct GuardedClient {
    /// Keeps no connection: for endpoints, and for hubs beyond those that may keep some.
    http: reqwest::Client,
    /// Keeps a few for a moment: for hubs, which come again soon.
    hubs: reqwest::Client,
    kept: Arc<KeptHosts>,
    policy: Arc<Policy>,
}

impl GuardedClient {
    /// Sets the client up. Certificates are verified against the operating system's authorities;
    /// a machine that has none can still call `http` where that is allowed, and is told so.
    ///
    /// # Errors
    ///
    /// [`EgressError::Setup`] when the TLS library cannot start.
    pub fn new(policy: Policy, resolver: Arc<dyn Resolve>) -> Result<Self, EgressError> {
        install_tls_provider();
        let policy = Arc::new(policy);
        let guard = Arc::new(GuardedResolver {
            resolver,
            policy: Arc::clone(&policy),
        });
        Ok(Self {
            http: build(|| builder(&guard))?,
            hubs: build(|| keeping(builder(&guard)))?,
            kept: Arc::default(),
            policy,
        })
    }

    /// The client for a request to another hub.
    fn hub_client(&self, url: &reqwest::Url, limits: Limits) -> &reqwest::Client {
        let now = Instant::now();
        if self.kept.keep(url, now, now + limits.timeout) {
            &self.hubs
        } else {
            &self.http
        }
    }
}

#[async_trait]
impl Outbound for GuardedClient {
    async fn post(
        &self,
        url: &str,
        content_type: &'static str,
        body: Bytes,
        limits: Limits,
    ) -> Result<Answer, EgressError> {
        let url = self.policy.check_url(url)?;
        let request = self
            .http
            .post(url)
            .header(CONTENT_TYPE, content_type)
            .timeout(limits.timeout)
            .body(body);
        let response = request.send().await.map_err(classify)?;
        read_answer(response, limits.answer_bytes_max).await
    }
}

#[async_trait]
impl Exchange for GuardedClient {
    async fn exchange(&self, request: Request, limits: Limits) -> Result<Response, EgressError> {
        let mut response = self.send(request, limits).await?;
        let mut body = BytesMut::new();
        read_body(&mut response, &mut body, limits.answer_bytes_max).await?;
        Ok(Response {
            body: body.freeze(),
            ..head(&response)
        })
    }

    async fn open(&self, request: Request, limits: Limits) -> Result<Streamed, EgressError> {
        let response = self.send(request, limits).await?;
        let head = head(&response);
        let bytes_max = limits.answer_bytes_max;
        let pieces = stream::try_unfold((response, bytes_max), move |(mut response, left)| async move {
            let Some(piece) = response.chunk().await.map_err(classify)? else {
                return Ok(None);
            };
            let left = left.checked_sub(piece.len());
            let left = left.ok_or(EgressError::AnswerTooLarge { bytes_max })?;
            Ok(Some((piece, (response, left))))
        });
        Ok(Streamed {
            head,
            body: Body::of(pieces),
        })
    }
}

impl GuardedClient {
    async fn send(&self, request: Request, limits: Limits) -> Result<reqwest::Response, EgressError> {
        let url = self.policy.check_url(&request.url)?;
        let http = self.hub_client(&url, limits);
        let started = match request.method {
            Method::Get => http.get(url),
            Method::Post => http.post(url).body(request.body),
        };
        let started = request
            .headers
            .into_iter()
            .fold(started, |started, (name, value)| started.header(name, value));
        started.timeout(limits.timeout).send().await.map_err(classify)
    }
}

/// Status and fields, without a body.
fn head(response: &reqwest::Response) -> Response {
    let field = |name| response.headers().get(name).and_then(|value| value.to_str().ok());
    let media_type = |text: &str| {
        text.split(';')
            .next()
            .unwrap_or_default()
            .trim()
            .to_ascii_lowercase()
    };
    Response {
        status: response.status().as_u16(),
        content_type: field(CONTENT_TYPE).map(media_type),
        cache_control: field(CACHE_CONTROL).map(str::to_owned),
        retry_after: field(RETRY_AFTER).map(str::to_owned),
        fields: kept_fields(response.headers()),
        body: Bytes::new(),
    }
}

/// A field that is there twice is none: two readers could take one each.
fn kept_fields(headers: &HeaderMap) -> Vec<(&'static str, String)> {
    let value_of = |name: &'static str| {
        let mut values = headers.get_all(name).iter();
        let value = values.next()?.to_str().ok()?;
        let is_plain = values.next().is_none() && value.len() <= FIELD_BYTES_MAX;
        is_plain.then(|| (name, value.to_owned()))
    };
    FIELDS_KEPT.into_iter().filter_map(value_of).collect()
}

fn build(builder: impl Fn() -> reqwest::ClientBuilder) -> Result<reqwest::Client, EgressError> {
    let built = builder().build().or_else(|error| {
        tracing::error!(
            error = %chain(&error),
            "No certificate authorities were found on this machine, so no https endpoint can \
             be called; install the package ca-certificates",
        );
        builder().tls_certs_only([]).build()
    });
    built.map_err(|error| EgressError::Setup(error.into()))
}

/// With connections that stay open for a moment. One was checked when it was made, and leads where it led then. A request
/// that meets a connection in the act of closing fails, unless nothing of it was sent: then it takes another connection.
fn keeping(builder: reqwest::ClientBuilder) -> reqwest::ClientBuilder {
    builder
        .pool_max_idle_per_host(IDLE_CONNECTIONS_PER_HOST_MAX)
        .pool_idle_timeout(IDLE_TIMEOUT)
}

fn builder(guard: &Arc<GuardedResolver>) -> reqwest::ClientBuilder {
    reqwest::Client::builder()
        .user_agent(USER_AGENT)
        .dns_resolver(Arc::clone(guard))
        .redirect(reqwest::redirect::Policy::none())
        .retry(reqwest::retry::never())
        .referer(false)
        .no_proxy()
        .connect_timeout(guard.policy.connect_timeout)
        // Names of header fields are case-insensitive (RFC 9110 §5.1), but not to every small server out there.
        .http1_title_case_headers()
        // No idle connections: they are sockets that strangers could make us hold, and a POST that
        // meets a connection in the act of closing cannot be tried again safely.
        .pool_max_idle_per_host(0)
}

/// Makes `ring` the provider of TLS unless the process already has one.
fn install_tls_provider() {
    if CryptoProvider::get_default().is_none() && ring::default_provider().install_default().is_err() {
        tracing::debug!("Another part of the process installed a TLS provider first");
    }
}

/// A 2xx says that the far side has taken what was sent; nothing that its body does takes that back.
async fn read_answer(mut response: reqwest::Response, bytes_max: usize) -> Result<Answer, EgressError> {
    let status = response.status();
    let mut body = BytesMut::new();
    match read_body(&mut response, &mut body, bytes_max).await {
        Err(error) if !status.is_success() => Err(error),
        _ => Ok(Answer {
            status: status.as_u16(),
            body: body.freeze(),
        }),
    }
}

async fn read_body(
    response: &mut reqwest::Response,
    body: &mut BytesMut,
    bytes_max: usize,
) -> Result<(), EgressError> {
    let announced = response.content_length().unwrap_or(0);
    if usize::try_from(announced).map_or(true, |bytes| bytes > bytes_max) {
        return Err(EgressError::AnswerTooLarge { bytes_max });
    }
    while let Some(chunk) = response.chunk().await.map_err(classify)? {
        if body.len() + chunk.len() > bytes_max {
            return Err(EgressError::AnswerTooLarge { bytes_max });
        }
        body.extend_from_slice(&chunk);
    }
    Ok(())
}

/// Our own words for what reqwest reports; the URL is taken out, since it may hold a secret.
fn classify(error: reqwest::Error) -> EgressError {
    if let Some(refusal) = own_error(&error) {
        return refusal;
    }
    if error.is_timeout() {
        return EgressError::TimedOut;
    }
    let connect = error.is_connect();
    let error = Box::new(error.without_url());
    if connect {
        EgressError::ConnectFailed(error)
    } else {
        EgressError::Broken(error)
    }
}

/// The error that [`GuardedResolver`] gave, if the chain holds one.
fn own_error(error: &reqwest::Error) -> Option<EgressError> {
    let mut cause: Option<&(dyn Error + 'static)> = error.source();
    while let Some(current) = cause {
        match current.downcast_ref::<EgressError>() {
            Some(EgressError::AddressRefused(address)) => {
                return Some(EgressError::AddressRefused(*address));
            }
            Some(EgressError::AddressesTooMany) => return Some(EgressError::AddressesTooMany),
            Some(EgressError::NameUnresolved(_)) => return Some(EgressError::NameUnresolved(None)),
            _ => cause = current.source(),
        }
    }
    None
}

/// An error and its causes in one line.
fn chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(current) = cause {
        text.push_str(": ");
        text.push_str(&current.to_string());
        cause = current.source();
    }
    text
}

#[cfg(test)]
mod tests;
