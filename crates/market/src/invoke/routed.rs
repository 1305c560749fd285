//! Calls of other hubs' capabilities: who sells, what it costs here, and what the other hub has to show for it.
//!
//! Such a call goes the way of every other one: what can be known is checked, one step holds, the peer works, one step ends it.
//! What is its own is said here: under which [`RouteMode`] it is made, what the peer is shown, and the peer's receipt, which
//! goes to the buyer as it came and is checked with the key that is pinned for that peer.

use std::sync::Arc;
use std::time::Duration;

use aip_protocol::market::digest::sha256_hex;
use aip_protocol::market::receipt::{self, Expected};
use aip_protocol::market::{Members, Reason, Value as Exact, Verdict};
use sha2::{Digest as _, Sha256};

use super::InvokeCall;
use super::answer::{Done, Failure, usd};
use super::payer::Payer;
use super::price::{Cost, within};
use super::request::Request;
use super::run::Plan;
use crate::limits::{ROUTED_VISITOR_CHARS, ROUTED_VISITOR_PREFIX};
use crate::market::Market;
use crate::money::Usd;
use crate::offer::{Offer, Source};
use crate::peers::{MarketPeer, PeerStatus, RouteMode, peer_url};
use crate::provider::ProviderError;
use crate::refusal::{MarketCode, MarketRefusal};
use crate::routing::{PeerAnswer, PeerCall, PeerFailure, Shown};
use crate::store::{Charge, Idempotency};

/// What the names of visitors at other hubs are made of.
const VISITOR: &str = "aimarket-routed-visitor/v1";

/// How a call gets to another hub.
#[derive(Debug, Clone)]
pub(super) struct Route {
    pub(super) peer: Arc<MarketPeer>,
    /// This hub's address.
    via: String,
    pub(super) shown: Shown,
    /// What is added to the price, at most.
    fee: Usd,
    /// The part of the price that the fee is, in hundredths of a percent.
    fee_bps: u16,
}

impl Route {
    /// Whether this hub is the seller, whoever does the work.
    pub(super) fn sells(&self) -> bool {
        self.peer.mode != RouteMode::Broker
    }
}

/// What another hub has to show for its work.
#[derive(Debug)]
pub(super) struct Attested {
    receipt: Option<Exact>,
    verdict: Verdict,
    /// What it says that the call cost there.
    price: Option<Usd>,
    is_trial: bool,
    pub(super) headers: Vec<(&'static str, String)>,
}

impl Market {
    /// The other hub that a request names, in the one spelling; `None`: it names this one.
    pub(super) fn hub_of(&self, source_hub: &str) -> Option<String> {
        let config = &self.config;
        if source_hub == "local" || source_hub == config.domain {
            return None;
        }
        let url = peer_url(source_hub).unwrap_or_else(|| source_hub.to_owned());
        let is_here = url == config.base_url || peer_url(&config.base_url).is_some_and(|here| here == url);
        (!is_here).then_some(url)
    }

    /// The peer that is to be called, if it may be.
    pub(super) fn open_peer(&self, hub: &str) -> Result<Arc<MarketPeer>, MarketRefusal> {
        let peer = self.seams.peers.peer(hub).ok_or_else(|| {
            let detail =
                "This hub does not know that hub: `source_hub` is as the search answers it, or `local`.";
            MarketRefusal::new(MarketCode::HubUnknown, detail)
        })?;
        if peer.is_routable() {
            return Ok(peer);
        }
        let detail = match peer.status {
            PeerStatus::KeyMismatch => {
                "That hub shows another key than before: the operator of this hub has to look before it is called again."
            }
            PeerStatus::Pending | PeerStatus::Active => "The operator of this hub has not let that hub in.",
            PeerStatus::Blocked => "The operator of this hub does not deal with that hub.",
        };
        Err(MarketRefusal::new(MarketCode::HubNotActive, detail).with("status", peer.status.as_str()))
    }

