//! The agent in a hub in memory: its identity, what it sends, what it makes of what it is sent.

use std::time::Duration;

use actix_web::http::StatusCode;
use aip_protocol::clock::Clock as _;
use aip_protocol::envelope::{EnvelopeDraft, new_id};
use aip_protocol::identity::OperationDraft;
use aip_protocol::multikey::SealingKey;
use aip_protocol::seal::Plaintext;
use aip_relay::inbox::Item;
use aip_relay::session::SessionId;
use rand::SeedableRng as _;
use rand::rngs::StdRng;
use serde_json::{Value, json};

use super::receive::Verdict;
use super::*;
use crate::testing::{TestAgent, TestHub};

mod answers;
mod offers;

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
    assert!(refused.to_string().contains("hub.key.previous"), "{refused}");
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
    hub.clock.advance(Duration::from_hours(72));
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
