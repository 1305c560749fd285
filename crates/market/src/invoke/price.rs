//! What is called, and what it costs this caller (steps 8 to 10).

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use super::payer::Payer;
use super::request::Request;
use super::x402::Paying;
use crate::market::Market;
use crate::money::Usd;
use crate::offer::{FreeTier, Offer};
use crate::refusal::{MarketCode, MarketRefusal};
use crate::store::{Charge, Trial};

/// What a call costs its caller.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Cost {
    /// Nothing: the capability is free, or this input is.
    Nothing,
    /// One of a visitor's free calls.
    Trial(Trial),
    /// The price.
    Charge(Charge),
    /// The price, on a chain.
    Payment(Box<Paying>),
}

impl Cost {
    pub(super) fn amount(&self) -> Usd {
        match self {
            Self::Charge(charge) => charge.amount,
            Self::Payment(paying) => paying.amount,
            Self::Nothing | Self::Trial(_) => Usd::ZERO,
        }
    }

    /// What pays it on a chain.
    pub(super) fn payment(&self) -> Option<&Paying> {
        match self {
            Self::Payment(paying) => Some(paying),
            Self::Nothing | Self::Trial(_) | Self::Charge(_) => None,
        }
    }

    /// What paying takes beside the work.
    pub(super) fn spare(&self) -> Duration {
        self.payment().map_or(Duration::ZERO, |paying| paying.spare)
    }
}

impl Market {
    /// The offer that is asked for, at another hub or at this one.
    pub(super) fn offer(&self, request: &Request, hub: Option<&str>) -> Result<Arc<Offer>, MarketRefusal> {
        if let Some(hub) = hub {
            self.open_peer(hub)?;
        }
        let offer = self.seams.offers.find(&request.asked(hub));
        let offer = offer.ok_or_else(|| self.elsewhere(request, hub))?;
        let is_wanted = request
            .publisher_id
            .as_ref()
            .is_none_or(|publisher| publisher == offer.agent.as_str());
        if !is_wanted {
            let detail = "Another agent sells this capability now: search again, and look who it is.";
            return Err(MarketRefusal::new(MarketCode::PublisherChanged, detail)
                .with("publisher_id", offer.agent.as_str()));
        }
        if offer.is_invocable() {
            Ok(offer)
        } else {
            let detail = "This capability is listed, and cannot be invoked here.";
            Err(MarketRefusal::new(MarketCode::NotInvocable, detail))
        }
    }

    /// What the call costs, if it can be had at all.
    pub(super) fn cost(&self, offer: &Offer, request: &Request, payer: Payer) -> Result<Cost, MarketRefusal> {
        let price = offer.price;
        if price == Usd::ZERO {
            return Ok(Cost::Nothing);
        }
        let tier = offer.free_tier.as_ref();
        let pays = matches!(payer, Payer::Purse(_) | Payer::Payment(_));
        if !pays && tier.is_some_and(|tier| tier.takes(&request.input)) {
            return Ok(Cost::Nothing);
        }
        if let Payer::Visitor(visitor) = &payer {
            return Ok(Cost::Trial(Trial {
                visitor: visitor.trials,
                max: self.config.trials_per_visitor,
            }));
        }
        within(request, price)?;
        match payer {
            Payer::Purse(purse) => Ok(Cost::Charge(Charge { purse, amount: price })),
            Payer::Payment(payment) => self.paid_with(offer, *payment),
            Payer::Visitor(_) | Payer::Nobody(_) => Err(self.unpaid(price, tier, &request.input)),
        }
    }

    fn unpaid(&self, price: Usd, tier: Option<&FreeTier>, input: &Value) -> MarketRefusal {
        let Some(tier) = tier else {
            let detail = format!(
                "The capability costs {price} USD: send X-API-Key of an account, or X-Payment-Channel with its secret."
            );
            return self.payment(MarketCode::PaymentRequired, detail, price);
        };
        let detail = format!(
            "For nothing `{}` is a number of {} at most; more costs {price} USD.",
            tier.field, tier.max
        );
        self.payment(MarketCode::PaymentRequired, detail, price)
            .with("ok", false)
            .with("free_tier", tier.told(input))
    }

    /// A refusal for which money is needed, with the ways in which it is taken.
    pub(super) fn payment(
        &self,
        code: MarketCode,
        detail: impl Into<std::borrow::Cow<'static, str>>,
        price: Usd,
    ) -> MarketRefusal {
        MarketRefusal::new(code, detail)
            .with("needed", price.to_f64())
            .with("price_usd", price.to_f64())
            .with("payment_ways", self.payment_ways())
    }

    /// The ways in which this hub is paid, as refusals name them.
    pub fn payment_ways(&self) -> Value {
        let base = &self.config.base_url;
        json!([
            {
                "rail": "credits",
                "header": "X-API-Key",
                "signup": format!("{base}/ai-market/v2/accounts"),
                "open_signup": self.config.open_signup,
            },
            {
                "rail": "channel",
                "header": "X-Payment-Channel",
                "secret_header": "X-Payment-Channel-Secret",
                "open": format!("{base}/ai-market/v2/channel/open"),
            },
        ])
    }
}

/// Whether the buyer pays so much.
pub(super) fn within(request: &Request, price: Usd) -> Result<(), MarketRefusal> {
    let Some(most) = request.max_price.filter(|most| *most < price) else {
        return Ok(());
    };
    let detail = "The capability costs more than `max_price_usd`; search again.";
    Err(MarketRefusal::new(MarketCode::PriceLimitExceeded, detail)
        .with("maximum_price_usd", most.to_f64())
        .with("current_price_usd", price.to_f64()))
}

impl FreeTier {
    /// The number of the input that it is about.
    fn of(&self, input: &Value) -> Option<f64> {
        self.field
            .split('.')
            .try_fold(input, |value, name| value.get(name))?
            .as_f64()
    }

    /// What a refusal says of it: `field`, `max` and, where it is there, `requested`.
    pub(super) fn told(&self, input: &Value) -> Value {
        let mut told = json!({ "field": self.field, "max": number(self.max) });
        if let (Some(requested), Some(members)) = (self.of(input), told.as_object_mut()) {
            members.insert("requested".to_owned(), number(requested));
        }
        told
    }

    fn takes(&self, input: &Value) -> bool {
        self.of(input).is_some_and(|number| number <= self.max)
    }
}

/// A whole number as an integer, as a listing has it.
#[expect(
    clippy::cast_possible_truncation,
    reason = "only where it is whole and a double holds it exactly"
)]
fn number(number: f64) -> Value {
    if number.fract() == 0.0 && number.abs() < 9_007_199_254_740_992.0 {
        Value::from(number as i64)
    } else {
        Value::from(number)
    }
}
