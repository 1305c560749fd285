//! `POST /admin/payouts`: notes that the operator paid a provider.

use actix_web::{HttpRequest, web};
use aip_market::store::{Earned, PaidOut};
use aip_protocol::error::{ErrorCode, Refusal};
use aip_protocol::name::{Did, Handle};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::app::App;
use crate::error::ApiError;
use crate::routes::admin::accounts::{amount, other_use, reference, room};
use crate::routes::admin::{Operator, read};
use crate::routes::market::earnings::Earnings;

/// What is asked for.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct PayoutBody {
    /// Who was paid: a handle or a DID.
    #[schema(example = "shop#aigentix.org")]
    pub agent: String,
    /// How much.
    #[schema(example = "12.5")]
    pub amount: String,
    /// Which payment this is: the same again changes nothing.
    #[schema(example = "bank 2026-11-30 #17")]
    pub reference: String,
}

/// What it earned and was paid, with this. Amounts are US dollars in decimal digits.
#[derive(Debug, Serialize, ToSchema)]
pub struct PayoutAnswer {
    /// The provider's DID.
    pub agent: String,
    /// `USD`.
    pub currency: &'static str,
    /// All that it earned, without the hub's fees.
    #[schema(example = "12.5")]
    pub earned: String,
    /// What of it was paid out.
    pub paid_out: String,
    /// What is still owed.
    pub owed: String,
    /// How many calls it was for, also those that were paid directly.
    pub calls: u64,
    /// What buyers paid it on a chain, past the hub.
    pub paid_directly: String,
    /// Whether the same was noted before.
    pub again: bool,
}

impl PayoutAnswer {
    fn new(earned: Earned, again: bool) -> Self {
        let Earnings {
            agent,
            currency,
            earned,
            paid_out,
            owed,
            calls,
            paid_directly,
        } = Earnings::from(earned);
        Self {
            agent,
            currency,
            earned,
            paid_out,
            owed,
            calls,
            paid_directly,
            again,
        }
    }
}

/// Notes a payment.
#[utoipa::path(
    post,
    path = "/admin/payouts",
    tag = "administration",
    summary = "Note that a provider was paid",
    description = "Never more than it is owed. The reference names the payment. It is used once: the same again changes \
                   nothing and says so.",
    security(("operator" = [])),
    request_body = PayoutBody,
    responses((status = 200, description = "What it earned and was paid, with this", body = PayoutAnswer),
              (status = 400, description = "No amount, or more than is owed"),
              (status = 409, description = "The reference was used for something else"),
              (status = 401, description = "The operator's token is missing or wrong"),
              (status = 404, description = "This hub has no market, or nobody of that name ever sold anything"))
)]
pub async fn add_payout(
    app: web::Data<App>,
    _operator: Operator,
    req: HttpRequest,
    payload: web::Payload,
) -> Result<web::Json<PayoutAnswer>, ApiError> {
    let body: PayoutBody = read(&app, &req, payload).await?;
    let store = room(&app)?.store();
    // An agent that has left is paid, too.
    let agent = if body.agent.starts_with("did:") {
        Did::parse(&body.agent)?
    } else {
        Handle::parse(&body.agent)?.did()
    };
    let (amount, reference) = (amount(&body.amount)?, reference(&body.reference)?);
    match store.pay_out(&agent, amount, reference, app.clock.now()).await? {
        PaidOut::Done(earned) => {
            tracing::info!(agent = %agent, %amount, "The operator paid {amount} USD to {agent}");
            Ok(web::Json(PayoutAnswer::new(earned, false)))
        }
        PaidOut::Again(earned) => Ok(web::Json(PayoutAnswer::new(earned, true))),
        PaidOut::OtherUse => Err(other_use()),
        PaidOut::Exceeds(_) if never_earned(&app, &agent).await? => {
            let detail = format!(
                "{agent} never sold anything here, and is no agent of this hub: is the name right? `aip-hub payouts list` \
                 shows whom this hub owes."
            );
            Err(Refusal::new(ErrorCode::RecipientUnknown, detail)
                .with("agent", agent.as_str())
                .into())
        }
        PaidOut::Exceeds(owed) => {
            let detail = format!(
                "{amount} USD are more than {agent} is owed: {owed} USD. `aip-hub payouts list` shows whom this hub owes."
            );
            Err(Refusal::new(ErrorCode::MemberInvalid, detail)
                .with("member", "amount")
                .with("owed", owed.to_string())
                .into())
        }
    }
}

/// Whether nothing is known of whom the operator names.
async fn never_earned(app: &App, agent: &Did) -> Result<bool, ApiError> {
    let earned = room(app)?.store().earned(agent).await?;
    Ok(earned.calls == 0 && app.registry.resolve(agent).await?.is_none())
}
