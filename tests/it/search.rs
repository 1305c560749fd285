//! The catalog of the real hub: what is published is found, by whoever asks and whatever happens in between.

mod by_message;
mod finding;
mod page;
mod several;
mod survival;

use aip_client::protocol::listing::{ListingKind, Offer};
use aip_client::search::Query;
use aip_client::{Client, Published};
use anyhow::Result;

use crate::faults::DEADLINE;

/// An offer with a description.
fn offer(id: &str, name: &str, description: &str) -> Offer {
    Offer {
        description: description.to_owned(),
        ..Offer::new(ListingKind::Product, id, name)
    }
}

async fn publish(agent: &Client, id: &str, name: &str, description: &str) -> Result<Published> {
    Ok(agent.publish_listing(&offer(id, name, description)).await?)
}

/// The names of what is found, best first.
async fn names(client: &Client, query: &Query) -> Result<Vec<String>> {
    let answer = client.search(query).await?;
    Ok(answer.results.into_iter().map(|hit| hit.name).collect())
}

/// Waits until a search finds what it is to find.
async fn until_found(
    client: &Client,
    text: &str,
    is_found: impl Fn(&[String]) -> bool,
) -> Result<Vec<String>> {
    let query = Query {
        limit: Some(100),
        ..Query::text(text)
    };
    let looking = async {
        loop {
            let found = names(client, &query).await?;
            if is_found(&found) {
                return Ok(found);
            }
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
    };
    match tokio::time::timeout(DEADLINE, looking).await {
        Ok(found) => found,
        Err(_elapsed) => anyhow::bail!("{text:?} finds {:?}", names(client, &query).await?),
    }
}
