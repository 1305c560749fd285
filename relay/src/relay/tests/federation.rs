//! Mail for agents of other hubs.

use aip_federation::outbox::{Fate, Outbox};

use super::*;
use crate::admission::Blocklist;
use crate::limits::OUTBOX_RETENTION_SECS;
use crate::mailbox::{Quota, Route, Status};
use crate::outbox::StoredOutboxes;

pub(super) const PEER: &str = "other.example";

/// Lets everybody in but one peer, and notes what it is asked and told.
#[derive(Debug)]
struct Neighbourhood {
    terms: PeerTerms,
    asked: AtomicUsize,
    met: Mutex<Vec<Domain>>,
    queued: Mutex<Vec<Domain>>,
}

#[async_trait]
impl Peers for Neighbourhood {
    async fn admit(&self, peer: &Domain, _sender: &Did) -> Result<PeerTerms, Refusal> {
        self.asked.fetch_add(1, Ordering::SeqCst);
        if peer.as_str() == "blocked.example" {
            return Err(Refusal::new(
                ErrorCode::PeerBlocked,
                "This hub does not deal with it.",
            ));
        }
        Ok(self.terms)
    }

    async fn meet(&self, peer: &Domain, _sender: &Did) -> Result<(), Refusal> {
        self.met.lock().unwrap().push(peer.clone());
        Ok(())
    }

    fn queued(&self, peer: &Domain) {
        self.queued.lock().unwrap().push(peer.clone());
    }
}

struct Federation {
    bench: Bench,
    peers: Arc<Neighbourhood>,
}

impl Federation {
    fn new() -> Self {
        Self::with(Quota::default(), |_| {})
    }

    fn with(quota: Quota, change: impl FnOnce(&mut RelayConfig)) -> Self {
        let peers = Arc::new(Neighbourhood {
            terms: PeerTerms::of_outbox(quota),
            asked: AtomicUsize::new(0),
            met: Mutex::default(),
            queued: Mutex::default(),
        });
        Self {
            bench: Bench::among(Some(peers.clone()), change),
            peers,
        }
    }

    fn outboxes(&self) -> StoredOutboxes {
        let Bench {
            store,
            presence,
            clock,
            ..
        } = &self.bench;
        StoredOutboxes::new(store.clone(), presence.clone(), clock.clone())
    }

    fn asked(&self) -> usize {
        self.peers.asked.load(Ordering::SeqCst)
    }
}

pub(super) fn peer() -> Domain {
    Domain::parse(PEER).unwrap()
}

#[tokio::test]
async fn without_federation_nothing_goes_to_other_hubs() {
    let bench = Bench::new();
    let (alice, erin) = (bench.agent("alice"), bench.stranger_at(PEER, "erin"));
    let answer = bench.send(&bench.envelope(&alice, &erin)).await;
    let Err(SendError::Refused(refusal)) = answer else {
        panic!("{answer:?}")
    };
    assert_eq!(refusal.code, ErrorCode::RecipientUnknown);
    assert!(refusal.detail.contains("federation is switched off"));
    assert_eq!(bench.store.appends(), 0);
}

#[tokio::test]
async fn mail_for_an_agent_of_another_hub_is_queued() {
    let world = Federation::new();
    let bench = &world.bench;
    let (alice, erin) = (bench.agent("alice"), bench.stranger_at(PEER, "erin"));
    let (attached, session) = bench.listen(&alice).await;
    let envelope = bench.envelope(&alice, &erin);
    let answer = bench.send(&envelope).await.unwrap();
    let expected = Submission {
        id: envelope.id,
        status: Sent::Queued,
        route: Route::Peer,
        seq: Some(1),
    };
    assert_eq!((answer, answer.status.http_status()), (expected, 202));
    let again = bench.send(&envelope).await.unwrap();
    assert_eq!(
        (again.status, again.route, again.seq),
        (Sent::Duplicate, Route::Peer, Some(1))
    );
    assert_eq!(*world.peers.queued.lock().unwrap(), [peer()], "once");
    let update = attached.next_status(session).unwrap();
    assert_eq!(
        (update.id, update.to.clone(), update.status),
        (envelope.id, erin.did.clone(), Status::Queued)
    );
    assert!(attached.next_status(session).is_none());
    assert!(
        bench.waiting(&erin).await.is_empty(),
        "nobody of that name is here"
    );
    let stats = bench.relay.stats();
    assert_eq!((stats.queued(), stats.stored(), stats.duplicates()), (1, 0, 1));
}

