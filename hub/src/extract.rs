//! What handlers take from a request: bodies in bounded time and space, strict JSON, exact query parameters, path
//! segments as they were sent, and who is calling.

use std::time::Duration;

use actix_web::error::PayloadError;
use actix_web::http::header::{AUTHORIZATION, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, HeaderName};
use actix_web::{FromRequest, HttpMessage, HttpRequest, dev, web};
use aip_protocol::error::{ErrorCode, Refusal};
use aip_protocol::json::Json;
use aip_protocol::name::{Did, Name};
use bytes::{Bytes, BytesMut};
use futures_util::StreamExt as _;
use futures_util::future::LocalBoxFuture;
use tokio::time::{Instant, timeout_at};

use crate::app::App;
use crate::error::ApiError;
use crate::limits::{DRAINED_BYTES_MAX, SMALL_BODY_BYTES_MAX, UNAVAILABLE_RETRY_SECS};
use crate::request_id::RequestId;
use crate::routes::Template;
use room::Share;

mod lines;
mod query;
mod room;

pub use lines::{Line, Lines};
pub use query::Query;
pub(crate) use query::unknown;
pub use room::BodyRoom;

/// The media types of a JSON body.
pub const JSON: &[&str] = &["application/json"];

/// How large a body may be, and the code for a larger one.
#[derive(Clone, Copy, Debug)]
pub struct BodyLimit {
    /// The most bytes that are taken.
    pub bytes: usize,
    /// The code of the refusal, `body_too_large` or `envelope_too_large`.
    pub code: ErrorCode,
}

impl BodyLimit {
    /// A limit whose refusal is `body_too_large`.
    pub const fn new(bytes: usize) -> Self {
        Self {
            bytes,
            code: ErrorCode::BodyTooLarge,
        }
    }

    fn refusal(self) -> ApiError {
        let detail = format!(
            "The body is larger than {} bytes, the most this path takes.",
            self.bytes
        );
        ApiError::from(Refusal::new(self.code, detail).with("limit_bytes", self.bytes)).closing()
    }
}

/// How long a body may take: `grace` altogether, and more only while it keeps coming at `bytes_per_sec_min`.
///
/// The web framework limits the time of the head only; without this a caller could hold a connection for ever.
#[derive(Clone, Copy, Debug)]
pub struct BodyPace {
    /// The time any body may take.
    pub grace: Duration,
    /// What a body has to keep up beyond it; 0 grants no more time.
    pub bytes_per_sec_min: u64,
}

impl BodyPace {
    fn allowance(self, received: usize) -> Duration {
        let received = u64::try_from(received).unwrap_or(u64::MAX);
        self.grace + Duration::from_secs(received.checked_div(self.bytes_per_sec_min).unwrap_or(0))
    }
}

/// Reads a whole body.
///
/// # Errors
/// 415 `encoding_unsupported` for a `Content-Encoding`, 413 with the limit's code, 400 `json_invalid` for a body that
/// ends early, is not well-formed chunks, or is too slow, and 429 `rate_limited` where the bodies of other requests have
/// all the room, or all that the network address may have of it.
pub async fn read_body(
    app: &App,
    req: &HttpRequest,
    payload: web::Payload,
    limit: BodyLimit,
) -> Result<Bytes, ApiError> {
    let mut reader = Reader {
        payload,
        pace: app.body_pace(),
        began: Instant::now(),
        received: 0,
        share: app.bodies.share(app.throttle.network(req)),
    };
    let refusal = match refused_by_head(req, limit) {
        Some(refusal) => refusal,
        None => match reader.collect(limit.bytes).await? {
            Some(body) => return Ok(reader.share.keep_with(body)),
            None => limit.refusal(),
        },
    };
    reader.drain().await;
    Err(refusal)
}

/// Reads a body of one of `media_types` (a body without `Content-Type` is taken for the first of them).
///
/// # Errors
/// 415 `media_type_unsupported`, and those of [`read_body`].
pub async fn read_typed(
    app: &App,
    req: &HttpRequest,
    payload: web::Payload,
    limit: BodyLimit,
    media_types: &[&str],
) -> Result<Bytes, ApiError> {
    let body = read_body(app, req, payload, limit).await?;
    check_media_type(req, media_types)?;
    Ok(body)
}

