//! Calls that are followed: events as a provider says them, answers that come later, calls that are cancelled or lost, and
//! providers and readers of ill will.

use std::time::Duration;

use aip_client::market::{ApiKey, Call, CallEvent, JobKey, Purse as Payer, Started};
use aip_client::{Client, Error, ListenOptions, Served};
use aip_tests::market::{Purse, books, listed, purse, sell};
use aip_tests::provider::{Reply, pieces};
use aip_tests::raw::{Request, Wire, ask};
use anyhow::{Context, Result, bail, ensure};
use serde_json::{Value, json};
use tokio::sync::{Notify, mpsc};

use super::story::Person;
use super::{Shop, made, refused};

const EVENTS: &str = "text/event-stream";
const LINES: &str = "application/x-ndjson";
/// Longer than any call here takes.
const PATIENCE: Duration = Duration::from_mins(1);

fn buyer(shop: &Shop) -> Result<Client> {
    Ok(Client::builder(shop.hub.url()).build()?)
}

fn payer(purse: &Purse) -> Result<Payer> {
    match purse {
        Purse::Key(key) => Ok(Payer::Account(ApiKey::new(key)?)),
        other => bail!("{other:?} is no key"),
    }
}

fn film() -> Call {
    Call::new("shop", "film@v1", serde_json::Map::new()).timeout(PATIENCE)
}

fn code(error: &Error) -> &str {
    error.problem().map_or("", |problem| problem.code.as_str())
}

/// A shop that sells films for a cent, and a key with a dollar.
async fn open() -> Result<(Shop, Purse)> {
    let shop = Shop::open("").await?;
    shop.sells("film@v1", Some("0.01")).await?;
    let key = shop.key("1").await?;
    Ok((shop, key))
}

async fn started(client: &Client, payer: &Payer) -> Result<JobKey> {
    match client.start_call(&film(), payer).await? {
        Started::Job(key) => Ok(key),
        Started::Answered(answer) => bail!("it is under way: {answer:?}"),
    }
}

