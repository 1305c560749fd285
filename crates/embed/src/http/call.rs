//! One request to the server.

use std::fmt;
use std::time::Duration;

use aip_catalog::EmbedError;
use reqwest::header::{AUTHORIZATION, HeaderMap, HeaderValue, RETRY_AFTER};
use reqwest::{Response, StatusCode, Url};
use rustls::crypto::{CryptoProvider, ring};

use super::options::{HttpOptions, OptionsError};
use super::wire::{Garbled, Request, read, reason};
use crate::limits::{HTTP_CONNECT_TIMEOUT, HTTP_REFUSAL_BYTES_MAX, NUMBER_BYTES_MAX};

/// The server, and what is sent with each request.
pub(super) struct Server {
    http: reqwest::Client,
    url: Url,
    headers: HeaderMap,
    model: String,
    dimensions: usize,
    asked_dimensions: Option<usize>,
    timeout: Duration,
}

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.url)
    }
}

/// Why there are no vectors.
#[derive(Debug)]
pub(super) enum Failure {
    /// It may work later; perhaps the server said when.
    Later {
        reason: String,
        retry_after: Option<Duration>,
    },
    /// The request took too long; the same one would only take as long again.
    TimedOut,
    /// The server may take fewer texts, or shorter ones.
    TooMuch(String),
    /// The same request will fail again.
    Broken(String),
}

impl Failure {
    /// How long to wait before the next attempt: what the server asks for, or else what is usual. `None`: no attempt would help.
    pub(super) fn wait(&self, usual: Duration) -> Option<Duration> {
        match self {
            Self::Later { retry_after, .. } => Some(retry_after.unwrap_or(usual)),
            Self::TimedOut | Self::TooMuch(_) | Self::Broken(_) => None,
        }
    }

    /// Whether fewer texts at once may help.
    pub(super) fn is_about_size(&self) -> bool {
        matches!(self, Self::TimedOut | Self::TooMuch(_))
    }

    fn later(reason: impl fmt::Display) -> Self {
        Self::Later {
            reason: reason.to_string(),
            retry_after: None,
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TimedOut => f.write_str("it took too long"),
            Self::Later { reason, .. } | Self::TooMuch(reason) | Self::Broken(reason) => f.write_str(reason),
        }
    }
}

impl From<Failure> for EmbedError {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Later { .. } | Failure::TimedOut => Self::Unavailable(failure.to_string()),
            Failure::TooMuch(reason) | Failure::Broken(reason) => Self::Broken(reason),
        }
    }
}

impl Server {
    pub(super) fn new(options: &HttpOptions) -> Result<Self, OptionsError> {
        let url = options.url()?;
        let mut headers = HeaderMap::new();
        if let Some(key) = &options.key {
            let value = HeaderValue::from_str(&format!("Bearer {}", key.as_str()));
            let mut value = value.map_err(|_the_key| OptionsError::Key)?;
            value.set_sensitive(true);
            headers.insert(AUTHORIZATION, value);
        }
        Ok(Self {
            http: client(&url)?,
            url,
            headers,
            model: options.model.clone(),
            dimensions: options.dimensions,
            asked_dimensions: options.ask_dimensions.then_some(options.dimensions),
            timeout: options.timeout,
        })
    }

    /// Sends the texts once.
    pub(super) async fn call(&self, texts: &[String]) -> Result<Vec<Vec<f32>>, Failure> {
        let request = Request {
            model: &self.model,
            input: texts,
            encoding_format: "float",
            dimensions: self.asked_dimensions,
        };
        let request = self
            .http
            .post(self.url.clone())
            .headers(self.headers.clone())
            .timeout(self.timeout)
            .json(&request);
        let response = request.send().await.map_err(classify)?;
        if response.status() != StatusCode::OK {
            return Err(self.refused(response).await);
        }
        let bytes_max = 64 * 1024 + texts.len() * (self.dimensions * NUMBER_BYTES_MAX + 256);
        let body = body(response, bytes_max).await?;
        read(&body, texts.len(), self.dimensions).map_err(|garbled| match garbled {
            Garbled::Dimensions(found) => Failure::Broken(format!(
                "its vectors have {found} numbers, not {}",
                self.dimensions
            )),
            Garbled::Other(reason) => Failure::later(reason),
        })
    }

    /// What an answer other than 200 means.
    async fn refused(&self, response: Response) -> Failure {
        let status = response.status();
        let retry_after = retry_after(&response);
        let said = match status {
            // What is said about a key may hold the key.
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => None,
            _ => body(response, HTTP_REFUSAL_BYTES_MAX).await.ok(),
        };
        let said = said.and_then(|body| reason(&body));
        let reason = said.map_or_else(
            || format!("status {status}"),
            |said| format!("status {status}: {said}"),
        );
        match status.as_u16() {
            400 | 413 | 422 => Failure::TooMuch(reason),
            408 | 409 | 425 | 429 | 500.. => Failure::Later { reason, retry_after },
            300..400 => Failure::Broken(format!("{reason}; it leads elsewhere, and that way is not taken")),
            _ => Failure::Broken(reason),
        }
    }
}

/// Without redirects, proxies or a library's own retries. A machine without authorities can still call `http`.
fn client(url: &Url) -> Result<reqwest::Client, OptionsError> {
    if CryptoProvider::get_default().is_none() && ring::default_provider().install_default().is_err() {
        tracing::debug!("Another part of the process installed a TLS provider first");
    }
    let mut builder = reqwest::Client::builder()
        .user_agent(concat!("aip-hub/", env!("CARGO_PKG_VERSION")))
        .redirect(reqwest::redirect::Policy::none())
        .retry(reqwest::retry::never())
        .referer(false)
        .no_proxy()
        .connect_timeout(HTTP_CONNECT_TIMEOUT)
        .pool_max_idle_per_host(4);
    if url.scheme() == "http" {
        builder = builder.tls_certs_only([]);
    }
    builder
        .build()
        .map_err(|error| OptionsError::Client(error.without_url().to_string()))
}

/// The body, if it is no longer than that.
async fn body(mut response: Response, bytes_max: usize) -> Result<Vec<u8>, Failure> {
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(classify)? {
        if body.len() + chunk.len() > bytes_max {
            return Err(Failure::Broken(format!(
                "its answer is longer than {bytes_max} bytes"
            )));
        }
        body.extend_from_slice(&chunk);
    }
    Ok(body)
}

/// The form in seconds (RFC 9110 §10.2.3); the one with a date would need a clock that both sides share.
fn retry_after(response: &Response) -> Option<Duration> {
    let value = response.headers().get(RETRY_AFTER)?.to_str().ok()?;
    value.trim().parse().ok().map(Duration::from_secs)
}

/// What went wrong on the way. The URL is left out: the error says enough without it.
fn classify(error: reqwest::Error) -> Failure {
    if error.is_timeout() {
        return Failure::TimedOut;
    }
    let error = error.without_url();
    let mut reason = error.to_string();
    let mut source = std::error::Error::source(&error);
    while let Some(cause) = source {
        reason = format!("{reason}: {cause}");
        source = cause.source();
    }
    Failure::later(reason)
}