/// A body without `Content-Type` is taken for the first of these; one with another is refused, 415
/// `media_type_unsupported`.
fn check_media_type(req: &HttpRequest, media_types: &[&str]) -> Result<(), Refusal> {
    let media_type = req.content_type();
    let is_known = media_types
        .iter()
        .any(|known| media_type.eq_ignore_ascii_case(known));
    if is_known || !req.headers().contains_key(CONTENT_TYPE) {
        return Ok(());
    }
    let detail = format!("Send the body as {}.", media_types.join(" or "));
    Err(Refusal::new(ErrorCode::MediaTypeUnsupported, detail))
}

/// Reads a small JSON body by the strict rules of §2.
///
/// # Errors
/// Those of [`read_typed`], and 400 `json_invalid`.
pub async fn read_json(app: &App, req: &HttpRequest, payload: web::Payload) -> Result<Json, ApiError> {
    let limit = BodyLimit::new(SMALL_BODY_BYTES_MAX);
    read_json_within(app, req, payload, limit).await
}

/// Reads a JSON body of at most `limit` by the strict rules of §2.
///
/// # Errors
/// Those of [`read_typed`], and 400 `json_invalid`.
pub async fn read_json_within(
    app: &App,
    req: &HttpRequest,
    payload: web::Payload,
    limit: BodyLimit,
) -> Result<Json, ApiError> {
    let body = read_typed(app, req, payload, limit, JSON).await?;
    Ok(Json::parse(&body)?)
}

/// A member of a body that must be there, and be text.
///
/// # Errors
/// 400 `member_missing` or `member_invalid`, naming the member.
pub fn text_member<'a>(body: &'a Json, name: &'static str) -> Result<&'a str, ApiError> {
    let (code, what) = match body.get(name) {
        Some(Json::Str(text)) => return Ok(text),
        Some(_) => (ErrorCode::MemberInvalid, "must be text"),
        None => (ErrorCode::MemberMissing, "is missing"),
    };
    Err(Refusal::new(code, format!("The member `{name}` {what}."))
        .with("member", name)
        .into())
}

fn refused_by_head(req: &HttpRequest, limit: BodyLimit) -> Option<ApiError> {
    let encoding = header(req, &CONTENT_ENCODING).unwrap_or("identity");
    if !encoding.eq_ignore_ascii_case("identity") {
        let detail = "Send the body as it is, without Content-Encoding.";
        return Some(ApiError::refused(ErrorCode::EncodingUnsupported, detail).closing());
    }
    let length = header(req, &CONTENT_LENGTH).and_then(|length| length.parse::<usize>().ok());
    length
        .is_some_and(|length| length > limit.bytes)
        .then(|| limit.refusal())
}

struct Reader {
    payload: web::Payload,
    pace: BodyPace,
    began: Instant,
    received: usize,
    share: Share,
}

impl Reader {
    async fn chunk(&mut self) -> Result<Option<Bytes>, ApiError> {
        let deadline = self.began + self.pace.allowance(self.received);
        match timeout_at(deadline, self.payload.next()).await {
            Ok(None) => Ok(None),
            Ok(Some(Ok(chunk))) => {
                self.received = self.received.saturating_add(chunk.len());
                Ok(Some(chunk))
            }
            Ok(Some(Err(error))) => Err(broken(&error)),
            Err(_elapsed) => {
                let detail = "The body did not arrive in time. Send it faster, or in smaller pieces.";
                Err(ApiError::refused(ErrorCode::JsonInvalid, detail).closing())
            }
        }
    }

    /// The body, or `None` once it is larger than `bytes_max`.
    async fn collect(&mut self, bytes_max: usize) -> Result<Option<Bytes>, ApiError> {
        let Some(first) = self.chunk().await? else {
            return Ok(Some(Bytes::new()));
        };
        self.take_room()?;
        let Some(second) = self.chunk().await? else {
            return Ok((first.len() <= bytes_max).then_some(first));
        };
        let mut body = BytesMut::from(first);
        let mut next = Some(second);
        while let Some(chunk) = next {
            if self.received > bytes_max {
                return Ok(None);
            }
            self.take_room()?;
            body.extend_from_slice(&chunk);
            next = self.chunk().await?;
        }
        Ok(Some(body.freeze()))
    }