    /// Nothing is sold under these ids where it was asked for: says where it is.
    pub(super) fn elsewhere(&self, request: &Request, hub: Option<&str>) -> MarketRefusal {
        let hubs = self
            .seams
            .offers
            .hubs_of(&request.product_id, &request.capability_id);
        let active = |url: &String| {
            url == "local" || self.seams.peers.peer(url).is_some_and(|peer| peer.is_routable())
        };
        let hubs: Vec<String> = hubs.into_iter().filter(active).collect();
        match (hub, hubs.first().cloned()) {
            (None, Some(first)) => {
                let detail =
                    format!("Another hub sells this capability: retry with `source_hub` \"{first}\".");
                MarketRefusal::new(MarketCode::SourceHubRequired, detail)
                    .with("source_hub", first)
                    .with("source_hubs", hubs)
            }
            (Some(_), Some(_)) => {
                let detail = "That hub does not sell this capability: `source_hubs` names those that do.";
                MarketRefusal::new(MarketCode::CapabilityUnknown, detail).with("source_hubs", hubs)
            }
            (_, None) => {
                let detail = "There is no such capability here: search for what there is.";
                MarketRefusal::new(MarketCode::CapabilityUnknown, detail)
            }
        }
    }

    /// What a call of another hub's capability costs here, and how it gets there. `None`: it is one of this hub's.
    pub(super) fn route(
        &self,
        offer: &Offer,
        request: &Request,
        call: &InvokeCall,
        payer: &Payer,
    ) -> Result<Option<(Cost, Route)>, MarketRefusal> {
        let Source::Peer(source) = &offer.source else {
            return Ok(None);
        };
        let peer = self.open_peer(&source.hub)?;
        let fee = offer.price.basis_points(self.config.routing_fee_bps);
        let (cost, shown, fee) = match peer.mode {
            RouteMode::Broker => self.brokered(offer, request, call, payer, (&peer, fee))?,
            RouteMode::SellsFor => {
                unchained(call)?;
                let cost = self.cost(offer, request, payer.clone())?;
                (cost, Shown::Admission, Usd::ZERO)
            }
            RouteMode::Reseller => {
                unchained(call)?;
                (
                    self.resold(offer, request, payer, fee)?,
                    Shown::Key(offer.price),
                    fee,
                )
            }
        };
        let fee_bps = self.config.routing_fee_bps;
        let route = Route {
            peer,
            via: self.config.base_url.clone(),
            shown,
            fee,
            fee_bps,
        };
        Ok(Some((cost, route)))
    }

    /// The peer sells, and bills the buyer itself; this hub takes its fee from a purse that is shown, and from nobody else.
    fn brokered(
        &self,
        offer: &Offer,
        request: &Request,
        call: &InvokeCall,
        payer: &Payer,
        (peer, fee): (&MarketPeer, Usd),
    ) -> Result<(Cost, Shown, Usd), MarketRefusal> {
        let (cost, fee) = match payer {
            Payer::Purse(purse) if fee > Usd::ZERO => {
                let charge = Charge {
                    purse: purse.clone(),
                    amount: fee,
                };
                (Cost::Charge(charge), fee)
            }
            _ => (Cost::Nothing, Usd::ZERO),
        };
        let headers = &call.headers;
        let tries = headers.api_key.is_none() && headers.payment.is_empty();
        let visitor = headers.visitor.as_ref().filter(|_| tries);
        // Who tries may have it for nothing, which only the peer knows; who pays tries nothing.
        if visitor.is_none() {
            within(request, total(offer.price, fee)?)?;
        }
        let shown = Shown::Buyer {
            visitor: visitor.map(|visitor| self.routed_visitor(&peer.url, visitor, &call.network)),
            payment: headers.payment.clone(),
            most: request.max_price.map(|most| most.saturating_sub(fee)),
        };
        Ok((cost, shown, fee))
    }

    /// This hub sells, and pays the peer: nothing of it is had without paying.
    fn resold(
        &self,
        offer: &Offer,
        request: &Request,
        payer: &Payer,
        fee: Usd,
    ) -> Result<Cost, MarketRefusal> {
        let price = total(offer.price, fee)?;
        if price == Usd::ZERO {
            return Ok(Cost::Nothing);
        }
        within(request, price)?;
        let Payer::Purse(purse) = payer else {
            let detail = format!(
                "The capability costs {price} USD here: send X-API-Key of an account, or X-Payment-Channel with its secret."
            );
            return Err(self
                .payment(MarketCode::PaymentRequired, detail, price)
                .with("routing_fee_usd", fee.to_f64())
                .with("routing_fee_bps", self.config.routing_fee_bps));
        };
        Ok(Cost::Charge(Charge {
            purse: purse.clone(),
            amount: price,
        }))
    }

