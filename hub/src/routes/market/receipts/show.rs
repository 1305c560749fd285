//! `GET /ai-market/v2/receipts/{nonce}`: a receipt as it was given out. It does not say who paid.

use actix_web::{HttpRequest, HttpResponse, web};
use aip_market::refusal::MarketCode;
use aip_protocol::error::ErrorCode;
use serde::Serialize;
use serde_json::value::RawValue;
use utoipa::ToSchema;

use crate::app::App;
use crate::error::{ApiError, MarketError};
use crate::routes::market::{PROTOCOL, room};
use crate::throttle::Cost;

/// The longest nonce that is looked up.
const NONCE_BYTES_MAX: usize = 64;

/// A receipt that was given out.
#[derive(Debug, Serialize, ToSchema)]
pub struct GivenReceipt {
    /// Always true.
    pub success: bool,
    /// The signed receipt.
    #[schema(value_type = Object)]
    pub receipt: Box<RawValue>,
    /// `v2`.
    pub protocol_version: &'static str,
}

/// Answers with a receipt.
#[utoipa::path(
    get,
    path = "/ai-market/v2/receipts/{nonce}",
    operation_id = "market_receipt",
    tag = "market",
    summary = "A receipt",
    params(("nonce" = String, Path, description = "As in the receipt", example = "rcpt_00112233445566778899aabbccddeeff")),
    responses(
        (status = 200, description = "The receipt", body = GivenReceipt),
        (status = 404, description = "This hub gave out no such receipt"),
        (status = 429, description = "Too many requests from one address"),
        (status = 503, description = "Not now"),
    )
)]
pub async fn show(app: web::Data<App>, req: HttpRequest) -> Result<HttpResponse, MarketError> {
    app.throttle.admit(Cost::Request, &req)?;
    let nonce = req.match_info().get("nonce").unwrap_or_default();
    let found = if nonce.len() <= NONCE_BYTES_MAX {
        room(&app)?.store().receipt(nonce).await?
    } else {
        None
    };
    let unknown = || {
        MarketError::refused(
            MarketCode::ReceiptUnknown,
            "This hub gave out no receipt with this nonce.",
        )
    };
    let receipt = found.ok_or_else(unknown)?;
    let broken =
        |error: Box<dyn std::error::Error + Send + Sync>| ApiError::failed(ErrorCode::Internal, error);
    let text = String::from_utf8(receipt.to_vec()).map_err(|error| broken(error.into()))?;
    let receipt = RawValue::from_string(text).map_err(|error| broken(error.into()))?;
    Ok(HttpResponse::Ok().json(GivenReceipt {
        success: true,
        receipt,
        protocol_version: PROTOCOL,
    }))
}
