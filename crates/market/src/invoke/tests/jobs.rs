//! Calls that are followed, found again, and cancelled.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::sync::Semaphore;
use uuid::Uuid;

use super::desk::{Desk, Does, ask, by_channel, by_key, call, config, nothing, once, usd};
use crate::invoke::{Followed, InvokeHeaders, Invoked, Job, JobEvent, JobHandle, JobShown, JobStage};
use crate::limits::{FOLLOWERS_MAX, FREE_ANSWER_BYTES_MAX};
use crate::market::{Market, MarketConfig};
use crate::money::Usd;
use crate::progress::WordKind;
use crate::provider::ProviderCall;
use crate::refusal::MarketError;

const KEY: &str = "order-0001";

async fn followed(
    market: &Arc<Market>,
    headers: InvokeHeaders,
    input: Value,
) -> Result<Followed, MarketError> {
    market.invoke_followed(call(headers, &ask(input))).await.answer
}

/// A call that is under way.
async fn started(desk: &Desk, headers: InvokeHeaders) -> JobHandle {
    match followed(&desk.market, headers, json!({ "a": 1 })).await.unwrap() {
        Followed::Job(handle) => handle,
        Followed::Answered(invoked) => panic!("it is under way: {invoked:?}"),
    }
}

/// The provider works until there is a permit.
fn gated(desk: &Desk) -> Arc<Semaphore> {
    let gate = Arc::new(Semaphore::new(0));
    desk.does(Does::Wait(Arc::clone(&gate)));
    gate
}

/// The call as the provider got it.
async fn at_the_provider(desk: &Desk, calls: usize) -> ProviderCall {
    while desk.calls() < calls {
        tokio::task::yield_now().await;
    }
    desk.provider.seen.lock().unwrap().clone().unwrap()
}

fn by_secret(handle: &JobHandle) -> JobShown {
    JobShown {
        secret: Some(handle.secret.expose().to_owned()),
        ..JobShown::default()
    }
}

async fn seen(market: &Market, handle: &JobHandle) -> Job {
    let id = handle.job.id.to_string();
    market.open_job(&id, &by_secret(handle)).await.unwrap()
}

async fn code(market: &Market, id: Uuid, shown: JobShown) -> &'static str {
    let refused = market.open_job(&id.to_string(), &shown).await.unwrap_err();
    refused.into_refusal().code.as_str()
}

fn body(invoked: &Invoked) -> Value {
    serde_json::from_slice(&invoked.body).unwrap()
}

/// The body of the answer that a job has ended with.
fn answer(job: &Job) -> Value {
    match &job.stage {
        JobStage::Ended(answer) => serde_json::from_slice(&answer.body).unwrap(),
        JobStage::Running(_) => panic!("it has ended"),
    }
}

#[tokio::test]
async fn a_followed_call_is_heard_of_and_its_answer_is_kept() {
    let desk = Desk::new();
    let (key, gate) = (desk.account("1", None).await, gated(&desk));
    let place = desk.market.take_stream().unwrap();
    let mut handle = started(&desk, by_key(&key)).await;
    assert!(handle.is_begun && matches!(handle.job.stage, JobStage::Running(None)));
    assert_eq!(
        desk.totals().await.held,
        usd("0.01"),
        "it is begun when it is told"
    );
    let mut feed = desk.market.feed(handle.job.id, 0, place);
    let provider = at_the_provider(&desk, 1).await;
    let progress = provider.progress.unwrap();
    assert!(progress.tell(WordKind::Progress, &json!({ "done": 0.5 })));
    assert!(progress.tell(WordKind::Chunk, &json!("Once")));
    for (number, kind) in [(1, WordKind::Progress), (2, WordKind::Chunk)] {
        let JobEvent::Word(word) = feed.next().await else {
            panic!("words come first");
        };
        assert_eq!((word.number, word.kind), (number, kind));
    }
    let now = seen(&desk.market, &handle).await;
    assert_eq!(now.status(), "running");
    let told: Value = serde_json::from_slice(&desk.market.job_body(&now, None)).unwrap();
    assert_eq!(
        told["progress"],
        json!({ "number": 2, "kind": "chunk", "data": "Once" })
    );
    assert!(told.get("answer").is_none() && told.get("job_secret").is_none());

    gate.add_permits(1);
    let ended = handle.end().await.unwrap();
    assert_eq!(feed.next().await, JobEvent::Ended(ended.clone()));
    let made = body(&ended);
    assert_eq!((ended.status, &made["result"]), (200, &json!({ "a": 1 })));
    assert_eq!(made["invocation_id"], handle.job.id.to_string());
    assert!(desk.is_receipt(&made["receipt"], "0.01"));
    let over = seen(&desk.market, &handle).await;
    assert_eq!((over.status(), answer(&over)), ("succeeded", made.clone()));
    // What is told of it is told letter for letter: a receipt is signed as it is spelled.
    let told = desk.market.job_body(&over, None);
    let told = String::from_utf8(told.to_vec()).unwrap();
    assert!(told.contains(std::str::from_utf8(&ended.body).unwrap()), "{told}");
    // And by another process, which remembers nothing of it.
    let elsewhere = desk.another(other_process(), 2);
    assert_eq!(answer(&seen(&elsewhere, &handle).await), made);
    assert_eq!(desk.balance(&key).await, usd("0.99"));
}

