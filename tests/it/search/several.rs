//! Several processes of one hub: each has an index of its own, and all find the same.

use aip_tests::clients::{agent, builder};
use aip_tests::cluster::Cluster;
use anyhow::{Result, ensure};

use super::{publish, until_found};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_one_process_takes_every_process_finds() -> Result<()> {
    let cluster = tokio::task::block_in_place(|| Cluster::start(2));
    let homes = [0, 1].map(|number| cluster.home(cluster.hub(number).url()));
    let shop = agent(&homes[0], "shop").await?;
    let elsewhere = builder(&homes[1], "shop")?.build()?;
    let published = publish(&shop, "a", "zqcluster lamp", "A lamp").await?;
    for client in [&shop, &elsewhere] {
        until_found(client, "zqcluster", |found| found == ["zqcluster lamp"]).await?;
    }
    let again = publish(&elsewhere, "a", "zqcluster lantern", "A lantern").await?;
    ensure!(again.id == published.id, "{again:?}");
    for client in [&shop, &elsewhere] {
        until_found(client, "zqcluster", |found| found == ["zqcluster lantern"]).await?;
    }
    elsewhere.delete_listing(&again.id).await?;
    for client in [&shop, &elsewhere] {
        until_found(client, "zqcluster", <[String]>::is_empty).await?;
    }
    Ok(())
}
