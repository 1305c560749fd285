//! `GET /api/v1/inbox`: messages after a cursor, waiting for the first if there is none (§6).

use std::time::Duration;

use actix_web::http::header::ContentType;
use actix_web::{HttpRequest, HttpResponse, web};
use aip_relay::inbox::{Page, Reader};
use tokio::time::{Instant, sleep_until};
use utoipa::ToSchema;

use super::{ITEM_BYTES, InboxItem, cursor, put_item, session_of};
use crate::app::App;
use crate::error::ApiError;
use crate::extract::{Caller, Query};

/// What waits in the mailbox.
#[derive(ToSchema)]
#[schema(as = InboxAnswer)]
#[expect(
    dead_code,
    reason = "the shape for the documentation; the bytes are put together"
)]
struct InboxAnswer {
    /// The life of the store; a cursor is `epoch:seq`.
    epoch: String,
    /// Everything up to here is settled.
    floor: u64,
    /// The messages, in the order of the mailbox.
    items: Vec<InboxItem>,
}

/// Offers messages.
#[utoipa::path(
    get,
    path = "/api/v1/inbox",
    tag = "receiving",
    summary = "Fetch messages, waiting for them",
    description = "Each answer counts as one attempt for each of its messages. A message stays until it is acked; \
                   after 8 attempts with at least two tokens or connections it goes to the dead letters.",
    params(
        ("after" = Option<String>, Query, description = "The cursor `epoch:seq` of the last message you have; \
            without it, everything that is not settled"),
        ("limit" = Option<u32>, Query, description = "Messages in one answer, 1 to 100"),
        ("thread" = Option<String>, Query, description = "Only messages of this conversation; others are neither offered \
            nor counted"),
        ("wait_s" = Option<u32>, Query, description = "How long to wait for a message, 0 (the default) to 60 seconds"),
    ),
    responses(
        (status = 200, description = "What is there; nothing, if the wait was in vain", body = InboxAnswer),
        (status = 400, description = "A parameter or the cursor cannot be read"),
        (status = 401, description = "No valid token"),
        (status = 409, description = "The cursor is of another epoch: the store was restored"),
        (status = 429, description = "Too many requests of this agent wait"),
        (status = 503, description = "The mailboxes cannot be read now"),
    ),
    security(("token" = []))
)]
pub async fn poll(app: web::Data<App>, req: HttpRequest, caller: Caller) -> Result<HttpResponse, ApiError> {
    let query = Query::parse(&req, &["after", "limit", "thread", "wait_s"])?;
    let receive = &app.settings.receive;
    let most = u64::from(receive.poll_messages_max);
    let limit = usize::try_from(query.number("limit", 1..=most, most)?).unwrap_or(usize::MAX);
    let wait_secs = query.number("wait_s", 0..=receive.poll_wait_secs_max, 0)?;
    let after = query.text("after")?.as_deref().map(cursor).transpose()?;
    let mut reader = app
        .inbox
        .reader(caller.0, after.as_ref(), session_of(&req))
        .await??;
    if let Some(thread) = query.text("thread")? {
        reader = reader.of_thread(thread);
    }
    let deadline = Instant::now() + Duration::from_secs(wait_secs);
    let page = first_page(&app, &mut reader, limit, deadline).await?;
    Ok(HttpResponse::Ok()
        .content_type(ContentType::json())
        .body(body(&page)))
}

/// Reads until there is something, the time is over, or the hub goes away.
async fn first_page(
    app: &App,
    reader: &mut Reader,
    limit: usize,
    deadline: Instant,
) -> Result<Page, ApiError> {
    loop {
        let page = reader.read(limit).await?;
        if !page.items.is_empty() || reader.is_closed() {
            return Ok(page);
        }
        tokio::select! {
            () = reader.changed() => {}
            () = sleep_until(deadline) => return Ok(page),
            () = app.stop.cancelled() => return Ok(page),
        }
    }
}

fn body(page: &Page) -> Vec<u8> {
    let bytes: usize = page.items.iter().map(|item| item.wire.len() + ITEM_BYTES).sum();
    let mut text = Vec::with_capacity(bytes + ITEM_BYTES);
    let head = format!(
        "{{\"epoch\":\"{}\",\"floor\":{},\"items\":[",
        page.epoch, page.floor
    );
    text.extend_from_slice(head.as_bytes());
    for (index, item) in page.items.iter().enumerate() {
        if index > 0 {
            text.push(b',');
        }
        put_item(&mut text, item);
    }
    text.extend_from_slice(b"]}");
    text
}