fn other_process() -> MarketConfig {
    MarketConfig {
        holder: Uuid::from_u128(8),
        ..config()
    }
}

#[tokio::test]
async fn a_job_is_opened_by_its_secret_or_by_what_pays_it() {
    let desk = Desk::new();
    let (key, other) = (desk.account("1", None).await, desk.account("1", None).await);
    let (channel, second) = (desk.channel("1").await, desk.channel("1").await);
    let handle = started(&desk, by_key(&key)).await;
    let by_account = |key: &str| JobShown {
        api_key: Some(key.to_owned()),
        ..JobShown::default()
    };
    let by_channel_of = |channel: &(crate::store::ChannelId, String)| JobShown {
        channel: Some(channel.0.0.clone()),
        channel_secret: Some(channel.1.clone()),
        ..JobShown::default()
    };
    let id = handle.job.id;
    assert!(
        desk.market
            .open_job(&id.to_string(), &by_account(&key))
            .await
            .is_ok()
    );
    let on_channel = started(&desk, by_channel(&channel)).await;
    let channels_job = on_channel.job.id.to_string();
    assert!(
        desk.market
            .open_job(&channels_job, &by_channel_of(&channel))
            .await
            .is_ok()
    );

    let no_job = "job_not_found";
    let refused = [
        (id, by_account(&other), no_job),
        (id, by_channel_of(&channel), no_job),
        (on_channel.job.id, by_account(&key), no_job),
        (on_channel.job.id, by_channel_of(&second), no_job),
        (id, by_secret(&on_channel), no_job),
        (Uuid::from_u128(9), by_secret(&handle), no_job),
        (Uuid::from_u128(9), by_account(&key), no_job),
        (id, by_account("aimk_wrong"), "invalid_api_key"),
        (id, JobShown::default(), "job_secret_required"),
    ];
    for (id, shown, expected) in refused {
        assert_eq!(code(&desk.market, id, shown.clone()).await, expected, "{shown:?}");
    }
    for secret in ["aimj_", "aimj_AAAA", "", "chs_x"] {
        let shown = JobShown {
            secret: Some(secret.to_owned()),
            ..by_account(&key)
        };
        assert_eq!(
            code(&desk.market, id, shown).await,
            no_job,
            "the secret is what counts"
        );
    }
    let shown = by_account(&key);
    assert!(desk.market.open_job("no-id", &shown).await.is_err());
    assert!(!format!("{shown:?} {handle:?}").contains(&key));
    assert!(!format!("{handle:?}").contains(handle.secret.expose()));
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_job_is_not_paid_and_its_provider_is_told() {
    let desk = Desk::new();
    let (key, _gate) = (desk.account("1", None).await, gated(&desk));
    let mut handle = started(&desk, once(KEY, by_key(&key))).await;
    let provider = at_the_provider(&desk, 1).await;
    let id = handle.job.id.to_string();
    for _again in 0..2 {
        let job = desk.market.cancel_job(&id, &by_secret(&handle)).await.unwrap();
        assert_eq!(
            (job.status(), &answer(&job)["error"]),
            ("cancelled", &json!("job_cancelled"))
        );
        assert_eq!(
            (desk.balance(&key).await, desk.totals().await.held),
            (usd("1"), Usd::ZERO)
        );
    }
    assert!(provider.cancelled.is_cancelled());
    let ended = handle.end().await.unwrap();
    assert_eq!(
        (ended.status, &body(&ended)["error"]),
        (409, &json!("job_cancelled"))
    );
    desk.market.drained().await;
    assert_eq!(
        (desk.totals().await.earned, desk.market.under_way()),
        (Usd::ZERO, 0)
    );
    // The same key is answered so from now on.
    let (status, again, replayed) = desk
        .invoke_on(&desk.market, once(KEY, by_key(&key)), ask(json!({ "a": 1 })))
        .await;
    assert_eq!(
        (status, &again["error"], replayed),
        (409, &json!("job_cancelled"), true)
    );
    assert_eq!(desk.calls(), 1);
}

/// The work is done in the moment in which it is cancelled: one of the two counts, and what is answered says which.
#[tokio::test(start_paused = true)]
async fn either_it_is_paid_or_it_is_cancelled() {
    for fails in 0..3 {
        let desk = Desk::new();
        let (key, gate) = (desk.account("1", None).await, gated(&desk));
        let mut handle = started(&desk, by_key(&key)).await;
        at_the_provider(&desk, 1).await;
        desk.store.finish_fails.store(fails, Ordering::SeqCst);
        desk.store.finish_lost.store(fails / 2, Ordering::SeqCst);
        gate.add_permits(1);
        let (id, shown) = (handle.job.id.to_string(), by_secret(&handle));
        let (job, ended) = tokio::join!(desk.market.cancel_job(&id, &shown), handle.end());
        desk.market.drained().await;
        let (job, ended) = (job.unwrap(), ended.unwrap());
        let earned = desk.totals().await.earned;
        match job.status() {
            "cancelled" => assert_eq!((ended.status, earned), (409, Usd::ZERO), "{fails}"),
            "succeeded" => assert_eq!((ended.status, earned), (200, usd("0.01")), "{fails}"),
            other => panic!("{fails}: {other}"),
        }
        let again = desk.market.open_job(&id, &shown).await.unwrap();
        assert_eq!(again.status(), job.status());
        assert_eq!(desk.totals().await.held, Usd::ZERO);
    }
}

#[tokio::test]
async fn what_has_ended_is_not_cancelled() {
    let desk = Desk::new();
    let key = desk.account("1", None).await;
    let mut handle = started(&desk, by_key(&key)).await;
    assert_eq!(handle.end().await.unwrap().status, 200);
    let id = handle.job.id.to_string();
    let job = desk.market.cancel_job(&id, &by_secret(&handle)).await.unwrap();
    assert_eq!(
        (job.status(), desk.balance(&key).await),
        ("succeeded", usd("0.99"))
    );
}

#[tokio::test(start_paused = true)]
async fn another_process_looks_at_a_job_and_cancels_it() {
    let desk = Desk::new();
    let (key, _gate) = (desk.account("1", None).await, gated(&desk));
    let elsewhere = desk.another(other_process(), 2);
    let mut handle = started(&desk, by_key(&key)).await;
    let provider = at_the_provider(&desk, 1).await;
    let id = handle.job.id.to_string();
    assert_eq!(seen(&elsewhere, &handle).await.status(), "running");
    let place = elsewhere.take_stream().unwrap();
    let mut feed = elsewhere.feed(handle.job.id, 0, place);
    let job = elsewhere.cancel_job(&id, &by_secret(&handle)).await.unwrap();
    assert_eq!((job.status(), desk.balance(&key).await), ("cancelled", usd("1")));
    // Who makes it finds out, and so does who follows it there.
    let ended = handle.end().await.unwrap();
    assert_eq!(&body(&ended)["error"], "job_cancelled");
    assert!(provider.cancelled.is_cancelled());
    assert!(matches!(feed.next().await, JobEvent::Ended(invoked) if invoked.status == 409));
}

#[tokio::test(start_paused = true)]
async fn a_job_whose_process_was_lost_has_failed_and_costs_nothing() {
    let desk = Desk::new();
    let key = desk.account("1", None).await;
    desk.does(Does::Hang);
    let handle = started(&desk, by_key(&key)).await;
    at_the_provider(&desk, 1).await;
    let again = desk.another(config(), 2);
    let mut feed = again.feed(handle.job.id, 0, again.take_stream().unwrap());
    assert_eq!(again.recover().await.unwrap(), 1);
    let job = seen(&again, &handle).await;
    assert_eq!(
        (job.status(), &answer(&job)["error"]),
        ("failed", &json!("job_lost"))
    );
    assert_eq!(desk.balance(&key).await, usd("1"));
    assert!(matches!(feed.next().await, JobEvent::Ended(invoked) if invoked.status == 503));
}

#[tokio::test]
async fn who_lost_the_first_answer_is_told_the_same_job() {
    let desk = Desk::new();
    let (key, gate) = (desk.account("1", None).await, gated(&desk));
    let headers = || once(KEY, by_key(&key));
    let mut first = started(&desk, headers()).await;
    let again = started(&desk, headers()).await;
    assert_eq!((again.job.id, again.is_begun), (first.job.id, false));
    assert_eq!(again.secret.expose(), first.secret.expose());
    let other = followed(&desk.market, headers(), json!({ "b": 2 }))
        .await
        .unwrap_err();
    assert_eq!(other.into_refusal().code.as_str(), "idempotency_conflict");
    // Who does not follow it is told that it is under way, as ever.
    let (status, refused) = desk.invoke(headers(), ask(json!({ "a": 1 }))).await;
    assert_eq!(
        (status, &refused["error"]),
        (409, &json!("idempotency_in_progress"))
    );
    gate.add_permits(1);
    let ended = first.end().await.unwrap();
    let Followed::Answered(replayed) = followed(&desk.market, headers(), json!({ "a": 1 }))
        .await
        .unwrap()
    else {
        panic!("it has ended");
    };
    assert_eq!((replayed.replayed, replayed.body), (true, ended.body));
    assert_eq!(desk.calls(), 1);
}

#[tokio::test]
async fn what_is_refused_before_it_begins_is_no_job() {
    let desk = Desk::new();
    let broke = desk.account("0", None).await;
    for (headers, expected) in [
        (nothing(), "payment_required"),
        (by_key(&broke), "payment_failed"),
    ] {
        let refused = followed(&desk.market, headers, json!({})).await.unwrap_err();
        assert_eq!(refused.into_refusal().code.as_str(), expected);
    }
    assert_eq!(desk.calls(), 0);
}

#[tokio::test]
async fn an_answer_that_is_too_large_to_be_kept_is_there_for_a_while() {
    let desk = Desk::new();
    desk.sell(|offer| offer.price = Usd::ZERO);
    let long = "x".repeat(FREE_ANSWER_BYTES_MAX);
    desk.does(Does::Result(json!(long)));
    let mut handle = started(&desk, nothing()).await;
    handle.end().await.unwrap();
    desk.market.drained().await;
    assert_eq!(answer(&seen(&desk.market, &handle).await)["result"], json!(long));
    desk.clock.advance(Duration::from_hours(1));
    desk.market.sweep().await.unwrap();
    let job = seen(&desk.market, &handle).await;
    assert_eq!(
        (job.status(), &answer(&job)["error"]),
        ("succeeded", &json!("idempotency_forgotten"))
    );
    desk.clock.advance(Duration::from_hours(24));
    desk.market.sweep().await.unwrap();
    assert_eq!(
        code(&desk.market, handle.job.id, by_secret(&handle)).await,
        "job_not_found"
    );
}

#[tokio::test]
async fn nobody_asks_a_provider_to_talk_that_nobody_follows() {
    let desk = Desk::new();
    desk.sell(|offer| offer.price = Usd::ZERO);
    desk.invoke(nothing(), ask(json!({}))).await;
    assert!(at_the_provider(&desk, 1).await.progress.is_none());
}

#[tokio::test]
async fn so_many_streams_are_open_and_no_more() {
    let desk = Desk::new();
    let mut places: Vec<_> = (0..FOLLOWERS_MAX)
        .map(|_| desk.market.take_stream().unwrap())
        .collect();
    assert_eq!(desk.market.streams(), FOLLOWERS_MAX);
    let full = desk.market.take_stream().unwrap_err();
    assert_eq!(full.into_refusal().code.as_str(), "unavailable");
    places.pop();
    assert!(desk.market.take_stream().is_ok());
}
