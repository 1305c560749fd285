//! What is kept of peers, by several processes and through moves, whichever engine it is.

use std::sync::Arc;

use aip_federation::peers::{
    FederationStore, HistoryCap, HistoryCaps, HistoryStore, PeerChange, PeerStore, ReceivedStore,
    RecordStore, Stance,
};
use aip_protocol::error::ErrorCode;
use aip_protocol::peer::Known::{Duplicate, New, Refused};
use aip_registry::testsuite::fixtures::at;
use aip_registry::testsuite::peer_records::history;
use aip_registry::testsuite::peer_windows::{refused, stored};
use aip_registry::testsuite::peers::{domain, key, object};
use aip_registry::{MemoryStore, SqlStore};
use tokio::task::JoinSet;

use crate::place::{Place, on_both_engines};

on_both_engines!(
    on two threads:
    several_processes_note_what_overlaps,
    several_processes_and_one_turn,
    one_of_several_processes_takes_a_nonce,
    several_processes_count_one_peer,
    several_processes_keep_histories,
    everything_is_there_after_a_restart,
    a_copy_has_everything_and_follows_the_original,
    a_copy_does_not_take_a_window_back,
    damage_of_what_is_kept_of_peers_is_found,
);

/// Three processes of one hub.
async fn processes(place: &Place) -> [Arc<SqlStore>; 3] {
    [place.open().await, place.open().await, place.open().await].map(Arc::new)
}

async fn several_processes_note_what_overlaps(place: Place) {
    let stores = processes(&place).await;
    let mut tasks = JoinSet::new();
    for task in 0..16_u64 {
        let store = Arc::clone(&stores[usize::try_from(task % 3).expect("small")]);
        tasks.spawn(async move {
            for part in 0..8 {
                let peers = ["a.example", "b.example", "c.example"];
                let turn = usize::try_from(task + part).expect("small");
                let peer = domain(peers[turn % 3]);
                let noted: Vec<_> = (1..=64)
                    .map(|n| 1 + (n * 5 + task * 11 + part) % 128)
                    .map(|seq| match seq % 4 {
                        0 => refused(seq, ErrorCode::Expired),
                        _ => stored([seq])[0],
                    })
                    .collect();
                store.note(&peer, "e", &noted).await.expect("noted");
            }
        });
    }
    tasks.join_all().await;
    let all = stored(1..=128);
    for peer in ["a.example", "b.example", "c.example"].map(domain) {
        let [one, two, _] = &stores;
        assert_eq!(one.note(&peer, "e", &all).await.expect("noted"), 128);
        assert_eq!(two.window(&peer, "e").await.expect("read"), (128, 0));
        let known = two.known(&peer, "e", &[1, 2, 3, 129]).await.expect("read");
        assert_eq!(known, [Duplicate, Duplicate, Duplicate, New]);
    }
    assert_eq!(
        stores[0].check_integrity().await.expect("checked"),
        Vec::<String>::new()
    );
}

async fn several_processes_and_one_turn(place: Place) {
    let stores = processes(&place).await;
    for round in 0..10 {
        let mut tasks = JoinSet::new();
        for (n, store) in stores.iter().enumerate() {
            let store = Arc::clone(store);
            let (now, until) = (at(10 * round), at(10 * round + 10));
            tasks.spawn(async move {
                let holder = format!("process {n}");
                let mut taken = 0;
                for _ in 0..4 {
                    let is_taken = store.lease(&domain("peer.example"), &holder, now, until).await;
                    taken += u32::from(is_taken.expect("answered"));
                }
                taken
            });
        }
        let mut taken = tasks.join_all().await;
        taken.sort_unstable();
        assert_eq!(taken, [0, 0, 4], "who has it has it each time, and nobody else");
    }
}

async fn one_of_several_processes_takes_a_nonce(place: Place) {
    let stores = processes(&place).await;
    let mut tasks = JoinSet::new();
    for n in 0..90 {
        let store = Arc::clone(&stores[n % 3]);
        tasks.spawn(async move {
            let nonce = format!("nonce {}", n / 9);
            let used = store
                .use_nonce(&domain("peer.example"), &nonce, at(0), at(9))
                .await;
            u32::from(used.expect("answered"))
        });
    }
    assert_eq!(tasks.join_all().await.into_iter().sum::<u32>(), 10, "each once");
}

