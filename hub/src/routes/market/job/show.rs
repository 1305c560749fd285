//! `GET /ai-market/v2/jobs/{job_id}`: how far a job is, and its answer.

use actix_web::{HttpRequest, HttpResponse, web};
use aip_market::invoke::{JobEvent, JobStage};
use tokio::time::timeout;

use super::{Asked, shown};
use crate::app::App;
use crate::error::MarketError;
use crate::routes::market::invoke::manner;
use crate::routes::market::stream;

/// Shows a job.
#[utoipa::path(
    get,
    path = "/ai-market/v2/jobs/{job_id}",
    operation_id = "market_job",
    tag = "market",
    summary = "How far a job is, and its answer",
    description = "`status` is `running`, `succeeded`, `failed` or `cancelled`. Once it has ended, `answer` and \
                   `answer_status` are what the call would have been answered. With `Prefer: wait=20` the answer comes \
                   when the job ends, if it does within so many seconds. Kept as long as repetitions of calls are \
                   answered. Show the job's secret, or the key or the channel that pays it.",
    params(
        ("job_id" = String, Path, description = "The job"),
        ("X-AIMarket-Job-Secret" = Option<String>, Header, description = "What opens it"),
        ("X-API-Key" = Option<String>, Header, description = "Or a key of the account that pays it"),
        ("X-Payment-Channel" = Option<String>, Header, description = "Or the channel that pays it"),
        ("X-Payment-Channel-Secret" = Option<String>, Header, description = "Its secret"),
        ("Prefer" = Option<String>, Header, description = "`wait=` seconds, at most 30"),
    ),
    responses(
        (status = 200, description = "The job", body = Object),
        (status = 400, description = "Nothing is shown that opens a job"),
        (status = 401, description = "The key is none"),
        (status = 404, description = "No job with this id is opened by what is shown, or its answer is not kept any more"),
        (status = 429, description = "Too many requests from one address"),
        (status = 503, description = "Not now"),
    )
)]
pub async fn show(app: web::Data<App>, req: HttpRequest) -> Result<HttpResponse, MarketError> {
    let asked = Asked::read(&app, &req)?;
    let engine = &asked.room.engine;
    let mut job = asked.open(&app, &req).await?;
    let patience = manner::patience(&req);
    if matches!(job.stage, JobStage::Running(_))
        && !patience.is_zero()
        && let Ok((place, _hold)) = stream::take_place(&app, asked.room, &req)
    {
        let mut feed = engine.feed(job.id, u64::MAX, place);
        let ended = async { while matches!(feed.next().await, JobEvent::Word(_)) {} };
        tokio::select! {
            _ended_or_late = timeout(patience, ended) => {}
            () = app.stop.cancelled() => {}
        }
        job = asked.open(&app, &req).await?;
    }
    Ok(shown(engine, &job))
}
