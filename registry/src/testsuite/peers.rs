//! The contract of [`PeerStore`]: records of peers, who is forgotten, and whose turn it is.

use std::sync::Arc;

use aip_federation::limits::PEERS_PAGE_MAX;
use aip_federation::peers::{FederationStore, Frozen, PeerChange, PeerLimits, PeerRecord, PeerStore, Stance};
use aip_protocol::json::{Json, Object};
use aip_protocol::multikey::{SigningKey, VerifyingKey};
use aip_protocol::name::Domain;
use aip_protocol::time::Timestamp;
use tokio::task::JoinSet;

use super::fixtures::at;

/// A store of peers, as all of ours are.
pub trait Store: FederationStore + 'static {}

impl<T: FederationStore + 'static> Store for T {}

/// A domain.
pub fn domain(text: &str) -> Domain {
    Domain::parse(text).unwrap()
}

/// A key, of a flavour.
pub fn key(flavour: u8) -> VerifyingKey {
    SigningKey::from_seed([flavour; 32]).public().clone()
}

/// An object with texts that a store could stumble over, of a flavour.
pub fn object(flavour: &str) -> Json {
    let text = "ü 😀 \0 '; DROP TABLE peers; --";
    let object: Object = [("flavour", Json::from(flavour)), ("text", Json::from(text))]
        .into_iter()
        .collect();
    Json::Object(object)
}

fn documented(flavour: &str, pinned: Vec<VerifyingKey>, fresh_until: Timestamp) -> PeerChange {
    PeerChange::Documented {
        document: object(flavour),
        pinned,
        fresh_until,
    }
}

fn frozen(key: &str, secs: i64) -> Frozen {
    Frozen {
        code: "key_mismatch".to_owned(),
        kid: format!("peer.example#{key}"),
        since: at(secs),
    }
}

async fn change<S: PeerStore>(store: &S, peer: &str, change: PeerChange, secs: i64) -> PeerRecord {
    let changed = store.change(&domain(peer), change, at(secs)).await.unwrap();
    let read = store.peer(&domain(peer)).await.unwrap();
    assert_eq!(read, Some(changed.clone()), "what is answered is what is kept");
    changed
}

/// Nothing is known of a peer before it is met, and then only when that was.
pub async fn a_peer_is_met_once<S: Store>(store: Arc<S>) {
    assert_eq!(store.peer(&domain("peer.example")).await.unwrap(), None);
    let met = change(&*store, "peer.example", PeerChange::Met, 1).await;
    let bare = PeerRecord {
        domain: domain("peer.example"),
        pinned: Vec::new(),
        document: None,
        fresh_until: None,
        frozen: None,
        stance: Stance::Undecided,
        limits: PeerLimits::default(),
        first_seen: at(1),
        last_in: None,
        last_out: None,
        good_items: 0,
    };
    assert_eq!(met, bare);
    assert_eq!(change(&*store, "peer.example", PeerChange::Met, 2).await, bare);
    let stale = change(&*store, "other.example:8443", PeerChange::Stale, 3).await;
    assert_eq!(
        (stale.first_seen, stale.fresh_until),
        (at(3), None),
        "any change makes it"
    );
}

/// Its keys are pinned, and what is pinned stays when the cache ends or another document comes.
pub async fn a_document_pins_keys<S: Store>(store: Arc<S>) {
    let first = documented("first", vec![key(1), key(2)], at(60));
    let seen = change(&*store, "peer.example", first, 0).await;
    assert_eq!(seen.document, Some(object("first")));
    assert_eq!(seen.pinned, [key(1), key(2)]);
    assert_eq!((seen.first_seen, seen.fresh_until), (at(0), Some(at(60))));

    let stale = change(&*store, "peer.example", PeerChange::Stale, 5).await;
    assert_eq!(
        stale,
        PeerRecord {
            fresh_until: None,
            ..seen.clone()
        }
    );

    let second = documented("second", vec![key(3)], at(90));
    let seen = change(&*store, "peer.example", second, 10).await;
    assert_eq!(
        (seen.pinned, seen.document),
        (vec![key(3)], Some(object("second")))
    );
    assert_eq!((seen.first_seen, seen.fresh_until), (at(0), Some(at(90))));
}