async fn several_processes_count_one_peer(place: Place) {
    let stores = processes(&place).await;
    let mut tasks = JoinSet::new();
    for n in 0..30 {
        let store = Arc::clone(&stores[n % 3]);
        tasks.spawn(async move {
            let peer = domain("peer.example");
            let came = PeerChange::CameIn { good_items: 1 };
            store.change(&peer, came, at(1)).await.expect("changed");
            store
                .change(&peer, PeerChange::Met, at(1))
                .await
                .expect("changed");
            store
                .audit(&peer, "hub", "pin", "", at(1))
                .await
                .expect("written");
        });
    }
    tasks.join_all().await;
    let [one, two, _] = &stores;
    let peer = one
        .peer(&domain("peer.example"))
        .await
        .expect("read")
        .expect("a peer");
    assert_eq!(peer.good_items, 30);
    let lines = two.audit_log(None, 0, 100).await.expect("read");
    let numbers: Vec<_> = lines.iter().map(|line| line.number).collect();
    assert_eq!(numbers, (1..=30).collect::<Vec<_>>());
}

/// However they get in each other's way, no more are kept than there is room for, and they are counted right.
async fn several_processes_keep_histories(place: Place) {
    let stores = processes(&place).await;
    let cap = HistoryCap {
        histories: 8,
        bytes: u64::MAX,
    };
    let caps = HistoryCaps {
        per_peer: cap,
        all: cap,
    };
    let mut tasks = JoinSet::new();
    for n in 0..30 {
        let store = Arc::clone(&stores[n % 3]);
        tasks.spawn(async move {
            let new = history(&format!("agent-{}", n % 15), 1 + n / 15, "a", 1);
            store.keep_history(&new, caps).await.expect("kept");
            if n % 5 == 0 {
                store.forget_history(&new.did).await.expect("forgotten");
            }
        });
    }
    tasks.join_all().await;
    let mut kept = 0;
    for n in 0..15 {
        let did = history(&format!("agent-{n}"), 1, "a", 1).did;
        let known = HistoryStore::history(&*stores[0], &did).await.expect("read");
        kept += usize::from(known.is_some());
    }
    assert!((1..=8).contains(&kept), "{kept}");
    assert_eq!(
        stores[0].check_integrity().await.expect("checked"),
        Vec::<String>::new()
    );
}

/// A bit of everything.
async fn fill(store: &SqlStore) {
    let peer = domain("peer.example");
    let document = PeerChange::Documented {
        document: object("document"),
        pinned: vec![key(1), key(2)],
        fresh_until: at(60),
    };
    for change in [
        document,
        PeerChange::Stance(Stance::Limited),
        PeerChange::CameIn { good_items: 7 },
    ] {
        store.change(&peer, change, at(1)).await.expect("changed");
    }
    for n in 0..30 {
        let peer = domain(&format!("peer-{n}.example"));
        store.change(&peer, PeerChange::Met, at(n)).await.expect("met");
    }
    let noted = [refused(2, ErrorCode::Expired), stored([1])[0], stored([9])[0]];
    store.note(&peer, "e", &noted).await.expect("noted");
    assert!(
        store
            .use_nonce(&peer, "nonce", at(0), at(900))
            .await
            .expect("used")
    );
    assert!(store.lease(&peer, "one", at(0), at(900)).await.expect("taken"));
    store
        .keep_history(&history("bob", 3, "a", 1), HistoryCaps::default())
        .await
        .expect("kept");
    store
        .add_evidence(
            &peer,
            "history_forked",
            "bob",
            &[object("known"), object("shown")],
            at(1),
        )
        .await
        .expect("added");
    store
        .audit(&peer, "operator", "limit", "too much", at(1))
        .await
        .expect("written");
}

/// Looks for everything that [`fill`] has put there.
async fn check(store: &SqlStore) {
    let peer = domain("peer.example");
    let record = store.peer(&peer).await.expect("read").expect("a peer");
    assert_eq!(
        (record.document, record.pinned),
        (Some(object("document")), vec![key(1), key(2)])
    );
    assert_eq!((record.stance, record.good_items), (Stance::Limited, 7));
    let known = store.known(&peer, "e", &[1, 2, 3, 9]).await.expect("read");
    assert_eq!(known, [Duplicate, Refused(ErrorCode::Expired), New, Duplicate]);
    assert_eq!(store.window(&peer, "e").await.expect("read"), (2, 1));
    assert!(
        !store
            .use_nonce(&peer, "nonce", at(899), at(999))
            .await
            .expect("answered")
    );
    let bob = history("bob", 3, "a", 1);
    assert_eq!(
        HistoryStore::history(store, &bob.did).await.expect("read"),
        Some(bob)
    );
    assert_eq!(store.evidence(None, 0, 10).await.expect("read").len(), 1);
    assert_eq!(store.audit_log(None, 0, 10).await.expect("read").len(), 1);
    assert_eq!(
        store.check_integrity().await.expect("checked"),
        Vec::<String>::new()
    );
}

