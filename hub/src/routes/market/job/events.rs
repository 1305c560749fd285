//! `GET /ai-market/v2/jobs/{job_id}/events`: what a job says while it works, and its answer.

use actix_web::http::header::HeaderName;
use actix_web::{HttpRequest, HttpResponse, web};
use aip_market::refusal::{MarketCode, MarketRefusal};

use super::Asked;
use crate::app::App;
use crate::error::MarketError;
use crate::routes::market::header;
use crate::routes::market::stream::{self, JOB};

const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");

/// Streams the events of a job.
#[utoipa::path(
    get,
    path = "/ai-market/v2/jobs/{job_id}/events",
    operation_id = "market_job_events",
    tag = "market",
    summary = "A job as server-sent events",
    description = "`job` first, then `progress` and `chunk` of the provider with their numbers as ids, and `result` or \
                   `error` at the end. `Last-Event-ID` goes on behind an event; what was missed and is not kept any more \
                   leaves a gap in the numbers.",
    params(
        ("job_id" = String, Path, description = "The job"),
        ("Last-Event-ID" = Option<u64>, Header, description = "The id of the last event you have"),
        ("X-AIMarket-Job-Secret" = Option<String>, Header, description = "What opens it"),
        ("X-API-Key" = Option<String>, Header, description = "Or a key of the account that pays it"),
        ("X-Payment-Channel" = Option<String>, Header, description = "Or the channel that pays it"),
        ("X-Payment-Channel-Secret" = Option<String>, Header, description = "Its secret"),
    ),
    responses(
        (status = 200, description = "Events", content_type = "text/event-stream", body = String),
        (status = 400, description = "Nothing is shown that opens a job, or `Last-Event-ID` is no number"),
        (status = 401, description = "The key is none"),
        (status = 404, description = "No job with this id is opened by what is shown, or its answer is not kept any more"),
        (status = 429, description = "Too many requests from one address"),
        (status = 503, description = "Not now, or too many streams are open"),
    )
)]
pub async fn events(app: web::Data<App>, req: HttpRequest) -> Result<HttpResponse, MarketError> {
    let asked = Asked::read(&app, &req)?;
    let after = after(&req)?;
    let engine = &asked.room.engine;
    let job = asked.open(&app, &req).await?;
    let (place, hold) = stream::take_place(&app, asked.room, &req)?;
    let first = stream::event(JOB, &engine.job_body(&job, None));
    let feed = engine.feed(job.id, after, place);
    Ok(stream::respond(app.clone(), feed, hold, first))
}

/// The number of the last event that the caller has; 0: none.
fn after(req: &HttpRequest) -> Result<u64, MarketError> {
    let Some(text) = header(req, &LAST_EVENT_ID)? else {
        return Ok(0);
    };
    text.parse().map_err(|_not_a_number| {
        MarketRefusal::new(
            MarketCode::HeaderInvalid,
            "Last-Event-ID is the number of an event.",
        )
        .with("header", LAST_EVENT_ID.as_str())
        .into()
    })
}
