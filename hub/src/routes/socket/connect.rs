//! `GET /api/v1/agents/connect`: opens a WebSocket for an agent (§6).

use actix_web::http::header::SEC_WEBSOCKET_PROTOCOL;
use actix_web::{HttpRequest, HttpResponse, rt, web};
use aip_protocol::error::{ErrorCode, Refusal};

use crate::app::App;
use crate::error::ApiError;
use crate::extract::{Query, request_id};
use crate::socket::{Wire, serve, watched};
use crate::throttle::Cost;

/// The protocol of the frames.
const SUBPROTOCOL: &str = "aip.v1";

/// Upgrades the connection.
#[utoipa::path(
    get,
    path = "/api/v1/agents/connect",
    tag = "receiving",
    summary = "Open a WebSocket",
    description = "Subprotocol `aip.v1`, JSON text frames. The hub sends `challenge`; answer with `auth` within 10 \
                   seconds, signed or with a token; then messages come as `msg` until each is acked. A second \
                   connection of the same agent replaces the first, unless both ask to `share`. Close codes: 4400 bad \
                   frame, 4401 not authenticated, 4408 no auth in time, 4409 replaced, 4413 frame too large, 4429 too \
                   fast, 1001 hub going away.",
    responses(
        (status = 101, description = "Upgraded; the first frame is the challenge"),
        (status = 400, description = "No WebSocket handshake, or without the subprotocol"),
        (status = 403, description = "A web page of an origin that the operator has not listed"),
        (status = 429, description = "Too many requests from one address, or too many sockets that are signing in"),
        (status = 503, description = "The hub is going away"),
    )
)]
pub async fn connect(
    app: web::Data<App>,
    req: HttpRequest,
    payload: web::Payload,
) -> Result<HttpResponse, ApiError> {
    app.throttle.admit(Cost::Request, &req)?;
    Query::parse(&req, &[])?;
    if !app.origins.admits(req.headers()) {
        let detail =
            "Web pages of this origin may not connect here; the operator can list it in `allowed_origins`.";
        return Err(ApiError::refused(ErrorCode::NotYours, detail));
    }
    if !offers_subprotocol(&req) {
        return Err(no_handshake(
            "Ask for the subprotocol: `Sec-WebSocket-Protocol: aip.v1`.",
        ));
    }
    if app.stop.is_cancelled() {
        return Err(ApiError::refused(
            ErrorCode::Unavailable,
            "The hub is going away; connect again in a moment.",
        ));
    }
    let network = app.throttle.network(&req);
    let place = app.sockets.newcomer(network)?;
    let frame_bytes_max = app.settings.receive.frame_bytes_max;
    let (payload, allowance) = watched(&req, payload, frame_bytes_max).await?;
    let (response, session, stream) = actix_ws::handle_with_protocols(&req, payload, &[SUBPROTOCOL])
        .map_err(|_handshake| {
            no_handshake("This path takes a WebSocket handshake (RFC 6455), version 13.")
        })?;
    let wire = Box::new(Wire::new(session, stream, frame_bytes_max, allowance));
    let id = request_id(&req).unwrap_or_else(|| app.request_ids.next());
    // The task ends with its connection, which the listener waits for when it stops.
    rt::spawn(serve(app, wire, id, network, place));
    Ok(response)
}

fn offers_subprotocol(req: &HttpRequest) -> bool {
    let offered = req
        .headers()
        .get_all(SEC_WEBSOCKET_PROTOCOL)
        .filter_map(|value| value.to_str().ok());
    offered
        .flat_map(|list| list.split(','))
        .any(|name| name.trim() == SUBPROTOCOL)
}

fn no_handshake(detail: &'static str) -> ApiError {
    Refusal::new(ErrorCode::ParameterInvalid, detail)
        .with("subprotocol", SUBPROTOCOL)
        .into()
}
