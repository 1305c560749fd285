//! Who calls, and what a call would be paid from (steps 3 to 7).

use aip_protocol::market::x402::Payment;
use sha2::{Digest as _, Sha256};

use super::request::Request;
use super::{InvokeCall, InvokeHeaders};
use crate::limits::{
    IDEMPOTENCY_KEY_CHARS_MAX, IDEMPOTENCY_KEY_CHARS_MIN, VISITOR_CHARS_MAX, VISITOR_CHARS_MIN,
    VISITORS_PER_NETWORK_MAX,
};
use crate::market::Market;
use crate::refusal::{MarketCode, MarketError, MarketRefusal};
use crate::store::{Idempotency, Purse};

/// Who calls.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Payer {
    /// Shows a purse, which is there and is its own.
    Purse(Purse),
    /// Shows a payment on a chain, which its wallet signed.
    Payment(Box<Payment>),
    /// Shows no purse, and may try.
    Visitor(Visitor),
    /// Shows nothing: a digest of where it is.
    Nobody([u8; 32]),
}

/// Who may try for nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Visitor {
    /// A digest of who it is.
    who: [u8; 32],
    /// A digest of what its trials are counted by: one of [`VISITORS_PER_NETWORK_MAX`] places of its network.
    pub(super) trials: [u8; 32],
}

impl Visitor {
    /// By what it says of itself, and where it is.
    fn new(said: &str, network: &str) -> Self {
        let [first, ..] = digest("place", &[said]);
        let place = (first % VISITORS_PER_NETWORK_MAX).to_string();
        Self {
            who: digest("visitor", &[said, network]),
            trials: digest("trials", &[place.as_str(), network]),
        }
    }
}

impl Payer {
    /// What tells its idempotency keys from those of others.
    fn scope(&self) -> [u8; 32] {
        match self {
            Self::Purse(Purse::Account { account, .. }) => digest("account", &[&account.0]),
            Self::Purse(Purse::Channel(channel)) => digest("channel", &[&channel.0]),
            Self::Payment(payment) => digest("x402", &[&payment.transfer.from.lower()]),
            Self::Visitor(visitor) => visitor.who,
            Self::Nobody(network) => *network,
        }
    }

    /// What makes a repetition of this request the same, if it has a key.
    pub(super) fn idempotency(&self, key: Option<&str>, request: &Request) -> Option<Idempotency> {
        let mut hash = Sha256::new();
        hash.update(self.scope());
        hash.update(key?.as_bytes());
        Some(Idempotency {
            key: hash.finalize().into(),
            body: request.digest,
        })
    }
}

/// Of texts that cannot be taken for others, whatever is in them.
fn digest(kind: &str, texts: &[&str]) -> [u8; 32] {
    let mut hash = Sha256::new();
    for text in [kind].iter().chain(texts) {
        hash.update((text.len() as u64).to_be_bytes());
        hash.update(text.as_bytes());
    }
    hash.finalize().into()
}

/// Headers and members that contradict each other, are not in their form, or ask for what is not here.
pub(super) fn check(headers: &InvokeHeaders, request: &Request) -> Result<(), MarketRefusal> {
    let refuse = |code, detail: &'static str| Err(MarketRefusal::new(code, detail));
    let key_is_good = headers.idempotency_key.as_ref().is_none_or(|key| {
        (IDEMPOTENCY_KEY_CHARS_MIN..=IDEMPOTENCY_KEY_CHARS_MAX).contains(&key.len())
            && key.bytes().all(|byte| (b' '..=b'~').contains(&byte))
    });
    if !key_is_good {
        let detail = "Idempotency-Key is 8 to 128 printable ASCII characters.";
        return refuse(MarketCode::IdempotencyKeyInvalid, detail);
    }
    let rails = [
        headers.api_key.is_some(),
        headers.channel.is_some(),
        headers.x402,
        request.authorization,
        headers.mandate,
        headers.job,
    ];
    if rails.into_iter().filter(|is_there| *is_there).count() > 1 {
        let detail = "A call is paid in one way: send an account key, a payment channel or another, not two.";
        return refuse(MarketCode::RailsConflict, detail);
    }
    if request.authorization {
        let detail = "This hub reads no channels on chains: send no `payment_authorization`.";
        return refuse(MarketCode::PaymentInvalid, detail);
    }
    if headers.mandate || headers.job {
        return refuse(
            MarketCode::MandateUnsupported,
            "This hub takes no mandates and no job tokens.",
        );
    }
    if request.verify {
        let detail = "This hub gives no verdicts, so that nothing is paid on one: call without `verify`.";
        return refuse(MarketCode::VerifyUnsupported, detail);
    }
    if request.subcontract {
        let detail = "This hub has no jobs of jobs: call without `subcontract`.";
        return refuse(MarketCode::SubcontractUnsupported, detail);
    }
    visitor(headers)
}

fn visitor(headers: &InvokeHeaders) -> Result<(), MarketRefusal> {
    let Some(visitor) = headers.visitor.as_ref().filter(|_| headers.api_key.is_none()) else {
        return Ok(());
    };
    if headers.channel.is_some() {
        let detail = "Do not send X-Payment-Channel with X-AIMarket-Sandbox-Visitor.";
        return Err(MarketRefusal::new(MarketCode::SandboxConflict, detail));
    }
    let is_good = (VISITOR_CHARS_MIN..=VISITOR_CHARS_MAX).contains(&visitor.len())
        && visitor
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'));
    if is_good {
        Ok(())
    } else {
        let detail = "X-AIMarket-Sandbox-Visitor is 8 to 64 of A-Z a-z 0-9 _ -.";
        Err(MarketRefusal::new(MarketCode::VisitorInvalid, detail))
    }
}

impl Market {
    /// Looks up what is shown; of headers that passed [`check`]. What another hub is paid with on a chain is that hub's business
    /// (`is_routed`).
    pub(super) async fn payer(&self, call: &InvokeCall, is_routed: bool) -> Result<Payer, MarketError> {
        let InvokeCall { headers, network, .. } = call;
        if !is_routed && let Some(payment) = self.payment_shown(headers)? {
            return Ok(Payer::Payment(Box::new(payment)));
        }
        if let Some(shown) = &headers.api_key {
            let (key, account) = self.account_of_key(shown).await?;
            return Ok(Payer::Purse(Purse::Account {
                account: account.id,
                key: key.id,
            }));
        }
        if let Some(id) = &headers.channel {
            let secret = headers.channel_secret.as_deref();
            let channel = self.channel_of_secret(id, secret).await.map_err(unpaid)?;
            return Ok(Payer::Purse(Purse::Channel(channel.id)));
        }
        Ok(match &headers.visitor {
            Some(visitor) if self.config.trials_per_visitor > 0 => {
                Payer::Visitor(Visitor::new(visitor, network))
            }
            _ => Payer::Nobody(digest("network", &[network])),
        })
    }
}

/// A call whose channel is not opened is one that is not paid.
fn unpaid(error: MarketError) -> MarketError {
    match error {
        MarketError::Refused(refusal) => MarketRefusal {
            code: MarketCode::PaymentFailed,
            ..refusal
        }
        .into(),
        MarketError::Store(_) => error,
    }
}
