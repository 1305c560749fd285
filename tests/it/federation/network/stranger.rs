//! A stranger who floods from an address of his own: in his own name, in the name of a peer, and in none. What he uses up is his.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use aip_tests::peer::{item, item_of, plausible_fields, signed_push};
use aip_tests::raw::{Request, Wire};
use aip_tests::vitals::GROWTH_BYTES_MAX;
use aip_tests::{HubOptions, Network, TestAgent, TestHub, TestPeer, Vitals};
use serde_json::json;
use tokio::net::TcpListener;
use tokio::task::JoinSet;

use super::super::{inbox, local_mail_passes, until};
use super::{hub_with, meet, network, roomy_and};

/// Messages that pass each way while the stranger floods.
const PASSING: usize = 20;
/// What the stranger has sent at least before they do.
const BEGUN: usize = 500;
/// Connections that he holds with half a body on each: most of the places that one network has for strangers.
const HELD: usize = 6;
/// Floods at once, of each kind.
const AT_ONCE: usize = 4;

/// What the stranger does, and how far he has come.
#[derive(Debug)]
struct Flood {
    hub: Arc<TestHub>,
    /// In whose name he speaks.
    victim: String,
    progress: Progress,
}

/// What he and the test tell each other. When the test is over he stops, however it ended.
#[derive(Debug, Clone, Default)]
struct Progress {
    sent: Arc<AtomicUsize>,
    is_over: Arc<AtomicBool>,
}

struct Ends(Progress);

impl Drop for Ends {
    fn drop(&mut self) {
        self.0.is_over.store(true, Ordering::Relaxed);
    }
}

/// The answers that came, by their status.
type Answers = BTreeMap<u16, usize>;

impl Flood {
    /// All of it, in his own place; what he was answered.
    async fn run(self, bob: Arc<TestAgent>) -> Answers {
        let listener = TcpListener::bind("0.0.0.0:80").await.expect("his own port");
        let peer = TestPeer::at(listener, "mallory.test", "e1");
        // A good beginning: he is a peer like any other.
        let first = item(1, &peer.agent("mallory").envelope(&bob));
        let answer = peer.hand_in(&self.hub, "e1", &[first]).await.expect("an answer");
        assert_eq!(
            answer.json()["results"][0]["status"],
            "stored",
            "{}",
            answer.text()
        );
        let mut held = Vec::new();
        for _ in 0..HELD {
            held.extend(self.hold().await);
        }
        let (flood, peer) = (Arc::new(self), Arc::new(peer));
        let mut pouring = JoinSet::new();
        for _ in 0..AT_ONCE {
            pouring.spawn(Arc::clone(&flood).pour(Arc::clone(&peer)));
        }
        let mut answers = Answers::new();
        while let Some(some) = pouring.join_next().await {
            for (status, count) in some.expect("it only asks") {
                *answers.entry(status).or_default() += count;
            }
        }
        answers
    }

    /// The request of this number: every kind in turn.
    fn request(&self, peer: &TestPeer, number: usize) -> Request {
        let seq = u64::try_from(number).unwrap_or_default() + 2;
        let junk = item_of(seq, json!({ "aip": "1", "filler": "x".repeat(1_000) }));
        let batch = peer.batch("e1", &[junk]);
        match number % 4 {
            0 => peer.push(&self.hub, batch),
            // In the name of a peer, with a key of his own.
            1 => signed_push(&self.hub, &peer.key, &self.victim, batch),
            2 => signed_push(&self.hub, &peer.key, &format!("nobody-{number}.test"), batch),
            _ => Request::post("/federation/v1/messages", batch),
        }
    }

    /// Asks until it is over; a hub that has heard enough may hang up.
    async fn pour(self: Arc<Self>, peer: Arc<TestPeer>) -> Answers {
        let Progress { sent, is_over } = &self.progress;
        let mut answers = Answers::new();
        while !is_over.load(Ordering::Relaxed) {
            let request = self.request(&peer, sent.fetch_add(1, Ordering::Relaxed));
            let Ok(mut wire) = Wire::open(self.hub.url()).await else {
                continue;
            };
            if wire.send(&request.to_bytes()).await.is_err() {
                continue;
            }
            if let Some(answer) = wire.answer().await {
                *answers.entry(answer.status).or_default() += 1;
            }
        }
        answers
    }

