//! An offer and a call, for the tests of both ways.

use std::time::Duration;

use aip_market::money::Usd;
use aip_market::offer::{Offer, Source, Way};
use aip_market::provider::ProviderCall;
use aip_protocol::name::Did;
use serde_json::Value;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

/// `weather@v1` of an agent.
pub(super) fn offer(agent: &str, way: Way) -> Offer {
    Offer {
        id: "l1".to_owned(),
        agent: Did::parse(agent).unwrap(),
        source: Source::Local,
        product_id: "shop".to_owned(),
        capability_id: "weather@v1".to_owned(),
        version: 1,
        name: "Weather".to_owned(),
        description: String::new(),
        category: None,
        price: Usd::ZERO,
        input_schema: None,
        output_schema: None,
        way: Some(way),
        timeout: None,
        free_tier: None,
        provider_key: None,
        payout: None,
        notes: aip_market::offer::Notes::default(),
    }
}

/// One call with this input.
pub(super) fn call(input: Value, timeout: Duration) -> ProviderCall {
    ProviderCall {
        id: Uuid::from_u128(0x0011_2233_4455_4677_8899_aabb_ccdd_eeff),
        input,
        timeout,
        progress: None,
        cancelled: CancellationToken::new(),
    }
}
