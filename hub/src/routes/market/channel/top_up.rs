//! `POST /ai-market/v2/channel/topup`: puts more into a channel, from where its first money came from.

use actix_web::{HttpRequest, HttpResponse, web};
use aip_market::refusal::MarketCode;
use aip_market::store::{Channel, Funding, ToppedUp};
use sha2::{Digest as _, Sha256};

use super::{ChannelAnswer, ChannelLine, Left, idempotency_key, opened_by, unpayable};
use crate::app::App;
use crate::error::MarketError;
use crate::market::MarketRoom;
use crate::routes::market::{API_KEY, PROTOCOL, account, amount, header, read, room, text};
use crate::throttle::Cost;

/// Puts more into a channel.
#[utoipa::path(
    post,
    path = "/ai-market/v2/channel/topup",
    operation_id = "market_top_up_channel",
    tag = "market",
    summary = "Put more into a channel",
    description = "Of a channel that is paid from an account, a key of that account is needed too: a channel's secret \
                   spends what is in the channel, and no more. With `Idempotency-Key` it is done once.",
    params(
        ("X-Payment-Channel-Secret" = String, Header, description = "Its secret"),
        ("X-API-Key" = Option<String>, Header, description = "The key that opened it"),
        ("Idempotency-Key" = Option<String>, Header, description = "8 to 128 printable ASCII characters"),
    ),
    request_body(content = Object, content_type = "application/json", description = "`channel_id`, `amount_usd`"),
    responses(
        (status = 200, description = "The channel as it is now", body = ChannelAnswer),
        (status = 400, description = "No amount, no secret, or money from nowhere beyond what is given away"),
        (status = 401, description = "The key of the account is missing, or another"),
        (status = 402, description = "The account has less"),
        (status = 404, description = "There is no channel with this id and this secret"),
        (status = 409, description = "It is not open any more, or the idempotency key was used for something else"),
        (status = 429, description = "Too many requests from one address"),
        (status = 503, description = "Not now"),
    )
)]
pub async fn top_up(
    app: web::Data<App>,
    req: HttpRequest,
    payload: web::Payload,
) -> Result<HttpResponse, MarketError> {
    app.throttle.admit(Cost::Purse, &req)?;
    let room = room(&app)?;
    let body = read(&app, &req, payload).await?;
    let id = text(&body, "channel_id")?;
    let more = amount(&body, "amount_usd", MarketCode::DepositInvalid)?;
    let reference = reference(room, &req, id)?;
    let channel = opened_by(room, &req, id, None).await?;
    may_fill(&app, room, &req, &channel, more).await?;
    let now = app.clock.now();
    let channel = match room.store().top_up(&channel.id, more, &reference, now).await? {
        ToppedUp::Done(channel) | ToppedUp::Again(channel) => channel,
        ToppedUp::Insufficient(left) => {
            return Err(unpayable(room, more, Left::Balance(left)));
        }
        ToppedUp::OverBudget(left) => {
            return Err(unpayable(room, more, Left::Budget(left)));
        }
        ToppedUp::OtherUse => {
            let detail = "This Idempotency-Key was used for another amount.";
            return Err(MarketError::refused(MarketCode::IdempotencyConflict, detail));
        }
        ToppedUp::Refused => {
            let detail = "The channel is not open any more, or it would hold too much.";
            return Err(MarketError::refused(MarketCode::ChannelEnded, detail));
        }
    };
    Ok(HttpResponse::Ok().json(ChannelAnswer {
        success: true,
        channel: ChannelLine::of(&channel, now),
        protocol_version: PROTOCOL,
    }))
}

/// What makes a repetition the same: the caller's key, within the channel.
fn reference(room: &MarketRoom, req: &HttpRequest, channel: &str) -> Result<String, MarketError> {
    let Some(key) = idempotency_key(req)? else {
        return Ok(format!("topup:{}", room.draw_reference()));
    };
    let digest = Sha256::digest(format!("{channel}\n{key}"));
    Ok(format!("topup:{}", hex::encode(digest)))
}

/// Whether whoever asks may take money from where the channel has it from.
async fn may_fill(
    app: &App,
    room: &MarketRoom,
    req: &HttpRequest,
    channel: &Channel,
    more: aip_market::money::Usd,
) -> Result<(), MarketError> {
    let Funding::Account { account, key } = &channel.funding else {
        let max = u64::from(app.settings.market.demo_deposit_usd_max) * 1_000_000;
        let sum = channel.deposit.micros().saturating_add(more.micros());
        if app.settings.market.demo_credit && sum <= max {
            return Ok(());
        }
        let detail = "Of money from nowhere there is no more for this channel.";
        return Err(MarketError::refused(MarketCode::DepositInvalid, detail));
    };
    let shown = header(req, &API_KEY)?.unwrap_or_default();
    let (shown, owner) = account::of_key(app, room, req, &shown).await?;
    if shown.id == *key && owner.id == *account {
        return Ok(());
    }
    let detail = "The channel is filled with the key that opened it, in X-API-Key.";
    Err(MarketError::refused(MarketCode::KeyInvalid, detail))
}
