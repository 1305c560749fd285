//! `POST /federation/v1/messages`: mail that another hub accepted from its agents, for agents of this one (§8).

use std::time::Duration;

use actix_web::http::header::ContentType;
use actix_web::{HttpRequest, HttpResponse, web};
use aip_federation::inbound::Call;
use aip_protocol::error::{ErrorCode, Refusal};
use aip_protocol::limits::BATCH_BYTES_MAX;
use bytes::Bytes;
use tokio::time::timeout;

use super::knock;
use crate::app::App;
use crate::error::ApiError;
use crate::extract::{BodyLimit, JSON, Query, read_typed};
use crate::limits::{PUSH_BODY_TIMEOUT, UNAVAILABLE_RETRY_SECS};

/// Takes a batch of a peer.
#[utoipa::path(
    post,
    path = "/federation/v1/messages",
    tag = "federation",
    operation_id = "federation_messages",
    summary = "Hand in mail of another hub",
    description = "Up to 64 items or 1 MiB: `{\"aip\":\"1\",\"domain\",\"epoch\",\"items\":[{\"peer_seq\",\"accepted_at\",\"envelope\"}]}`, signed by \
                   the sending hub (RFC 9421, ed25519, tag `aip-fed-1`). The answer has one result for each item, in order: \
                   `stored`, `duplicate`, `refused` with its `code`, or `retry` with `retry_after_s`; and `acked_through`, up to \
                   which everything is settled.",
    request_body = Object,
    responses(
        (status = 200, description = "What became of each item", body = Object),
        (status = 400, description = "Not a batch"),
        (status = 401, description = "The request's signature, its key or its nonce is not good"),
        (status = 403, description = "This hub takes nothing from that one, or the domain is not the signer's"),
        (status = 404, description = "This hub does not federate"),
        (status = 409, description = "Another epoch than the one in the peer's document"),
        (status = 413, description = "More than 64 items or 1 MiB"),
        (status = 415, description = "Another media type, or a Content-Encoding"),
        (status = 429, description = "More than this peer may hand in; `Retry-After` says when"),
        (status = 502, description = "The peer's document cannot be had"),
        (status = 503, description = "Not now"),
    )
)]
pub async fn messages(
    app: web::Data<App>,
    req: HttpRequest,
    payload: web::Payload,
) -> Result<HttpResponse, ApiError> {
    Query::parse(&req, &[])?;
    let (inbound, ticket) = knock(&app, &req, Call::Push)?;
    let body = read_typed(&app, &req, payload, BodyLimit::new(BATCH_BYTES_MAX), JSON);
    let body = arrived(body, PUSH_BODY_TIMEOUT).await?;
    let answer = inbound.push(ticket, body).await?;
    Ok(HttpResponse::Ok()
        .insert_header(ContentType::json())
        .body(answer.to_body()))
}

/// The body of a push, which holds a place among all requests of peers while it arrives. One that does not arrive says nothing
/// about the mail in it: the peer comes again, and is not told that it sent something wrong.
async fn arrived(
    body: impl Future<Output = Result<Bytes, ApiError>>,
    within: Duration,
) -> Result<Bytes, ApiError> {
    match timeout(within, body).await {
        Ok(Err(error)) if error.code() == ErrorCode::JsonInvalid => Err(too_slow()),
        Ok(read) => read,
        Err(_elapsed) => Err(too_slow()),
    }
}

fn too_slow() -> ApiError {
    let detail = "The push did not arrive in time, or not as a whole. Send it again, or less at once.";
    let refusal = Refusal::new(ErrorCode::RateLimited, detail).retry_after(UNAVAILABLE_RETRY_SECS);
    ApiError::from(refusal).closing()
}

#[cfg(test)]
mod tests {
    use std::future::{pending, ready};

    use super::*;

    #[actix_web::test]
    async fn mail_is_not_at_fault_for_a_body_that_does_not_arrive() {
        let read = async |body: Result<Bytes, ErrorCode>| {
            let body = ready(body.map_err(|code| ApiError::refused(code, "")));
            arrived(body, PUSH_BODY_TIMEOUT)
                .await
                .map_err(|error| error.code())
        };
        assert_eq!(read(Ok(Bytes::from_static(b"{}"))).await.unwrap(), "{}");
        for (code, told) in [
            (ErrorCode::JsonInvalid, ErrorCode::RateLimited),
            (ErrorCode::BodyTooLarge, ErrorCode::BodyTooLarge),
            (ErrorCode::MediaTypeUnsupported, ErrorCode::MediaTypeUnsupported),
        ] {
            assert_eq!(read(Err(code)).await, Err(told));
        }
        let stalled = arrived(pending(), Duration::ZERO).await.unwrap_err();
        assert_eq!(stalled.code(), ErrorCode::RateLimited);
        assert_eq!(stalled.refusal().retry_after_secs, Some(UNAVAILABLE_RETRY_SECS));
    }
}
