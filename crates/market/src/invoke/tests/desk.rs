//! A market with one seller, whose provider does as it is told.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use aip_protocol::clock::{Clock as _, ManualClock};
use aip_protocol::market::receipt::{self, Expected};
use aip_protocol::market::{Value as MarketValue, Verdict};
use aip_protocol::multikey::SigningKey;
use aip_protocol::name::Did;
use aip_protocol::time::Timestamp;
use async_trait::async_trait;
use bytes::Bytes;
use rand::SeedableRng as _;
use rand::rngs::StdRng;
use serde_json::{Value, json};
use tokio::sync::Semaphore;
use uuid::Uuid;

use super::faulty::Faulty;
use super::hubs::Hubs;
use crate::invoke::{InvokeCall, InvokeHeaders};
use crate::market::{Market, MarketConfig, Seams};
use crate::money::Usd;
use crate::offer::{Asked, FreeTier, Offer, Offers, Source, Way};
use crate::provider::{ProviderCall, ProviderError, Providers};
use crate::schema::Schema;
use crate::store::{
    Accounts as _, Channel, ChannelId, Channels as _, Created, Earnings as _, Funding, NewAccount,
    NewChannel, Opened, Totals,
};

/// What the provider does.
#[derive(Debug, Clone)]
pub(super) enum Does {
    /// Gives back its input.
    Echo,
    /// Answers this.
    Result(Value),
    /// Answers that it has nothing.
    Fail(ProviderError),
    /// Works until there is a permit.
    Wait(Arc<Semaphore>),
    /// Never ends.
    Hang,
    /// Breaks.
    Panic,
}

#[derive(Debug)]
pub(super) struct Provider {
    does: Mutex<Does>,
    pub(super) calls: AtomicUsize,
    /// The id of the last call.
    pub(super) last: Mutex<Option<Uuid>>,
    /// The last call.
    pub(super) seen: Mutex<Option<ProviderCall>>,
}

#[async_trait]
impl Providers for Provider {
    async fn call(&self, _offer: &Offer, call: ProviderCall) -> Result<Value, ProviderError> {
        self.calls.fetch_add(1, Ordering::SeqCst);
        *self.last.lock().unwrap() = Some(call.id);
        *self.seen.lock().unwrap() = Some(call.clone());
        let does = self.does.lock().unwrap().clone();
        match does {
            Does::Echo => Ok(call.input),
            Does::Result(result) => Ok(result),
            Does::Fail(error) => Err(error),
            Does::Wait(gate) => {
                gate.acquire().await.unwrap().forget();
                Ok(call.input)
            }
            Does::Hang => std::future::pending().await,
            Does::Panic => panic!("the provider's client breaks"),
        }
    }
}

#[derive(Debug)]
pub(super) struct Shelf(Mutex<Vec<Arc<Offer>>>);

impl Offers for Shelf {
    fn find(&self, asked: &Asked<'_>) -> Option<Arc<Offer>> {
        let offers = self.0.lock().unwrap();
        let is_asked = |offer: &&Arc<Offer>| {
            (
                offer.product_id.as_str(),
                offer.capability_id.as_str(),
                offer.source.hub(),
            ) == (asked.product_id, asked.capability_id, asked.hub)
        };
        offers.iter().find(is_asked).cloned()
    }

    fn hubs_of(&self, product_id: &str, capability_id: &str) -> Vec<String> {
        let offers = self.0.lock().unwrap();
        let with_ids = |offer: &&Arc<Offer>| {
            (offer.product_id.as_str(), offer.capability_id.as_str()) == (product_id, capability_id)
        };
        let hubs = offers
            .iter()
            .filter(with_ids)
            .map(|offer| offer.source.hub().unwrap_or("local"));
        hubs.map(str::to_owned).collect()
    }
}

pub(super) fn usd(text: &str) -> Usd {
    Usd::parse(text).unwrap()
}

