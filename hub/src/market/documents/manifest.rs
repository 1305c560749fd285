//! `/ai-market/v2/manifest`: what is sold here. Five of its fields are signed, two of them as digests of the rest.

use aip_protocol::error::Refusal;
use aip_protocol::market::manifest::ManifestDraft;
use aip_protocol::market::{Members, Number, Value};
use aip_protocol::time::Timestamp;

use super::tool::tool;
use super::{Facts, count};
use crate::market::limits::TOOLS_BYTES_MAX;
use crate::market::shelf::Sold;

pub(super) fn signed(facts: &Facts, sold: &Sold, now: Timestamp) -> Result<Value, Refusal> {
    let tools = tools(facts, sold, now);
    let is_whole = tools.len() == sold.count;
    let mut further = Members::from([
        ("total_capabilities".to_owned(), count(sold.count)),
        ("local_capabilities".to_owned(), count(sold.count)),
        ("federated_capabilities".to_owned(), 0_u32.into()),
        ("hubs_indexed".to_owned(), 1_u32.into()),
    ]);
    if !is_whole {
        further.insert("truncated".to_owned(), true.into());
    }
    let local = [
        ("capabilities_count", count(tools.len())),
        ("trust_score", Number::float(1.0).map_or(Value::Null, Value::from)),
        ("trust_basis", "self".into()),
        ("observations_30d", 0_u32.into()),
    ];
    let draft = ManifestDraft {
        generated_at: now,
        base_url: facts.base_url.clone(),
        tools,
        by_hub: Members::from([("local".to_owned(), local.into())]),
        further,
    };
    draft.sign(&facts.key)
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
