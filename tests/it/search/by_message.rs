//! Searching by message: the hub's own agent is asked over the relay, and answers once.

use std::collections::BTreeMap;
use std::time::Duration;

use aip_client::protocol::envelope::{Envelope, EnvelopeDraft};
use aip_client::protocol::identity::Identity;
use aip_client::protocol::multikey::SealingKey;
use aip_client::search::Query;
use aip_client::{Client, Draft, Entropy, Incoming};
use aip_tests::clients::{agent, builder, folder, handle};
use aip_tests::cluster::Cluster;
use aip_tests::keyed::{self, TestAgent};
use aip_tests::vitals::Vitals;
use aip_tests::{HubOptions, TestHub, binary, chance, rounds_of, seed};
use anyhow::{Result, ensure};
use rand::RngExt as _;
use serde_json::{Value, json};

use super::{publish, until_found};
use crate::faults::{DEADLINE, until};

const REQUEST: &str = "aip.search.request";
const RESPONSE: &str = "aip.search.response";

fn request(hub: &str, body: Value) -> Draft {
    Draft::json(hub, body).kind(REQUEST)
}

/// Whether so many messages to the agent met this fate.
async fn has_met(hub: &TestHub, fate: &str, count: u32) -> bool {
    let label = format!("fate=\"{fate}\"");
    let met = Vitals::of(hub)
        .await
        .count_labelled("aip_agent_messages_total", &label);
    (met - f64::from(count)).abs() < 0.5
}

