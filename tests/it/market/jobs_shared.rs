//! Jobs of two processes of one hub on PostgreSQL: what one makes the other one shows and cancels.

use std::time::Duration;

use aip_client::Client;
use aip_client::market::{ApiKey, Call, Purse as Payer, Started};
use aip_tests::clients::agent;
use aip_tests::cluster::{Cluster, Engines};
use aip_tests::market::{Purse, capability, purse, until_sold};
use aip_tests::provider::{Provider, Reply, pieces};
use aip_tests::raw::Request;
use anyhow::{Context, Result, bail, ensure};
use serde_json::{Map, json};

const SETTINGS: &str = "[search]\nmodels = []\n[market]\nfee_bps = 100\n";
const PATIENCE: Duration = Duration::from_mins(1);

async fn key(cluster: &Cluster) -> Result<String> {
    let body = json!({ "label": "a test", "grant": "1" }).to_string();
    let answer = cluster.operate(1, Request::post("/admin/accounts", body)).await;
    ensure!(answer.status == 201, "{}", answer.text());
    let key = answer.json()["api_key"].as_str().map(str::to_owned);
    key.context("no api_key")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_job_of_one_process_is_shown_and_cancelled_by_the_other() -> Result<()> {
    let cluster = tokio::task::block_in_place(|| Cluster::on(Engines::shared(), 2, SETTINGS));
    let seller = agent(cluster.home(cluster.hub(0).url()), "shop").await?;
    let provider = Provider::echo().await;
    let offer = capability("film@v1", Some("0.01"), provider.url(), &json!({}));
    seller.publish_listing(&offer).await?;
    for hub in cluster.hubs() {
        until_sold(hub, 1).await;
    }
    let key = key(&cluster).await?;
    let payer = Payer::Account(ApiKey::new(&key)?);
    let here = Client::builder(cluster.hub(0).url()).build()?;
    let there = Client::builder(cluster.hub(1).url()).build()?;
    let call = Call::new("shop", "film@v1", Map::new()).timeout(PATIENCE);
    let begin = async || match here.start_call(&call, &payer).await? {
        Started::Job(job) => Ok(job),
        Started::Answered(answer) => bail!("it is under way: {answer:?}"),
    };

    let (say, said) = pieces();
    provider.answer(move |_| Reply::Stream("application/x-ndjson", said.clone()));
    let job = begin().await?;
    assert!(there.job(&job).await?.is_running());
    let waiting = tokio::spawn({
        let (there, job) = (there.clone(), job.clone());
        async move { there.wait_job(&job, PATIENCE, |_| ()).await }
    });
    say.send(b"{\"result\": {\"frames\": 100}}\n".to_vec()).await?;
    assert_eq!(waiting.await??.result, json!({ "frames": 100 }));
    assert_eq!(there.job(&job).await?.status, "succeeded");

    let (say, said) = pieces();
    provider.answer(move |_| Reply::Stream("application/x-ndjson", said.clone()));
    let job = begin().await?;
    provider.called(2).await;
    assert_eq!(there.cancel_job(&job).await?.status, "cancelled");
    // The process that makes it finds out, and its provider with it.
    tokio::time::timeout(PATIENCE, say.closed())
        .await
        .context("the provider goes on")?;
    assert_eq!(here.job(&job).await?.status, "cancelled");
    let paid = purse(cluster.hub(1), &Purse::Key(key)).await?;
    assert_eq!(paid, (990_000, 0));
    Ok(())
}
