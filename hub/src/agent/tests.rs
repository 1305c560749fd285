//! The agent in a hub in memory: its identity, what it sends, what it makes of what it is sent.

use std::time::Duration;

use actix_web::http::StatusCode;
use aip_protocol::clock::Clock as _;
use aip_protocol::envelope::{EnvelopeDraft, new_id};
use aip_protocol::identity::OperationDraft;
use aip_protocol::multikey::SealingKey;
use aip_protocol::seal::Plaintext;
use aip_relay::inbox::Item;
use aip_relay::mailbox::MailboxId;
use aip_relay::session::SessionId;
use rand::SeedableRng as _;
use rand::rngs::StdRng;
use serde_json::{Value, json};

use super::receive::Verdict;
use super::*;
use crate::routes::search::{ATTRIBUTES, PARAMETERS};
use crate::testing::{TestAgent, TestHub};

const HUB: &str = "/api/v1/resolve/hub%23hub.example";

/// An agent over the rooms of `hub`, with these hub keys.
fn agent_of(hub: &TestHub, key: u8, previous: Option<u8>) -> HubAgent {
    let app = &hub.hub.app;
    let key_of = |byte: u8| SigningKey::from_seed([byte; 32]);
    let seams = AgentSeams {
        hub_key: Arc::new(key_of(key)),
        previous_key: previous.map(key_of),
        registry: app.registry.clone(),
        relay: app.relay.clone(),
        recipients: app.registry.clone(),
        clock: hub.clock.clone(),
        rng: Box::new(StdRng::seed_from_u64(7)),
    };
    HubAgent::new(&app.domain, seams).unwrap()
}

fn established(outcome: Result<(Established, Arc<aip_registry::Agent>), IdentityError>) -> Established {
    outcome.unwrap().0
}

#[actix_web::test]
async fn the_agent_is_registered_once_and_resolves_like_any_other() {
    let hub = TestHub::new();
    assert_eq!(hub.get(HUB).await.status, StatusCode::NOT_FOUND);
    let agent = &hub.hub.app.agent;
    assert_eq!(established(agent.establish().await), Established::Registered);
    assert_eq!(established(agent.establish().await), Established::Same);
    let answer = hub.get(HUB).await.json();
    assert_eq!(answer["did"], "did:aip:hub.example:hub");
    assert_eq!(answer["route_mode"], "relay");
    assert_eq!(answer["endpoint"], "https://hub.example/relay/hub");
    assert_eq!(answer["history"]["seq"], 0);
    let stranger = hub.agent("hub");
    assert_eq!(
        hub.post("/api/v1/agents", stranger.genesis()).await.code(),
        "name_reserved"
    );
}

#[actix_web::test]
async fn only_the_hubs_own_name_passes_by_the_reserved_names() {
    let hub = TestHub::new();
    for name in ["admin", "alice"] {
        let refused = hub
            .hub
            .app
            .registry
            .register_hub(&hub.agent(name).genesis())
            .await;
        assert_eq!(refused.unwrap_err().code().as_str(), "not_yours");
    }
}

#[actix_web::test]
async fn processes_that_start_together_register_it_once() {
    let hub = TestHub::with(|settings| settings.hub.registration = crate::config::Registration::Closed);
    let agents: Vec<HubAgent> = (0..4).map(|_| agent_of(&hub, 1, None)).collect();
    let outcomes = futures_util::future::join_all(agents.iter().map(HubAgent::establish)).await;
    let new = outcomes
        .into_iter()
        .map(established)
        .filter(|how| *how == Established::Registered);
    assert_eq!(new.count(), 1);
    assert_eq!(hub.get(HUB).await.json()["history"]["seq"], 0);
}

#[actix_web::test]
async fn a_new_hub_key_takes_the_identity_over_with_the_former_one() {
    let hub = TestHub::new();
    agent_of(&hub, 1, None).establish().await.unwrap();
    let refused = agent_of(&hub, 2, None).establish().await.unwrap_err();
    assert!(refused.to_string().contains("hub.previous_key_file"), "{refused}");
    let rotated = agent_of(&hub, 2, Some(1));
    assert_eq!(established(rotated.establish().await), Established::Rotated);
    assert_eq!(
        established(agent_of(&hub, 2, None).establish().await),
        Established::Same
    );
    let answer = hub.get(HUB).await.json();
    assert_eq!(answer["history"]["seq"], 1);
    let listed = answer["did_document"]["keyAgreement"].to_string();
    assert!(
        listed.contains(
            AgentKeys::derive(&SigningKey::from_seed([2; 32]))
                .opening
                .public()
                .as_str()
        )
    );
    // What was sealed before the change is read after it.
    let alice = hub.registered("alice").await;
    let former = AgentKeys::derive(&SigningKey::from_seed([1; 32]));
    let envelope = sealed(&hub, &alice, "aip.search.request", former.opening.public(), b"{}");
    assert_eq!(rotated.open(&envelope).unwrap(), b"{}");
    assert_eq!(agent_of(&hub, 2, None).open(&envelope), Err(OpenError::OtherKey));
}

#[actix_web::test]
async fn an_identity_that_was_ended_stays_so() {
    let hub = TestHub::new();
    let agent = agent_of(&hub, 1, None);
    let (_, known) = agent.establish().await.unwrap();
    let end = OperationDraft {
        deactivated: true,
        ..known.identity.next_draft(hub.clock.now())
    };
    let end = end.sign(&agent.keys.rotation).unwrap().json.to_jcs();
    hub.hub
        .app
        .registry
        .operate(&Name::parse(HUB_NAME).unwrap(), &end)
        .await
        .unwrap();
    assert!(matches!(agent.establish().await, Err(IdentityError::Ended(_))));
}