/// The first reason stays until the operator takes the new key; decisions stay then.
pub async fn a_peer_is_frozen_until_it_is_repinned<S: Store>(store: Arc<S>) {
    change(
        &*store,
        "peer.example",
        documented("one", vec![key(1)], at(60)),
        0,
    )
    .await;
    change(&*store, "peer.example", PeerChange::Stance(Stance::Limited), 0).await;
    let first = change(&*store, "peer.example", PeerChange::Frozen(frozen("first", 7)), 8).await;
    assert_eq!(first.frozen, Some(frozen("first", 7)));
    let again = change(
        &*store,
        "peer.example",
        PeerChange::Frozen(frozen("second", 9)),
        9,
    )
    .await;
    assert_eq!(again, first);
    let document = documented("two", vec![key(1)], at(70));
    let still = change(&*store, "peer.example", document, 10).await;
    assert_eq!(still.frozen, Some(frozen("first", 7)), "a document ends nothing");

    let free = change(&*store, "peer.example", PeerChange::Repinned, 11).await;
    assert_eq!(
        (free.frozen, free.pinned, free.fresh_until),
        (None, Vec::new(), None)
    );
    assert_eq!(
        (free.stance, free.document),
        (Stance::Limited, Some(object("two")))
    );
    let again = change(
        &*store,
        "peer.example",
        PeerChange::Frozen(frozen("third", 12)),
        12,
    )
    .await;
    assert_eq!(again.frozen, Some(frozen("third", 12)));
}

/// Each by itself, and undone as it was done.
pub async fn operators_decide<S: Store>(store: Arc<S>) {
    for stance in [
        Stance::Allowed,
        Stance::Blocked,
        Stance::Limited,
        Stance::Undecided,
    ] {
        let decided = change(&*store, "peer.example", PeerChange::Stance(stance), 0).await;
        assert_eq!(decided.stance, stance);
    }
    change(&*store, "peer.example", PeerChange::Stance(Stance::Allowed), 0).await;
    let some = PeerLimits {
        items_per_sec: Some(u32::MAX),
        bytes_per_sec: None,
        queue_items: Some(0),
    };
    let other = PeerLimits {
        bytes_per_sec: Some(1 << 40),
        ..PeerLimits::default()
    };
    for limits in [some, other, PeerLimits::default()] {
        let decided = change(&*store, "peer.example", PeerChange::Limits(limits), 0).await;
        assert_eq!((decided.limits, decided.stance), (limits, Stance::Allowed));
    }
}

/// Items add up, moments are the latest ones, whoever comes last.
pub async fn traffic_is_counted<S: Store>(store: Arc<S>) {
    let came = |good_items| PeerChange::CameIn { good_items };
    let seen = change(&*store, "peer.example", came(3), 5).await;
    assert_eq!(
        (seen.last_in, seen.last_out, seen.good_items),
        (Some(at(5)), None, 3)
    );
    let seen = change(&*store, "peer.example", PeerChange::WentOut, 6).await;
    assert_eq!((seen.last_in, seen.last_out), (Some(at(5)), Some(at(6))));
    change(&*store, "peer.example", came(0), 9).await;
    change(&*store, "peer.example", came(4), 8).await;
    let seen = change(&*store, "peer.example", PeerChange::WentOut, 4).await;
    assert_eq!((seen.last_in, seen.last_out), (Some(at(9)), Some(at(6))));
    assert_eq!((seen.good_items, seen.first_seen), (7, at(5)));
}

/// Of many who count at once nobody is lost, and the peer is made once.
pub async fn many_count_at_once<S: Store>(store: Arc<S>) {
    let mut callers = JoinSet::new();
    for n in 1..=16 {
        let store = Arc::clone(&store);
        callers.spawn(async move {
            for _ in 0..5 {
                let came = PeerChange::CameIn { good_items: 2 };
                store.change(&domain("peer.example"), came, at(n)).await.unwrap();
            }
        });
    }
    callers.join_all().await;
    let seen = store.peer(&domain("peer.example")).await.unwrap().unwrap();
    assert_eq!((seen.good_items, seen.last_in), (160, Some(at(16))));
}

/// In the order of their bytes, in pages.
pub async fn peers_are_listed<S: Store>(store: Arc<S>) {
    let domains = [
        "a-b.example",
        "a.example",
        "a.example:8443",
        "b.example",
        "z.example",
    ];
    for peer in domains.iter().rev() {
        change(&*store, peer, PeerChange::Met, 0).await;
    }
    let mut expected = domains.map(domain);
    expected.sort_by(|a, b| a.as_str().cmp(b.as_str()));
    let list = async |after: Option<&Domain>, limit| {
        let page = store.peers(after, limit).await.unwrap();
        page.into_iter().map(|peer| peer.domain).collect::<Vec<_>>()
    };
    assert_eq!(list(None, 10).await, expected);
    assert_eq!(list(None, u32::MAX).await, expected);
    assert_eq!(list(Some(&expected[1]), 2).await, expected[2..4]);
    assert_eq!(list(Some(&domain("aa.example")), 1).await, [domain("b.example")]);
    assert_eq!(list(None, 0).await, []);
}

