//! A call as server-sent events: `job`, then `progress` and `chunk` as they come, and `result` or `error` at the end.

use std::time::Duration;

use actix_web::http::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderName};
use actix_web::{HttpRequest, HttpResponse, web};
use aip_market::invoke::{Invoked, JobEvent, JobFeed, StreamPlace};
use aip_market::refusal::{MarketCode, MarketRefusal};
use aip_protocol::error::{ErrorCode, Refusal};
use aip_protocol::sse;
use bytes::Bytes;
use futures_util::stream::{self, Stream};
use serde_json::{Map, Value};
use tokio::time::sleep;

use crate::app::App;
use crate::error::MarketError;
use crate::limits::STREAM_KEEPALIVE_SECS;
use crate::market::MarketRoom;
use crate::throttle::Hold;

/// The event that says which job it is.
pub(super) const JOB: &str = "job";
/// The event with the headers of the answer.
const HEADERS: &str = "headers";
const RESULT: &str = "result";
const ERROR: &str = "error";

/// Keeps nginx from collecting events before it passes them on.
const ACCEL_BUFFERING: HeaderName = HeaderName::from_static("x-accel-buffering");
/// A comment: it keeps the connection, and tells both sides whether there still is one.
const KEEPALIVE: &[u8] = b":\n\n";

/// One event whose data is this JSON.
pub(super) fn event(name: &str, json: &[u8]) -> Bytes {
    let mut text = Vec::with_capacity(json.len() + 64);
    sse::put_json(&mut text, name, None, json);
    text.into()
}

/// A place for a stream, among those of all and among those of the network address that asks.
///
/// # Errors
/// `rate_limited`: so many are open there already; `unavailable`: so many are open at all.
pub(super) fn take_place(
    app: &App,
    room: &MarketRoom,
    req: &HttpRequest,
) -> Result<(StreamPlace, Hold), MarketError> {
    let mut hold = room.streams.hold(app.throttle.network(req));
    if !hold.grow(1) {
        let detail = "Too many calls are being followed from your network address. Poll, or try again.";
        return Err(Refusal::new(ErrorCode::RateLimited, detail).retry_after(1).into());
    }
    Ok((room.engine.take_stream()?, hold))
}

/// The events of a job, after `first`.
pub(super) fn respond(app: web::Data<App>, feed: JobFeed, hold: Hold, first: Bytes) -> HttpResponse {
    let feed = Feed {
        app,
        job: feed,
        _hold: hold,
        first: Some(first),
        is_over: false,
    };
    HttpResponse::Ok()
        .insert_header((CONTENT_TYPE, "text/event-stream"))
        .insert_header((CACHE_CONTROL, "no-store"))
        .insert_header((ACCEL_BUFFERING, "no"))
        .streaming(events(feed))
}

/// Where one stream stands.
struct Feed {
    app: web::Data<App>,
    job: JobFeed,
    _hold: Hold,
    first: Option<Bytes>,
    is_over: bool,
}

/// The events, made only as fast as they are taken.
fn events(feed: Feed) -> impl Stream<Item = Result<Bytes, actix_web::Error>> {
    stream::unfold(feed, |mut feed| async move {
        let chunk = feed.next().await?;
        Some((Ok(chunk), feed))
    })
}

impl Feed {
    /// The next bytes; `None` at the end. A hub that stops ends its streams: the job goes on, and is found by its id.
    async fn next(&mut self) -> Option<Bytes> {
        if let Some(first) = self.first.take() {
            return Some(first);
        }
        if self.is_over {
            return None;
        }
        tokio::select! {
            biased;
            event = self.job.next() => Some(self.rendered(event)),
            () = self.app.stop.cancelled() => None,
            () = sleep(Duration::from_secs(STREAM_KEEPALIVE_SECS)) => Some(Bytes::from_static(KEEPALIVE)),
        }
    }

    fn rendered(&mut self, event: JobEvent) -> Bytes {
        match event {
            JobEvent::Word(word) => {
                let mut text = Vec::with_capacity(word.data.len() + 64);
                sse::put_json(&mut text, word.kind.as_str(), Some(word.number), &word.data);
                text.into()
            }
            JobEvent::Ended(invoked) => {
                self.is_over = true;
                ended(&invoked)
            }
            JobEvent::Gone => {
                self.is_over = true;
                let detail = "This job has ended, and its answer is not kept any more.";
                let refusal = MarketRefusal::new(MarketCode::JobUnknown, detail);
                refused(refusal.code.status(), &refusal.body().to_string().into_bytes())
            }
        }
    }
}

fn ended(invoked: &Invoked) -> Bytes {
    let end = if invoked.status == 200 {
        event(RESULT, &invoked.body)
    } else {
        refused(invoked.status, &invoked.body)
    };
    if invoked.headers.is_empty() {
        return end;
    }
    let headers = invoked.headers.iter();
    let headers: Map<String, Value> = headers
        .map(|(name, value)| ((*name).to_owned(), value.as_str().into()))
        .collect();
    let headers = event(HEADERS, Value::Object(headers).to_string().as_bytes());
    [headers, end].concat().into()
}

/// A refusal, and its status, which has no other place here.
fn refused(status: u16, body: &[u8]) -> Bytes {
    let mut body: Map<String, Value> = serde_json::from_slice(body).unwrap_or_default();
    body.insert("status".to_owned(), status.into());
    event(ERROR, Value::Object(body).to_string().as_bytes())
}

#[cfg(test)]
mod tests {
    use aip_protocol::sse::Decoder;
    use serde_json::json;

    use super::*;

    fn told(status: u16, body: &'static str, headers: Vec<(&'static str, String)>) -> Vec<(String, Value)> {
        let text = ended(&Invoked {
            status,
            body: Bytes::from_static(body.as_bytes()),
            replayed: false,
            headers,
            routed: None,
        });
        let events = Decoder::new(1_000).push(&text).unwrap();
        let read = |data: &str| serde_json::from_str(data).unwrap();
        events
            .into_iter()
            .map(|event| (event.name, read(&event.data)))
            .collect()
    }

    #[test]
    fn an_end_is_told_with_its_status_and_its_headers() {
        let result = (RESULT.to_owned(), json!({ "result": 1 }));
        let plain = told(200, r#"{"result": 1}"#, Vec::new());
        assert_eq!(plain, std::slice::from_ref(&result));
        let paid = vec![("payment-response", "e30=".to_owned())];
        let headers = (HEADERS.to_owned(), json!({ "payment-response": "e30=" }));
        assert_eq!(told(200, r#"{"result": 1}"#, paid), [headers, result]);
        // The terms of another hub come as they are, also where they are nothing.
        let error = |body: Value| (ERROR.to_owned(), body);
        assert_eq!(told(402, "", Vec::new()), [error(json!({ "status": 402 }))]);
        let refused = told(502, r#"{"error": "provider_failed"}"#, Vec::new());
        assert_eq!(
            refused,
            [error(json!({ "error": "provider_failed", "status": 502 }))]
        );
    }
}
