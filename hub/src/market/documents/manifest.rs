//! `/ai-market/v2/manifest`: what is sold here. Five of its fields are signed, two of them as digests of the rest.

use std::collections::BTreeMap;

use aip_market::peers::PeerBook as _;
use aip_protocol::error::Refusal;
use aip_protocol::market::manifest::ManifestDraft;
use aip_protocol::market::{Members, Number, Value, time_text};
use aip_protocol::time::Timestamp;

use super::tool::tool;
use super::{Facts, count};
use crate::market::limits::TOOLS_BYTES_MAX;
use crate::market::shelf::Sold;

pub(super) fn signed(facts: &Facts, sold: &Sold, now: Timestamp) -> Result<Value, Refusal> {
    let tools = tools(facts, sold, now);
    let is_whole = tools.len() == sold.count;
    let by_hub = by_hub(facts, sold, tools.len());
    let mut further = Members::from([
        ("total_capabilities".to_owned(), count(sold.count)),
        ("local_capabilities".to_owned(), count(sold.local)),
        (
            "federated_capabilities".to_owned(),
            count(sold.count - sold.local),
        ),
        ("hubs_indexed".to_owned(), count(by_hub.len())),
    ]);
    if !is_whole {
        further.insert("truncated".to_owned(), true.into());
    }
    let draft = ManifestDraft {
        generated_at: now,
        base_url: facts.base_url.clone(),
        tools,
        by_hub,
        further,
    };
    draft.sign(&facts.key)
}

/// What is known of each hub that the first `shown` offers are of. Nothing was measured of another one, and no number is made up.
fn by_hub(facts: &Facts, sold: &Sold, shown: usize) -> Members {
    let mut counts = BTreeMap::<Option<&str>, usize>::from([(None, 0)]);
    for offer in sold.offers.iter().take(shown) {
        *counts.entry(offer.source.hub()).or_default() += 1;
    }
    let told = counts.into_iter().map(|(hub, tools)| {
        let mut told = Members::from([
            ("capabilities_count".to_owned(), count(tools)),
            ("observations_30d".to_owned(), 0_u32.into()),
        ]);
        match hub {
            None => {
                let full = Number::float(1.0).map_or(Value::Null, Value::from);
                told.insert("trust_score".to_owned(), full);
                told.insert("trust_basis".to_owned(), "self".into());
            }
            Some(hub) => {
                told.insert("trust_basis".to_owned(), "unobserved".into());
                let peer = facts.peers.book.peer(hub);
                if let Some(at) = peer.and_then(|peer| peer.last_crawl) {
                    told.insert("last_crawl".to_owned(), time_text(at).into());
                }
            }
        }
        (hub.unwrap_or("local").to_owned(), told.into())
    });
    told.collect()
}

/// As many as readers take.
fn tools(facts: &Facts, sold: &Sold, now: Timestamp) -> Vec<Value> {
    let mut bytes = 0_usize;
    let tools = sold.offers.iter().map(|offer| tool(facts, offer, now));
    tools
        .take_while(|tool| {
            bytes = bytes.saturating_add(tool.to_bytes().len());
            bytes <= TOOLS_BYTES_MAX
        })
        .collect()
}
