//! `POST /ai-market/v2/invoke`: calls a capability, and pays for it.

use actix_web::http::StatusCode;
use actix_web::http::header::{ContentType, HeaderName};
use actix_web::{HttpRequest, HttpResponse, web};
use aip_market::invoke::{InvokeCall, InvokeHeaders, InvokeReport};
use aip_market::limits::INPUT_BYTES_MAX;
use aip_market::refusal::MarketCode;
use aip_protocol::error::ErrorCode;
use tokio::time::Instant;

use self::manner::Manner;
use super::{API_KEY, CHANNEL, CHANNEL_SECRET, IDEMPOTENCY_KEY, VISITOR, header, room};
use crate::app::App;
use crate::error::MarketError;
use crate::extract::{BodyLimit, JSON, read_typed};
use crate::throttle::Cost;

mod follow;
pub(super) mod manner;

/// The header of an answer that was given before.
const REPLAYED: &str = "Idempotency-Replayed";

/// The largest body: the largest input, however it is spelled, and what stands around it.
const BODY_BYTES_MAX: usize = 4 * INPUT_BYTES_MAX;

/// Headers that pay on a chain, of every version of x402.
const X402: [&str; 3] = ["x-payment", "payment", "payment-signature"];

/// Headers of a payment on a chain; of another hub's capability they go on to that hub.
const PAYMENT: [&str; 5] = [
    "x-payment",
    "payment",
    "payment-signature",
    "x-payment-nonce",
    "x-payment-secret",
];

/// Invokes a capability.
#[utoipa::path(
    post,
    path = "/ai-market/v2/invoke",
    operation_id = "market_invoke",
    tag = "market",
    summary = "Call a capability",
    description = "The price is held, the provider is called, and then it is paid, with a signed receipt; or nothing is \
                   paid at all. With `Idempotency-Key` the same call is made once, and answered again for a day. The \
                   order of the checks is in docs/protocol/market.md. With `Prefer: respond-async` a call that is under way \
                   is answered 202 with where its answer will be; with `Accept: text/event-stream` it is answered by \
                   events: `job`, `progress` and `chunk` as they come, `result` or `error` at the end. What is refused \
                   before a call begins is refused as ever.",
    params(
        ("X-API-Key" = Option<String>, Header, description = "A key of an account, which pays"),
        ("X-Payment-Channel" = Option<String>, Header, description = "A channel, which pays"),
        ("X-Payment-Channel-Secret" = Option<String>, Header, description = "Its secret"),
        ("X-AIMarket-Sandbox-Visitor" = Option<String>, Header, description = "Who tries for nothing, where that is allowed"),
        ("PAYMENT-SIGNATURE" = Option<String>, Header, description = "A payment on a chain (x402 version 2), where such are taken"),
        ("Idempotency-Key" = Option<String>, Header, description = "8 to 128 printable ASCII characters"),
        ("Prefer" = Option<String>, Header, description = "`respond-async`, and perhaps `wait=` seconds"),
        ("Accept" = Option<String>, Header, description = "`text/event-stream` to be answered by events"),
    ),
    request_body(content = Object, content_type = "application/json",
                 description = "`product_id`, `capability_id`, `input`, and perhaps `source_hub`, `max_price_usd`"),
    responses(
        (status = 200, description = "The result, and its receipt; or events", body = Object),
        (status = 202, description = "The call is under way: the job, with its secret", body = Object),
        (status = 400, description = "Headers that do not fit together, or an input that the capability does not take"),
        (status = 401, description = "The key is none"),
        (status = 402, description = "It is to be paid, and was not: `needed`, `payment_ways` and perhaps `accepts` say how"),
        (status = 403, description = "`source_hub` is a hub that the operator has not let in"),
        (status = 404, description = "No such capability, or it cannot be called here"),
        (status = 409, description = "It costs more than `max_price_usd`, or the idempotency key is in use"),
        (status = 413, description = "The body or the input is too large"),
        (status = 415, description = "Another media type"),
        (status = 422, description = "The body is not of its form"),
        (status = 429, description = "Too many requests from one address, or the free calls are used up"),
        (status = 502, description = "The provider did not do it; nothing was paid"),
        (status = 503, description = "Not now"),
    )
)]
pub async fn invoke(
    app: web::Data<App>,
    req: HttpRequest,
    payload: web::Payload,
) -> Result<HttpResponse, MarketError> {
    let manner = manner::of(&req);
    if manner != Manner::Plain {
        return follow::invoke(app, &req, payload, manner).await;
    }
    let began = Instant::now();
    let report = match ask(&app, &req, payload).await {
        Ok(report) => report,
        Err(error) => {
            app.metrics.market.refused(error.code());
            return Err(error);
        }
    };
    app.metrics.market.invoked(&report, began.elapsed());
    answer(&app, &req, report)
}

async fn ask(app: &App, req: &HttpRequest, payload: web::Payload) -> Result<InvokeReport, MarketError> {
    let call = read_call(app, req, payload).await?;
    Ok(room(app)?.engine.invoke(call).await)
}

async fn read_call(app: &App, req: &HttpRequest, payload: web::Payload) -> Result<InvokeCall, MarketError> {
    room(app)?;
    app.throttle.admit(Cost::Invocation, req)?;
    app.require_room("calls")?;
    let body = read_typed(app, req, payload, BodyLimit::new(BODY_BYTES_MAX), JSON).await?;
    let headers = headers(req)?;
    if headers.api_key.is_some() {
        app.throttle.admit_proof(app.throttle.network(req))?;
    }
    Ok(InvokeCall {
        headers,
        body,
        network: hex::encode(app.throttle.origin(req)),
    })
}

fn headers(req: &HttpRequest) -> Result<InvokeHeaders, MarketError> {
    let has = |name: &str| req.headers().contains_key(name);
    Ok(InvokeHeaders {
        api_key: header(req, &API_KEY)?,
        channel: header(req, &CHANNEL)?,
        channel_secret: header(req, &CHANNEL_SECRET)?,
        visitor: header(req, &VISITOR)?,
        idempotency_key: header(req, &IDEMPOTENCY_KEY)?,
        x402: X402.into_iter().any(has),
        payment: payment(req)?,
        mandate: has("x-aimarket-mandate"),
        job: has("x-aimarket-job"),
    })
}

/// What a hub that is paid directly is shown.
fn payment(req: &HttpRequest) -> Result<Vec<(&'static str, String)>, MarketError> {
    let mut shown = Vec::new();
    for name in PAYMENT {
        let value = header(req, &HeaderName::from_static(name))?;
        shown.extend(value.map(|value| (name, value)));
    }
    Ok(shown)
}

fn answer(app: &App, req: &HttpRequest, report: InvokeReport) -> Result<HttpResponse, MarketError> {
    let invoked = match report.answer {
        Ok(invoked) => invoked,
        Err(error) => {
            let error = MarketError::from(error);
            if error.code() == MarketCode::KeyInvalid.as_str() {
                app.throttle
                    .count_proof(app.throttle.network(req), ErrorCode::TokenInvalid);
            }
            return Err(error);
        }
    };
    let status = StatusCode::from_u16(invoked.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let mut response = HttpResponse::build(status);
    response.insert_header(ContentType::json());
    if invoked.replayed {
        response.insert_header((REPLAYED, "true"));
    }
    for header in invoked.headers {
        response.append_header(header);
    }
    Ok(response.body(invoked.body))
}
