//! Limits of names, identities, tokens and challenges.

use std::time::Duration;

use aip_client::protocol::clock::Clock as _;
use aip_client::protocol::identity::{EndpointPolicy, Operation};
use aip_client::protocol::json::Json;
use aip_client::protocol::multikey::SigningKey;
use aip_client::protocol::signature::{Tag, sign};
use aip_client::protocol::time::Timestamp;
use aip_tests::TestAgent;
use aip_tests::raw::{Request, ask};
use serde_json::{Value, json};

use super::{get, hub, told};

#[tokio::test]
async fn row_83_tokens_and_challenges_end_when_they_say() {
    let hub = hub("[registry]\ntoken_lifetime_secs = 60\nchallenge_lifetime_secs = 5\n");
    let bob = TestAgent::registered(&hub, "bob").await;
    let lives = |answer: &Value, secs: i64| {
        let end = Timestamp::parse(answer["expires_at"].as_str().unwrap()).unwrap();
        let left = end.millis_since(aip_client::SystemClock.now());
        assert!(left <= secs * 1_000, "{answer} lives longer than {secs} s");
    };
    let asked = json!({ "did": bob.did }).to_string();
    let challenge = ask(hub.url(), &Request::post("/api/v1/auth/challenge", asked))
        .await
        .json();
    lives(&challenge, 5);
    let exchange = |challenge: &Value| {
        let body = bob
            .sign_challenge(challenge["challenge"].as_str().unwrap(), &hub.domain())
            .to_string();
        Request::post("/api/v1/auth/token", body)
    };
    let fresh = bob.answered_challenge(&hub).await.to_string();
    let token = ask(hub.url(), &Request::post("/api/v1/auth/token", fresh)).await;
    assert_eq!(token.status, 200);
    lives(&token.json(), 60);
    // The first one is used after its end.
    tokio::time::sleep(Duration::from_secs(6)).await;
    assert_eq!(
        told(&ask(hub.url(), &exchange(&challenge)).await),
        (401, "challenge_invalid".to_owned())
    );
}

/// The oldest token of an agent goes when it has more than 64.
#[tokio::test]
async fn row_83_tokens_of_one_agent_end_exactly_at_their_limit() {
    let hub = hub("");
    let bob = TestAgent::registered(&hub, "bob").await;
    let mut tokens = Vec::new();
    for _ in 0..64 {
        tokens.push(bob.token(&hub).await);
    }
    tokens.push(bob.token(&hub).await);
    assert_eq!(
        told(&get(&hub, "/api/v1/inbox", &tokens[0]).await),
        (401, "token_invalid".to_owned())
    );
    for token in [&tokens[1], &tokens[64]] {
        assert_eq!(get(&hub, "/api/v1/inbox", token).await.status, 200);
    }
}

#[tokio::test]
async fn row_83_a_history_page_ends_exactly_at_its_limit() {
    let hub = hub("[registry]\nhistory_page_operations_max = 2\n");
    let mut alice = TestAgent::registered(&hub, "alice").await;
    for _ in 0..4 {
        alice.change(&hub, |_| ()).await;
    }
    let mut seen = Vec::new();
    let mut target = "/api/v1/agents/alice/history".to_owned();
    loop {
        let page = ask(hub.url(), &Request::get(&target)).await.json();
        let operations = page["operations"].as_array().unwrap();
        assert!(operations.len() <= 2, "{page}");
        seen.extend(
            operations
                .iter()
                .map(|operation| super::number(&operation["seq"])),
        );
        match &page["next_cursor"] {
            Value::String(next) => target = format!("/api/v1/agents/alice/history?cursor={next}"),
            _ => break,
        }
    }
    assert_eq!(seen, [0, 1, 2, 3, 4]);
    let refused = ask(hub.url(), &Request::get("/api/v1/agents/alice/history?limit=3")).await;
    assert_eq!(told(&refused), (400, "parameter_invalid".to_owned()));
    assert!(refused.text().contains('2'), "{}", refused.text());
}

#[tokio::test]
async fn row_83_reserved_names_are_not_given() {
    let hub = hub("[hub]\nreserved_names = [\"ceo\"]\n");
    for name in ["admin", "root", "hub", "well-known", "ceo"] {
        let agent = TestAgent::new(&hub, name);
        let refused = ask(hub.url(), &Request::post("/api/v1/agents", agent.genesis())).await;
        assert_eq!(told(&refused), (403, "name_reserved".to_owned()), "{name}");
    }
    TestAgent::registered(&hub, "ceo2").await;
}