/// `prod` `echo@v1` for 0.01, by message, of any object.
pub(super) fn offer() -> Offer {
    Offer {
        id: "lst_1".to_owned(),
        agent: seller(),
        source: Source::Local,
        product_id: "prod".to_owned(),
        capability_id: "echo@v1".to_owned(),
        version: 1,
        name: "Echo".to_owned(),
        description: String::new(),
        category: None,
        price: usd("0.01"),
        input_schema: None,
        output_schema: None,
        way: Some(Way::Relay),
        timeout: None,
        free_tier: None,
        provider_key: None,
        payout: None,
        notes: crate::offer::Notes::default(),
    }
}

pub(super) fn seller() -> Did {
    Did::parse("did:aip:hub.example:seller").unwrap()
}

pub(super) fn schema(value: Value) -> Schema {
    Schema::new(value).unwrap()
}

pub(super) fn tier(field: &str, max: f64) -> FreeTier {
    FreeTier {
        field: field.to_owned(),
        max,
    }
}

/// Everything of one market.
pub(super) struct Desk {
    pub(super) market: Arc<Market>,
    pub(super) store: Arc<Faulty>,
    pub(super) clock: Arc<ManualClock>,
    pub(super) provider: Arc<Provider>,
    pub(super) shelf: Arc<Shelf>,
    /// The other hubs that are known, and what they do.
    pub(super) hubs: Arc<Hubs>,
    key: SigningKey,
}

pub(super) fn config() -> MarketConfig {
    MarketConfig {
        domain: "hub.example".to_owned(),
        base_url: "https://hub.example".to_owned(),
        trials_per_visitor: 0,
        fee_bps: 0,
        routing_fee_bps: 0,
        provider_timeout: Duration::from_mins(1),
        open_signup: false,
        demo_credit: false,
        holder: Uuid::from_u128(7),
    }
}

impl Desk {
    pub(super) fn new() -> Self {
        Self::with(config())
    }

    pub(super) fn with(config: MarketConfig) -> Self {
        let store = Arc::new(Faulty::default());
        let clock = Arc::new(ManualClock::new(Timestamp::from_unix_secs(1_800_000_000)));
        let provider = Arc::new(Provider {
            does: Mutex::new(Does::Echo),
            calls: AtomicUsize::new(0),
            last: Mutex::new(None),
            seen: Mutex::new(None),
        });
        let shelf = Arc::new(Shelf(Mutex::new(vec![Arc::new(offer())])));
        let hubs = Arc::new(Hubs::default());
        let key = SigningKey::from_seed([9; 32]);
        let seams = Seams {
            store: Arc::clone(&store) as _,
            offers: Arc::clone(&shelf) as _,
            providers: Arc::clone(&provider) as _,
            peers: Arc::clone(&hubs) as _,
            hubs: Arc::clone(&hubs) as _,
            x402: None,
            clock: Arc::clone(&clock) as _,
            key: key.clone(),
        };
        Self {
            market: Market::new(config, seams, rng(1)),
            store,
            clock,
            provider,
            shelf,
            hubs,
            key,
        }
    }

    /// Another process over the same store.
    pub(super) fn another(&self, config: MarketConfig, seed: u64) -> Arc<Market> {
        Market::new(config, self.market.seams.clone(), rng(seed))
    }

    /// Sells this instead.
    pub(super) fn sell(&self, change: impl FnOnce(&mut Offer)) {
        let mut offer = offer();
        change(&mut offer);
        self.shelve(vec![offer]);
    }

    /// Sells these instead.
    pub(super) fn shelve(&self, offers: Vec<Offer>) {
        *self.shelf.0.lock().unwrap() = offers.into_iter().map(Arc::new).collect();
    }

    pub(super) fn does(&self, does: Does) {
        *self.provider.does.lock().unwrap() = does;
    }

    pub(super) fn calls(&self) -> usize {
        self.provider.calls.load(Ordering::SeqCst)
    }

    /// An account with so much, and the key to it.
    pub(super) async fn account(&self, grant: &str, key_budget: Option<&str>) -> String {
        let (key, secret) = self.market.draw_key("test".to_owned(), key_budget.map(usd));
        let new = NewAccount {
            id: self.market.draw_account(),
            label: "test".to_owned(),
            owner: None,
            budget: None,
            grant: usd(grant),
            key,
        };
        let created = self.store.create_account(new, self.clock.now()).await.unwrap();
        assert_eq!(created, Created::Made);
        secret.expose().to_owned()
    }

