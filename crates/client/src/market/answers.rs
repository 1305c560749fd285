//! What a hub's market answers. Members that a hub adds are kept where they may matter to people, and ignored elsewhere.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use zeroize::Zeroizing;

use super::amount::Amount;
use super::secret::{ApiKey, ChannelKey};

/// A call that was made.
#[derive(Debug, Clone, Deserialize)]
#[non_exhaustive]
pub struct Invoked {
    /// What the provider made of the input.
    pub result: Value,
    /// What the hub names the call by: the reference in the lines of the account that paid it.
    #[serde(default, deserialize_with = "text_or_none")]
    pub invocation_id: Option<String>,
    /// The signed receipt of the hub that did the work, letter for letter: its numbers are signed as they are spelled.
    pub receipt: Option<Box<RawValue>>,
    /// Where another hub did the work, the receipt of the one that was asked, for what it took.
    #[serde(default)]
    pub hub_receipt: Option<Box<RawValue>>,
    /// Where another hub did the work, under which rules: `broker` (it is paid itself), `sells_for` or `reseller`.
    #[serde(default, deserialize_with = "text_or_none")]
    pub route_mode: Option<String>,
    /// The hub that did the work, where it is another one.
    #[serde(default, deserialize_with = "text_or_none")]
    pub source_hub: Option<String>,
    /// Where another hub did the work, what the one that was asked took.
    #[serde(default)]
    pub charged_usd: Option<Amount>,
    /// Of it, what is not of the price.
    #[serde(default)]
    pub routing_fee_usd: Option<Amount>,
    /// What was paid.
    #[serde(default)]
    pub price_usd: Amount,
    /// What it costs by the list.
    #[serde(default)]
    pub list_price_usd: Option<Amount>,
    /// How long the provider took, in milliseconds, by the hub's clock.
    #[serde(default)]
    pub latency_ms: Option<f64>,
    /// What is left in the purse.
    #[serde(default)]
    pub remaining_balance: Option<Amount>,
    /// Whether this is the answer to the same call earlier: nothing was paid now.
    #[serde(skip)]
    pub is_replayed: bool,
    /// What made this call one of its own.
    #[serde(skip)]
    pub idempotency_key: String,
}

/// A payment channel as it stands.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
#[non_exhaustive]
pub struct ChannelState {
    /// Which one.
    pub channel_id: String,
    /// What can be spent.
    pub balance_usd: Amount,
    /// What was put in.
    #[serde(default)]
    pub original_deposit_usd: Amount,
    /// What was spent.
    #[serde(default)]
    pub used_usd: Amount,
    /// `open`, `closed` or `expired`.
    pub status: String,
    /// When it was opened.
    #[serde(default)]
    pub opened_at: Option<String>,
    /// After this moment it pays no more.
    #[serde(default)]
    pub expires_at: Option<String>,
}

/// A channel that was opened, with its secret, which nobody tells again.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ChannelOpened {
    /// As it stands.
    pub state: ChannelState,
    /// What spends it.
    pub key: ChannelKey,
}

/// What became of a channel's money.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
#[non_exhaustive]
pub struct Settlement {
    /// Which channel.
    pub channel_id: String,
    /// What was spent.
    pub used_usd: Amount,
    /// What goes back.
    #[serde(default)]
    pub refund_usd: Amount,
    /// The rest, by name.
    #[serde(flatten)]
    pub more: Map<String, Value>,
}

/// An account as it stands.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
#[non_exhaustive]
pub struct Account {
    /// Which one.
    pub account_id: String,
    /// What can be spent.
    #[serde(default)]
    pub balance_usd: Amount,
    /// The rest, by name: `held_usd`, `budget_usd`, `keys` and so on.
    #[serde(flatten)]
    pub more: Map<String, Value>,
}