    /// A connection with the beginning of a body, and no more.
    async fn hold(&self) -> Option<Wire> {
        let fields = plausible_fields(&self.hub).into_iter();
        let head = Request::new("POST", "/federation/v1/messages").unframed();
        let head = fields.fold(head, |head, (name, value)| head.field(name, value));
        let head = head
            .field("content-type", "application/json")
            .field("content-length", "1000000");
        let mut wire = Wire::open(self.hub.url()).await.ok()?;
        wire.send(&head.to_bytes()).await.ok()?;
        wire.send(b"{\"aip\":").await.ok()?;
        Some(wire)
    }
}

/// A hub as in production: it counts by where requests come from, which a development hub does not. What counts all requests
/// of an address, and not only those of peers, is out of the way.
fn watchful(network: &Network) -> TestHub {
    let settings = format!("{}[hub]\nregistration = \"open\"\n", roomy_and(""));
    let roomy = ["REQUESTS_PER_SEC", "REQUEST_BURST"];
    let roomy = roomy.map(|name| (format!("AIP_HUB__HTTP__{name}"), "10000".to_owned()));
    hub_with(HubOptions {
        production: Some(network.domain("alpha")),
        environment: roomy.into(),
        ..network.hub("alpha", &settings)
    })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_stranger_who_floods_uses_up_nothing_of_a_peer() {
    let Some(network) = network("federation stranger", &["alpha", "beta", "mallory"]) else {
        return;
    };
    let alpha = Arc::new(watchful(&network));
    // Alpha says that it is at https, which a proxy before it would speak.
    let settings = roomy_and("static_peers = [\"alpha.test=http://alpha.test\"]");
    let beta = hub_with(network.hub("beta", &settings));
    let alice = TestAgent::registered(&alpha, "alice").await;
    let carol = Arc::new(TestAgent::registered(&alpha, "carol").await);
    let bob = TestAgent::registered(&beta, "bob").await;
    let (alices, bobs) = (alice.token(&alpha).await, bob.token(&beta).await);
    meet((&alpha, &alice, &alices), (&beta, &bob, &bobs)).await;
    let before = Vitals::of(&alpha).await;

    let progress = Progress::default();
    let flood = Flood {
        hub: Arc::clone(&alpha),
        victim: beta.domain(),
        progress: progress.clone(),
    };
    let to = Arc::clone(&carol);
    let flooding = network.inside("mallory", move || flood.run(to));
    let living = async {
        let end = Ends(progress);
        until("the flood is on", async || {
            end.0.sent.load(Ordering::Relaxed) > BEGUN
        })
        .await;
        for passed in 2..PASSING + 2 {
            assert_eq!(bob.send(&beta, &alice).await.json()["status"], "queued");
            assert_eq!(alice.send(&alpha, &bob).await.json()["status"], "queued");
            local_mail_passes(&alpha, &carol, &alice).await;
            until("mail passes both ways", async || {
                // Alice has those of carol, too.
                let (here, there) = (inbox(&alpha, &alices).await, inbox(&beta, &bobs).await);
                here.len() == 2 * passed - 1 && there.len() == passed
            })
            .await;
        }
    };
    let (answers, ()) = tokio::join!(flooding, living);

    judge(&alpha, &before, &answers).await;
    // Mallory's one good message, and nothing else of his.
    let carols = carol.token(&alpha).await;
    assert_eq!(inbox(&alpha, &carols).await.len(), 1);
}

/// What alpha says of it afterwards: who was held up, who was not, and that it is well.
async fn judge(alpha: &TestHub, before: &Vitals, answers: &Answers) {
    let after = Vitals::of(alpha).await;
    let of_beta = after.count_labelled("aip_federation_peer_slowed_total", "peer=\"beta.test\"");
    assert!(of_beta < 1.0, "beta was slowed {of_beta} times");
    let forged = after.count_labelled("aip_federation_peer_unauthentic_total", "peer=\"beta.test\"");
    assert!(
        forged > 0.0,
        "nobody says that somebody posed as beta: {answers:?}"
    );
    let count = |status: u16| answers.get(&status).copied().unwrap_or_default();
    assert!(count(401) > 0 && count(429) > 0, "{answers:?}");
    assert_eq!(count(500), 0, "{answers:?}");
    let refused = "aip_federation_requests_refused_total";
    assert!(
        after.count(refused) - before.count(refused) > 100.0,
        "{answers:?}"
    );
    let grown = after.resident_bytes().saturating_sub(before.resident_bytes());
    assert!(grown < GROWTH_BYTES_MAX, "alpha grew by {grown} bytes");
    let shown = alpha.operate(Request::get("/admin/peers/beta.test")).await.json();
    assert!(shown["frozen"].is_null(), "{shown}");
    let log = alpha.log();
    assert!(!log.contains("panicked") && !log.contains("ERROR"), "{log}");
}