/// Who was heard of, decided about, frozen or caught stays.
pub async fn only_the_dead_are_forgotten<S: Store>(store: Arc<S>) {
    let limits = PeerLimits {
        queue_items: Some(1),
        ..PeerLimits::default()
    };
    for (peer, changes) in [
        ("dead-a.example", vec![documented("x", vec![key(1)], at(900))]),
        (
            "dead-b.example",
            vec![PeerChange::CameIn { good_items: 1 }, PeerChange::WentOut],
        ),
        (
            "dead-c.example",
            vec![
                PeerChange::Stance(Stance::Blocked),
                PeerChange::Stance(Stance::Undecided),
            ],
        ),
        ("allowed.example", vec![PeerChange::Stance(Stance::Allowed)]),
        ("limits.example", vec![PeerChange::Limits(limits)]),
        ("frozen.example", vec![PeerChange::Frozen(frozen("x", 0))]),
        ("caught.example", vec![PeerChange::Met]),
        ("heard.example", vec![PeerChange::Met]),
        ("answers.example", vec![PeerChange::Met]),
    ] {
        for one in changes {
            change(&*store, peer, one, 10).await;
        }
    }
    change(&*store, "heard.example", PeerChange::CameIn { good_items: 0 }, 20).await;
    change(&*store, "answers.example", PeerChange::WentOut, 20).await;
    change(&*store, "new.example", PeerChange::Met, 20).await;
    let caught = domain("caught.example");
    store
        .add_evidence(&caught, "history_forked", "did", &[], at(10))
        .await
        .unwrap();

    assert_eq!(store.forget_dead(at(10), 10).await.unwrap(), [], "before, not at");
    let two = store.forget_dead(at(20), 2).await.unwrap();
    assert_eq!(two.len(), 2, "no more than asked for");
    let mut forgotten = store.forget_dead(at(20), 10).await.unwrap();
    forgotten.extend(two);
    forgotten.sort();
    assert_eq!(
        forgotten,
        ["dead-a.example", "dead-b.example", "dead-c.example"].map(domain)
    );
    assert_eq!(store.forget_dead(at(20), 10).await.unwrap(), []);
    assert_eq!(store.peers(None, PEERS_PAGE_MAX).await.unwrap().len(), 7);
    assert_eq!(store.peer(&domain("dead-a.example")).await.unwrap(), None);
    let back = change(&*store, "dead-a.example", PeerChange::Met, 30).await;
    assert_eq!(
        (back.first_seen, back.document, back.pinned),
        (at(30), None, Vec::new())
    );
}

/// One at a time, until it ends or is given back.
pub async fn one_holds_the_turn<S: Store>(store: Arc<S>) {
    let peer = domain("peer.example");
    let lease = async |holder, now, until| store.lease(&peer, holder, at(now), at(until)).await.unwrap();
    assert!(lease("one", 0, 10).await);
    assert!(!lease("two", 9, 19).await);
    assert!(lease("one", 5, 15).await, "lengthened");
    assert!(lease("one", 4, 12).await, "a late renewal");
    assert!(!lease("two", 14, 24).await, "which shortened nothing");
    let other = domain("other.example");
    assert!(store.lease(&other, "two", at(0), at(10)).await.unwrap());

    store.release(&peer, "two").await.unwrap();
    assert!(!lease("two", 14, 24).await, "only its holder gives it back");
    assert!(lease("two", 15, 25).await, "it was over");
    assert!(!lease("one", 24, 34).await);
    store.release(&peer, "two").await.unwrap();
    assert!(lease("one", 16, 17).await);
    assert!(!store.lease(&other, "one", at(9), at(19)).await.unwrap());
}

/// Of forty who want it one gets it.
pub async fn one_of_many_gets_the_turn<S: Store>(store: Arc<S>) {
    for round in 0..5 {
        let mut callers = JoinSet::new();
        for n in 0..40 {
            let store = Arc::clone(&store);
            let (now, until) = (at(10 * round), at(10 * round + 10));
            callers.spawn(async move {
                let holder = format!("process {n}");
                store
                    .lease(&domain("peer.example"), &holder, now, until)
                    .await
                    .unwrap()
            });
        }
        let taken = callers.join_all().await;
        assert_eq!(taken.iter().filter(|taken| **taken).count(), 1, "round {round}");
    }
}