#[tokio::test]
async fn an_outbox_shows_what_waits_and_tells_senders_what_became_of_it() {
    let world = Federation::new();
    let bench = &world.bench;
    let (alice, erin) = (bench.agent("alice"), bench.stranger_at(PEER, "erin"));
    let outboxes = world.outboxes();
    let envelopes: Vec<Envelope> = (0..5).map(|_| bench.envelope(&alice, &erin)).collect();
    for envelope in &envelopes {
        bench.send(envelope).await.unwrap();
    }
    let state = outboxes.state(&peer()).await.unwrap();
    assert_eq!((state.floor, state.head, state.pending), (0, 5, 5));
    let page = outboxes.after(&peer(), 1, 2, usize::MAX).await.unwrap();
    let shown: Vec<_> = page.iter().map(|item| (item.peer_seq, item.id)).collect();
    assert_eq!(shown, [(2, envelopes[1].id), (3, envelopes[2].id)]);
    assert_eq!(
        (&page[0].sender, &page[0].recipient, page[0].accepted_at),
        (&alice.did, &erin.did, bench.clock.now())
    );
    assert_eq!(page[0].wire, envelopes[1].to_wire());
    assert_eq!(
        outboxes.after(&peer(), 0, 10, 1).await.unwrap().len(),
        1,
        "one at least"
    );

    let (attached, session) = bench.listen(&alice).await;
    let fates = [
        (1, Fate::Delivered),
        (2, Fate::Refused("recipient_unknown".into())),
        (3, Fate::Dead("unavailable".into())),
        (4, Fate::Expired),
        (9, Fate::Delivered),
    ];
    outboxes.settle(&peer(), &fates).await.unwrap();
    outboxes.settle(&peer(), &fates).await.unwrap();
    let expected = [
        (Status::Delivered, None),
        (Status::Refused, Some("recipient_unknown")),
        (Status::Dead, Some("unavailable")),
        (Status::Expired, Some("expired")),
    ];
    for (envelope, (status, code)) in envelopes.iter().zip(expected) {
        let update = attached.next_status(session).unwrap();
        assert_eq!(
            (update.id, &update.to, update.status, update.code.as_deref()),
            (envelope.id, &erin.did, status, code)
        );
        let known = bench.relay.status(&alice.did, envelope.id, None).await.unwrap();
        assert_eq!((known[0].status, known[0].code.as_deref()), (status, code));
    }
    assert!(attached.next_status(session).is_none(), "once");
    let left = outboxes.items(&peer(), &[5, 3, 1]).await.unwrap();
    assert_eq!(left.iter().map(|item| item.peer_seq).collect::<Vec<_>>(), [5]);
    let state = outboxes.state(&peer()).await.unwrap();
    assert_eq!((state.floor, state.head, state.pending), (4, 5, 1));
    assert_eq!(outboxes.epoch(), Epoch::from_random(1).as_str());
}

#[tokio::test]
async fn a_letter_waits_until_its_own_expiry_or_six_days() {
    let world = Federation::new();
    let bench = &world.bench;
    let (alice, erin) = (bench.agent("alice"), bench.stranger_at(PEER, "erin"));
    let mut draft = bench.draft(&alice, &erin);
    draft.expires_at = Some(at(60_000));
    bench.send(&bench.seal(draft, &alice, &erin)).await.unwrap();
    bench.send(&bench.envelope(&alice, &erin)).await.unwrap();
    let waiting = async || {
        let items = world.outboxes().after(&peer(), 0, 10, usize::MAX).await.unwrap();
        items.iter().map(|item| item.peer_seq).collect::<Vec<_>>()
    };
    bench.clock.set(at(59_999));
    assert_eq!(waiting().await, [1, 2]);
    bench.clock.set(at(60_000));
    assert_eq!(waiting().await, [2]);
    bench.clock.set(at(0) + secs(OUTBOX_RETENTION_SECS - 1));
    assert_eq!(waiting().await, [2]);
    bench.clock.set(at(0) + secs(OUTBOX_RETENTION_SECS));
    assert_eq!(waiting().await, [0; 0]);
}