async fn everything_is_there_after_a_restart(place: Place) {
    let store = place.open().await;
    fill(&store).await;
    store.close().await;
    let store = place.open().await;
    check(&store).await;
    let peer = domain("peer.example");
    assert!(
        !store
            .lease(&peer, "two", at(899), at(999))
            .await
            .expect("answered")
    );
    // The logs go on where they were.
    store
        .audit(&peer, "hub", "pin", "", at(2))
        .await
        .expect("written");
    store
        .add_evidence(&peer, "history_forked", "zoe", &[], at(2))
        .await
        .expect("added");
    let numbers = (
        store.audit_log(None, 1, 10).await.expect("read")[0].number,
        store.evidence(None, 1, 10).await.expect("read")[0].number,
    );
    assert_eq!(numbers, (2, 2));
}

async fn a_copy_has_everything_and_follows_the_original(place: Place) {
    let from = Place::sqlite();
    let (original, copy) = (from.open().await, place.open().await);
    fill(&original).await;
    let equal = async || original.digest().await.expect("a digest") == copy.digest().await.expect("a digest");
    assert!(!equal().await);
    original.copy_to(&copy).await.expect("copied");
    assert!(equal().await);
    check(&copy).await;
    let peer = domain("peer.example");
    let is_free = copy.lease(&peer, "two", at(0), at(9)).await.expect("answered");
    assert!(is_free, "turns stay with the processes that have them");

    // Whatever can go in the original is gone in the copy.
    original
        .change(&peer, PeerChange::Stance(Stance::Blocked), at(2))
        .await
        .expect("changed");
    original.forget_dead(at(25), 10).await.expect("forgotten");
    original
        .forget_history(&history("bob", 1, "a", 0).did)
        .await
        .expect("forgotten");
    for epoch in 0..16 {
        let noted = [refused(1, ErrorCode::Expired)];
        original
            .note(&peer, &epoch.to_string(), &noted)
            .await
            .expect("noted");
    }
    assert!(
        original
            .use_nonce(&peer, "late", at(950), at(999))
            .await
            .expect("used")
    );
    original
        .audit(&peer, "hub", "freeze", "", at(2))
        .await
        .expect("written");
    assert!(!equal().await);
    original.copy_to(&copy).await.expect("copied");
    assert!(equal().await);
    assert_eq!(
        copy.known(&peer, "e", &[2]).await.expect("read"),
        [New],
        "forgotten with its epoch"
    );
    assert_eq!(copy.peers(None, 100).await.expect("read").len(), 21);
    assert_eq!(
        copy.check_integrity().await.expect("checked"),
        Vec::<String>::new()
    );
}

/// Somebody took mail at the new place already.
async fn a_copy_does_not_take_a_window_back(place: Place) {
    let from = Place::sqlite();
    let (original, copy) = (from.open().await, place.open().await);
    let peer = domain("peer.example");
    original.note(&peer, "e", &stored([1, 2])).await.expect("noted");
    original.copy_to(&copy).await.expect("copied");
    copy.note(&peer, "e", &stored([3, 4])).await.expect("noted");
    copy.audit(&peer, "operator", "allow", "", at(1))
        .await
        .expect("written");
    let met = history("bob", 3, "a", 1);
    copy.keep_history(&met, HistoryCaps::default())
        .await
        .expect("kept");
    original.copy_to(&copy).await.expect("copied");
    assert_eq!(copy.window(&peer, "e").await.expect("read"), (4, 0));
    // A history that only the copy had is gone, and so is the line; what is left was counted anew.
    assert_eq!(HistoryStore::history(&copy, &met.did).await.expect("read"), None);
    assert_eq!(
        copy.check_integrity().await.expect("checked"),
        Vec::<String>::new()
    );
}

async fn damage_of_what_is_kept_of_peers_is_found(place: Place) {
    let store = place.open().await;
    fill(&store).await;
    place
        .damage("DELETE FROM peer_windows; UPDATE peer_log SET audit = 0, history_bytes = 7")
        .await;
    assert_eq!(
        store.check_integrity().await.expect("checked"),
        [
            "an item of peer.example was refused in an epoch that is not known",
            "a line about peer.example is ahead of its log",
            "1 histories of agents elsewhere were counted, which is wrong, or their bytes are"
        ]
    );
    let peer = domain("peer.example");
    store.note(&peer, "e", &stored([1, 3])).await.expect("noted");
    place.damage("UPDATE peer_windows SET above = '7-9'").await;
    store.known(&peer, "e", &[1]).await.expect_err("not believed");
    store
        .note(&peer, "e", &stored([2]))
        .await
        .expect_err("not written over");
    place
        .damage("UPDATE peers SET stance = 'whatever', pinned = 'z'")
        .await;
    store.peer(&peer).await.expect_err("not believed");
}

/// As the hub is given them.
#[tokio::test]
async fn a_store_is_one_object() {
    let (place, memory) = (Place::sqlite(), Arc::new(MemoryStore::new()));
    let sql = Arc::new(place.open().await);
    let stores: [Arc<dyn FederationStore>; 2] = [memory, sql];
    for store in stores {
        assert_eq!(store.peers(None, 10).await.expect("read"), []);
    }
}
