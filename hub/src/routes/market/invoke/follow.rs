//! Calls that somebody follows: answered with where the answer will be, or by events as they come.

use std::sync::Arc;
use std::time::Duration;

use actix_web::http::header::{ContentType, HeaderName, LOCATION, RETRY_AFTER};
use actix_web::{HttpRequest, HttpResponse, web};
use aip_market::invoke::{Followed, InvokeCall, InvokeReport, JobHandle, JobReport, StreamPlace};
use aip_market::limits::JOB_RETRY_SECS;
use aip_market::offer::Offer;
use bytes::Bytes;
use tokio::time::{Instant, timeout};

use super::manner::Manner;
use super::{answer, read_call};
use crate::app::App;
use crate::error::MarketError;
use crate::routes::market::stream::{self, JOB};
use crate::routes::market::{poll_url, room};
use crate::throttle::Hold;

const APPLIED: HeaderName = HeaderName::from_static("preference-applied");

/// What came of a call, for its metrics.
struct Begun {
    app: web::Data<App>,
    offer: Option<Arc<Offer>>,
    at: Instant,
}

/// Invokes a capability in this manner.
pub(super) async fn invoke(
    app: web::Data<App>,
    req: &HttpRequest,
    payload: web::Payload,
    manner: Manner,
) -> Result<HttpResponse, MarketError> {
    let at = Instant::now();
    let (call, place) = match ask(&app, req, payload, manner).await {
        Ok(asked) => asked,
        Err(error) => {
            app.metrics.market.refused(error.code());
            return Err(error);
        }
    };
    let JobReport { offer, answer } = room(&app)?.engine.invoke_followed(call).await;
    let begun = Begun {
        app: app.clone(),
        offer,
        at,
    };
    let handle = match answer {
        Ok(Followed::Job(handle)) => handle,
        Ok(Followed::Answered(invoked)) => return begun.answered(req, Ok(invoked)),
        Err(error) => return begun.answered(req, Err(error)),
    };
    match (manner, place) {
        (Manner::Events, Some(place)) => streamed(begun, handle, place),
        (Manner::Later(wait), _) => later(begun, req, handle, wait).await,
        _ => later(begun, req, handle, Duration::ZERO).await,
    }
}

/// The call, and a place for its stream: nothing is begun that cannot be followed.
async fn ask(
    app: &App,
    req: &HttpRequest,
    payload: web::Payload,
    manner: Manner,
) -> Result<(InvokeCall, Option<(StreamPlace, Hold)>), MarketError> {
    let call = read_call(app, req, payload).await?;
    let place = match manner {
        Manner::Events => Some(stream::take_place(app, room(app)?, req)?),
        Manner::Plain | Manner::Later(_) => None,
    };
    Ok((call, place))
}

/// 202, unless it has ended within the time, and before this process begins to stop.
async fn later(
    begun: Begun,
    req: &HttpRequest,
    mut handle: JobHandle,
    wait: Duration,
) -> Result<HttpResponse, MarketError> {
    let ended = if wait.is_zero() {
        None
    } else {
        tokio::select! {
            biased;
            ended = timeout(wait, handle.end()) => ended.ok().flatten(),
            () = begun.app.stop.cancelled() => None,
        }
    };
    if let Some(mut invoked) = ended {
        invoked.replayed = !handle.is_begun;
        return begun.answered(req, Ok(invoked));
    }
    let engine = &room(&begun.app)?.engine;
    let body = engine.job_body(&handle.job, Some(&handle.secret));
    let response = HttpResponse::Accepted()
        .insert_header(ContentType::json())
        .insert_header((LOCATION, poll_url(engine, handle.job.id)))
        .insert_header((RETRY_AFTER, JOB_RETRY_SECS))
        .insert_header((APPLIED, "respond-async"))
        .body(body);
    actix_web::rt::spawn(begun.counted(handle));
    Ok(response)
}

fn streamed(
    begun: Begun,
    handle: JobHandle,
    (place, hold): (StreamPlace, Hold),
) -> Result<HttpResponse, MarketError> {
    let app = begun.app.clone();
    let engine = &room(&app)?.engine;
    let first: Bytes = stream::event(JOB, &engine.job_body(&handle.job, Some(&handle.secret)));
    let feed = engine.feed(handle.job.id, 0, place);
    actix_web::rt::spawn(begun.counted(handle));
    Ok(stream::respond(app.clone(), feed, hold, first))
}

impl Begun {
    /// An answer that is there already.
    fn answered(
        self,
        req: &HttpRequest,
        answered: Result<aip_market::invoke::Invoked, aip_market::refusal::MarketError>,
    ) -> Result<HttpResponse, MarketError> {
        let report = InvokeReport {
            offer: self.offer,
            answer: answered,
        };
        self.app.metrics.market.invoked(&report, self.at.elapsed());
        answer(&self.app, req, report)
    }

    /// Counts a call that was begun when it ends, whoever follows it then.
    async fn counted(self, mut handle: JobHandle) {
        if !handle.is_begun {
            return;
        }
        if let Some(invoked) = handle.end().await {
            let report = InvokeReport {
                offer: self.offer,
                answer: Ok(invoked),
            };
            self.app.metrics.market.invoked(&report, self.at.elapsed());
        }
    }
}