    /// Room for what was received so far.
    fn take_room(&mut self) -> Result<(), ApiError> {
        self.hold(self.received)
    }

    /// Room for so many bytes at a time.
    fn hold(&mut self, bytes: usize) -> Result<(), ApiError> {
        if self.share.grow_to(bytes) {
            return Ok(());
        }
        let detail = "Too many large bodies are on their way to this hub, or come from your network address. Wait for \
                      the time in Retry-After.";
        let refusal = Refusal::new(ErrorCode::RateLimited, detail).retry_after(UNAVAILABLE_RETRY_SECS);
        Err(ApiError::from(refusal).closing())
    }

    /// Reads on and forgets: a caller that is still sending would otherwise see a reset instead of the answer.
    async fn drain(&mut self) {
        while self.received < DRAINED_BYTES_MAX {
            let Ok(Some(_)) = self.chunk().await else { return };
        }
    }
}

fn broken(error: &PayloadError) -> ApiError {
    let detail = match error {
        PayloadError::Incomplete(_) => "The body ended before its announced length.",
        PayloadError::EncodingCorrupted => "The chunks of the body are not well formed.",
        _ => "The body could not be read.",
    };
    ApiError::refused(ErrorCode::JsonInvalid, detail).closing()
}

/// The value of a header, where it is present once and is visible ASCII.
pub fn header<'a>(req: &'a HttpRequest, name: &HeaderName) -> Option<&'a str> {
    req.headers().get(name)?.to_str().ok()
}

/// A segment of the path as it was sent, still percent-encoded: `{parameter}` of the route's template.
///
/// The framework decodes paths in part and replaces what is no UTF-8; identifiers must be decoded exactly once, by
/// `aip_protocol::name::parse_identifier`.
pub fn raw_segment<'a>(req: &'a HttpRequest, parameter: &str) -> &'a str {
    let Some(Template(template)) = req.app_data::<Template>() else {
        return "";
    };
    let wanted =
        |segment: &str| segment.strip_prefix('{').and_then(|s| s.strip_suffix('}')) == Some(parameter);
    template
        .split('/')
        .position(wanted)
        .and_then(|at| req.uri().path().split('/').nth(at))
        .unwrap_or("")
}

/// The agent name in the path, `{name}`.
///
/// # Errors
/// 400 `name_invalid`.
pub fn path_name(req: &HttpRequest) -> Result<Name, ApiError> {
    // Decoded by the framework: what it leaves encoded (`%25`, `%2F`) or replaces (no UTF-8) is in no name.
    let segment = req.match_info().get("name").unwrap_or("");
    Ok(Name::parse(segment)?)
}

/// The agent that calls, by its token (`Authorization: Bearer`, spec §6).
#[derive(Clone, Debug)]
pub struct Caller(pub Did);

impl FromRequest for Caller {
    type Error = ApiError;
    type Future = LocalBoxFuture<'static, Result<Self, ApiError>>;

    fn from_request(req: &HttpRequest, _: &mut dev::Payload) -> Self::Future {
        let app = req.app_data::<web::Data<App>>().cloned();
        let req = req.clone();
        Box::pin(async move {
            let app = app.ok_or_else(|| ApiError::failed(ErrorCode::Internal, "no application state"))?;
            let network = app.throttle.network(&req);
            app.throttle.admit_proof(network)?;
            let did = match bearer(&req) {
                Some(token) => app.registry.authenticate(token).await?,
                None => None,
            };
            did.map(Self).ok_or_else(|| {
                app.throttle.count_proof(network, ErrorCode::TokenInvalid);
                let detail = "Send a valid token as `Authorization: Bearer …`; POST /api/v1/auth/challenge starts one.";
                ApiError::refused(ErrorCode::TokenInvalid, detail)
            })
        })
    }
}

/// The token of an `Authorization: Bearer` header.
pub fn bearer(req: &HttpRequest) -> Option<&str> {
    let (scheme, token) = header(req, &AUTHORIZATION)?.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
}

/// The id of the request, as [`crate::front`] gave it.
pub fn request_id(req: &HttpRequest) -> Option<RequestId> {
    req.extensions().get::<RequestId>().copied()
}

#[cfg(test)]
mod tests;