    /// A name for a visitor at one peer: the same each time, and nobody but this hub can make it, or tell from it who it is.
    fn routed_visitor(&self, peer: &str, visitor: &str, network: &str) -> String {
        let text = format!("{VISITOR}\n{peer}\n{network}\n{visitor}");
        let mut name = sha256_hex(&self.seams.key.sign_bytes(text.as_bytes()));
        name.truncate(ROUTED_VISITOR_CHARS);
        format!("{ROUTED_VISITOR_PREFIX}{name}")
    }

    /// Calls the peer, and looks at its receipt.
    pub(super) async fn work_of_peer(
        &self,
        plan: &Plan,
        route: &Route,
        timeout: Duration,
    ) -> Result<(serde_json::Value, Attested), Failure> {
        let call = PeerCall {
            peer: &route.peer,
            offer: &plan.offer,
            id: plan.id,
            input: &plan.input,
            timeout,
            shown: &route.shown,
        };
        let answer = tokio::time::timeout(timeout, self.seams.hubs.call(call))
            .await
            .unwrap_or_else(|_late| Err(ProviderError::TimedOut.into()));
        match answer {
            Ok(answer) => Ok(attested(&plan.offer, &route.peer, answer)),
            Err(PeerFailure::Provider(error)) => Err(Failure::Provider(error)),
            Err(PeerFailure::Unpaid(terms)) if !route.sells() => Err(Failure::Unpaid(terms)),
            Err(PeerFailure::Unpaid(_)) => Err(Failure::HubUnpaid),
            Err(PeerFailure::HubUnpaid(why)) => {
                tracing::error!(peer = %route.peer.url, why, "a peer is not paid by this hub's key there");
                Err(Failure::HubUnpaid)
            }
        }
    }
}

/// What the call costs in all. Prices are far below where this could fail.
fn total(price: Usd, fee: Usd) -> Result<Usd, MarketRefusal> {
    price
        .checked_add(fee)
        .ok_or_else(|| MarketRefusal::new(MarketCode::NotInvocable, "It costs more than there is money."))
}

/// A hub that sells what another one does is not paid over x402: the payee would be the other one.
fn unchained(call: &InvokeCall) -> Result<(), MarketRefusal> {
    if call.headers.payment.is_empty() {
        return Ok(());
    }
    let detail = "This hub sells this itself: it takes X-API-Key and X-Payment-Channel for it.";
    Err(MarketRefusal::new(MarketCode::PaymentInvalid, detail))
}

/// Of a call that is paid elsewhere a repetition shows the same payment: with another one it is a call of its own.
pub(super) fn scoped(idempotency: Idempotency, call: &InvokeCall) -> Idempotency {
    if call.headers.payment.is_empty() {
        return idempotency;
    }
    let mut hash = Sha256::new();
    hash.update(idempotency.key);
    for (name, value) in &call.headers.payment {
        hash.update((name.len() as u64).to_be_bytes());
        hash.update(name.as_bytes());
        hash.update((value.len() as u64).to_be_bytes());
        hash.update(value.as_bytes());
    }
    Idempotency {
        key: hash.finalize().into(),
        ..idempotency
    }
}

fn attested(offer: &Offer, peer: &MarketPeer, answer: PeerAnswer) -> (serde_json::Value, Attested) {
    let expected = Expected {
        capability_id: Some(&offer.capability_id),
        product_id: Some(&offer.product_id),
        // A receipt for more than the listing says is none of this call; what costs less there is the peer's word alone.
        price_micros: answer.price.map(|price| price.min(offer.price).micros()),
    };
    let verdict = match &answer.receipt {
        None => Verdict::NotChecked(Reason::NothingToCheck),
        Some(receipt) => receipt::verify(receipt, peer.key.as_slice(), &expected).verdict,
    };
    if verdict.is_false() {
        tracing::warn!(peer = %peer.url, ?verdict, "a receipt of a peer is not true");
    }
    let attested = Attested {
        receipt: answer.receipt,
        verdict,
        price: answer.price,
        is_trial: answer.is_trial,
        headers: answer.headers,
    };
    (answer.result, attested)
}

/// What came of asking another hub, for whoever counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Routed {
    /// Under which rules.
    pub mode: RouteMode,
    /// `ok`, `payment_required` (by the buyer), `upstream_unpaid` (by this hub) or `failed`.
    pub result: &'static str,
    /// Of an answer, whether its receipt is true, false, or was not checked (`None`).
    pub receipt: Option<bool>,
}

