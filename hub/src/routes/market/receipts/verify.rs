//! `POST /ai-market/v2/receipts/verify`: whether a receipt is this hub's. The key that it names itself is not believed.

use actix_web::{HttpRequest, HttpResponse, web};
use aip_protocol::market::receipt::{self, Expected};
use aip_protocol::market::{Value, Verdict};
use serde::Serialize;
use utoipa::ToSchema;

use crate::app::App;
use crate::error::MarketError;
use crate::market::MarketRoom;
use crate::market::limits::RECEIPT_BODY_BYTES_MAX;
use crate::routes::market::{PROTOCOL, read_within, room, unlike};
use crate::throttle::Cost;

/// What came of the check.
#[derive(Debug, Serialize, ToSchema)]
#[expect(clippy::struct_excessive_bools, reason = "AIMarket's answer has so many")]
pub struct ReceiptCheck {
    /// Always true: it was checked.
    pub success: bool,
    /// Whether a key of this hub has signed it.
    pub valid: bool,
    /// The same.
    pub classical_valid: bool,
    /// `true`, `false` or `not_checked`: what could not be looked at is no forgery, and no proof either.
    pub state: &'static str,
    /// Why it is not proven; `null` where it is.
    pub reason: Option<String>,
    /// The same for machines.
    pub reason_code: Option<&'static str>,
    /// Members of it that the signature does not cover: of them nothing is proven.
    pub uncovered: Vec<String>,
    /// Whether this hub has it among those that it gave out.
    pub kept: bool,
    /// `ed25519`
    pub algorithm: &'static str,
    /// The version of its signature, where one can be read.
    pub signature_version: Option<u64>,
    /// Whether it is signed with the key that the hub signs with now.
    pub signer_matches_live_key: bool,
    /// Whether it has a post-quantum signature, too, which is not looked at here.
    pub pq_present: bool,
    /// Always false.
    pub pq_valid: bool,
    /// Always false.
    pub policy_requires_pq: bool,
    /// `v2`.
    pub protocol_version: &'static str,
}

/// Checks a receipt.
#[utoipa::path(
    post,
    path = "/ai-market/v2/receipts/verify",
    operation_id = "market_verify_receipt",
    tag = "market",
    summary = "Check a receipt of this hub",
    request_body(content = Object, content_type = "application/json", description = "`receipt`, at most 128 KiB"),
    responses(
        (status = 200, description = "What came of the check", body = ReceiptCheck),
        (status = 400, description = "No JSON"),
        (status = 413, description = "The body is too large"),
        (status = 422, description = "There is no object `receipt`"),
        (status = 429, description = "Too many requests from one address"),
        (status = 503, description = "Not now"),
    )
)]
pub async fn verify(
    app: web::Data<App>,
    req: HttpRequest,
    payload: web::Payload,
) -> Result<HttpResponse, MarketError> {
    app.throttle.admit(Cost::Request, &req)?;
    let room = room(&app)?;
    let body = read_within(&app, &req, payload, RECEIPT_BODY_BYTES_MAX).await?;
    let given = body
        .get("receipt")
        .filter(|receipt| receipt.as_object().is_some());
    let given = given.ok_or_else(|| unlike("receipt", "must be there, and be an object"))?;
    let check = receipt::verify(given, &room.keys, &Expected::default());
    let is_true = check.verdict.is_true();
    let state = match &check.verdict {
        verdict if verdict.is_true() => "true",
        verdict if verdict.is_false() => "false",
        _ => "not_checked",
    };
    let reason = Verdict::reason(&check.verdict);
    Ok(HttpResponse::Ok().json(ReceiptCheck {
        success: true,
        valid: is_true,
        classical_valid: is_true,
        state,
        reason: reason.map(ToString::to_string),
        reason_code: reason.map(aip_protocol::market::Reason::code),
        kept: is_kept(room, given).await?,
        algorithm: "ed25519",
        signature_version: check.version,
        signer_matches_live_key: check.key.is_some() && check.key.as_ref() == room.keys.first(),
        pq_present: check.has_post_quantum,
        uncovered: check.uncovered,
        pq_valid: false,
        policy_requires_pq: false,
        protocol_version: PROTOCOL,
    }))
}

async fn is_kept(room: &MarketRoom, given: &Value) -> Result<bool, MarketError> {
    let Some(nonce) = given.get("nonce").and_then(Value::as_str) else {
        return Ok(false);
    };
    let Some(kept) = room.store().receipt(nonce).await? else {
        return Ok(false);
    };
    Ok(Value::parse(&kept).is_ok_and(|kept| kept == *given))
}
