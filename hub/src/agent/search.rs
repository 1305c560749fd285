//! `aip.search.request`: the search of `POST /api/v1/search`, asked by message (spec §9, `docs/protocol/types/`).

use aip_protocol::error::{ErrorCode, Refusal};
use aip_protocol::json::Json;
use serde::Serialize;
use serde_json::value::RawValue;

use super::limits::ENVELOPE_HEAD_BYTES;
use crate::app::App;
use crate::error::ApiError;
use crate::limits::SEARCH_BODY_BYTES_MAX;
use crate::routes::search::{Answer, find, post};

/// The type of a request.
pub(super) const REQUEST: &str = "aip.search.request";

/// The answer of a request as it goes over the wire.
pub(super) type Found = Box<RawValue>;

/// Searches for what an opened request asks.
///
/// # Errors
/// Those of `POST /api/v1/search`; 413 `body_too_large` for a request or an answer that is, 415
/// `media_type_unsupported` for what is not JSON.
pub(super) async fn respond(app: &App, plaintext: &[u8]) -> Result<Found, ApiError> {
    let mut query = post::read(&body(plaintext)?)?.into_query();
    let room_bytes = room_bytes(app.settings.relay.envelope_bytes_max);
    loop {
        let answer = find(app, query.clone()).await?;
        let text = raw(&answer)?;
        if text.get().len() <= room_bytes {
            return Ok(text);
        }
        // A page of as many as fit; the rest is behind its cursor.
        query.limit = fewer(&answer, room_bytes).ok_or_else(too_large)?;
    }
}

/// An answer as it goes over the wire.
pub(super) fn raw(answer: &impl Serialize) -> Result<Found, ApiError> {
    serde_json::value::to_raw_value(answer).map_err(|error| ApiError::failed(ErrorCode::Internal, error))
}

/// The body of a request, read by the strict rules of §2.
pub(super) fn body(plaintext: &[u8]) -> Result<Json, ApiError> {
    if plaintext.len() > SEARCH_BODY_BYTES_MAX {
        let detail = format!("The request says more than {SEARCH_BODY_BYTES_MAX} bytes, the most one may.");
        let refusal = Refusal::new(ErrorCode::BodyTooLarge, detail);
        return Err(refusal.with("limit_bytes", SEARCH_BODY_BYTES_MAX).into());
    }
    let plaintext = Json::parse(plaintext)?;
    let content_type = plaintext.get("content_type").and_then(Json::as_str);
    let essence = content_type
        .unwrap_or_default()
        .split(';')
        .next()
        .unwrap_or_default();
    if !essence.trim().eq_ignore_ascii_case(super::answer::JSON) {
        let detail = "The `content_type` of a request is application/json.";
        return Err(ApiError::refused(ErrorCode::MediaTypeUnsupported, detail));
    }
    plaintext.get("body").cloned().ok_or_else(|| {
        let refusal = Refusal::new(ErrorCode::MemberMissing, "The plaintext has no `body`.");
        refusal.with("member", "body").into()
    })
}

/// Bytes of a body that fit into an envelope of `envelope_bytes_max`, sealed and in base64url.
pub(super) fn room_bytes(envelope_bytes_max: usize) -> usize {
    envelope_bytes_max.saturating_sub(ENVELOPE_HEAD_BYTES) / 4 * 3
}

/// So many of the results fit; less than there are, and one at least. `None` where one alone does not fit.
fn fewer(answer: &Answer, room_bytes: usize) -> Option<u32> {
    let most = answer.results.len().checked_sub(1).filter(|most| *most > 0)?;
    let sizes = answer
        .results
        .iter()
        .map(|result| serde_json::to_vec(result).map_or(0, |text| text.len() + 1));
    let total: usize = sizes.clone().sum();
    let whole = serde_json::to_vec(answer).map_or(total, |text| text.len());
    let mut taken = whole.saturating_sub(total);
    let fits = sizes.take_while(|size| {
        taken = taken.saturating_add(*size);
        taken <= room_bytes
    });
    u32::try_from(fits.count().clamp(1, most)).ok()
}

fn too_large() -> ApiError {
    let detail =
        "The answer does not fit into an envelope. Ask without `explain` and `facets`, or over HTTP.";
    ApiError::refused(ErrorCode::BodyTooLarge, detail)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(plaintext: &str) -> &'static str {
        body(plaintext.as_bytes()).map_or_else(|error| error.code().as_str(), |_| "ok")
    }

    #[test]
    fn a_request_is_strict_json_of_its_type() {
        assert_eq!(code(r#"{"content_type":"application/json","body":{}}"#), "ok");
        assert_eq!(
            code(r#"{"content_type":"Application/JSON; charset=utf-8","body":{}}"#),
            "ok"
        );
        assert_eq!(
            code(r#"{"content_type":"text/plain","body":"tea"}"#),
            "media_type_unsupported"
        );
        assert_eq!(code(r#"{"body":{}}"#), "media_type_unsupported");
        assert_eq!(code(r#"{"content_type":"application/json"}"#), "member_missing");
        assert_eq!(
            code(r#"{"content_type":"application/json","body":{"limit":1.5}}"#),
            "json_invalid"
        );
        assert_eq!(
            code(r#"{"content_type":"application/json","body":{"q":"a","q":"b"}}"#),
            "json_invalid"
        );
        assert_eq!(code("tea"), "json_invalid");
        assert_eq!(code(&" ".repeat(SEARCH_BODY_BYTES_MAX + 1)), "body_too_large");
    }

    #[test]
    fn what_fits_is_what_base64_leaves() {
        assert_eq!(room_bytes(262_144), (262_144 - ENVELOPE_HEAD_BYTES) / 4 * 3);
        assert_eq!(room_bytes(1), 0);
    }
}