impl Plan {
    /// That another hub did it.
    pub(super) fn routed(&self, done: &Done) -> Option<Routed> {
        Some(Routed {
            mode: self.route.as_ref()?.peer.mode,
            result: "ok",
            receipt: done.attested.as_ref()?.verdict.as_bool(),
        })
    }

    /// That it did not.
    pub(super) fn not_routed(&self, failure: &Failure) -> Option<Routed> {
        Some(Routed {
            mode: self.route.as_ref()?.peer.mode,
            result: match failure {
                Failure::Unpaid(_) => "payment_required",
                Failure::HubUnpaid => "upstream_unpaid",
                _ => "failed",
            },
            receipt: None,
        })
    }

    /// What is taken of what is held. The fee is of what the peer says that the call cost, and of the listed price at most.
    pub(super) fn paid(&self, done: &Done) -> Usd {
        let held = self.cost.amount();
        let (Some(route), Some(attested)) = (&self.route, &done.attested) else {
            return held;
        };
        if held == Usd::ZERO {
            return held;
        }
        let basis = attested.price.unwrap_or(Usd::ZERO).min(self.offer.price);
        let fee = route.fee.min(basis.basis_points(route.fee_bps));
        held.saturating_sub(route.fee.saturating_sub(fee))
    }

    /// What an answer cost its buyer, here or elsewhere: one that was paid for is kept, however large it is.
    pub(super) fn worth(&self, paid: Usd) -> Usd {
        let is_paid_elsewhere = self.route.as_ref().is_some_and(|route| match &route.shown {
            Shown::Buyer { payment, .. } => !payment.is_empty(),
            Shown::Admission | Shown::Key(_) => false,
        });
        if is_paid_elsewhere {
            self.offer.price.max(paid)
        } else {
            paid
        }
    }

    /// What the hub keeps of what was paid: its part of what is sold here, also on behalf of a peer, to whom the rest is owed;
    /// else all of it, since the peer is paid otherwise.
    pub(super) fn kept_of(&self, paid: Usd, fee_bps: u16) -> Usd {
        match self.route.as_ref().map(|route| route.peer.mode) {
            None | Some(RouteMode::SellsFor) => paid.basis_points(fee_bps),
            Some(RouteMode::Broker | RouteMode::Reseller) => paid,
        }
    }

    /// Whether this hub gives a receipt of its own: of what it sells, and of what it took.
    pub(super) fn has_own_receipt(&self, paid: Usd) -> bool {
        paid > Usd::ZERO || self.route.as_ref().is_none_or(Route::sells)
    }
}

/// The members of an answer that are about the other hub; `own` is this hub's receipt.
pub(super) fn members(plan: &Plan, done: &Done, body: &mut Members, own: Option<Exact>) {
    let (Some(route), Some(attested)) = (&plan.route, &done.attested) else {
        return;
    };
    let charged = plan.paid(done);
    let mut put = |name: &str, value: Exact| {
        body.insert(name.to_owned(), value);
    };
    put("routed_via", route.via.as_str().into());
    put("source_hub", route.peer.url.as_str().into());
    put("route_mode", route.peer.mode.as_str().into());
    put("receipt", attested.receipt.clone().into());
    put(
        "receipt_verified",
        attested.verdict.as_bool().map(Exact::from).into(),
    );
    if let Some(reason) = attested.verdict.reason() {
        put("receipt_reason", reason.code().into());
    }
    put("hub_receipt", own.into());
    put("charged_usd", usd(charged));
    put("routing_fee_usd", usd(routing_fee(route, plan, charged)));
    put("routing_fee_bps", u32::from(route.fee_bps).into());
    if !route.sells() {
        put("price_usd", usd(attested.price.unwrap_or(Usd::ZERO)));
        if attested.is_trial {
            put("sandbox", true.into());
        }
    }
}

/// The part of what was taken that is the fee.
fn routing_fee(route: &Route, plan: &Plan, charged: Usd) -> Usd {
    match route.peer.mode {
        RouteMode::Broker => charged,
        RouteMode::SellsFor => Usd::ZERO,
        RouteMode::Reseller => charged.saturating_sub(plan.offer.price),
    }
}
