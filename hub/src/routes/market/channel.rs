//! Payment channels: money set aside with a secret that spends it.

use actix_web::HttpRequest;
use aip_market::money::Usd;
use aip_market::refusal::{MarketCode, MarketError as Refused, MarketRefusal};
use aip_market::store::{Channel, ChannelStatus, Funding};
use aip_protocol::market::time_text;
use aip_protocol::time::Timestamp;
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

use super::{CHANNEL_SECRET, IDEMPOTENCY_KEY, header};
use crate::error::MarketError;
use crate::market::MarketRoom;
use crate::routes::Endpoint;

pub mod close;
pub mod open;
pub mod show;
pub mod top_up;

/// The endpoints of this resource.
pub fn endpoints() -> Vec<Endpoint> {
    vec![
        Endpoint::at("/ai-market/v2/channel/open").post(open::open),
        Endpoint::at("/ai-market/v2/channel/topup").post(top_up::top_up),
        Endpoint::at("/ai-market/v2/channel/close").post(close::close),
        Endpoint::at("/ai-market/v2/channel/{channel_id}").get(show::show),
    ]
}

/// A channel, for whoever has its secret.
#[derive(Debug, Serialize, ToSchema)]
pub struct ChannelLine {
    /// `ch_` and 32 hex digits.
    pub channel_id: String,
    /// What can be spent.
    pub balance_usd: f64,
    /// What was put in, with every top-up.
    pub original_deposit_usd: f64,
    /// What was paid.
    pub used_usd: f64,
    /// What is set aside for calls that are under way.
    pub held_usd: f64,
    /// `account`, or `demo`: money from nowhere.
    #[schema(example = "account")]
    pub funding: &'static str,
    /// `open`, `closed` or `expired`.
    #[schema(example = "open")]
    pub status: &'static str,
    /// When it was opened.
    #[schema(format = "date-time")]
    pub opened_at: String,
    /// When it ends.
    #[schema(format = "date-time")]
    pub expires_at: String,
}

impl ChannelLine {
    fn of(channel: &Channel, now: Timestamp) -> Self {
        let status = match channel.status {
            ChannelStatus::Open if channel.expires_at > now => "open",
            ChannelStatus::Open | ChannelStatus::Expired => "expired",
            ChannelStatus::Closed => "closed",
        };
        Self {
            channel_id: channel.id.0.clone(),
            balance_usd: channel.balance().to_f64(),
            original_deposit_usd: channel.deposit.to_f64(),
            used_usd: channel.used.to_f64(),
            held_usd: channel.held.to_f64(),
            funding: match channel.funding {
                Funding::Account { .. } => "account",
                Funding::Demo => "demo",
            },
            status,
            opened_at: time_text(channel.opened_at),
            expires_at: time_text(channel.expires_at),
        }
    }
}

/// What a channel is answered with.
#[derive(Debug, Serialize, ToSchema)]
pub struct ChannelAnswer {
    /// Always true.
    pub success: bool,
    /// The channel.
    pub channel: ChannelLine,
    /// `v2`.
    pub protocol_version: &'static str,
}

/// The channel with this id, if the request shows its secret, in its header or as `in_body`.
///
/// # Errors
/// 400 where there is no secret; 404 `channel_not_found`, the same for no such channel and for another secret.
async fn opened_by(
    room: &MarketRoom,
    req: &HttpRequest,
    id: &str,
    in_body: Option<&str>,
) -> Result<Channel, MarketError> {
    let shown = header(req, &CHANNEL_SECRET)?;
    let Some(secret) = shown.as_deref().or(in_body) else {
        let detail =
            "Send the channel's secret as X-Payment-Channel-Secret: without it the channel stays as it is.";
        return Err(MarketError::refused(MarketCode::ChannelSecretRequired, detail));
    };
    match room.engine.channel_of_secret(id, Some(secret)).await {
        Ok(channel) => Ok(channel),
        Err(Refused::Refused(_)) => Err(unknown()),
        Err(failed) => Err(failed.into()),
    }
}

/// The length of an idempotency key.
const KEY_BYTES: std::ops::RangeInclusive<usize> = 8..=128;

/// The key with which the same again is the same.
///
/// # Errors
/// 400 `idempotency_key_invalid`.
fn idempotency_key(req: &HttpRequest) -> Result<Option<String>, MarketError> {
    let Some(key) = header(req, &IDEMPOTENCY_KEY)? else {
        return Ok(None);
    };
    if !KEY_BYTES.contains(&key.len()) {
        let detail = "Idempotency-Key is 8 to 128 printable ASCII characters.";
        return Err(MarketRefusal::new(MarketCode::IdempotencyKeyInvalid, detail)
            .with("header", IDEMPOTENCY_KEY.as_str())
            .into());
    }
    Ok(Some(key))
}

fn unknown() -> MarketError {
    MarketError::refused(
        MarketCode::ChannelUnknown,
        "There is no channel with this id and this secret.",
    )
}

/// What is too little.
#[derive(Clone, Copy)]
enum Left {
    /// In the account.
    Balance(Usd),
    /// Of a budget.
    Budget(Usd),
}

/// The account cannot pay: `balance` or `budget_left` says how much there is.
fn unpayable(room: &MarketRoom, needed: Usd, left: Left) -> MarketError {
    let (detail, what, left) = match left {
        Left::Balance(left) => ("The account has less.", "balance", left),
        Left::Budget(left) => (
            "A budget of the account or of its key leaves less.",
            "budget_left",
            left,
        ),
    };
    MarketRefusal::new(MarketCode::PaymentFailed, detail)
        .with("needed", needed.to_f64())
        .with(what, left.to_f64())
        .with("payment_ways", room.engine.payment_ways())
        .into()
}

/// As JSON, with a member more.
fn with(answer: &impl Serialize, name: &str, value: Value) -> Value {
    let mut json = serde_json::to_value(answer).unwrap_or_default();
    if let Some(channel) = json.get_mut("channel").and_then(Value::as_object_mut) {
        channel.insert(name.to_owned(), value);
    }
    json
}
