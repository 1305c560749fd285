//! Several processes are one hub.

use aip_client::protocol::identity::OperationDraft;
use aip_tests::cluster::Cluster;
use aip_tests::raw::{Request, ask};
use aip_tests::ws::Socket;
use aip_tests::{TestAgent, keyed};
use serde_json::json;

use super::{acked, inbox, places, sent, status, two, until};

/// The agent is connected to one process; another one accepts its mail.
#[tokio::test]
async fn mail_reaches_an_agent_whichever_process_took_it() {
    let cluster = Cluster::start(2);
    let (a, b) = (cluster.hub(0), cluster.hub(1));
    let (alice, bob) = two(&cluster).await;
    let (mut socket, ready) = Socket::signed_in(b, &bob, json!({})).await;
    for seq in 1..=3 {
        assert_eq!(sent(a, &alice, &bob).await, seq);
        let message = socket.frame("msg").await;
        assert_eq!(message["seq"], seq);
    }
    let ack = json!({ "t": "ack", "epoch": ready["epoch"], "upto": 3 });
    socket.say(&ack).await;
    socket.frame("acked").await;
    let token = bob.token(a).await;
    assert_eq!(places(&inbox(a, &token).await), Vec::<u64>::new());
}

/// The place in a mailbox is one for all processes, and so is what was accepted before.
#[tokio::test]
async fn a_retry_at_another_process_is_a_duplicate() {
    let cluster = Cluster::start(2);
    let (alice, bob) = two(&cluster).await;
    let envelope = alice.envelope(&bob);
    for (number, told) in [(0, "stored"), (1, "duplicate"), (0, "duplicate")] {
        let answer = keyed::send(cluster.hub(number), envelope.to_wire()).await;
        assert_eq!(
            (&answer.json()["status"], &answer.json()["seq"]),
            (&json!(told), &json!(1))
        );
    }
}

/// The newest connection has the mailbox, wherever it is.
#[tokio::test]
async fn a_connection_to_another_process_takes_the_mailbox_over() {
    let cluster = Cluster::start(2);
    let (alice, bob) = two(&cluster).await;
    let (mut first, _) = Socket::signed_in(cluster.hub(0), &bob, json!({})).await;
    let (mut second, _) = Socket::signed_in(cluster.hub(1), &bob, json!({})).await;
    assert_eq!(first.close_code().await, 4409, "replaced");
    sent(cluster.hub(0), &alice, &bob).await;
    assert_eq!(second.frame("msg").await["seq"], 1);
}

/// A long poll at one process ends with mail that another one takes.
#[tokio::test]
async fn a_long_poll_hears_of_mail_at_another_process() {
    let cluster = Cluster::start(2);
    let (alice, bob) = two(&cluster).await;
    let token = bob.token(cluster.hub(1)).await;
    let poll = Request::get("/api/v1/inbox?wait_s=60").bearer(&token);
    let (polled, _) = tokio::join!(
        ask(cluster.hub(1).url(), &poll),
        sent(cluster.hub(0), &alice, &bob)
    );
    assert_eq!(places(&polled), [1]);
}

/// The sender waits at one process; the recipient acks at another.
#[tokio::test]
async fn a_sender_hears_what_became_of_its_message_at_another_process() {
    let cluster = Cluster::start(2);
    let (a, b) = (cluster.hub(0), cluster.hub(1));
    let (alice, bob) = two(&cluster).await;
    let (mut senders, _) = Socket::signed_in(a, &alice, json!({})).await;
    let envelope = alice.envelope(&bob);
    assert_eq!(keyed::send(a, envelope.to_wire()).await.status, 202);
    let token = bob.token(b).await;
    let epoch = inbox(b, &token).await.json()["epoch"].clone();
    assert_eq!(acked(b, &token, &epoch, 1).await.status, 200);
    loop {
        let news = senders.frame("status").await;
        if news["status"] == "acked" {
            assert_eq!(news["id"], envelope.id.to_string());
            break;
        }
    }
    let alices = alice.token(b).await;
    status(b, &alices, envelope.id, "acked").await;
}

/// Tokens are the hub's, and a challenge works once for all processes together.
#[tokio::test]
async fn tokens_and_challenges_are_those_of_the_hub() {
    let cluster = Cluster::start(2);
    let (a, b) = (cluster.hub(0), cluster.hub(1));
    let (_, bob) = two(&cluster).await;
    let token = bob.token(a).await;
    assert_eq!(inbox(b, &token).await.status, 200);
    let answered = bob.answered_challenge(a).await.to_string();
    let sign_in = |hub: &aip_tests::TestHub| {
        let (url, request) = (
            hub.url().to_owned(),
            Request::post("/api/v1/auth/token", answered.clone()),
        );
        async move { ask(&url, &request).await }
    };
    assert_eq!(sign_in(b).await.status, 200, "a challenge of A is answered at B");
    let again = sign_in(a).await;
    assert_eq!((again.status, again.code().as_str()), (401, "challenge_invalid"));
}

/// A key that was revoked at one process signs nothing at another, from that moment on.
#[tokio::test]
async fn a_rotation_is_seen_by_every_process_at_once() {
    let cluster = Cluster::start(2);
    let (a, b) = (cluster.hub(0), cluster.hub(1));
    let (mut alice, bob) = two(&cluster).await;
    sent(b, &alice, &bob).await;
    let fresh = TestAgent::new(a, "alice").signing;
    let public = fresh.public().clone();
    let stolen = alice.signing.public().clone();
    let change = |draft: &mut OperationDraft| {
        draft.keys.signing = vec![public];
        draft.revoked = vec![stolen.to_string()];
    };
    alice.change(a, change).await;
    // The news travels for a moment; without it, B would believe the old key for a minute.
    until("the rotation is known at B", async || {
        let answer = alice.send(b, &bob).await;
        (answer.status != 202).then(|| assert_eq!(answer.code(), "key_unknown"))
    })
    .await;
    alice.signing = fresh;
    sent(b, &alice, &bob).await;
}

/// Whom the operator sends away at one process is gone everywhere.
#[tokio::test]
async fn an_agent_that_is_suspended_at_one_process_is_closed_at_another() {
    let cluster = Cluster::start(2);
    let (_, bob) = two(&cluster).await;
    let (mut socket, _) = Socket::signed_in(cluster.hub(1), &bob, json!({})).await;
    let suspend = Request::new("PUT", "/admin/agents/bob/standing")
        .field("content-type", "application/json")
        .body(json!({ "standing": "suspended" }).to_string());
    assert_eq!(cluster.operate(0, suspend).await.status, 204);
    assert_eq!(socket.close_code().await, 4401);
}

/// Of two that want the same name at the same moment at two processes, one gets it.
#[tokio::test]
async fn a_name_is_given_once() {
    let cluster = Cluster::start(2);
    let [one, other] = [0, 1].map(|number| TestAgent::new(cluster.hub(number), "carol"));
    let register = |number: usize, agent: &TestAgent| {
        let request = Request::post("/api/v1/agents", agent.genesis());
        let url = cluster.hub(number).url().to_owned();
        async move { ask(&url, &request).await.status }
    };
    let (first, second) = tokio::join!(register(0, &one), register(1, &other));
    let mut statuses = [first, second];
    statuses.sort_unstable();
    assert_eq!(statuses, [201, 409]);
}
