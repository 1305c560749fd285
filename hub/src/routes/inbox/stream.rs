//! `GET /api/v1/inbox/stream`: messages as server-sent events (§6).

use std::time::Duration;

use actix_web::http::header::{CONTENT_TYPE, HeaderName};
use actix_web::{HttpRequest, HttpResponse, web};
use aip_relay::inbox::{Item, Page, Reader};
use aip_relay::mailbox::Epoch;
use bytes::Bytes;
use futures_util::stream::{self, Stream};
use tokio::time::sleep;

use super::{ITEM_BYTES, cursor, put_item, session_of};
use crate::app::App;
use crate::error::ApiError;
use crate::extract::{Caller, Query, bearer, header, request_id};
use crate::limits::{STREAM_KEEPALIVE_SECS, STREAM_MESSAGES_MAX};
use crate::request_id::RequestId;

const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");
/// Keeps nginx from collecting events before it passes them on.
const ACCEL_BUFFERING: HeaderName = HeaderName::from_static("x-accel-buffering");
/// A comment: it keeps the connection, and tells both sides whether there still is one.
const KEEPALIVE: &[u8] = b":\n\n";

/// Streams messages.
#[utoipa::path(
    get,
    path = "/api/v1/inbox/stream",
    tag = "receiving",
    summary = "Messages as server-sent events",
    description = "One event for each message; its id is the cursor `epoch:seq`, its data the item of a long poll. \
                   Reconnect with `Last-Event-ID` to go on. Each event counts as an attempt; ack at \
                   /api/v1/inbox/ack. The stream ends with the token it was opened with.",
    params(
        ("Last-Event-ID" = Option<String>, Header, description = "The id of the last event you have; without it, \
            everything that is not settled"),
    ),
    responses(
        (status = 200, description = "Events", content_type = "text/event-stream", body = String),
        (status = 400, description = "The cursor cannot be read"),
        (status = 401, description = "No valid token"),
        (status = 409, description = "The cursor is of another epoch: the store was restored"),
        (status = 429, description = "Too many requests of this agent wait"),
        (status = 503, description = "The mailboxes cannot be read now"),
    ),
    security(("token" = []))
)]
pub async fn stream(app: web::Data<App>, req: HttpRequest, caller: Caller) -> Result<HttpResponse, ApiError> {
    Query::parse(&req, &[])?;
    let last = req.headers().contains_key(LAST_EVENT_ID);
    let last = last.then(|| header(&req, &LAST_EVENT_ID).unwrap_or(""));
    let after = last.map(cursor).transpose()?;
    let reader = app
        .inbox
        .reader(caller.0, after.as_ref(), session_of(&req))
        .await??;
    let id = request_id(&req).unwrap_or_else(|| app.request_ids.next());
    let token = bearer(&req).unwrap_or("").into();
    let events = events(Feed {
        app: app.clone(),
        reader,
        token,
        id,
        begun: false,
    });
    Ok(HttpResponse::Ok()
        .insert_header((CONTENT_TYPE, "text/event-stream"))
        .insert_header((ACCEL_BUFFERING, "no"))
        .streaming(events))
}

/// Where one stream stands.
struct Feed {
    app: web::Data<App>,
    reader: Reader,
    token: Box<str>,
    id: RequestId,
    begun: bool,
}

/// The events, made only as fast as they are taken.
fn events(feed: Feed) -> impl Stream<Item = Result<Bytes, actix_web::Error>> {
    stream::unfold(feed, |mut feed| async move {
        let chunk = feed.next().await?;
        Some((Ok(chunk), feed))
    })
}

impl Feed {
    /// The next bytes; `None` at the end.
    async fn next(&mut self) -> Option<Bytes> {
        if !std::mem::replace(&mut self.begun, true) {
            // So that the agent sees the head of the answer at once.
            return Some(Bytes::from_static(KEEPALIVE));
        }
        loop {
            if self.app.stop.is_cancelled() || self.reader.is_closed() {
                return None;
            }
            match self.reader.read(STREAM_MESSAGES_MAX).await {
                Ok(page) if !page.items.is_empty() => return Some(render(&page)),
                Ok(_) => {}
                Err(error) => {
                    self.app.failures.log(self.id, error.code().as_str(), &error);
                    return None;
                }
            }
            tokio::select! {
                () = self.reader.changed() => {}
                () = self.app.stop.cancelled() => return None,
                () = sleep(Duration::from_secs(STREAM_KEEPALIVE_SECS)) => return self.keep_alive().await,
            }
        }
    }

    /// A comment, as long as the token is good. A registry that cannot be asked ends nobody's stream.
    async fn keep_alive(&self) -> Option<Bytes> {
        let good = self.app.registry.authenticate(&self.token).await;
        good.map_or(true, |did| did.is_some())
            .then(|| Bytes::from_static(KEEPALIVE))
    }
}

fn render(page: &Page) -> Bytes {
    let bytes: usize = page
        .items
        .iter()
        .map(|item| item.wire.len() + 2 * ITEM_BYTES)
        .sum();
    let mut text = Vec::with_capacity(bytes);
    for item in &page.items {
        put_event(&mut text, &page.epoch, item);
    }
    text.into()
}

/// An event ends with an empty line, and a sender may have written line breaks between the members of an envelope: each
/// line gets its own `data`. A reader joins them with line feeds, which are space to JSON as well.
fn put_event(text: &mut Vec<u8>, epoch: &Epoch, item: &Item) {
    text.extend_from_slice(format!("id: {epoch}:{}\n", item.seq).as_bytes());
    let mut data = Vec::with_capacity(item.wire.len() + ITEM_BYTES);
    put_item(&mut data, item);
    for line in data.split(|byte| matches!(byte, b'\n' | b'\r')) {
        if !line.is_empty() {
            text.extend_from_slice(b"data: ");
            text.extend_from_slice(line);
            text.push(b'\n');
        }
    }
    text.push(b'\n');
}

#[cfg(test)]
mod tests {
    use aip_protocol::time::Timestamp;

    use super::*;

    #[test]
    fn an_envelope_with_line_breaks_stays_one_event() {
        let wire = Bytes::from_static(b"{\r\n\r\n \"a\": 1,\n\n\t\"b\": \"x\\ny\"\r}");
        let at = Timestamp::parse("2026-11-29T20:15:30Z").unwrap();
        let mut text = Vec::new();
        put_event(
            &mut text,
            &Epoch::parse("e1").unwrap(),
            &Item {
                seq: 7,
                attempt: 1,
                accepted_at: at,
                wire: wire.clone(),
            },
        );
        let text = String::from_utf8(text).unwrap();
        let lines: Vec<&str> = text.split('\n').collect();
        assert_eq!(lines[0], "id: e1:7");
        assert_eq!(
            &lines[lines.len() - 2..],
            ["", ""],
            "the event ends once, at its end"
        );
        assert_eq!(lines.iter().filter(|line| line.is_empty()).count(), 2);
        let data: Vec<&str> = lines
            .iter()
            .filter_map(|line| line.strip_prefix("data: "))
            .collect();
        let item: serde_json::Value = serde_json::from_str(&data.join("\n")).unwrap();
        assert_eq!(
            item["envelope"],
            serde_json::from_slice::<serde_json::Value>(&wire).unwrap()
        );
        assert_eq!((&item["seq"], &item["attempt"]), (&7.into(), &1.into()));
    }
}
