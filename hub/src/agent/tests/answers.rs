//! What the agent makes of what it is sent.

use std::time::Duration;

use aip_protocol::name::Did;
use aip_protocol::seal::Plaintext;
use aip_relay::mailbox::MailboxId;
use serde_json::{Value, json};

use super::{REQUEST, asking, inbox, item, sealed, taken, with_agent};
use crate::agent::receive::Verdict;
use crate::agent::{AgentKeys, Fate, SigningKey, answer, limits};
use crate::routes::search::{ATTRIBUTES, PARAMETERS};
use crate::testing::{TestAgent, TestHub};

#[actix_web::test]
async fn a_search_by_message_answers_what_the_search_door_answers() {
    let hub = with_agent(TestHub::searching()).await;
    let (shop, alice) = (hub.registered("shop").await, hub.registered("alice").await);
    for (id, name) in [("1", "Green tea"), ("2", "Black tea")] {
        let listing = hub.listing(&shop, id, 1, |listing| {
            listing["name"] = json!(name);
            listing["price"] = json!("1234567890.12345678");
            listing["currency"] = json!("EUR");
        });
        assert_eq!(hub.publish(&listing).await.status, 201);
    }
    let mut found = hub.found("tea", 2).await;
    let body = json!({"q": "tea", "limit": 100});
    assert_eq!(
        taken(&hub, &alice, REQUEST, &asking(body.clone())).await,
        Verdict::Done(Fate::Answered)
    );
    let (envelope, plaintext) = inbox(&hub, &alice).await.remove(0);
    assert_eq!(envelope.kind, "aip.search.response");
    assert_eq!(envelope.thread.as_deref(), Some("t1"));
    assert_eq!(plaintext.content_type, "application/json");
    let mut answer = plaintext.body;
    for answer in [&mut answer, &mut found] {
        answer["took_ms"] = json!(0);
    }
    assert_eq!(answer, found);
    let request = sealed(
        &hub,
        &alice,
        REQUEST,
        hub.hub.app.agent.keys.opening.public(),
        &asking(body.clone()),
    );
    assert_eq!(envelope.reply_to, Some(request.id.hyphenated().to_string()));
    // Once more, as after a crash.
    assert_eq!(
        taken(&hub, &alice, REQUEST, &asking(body)).await,
        Verdict::Done(Fate::Repeated)
    );
    assert_eq!(inbox(&hub, &alice).await.len(), 1);
}

#[actix_web::test]
async fn what_is_no_search_is_refused_by_its_code() {
    let hub = with_agent(TestHub::searching()).await;
    let text = |text: &str| {
        Plaintext {
            content_type: "text/plain".to_owned(),
            body: json!(text),
            ask_receipt: false,
        }
        .to_bytes()
    };
    let cases: [(&str, Vec<u8>, &str); 10] = [
        ("a", b"tea".to_vec(), "json_invalid"),
        ("b", vec![0xff; 20], "json_invalid"),
        ("c", "[".repeat(5_000).into_bytes(), "json_invalid"),
        (
            "d",
            asking(json!({"q": "tea", "colour": "red"})),
            "parameter_unknown",
        ),
        ("e", asking(json!({"limit": 0})), "parameter_invalid"),
        ("f", asking(json!({"q": ["tea"]})), "parameter_invalid"),
        ("g", asking(json!([])), "parameter_invalid"),
        ("h", asking(json!({"cursor": "x"})), "cursor_invalid"),
        ("i", text("tea"), "media_type_unsupported"),
        ("j", asking(json!({"q": "x".repeat(70_000)})), "body_too_large"),
    ];
    for (name, plaintext, code) in cases {
        let asker = hub.registered(name).await;
        assert_eq!(
            taken(&hub, &asker, REQUEST, &plaintext).await,
            Verdict::Done(Fate::Refused),
            "{name}"
        );
        let (envelope, plaintext) = inbox(&hub, &asker).await.remove(0);
        assert_eq!(envelope.kind, "aip.search.response");
        assert_eq!(plaintext.content_type, "application/problem+json");
        let problem = &plaintext.body;
        assert_eq!(problem["code"], code, "{name}: {problem}");
        assert_eq!(
            Some(problem["request_id"].as_str().unwrap()),
            envelope.reply_to.as_deref()
        );
        assert_eq!(problem["type"], format!("https://hub.example/docs/errors/{code}"));
    }
}

