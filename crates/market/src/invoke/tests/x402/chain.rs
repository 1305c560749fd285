//! A market that is paid on a chain, whose facilitator fails when it is told to.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use aip_protocol::market::evm::transfer::Transfer;
use aip_protocol::market::evm::{Address, Word};
use aip_protocol::market::x402::{Payment, Requirements, SIGNATURE_HEADER, to_header};
use async_trait::async_trait;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rand::SeedableRng as _;
use rand::rngs::StdRng;
use serde_json::Value;

use super::super::desk::{Desk, call, config, nothing};
use crate::facilitator::local::{CHAIN_ID, LocalFacilitator};
use crate::facilitator::{Facilitator, FacilitatorError, Settled, Terms, Verified, X402};
use crate::invoke::{InvokeHeaders, Invoked};
use crate::market::{Market, MarketConfig};
use crate::offer::Offer;
use crate::refusal::MarketRefusal;
use crate::testsuite::facilitators::{GRANT, payment_for, wallet};

/// What the facilitator does with one request; otherwise it does what it should.
#[derive(Debug, Clone)]
pub(super) enum Says {
    /// As it should.
    Truth,
    /// Nothing, and does nothing.
    Nothing,
    /// Nothing, after it was done.
    NothingOfIt,
    /// This, and does nothing.
    This(Settled),
    /// That the payment is not good.
    Invalid,
}

#[derive(Debug)]
pub(super) struct Chain {
    local: LocalFacilitator,
    /// What is done with the next requests.
    pub(super) verify: Mutex<VecDeque<Says>>,
    pub(super) settle: Mutex<VecDeque<Says>>,
}

fn next(script: &Mutex<VecDeque<Says>>) -> Says {
    script.lock().unwrap().pop_front().unwrap_or(Says::Truth)
}

#[async_trait]
impl Facilitator for Chain {
    async fn verify(&self, payment: &Payment, asked: &Requirements) -> Result<Verified, FacilitatorError> {
        match next(&self.verify) {
            Says::Truth => self.local.verify(payment, asked).await,
            Says::Invalid => Ok(Verified::Invalid("insufficient_funds".to_owned())),
            _ => Err(FacilitatorError::TimedOut),
        }
    }

    async fn settle(&self, payment: &Payment, asked: &Requirements) -> Result<Settled, FacilitatorError> {
        match next(&self.settle) {
            Says::Truth => self.local.settle(payment, asked).await,
            Says::This(settled) => Ok(settled),
            Says::NothingOfIt => {
                self.local.settle(payment, asked).await?;
                Err(FacilitatorError::TimedOut)
            }
            Says::Nothing | Says::Invalid => Err(FacilitatorError::Unreachable("gone".to_owned())),
        }
    }

    async fn supports(&self, network: &str) -> Result<bool, FacilitatorError> {
        self.local.supports(network).await
    }
}

/// A desk that is paid on a chain.
pub(super) struct Bank {
    pub(super) desk: Desk,
    pub(super) chain: Arc<Chain>,
}

impl Bank {
    pub(super) fn new() -> Self {
        Self::with(config())
    }

    pub(super) fn with(config: MarketConfig) -> Self {
        let mut desk = Desk::new();
        let chain = Arc::new(Chain {
            local: LocalFacilitator::new(CHAIN_ID, GRANT, desk.clock.clone()),
            verify: Mutex::default(),
            settle: Mutex::default(),
        });
        let terms = Terms {
            chain_id: CHAIN_ID,
            asset: Address::from_bytes([0xa5; 20]),
            asset_name: "USDC".to_owned(),
            asset_version: "2".to_owned(),
            decimals: 6,
            timeout: Duration::from_secs(5),
            is_test: true,
        };
        let facilitator = Arc::clone(&chain) as _;
        let mut seams = desk.market.seams.clone();
        seams.x402 = Some(Arc::new(X402 { terms, facilitator }));
        desk.market = Market::new(config, seams, Box::new(StdRng::seed_from_u64(5)));
        let bank = Self { desk, chain };
        bank.desk.sell(payable);
        bank
    }

    /// What a call of the seller's costs.
    pub(super) fn asked(&self) -> Requirements {
        let mut offer = super::super::desk::offer();
        payable(&mut offer);
        let x402 = self.desk.market.seams.x402.as_ref().unwrap();
        x402.asked(&offer, config().provider_timeout).unwrap()
    }

    pub(super) fn payment(&self, number: u8, nonce: u8, change: impl FnOnce(&mut Transfer)) -> Payment {
        payment_for(&self.asked(), number, |transfer| {
            transfer.nonce = Word::from_bytes([nonce; 32]);
            change(transfer);
        })
    }

    /// Pays what is asked, from a wallet, with a nonce.
    pub(super) fn pays(&self, number: u8, nonce: u8) -> InvokeHeaders {
        let payment = self.payment(number, nonce, |_| {});
        shows(SIGNATURE_HEADER, &to_header(&payment.json))
    }

    /// A call that is made.
    pub(super) async fn invoke(&self, headers: InvokeHeaders, body: Value) -> (Invoked, Value) {
        self.invoke_on(&self.desk.market, headers, body).await
    }

    pub(super) async fn invoke_on(
        &self,
        market: &Arc<Market>,
        headers: InvokeHeaders,
        body: Value,
    ) -> (Invoked, Value) {
        let invoked = market.invoke(call(headers, &body)).await.answer.unwrap();
        let body = serde_json::from_slice(&invoked.body).unwrap();
        (invoked, body)
    }

    /// A call that is refused.
    pub(super) async fn refusal(&self, headers: InvokeHeaders, body: Value) -> MarketRefusal {
        let answer = self.desk.market.invoke(call(headers, &body)).await.answer;
        answer.unwrap_err().into_refusal()
    }

    /// What a wallet has paid.
    pub(super) fn moved(&self, number: u8) -> u128 {
        let asset = self.asked().asset;
        GRANT - self.chain.local.balance(asset, wallet(number).address())
    }
}

/// Gives an offer an address to be paid at.
pub(super) fn payable(offer: &mut Offer) {
    offer.payout = Some(Address::from_bytes([0x11; 20]));
}

pub(super) fn shows(name: &'static str, value: &str) -> InvokeHeaders {
    InvokeHeaders {
        x402: true,
        payment: vec![(name, value.to_owned())],
        ..nothing()
    }
}

pub(super) fn header_json(header: &str) -> Value {
    serde_json::from_slice(&STANDARD.decode(header).unwrap()).unwrap()
}
