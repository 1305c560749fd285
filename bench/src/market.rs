//! A market to be called: our hub with a capability that costs nothing and one that does, and who pays for it.

use std::fmt;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use bytes::Bytes;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::agents::Crowd;
use crate::hub::Hub;
use crate::load::{self, Connection, Requests};
use crate::process::free_port;

/// Where a market is called.
const INVOKE: &str = "/ai-market/v2/invoke";

/// What a call costs, in US dollars.
const PRICE: &str = "0.0001";

/// The same in millionths.
pub(crate) const PRICE_MICROS: i64 = 100;

/// What pays for all rounds.
const GRANT: &str = "100000";
const DEPOSIT_USD: f64 = 10_000.0;

/// How long it may take until what was published can be called.
const PATIENCE: Duration = Duration::from_secs(30);

/// Models do not read what is sold while calls are measured.
const SETTINGS: &str = "[search]\nmodels = []\n[market]\ndemo_credit = true\n";

/// How a call is paid.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Way {
    /// It costs nothing.
    Free,
    /// By the key of an account.
    Key,
    /// From a channel.
    Channel,
}

impl Way {
    /// All of them.
    pub(crate) const ALL: [Self; 3] = [Self::Free, Self::Key, Self::Channel];
}

/// What pays, the same at both hubs. It is gone with the hub.
#[derive(Clone, Deserialize)]
pub(crate) struct Purses {
    key: String,
    channel: String,
    secret: String,
}

impl fmt::Debug for Purses {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Purses").finish_non_exhaustive()
    }
}

/// What a provider is given.
fn input() -> Value {
    json!({ "text": "A sentence that comes back as it is.", "count": 3 })
}

/// A call of a market.
pub(crate) fn call(way: Way, purses: &Purses) -> Bytes {
    let (capability, lines) = match way {
        Way::Free => ("free@v1", String::new()),
        Way::Key => ("paid@v1", format!("X-API-Key: {}\r\n", purses.key)),
        Way::Channel => ("paid@v1", channel_lines(&purses.channel, &purses.secret)),
    };
    let body = json!({ "product_id": "bench", "capability_id": capability, "input": input() });
    load::post_with(INVOKE, "application/json", &lines, body.to_string().as_bytes())
}

/// The same calls again and again.
pub(crate) fn calls(way: Way, purses: &Purses) -> Requests {
    Requests::repeated(vec![call(way, purses)])
}

/// The call that a market makes, past the market.
pub(crate) fn direct() -> Requests {
    let body = json!({ "product_id": "bench", "capability_id": "free@v1", "input": input() });
    let call = load::post("/invoke", "application/json", body.to_string().as_bytes());
    Requests::repeated(vec![call])
}

fn channel_lines(channel: &str, secret: &str) -> String {
    format!("X-Payment-Channel: {channel}\r\nX-Payment-Channel-Secret: {secret}\r\n")
}

/// Our hub with a seller.
#[derive(Debug)]
pub(crate) struct Shop {
    hub: Hub,
    /// What pays.
    pub(crate) purses: Purses,
}

impl Shop {
    /// Opens it on a folder; both capabilities are done at `provider`.
    pub(crate) async fn open(folder: &Path, provider: &str) -> anyhow::Result<Self> {
        let hub = Hub::start_with(folder, free_port()?, SETTINGS)?;
        publish(&hub, folder, provider).await?;
        let account = hub
            .operate(
                folder,
                "POST /admin/accounts",
                &json!({ "label": "bench", "grant": GRANT }),
            )
            .await?;
        let key = text(&account, "/api_key")?;
        let mut shop = Self {
            hub,
            purses: Purses {
                key,
                channel: String::new(),
                secret: String::new(),
            },
        };
        (shop.purses.channel, shop.purses.secret) = shop.channel(DEPOSIT_USD).await?;
        shop.until_sold().await?;
        Ok(shop)
    }

