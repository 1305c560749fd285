//! The whole way in a hub in memory: the question in the provider's mailbox, its answer, and what is none.

use std::time::Duration;

use aip_market::offer::Way;
use aip_protocol::clock::Clock as _;
use aip_protocol::envelope::{Envelope, EnvelopeDraft, new_id};
use aip_protocol::name::Handle;
use aip_relay::inbox::Item;
use aip_relay::session::SessionId;
use rand::SeedableRng as _;
use rand::rngs::StdRng;
use tokio_util::sync::CancellationToken;

use super::super::testing::{call, offer};
use super::*;
use crate::agent::testing::{take, take_shared, watch};
use crate::testing::{TestAgent, TestHub};

/// Longer than any test takes, where an answer is expected.
const PATIENCE: Duration = Duration::from_mins(1);
/// Where none is.
const SHORT: Duration = Duration::from_millis(200);

async fn hub_with_agent() -> TestHub {
    let hub = TestHub::new();
    hub.hub.app.agent.establish().await.unwrap();
    hub
}

fn calling(
    hub: &TestHub,
    to: &TestAgent,
    wait: Duration,
) -> tokio::task::JoinHandle<Result<Value, ProviderError>> {
    let providers = RelayProviders::new(hub.hub.app.agent.clone());
    let offer = offer(to.did.as_str(), Way::Relay);
    let call = call(json!({"town": "Köln", "seed": 0.5}), wait);
    tokio::task::spawn_local(async move { providers.call(&offer, call).await })
}

/// The question as it lies in the provider's mailbox, once it is there.
async fn question(hub: &TestHub, agent: &TestAgent) -> (Envelope, Value) {
    let inbox = &hub.hub.app.inbox;
    let mut reader = inbox
        .reader(agent.did.clone(), None, SessionId::from_random(1))
        .await
        .unwrap()
        .unwrap();
    let item = loop {
        if let Some(item) = reader.read(1).await.unwrap().items.pop() {
            break item;
        }
        tokio::time::timeout(PATIENCE, reader.changed()).await.unwrap();
    };
    let envelope = Envelope::parse(&item.wire).unwrap();
    let plaintext = envelope.open(&agent.opening).unwrap();
    (envelope, plaintext.body)
}

/// What the hub's agent makes of an answer of `from` to `question`.
async fn answered(
    hub: &TestHub,
    from: &TestAgent,
    question: &Envelope,
    kind: &str,
    plaintext: &[u8],
) -> String {
    let envelope = reply(hub, from, question, kind, plaintext).await;
    let item = Item {
        seq: 1,
        attempt: 1,
        accepted_at: envelope.created_at,
        wire: envelope.to_wire().into(),
    };
    take(&hub.hub.app, &item).await
}

/// An answer of `from` to `question`.
async fn reply(
    hub: &TestHub,
    from: &TestAgent,
    question: &Envelope,
    kind: &str,
    plaintext: &[u8],
) -> Envelope {
    let app = &hub.hub.app;
    let hub_agent = app.registry.resolve(app.agent.did()).await.unwrap().unwrap();
    let key = hub_agent.identity.sealing_key().unwrap();
    let mut rng = StdRng::seed_from_u64(plaintext.len() as u64);
    let to = Handle::parse("hub#hub.example").unwrap().did();
    let id = new_id(&mut rng);
    let mut draft = EnvelopeDraft::new(id, from.did.clone(), to, kind, hub.clock.now());
    draft.thread.clone_from(&question.thread);
    draft.reply_to = Some(question.id.hyphenated().to_string());
    draft.seal(&from.signing, key, plaintext, &mut rng).unwrap()
}

fn answer(body: Value) -> Vec<u8> {
    Plaintext::json(body).to_bytes()
}

const ID: &str = "00112233-4455-4677-8899-aabbccddeeff";

async fn local<T>(work: impl Future<Output = T>) -> T {
    tokio::task::LocalSet::new().run_until(work).await
}

