//! `DELETE /ai-market/v2/jobs/{job_id}`: ends a job of which nothing is wanted any more.

use actix_web::{HttpRequest, HttpResponse, web};

use super::{Asked, counted, shown};
use crate::app::App;
use crate::error::MarketError;

/// Cancels a job.
#[utoipa::path(
    delete,
    path = "/ai-market/v2/jobs/{job_id}",
    operation_id = "market_job_cancel",
    tag = "market",
    summary = "Cancel a job",
    description = "If it has not ended, it ends now: nothing is charged, and its provider is told. Answers the job as it \
                   stands then; `status` says whether it was cancelled or had ended before.",
    params(
        ("job_id" = String, Path, description = "The job"),
        ("X-AIMarket-Job-Secret" = Option<String>, Header, description = "What opens it"),
        ("X-API-Key" = Option<String>, Header, description = "Or a key of the account that pays it"),
        ("X-Payment-Channel" = Option<String>, Header, description = "Or the channel that pays it"),
        ("X-Payment-Channel-Secret" = Option<String>, Header, description = "Its secret"),
    ),
    responses(
        (status = 200, description = "The job as it stands now", body = Object),
        (status = 400, description = "Nothing is shown that opens a job"),
        (status = 401, description = "The key is none"),
        (status = 404, description = "No job with this id is opened by what is shown"),
        (status = 409, description = "The work is another hub's, and goes on"),
        (status = 429, description = "Too many requests from one address"),
        (status = 503, description = "Not now"),
    )
)]
pub async fn cancel(app: web::Data<App>, req: HttpRequest) -> Result<HttpResponse, MarketError> {
    let asked = Asked::read(&app, &req)?;
    let engine = &asked.room.engine;
    let job = engine.cancel_job(&asked.id, &asked.shown).await;
    Ok(shown(engine, &counted(&app, &req, job)?))
}