    pub(super) async fn balance(&self, key: &str) -> Usd {
        self.market.account_of_key(key).await.unwrap().1.balance
    }

    /// A channel with so much, and its secret.
    pub(super) async fn channel(&self, deposit: &str) -> (ChannelId, String) {
        let (id, secret) = self.market.draw_channel();
        let new = NewChannel {
            id: id.clone(),
            secret_hash: secret.hash(),
            funding: Funding::Demo,
            deposit: usd(deposit),
            expires_at: self.clock.now() + Duration::from_hours(24),
        };
        let opened = self.store.open_channel(new, self.clock.now()).await.unwrap();
        assert!(matches!(opened, Opened::Done(_)), "{opened:?}");
        (id, secret.expose().to_owned())
    }

    pub(super) async fn channel_now(&self, id: &ChannelId) -> Channel {
        self.store.channel(id).await.unwrap().unwrap()
    }

    /// Invokes with these headers; the status and the body.
    pub(super) async fn invoke(&self, headers: InvokeHeaders, body: Value) -> (u16, Value) {
        let (status, body, _) = self.invoke_on(&self.market, headers, body).await;
        (status, body)
    }

    /// The same, and whether it is a repetition.
    pub(super) async fn invoke_on(
        &self,
        market: &Arc<Market>,
        headers: InvokeHeaders,
        body: Value,
    ) -> (u16, Value, bool) {
        answer(market, call(headers, &body)).await
    }

    pub(super) async fn totals(&self) -> Totals {
        let totals = self.store.totals().await.unwrap();
        assert!(totals.balance(), "{totals:?}");
        totals
    }

    /// Whether this receipt is the hub's, and about a call of `prod` `echo@v1` at this price.
    pub(super) fn is_receipt(&self, receipt: &Value, price: &str) -> bool {
        let receipt = MarketValue::parse(receipt.to_string().as_bytes()).unwrap();
        let expected = Expected {
            capability_id: Some("echo@v1"),
            product_id: Some("prod"),
            price_micros: Some(usd(price).micros()),
        };
        let check = receipt::verify(&receipt, &[self.key.public().clone()], &expected);
        check.verdict == Verdict::True
    }
}

fn rng(seed: u64) -> Box<StdRng> {
    Box::new(StdRng::seed_from_u64(seed))
}

pub(super) fn call(headers: InvokeHeaders, body: &Value) -> InvokeCall {
    InvokeCall {
        headers,
        body: Bytes::from(body.to_string()),
        network: "192.0.2.1".to_owned(),
    }
}

/// The status, the body, and whether it is a repetition.
pub(super) async fn answer(market: &Arc<Market>, call: InvokeCall) -> (u16, Value, bool) {
    match market.invoke(call).await.answer {
        Ok(invoked) => {
            let body = serde_json::from_slice(&invoked.body).unwrap();
            (invoked.status, body, invoked.replayed)
        }
        Err(error) => {
            let refusal = error.into_refusal();
            (refusal.code.status(), refusal.body(), false)
        }
    }
}

/// A call of `prod` `echo@v1` with this input.
pub(super) fn ask(input: Value) -> Value {
    let mut body = json!({ "product_id": "prod", "capability_id": "echo@v1" });
    body["input"] = input;
    body
}

pub(super) fn nothing() -> InvokeHeaders {
    InvokeHeaders::default()
}

pub(super) fn by_key(key: &str) -> InvokeHeaders {
    InvokeHeaders {
        api_key: Some(key.to_owned()),
        ..nothing()
    }
}

pub(super) fn by_channel(channel: &(ChannelId, String)) -> InvokeHeaders {
    InvokeHeaders {
        channel: Some(channel.0.0.clone()),
        channel_secret: Some(channel.1.clone()),
        ..nothing()
    }
}

pub(super) fn by_visitor(visitor: &str) -> InvokeHeaders {
    InvokeHeaders {
        visitor: Some(visitor.to_owned()),
        ..nothing()
    }
}

pub(super) fn once(key: &str, headers: InvokeHeaders) -> InvokeHeaders {
    InvokeHeaders {
        idempotency_key: Some(key.to_owned()),
        ..headers
    }
}
