//! Jobs: calls that somebody follows, for whoever has their secret or what pays them.

use actix_web::http::header::{CACHE_CONTROL, ContentType, HeaderName, RETRY_AFTER};
use actix_web::{HttpRequest, HttpResponse};
use aip_market::invoke::{Job, JobShown, JobStage};
use aip_market::limits::JOB_RETRY_SECS;
use aip_market::market::Market;
use aip_market::refusal::{MarketCode, MarketError as Refused};
use aip_protocol::error::ErrorCode;

use super::{API_KEY, CHANNEL, CHANNEL_SECRET, header, room};
use crate::app::App;
use crate::error::MarketError;
use crate::market::MarketRoom;
use crate::routes::Endpoint;
use crate::throttle::Cost;

pub mod cancel;
pub mod events;
pub mod show;

const SECRET: HeaderName = HeaderName::from_static("x-aimarket-job-secret");

/// The endpoints of this resource.
pub fn endpoints() -> Vec<Endpoint> {
    vec![
        Endpoint::at("/ai-market/v2/jobs/{job_id}")
            .get(show::show)
            .delete(cancel::cancel),
        Endpoint::at("/ai-market/v2/jobs/{job_id}/events").get(events::events),
    ]
}

/// A request about a job: which one, and what opens it.
struct Asked<'a> {
    room: &'a MarketRoom,
    id: String,
    shown: JobShown,
}

impl<'a> Asked<'a> {
    fn read(app: &'a App, req: &HttpRequest) -> Result<Self, MarketError> {
        let room = room(app)?;
        app.throttle.admit(Cost::Invocation, req)?;
        let shown = JobShown {
            secret: header(req, &SECRET)?,
            api_key: header(req, &API_KEY)?,
            channel: header(req, &CHANNEL)?,
            channel_secret: header(req, &CHANNEL_SECRET)?,
        };
        if shown.api_key.is_some() {
            app.throttle.admit_proof(app.throttle.network(req))?;
        }
        let id = req.match_info().get("job_id").unwrap_or_default().to_owned();
        Ok(Self { room, id, shown })
    }

    async fn open(&self, app: &App, req: &HttpRequest) -> Result<Job, MarketError> {
        counted(app, req, self.room.engine.open_job(&self.id, &self.shown).await)
    }
}

/// Wrong keys count against the network address.
fn counted(app: &App, req: &HttpRequest, job: Result<Job, Refused>) -> Result<Job, MarketError> {
    if let Err(Refused::Refused(refusal)) = &job
        && refusal.code == MarketCode::KeyInvalid
    {
        app.throttle
            .count_proof(app.throttle.network(req), ErrorCode::TokenInvalid);
    }
    Ok(job?)
}

/// A job as it stands.
fn shown(engine: &Market, job: &Job) -> HttpResponse {
    let mut response = HttpResponse::Ok();
    response
        .insert_header(ContentType::json())
        .insert_header((CACHE_CONTROL, "no-store"));
    if matches!(job.stage, JobStage::Running(_)) {
        response.insert_header((RETRY_AFTER, JOB_RETRY_SECS));
    }
    response.body(engine.job_body(job, None))
}
