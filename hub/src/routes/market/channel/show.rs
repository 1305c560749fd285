//! `GET /ai-market/v2/channel/{channel_id}`: what is left of a channel, for whoever has its secret.

use actix_web::{HttpRequest, HttpResponse, web};

use super::{ChannelAnswer, ChannelLine, opened_by};
use crate::app::App;
use crate::error::MarketError;
use crate::routes::market::{PROTOCOL, room};
use crate::throttle::Cost;

/// Shows a channel.
#[utoipa::path(
    get,
    path = "/ai-market/v2/channel/{channel_id}",
    operation_id = "market_channel",
    tag = "market",
    summary = "What is left of a channel",
    params(
        ("channel_id" = String, Path, description = "The channel"),
        ("X-Payment-Channel-Secret" = String, Header, description = "Its secret"),
    ),
    responses(
        (status = 200, description = "The channel", body = ChannelAnswer),
        (status = 400, description = "There is no secret"),
        (status = 404, description = "There is no channel with this id and this secret"),
        (status = 429, description = "Too many requests from one address"),
        (status = 503, description = "Not now"),
    )
)]
pub async fn show(app: web::Data<App>, req: HttpRequest) -> Result<HttpResponse, MarketError> {
    app.throttle.admit(Cost::Purse, &req)?;
    let room = room(&app)?;
    let id = req.match_info().get("channel_id").unwrap_or_default();
    let channel = opened_by(room, &req, id, None).await?;
    Ok(HttpResponse::Ok().json(ChannelAnswer {
        success: true,
        channel: ChannelLine::of(&channel, app.clock.now()),
        protocol_version: PROTOCOL,
    }))
}
