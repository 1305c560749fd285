//! One call of a capability, and what it is paid from.

use std::time::Duration;

use serde_json::{Map, Value, json};

use super::amount::Amount;
use super::payment::SignedPayment;
use super::secret::{ApiKey, ChannelKey};
use crate::limits::INVOKE_TIMEOUT;

/// A call of a capability, as search results name it.
#[derive(Debug, Clone)]
pub struct Call {
    pub(crate) product_id: String,
    pub(crate) capability_id: String,
    pub(crate) source_hub: Option<String>,
    pub(crate) input: Map<String, Value>,
    pub(crate) price_max: Option<Amount>,
    pub(crate) idempotency_key: Option<String>,
    pub(crate) timeout: Duration,
}

impl Call {
    /// A call with this input.
    pub fn new(
        product_id: impl Into<String>,
        capability_id: impl Into<String>,
        input: Map<String, Value>,
    ) -> Self {
        Self {
            product_id: product_id.into(),
            capability_id: capability_id.into(),
            source_hub: None,
            input,
            price_max: None,
            idempotency_key: None,
            timeout: INVOKE_TIMEOUT,
        }
    }

    /// At which other hub it is sold, as search results name it (`source_hub`): the hub that is asked calls that one. What it
    /// attests is checked with that hub's key.
    #[must_use]
    pub fn source_hub(mut self, hub: impl Into<String>) -> Self {
        let hub = hub.into();
        self.source_hub = (hub != "local").then_some(hub);
        self
    }

    /// What it may cost at most. A hub that asks for more refuses the call (`price_limit_exceeded`) before anything is paid.
    #[must_use]
    pub fn price_max(mut self, amount: Amount) -> Self {
        self.price_max = Some(amount);
        self
    }

    /// What makes two calls one: 8 to 128 printable ASCII characters. The same call again under the same key is answered
    /// and not paid twice. One is drawn where none is given.
    #[must_use]
    pub fn idempotency_key(mut self, key: impl Into<String>) -> Self {
        self.idempotency_key = Some(key.into());
        self
    }

    /// How long the whole call may take, and how long it is repeated where no answer comes.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// Whose capability is called.
    pub fn product_id(&self) -> &str {
        &self.product_id
    }

    /// Which capability is called.
    pub fn capability_id(&self) -> &str {
        &self.capability_id
    }

    pub(crate) fn body(&self) -> Vec<u8> {
        let mut body = json!({
            "product_id": self.product_id,
            "capability_id": self.capability_id,
            "input": self.input,
        });
        let further = [
            ("max_price_usd", self.price_max.map(|amount| json!(amount))),
            ("source_hub", self.source_hub.as_ref().map(|hub| json!(hub))),
        ];
        for (name, value) in further {
            if let (Some(body), Some(value)) = (body.as_object_mut(), value) {
                body.insert(name.to_owned(), value);
            }
        }
        body.to_string().into_bytes()
    }
}

/// What a call is paid from. One at a time: a hub refuses two.
#[derive(Debug, Clone, Default)]
pub enum Purse {
    /// Nothing: for what costs nothing.
    #[default]
    Nothing,
    /// An account, by one of its keys.
    Account(ApiKey),
    /// A channel.
    Channel(ChannelKey),
    /// A payment on a chain, past the hub.
    Payment(SignedPayment),
    /// One of the free calls that the hub gives a visitor of this name (8 to 64 of `[A-Za-z0-9_-]`).
    Trial(String),
}

impl Purse {
    /// The headers that show it.
    pub(crate) fn headers(&self) -> Vec<(&'static str, String)> {
        match self {
            Self::Nothing => Vec::new(),
            Self::Account(key) => vec![("X-API-Key", key.reveal().to_owned())],
            Self::Channel(channel) => vec![
                ("X-Payment-Channel", channel.id().to_owned()),
                ("X-Payment-Channel-Secret", channel.reveal().to_owned()),
            ],
            Self::Payment(payment) => vec![("PAYMENT-SIGNATURE", payment.header().to_owned())],
            Self::Trial(visitor) => vec![("X-AIMarket-Sandbox-Visitor", visitor.clone())],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_says_what_it_may_cost_exactly() {
        let input = json!({"seed": 7, "town": "Köln"});
        let call = Call::new("shop", "weather@v1", input.as_object().cloned().unwrap());
        let plain: Value = serde_json::from_slice(&call.body()).unwrap();
        assert_eq!(
            plain,
            json!({"product_id": "shop", "capability_id": "weather@v1", "input": input})
        );
        let capped = call.price_max("0.010001".parse().unwrap());
        let text = String::from_utf8(capped.body()).unwrap();
        assert!(text.contains(r#""max_price_usd":0.010001"#), "{text}");
        let elsewhere = capped.source_hub("https://peer.example");
        let body: Value = serde_json::from_slice(&elsewhere.body()).unwrap();
        assert_eq!(body["source_hub"], json!("https://peer.example"));
        let here: Value = serde_json::from_slice(&elsewhere.source_hub("local").body()).unwrap();
        assert_eq!(here.get("source_hub"), None);
    }

    #[test]
    fn pitfall_35_a_channel_is_never_shown_without_its_secret() {
        let channel = Purse::Channel(ChannelKey::new("ch_1", "s").unwrap());
        let names: Vec<&str> = channel.headers().iter().map(|(name, _)| *name).collect();
        assert_eq!(names, ["X-Payment-Channel", "X-Payment-Channel-Secret"]);
        assert!(Purse::Nothing.headers().is_empty());
    }
}