/// All that waits for an agent, as often as it takes until there are `count`, and not more.
async fn waiting(client: &Client, count: usize) -> Result<Vec<Incoming>> {
    let deadline = tokio::time::Instant::now() + DEADLINE;
    loop {
        let page = client.fetch_inbox(None, 100, Duration::ZERO).await?;
        ensure!(page.unreadable.is_empty(), "{:?}", page.unreadable);
        ensure!(
            page.items.len() <= count,
            "{} of {count}: {:?}",
            page.items.len(),
            page.items
        );
        if page.items.len() == count {
            return Ok(page.items);
        }
        ensure!(
            tokio::time::Instant::now() < deadline,
            "{} of {count}",
            page.items.len()
        );
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// Settles messages, so that they do not count among the next.
async fn settle(client: &Client, messages: &[Incoming]) -> Result<()> {
    let Some(first) = messages.first() else {
        return Ok(());
    };
    let seqs: Vec<u64> = messages.iter().map(|message| message.seq).collect();
    Ok(client.ack_inbox(&first.epoch, 0, &seqs).await?)
}

#[tokio::test]
async fn the_answer_is_that_of_the_search_door() -> Result<()> {
    let hub = TestHub::start();
    let (shop, alice) = (agent(&hub, "shop").await?, agent(&hub, "alice").await?);
    for number in 0..5 {
        publish(
            &shop,
            &number.to_string(),
            &format!("zqmessage lamp {number}"),
            "A lamp",
        )
        .await?;
    }
    until_found(&alice, "zqmessage", |found| found.len() == 5).await?;
    shop.send(&Draft::text(handle(&hub, "alice"), "unread mail"))
        .await?;
    let query = Query {
        limit: Some(3),
        explain: true,
        facets: true,
        ..Query::text("zqmessage lamp")
    };
    let asked = alice.search_by_message(&query, None, DEADLINE).await?;
    let found = alice.search(&query).await?;
    ensure!(
        asked.results == found.results && asked.facets == found.facets,
        "{asked:?} {found:?}"
    );
    ensure!(
        asked.results.len() == 3 && asked.next_cursor.is_some(),
        "{asked:?}"
    );
    let next = Query {
        cursor: asked.next_cursor,
        ..query
    };
    ensure!(
        alice
            .search_by_message(&next, None, DEADLINE)
            .await?
            .results
            .len()
            == 2
    );
    let bad = Query {
        currency: Some("euro".to_owned()),
        ..Query::text("x")
    };
    let refused = alice.search_by_message(&bad, None, DEADLINE).await.unwrap_err();
    ensure!(
        refused
            .problem()
            .is_some_and(|problem| problem.code == "parameter_invalid"),
        "{refused}"
    );
    // The answers are settled, and other mail was never offered.
    let rest = waiting(&alice, 1).await?;
    ensure!(
        rest[0].attempt == 1 && rest[0].content.as_text() == Some("unread mail"),
        "{rest:?}"
    );
    Ok(())
}

#[tokio::test]
async fn the_command_asks_by_message() -> Result<()> {
    let hub = TestHub::start();
    let (shop, _alice) = (agent(&hub, "shop").await?, agent(&hub, "alice").await?);
    publish(&shop, "1", "zqcommand lamp", "A lamp").await?;
    until_found(&shop, "zqcommand", |found| found.len() == 1).await?;
    let key = folder(&hub, "alice").join("agent.key");
    let output = tokio::process::Command::new(binary("aip"))
        .args(["--hub", hub.url(), "--json", "--key"])
        .arg(key)
        .args(["search", "zqcommand", "--by-message", "--all", "--wait", "60s"])
        .kill_on_drop(true)
        .output()
        .await?;
    ensure!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let answer: Value = serde_json::from_slice(&output.stdout)?;
    ensure!(answer["results"][0]["name"] == "zqcommand lamp", "{answer}");
    Ok(())
}

#[tokio::test]
async fn an_asker_that_left_finds_its_answer() -> Result<()> {
    let hub = TestHub::start();
    let alice = agent(&hub, "alice").await?;
    let draft = request(&handle(&hub, "hub"), json!({"q": "tea"})).thread("t-1");
    let sent = alice.send(&draft).await?;
    until("the request is answered", async || {
        has_met(&hub, "answered", 1).await
    })
    .await;
    let answer = waiting(&alice, 1).await?.remove(0);
    ensure!(
        answer.kind == RESPONSE && answer.thread.as_deref() == Some("t-1"),
        "{answer:?}"
    );
    ensure!(answer.reply_to == Some(sent.id.to_string()), "{answer:?}");
    ensure!(answer.from.name() == "hub");
    let status = alice.status(sent.id, None).await?;
    ensure!(status.status == "acked", "{status:?}");
    Ok(())
}

/// Whatever is killed when: each request has one answer in the asker's mailbox.
#[tokio::test]
async fn a_request_is_answered_once_whenever_the_hub_dies() -> Result<()> {
    const REQUESTS: usize = 20;
    let mut chance = chance(seed("a search by message and a kill"));
    let mut hub = TestHub::start_with(HubOptions {
        config: Some(crate::faults::ROOMY.to_owned()),
        ..HubOptions::default()
    });
    let mut alice = agent(&hub, "alice").await?;
    for _ in 0..rounds_of(4) {
        let mut asked = BTreeMap::new();
        for number in 0..REQUESTS {
            let draft = request(&handle(&hub, "hub"), json!({"q": format!("tea {number}")}));
            asked.insert(alice.send(&draft).await?.id.to_string(), 0);
        }
        tokio::time::sleep(Duration::from_millis(chance.random_range(0..150))).await;
        hub.kill();
        hub.restart();
        alice = builder(&hub, "alice")?.build()?;
        let answers = waiting(&alice, REQUESTS).await?;
        for answer in &answers {
            let times = answer.reply_to.as_ref().and_then(|id| asked.get_mut(id));
            *times.ok_or_else(|| anyhow::anyhow!("nobody asked for {answer:?}"))? += 1;
        }
        ensure!(asked.values().all(|times| *times == 1), "{asked:?}");
        settle(&alice, &answers).await?;
    }
    Ok(())
}

/// A message to the agent, sealed by a stranger's own hands.
fn sealed(from: &TestAgent, to: (&Identity, &SealingKey), kind: &str, plaintext: &[u8]) -> Envelope {
    let (identity, key) = to;
    let entropy = Entropy::system();
    let id = entropy.message_id();
    let draft = EnvelopeDraft::new(id, from.did.clone(), identity.did().clone(), kind, keyed::now());
    let sealed = entropy.with(|mut rng| draft.seal(&from.signing, key, plaintext, &mut rng));
    sealed.unwrap_or_else(|refusal| panic!("{refusal}"))
}

#[tokio::test]
async fn whatever_is_asked_the_hub_lives_and_says_why() -> Result<()> {
    let hub = TestHub::start();
    let before = Vitals::of(&hub).await;
    let alice = agent(&hub, "alice").await?;
    let identity = alice.identity(&handle(&hub, "hub")).await?;
    let key = identity
        .sealing_key()
        .cloned()
        .ok_or_else(|| anyhow::anyhow!("no key"))?;
    let plain =
        |body: &str| format!("{{\"content_type\":\"application/json\",\"body\":{body}}}").into_bytes();
    let cases = [
        (Vec::new(), "json_invalid"),
        (b"\xff\xfe\x00".to_vec(), "json_invalid"),
        ("[".repeat(60_000).into_bytes(), "json_invalid"),
        (plain("{\"q\":\"\\ud800\"}"), "json_invalid"),
        (plain("{\"limit\":1e400}"), "json_invalid"),
        (plain("{\"q\":\"a\",\"q\":\"b\"}"), "json_invalid"),
        (plain("\"tea\""), "parameter_invalid"),
        (plain("{\"limit\":-1}"), "parameter_invalid"),
        (plain("{\"limit\":1000000000}"), "parameter_invalid"),
        (plain("{\"price_min\":\"NaN\"}"), "parameter_invalid"),
        (plain("{\"q\":null}"), "parameter_invalid"),
        (plain("{\"colour\":\"red\"}"), "parameter_unknown"),
        (plain("{\"cursor\":\"AAAA\"}"), "cursor_invalid"),
        (
            plain(&format!("{{\"q\":{:?}}}", "(a+)+$ ".repeat(9_000))),
            "parameter_invalid",
        ),
        (
            plain(&format!("{{\"q\":{:?}}}", "tea ".repeat(40_000))),
            "body_too_large",
        ),
        (
            b"{\"content_type\":\"text/html\",\"body\":\"<b>\"}".to_vec(),
            "media_type_unsupported",
        ),
    ];
    for (number, (plaintext, code)) in cases.into_iter().enumerate() {
        let name = format!("stranger{number}");
        let stranger = TestAgent::registered(&hub, &name).await;
        let envelope = sealed(&stranger, (&identity, &key), REQUEST, &plaintext);
        let answer = keyed::send(&hub, envelope.to_wire()).await;
        ensure!(answer.status == 202, "{code}: {}", answer.text());
        let problem = answer_to(&hub, &stranger).await?;
        ensure!(problem["code"] == code, "{number}: {code}, not {problem}");
        ensure!(problem["request_id"] == envelope.id.to_string(), "{problem}");
    }
    Vitals::assert_well(&hub, &before).await;
    ensure!(!hub.log().contains("panicked"), "{}", hub.log());
    alice
        .search_by_message(&Query::text("tea"), None, DEADLINE)
        .await?;
    Ok(())
}

/// The body of the one message that waits for an agent.
async fn answer_to(hub: &TestHub, agent: &TestAgent) -> Result<Value> {
    let token = agent.token(hub).await;
    let request = aip_tests::raw::Request::get("/api/v1/inbox?wait_s=60").bearer(&token);
    let page = aip_tests::raw::ask(hub.url(), &request).await.json();
    let items = page["items"].as_array().map(Vec::as_slice).unwrap_or_default();
    ensure!(items.len() == 1, "{page}");
    let envelope = Envelope::parse(items[0]["envelope"].to_string().as_bytes())?;
    ensure!(envelope.kind == RESPONSE, "{envelope:?}");
    Ok(envelope.open(&agent.opening)?.body)
}

/// Answers are never answered, also by an agent whose endpoint is the hub's own door.
#[tokio::test]
async fn no_loop_comes_about() -> Result<()> {
    let hub = TestHub::start();
    let alice = agent(&hub, "alice").await?;
    let to = handle(&hub, "hub");
    for kind in ["aip.search.response", "aip.receipt", "com.example.echo.response"] {
        alice.send(&Draft::json(&to, json!({})).kind(kind)).await?;
    }
    until("answers are left alone", async || {
        has_met(&hub, "ignored", 3).await
    })
    .await;
    let note = alice.send(&Draft::text(&to, "hello")).await?;
    until("a note is rejected", async || has_met(&hub, "rejected", 1).await).await;
    let status = alice.status(note.id, None).await?;
    ensure!(
        (status.status.as_str(), status.code.as_deref()) == ("dead", Some("type_unsupported")),
        "{status:?}"
    );
    let unknown = alice
        .ask(
            &Draft::json(&to, json!({})).kind("com.example.tea.request"),
            DEADLINE,
        )
        .await?;
    ensure!(unknown.kind == "com.example.tea.response", "{unknown:?}");
    ensure!(
        unknown
            .content
            .as_json()
            .is_some_and(|body| body["code"] == "type_unsupported"),
        "{unknown:?}"
    );

    let mut mallory = TestAgent::registered(&hub, "mallory").await;
    let door = format!("{}/relay/hub", hub.url());
    let direct = aip_client::protocol::identity::RouteMode::Direct;
    mallory
        .change(&hub, |draft| {
            draft.route_mode = direct;
            draft.endpoint = Some(door);
        })
        .await;
    let identity = alice.identity(&to).await?;
    let key = identity
        .sealing_key()
        .cloned()
        .ok_or_else(|| anyhow::anyhow!("no key"))?;
    let plaintext = b"{\"content_type\":\"application/json\",\"body\":{}}";
    let envelope = sealed(&mallory, (&identity, &key), REQUEST, plaintext);
    ensure!(keyed::send(&hub, envelope.to_wire()).await.status == 202);
    ensure!(answer_to(&hub, &mallory).await?["results"].is_array());
    ensure!(has_met(&hub, "ignored", 3).await, "its own answer came back");
    let sent = Vitals::of(&hub).await.count("aip_agent_sent_total");
    ensure!((sent - 2.0).abs() < 0.5, "{sent} messages went out");
    Ok(())
}

/// With the former key the agent moves on to a new hub key; without it the hub works and says what is missing.
#[tokio::test]
async fn the_agent_follows_a_new_hub_key() -> Result<()> {
    let mut hub = TestHub::start();
    let alice = agent(&hub, "alice").await?;
    alice
        .search_by_message(&Query::text("tea"), None, DEADLINE)
        .await?;
    hub.kill();
    let (key, former) = (hub.data().join("hub.key"), hub.folder().join("former.key"));
    std::fs::rename(&key, &former)?;
    hub.restart();
    until("the hub says what it needs", async || {
        hub.log_of_this_run().contains("hub.key.previous")
    })
    .await;
    hub.kill();
    let previous = hub.data().join("hub.key.previous");
    std::fs::rename(&former, &previous)?;
    hub.restart();
    let alice = builder(&hub, "alice")?.build()?;
    ensure!(alice.history(&handle(&hub, "hub")).await?.len() == 2);
    alice
        .search_by_message(&Query::text("tea"), None, DEADLINE)
        .await?;
    hub.kill();
    std::fs::remove_file(&previous)?;
    hub.restart();
    let alice = builder(&hub, "alice")?.build()?;
    ensure!(alice.history(&handle(&hub, "hub")).await?.len() == 2);
    alice
        .search_by_message(&Query::text("tea"), None, DEADLINE)
        .await?;
    Ok(())
}

/// Two processes, one agent: one identity, each request answered once, also when one of them dies.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn several_processes_answer_as_one() -> Result<()> {
    const REQUESTS: usize = 20;
    let mut cluster = tokio::task::block_in_place(|| Cluster::start(2));
    let homes = [0, 1].map(|number| cluster.home(cluster.hub(number).url()));
    let alice = agent(&homes[0], "alice").await?;
    let elsewhere = builder(&homes[1], "alice")?.build()?;
    let to = handle(&homes[0], "hub");
    ensure!(alice.history(&to).await?.len() == 1, "one operation");
    for client in [&alice, &elsewhere] {
        client
            .search_by_message(&Query::text("tea"), None, DEADLINE)
            .await?;
    }
    let mut asked = Vec::new();
    for number in 0..REQUESTS {
        let client = if number % 2 == 0 { &alice } else { &elsewhere };
        asked.push(
            client
                .send(&request(&to, json!({"q": format!("tea {number}")})))
                .await?
                .id
                .to_string(),
        );
    }
    cluster.hub_mut(0).kill();
    let answers = waiting(&elsewhere, REQUESTS).await?;
    let mut answered: Vec<String> = answers
        .iter()
        .filter_map(|answer| answer.reply_to.clone())
        .collect();
    asked.sort();
    answered.sort();
    ensure!(asked == answered, "{asked:?} {answered:?}");
    Ok(())
}
