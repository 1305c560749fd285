//! `POST /ai-market/v2/channel/close`: ends a channel. What is left goes back where it came from.

use actix_web::{HttpRequest, HttpResponse, web};
use aip_market::refusal::{MarketCode, MarketRefusal};
use aip_market::store::{Channel, Closed, Funding};
use aip_protocol::market::Value;
use serde::Serialize;
use utoipa::ToSchema;

use super::{opened_by, unknown};
use crate::app::App;
use crate::error::MarketError;
use crate::routes::market::{PROTOCOL, read, room, text};
use crate::throttle::Cost;

/// What a channel came to.
#[derive(Debug, Serialize, ToSchema)]
pub struct Settlement {
    /// The channel.
    pub channel_id: String,
    /// What was put in.
    pub original_deposit_usd: f64,
    /// What was paid.
    pub used_usd: f64,
    /// What was left.
    pub refund_usd: f64,
    /// What of it went back to its account: all of it, at once.
    pub refund_executed_usd: f64,
    /// Always 0: nothing is owed.
    pub refund_owed_usd: f64,
    /// `executed`; `none` where nothing was left, or it came from nowhere.
    #[schema(example = "executed")]
    pub refund_status: &'static str,
    /// Always `null`.
    #[schema(value_type = Option<Object>)]
    pub obligation: Option<()>,
    /// `settled`
    pub status: &'static str,
    /// As it was sent: there are no chains here.
    pub settle_tx_hash: Option<String>,
}

/// The end of a channel.
#[derive(Debug, Serialize, ToSchema)]
pub struct SettlementAnswer {
    /// Always true.
    pub success: bool,
    /// What it came to.
    pub settlement: Settlement,
    /// `v2`.
    pub protocol_version: &'static str,
}

/// Ends a channel.
#[utoipa::path(
    post,
    path = "/ai-market/v2/channel/close",
    operation_id = "market_close_channel",
    tag = "market",
    summary = "Close a channel",
    params(("X-Payment-Channel-Secret" = Option<String>, Header, description = "Its secret; or `channel_secret` in the body")),
    request_body(content = Object, content_type = "application/json", description = "`channel_id`"),
    responses(
        (status = 200, description = "What it came to; the same again when it is closed again", body = SettlementAnswer),
        (status = 400, description = "There is no secret: nothing has changed"),
        (status = 404, description = "There is no channel with this id and this secret"),
        (status = 409, description = "Calls are under way: `held_usd`"),
        (status = 429, description = "Too many requests from one address"),
        (status = 503, description = "Not now"),
    )
)]
pub async fn close(
    app: web::Data<App>,
    req: HttpRequest,
    payload: web::Payload,
) -> Result<HttpResponse, MarketError> {
    app.throttle.admit(Cost::Purse, &req)?;
    let room = room(&app)?;
    let body = read(&app, &req, payload).await?;
    let id = text(&body, "channel_id")?;
    let in_body = body.get("channel_secret").and_then(Value::as_str);
    let channel = opened_by(room, &req, id, in_body).await?;
    let tx = body.get("settle_tx_hash").and_then(Value::as_str);
    match room.store().close_channel(&channel.id, app.clock.now()).await? {
        Closed::Done(channel) => Ok(HttpResponse::Ok().json(SettlementAnswer {
            success: true,
            settlement: Settlement::of(&channel, tx),
            protocol_version: PROTOCOL,
        })),
        Closed::Pending(held) => {
            let detail = "Calls that this channel pays are under way: close it when they have ended.";
            Err(MarketRefusal::new(MarketCode::ChannelBusy, detail)
                .with("held_usd", held.to_f64())
                .retry_after(1)
                .into())
        }
        Closed::Missing => Err(unknown()),
    }
}

impl Settlement {
    fn of(channel: &Channel, settle_tx_hash: Option<&str>) -> Self {
        let goes_back = matches!(channel.funding, Funding::Account { .. });
        let refund = channel.refunded.to_f64();
        Self {
            channel_id: channel.id.0.clone(),
            original_deposit_usd: channel.deposit.to_f64(),
            used_usd: channel.used.to_f64(),
            refund_usd: refund,
            refund_executed_usd: if goes_back { refund } else { 0.0 },
            refund_owed_usd: 0.0,
            refund_status: if goes_back && refund > 0.0 {
                "executed"
            } else {
                "none"
            },
            obligation: None,
            status: "settled",
            settle_tx_hash: settle_tx_hash.map(str::to_owned),
        }
    }
}
