//! A hub with a market on it, as a test sees it from outside: who sells, who pays, and whether the books are right.

use std::path::{Path, PathBuf};
use std::time::Duration;

use aip_client::Client;
use aip_client::protocol::json::{Json, Object};
use aip_client::protocol::listing::{ListingKind, Offer};
use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use crate::raw::{Answer, Request, ask};
use crate::{HubOptions, TestHub};

/// Ends a wait that would never end.
const PATIENCE: Duration = Duration::from_mins(1);
/// Looks in between.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// The path that calls are made at.
pub const INVOKE: &str = "/ai-market/v2/invoke";

/// The Python that has the public clients of the market's protocol: what `AIP_MARKET_PYTHON` names, else what
/// `scripts/setup test` installed. `None` where there is none, and then the reason is printed.
#[must_use]
#[expect(clippy::print_stdout, reason = "a test that is skipped says why")]
pub fn market_python() -> Option<PathBuf> {
    let installed = Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/market/venv/bin/python");
    let named = std::env::var_os("AIP_MARKET_PYTHON").map(PathBuf::from);
    let found = named.or_else(|| installed.exists().then_some(installed));
    if found.is_none() {
        println!("skipped: the market's public clients are missing; scripts/setup test installs them");
    }
    found
}

/// A hub with these settings of its market; in the others the limits that a test under load would meet are off, and searches go
/// by text alone, so that what is found first does not depend on when a model has read it.
#[must_use]
pub fn settings(market: &str) -> HubOptions {
    HubOptions {
        config: Some(format!("[search]\nmodels = []\n[market]\n{market}\n")),
        ..HubOptions::default()
    }
}

/// A capability that anybody may call, with `{"url"}` as its provider. `price` is in US dollars; `None`: it is free.
///
/// # Panics
/// When `more` is no object without floats.
#[must_use]
pub fn capability(id: &str, price: Option<&str>, url: &str, more: &Value) -> Offer {
    listed(id, price, &json!({ "url": url }), more)
}

/// The same with any `invoke`.
///
/// # Panics
/// When `invoke` or `more` is no object without floats.
#[must_use]
pub fn listed(id: &str, price: Option<&str>, invoke: &Value, more: &Value) -> Offer {
    let mut extra = object(more);
    extra.insert("invoke", json_of(invoke));
    Offer {
        description: format!("What {id} does."),
        price: price.map(str::to_owned),
        currency: price.map(|_| "USD".to_owned()),
        attributes: Object::from([("capability_id", id.into())]),
        extra,
        ..Offer::new(ListingKind::Capability, id, id)
    }
}

fn json_of(value: &Value) -> Json {
    match Json::parse(value.to_string().as_bytes()) {
        Ok(json) => json,
        Err(refusal) => panic!("{value}: {refusal}"),
    }
}

fn object(value: &Value) -> Object {
    match json_of(value) {
        Json::Object(object) => object,
        other => panic!("{other} is no object"),
    }
}

/// What is in the manifest now: the ids of its capabilities, in its order.
pub async fn sold(hub: &TestHub) -> Vec<String> {
    let manifest = ask(hub.url(), &Request::get("/ai-market/v2/manifest"))
        .await
        .json();
    let tools = manifest.get("tools").and_then(Value::as_array);
    let ids = tools
        .into_iter()
        .flatten()
        .filter_map(|tool| tool.get("capability_id"));
    ids.filter_map(Value::as_str).map(str::to_owned).collect()
}

/// Returns when so many capabilities are sold.
///
/// # Panics
/// When that does not happen.
pub async fn until_sold(hub: &TestHub, count: usize) {
    let looking = async {
        while sold(hub).await.len() != count {
            tokio::time::sleep(LOOK_EVERY).await;
        }
    };
    let in_time = tokio::time::timeout(PATIENCE, looking).await.is_ok();
    assert!(in_time, "{count} were to be sold, not {:?}", sold(hub).await);
}

/// Publishes, and returns when all of it is sold.
///
/// # Errors
/// What the hub says.
///
/// # Panics
/// When it is not sold.
pub async fn sell(hub: &TestHub, seller: &Client, offers: &[Offer]) -> Result<()> {
    let before = sold(hub).await.len();
    for offer in offers {
        seller.publish_listing(offer).await?;
    }
    until_sold(hub, before + offers.len()).await;
    Ok(())
}

/// What pays for a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Purse {
    /// Nobody.
    Empty,
    /// A key of an account.
    Key(String),
    /// A channel and its secret.
    Channel(String, String),
}

impl Purse {
    /// The request with the header fields of this purse.
    #[must_use]
    pub fn on(&self, request: Request) -> Request {
        match self {
            Self::Empty => request,
            Self::Key(key) => request.field("X-API-Key", key),
            Self::Channel(id, secret) => request
                .field("X-Payment-Channel", id)
                .field("X-Payment-Channel-Secret", secret),
        }
    }
}

/// A call of a capability of `product`.
#[must_use]
pub fn call(product: &str, capability: &str, input: &Value) -> Request {
    let body = json!({ "product_id": product, "capability_id": capability, "input": input });
    Request::post(INVOKE, body.to_string())
}