#[actix_web::test]
async fn nobody_can_make_the_agent_talk_to_itself_or_to_another_machine() {
    let hub = with_agent(TestHub::new()).await;
    let alice = hub.registered("alice").await;
    for kind in [
        "aip.search.response",
        "com.example.anything.response",
        "aip.receipt",
    ] {
        assert_eq!(
            taken(&hub, &alice, kind, b"{}").await,
            Verdict::Done(Fate::Ignored),
            "{kind}"
        );
    }
    let own = TestAgent {
        did: hub.hub.app.agent.did().clone(),
        signing: hub.hub.app.agent.keys.signing.clone(),
        ..hub.agent("alice")
    };
    assert_eq!(
        taken(&hub, &own, REQUEST, b"{}").await,
        Verdict::Done(Fate::Ignored)
    );
    for kind in ["aip.message", "com.example.request.note"] {
        assert_eq!(
            taken(&hub, &alice, kind, b"{}").await,
            Verdict::Dead("type_unsupported"),
            "{kind}"
        );
    }
    let another = AgentKeys::derive(&SigningKey::from_seed([9; 32]));
    let unreadable = sealed(&hub, &alice, REQUEST, another.opening.public(), b"{}");
    let verdict = answer::take(&hub.hub.app, &item(&unreadable, 1)).await;
    assert_eq!(verdict, Verdict::Dead("unreadable"));
    assert!(inbox(&hub, &alice).await.is_empty());
}

#[actix_web::test]
async fn a_request_that_nobody_knows_is_told_so() {
    let hub = with_agent(TestHub::new()).await;
    let alice = hub.registered("alice").await;
    let verdict = taken(&hub, &alice, "com.example.tea.request", &asking(json!({}))).await;
    assert_eq!(verdict, Verdict::Done(Fate::Refused));
    let (envelope, plaintext) = inbox(&hub, &alice).await.remove(0);
    assert_eq!(envelope.kind, "com.example.tea.response");
    assert_eq!(plaintext.body["code"], "type_unsupported");
}

#[actix_web::test]
async fn a_sender_that_asks_too_fast_is_told_when_to_come_back() {
    let hub = with_agent(TestHub::with(|settings| {
        settings.relay.mailbox_messages_per_sender_max = 100;
    }))
    .await;
    let alice = hub.registered("alice").await;
    let burst = limits::REQUEST_RATE.burst_messages.get();
    for number in 0..=burst {
        let body = asking(json!({"q": "x".repeat(usize::try_from(number).unwrap())}));
        taken(&hub, &alice, REQUEST, &body).await;
    }
    let (_, last) = inbox(&hub, &alice).await.pop().unwrap();
    assert_eq!(last.body["code"], "rate_limited");
    assert_eq!(last.body["retry_after_s"], 1);
}

#[actix_web::test]
async fn an_answer_without_room_waits_and_is_given_up_in_the_end() {
    let hub = with_agent(TestHub::with(|settings| settings.relay.mailbox_messages_max = 0)).await;
    let alice = hub.registered("alice").await;
    let app = &hub.hub.app;
    let request = sealed(
        &hub,
        &alice,
        REQUEST,
        app.agent.keys.opening.public(),
        &asking(json!({})),
    );
    assert!(matches!(
        answer::take(app, &item(&request, 1)).await,
        Verdict::Later(_)
    ));
    let last = item(&request, limits::ANSWER_ATTEMPTS_MAX);
    assert_eq!(answer::take(app, &last).await, Verdict::Dead("mailbox_full"));
}

#[actix_web::test]
async fn an_answer_to_one_who_cannot_be_looked_up_is_given_up_in_the_end() {
    let hub = with_agent(TestHub::with(|settings| {
        settings.federation.blocked = vec!["two.example".to_owned()];
    }))
    .await;
    let app = &hub.hub.app;
    let asker = TestAgent {
        did: Did::parse("did:aip:two.example:mallory").unwrap(),
        ..hub.agent("mallory")
    };
    let key = app.agent.keys.opening.public();
    let request = sealed(&hub, &asker, "com.example.tea.request", key, &asking(json!({})));
    let mut last_pause = Duration::ZERO;
    for attempt in 1..limits::ANSWER_ATTEMPTS_MAX {
        let Verdict::Later(pause) = answer::take(app, &item(&request, attempt)).await else {
            panic!("given up at offer {attempt}")
        };
        assert!(pause > last_pause, "{pause:?}");
        last_pause = pause;
    }
    let last = item(&request, limits::ANSWER_ATTEMPTS_MAX);
    assert_eq!(answer::take(app, &last).await, Verdict::Dead("unavailable"));
}