/// An account that was made, with its first key, which nobody tells again.
#[derive(Debug, Clone, Deserialize)]
#[non_exhaustive]
pub struct AccountMade {
    /// What spends it.
    pub api_key: ApiKey,
    /// As it stands.
    #[serde(flatten)]
    pub account: Account,
}

/// A key that was made, which nobody tells again.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct KeyMade {
    /// The key.
    pub api_key: ApiKey,
    /// What it is named by, where it opens nothing.
    pub key_id: String,
}

/// Lines of an account, oldest first.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct LedgerPage {
    /// Each as the hub tells it: `number`, `kind`, `amount_usd`, `reference`, `balance_usd`, `at`.
    pub entries: Vec<Map<String, Value>>,
    /// After which number the next page begins.
    pub next: Option<u64>,
}

/// What an agent has earned.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[non_exhaustive]
pub struct Earnings {
    /// All of it.
    #[serde(deserialize_with = "decimal")]
    pub earned: Amount,
    /// What of it was paid out.
    #[serde(deserialize_with = "decimal")]
    pub paid_out: Amount,
    /// What is owed.
    #[serde(deserialize_with = "decimal")]
    pub owed: Amount,
    /// For so many calls.
    pub calls: u64,
}

/// An amount as decimal text.
fn decimal<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Amount, D::Error> {
    String::deserialize(deserializer)?
        .parse()
        .map_err(serde::de::Error::custom)
}

/// Text; `None` for anything else, since a call that was paid is not lost for the form of its name.
fn text_or_none<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    Ok(match Value::deserialize(deserializer)? {
        Value::String(text) => Some(text),
        _ => None,
    })
}

#[derive(Debug, Deserialize)]
pub(crate) struct ChannelAnswer {
    pub(crate) channel: ChannelMembers,
}

/// Wiped when dropped.
#[derive(Deserialize)]
#[serde(from = "String")]
struct Secret(Zeroizing<String>);

impl From<String> for Secret {
    fn from(text: String) -> Self {
        Self(Zeroizing::new(text))
    }
}

/// A channel, with its secret where it was just opened.
#[derive(Deserialize)]
pub(crate) struct ChannelMembers {
    #[serde(default)]
    channel_secret: Option<Secret>,
    #[serde(flatten)]
    pub(crate) state: ChannelState,
}

impl std::fmt::Debug for ChannelMembers {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ChannelMembers")
            .field("state", &self.state)
            .finish_non_exhaustive()
    }
}

impl ChannelMembers {
    /// The channel with what spends it; `None` where the hub did not tell that.
    pub(crate) fn into_opened(self) -> Option<ChannelOpened> {
        let key = ChannelKey::new(&self.state.channel_id, &self.channel_secret?.0).ok()?;
        Some(ChannelOpened {
            state: self.state,
            key,
        })
    }
}

#[derive(Debug, Deserialize)]
pub(crate) struct SettlementAnswer {
    pub(crate) settlement: Settlement,
}

#[derive(Debug, Deserialize)]
pub(crate) struct LedgerAnswer {
    #[serde(default)]
    pub(crate) entries: Vec<Map<String, Value>>,
    #[serde(default)]
    pub(crate) next: Option<u64>,
}

/// `{api_key, key_id}`, or `{api_key, key: {key_id}}`.
#[derive(Debug, Deserialize)]
pub(crate) struct KeyAnswer {
    api_key: ApiKey,
    #[serde(default)]
    key_id: Option<String>,
    #[serde(default)]
    key: Option<KeyNamed>,
}

#[derive(Debug, Deserialize)]
struct KeyNamed {
    key_id: String,
}

impl KeyAnswer {
    /// The key, if the answer names it.
    pub(crate) fn into_key(self) -> Option<KeyMade> {
        Some(KeyMade {
            api_key: self.api_key,
            key_id: self.key_id.or(self.key.map(|key| key.key_id))?,
        })
    }
}

#[derive(Debug, Deserialize)]
pub(crate) struct ReceiptAnswer {
    pub(crate) receipt: Box<RawValue>,
}
