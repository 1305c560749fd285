//! Verdicts on calls (AIMarket's pay-on-verified): this hub makes none, and says so in that protocol's words.

use aip_market::refusal::MarketCode;

use crate::error::MarketError;
use crate::routes::Endpoint;

pub mod appeal;
pub mod show;

/// The endpoints of this resource.
pub fn endpoints() -> Vec<Endpoint> {
    vec![
        Endpoint::at("/ai-market/v2/verification/{nonce}").get(show::show),
        Endpoint::at("/ai-market/v2/verification/{nonce}/appeal").post(appeal::appeal),
    ]
}

fn none() -> MarketError {
    let detail = "Nothing is paid on a verdict here, so that there is none to wait for.";
    MarketError::refused(MarketCode::VerificationUnknown, detail)
}