    /// The port of its hub.
    pub(crate) fn port(&self) -> u16 {
        self.hub.port
    }

    /// The process of its hub.
    pub(crate) fn pid(&self) -> u32 {
        self.hub.pid()
    }

    /// The same purses with a channel of its own that holds so much.
    pub(crate) async fn with_channel(&self, dollars: f64) -> anyhow::Result<Purses> {
        let (channel, secret) = self.channel(dollars).await?;
        Ok(Purses {
            key: self.purses.key.clone(),
            channel,
            secret,
        })
    }

    async fn channel(&self, dollars: f64) -> anyhow::Result<(String, String)> {
        let body = json!({ "deposit_usd": dollars }).to_string();
        let lines = format!("X-API-Key: {}\r\n", self.purses.key);
        let path = "/ai-market/v2/channel/open";
        let request = load::post_with(path, "application/json", &lines, body.as_bytes());
        let opened = Connection::open(self.port()).await?.call(&request).await?;
        let opened = serde_json::from_slice(&opened)?;
        Ok((
            text(&opened, "/channel/channel_id")?,
            text(&opened, "/channel/channel_secret")?,
        ))
    }

    /// What is in the channel of these purses and what is held of it, in millionths.
    pub(crate) async fn left(&self, purses: &Purses) -> anyhow::Result<(i64, i64)> {
        let lines = channel_lines(&purses.channel, &purses.secret);
        let path = format!("/ai-market/v2/channel/{}", purses.channel);
        let request = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n{lines}\r\n");
        let told = Connection::open(self.port())
            .await?
            .call(request.as_bytes())
            .await?;
        let told: Value = serde_json::from_slice(&told)?;
        Ok((
            micros(&told, "/channel/balance_usd")?,
            micros(&told, "/channel/held_usd")?,
        ))
    }

    async fn until_sold(&self) -> anyhow::Result<()> {
        let begun = Instant::now();
        let mut connection = Connection::open(self.port()).await?;
        for way in Way::ALL {
            let request = call(way, &self.purses);
            loop {
                let (status, body) = connection.exchange(&request).await?;
                if status == 200 {
                    break;
                }
                let told = String::from_utf8_lossy(&body);
                ensure!(begun.elapsed() < PATIENCE, "{way:?} is not sold: {told}");
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        }
        Ok(())
    }
}

/// Hands both capabilities in, in the name of one agent.
async fn publish(hub: &Hub, folder: &Path, provider: &str) -> anyhow::Result<()> {
    let crowd = Crowd::register(hub.port, &hub.domain, "market", 1, &[7; 32]).await?;
    let agent = crowd.agents.first().context("one agent")?.did.to_string();
    let key = hub.provider(folder, &agent)?;
    let row = |capability: &str, price: &str| {
        json!({
            "listing_id": capability, "kind": "capability", "name": capability, "description": "Answers with its input.",
            "attributes": { "product_id": "bench", "capability_id": capability },
            "price": price, "currency": "USD", "invoke": { "url": provider },
        })
    };
    let rows = format!("{}\n{}\n", row("free@v1", "0"), row("paid@v1", PRICE));
    let lines = format!("Authorization: Bearer {key}\r\n");
    let path = "/api/v1/ingest/listings";
    let request = load::post_with(path, "application/x-ndjson", &lines, rows.as_bytes());
    Connection::open(hub.port).await?.call(&request).await?;
    Ok(())
}

fn text(value: &Value, at: &str) -> anyhow::Result<String> {
    let found = value.pointer(at).and_then(Value::as_str);
    Ok(found.with_context(|| format!("no {at} in an answer"))?.to_owned())
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "it was rounded, and amounts of a benchmark are small"
)]
fn micros(value: &Value, at: &str) -> anyhow::Result<i64> {
    let dollars = value.pointer(at).and_then(Value::as_f64);
    let dollars = dollars.with_context(|| format!("no {at} in an answer"))?;
    Ok((dollars * 1e6).round() as i64)
}
