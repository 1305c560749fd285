//! `POST /ai-market/v2/channel/open`: sets money aside, and gives out the secret that spends it.

use std::time::Duration;

use actix_web::{HttpRequest, HttpResponse, web};
use aip_market::money::Usd;
use aip_market::refusal::{MarketCode, MarketRefusal};
use aip_market::store::{Funding, NewChannel, Opened};

use super::{ChannelAnswer, ChannelLine, Left, idempotency_key, unpayable, with};
use crate::app::App;
use crate::error::MarketError;
use crate::market::MarketRoom;
use crate::routes::market::{API_KEY, PROTOCOL, VISITOR, amount, header, read, room};
use crate::throttle::Cost;

/// The largest deposit, in micro-dollars.
const DEPOSIT_MICROS_MAX: u64 = 10_000_000_000;

/// Micro-dollars in a dollar.
const MICROS: u64 = 1_000_000;

/// Opens a channel.
#[utoipa::path(
    post,
    path = "/ai-market/v2/channel/open",
    operation_id = "market_open_channel",
    tag = "market",
    summary = "Open a payment channel",
    description = "With `X-API-Key` the money comes from that account, and what is left goes back there. Without, on a hub \
                   for trying out only, it comes from nowhere. There are no chains here: `tx_hash`, `wallet` and the like \
                   are ignored, and give nobody any money. With `Idempotency-Key` it is opened once: the same again \
                   answers with the same channel and the same secret.",
    params(
        ("X-API-Key" = Option<String>, Header, description = "The key of the account that pays"),
        ("Idempotency-Key" = Option<String>, Header, description = "8 to 128 printable ASCII characters"),
    ),
    request_body(content = Object, content_type = "application/json",
                 description = "`deposit_usd`: more than 0, at most 10,000"),
    responses(
        (status = 200, description = "The channel, with `channel_secret`, which is told only here", body = ChannelAnswer),
        (status = 400, description = "No amount, nothing to pay it from, or a visitor's request without a key"),
        (status = 401, description = "The key is none"),
        (status = 402, description = "The account has less"),
        (status = 409, description = "The idempotency key was used for another deposit"),
        (status = 429, description = "Too many requests from one address, or too many channels are open"),
        (status = 503, description = "Not now"),
    )
)]
pub async fn open(
    app: web::Data<App>,
    req: HttpRequest,
    payload: web::Payload,
) -> Result<HttpResponse, MarketError> {
    app.throttle.admit(Cost::Purse, &req)?;
    let room = room(&app)?;
    app.require_room("channels")?;
    let body = read(&app, &req, payload).await?;
    let deposit = amount(&body, "deposit_usd", MarketCode::DepositInvalid)?;
    let key = idempotency_key(&req)?;
    let funding = funding(&app, room, &req, deposit).await?;
    let (id, secret) = match key {
        Some(key) => room
            .engine
            .derive_channel(&payer(&app, &req, &funding), &key, deposit),
        None => room.engine.draw_channel(),
    };
    let now = app.clock.now();
    let lifetime = Duration::from_secs(u64::from(app.settings.market.channel_lifetime_hours) * 3_600);
    let new = NewChannel {
        id,
        secret_hash: secret.hash(),
        funding,
        deposit,
        expires_at: now + lifetime,
    };
    let channel = match room.store().open_channel(new, now).await? {
        Opened::Done(channel) => channel,
        Opened::Insufficient(left) => {
            return Err(unpayable(room, deposit, Left::Balance(left)));
        }
        Opened::OverBudget(left) => {
            return Err(unpayable(room, deposit, Left::Budget(left)));
        }
        Opened::NoAccount => return Err(gone()),
        Opened::OtherUse => {
            let detail = "This Idempotency-Key was used for another deposit.";
            return Err(MarketError::refused(MarketCode::IdempotencyConflict, detail));
        }
        Opened::TooMany => {
            let detail =
                "As many channels are open as there may be. Use the account itself, or try again later.";
            return Err(MarketRefusal::new(MarketCode::TooManyChannels, detail)
                .retry_after(60)
                .into());
        }
    };
    let answer = ChannelAnswer {
        success: true,
        channel: ChannelLine::of(&channel, now),
        protocol_version: PROTOCOL,
    };
    Ok(HttpResponse::Ok().json(with(&answer, "channel_secret", secret.expose().into())))
}

/// Within whose reach a key of the caller's means the same: of a key of an account, or of a network address.
fn payer(app: &App, req: &HttpRequest, funding: &Funding) -> String {
    match funding {
        Funding::Account { account, key } => format!("account {} {}", account.0, key.0),
        Funding::Demo => format!("network {}", hex::encode(app.throttle.origin(req))),
    }
}

/// Where the money comes from.
async fn funding(
    app: &App,
    room: &MarketRoom,
    req: &HttpRequest,
    deposit: Usd,
) -> Result<Funding, MarketError> {
    let market = &app.settings.market;
    if let Some(shown) = header(req, &API_KEY)? {
        at_most(deposit, DEPOSIT_MICROS_MAX)?;
        let (key, account) = crate::routes::market::account::of_key(app, room, req, &shown).await?;
        return Ok(Funding::Account {
            account: account.id,
            key: key.id,
        });
    }
    if header(req, &VISITOR)?.is_some() {
        let detail = "A visitor's free calls are not paid from a channel: call without one, or open it without \
                      X-AIMarket-Sandbox-Visitor.";
        return Err(MarketError::refused(MarketCode::SandboxConflict, detail));
    }
    if market.demo_credit {
        at_most(deposit, u64::from(market.demo_deposit_usd_max) * MICROS)?;
        return Ok(Funding::Demo);
    }
    let detail = "This hub has no chains, and gives no money away: open an account (POST /ai-market/v2/accounts), have \
                  its operator put money in, and open the channel with X-API-Key.";
    Err(MarketRefusal::new(MarketCode::ChannelUnfunded, detail)
        .with("needed", deposit.to_f64())
        .with("payment_ways", room.engine.payment_ways())
        .into())
}

fn at_most(deposit: Usd, micros_max: u64) -> Result<(), MarketError> {
    if deposit.micros() <= micros_max {
        return Ok(());
    }
    let detail = format!("deposit_usd is at most {}.", micros_max / MICROS);
    Err(MarketRefusal::new(MarketCode::DepositInvalid, detail)
        .with("member", "deposit_usd")
        .into())
}

/// It went between two looks.
fn gone() -> MarketError {
    MarketError::refused(
        MarketCode::KeyInvalid,
        "X-API-Key is no key of an account on this hub.",
    )
}
