//! `/ai-market/v2/prices`: the prices alone. Signed as a whole.

use aip_protocol::market::{Value, document, time_text};
use aip_protocol::time::Timestamp;

use super::tool::priced;
use super::{Facts, count};
use crate::market::shelf::Sold;

pub(super) fn signed(facts: &Facts, sold: &Sold, now: Timestamp) -> Value {
    let prices: Vec<Value> = sold
        .offers
        .iter()
        .map(|offer| {
            let mut priced = priced(facts, offer);
            priced.insert("price_usd".to_owned(), Value::usd(offer.price.micros()));
            priced.into()
        })
        .collect();
    let members = [
        ("protocol_version", Value::from("v2")),
        ("generated_at", time_text(now).into()),
        ("base_url", facts.base_url.as_str().into()),
        ("currency", "USD".into()),
        ("routing_fee_bps", u32::from(facts.peers.routing_fee_bps).into()),
        ("count", count(prices.len())),
        ("total_capabilities", count(sold.count)),
        ("prices", Value::Array(prices)),
    ];
    let members = members.into_iter().map(|(name, value)| (name.to_owned(), value));
    document::sign(members.collect(), &facts.key)
}