#[actix_web::test]
async fn a_provider_is_asked_by_message_and_its_answer_is_the_result() {
    local(Box::pin(async {
        let hub = hub_with_agent().await;
        let shop = hub.registered("shop").await;
        let calling = calling(&hub, &shop, PATIENCE);
        let (envelope, body) = question(&hub, &shop).await;
        assert_eq!(envelope.kind, REQUEST);
        assert_eq!(envelope.from, *hub.hub.app.agent.did());
        assert!(envelope.expires_at.is_some(), "late answers are not worth anything");
        let expected = json!({
            "id": ID, "product_id": "shop", "capability_id": "weather@v1", "input": {"town": "Köln", "seed": 0.5},
        });
        assert_eq!(body, expected);
        let said = answer(json!({"id": ID, "ok": true, "result": {"sky": "blue", "t": 20.0}}));
        assert_eq!(answered(&hub, &shop, &envelope, RESPONSE, &said).await, "answered");
        assert_eq!(calling.await.unwrap().unwrap(), json!({"sky": "blue", "t": 20.0}));
        // Once more: nobody waits.
        assert_eq!(answered(&hub, &shop, &envelope, RESPONSE, &said).await, "ignored");
        assert_eq!(hub.hub.app.agent.questions().waiting_count(), 0);
    }))
    .await;
}

#[actix_web::test]
async fn only_the_agent_that_was_asked_answers_and_only_with_an_answer() {
    local(Box::pin(async {
        let hub = hub_with_agent().await;
        let (shop, thief) = (hub.registered("shop").await, hub.registered("thief").await);
        let calling = calling(&hub, &shop, PATIENCE);
        let (envelope, _) = question(&hub, &shop).await;
        let said = answer(json!({"id": ID, "ok": true, "result": "forged"}));
        assert_eq!(
            answered(&hub, &thief, &envelope, RESPONSE, &said).await,
            "ignored"
        );
        assert_eq!(
            answered(&hub, &shop, &envelope, "aip.other.response", &said).await,
            "ignored"
        );
        let mut other = envelope.clone();
        other.id = new_id(&mut StdRng::seed_from_u64(99));
        assert_eq!(answered(&hub, &shop, &other, RESPONSE, &said).await, "ignored");
        let said = answer(json!({"id": ID, "ok": true, "result": "good"}));
        answered(&hub, &shop, &envelope, RESPONSE, &said).await;
        assert_eq!(calling.await.unwrap().unwrap(), json!("good"));
    }))
    .await;
}

#[test]
fn what_is_no_result_is_an_error_of_its_kind() {
    let made_of = |body: Value| result(ID, &answer(body)).unwrap_err();
    let invalid = |why: &str| ProviderError::Invalid(why.to_owned());
    let refused = ProviderError::Refused("out of tea".to_owned());
    assert_eq!(
        made_of(json!({"id": ID, "ok": false, "error": "out of tea"})),
        refused
    );
    assert_eq!(
        made_of(json!({"id": "other", "ok": true, "result": 1})),
        invalid("it is for another call")
    );
    assert_eq!(
        made_of(json!({"ok": true, "result": 1})),
        invalid("it is for another call")
    );
    assert_eq!(
        made_of(json!({"id": ID, "ok": true})),
        invalid("it has no result")
    );
    assert_eq!(
        made_of(json!({"id": ID, "ok": 1, "result": 1})),
        invalid("it does not say whether it is ok")
    );
    assert_eq!(made_of(json!([1])), invalid("it is no JSON object"));
    assert_eq!(result(ID, b"\xff").unwrap_err(), invalid("it is no JSON"));
    let text = Plaintext {
        content_type: "text/plain".to_owned(),
        body: json!("sunny"),
        ask_receipt: false,
    };
    assert_eq!(
        result(ID, &text.to_bytes()).unwrap_err(),
        invalid("it is no JSON")
    );
    let long = answer(json!({"id": ID, "ok": true, "result": "x".repeat(RESULT_BYTES_MAX + FRAME_BYTES)}));
    assert_eq!(result(ID, &long).unwrap_err(), invalid("it is too long"));
    let deep = format!(
        r#"{{"content_type":"application/json","body":{{"id":"{ID}","ok":true,"result":{}1{}}}}}"#,
        "[".repeat(5_000),
        "]".repeat(5_000)
    );
    assert_eq!(result(ID, deep.as_bytes()).unwrap_err(), invalid("it is no JSON"));
}