/// Nothing waits in between: the provider says the next word when the one before was heard.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn words_come_as_a_provider_says_them() -> Result<()> {
    let (shop, key) = open().await?;
    let client = buyer(&shop)?;
    for (media_type, words) in [
        (
            EVENTS,
            [
                "event: progress\ndata: {\"done\": 0.5}\n\n",
                "event: chunk\ndata: Once\n\n",
                "event: result\ndata: {\"result\": 7}\n\n",
            ],
        ),
        (
            LINES,
            [
                "{\"progress\": {\"done\": 0.5}}\n",
                "{\"chunk\": \"Once\"}\n",
                "{\"result\": 7}\n",
            ],
        ),
    ] {
        let (say, said) = pieces();
        shop.provider
            .answer(move |_| Reply::Stream(media_type, said.clone()));
        say.send(words[0].into()).await?;
        let mut heard = Vec::new();
        let invoked = client
            .invoke_streamed(&film(), &payer(&key)?, |event| {
                let next = match &event {
                    CallEvent::Progress { .. } => Some(words[1]),
                    CallEvent::Chunk { .. } => Some(words[2]),
                    _ => None,
                };
                if let Some(next) = next {
                    say.try_send(next.into()).unwrap();
                }
                heard.push(event);
            })
            .await?;
        assert_eq!(invoked.result, json!(7));
        let words: Vec<_> = heard
            .iter()
            .map(|event| match event {
                CallEvent::Began(_) => json!("began"),
                CallEvent::Progress { number, data } | CallEvent::Chunk { number, data } => {
                    json!([number, data])
                }
                other => json!(format!("{other:?}")),
            })
            .collect();
        assert_eq!(
            words,
            [json!("began"), json!([1, {"done": 0.5}]), json!([2, "Once"])]
        );
        let check = client.check_invoked(&film(), &invoked).await?;
        assert!(check.is_some_and(|check| check.verdict.as_bool() == Some(true)));
    }
    let call = shop.provider.calls().pop().context("it was called")?;
    assert!(call.header("accept").contains(EVENTS), "{call:?}");
    assert_eq!(purse(&shop.hub, &key).await?, (980_000, 0));
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_job_is_answered_later_and_found_by_whoever_pays_it() -> Result<()> {
    let (shop, key) = open().await?;
    let (client, payer) = (buyer(&shop)?, payer(&key)?);
    let (say, said) = pieces();
    shop.provider.answer(move |_| Reply::Stream(LINES, said.clone()));
    let job = started(&client, &payer).await?;
    assert_eq!(purse(&shop.hub, &key).await?, (990_000, 10_000), "it is held");
    say.send(b"{\"progress\": {\"done\": 0.25}}\n".to_vec()).await?;
    let state = loop {
        let state = client.job(&job).await?;
        if state.progress.is_some() {
            break state;
        }
        tokio::task::yield_now().await;
    };
    assert!(state.is_running());
    say.send(b"{\"result\": {\"frames\": 100}}\n".to_vec()).await?;
    let invoked = client.wait_job(&job, PATIENCE, |_| ()).await?;
    assert_eq!(invoked.result, json!({ "frames": 100 }));
    assert_eq!(invoked.invocation_id.as_deref(), Some(job.id()));
    // By the key that pays it, letter for letter the answer, which a plain repetition gets, too.
    let poll = Request::get(format!("/ai-market/v2/jobs/{}", job.id()));
    let by_key = shop.ask(&key.on(poll.clone())).await.json();
    assert_eq!(by_key["status"], "succeeded");
    assert_eq!(by_key["answer"]["result"], json!({ "frames": 100 }));
    refused(&shop.ask(&poll).await, 400, "job_secret_required");
    let other = shop.key("1").await?;
    refused(&shop.ask(&other.on(poll)).await, 404, "job_not_found");
    assert_eq!(purse(&shop.hub, &key).await?, (990_000, 0));
    Ok(())
}

/// The provider sees its connection end, and nobody pays.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cancelled_job_ends_at_its_provider_and_costs_nothing() -> Result<()> {
    let (shop, key) = open().await?;
    let (client, payer) = (buyer(&shop)?, payer(&key)?);
    let (say, said) = pieces();
    shop.provider.answer(move |_| Reply::Stream(EVENTS, said.clone()));
    let job = started(&client, &payer).await?;
    shop.provider.called(1).await;
    say.send(b"event: progress\ndata: 1\n\n".to_vec()).await?;
    let cancelled = client.cancel_job(&job).await?;
    assert_eq!(cancelled.status, "cancelled");
    tokio::time::timeout(PATIENCE, say.closed())
        .await
        .context("the provider goes on")?;
    let waited = client.wait_job(&job, PATIENCE, |_| ()).await;
    assert_eq!(code(&waited.unwrap_err()), "job_cancelled");
    assert_eq!(purse(&shop.hub, &key).await?, (1_000_000, 0));
    let books = books(&shop.hub).await?;
    assert_eq!((books.earned, books.held), (0, 0));
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_job_of_a_hub_that_was_killed_has_failed_and_costs_nothing() -> Result<()> {
    let (mut shop, key) = open().await?;
    let payer = payer(&key)?;
    shop.provider.answer(|_| Reply::Never);
    let job = started(&buyer(&shop)?, &payer).await?;
    shop.provider.called(1).await;
    tokio::task::block_in_place(|| {
        shop.hub.kill();
        shop.hub.restart();
    });
    let client = buyer(&shop)?;
    let state = client.job(&job).await?;
    assert_eq!(
        (state.status.as_str(), state.answer_status),
        ("failed", Some(503))
    );
    let lost = client.wait_job(&job, PATIENCE, |_| ()).await;
    assert_eq!(code(&lost.unwrap_err()), "job_lost");
    assert_eq!(purse(&shop.hub, &key).await?, (1_000_000, 0));
    // What had ended before is still there.
    shop.provider.answer(Reply::echo);
    let done = started(&client, &payer).await?;
    client.wait_job(&done, PATIENCE, |_| ()).await?;
    tokio::task::block_in_place(|| {
        shop.hub.kill();
        shop.hub.restart();
    });
    let again = buyer(&shop)?.job(&done).await?;
    assert_eq!(again.status, "succeeded");
    assert_eq!(purse(&shop.hub, &key).await?, (990_000, 0));
    Ok(())
}