/// An account that the operator made and gave so much, in dollars; its id and its key.
///
/// # Errors
/// The operator's door says no.
pub async fn account(hub: &TestHub, dollars: &str) -> Result<(String, Purse)> {
    let body = json!({ "label": "a test", "grant": dollars }).to_string();
    let made = hub.operate(Request::post("/admin/accounts", body)).await;
    ensure!(made.status == 201, "{}", made.text());
    let made = made.json();
    let member = |name: &str| made.get(name).and_then(Value::as_str).map(str::to_owned);
    let id = member("account_id").context("no account_id")?;
    Ok((id, Purse::Key(member("api_key").context("no api_key")?)))
}

/// A channel with so many dollars in it, paid by `purse`, or by nobody.
///
/// # Errors
/// The hub says no.
pub async fn channel(hub: &TestHub, purse: &Purse, dollars: f64) -> Result<Purse> {
    let body = json!({ "deposit_usd": dollars }).to_string();
    let opened = purse.on(Request::post("/ai-market/v2/channel/open", body));
    let opened = ask(hub.url(), &opened).await;
    ensure!(opened.status == 200, "{}", opened.text());
    let opened = opened.json();
    let member = |name: &str| {
        let text = opened.get("channel")?.get(name)?.as_str()?;
        Some(text.to_owned())
    };
    let id = member("channel_id").context("no channel_id")?;
    Ok(Purse::Channel(
        id,
        member("channel_secret").context("no channel_secret")?,
    ))
}

/// A number of dollars as millionths. Panics where it is not a whole number of them: nothing on the wire is.
///
/// # Panics
/// When it is no number, or not whole.
#[must_use]
#[expect(
    clippy::cast_possible_truncation,
    reason = "it was rounded, and amounts of tests are small"
)]
pub fn micros(dollars: &Value) -> i64 {
    let Some(number) = dollars.as_f64() else {
        panic!("{dollars} is no number of dollars");
    };
    let micros = (number * 1e6).round();
    assert!(
        (micros / 1e6).to_bits() == number.to_bits() || number == 0.0,
        "{number} is not the number nearest to a whole number of millionths"
    );
    micros as i64
}

/// What is in a purse: its free balance and what is held, in millionths.
///
/// # Errors
/// The hub does not know it.
pub async fn purse(hub: &TestHub, purse: &Purse) -> Result<(i64, i64)> {
    let (request, member) = match purse {
        Purse::Key(_) => (Request::get("/ai-market/v2/account"), None),
        Purse::Channel(id, _) => (
            Request::get(format!("/ai-market/v2/channel/{id}")),
            Some("channel"),
        ),
        Purse::Empty => return Ok((0, 0)),
    };
    let answer: Answer = ask(hub.url(), &purse.on(request)).await;
    ensure!(answer.status == 200, "{}", answer.text());
    let answer = answer.json();
    let found = member.map_or(Some(&answer), |member| answer.get(member));
    let found = found.context("nothing about the purse")?;
    let amount = |name: &str| found.get(name).map(micros).with_context(|| format!("no {name}"));
    Ok((amount("balance_usd")?, amount("held_usd")?))
}

/// What the books say in all, in millionths, by name. The operator's door makes the sum; this checks it again.
///
/// # Errors
/// The operator's door says no, or the books do not balance.
pub async fn books(hub: &TestHub) -> Result<Books> {
    books_in(&hub.operate(Request::get("/admin/market")).await)
}

/// The same out of what the operator's door answered.
///
/// # Errors
/// The operator's door says no, or the books do not balance.
pub fn books_in(answer: &Answer) -> Result<Books> {
    ensure!(answer.status == 200, "{}", answer.text());
    let answer = answer.json();
    let amount = |name: &str| {
        let text = answer.get(name).and_then(Value::as_str);
        text.and_then(decimal)
            .with_context(|| format!("no {name} in {answer}"))
    };
    let books = Books {
        credited: amount("credited")?,
        demo: amount("demo")?,
        balances: amount("balances")?,
        held: amount("held")?,
        channels: amount("channels")?,
        earned: amount("earned")?,
        paid_out: amount("paid_out")?,
        fees: amount("fees")?,
        demo_returned: amount("demo_returned")?,
        paid_directly: amount("paid_directly")?,
    };
    ensure!(books.balance(), "the books do not balance: {books:?}");
    Ok(books)
}

/// The sum of everything, in millionths of a dollar.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names are those of the market's own books")]
pub struct Books {
    pub credited: i64,
    pub demo: i64,
    pub balances: i64,
    pub held: i64,
    pub channels: i64,
    pub earned: i64,
    pub paid_out: i64,
    pub fees: i64,
    pub demo_returned: i64,
    pub paid_directly: i64,
}

impl Books {
    /// Whether nothing was made or lost.
    #[must_use]
    pub fn balance(&self) -> bool {
        let kept = self.balances + self.held + self.channels + self.earned + self.fees + self.demo_returned;
        self.credited + self.demo == kept && self.paid_out <= self.earned
    }
}

/// `12.5` as millionths.
fn decimal(text: &str) -> Option<i64> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, "0"));
    let fraction = format!("{fraction:0<6}");
    if fraction.len() != 6 {
        return None;
    }
    Some(whole.parse::<i64>().ok()? * 1_000_000 + fraction.parse::<i64>().ok()?)
}