#[tokio::test]
async fn a_peer_is_asked_about_after_the_signature_and_before_what_costs() {
    let world = Federation::with(Quota::default(), |config| {
        config.blocklist = Blocklist::parse(["eve#hub.example"]).unwrap();
        config.rate = slow_rate(1);
    });
    let bench = &world.bench;
    let (alice, eve) = (bench.agent("alice"), bench.agent("eve"));
    let blocked = bench.stranger_at("blocked.example", "erin");
    let erin = bench.stranger_at(PEER, "erin");
    let bad = forged(&bench.envelope(&alice, &erin), |object| {
        object.insert("x-hop", 1);
    });
    assert_eq!(bench.code(bad, &Door::Home).await, "signature_invalid");
    assert_eq!(world.asked(), 0);
    let to_blocked = bench.envelope(&alice, &blocked).to_wire();
    assert_eq!(bench.code(to_blocked, &Door::Home).await, "peer_blocked");
    let of_eve = bench.envelope(&eve, &erin).to_wire();
    assert_eq!(bench.code(of_eve, &Door::Home).await, "sender_blocked");
    assert!(world.peers.met.lock().unwrap().is_empty());
    assert_eq!(
        bench
            .code(bench.envelope(&alice, &erin).to_wire(), &Door::Home)
            .await,
        "queued"
    );
    let flood = bench.envelope(&alice, &bench.stranger_at("third.example", "erin"));
    assert_eq!(bench.code(flood.to_wire(), &Door::Home).await, "rate_limited");
    assert_eq!(
        *world.peers.met.lock().unwrap(),
        [peer()],
        "what is refused makes no peer known"
    );
    assert_eq!((bench.refused("peer_blocked"), bench.store.appends()), (1, 1));
}

#[tokio::test]
async fn a_full_outbox_says_so() {
    let quota = Quota {
        mailbox_messages: 2,
        sender_messages: 1,
        ..Quota::default()
    };
    let world = Federation::with(quota, |_| {});
    let bench = &world.bench;
    let erin = bench.stranger_at(PEER, "erin");
    let agents = ["alice", "bob", "carol"].map(|name| bench.agent(name));
    for agent in &agents[..2] {
        bench.send(&bench.envelope(agent, &erin)).await.unwrap();
    }
    for (agent, scope, words) in [
        (&agents[2], "mailbox", "2 messages for the recipient's hub"),
        (&agents[0], "mailbox", "2 messages"),
    ] {
        let answer = bench.send(&bench.envelope(agent, &erin)).await;
        let Err(SendError::Refused(refusal)) = answer else {
            panic!("{answer:?}")
        };
        assert_eq!(refusal.code, ErrorCode::MailboxFull);
        assert!(refusal.detail.contains(words), "{}", refusal.detail);
        let json = format!("{refusal:?}");
        assert!(json.contains(scope), "{json}");
    }
    assert_eq!(world.peers.queued.lock().unwrap().len(), 2);
}

#[tokio::test]
async fn a_batch_reaches_agents_here_and_elsewhere_in_order() {
    let world = Federation::new();
    let bench = &world.bench;
    let (alice, bob, erin) = (
        bench.agent("alice"),
        bench.agent("bob"),
        bench.stranger_at(PEER, "erin"),
    );
    let envelopes: Vec<Envelope> = [&erin, &bob, &erin, &erin, &bob]
        .into_iter()
        .map(|to| bench.envelope(&alice, to))
        .collect();
    let wires: Vec<String> = envelopes
        .iter()
        .map(|envelope| String::from_utf8(envelope.to_wire()).unwrap())
        .collect();
    let body = Bytes::from(format!("[{}]", wires.join(",")));
    let items = bench.relay.submit_batch(body, &Door::Home).await.unwrap();
    let told: Vec<_> = items
        .iter()
        .map(|item| {
            let submission = item.result.as_ref().unwrap();
            (submission.status.as_str(), submission.seq)
        })
        .collect();
    let expected = [
        ("queued", Some(1)),
        ("stored", Some(1)),
        ("queued", Some(2)),
        ("queued", Some(3)),
        ("stored", Some(2)),
    ];
    assert_eq!(told, expected);
}
