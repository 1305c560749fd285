//! Envelopes in: sending, and asking what became of what was sent (§5).

use actix_web::http::StatusCode;
use actix_web::{HttpRequest, HttpResponse, web};
use aip_protocol::error::{ErrorCode, Refusal};
use aip_relay::admission::Door;
use aip_relay::relay::{BatchItem, SendError, Submission, is_batch};
use bytes::Bytes;
use serde::Serialize;
use serde_json::{Map, Value};
use utoipa::ToSchema;

use crate::app::App;
use crate::error::ApiError;
use crate::extract::{BodyLimit, read_typed, request_id};
use crate::routes::Endpoint;

pub mod relay;
pub mod send;
pub mod status;

/// The media types of envelopes.
const MEDIA_TYPES: &[&str] = &["application/aip+json", "application/json"];

/// The endpoints of this resource.
pub fn endpoints() -> Vec<Endpoint> {
    vec![
        Endpoint::at("/api/v1/messages").post(send::send),
        Endpoint::at("/relay/{name}").post(relay::relay),
        Endpoint::at("/api/v1/messages/{id}/status").get(status::status),
    ]
}

/// One envelope, or an array of them.
#[derive(ToSchema, Serialize)]
#[serde(untagged)]
#[expect(
    dead_code,
    reason = "the shape for the documentation; bodies are read by the strict rules"
)]
enum SendBody {
    /// An envelope.
    #[schema(value_type = Object)]
    One(Map<String, Value>),
    /// Several, each taken or refused on its own.
    #[schema(value_type = Vec<Object>)]
    Many(Vec<Map<String, Value>>),
}

/// What happened to one envelope, or to each of an array, in its order.
#[derive(ToSchema, Serialize)]
#[serde(untagged)]
#[expect(dead_code, reason = "the shape for the documentation")]
enum SendAnswers {
    /// To the one.
    One(SendAnswer),
    /// To each.
    Many(Vec<SendAnswer>),
}

/// What happened to an envelope.
#[derive(ToSchema, Serialize)]
struct SendAnswer {
    /// The envelope's id; absent in the answer to an item of an array that has none.
    #[schema(example = "6f8f3f5e-2a52-4e0b-9a5f-6f0c6f1d7c11")]
    id: Option<String>,
    /// `stored`, `delivered`, `queued` or `duplicate`; in an array also `refused`, with `code` and `detail`.
    #[schema(example = "stored")]
    status: String,
    /// `mailbox`, `direct` or `peer`; absent where it was refused.
    #[schema(example = "mailbox")]
    route: Option<String>,
    /// Its place in the recipient's mailbox, if it has one.
    seq: Option<u64>,
    /// Why an item of an array was refused.
    code: Option<String>,
    /// What its sender can do about it.
    detail: Option<String>,
}

/// Takes one envelope or an array of them from a request's body.
async fn take(
    app: &App,
    req: &HttpRequest,
    payload: web::Payload,
    door: &Door,
) -> Result<HttpResponse, ApiError> {
    let network = app.throttle.network(req);
    app.throttle.admit_proof(network)?;
    let relay = &app.settings.relay;
    let limit = BodyLimit::new(relay.batch_bytes_max.max(relay.envelope_bytes_max));
    let body = read_typed(app, req, payload, limit, MEDIA_TYPES).await?;
    if is_batch(&body) {
        return many(app, req, body, door).await;
    }
    let submission = app.relay.submit(body, door).await;
    let submission = submission.inspect_err(|error| app.throttle.count_proof(network, error.code()))?;
    let status = StatusCode::from_u16(submission.status.http_status()).unwrap_or(StatusCode::ACCEPTED);
    Ok(HttpResponse::build(status).json(submission))
}

async fn many(app: &App, req: &HttpRequest, body: Bytes, door: &Door) -> Result<HttpResponse, ApiError> {
    let items = app.relay.submit_batch(body, door).await?;
    let answers: Vec<ItemAnswer> = items.into_iter().map(|item| answer(app, req, item)).collect();
    Ok(HttpResponse::Ok().json(answers))
}

/// The answer to one envelope of several.
#[derive(Serialize)]
#[serde(untagged)]
enum ItemAnswer {
    Sent(Submission),
    Refused(Map<String, Value>),
}

fn answer(app: &App, req: &HttpRequest, item: BatchItem) -> ItemAnswer {
    let error = match item.result {
        Ok(submission) => return ItemAnswer::Sent(submission),
        Err(error) => ApiError::from(error),
    };
    app.throttle.count_proof(app.throttle.network(req), error.code());
    if let (Some(id), Some(cause)) = (request_id(req), error.cause()) {
        app.failures.log(id, error.code().as_str(), cause);
    }
    let mut members = refused(error.refusal());
    members.extend(
        item.id
            .map(|id| ("id".to_owned(), id.hyphenated().to_string().into())),
    );
    ItemAnswer::Refused(members)
}

/// A refusal where there is no status line for it: an item of an array, a frame of a socket. Members of the case
/// replace none of the fixed ones.
pub(crate) fn refused(refusal: &Refusal) -> Map<String, Value> {
    let case = refusal.members.iter();
    let mut members: Map<String, Value> = case
        .map(|(name, value)| ((*name).to_owned(), value.clone()))
        .collect();
    members.insert("status".to_owned(), "refused".into());
    members.insert("code".to_owned(), refusal.code.as_str().into());
    members.insert("detail".to_owned(), refusal.detail.as_ref().into());
    members.extend(
        refusal
            .retry_after_secs
            .map(|secs| ("retry_after_s".to_owned(), secs.into())),
    );
    members
}

impl From<SendError> for ApiError {
    fn from(error: SendError) -> Self {
        match error {
            SendError::Refused(refusal) => refusal.into(),
            error => Self::failed(error.code(), error),
        }
    }
}

/// Nobody but the sender learns of a message.
fn unknown_message() -> ApiError {
    ApiError::refused(
        ErrorCode::NotFound,
        "You sent no message with this id here, or it was more than 14 days ago.",
    )
}

#[cfg(test)]
mod tests;
