//! Speaks to the running hub of a data folder, through the operator's door.

use std::io::ErrorKind;
use std::time::Duration;

use anyhow::{Context as _, anyhow, bail};
use rand::rngs::SysRng;
use rand_core::UnwrapErr;
use reqwest::{Method, RequestBuilder, StatusCode};
use serde_json::Value;

use crate::config::{Secret, Settings};
use crate::datadir::{self, DataDir};

/// Time for an ordinary call.
const CALL_TIMEOUT: Duration = Duration::from_secs(30);
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// A running hub, as its operator reaches it.
#[derive(Debug)]
pub(super) struct Operator {
    http: reqwest::Client,
    url: String,
    token: Secret,
}

impl Operator {
    /// The hub that runs on `folder`; `None` when none has said so. Whether it still runs shows at the first call.
    pub(super) fn of(settings: &Settings, folder: &DataDir) -> anyhow::Result<Option<Self>> {
        let url = match datadir::read_small(&folder.operator_url_file()) {
            Ok(url) => url.trim().to_owned(),
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error).context("cannot read operator.url in the data folder"),
        };
        let token = if settings.http.operator_token.is_empty() {
            folder.operator_token(&mut UnwrapErr(SysRng))?
        } else {
            settings.http.operator_token.clone()
        };
        Ok(Some(Self {
            http: client()?,
            url,
            token,
        }))
    }

    /// The hub that runs on `folder`.
    pub(super) fn running(settings: &Settings, folder: &DataDir) -> anyhow::Result<Self> {
        Self::of(settings, folder)?.ok_or_else(|| {
            anyhow!(
                "no hub runs on {}; start one with `aip-hub serve`, or name its folder with --data",
                folder.root().display()
            )
        })
    }

    /// Whether the hub is ready, and what it says about itself.
    pub(super) async fn ready(&self) -> anyhow::Result<(bool, String)> {
        let answer = self
            .request(Method::GET, "/health/ready")
            .send()
            .await
            .with_context(|| self.unreachable())?;
        let ready = answer.status() == StatusCode::OK;
        Ok((ready, answer.text().await.unwrap_or_default()))
    }

    /// Reads.
    pub(super) async fn get(&self, path: &str) -> anyhow::Result<Value> {
        self.answer(self.request(Method::GET, path)).await
    }

    /// Changes something.
    pub(super) async fn call(&self, method: Method, path: &str, body: &Value) -> anyhow::Result<Value> {
        self.answer(self.request(method, path).json(body)).await
    }

    /// Removes something.
    pub(super) async fn delete(&self, path: &str) -> anyhow::Result<()> {
        self.answer(self.request(Method::DELETE, path)).await.map(drop)
    }

    /// A call that takes as long as it takes: a backup of large stores.
    pub(super) async fn call_slowly(
        &self,
        path: &str,
        body: &Value,
        within: Duration,
    ) -> anyhow::Result<Value> {
        self.answer(self.request(Method::POST, path).json(body).timeout(within))
            .await
    }

    fn request(&self, method: Method, path: &str) -> RequestBuilder {
        self.http
            .request(method, format!("{}{path}", self.url))
            .bearer_auth(self.token.reveal())
    }

    async fn answer(&self, request: RequestBuilder) -> anyhow::Result<Value> {
        let answer = request.send().await.with_context(|| self.unreachable())?;
        let status = answer.status();
        let text = answer.text().await.context("the hub broke off its answer")?;
        if status.is_success() && text.is_empty() {
            return Ok(Value::Null);
        }
        let body: Value =
            serde_json::from_str(&text).with_context(|| format!("the hub answered {status} without JSON"))?;
        if status.is_success() {
            return Ok(body);
        }
        let words = body
            .get("detail")
            .and_then(Value::as_str)
            .unwrap_or("no reason given");
        let code = body.get("code").and_then(Value::as_str).unwrap_or("unknown");
        bail!("the hub refuses ({code}): {words}")
    }

    fn unreachable(&self) -> String {
        format!(
            "no hub answers at {}; is it running? `aip-hub doctor` tells more",
            self.url
        )
    }
}

/// A client for addresses that the operator wrote down, never for one that a stranger chose.
pub(super) fn client() -> anyhow::Result<reqwest::Client> {
    if rustls::crypto::CryptoProvider::get_default().is_none() {
        // Another thread may have come first, with the same provider.
        drop(rustls::crypto::ring::default_provider().install_default());
    }
    reqwest::Client::builder()
        .no_proxy()
        .redirect(reqwest::redirect::Policy::none())
        .connect_timeout(CONNECT_TIMEOUT)
        .timeout(CALL_TIMEOUT)
        .build()
        .context("the HTTP client cannot be set up")
}

/// Runs a command that speaks to a hub.
pub(super) fn block_on<T>(command: impl Future<Output = anyhow::Result<T>>) -> anyhow::Result<T> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("the runtime cannot be set up")?
        .block_on(command)
}
