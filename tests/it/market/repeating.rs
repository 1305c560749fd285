//! The same call again: it is made once, paid once, and answered the same.

use std::sync::Arc;
use std::time::Duration;

use aip_tests::market::{INVOKE, Purse, books, call, purse};
use aip_tests::provider::Reply;
use aip_tests::raw::{Request, ask};
use anyhow::Result;
use futures_util::future::join_all;
use serde_json::json;

use super::{Shop, made, refused};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_with_a_key_is_made_once() -> Result<()> {
    let mut shop = Shop::open("").await?;
    shop.sells("paid@v1", Some("0.1")).await?;
    let key = shop.key("1").await?;
    let again = |input: &serde_json::Value, name: &str| {
        key.on(call("shop", "paid@v1", input))
            .field("Idempotency-Key", name)
    };
    let first = shop
        .ask(&again(&json!({ "a": 1, "b": [2.0] }), "order-0001"))
        .await;
    made(&first);
    assert!(first.header("idempotency-replayed").is_empty());
    for round in 0..3 {
        // Another spelling of the same.
        let body = "{ \"input\": {\"b\":[2.0],\"a\":1}, \"capability_id\":\"paid\\u0040v1\", \"product_id\":\"shop\"}";
        let request = key
            .on(Request::post(INVOKE, body))
            .field("Idempotency-Key", "order-0001");
        let answer = shop.ask(&request).await;
        assert_eq!(
            (answer.status, answer.json()),
            (200, first.json()),
            "round {round}"
        );
        assert_eq!(answer.header("idempotency-replayed"), "true");
        if round == 1 {
            tokio::task::block_in_place(|| shop.hub.restart());
            aip_tests::market::until_sold(&shop.hub, 1).await;
        }
    }
    assert_eq!(shop.provider.calls().len(), 1);
    assert_eq!(purse(&shop.hub, &key).await?, (900_000, 0));

    refused(
        &shop.ask(&again(&json!({ "a": 2 }), "order-0001")).await,
        409,
        "idempotency_conflict",
    );
    // Another purse's key of the same name is another key.
    let other = shop.key("1").await?;
    made(
        &shop
            .ask(
                &other
                    .on(call("shop", "paid@v1", &json!({ "a": 2 })))
                    .field("Idempotency-Key", "order-0001"),
            )
            .await,
    );
    // So is that of a call without any.
    made(&shop.ask(&again(&json!({ "a": 2 }), "order-0002")).await);
    made(&shop.calls("paid@v1", &key, &json!({ "a": 2 })).await);
    assert_eq!(shop.provider.invocations(), 4);
    assert_eq!(purse(&shop.hub, &key).await?, (700_000, 0));
    Ok(())
}

#[tokio::test]
async fn many_at_once_with_one_key_are_one_call() -> Result<()> {
    let shop = Shop::open("").await?;
    shop.sells("paid@v1", Some("0.1")).await?;
    let key = shop.key("1").await?;
    shop.provider
        .answer(|call| Reply::After(Duration::from_millis(300), Box::new(Reply::echo(call))));
    let request = key
        .on(call("shop", "paid@v1", &json!({})))
        .field("Idempotency-Key", "order-0001");
    let answers = join_all((0..20).map(|_| shop.ask(&request))).await;
    let mut first = None;
    for answer in &answers {
        if answer.status == 409 {
            refused(answer, 409, "idempotency_in_progress");
        } else {
            let body = made(answer);
            assert_eq!(*first.get_or_insert_with(|| body.clone()), body);
        }
    }
    assert!(first.is_some());
    assert_eq!(shop.provider.calls().len(), 1);
    assert_eq!(purse(&shop.hub, &key).await?, (900_000, 0));
    Ok(())
}

/// A failure is answered again too: another attempt is another call.
#[tokio::test]
async fn a_failure_is_answered_the_same_again() -> Result<()> {
    let shop = Shop::open("").await?;
    shop.sells("paid@v1", Some("0.1")).await?;
    let key = shop.key("1").await?;
    shop.provider.answer(|_| Reply::Break);
    let request = |name: &str| {
        key.on(call("shop", "paid@v1", &json!({})))
            .field("Idempotency-Key", name)
    };
    let first = shop.ask(&request("order-0001")).await;
    refused(&first, 502, "provider_failed");
    shop.provider.answer(Reply::echo);
    let again = shop.ask(&request("order-0001")).await;
    assert_eq!((again.status, again.json()), (502, first.json()));
    assert_eq!(again.header("idempotency-replayed"), "true");
    made(&shop.ask(&request("order-0002")).await);
    assert_eq!(books(&shop.hub).await?.earned, 100_000);
    Ok(())
}

/// Who goes away in the middle has the answer when it comes back, and has paid once.
#[tokio::test]
async fn who_hangs_up_finds_the_answer_later() -> Result<()> {
    let shop = Shop::open("").await?;
    shop.sells("paid@v1", Some("0.1")).await?;
    let key = shop.key("1").await?;
    shop.provider
        .answer(|call| Reply::After(Duration::from_millis(200), Box::new(Reply::echo(call))));
    let request = Arc::new(
        key.on(call("shop", "paid@v1", &json!({ "x": 1 })))
            .field("Idempotency-Key", "order-0001"),
    );
    let (url, lost) = (shop.hub.url().to_owned(), Arc::clone(&request));
    let caller = tokio::spawn(async move { ask(&url, &lost).await });
    shop.provider.called(1).await;
    caller.abort();
    let looking = async {
        loop {
            let answer = shop.ask(&request).await;
            if answer.status != 409 {
                return answer;
            }
            refused(&answer, 409, "idempotency_in_progress");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    let answer = tokio::time::timeout(crate::faults::DEADLINE, looking).await?;
    assert_eq!(made(&answer)["result"]["echo"], json!({ "x": 1 }));
    assert_eq!(shop.provider.invocations(), 1);
    assert_eq!(purse(&shop.hub, &key).await?, (900_000, 0));
    Ok(())
}

#[tokio::test]
async fn free_calls_are_told_apart_by_their_network() -> Result<()> {
    let shop = Shop::open("").await?;
    shop.sells("free@v1", None).await?;
    let request =
        |input: i32| call("shop", "free@v1", &json!({ "n": input })).field("Idempotency-Key", "free-0001");
    let first = shop.ask(&request(1)).await;
    made(&first);
    let again = shop.ask(&request(1)).await;
    assert_eq!(again.json(), first.json());
    refused(&shop.ask(&request(2)).await, 409, "idempotency_conflict");
    for wrong in ["short", "with ümlaut", &"x".repeat(129)] {
        let answer = shop
            .ask(
                &Purse::Empty
                    .on(call("shop", "free@v1", &json!({})))
                    .field("Idempotency-Key", wrong),
            )
            .await;
        assert_eq!(answer.status, 400, "{wrong}: {}", answer.text());
    }
    Ok(())
}
