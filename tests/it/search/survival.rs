//! The index is derived: it may be killed with its hub at any moment, or lost, and everything acknowledged is found again.

use std::time::Duration;

use aip_tests::clients::agent;
use aip_tests::{HubOptions, TestHub, chance, rounds_of, seed};
use anyhow::{Result, ensure};
use rand::RngExt as _;

use super::{publish, until_found};

fn roomy() -> HubOptions {
    HubOptions {
        config: Some(crate::faults::ROOMY.to_owned()),
        ..HubOptions::default()
    }
}

#[tokio::test]
async fn what_was_acknowledged_is_found_after_a_kill() -> Result<()> {
    let mut chance = chance(seed("the catalog and a kill"));
    let mut hub = TestHub::start_with(roomy());
    let mut shop = agent(&hub, "shop").await?;
    let mut taken = Vec::new();
    for round in 0..rounds_of(5) {
        let count = chance.random_range(1..20);
        for number in 0..count {
            publish(
                &shop,
                &format!("{round}-{number}"),
                &format!("zqkill{round} {number}"),
                "",
            )
            .await?;
        }
        taken.push(count);
        tokio::time::sleep(Duration::from_millis(chance.random_range(0..300))).await;
        hub.kill();
        hub.restart();
        shop = aip_tests::clients::builder(&hub, "shop")?.build()?;
        // Those of every round so far: a word for each, so that all fit on a page.
        for (round, count) in taken.iter().enumerate() {
            until_found(&shop, &format!("zqkill{round}"), |found| {
                let of_round = |name: &&String| name.starts_with(&format!("zqkill{round} "));
                found.iter().filter(of_round).count() == *count
            })
            .await?;
        }
    }
    Ok(())
}

#[tokio::test]
async fn an_index_that_is_lost_is_made_anew() -> Result<()> {
    let mut hub = TestHub::start_with(roomy());
    let shop = agent(&hub, "shop").await?;
    for number in 0..50 {
        publish(&shop, &number.to_string(), &format!("zqlost {number}"), "").await?;
    }
    until_found(&shop, "zqlost", |found| found.len() == 50).await?;
    hub.kill();
    let index = hub.data().join("search");
    ensure!(index.is_dir(), "no index in {}", hub.data().display());
    std::fs::remove_dir_all(&index)?;
    hub.restart();
    let shop = aip_tests::clients::builder(&hub, "shop")?.build()?;
    until_found(&shop, "zqlost", |found| found.len() == 50).await?;
    Ok(())
}