/// Each is cut off within its bounds, and none is paid.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hostile_stream_is_cut_off_and_not_paid() -> Result<()> {
    let (shop, key) = open().await?;
    let (client, payer) = (buyer(&shop)?, payer(&key)?);
    let flood: [(&str, &[u8]); 4] = [
        // One event, and one line, that never end; and events without an end, of a kind that says nothing.
        (
            EVENTS,
            b"data: xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
        ),
        (
            LINES,
            b"{\"chunk\": \"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
        ),
        (EVENTS, b": comment\n\nevent: progress\ndata: {\"done\": 0.1}\n\n"),
        (LINES, b"{\"progress\": {\"done\": 0.1}}\n"),
    ];
    for (media_type, piece) in flood {
        let (say, said) = pieces();
        shop.provider
            .answer(move |_| Reply::Stream(media_type, said.clone()));
        let piece = if piece.ends_with(b"\n") {
            piece.repeat(1_000)
        } else {
            piece.repeat(100)
        };
        let flooding = tokio::spawn(async move { while say.send(piece.clone()).await.is_ok() {} });
        let mut words: u64 = 0;
        let outcome = client
            .invoke_streamed(&film(), &payer, |event| {
                if !matches!(event, CallEvent::Began(_)) {
                    words += 1;
                }
            })
            .await;
        let error = outcome.unwrap_err();
        let problem = error.problem().context("it is refused")?;
        assert_eq!(
            (problem.code.as_str(), &problem.members["reason"]),
            ("provider_failed", &json!("answer_invalid")),
            "{media_type}"
        );
        assert!(words <= 10_000, "{words}");
        tokio::time::timeout(PATIENCE, flooding).await??;
    }
    for (media_type, half) in [
        (EVENTS, "event: result\ndata: {\"result\": 1}\n"),
        (LINES, "{\"result\": "),
        (EVENTS, ""),
    ] {
        let (say, said) = pieces();
        shop.provider
            .answer(move |_| Reply::Stream(media_type, said.clone()));
        say.send(half.into()).await?;
        drop(say);
        let outcome = client.invoke_streamed(&film(), &payer, |_| ()).await;
        assert_eq!(code(&outcome.unwrap_err()), "provider_failed", "{half:?}");
    }
    assert_eq!(purse(&shop.hub, &key).await?, (1_000_000, 0));
    assert_eq!(books(&shop.hub).await?.earned, 0);
    Ok(())
}

/// It opens a stream and never reads, while the provider talks without end: the call ends as it would, and others are answered.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reader_that_does_not_read_keeps_nobody_waiting() -> Result<()> {
    let (shop, key) = open().await?;
    let (say, said) = pieces();
    shop.provider.answer(move |_| Reply::Stream(LINES, said.clone()));
    let body = json!({ "product_id": "shop", "capability_id": "film@v1" }).to_string();
    let request = Request::post(aip_tests::market::INVOKE, body)
        .field("Accept", EVENTS)
        .field("Idempotency-Key", "the-slow-one");
    let mut slow = Wire::open(shop.hub.url()).await?;
    slow.send(&key.on(request.clone()).to_bytes()).await?;
    let line = format!("{{\"chunk\": \"{}\"}}\n", "x".repeat(10_000));
    for _ in 0..1_000 {
        say.send(line.clone().into_bytes()).await?;
    }
    // 10 MB are too many: the call fails, and not for the reader.
    let again = loop {
        let plain = Request::post(
            aip_tests::market::INVOKE,
            json!({ "product_id": "shop", "capability_id": "film@v1" }).to_string(),
        )
        .field("Idempotency-Key", "the-slow-one");
        let answer = shop.ask(&key.on(plain)).await;
        if answer.json()["error"] != "idempotency_in_progress" {
            break answer;
        }
        tokio::task::yield_now().await;
    };
    refused(&again, 502, "provider_failed");
    drop(slow);
    shop.provider.answer(Reply::echo);
    made(&shop.calls("film@v1", &key, &json!({})).await);
    assert_eq!(purse(&shop.hub, &key).await?, (990_000, 0));
    Ok(())
}

