//! `/.well-known/ai-market.json`: what this hub is, and how it is paid. Signed as a whole.

use std::collections::BTreeSet;

use aip_market::facilitator::Terms;
use aip_market::limits::ANSWERS_KEPT;
use aip_protocol::market::x402::VERSION;
use aip_protocol::market::{Members, Value, document, signature, time_text};
use aip_protocol::time::Timestamp;

use super::{Facts, count, secs};
use crate::market::limits::PEERS_TOLD_MAX;
use crate::market::shelf::Sold;

/// What the market counts in: a millionth of a dollar.
const MIN_UNIT_MICROS: u64 = 1;

pub(super) fn signed(facts: &Facts, sold: &Sold, now: Timestamp) -> Value {
    let products: BTreeSet<&str> = sold
        .offers
        .iter()
        .map(|offer| offer.product_id.as_str())
        .collect();
    let nothing = || Value::Array(Vec::new());
    let (chains, tokens) = facts.x402.as_ref().map_or_else(
        || (nothing(), nothing()),
        |terms| (vec![terms.network()].into(), vec![terms.asset.to_string()].into()),
    );
    let members = [
        ("name", Value::from(facts.domain.as_str())),
        (
            "description",
            format!(
                "The market of {}: what its agents can do, for whoever pays.",
                facts.domain
            )
            .into(),
        ),
        ("protocol_versions", vec!["v2"].into()),
        ("hub_version", env!("CARGO_PKG_VERSION").into()),
        ("hub_url", facts.base_url.as_str().into()),
        ("manifest_url", facts.url("/ai-market/v2/manifest")),
        ("prices_url", facts.url("/ai-market/v2/prices")),
        ("search_url", facts.url("/ai-market/v2/search")),
        ("invoke_url", facts.url("/ai-market/v2/invoke")),
        ("aip_url", facts.url("/.well-known/aip")),
        (
            "signer_public_key",
            signature::key_text(facts.key.public()).into(),
        ),
        ("products_count", count(products.len())),
        ("capabilities_count", count(sold.local)),
        ("federated_capabilities_count", count(sold.count - sold.local)),
        ("supported_chains", chains),
        ("supported_tokens", tokens),
        ("federation", federation(facts)),
        ("peers", peers(facts)),
        ("payment_configured", true.into()),
        (
            "payment_testnet",
            facts.x402.as_ref().is_some_and(|terms| terms.is_test).into(),
        ),
        ("payment_rails", rails(facts)),
        ("free_trial", trial(facts)),
        ("idempotency", idempotency()),
        ("jobs", jobs(facts)),
        ("generated_at", time_text(now).into()),
    ];
    let members = members.into_iter().map(|(name, value)| (name.to_owned(), value));
    document::sign(members.collect(), &facts.key)
}

/// How this hub deals with others.
fn federation(facts: &Facts) -> Value {
    Value::from([
        ("enabled", Value::from(facts.peers.is_enabled)),
        ("open", facts.peers.is_open.into()),
        ("crawl_interval_s", secs(facts.peers.interval)),
        ("routing_fee_bps", u32::from(facts.peers.routing_fee_bps).into()),
        ("announce_url", facts.url("/ai-market/v2/federation/announce")),
        ("peers_url", facts.url("/ai-market/v2/federation/peers")),
    ])
}

/// The hubs that sell here.
fn peers(facts: &Facts) -> Value {
    let peers = facts
        .peers
        .book
        .active()
        .into_iter()
        .take(PEERS_TOLD_MAX)
        .map(|peer| {
            let mut told = Members::from([
                ("url".to_owned(), Value::from(peer.url.as_str())),
                ("name".to_owned(), peer.name().into()),
                ("capabilities_count".to_owned(), peer.capabilities.into()),
            ]);
            if let Some(at) = peer.last_crawl {
                told.insert("last_crawl".to_owned(), time_text(at).into());
            }
            Value::from(told)
        });
    Value::Array(peers.collect())
}

fn rails(facts: &Facts) -> Value {
    let credits = [
        ("enabled", Value::from(true)),
        ("header", "X-API-Key".into()),
        ("open_signup", facts.market.open_signup.into()),
        ("signup_url", facts.url("/ai-market/v2/accounts")),
        ("free_grant_usd", Value::usd(0)),
        ("min_unit_usd", Value::usd(MIN_UNIT_MICROS)),
    ];
    let channel = [
        ("enabled", Value::from(true)),
        ("header", "X-Payment-Channel".into()),
        ("secret_header", "X-Payment-Channel-Secret".into()),
        ("open_url", facts.url("/ai-market/v2/channel/open")),
        ("demo_credit", facts.market.demo_credit.into()),
        ("chains", Value::Array(Vec::new())),
    ];
    let seller_direct = seller_direct(facts.x402.as_ref());
    Value::from([
        ("credits", credits.into()),
        ("channel", channel.into()),
        ("seller_direct", seller_direct),
    ])
}

/// How providers are paid on a chain, where they are.
fn seller_direct(terms: Option<&Terms>) -> Value {
    let Some(terms) = terms else {
        return [("enabled", Value::from(false))].into();
    };
    Value::from([
        ("enabled", Value::from(true)),
        ("header", "PAYMENT-SIGNATURE".into()),
        ("x402_version", VERSION.into()),
        ("scheme", "exact".into()),
        ("network", terms.network().into()),
        ("asset", terms.asset.to_string().into()),
        ("asset_name", terms.asset_name.as_str().into()),
        ("asset_decimals", u32::from(terms.decimals).into()),
    ])
}

fn trial(facts: &Facts) -> Value {
    let trials = facts.market.trials_per_visitor;
    Value::from([
        ("enabled", Value::from(trials > 0)),
        ("max_invokes_per_visitor", trials.into()),
        ("quota_window", "lifetime".into()),
        ("renews", false.into()),
        ("visitor_header", "X-AIMarket-Sandbox-Visitor".into()),
        ("excluded_capabilities", Value::Array(Vec::new())),
        ("exhausted_status", 429_u32.into()),
        ("exhausted_error", "trial_quota_exhausted".into()),
    ])
}

fn jobs(facts: &Facts) -> Value {
    Value::from([
        ("prefer", Value::from("respond-async")),
        ("accept", "text/event-stream".into()),
        ("jobs_url", facts.url("/ai-market/v2/jobs")),
        ("secret_header", "X-AIMarket-Job-Secret".into()),
        ("kept_secs", secs(ANSWERS_KEPT)),
    ])
}

fn idempotency() -> Value {
    Value::from([
        ("header", Value::from("Idempotency-Key")),
        ("kept_secs", secs(ANSWERS_KEPT)),
    ])
}