#[actix_web::test]
async fn an_answer_after_its_time_is_dropped_and_a_dropped_call_gives_its_place_back() {
    local(Box::pin(async {
        let hub = hub_with_agent().await;
        let shop = hub.registered("shop").await;
        let late = calling(&hub, &shop, SHORT);
        let (envelope, _) = question(&hub, &shop).await;
        assert_eq!(late.await.unwrap(), Err(ProviderError::TimedOut));
        let said = answer(json!({"id": ID, "ok": true, "result": 1}));
        assert_eq!(answered(&hub, &shop, &envelope, RESPONSE, &said).await, "ignored");
        let given_up = calling(&hub, &shop, PATIENCE);
        while hub.hub.app.agent.questions().waiting_count() == 0 {
            tokio::task::yield_now().await;
        }
        given_up.abort();
        assert!(given_up.await.unwrap_err().is_cancelled());
        assert_eq!(hub.hub.app.agent.questions().waiting_count(), 0);
    }))
    .await;
}

#[actix_web::test]
async fn a_provider_that_cannot_be_written_to_is_unreachable_at_once() {
    local(Box::pin(async {
        let hub = hub_with_agent().await;
        let nobody = hub.agent("nobody");
        let unknown = calling(&hub, &nobody, PATIENCE).await.unwrap();
        assert_eq!(
            unknown,
            Err(ProviderError::Unreachable("recipient_unknown".to_owned()))
        );
        let providers = RelayProviders::new(hub.hub.app.agent.clone());
        let elsewhere = offer("did:aip:other.example:shop", Way::Relay);
        let refused = providers.call(&elsewhere, call(json!({}), PATIENCE)).await;
        assert!(matches!(refused, Err(ProviderError::Unreachable(why)) if why.contains("another hub")));
    }))
    .await;
}

#[test]
fn what_keeps_a_question_from_being_asked_is_told_without_names() {
    let busy = no_answer(AskError::Busy);
    assert!(matches!(busy, ProviderError::Unreachable(why) if why.contains("wait for their answers")));
    assert_eq!(
        no_answer(AskError::NotTaken("expired".to_owned())),
        ProviderError::TimedOut
    );
    let rejected = no_answer(AskError::NotTaken("type_unsupported".to_owned()));
    assert!(matches!(rejected, ProviderError::Unreachable(why) if why.contains("type_unsupported")));
    assert_eq!(no_answer(AskError::TimedOut), ProviderError::TimedOut);
}

/// As in a cluster: the session is another process's, and this one reads its own conversation beside it.
#[actix_web::test]
async fn an_answer_reaches_the_process_that_asked() {
    local(Box::pin(async {
        let hub = hub_with_agent().await;
        let shop = hub.registered("shop").await;
        let app = hub.hub.app.clone();
        let watching = tokio::task::spawn_local(async move { watch(&app).await });
        let calling = calling(&hub, &shop, PATIENCE);
        let (envelope, _) = question(&hub, &shop).await;
        let said = answer(json!({"id": ID, "ok": true, "result": "seen"}));
        let reply = reply(&hub, &shop, &envelope, RESPONSE, &said).await;
        let sent = hub.post("/api/v1/messages", reply.to_wire()).await;
        assert_eq!(sent.status, 202, "{sent:?}");
        assert_eq!(calling.await.unwrap().unwrap(), json!("seen"));
        watching.abort();
        // What another process asked is handed back to it, for a while.
        let mut elsewhere = reply;
        elsewhere.thread = Some("hub-asks-0123456789abcdef".to_owned());
        let verdicts: Vec<String> = (1..=4)
            .map(|attempt| take_shared(&hub.hub.app, &elsewhere, attempt))
            .collect();
        assert_eq!(verdicts, ["later", "later", "later", "ignored"]);
    }))
    .await;
}

