//! Many calls at once on one purse: exactly as many are made as it can pay.

use aip_tests::market::{Purse, books, call, channel, purse};
use aip_tests::raw::{Answer, ask};
use anyhow::{Context, Result};
use futures_util::future::join_all;
use serde_json::json;
use std::collections::BTreeSet;

use super::{Shop, made, refused};

const CROWD: usize = 200;

/// The receipts of those that were made; the others were refused for want of money.
fn sorted(answers: &[Answer]) -> BTreeSet<String> {
    let mut receipts = BTreeSet::new();
    let mut made_count = 0;
    for answer in answers {
        if answer.status == 402 {
            refused(answer, 402, "payment_failed");
            continue;
        }
        made_count += 1;
        receipts.insert(made(answer)["receipt"]["nonce"].to_string());
    }
    assert_eq!(receipts.len(), made_count, "two calls have one receipt");
    receipts
}

async fn together(shop: &Shop, purse: &Purse, count: usize) -> Vec<Answer> {
    let url = shop.hub.url();
    let one = |number: usize| {
        let request = purse.on(call("shop", "paid@v1", &json!({ "n": number })));
        async move { ask(url, &request).await }
    };
    join_all((0..count).map(one)).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn two_hundred_at_once_on_one_channel_stay_exact() -> Result<()> {
    let shop = Shop::open("fee_bps = 33").await?;
    shop.sells("paid@v1", Some("0.0007")).await?;
    let key = shop.key("1").await?;
    // Enough for 123 of them, and half a price.
    let open = channel(&shop.hub, &key, 0.086_45).await?;
    let receipts = sorted(&together(&shop, &open, CROWD).await);
    assert_eq!(receipts.len(), 123);
    assert_eq!(shop.provider.invocations(), 123, "a provider worked for nothing");
    assert_eq!(purse(&shop.hub, &open).await?, (350, 0));
    let books = books(&shop.hub).await?;
    // 0.33 % of 700 is 2.31: 2 for the hub.
    assert_eq!((books.fees, books.earned, books.held), (246, 123 * 698, 0));
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn pitfall_19_forty_at_once_under_a_ceiling_of_ten_are_ten() -> Result<()> {
    let shop = Shop::open("").await?;
    shop.sells("paid@v1", Some("0.01")).await?;
    let all = shop.key("5").await?;
    let body = json!({ "budget_usd": 0.10 }).to_string();
    let request = all.on(aip_tests::raw::Request::post("/ai-market/v2/account/keys", body));
    let answer = shop.ask(&request).await;
    let key = answer.json()["api_key"].as_str().context("no key")?.to_owned();
    let receipts = sorted(&together(&shop, &Purse::Key(key), 40).await);
    assert_eq!((receipts.len(), shop.provider.invocations()), (10, 10));
    assert_eq!(purse(&shop.hub, &all).await?, (4_900_000, 0));
    // Two at once, money for one.
    let (_, poor) = aip_tests::market::account(&shop.hub, "0.019999").await?;
    let receipts = sorted(&together(&shop, &poor, 2).await);
    assert_eq!(receipts.len(), 1);
    books(&shop.hub).await?;
    Ok(())
}