/// What a shop behind a router does with its calls.
fn serving(seller: &Client, stop: std::sync::Arc<Notify>) -> mpsc::Receiver<String> {
    let (told, heard) = mpsc::channel(64);
    let seller = seller.clone();
    tokio::spawn(async move {
        let inbox = std::sync::Arc::new(aip_client::inbox::MemoryInbox::default());
        let mut listener = seller.listen(inbox, ListenOptions::default());
        let handler = |call: aip_client::ServedCall| async move {
            call.progress.progress(json!({ "done": 0.5 })).await;
            call.progress.chunk("Once").await;
            if call.input["ends"] == json!(false) {
                return std::future::pending().await;
            }
            Ok(json!({ "is_followed": call.progress.is_followed() }))
        };
        let tell = |served: &Served| {
            let word = format!("{served:?}");
            drop(told.try_send(word.split('(').next().unwrap_or_default().to_owned()));
        };
        drop(seller.serve(&mut listener, handler, tell, stop.notified()).await);
        listener.close().await;
    });
    heard
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_provider_behind_a_router_says_how_far_it_is_and_is_told_to_stop() -> Result<()> {
    let shop = Shop::open("").await?;
    let relayed = json!({ "relay": true, "timeout_secs": 60 });
    sell(
        &shop.hub,
        &shop.seller,
        &[listed("film@v1", Some("0.01"), &relayed, &json!({}))],
    )
    .await?;
    let key = shop.key("1").await?;
    let (client, payer) = (buyer(&shop)?, payer(&key)?);
    let stop = std::sync::Arc::new(Notify::new());
    let mut served = serving(&shop.seller, std::sync::Arc::clone(&stop));
    let mut words = Vec::new();
    let invoked = client
        .invoke_streamed(&film(), &payer, |event| match event {
            CallEvent::Progress { data, .. } | CallEvent::Chunk { data, .. } => words.push(data),
            _ => {}
        })
        .await?;
    assert_eq!(invoked.result, json!({ "is_followed": true }));
    assert_eq!(words, [json!({ "done": 0.5 }), json!("Once")]);
    assert_eq!(served.recv().await.as_deref(), Some("Answered"));
    // Nobody follows a plain call, and nothing is said about it.
    let plain = made(&shop.calls("film@v1", &key, &json!({})).await);
    assert_eq!(plain["result"], json!({ "is_followed": false }));
    assert_eq!(served.recv().await.as_deref(), Some("Answered"));

    let endless = json!({ "ends": false });
    let endless = Call::new(
        "shop",
        "film@v1",
        endless.as_object().cloned().context("an object")?,
    );
    let Started::Job(job) = client.start_call(&endless, &payer).await? else {
        bail!("it does not end");
    };
    while client.job(&job).await?.progress.is_none() {
        tokio::task::yield_now().await;
    }
    assert_eq!(client.cancel_job(&job).await?.status, "cancelled");
    let told = tokio::time::timeout(PATIENCE, served.recv()).await?;
    assert_eq!(told.as_deref(), Some("Cancelled"));
    stop.notify_one();
    assert_eq!(purse(&shop.hub, &key).await?, (980_000, 0));
    assert_eq!(books(&shop.hub).await?.earned, 20_000);
    Ok(())
}

const LISTING: &str = r#"{
    "listing_id": "film@v1", "kind": "capability", "name": "A film", "description": "Takes a while.",
    "invoke": { "relay": true }
}"#;
const WORK: &str = "read input; echo '{\"progress\": {\"done\": 0.5, \"message\": \"half\"}}'; echo '{\"chunk\": \"Once\"}'; \
    case \"$input\" in *wait*) sleep 60;; esac; echo '{\"film\": 1}'";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_commands_follow_begin_and_cancel_calls() -> Result<()> {
    let shop = Shop::open("").await?;
    let (seller, alice) = (Person::new(&shop.hub, "film")?, Person::new(&shop.hub, "alice")?);
    seller.types(&["register", "film"]).await?;
    let file = shop.hub.folder().join("film.json");
    std::fs::write(&file, LISTING)?;
    seller
        .types(&["listing", "publish", &file.display().to_string()])
        .await?;
    aip_tests::market::until_sold(&shop.hub, 1).await;
    let mut serving = seller.starts(&["serve", "--progress", "--exec", WORK])?;
    alice.types(&["register", "alice"]).await?;

    let printed = alice.prints(&["invoke", "film", "film@v1", "--stream"]).await?;
    let lines: Vec<Value> = printed
        .lines()
        .map(serde_json::from_str)
        .collect::<Result<_, _>>()?;
    let heard: Vec<_> = lines.iter().map(|line| line["event"].as_str()).collect();
    assert_eq!(
        heard,
        [Some("job"), Some("progress"), Some("chunk"), None],
        "{printed}"
    );
    assert_eq!(lines[1]["data"], json!({ "done": 0.5, "message": "half" }));
    assert_eq!(lines[3]["result"], json!({ "film": 1 }));

    let begun = alice.types(&["invoke", "film", "film@v1", "--async"]).await?;
    let id = begun["job_id"].as_str().context("no job_id")?;
    assert_eq!(
        alice.types(&["job", "wait", id]).await?["result"],
        json!({ "film": 1 })
    );
    let shown = alice.fails(&["job", "show", id]).await?;
    assert!(shown.contains("its answer was shown"), "{shown}");

    let waits = "{\"please\": \"wait\"}";
    let begun = alice
        .types(&["invoke", "film", "film@v1", waits, "--async"])
        .await?;
    let id = begun["job_id"].as_str().context("no job_id")?;
    let listed = alice.types(&["job", "list"]).await?;
    assert_eq!(
        (&listed["job_id"], &listed["status"]),
        (&json!(id), &json!("running"))
    );
    assert_eq!(alice.types(&["job", "cancel", id]).await?["status"], "cancelled");
    ensure!(alice.prints(&["job", "list"]).await?.is_empty(), "it is over");
    serving.kill().await?;
    Ok(())
}

/// The doors themselves, without a client: a stream has its headers, and one that nobody may open is JSON.
#[tokio::test]
async fn a_stream_is_one_by_its_head_and_a_refusal_is_none() -> Result<()> {
    let (shop, key) = open().await?;
    let body = json!({ "product_id": "shop", "capability_id": "film@v1" }).to_string();
    let request = Request::post(aip_tests::market::INVOKE, body).field("Accept", EVENTS);
    refused(&ask(shop.hub.url(), &request).await, 402, "payment_required");
    let answer = ask(shop.hub.url(), &key.on(request)).await;
    assert_eq!((answer.status, answer.header("content-type")), (200, EVENTS));
    assert_eq!(answer.header("cache-control"), "no-store");
    let text = answer.text();
    assert!(
        text.starts_with("event: job\ndata: {") && text.contains("\n\nevent: result\ndata: {"),
        "{text}"
    );
    let nothing = Request::get("/ai-market/v2/jobs/00000000-0000-4000-8000-000000000000");
    refused(&ask(shop.hub.url(), &key.on(nothing)).await, 404, "job_not_found");
    Ok(())
}