/// Operation 0 with another content, rightly signed: what is wrong with it is its size only.
fn genesis(agent: &TestAgent, change: impl FnOnce(&mut Value)) -> Vec<u8> {
    let mut value = Value::from(agent.identity.head().json.without(&["sig"]));
    change(&mut value);
    let unsigned = Json::try_from(value.clone()).unwrap();
    value["sig"] = sign(&agent.rotation, Tag::Identity, &unsigned).to_string().into();
    value.to_string().into_bytes()
}

#[tokio::test]
async fn row_83_an_operation_ends_exactly_at_its_limits() {
    let hub = hub("");
    let register = async |wire: Vec<u8>| ask(hub.url(), &Request::post("/api/v1/agents", wire)).await;
    let keys = |count: u8| {
        let keys = (1..=count).map(|number| SigningKey::from_seed([number; 32]).public().to_string());
        keys.collect::<Vec<_>>()
    };
    // Eight keys in a list.
    let alice = TestAgent::new(&hub, "alice");
    let nine = register(genesis(&alice, |operation| {
        operation["keys"]["signing"] = json!(keys(9));
    }))
    .await;
    assert_eq!(nine.status, 400, "{}", nine.text());
    let eight = register(genesis(&alice, |operation| {
        operation["keys"]["signing"] = json!(keys(8));
    }))
    .await;
    assert_eq!(eight.status, 201, "{}", eight.text());
    // 16 KiB of canonical bytes.
    let bob = TestAgent::new(&hub, "bob");
    let sized = |bytes: usize| {
        let with = |text: String| genesis(&bob, |operation| operation["profile"]["name"] = json!(text));
        let canonical = |wire: &[u8]| Json::parse(wire).unwrap().to_jcs().len();
        let around = canonical(&with(String::new()));
        // A signature may be a character longer or shorter; the text makes up for it.
        let fillers = ('a'..='z').flat_map(|filler| (0..4).map(move |slack| (filler, slack)));
        fillers
            .map(|(filler, slack)| with(filler.to_string().repeat(bytes - around - 2 + slack)))
            .find(|wire| canonical(wire) == bytes)
            .unwrap()
    };
    let large = register(sized(16 * 1024 + 1)).await;
    assert_eq!(large.status, 413, "{}", large.text());
    assert_eq!(large.code(), "body_too_large");
    let fits = sized(16 * 1024);
    assert!(Operation::parse(&fits, EndpointPolicy { allow_http: false }).is_ok());
    assert_eq!(register(fits).await.status, 201);
    // 32 levels.
    let carol = TestAgent::new(&hub, "carol");
    let nested = |levels: usize| {
        let text = format!("{}1{}", "[".repeat(levels), "]".repeat(levels));
        genesis(&carol, |operation| operation["profile"]["deep"] = json!("@"))
            .windows(3)
            .position(|window| window == b"\"@\"")
            .map(|at| {
                let mut wire = genesis(&carol, |operation| operation["profile"]["deep"] = json!("@"));
                wire.splice(at..at + 3, text.bytes());
                wire
            })
            .unwrap()
    };
    // The operation and the profile are two levels.
    assert_eq!(register(nested(31)).await.code(), "json_invalid");
    assert_eq!(register(nested(30)).await.code(), "signature_invalid");
}

#[tokio::test]
async fn row_83_names_end_exactly_at_their_limit() {
    let hub = hub("");
    let longest = "a".repeat(63);
    TestAgent::registered(&hub, &longest).await;
    let domain = hub.domain().replace(':', "%3A");
    let resolve = async |name: &str| {
        ask(
            hub.url(),
            &Request::get(format!("/api/v1/resolve/{name}%23{domain}")),
        )
        .await
    };
    assert_eq!(resolve(&longest).await.status, 200);
    assert_eq!(resolve(&"a".repeat(64)).await.code(), "name_invalid");
    let domain = format!("{}.example", "a.".repeat(124).trim_end_matches('.'));
    let far = ask(hub.url(), &Request::get(format!("/api/v1/resolve/a%23{domain}"))).await;
    assert_eq!(far.code(), "domain_invalid", "{} bytes", domain.len());
}