#[actix_web::test]
async fn a_provider_says_how_far_it_is_and_is_told_to_stop() {
    local(Box::pin(async {
        let hub = hub_with_agent().await;
        let (shop, thief) = (hub.registered("shop").await, hub.registered("thief").await);
        let (progress, cancelled) = (ProgressSink::alone(), CancellationToken::new());
        let call = ProviderCall {
            progress: Some(progress.clone()),
            cancelled: cancelled.clone(),
            ..call(json!({"town": "Köln"}), PATIENCE)
        };
        let providers = RelayProviders::new(hub.hub.app.agent.clone());
        let offer = offer(shop.did.as_str(), Way::Relay);
        let calling = tokio::task::spawn_local(async move { providers.call(&offer, call).await });
        let (envelope, body) = question(&hub, &shop).await;
        assert_eq!(body["progress"], json!(true), "it may say so");
        let word = |body: Value| answer(body);
        let good = word(json!({"id": ID, "progress": {"done": 0.5}}));
        assert_eq!(
            answered(&hub, &shop, &envelope, PROGRESS, &good).await,
            "answered"
        );
        let part = word(json!({"id": ID, "chunk": "Once"}));
        assert_eq!(
            answered(&hub, &shop, &envelope, PROGRESS, &part).await,
            "answered"
        );
        // A message that is offered again, or seen twice, says nothing new.
        assert_eq!(answered(&hub, &shop, &envelope, PROGRESS, &good).await, "ignored");
        // Of somebody else, about another call, of another form: nothing is said by that.
        assert_eq!(
            answered(&hub, &thief, &envelope, PROGRESS, &good).await,
            "ignored"
        );
        for odd in [
            word(json!({"id": "other", "progress": 1})),
            word(json!({"id": ID})),
            word(json!([1])),
            b"\xff".to_vec(),
        ] {
            answered(&hub, &shop, &envelope, PROGRESS, &odd).await;
        }
        let told: Vec<_> = progress
            .told()
            .into_iter()
            .map(|word| (word.kind.as_str(), String::from_utf8(word.data.to_vec()).unwrap()))
            .collect();
        assert_eq!(
            told,
            [
                ("progress", r#"{"done":0.5}"#.to_owned()),
                ("chunk", r#""Once""#.to_owned())
            ]
        );
        cancelled.cancel();
        assert_eq!(calling.await.unwrap(), Err(ProviderError::TimedOut));
        let (withdrawal, body) = latest(&hub, &shop).await;
        assert_eq!((withdrawal.kind.as_str(), body), (CANCEL, json!({ "id": ID })));
        assert_eq!(withdrawal.reply_to, Some(envelope.id.hyphenated().to_string()));
        assert_eq!(
            (&withdrawal.thread, withdrawal.from),
            (&envelope.thread, envelope.from.clone())
        );
        // Nobody hears any more.
        assert_eq!(answered(&hub, &shop, &envelope, PROGRESS, &good).await, "ignored");
    }))
    .await;
}

/// The last message in a mailbox.
async fn latest(hub: &TestHub, agent: &TestAgent) -> (Envelope, Value) {
    let inbox = &hub.hub.app.inbox;
    let reader = inbox
        .reader(agent.did.clone(), None, SessionId::from_random(2))
        .await;
    let item = reader
        .unwrap()
        .unwrap()
        .read(9)
        .await
        .unwrap()
        .items
        .pop()
        .unwrap();
    let envelope = Envelope::parse(&item.wire).unwrap();
    let plaintext = envelope.open(&agent.opening).unwrap();
    (envelope, plaintext.body)
}