#[actix_web::test]
async fn a_page_is_as_long_as_its_envelope_allows() {
    let hub = TestHub::with(|settings| settings.relay.envelope_bytes_max = 16 * 1024);
    hub.hub.follow_listings();
    let hub = with_agent(hub).await;
    let (shop, alice) = (hub.registered("shop").await, hub.registered("alice").await);
    for number in 0..12 {
        let listing = hub.listing(&shop, &number.to_string(), 1, |listing| {
            listing["name"] = json!(format!("zqpage {number}"));
            listing["description"] = json!("word ".repeat(400));
        });
        assert_eq!(hub.publish(&listing).await.status, 201);
    }
    hub.found("zqpage", 12).await;
    let (mut names, mut cursor) = (Vec::new(), Value::Null);
    for page in 0..12 {
        let mut body = json!({"q": "zqpage", "limit": 100});
        if cursor.is_string() {
            body["cursor"] = cursor;
        }
        assert_eq!(
            taken(&hub, &alice, REQUEST, &asking(body)).await,
            Verdict::Done(Fate::Answered)
        );
        let (_, plaintext) = inbox(&hub, &alice).await.remove(page);
        let results = plaintext.body["results"].as_array().unwrap();
        assert!(!results.is_empty() && results.len() < 12, "{}", results.len());
        names.extend(results.iter().map(|result| result["name"].to_string()));
        cursor = plaintext.body["next_cursor"].clone();
        if cursor.is_null() {
            break;
        }
    }
    names.sort();
    names.dedup();
    assert_eq!(names.len(), 12, "{names:?}");
}

#[actix_web::test]
async fn the_running_agent_reads_its_mailbox_and_settles_what_it_has_answered() {
    let hub = TestHub::searching();
    hub.hub.start_agent().await;
    let alice = hub.registered("alice").await;
    let app = &hub.hub.app;
    let request = sealed(
        &hub,
        &alice,
        REQUEST,
        app.agent.keys.opening.public(),
        &asking(json!({"q": "tea"})),
    );
    let note = sealed(
        &hub,
        &alice,
        "aip.message",
        app.agent.keys.opening.public(),
        b"{ }",
    );
    for envelope in [&request, &note] {
        assert_eq!(hub.post("/api/v1/messages", envelope.to_wire()).await.status, 202);
    }
    let mailbox = MailboxId::of(app.agent.did());
    let deadline = tokio::time::Instant::now() + Duration::from_secs(30);
    while app.store.state(&mailbox).await.unwrap().floor < 2 {
        assert!(tokio::time::Instant::now() < deadline);
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert_eq!(inbox(&hub, &alice).await.len(), 1);
    let dead = app.store.dead(&mailbox, 0, 10).await.unwrap();
    assert_eq!(dead.len(), 1);
    assert_eq!(dead[0].code, "type_unsupported");
    let stats = app.agent.stats();
    assert_eq!(
        (stats.messages(Fate::Answered), stats.messages(Fate::Rejected)),
        (1, 1)
    );
    let text = String::from_utf8(
        hub.ask_operator(actix_web::test::TestRequest::get().uri("/metrics"))
            .await
            .body
            .to_vec(),
    );
    let text = text.unwrap();
    for line in [
        "aip_agent_messages_total{fate=\"answered\"} 1",
        "aip_agent_messages_total{fate=\"rejected\"} 1",
        "aip_agent_sent_total 1",
        "aip_agent_sessions 1",
        "aip_presence_sessions 0",
    ] {
        assert!(text.contains(line), "{line} is not in {text}");
    }
}

#[test]
fn the_schemas_name_the_members_of_the_search() {
    let request: Value = serde_json::from_str(include_str!(
        "../../../../docs/protocol/types/aip.search.request.json"
    ))
    .unwrap();
    let mut described: Vec<&str> = request["properties"]
        .as_object()
        .unwrap()
        .keys()
        .map(String::as_str)
        .collect();
    let mut taken: Vec<&str> = PARAMETERS.iter().copied().chain([ATTRIBUTES]).collect();
    described.sort_unstable();
    taken.sort_unstable();
    assert_eq!(described, taken);
}