#[test]
fn ids_are_those_of_the_vectors() {
    let suite: Value =
        serde_json::from_str(include_str!("../../../tests/vectors/aip/hub_agent.json")).unwrap();
    for vector in suite["ids"].as_array().unwrap() {
        let text = |name: &str| vector["input"][name].as_str().unwrap();
        let id = message_id(&Did::parse(text("to")).unwrap(), text("type"), text("key"));
        assert_eq!(id.hyphenated().to_string(), vector["expected"].as_str().unwrap());
    }
}

fn notice(to: &TestAgent, key: Option<&str>) -> Outgoing {
    let mut notice = Outgoing::json(
        to.did.clone(),
        "aip.message",
        "application/json",
        &json!({"n": 1}),
    )
    .unwrap();
    notice.key = key.map(str::to_owned);
    notice
}

/// What waits for an agent, opened, with its type, thread and `reply_to`.
async fn inbox(hub: &TestHub, agent: &TestAgent) -> Vec<(Envelope, Plaintext)> {
    let inbox = &hub.hub.app.inbox;
    let reader = inbox
        .reader(agent.did.clone(), None, SessionId::from_random(1))
        .await;
    let page = reader.unwrap().unwrap().read(100).await.unwrap();
    let opened = |item: Item| {
        let envelope = Envelope::parse(&item.wire).unwrap();
        let plaintext = envelope.open(&agent.opening).unwrap();
        (envelope, plaintext)
    };
    page.items.into_iter().map(opened).collect()
}

#[actix_web::test]
async fn what_is_said_twice_with_one_key_is_said_once() {
    let hub = TestHub::new();
    let (alice, bob) = (hub.registered("alice").await, hub.registered("bob").await);
    let (one, other) = (agent_of(&hub, 1, None), agent_of(&hub, 1, None));
    assert!(matches!(
        one.send(notice(&alice, None)).await,
        Err(aip_relay::relay::SendError::Refused(_))
    ));
    one.establish().await.unwrap();
    assert!(matches!(
        one.send(notice(&alice, Some("k"))).await.unwrap(),
        Outcome::Sent(_)
    ));
    assert_eq!(
        other.send(notice(&alice, Some("k"))).await.unwrap(),
        Outcome::Known
    );
    // Long after the dedup window.
    hub.clock.advance(Duration::from_secs(3 * 86_400));
    assert_eq!(
        other.send(notice(&alice, Some("k"))).await.unwrap(),
        Outcome::Known
    );
    assert!(matches!(
        other.send(notice(&bob, Some("k"))).await.unwrap(),
        Outcome::Sent(_)
    ));
    assert!(matches!(
        other.send(notice(&alice, None)).await.unwrap(),
        Outcome::Sent(_)
    ));
    let waiting = inbox(&hub, &alice).await;
    assert_eq!(waiting.len(), 2);
    let (envelope, plaintext) = &waiting[0];
    assert_eq!(envelope.from, *one.did());
    assert_eq!(plaintext.body, json!({"n": 1}));
    assert_eq!(one.stats().sent() + other.stats().sent(), 3);
}

#[actix_web::test]
async fn the_agents_own_messages_cost_no_rate_but_need_room() {
    let hub = TestHub::with(|settings| {
        settings.relay.sender_messages_per_sec = 1;
        settings.relay.sender_burst_messages = 1;
        settings.relay.mailbox_messages_per_sender_max = 3;
    });
    let alice = hub.registered("alice").await;
    let agent = agent_of(&hub, 1, None);
    agent.establish().await.unwrap();
    for _ in 0..3 {
        agent.send(notice(&alice, None)).await.unwrap();
    }
    let full = agent.send(notice(&alice, Some("k"))).await.unwrap_err();
    assert_eq!(full.code().as_str(), "mailbox_full");
    let nobody = agent.send(notice(&hub.agent("nobody"), None)).await.unwrap_err();
    assert_eq!(nobody.code().as_str(), "recipient_unknown");
}

fn sealed(hub: &TestHub, from: &TestAgent, kind: &str, key: &SealingKey, plaintext: &[u8]) -> Envelope {
    let seed = plaintext.iter().fold(0, |seed: u64, byte| {
        seed.wrapping_mul(31).wrapping_add(u64::from(*byte))
    });
    let mut rng = StdRng::seed_from_u64(seed);
    let to = Handle::parse("hub#hub.example").unwrap().did();
    let (id, now) = (new_id(&mut rng), hub.clock.now());
    let mut draft = EnvelopeDraft::new(id, from.did.clone(), to, kind, now);
    draft.thread = Some("t1".to_owned());
    draft.seal(&from.signing, key, plaintext, &mut rng).unwrap()
}

fn item(envelope: &Envelope, attempt: u32) -> Item {
    Item {
        seq: 1,
        attempt,
        accepted_at: envelope.created_at,
        wire: envelope.to_wire().into(),
    }
}

/// What the agent of `hub` does with a message from `from`.
async fn taken(hub: &TestHub, from: &TestAgent, kind: &str, plaintext: &[u8]) -> Verdict {
    let app = &hub.hub.app;
    let key = app.agent.keys.opening.public();
    answer::take(app, &item(&sealed(hub, from, kind, key, plaintext), 1)).await
}

const REQUEST: &str = "aip.search.request";

fn asking(body: Value) -> Vec<u8> {
    Plaintext::json(body).to_bytes()
}

async fn with_agent(hub: TestHub) -> TestHub {
    hub.hub.app.agent.establish().await.unwrap();
    hub
}

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
        settings.relay.mailbox_messages_per_sender_max = 100
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
        "../../../docs/protocol/types/aip.search.request.json"
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
