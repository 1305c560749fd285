//! Peers that sell: met, let in, frozen, blocked, asked in turn, forgotten.

use std::sync::Arc;

use aip_protocol::multikey::{SigningKey, VerifyingKey};

use super::fixtures::{Store, at};
use crate::limits::PENDING_PEERS_MAX;
use crate::peers::{Declared, Found, MarketPeer, PeerStatus, RouteMode};
use crate::store::{Crawled, PeerChange, PeerChanged, PeerNote, PreviewRow};

const ONE: &str = "https://one.example";
const TWO: &str = "https://two.example/family";

fn key(number: u8) -> VerifyingKey {
    SigningKey::from_seed([number; 32]).public().clone()
}

fn announced() -> PeerChange {
    PeerChange::Met {
        found: Found::Announced,
        depth: 1,
    }
}

fn approved() -> PeerChange {
    PeerChange::Approved { key: None }
}

fn note(action: &'static str) -> PeerNote {
    PeerNote {
        actor: "operator",
        action,
        detail: "ü'; DROP TABLE market_peers; --\0".to_owned(),
    }
}

fn crawled(number: u8, next: i64) -> PeerChange {
    PeerChange::Crawled(Crawled {
        key: key(number),
        declared: Declared {
            name: Some("ü \0 '".to_owned()),
            hub_version: Some("3.16".to_owned()),
            categories: vec!["a".to_owned(), "b, c".to_owned()],
            capabilities: 9,
            ..Declared::default()
        },
        capabilities: 7,
        preview: vec![PreviewRow {
            product_id: "p".to_owned(),
            capability_id: "c".to_owned(),
            name: "ü \0".to_owned(),
            description: String::new(),
            price_micros: 1,
        }],
        next: at(next),
    })
}

async fn done<S: Store>(store: &S, url: &str, change: PeerChange, secs: i64) -> MarketPeer {
    match store.change_peer(url, change, None, at(secs)).await.unwrap() {
        PeerChanged::Done(peer) => peer,
        other => unreachable!("{other:?}"),
    }
}

async fn actions<S: Store>(store: &S) -> Vec<(u64, String, String)> {
    let lines = store.peer_lines(None, 100).await.unwrap();
    let lines = lines.into_iter().rev();
    lines.map(|line| (line.number, line.actor, line.action)).collect()
}

/// What was never met is absent, however it is called, and nothing but meeting and deciding makes it.
pub async fn nobody_is_there_before<S: Store>(store: Arc<S>) {
    for url in [ONE, "", "a\0b", "'"] {
        assert_eq!(store.market_peer(url).await.unwrap(), None);
        assert_eq!(store.peer_preview(url).await.unwrap(), []);
        assert!(!store.forget_peer(url, Some(note("remove")), at(0)).await.unwrap());
        for change in [
            PeerChange::Repinned { key: Some(key(1)) },
            PeerChange::Mode(RouteMode::Reseller),
            PeerChange::CrawlAt(at(0)),
            crawled(1, 1),
            PeerChange::Failed {
                error: String::new(),
                next: at(1),
            },
        ] {
            let changed = store.change_peer(url, change, Some(note("x")), at(0)).await;
            assert_eq!(changed.unwrap(), PeerChanged::Missing);
        }
    }
    assert_eq!(store.market_peers(None, 10).await.unwrap(), []);
    assert_eq!(store.due_peers(at(1), at(2), 10).await.unwrap(), []);
    assert_eq!(store.forget_silent_peers(at(9), 10).await.unwrap(), 0);
    assert_eq!(store.peer_lines(None, 10).await.unwrap(), []);
}

/// An announcement of a peer that is known changes nothing; the settings let it sell, unless it is blocked.
pub async fn pitfall_46_who_is_met_again_is_as_before<S: Store>(store: Arc<S>) {
    let met = done(&*store, ONE, announced(), 3).await;
    assert_eq!((met.status, met.mode), (PeerStatus::Pending, RouteMode::Broker));
    assert_eq!((met.key.clone(), met.capabilities), (None, 0));
    assert_eq!((met.first_seen, met.crawl_at), (at(3), at(3)));
    assert_eq!(done(&*store, ONE, announced(), 9).await, met);
    let named = PeerChange::Met {
        found: Found::Named(TWO.to_owned()),
        depth: 2,
    };
    assert_eq!(done(&*store, ONE, named.clone(), 9).await, met);
    assert_eq!(store.market_peer(ONE).await.unwrap(), Some(met.clone()));
    let seed = PeerChange::Met {
        found: Found::Seed,
        depth: 0,
    };
    let seeded = done(&*store, ONE, seed.clone(), 9).await;
    assert_eq!((seeded.status, seeded.first_seen), (PeerStatus::Active, at(3)));
    done(&*store, ONE, PeerChange::Blocked, 9).await;
    assert_eq!(
        done(&*store, ONE, seed.clone(), 9).await.status,
        PeerStatus::Blocked
    );
    assert_eq!(
        done(&*store, TWO, named, 9).await.found,
        Found::Named(TWO.to_owned())
    );
    let third = "https://three.example";
    assert_eq!(done(&*store, third, seed, 9).await.status, PeerStatus::Active);
}

/// All of it comes back.
pub async fn a_peer_is_crawled<S: Store>(store: Arc<S>) {
    done(&*store, ONE, announced(), 0).await;
    let failed = PeerChange::Failed {
        error: "it \0 did not answer".to_owned(),
        next: at(60),
    };
    let silent = done(&*store, ONE, failed.clone(), 1).await;
    assert_eq!(
        (silent.failures, silent.last_try, silent.last_crawl),
        (1, Some(at(1)), None)
    );
    assert_eq!(silent.last_error.as_deref(), Some("it \u{fffd} did not answer"));
    assert_eq!(done(&*store, ONE, failed, 2).await.failures, 2);
    let good = done(&*store, ONE, crawled(1, 90), 60).await;
    assert_eq!((good.failures, good.last_error.clone()), (0, None));
    assert_eq!((good.key.clone(), good.capabilities), (Some(key(1)), 7));
    assert_eq!((good.last_crawl, good.crawl_at), (Some(at(60)), at(90)));
    assert_eq!(
        good.status,
        PeerStatus::Pending,
        "nothing that it says lets it sell"
    );
    let PeerChange::Crawled(said) = crawled(1, 90) else {
        unreachable!()
    };
    assert_eq!(good.declared, said.declared);
    assert_eq!(store.market_peer(ONE).await.unwrap(), Some(good));
    assert_eq!(store.peer_preview(ONE).await.unwrap(), said.preview);
    let active = done(&*store, ONE, approved(), 61).await;
    assert_eq!((active.status, active.crawl_at), (PeerStatus::Active, at(61)));
    done(&*store, ONE, crawled(1, 99), 62).await;
    assert_eq!(
        store.peer_preview(ONE).await.unwrap(),
        [],
        "it is sold, and no preview"
    );
    let mode = done(&*store, ONE, PeerChange::Mode(RouteMode::SellsFor), 62).await;
    assert_eq!(store.market_peer(ONE).await.unwrap(), Some(mode.clone()));
    assert_eq!(mode.mode, RouteMode::SellsFor);
    assert_eq!(
        done(&*store, ONE, crawled(1, 99), 63).await.mode,
        RouteMode::SellsFor
    );
    assert_eq!(actions(&*store).await, [(1, "hub".to_owned(), "pin".to_owned())]);
}

/// Frozen, and visible as it; only the pinned key or the operator thaws it.
pub async fn pitfall_50_another_key_freezes_a_peer<S: Store>(store: Arc<S>) {
    done(&*store, ONE, approved(), 0).await;
    done(&*store, ONE, crawled(1, 9), 1).await;
    let frozen = done(&*store, ONE, crawled(2, 9), 2).await;
    assert_eq!(
        (frozen.status, frozen.key.clone()),
        (PeerStatus::KeyMismatch, Some(key(1)))
    );
    assert_eq!(
        (frozen.advertised_key.clone(), frozen.last_crawl),
        (Some(key(2)), Some(at(1)))
    );
    let approve = done(&*store, ONE, approved(), 3).await;
    assert_eq!(approve.status, PeerStatus::KeyMismatch, "it is no new peer");
    let thawed = done(&*store, ONE, crawled(1, 9), 4).await;
    assert_eq!((thawed.status, thawed.advertised_key), (PeerStatus::Active, None));
    let shown = PeerChange::Mismatched {
        shown: key(3),
        next: at(9),
    };
    for _ in 0..2 {
        assert_eq!(
            done(&*store, ONE, shown.clone(), 5).await.status,
            PeerStatus::KeyMismatch
        );
    }
    let repinned = done(&*store, ONE, PeerChange::Repinned { key: None }, 6).await;
    assert_eq!(
        (repinned.status, repinned.key),
        (PeerStatus::Active, Some(key(3)))
    );
    let none = store.change_peer(
        ONE,
        PeerChange::Repinned { key: None },
        Some(note("repin")),
        at(7),
    );
    assert_eq!(none.await.unwrap(), PeerChanged::NoKey);
    let named = done(&*store, ONE, PeerChange::Repinned { key: Some(key(1)) }, 8).await;
    assert_eq!(named.key, Some(key(1)));
    let actions: Vec<_> = actions(&*store)
        .await
        .into_iter()
        .map(|(_, _, action)| action)
        .collect();
    assert_eq!(actions, ["pin", "freeze", "thaw", "freeze"]);
}

/// The key of a peer that is pending is pinned, too: it is not let in with another one.
pub async fn a_pending_peer_that_changes_its_key_is_not_let_in<S: Store>(store: Arc<S>) {
    done(&*store, ONE, announced(), 0).await;
    done(&*store, ONE, crawled(1, 9), 1).await;
    let other = done(&*store, ONE, crawled(2, 9), 2).await;
    assert_eq!(
        (other.status, other.advertised_key),
        (PeerStatus::Pending, Some(key(2)))
    );
    // However many it shows, the log is not for strangers to fill.
    for number in [3, 4, 2] {
        let shown = PeerChange::Mismatched {
            shown: key(number),
            next: at(9),
        };
        let other = done(&*store, ONE, shown, 2).await;
        assert_eq!(
            (other.status, other.advertised_key),
            (PeerStatus::Pending, Some(key(number)))
        );
    }
    assert_eq!(actions(&*store).await, [(1, "hub".to_owned(), "pin".to_owned())]);
    assert_eq!(
        done(&*store, ONE, approved(), 3).await.status,
        PeerStatus::KeyMismatch
    );
    // It was let in: a further key is told, once.
    for _ in 0..2 {
        done(&*store, ONE, crawled(5, 9), 3).await;
    }
    let freeze = (2, "hub".to_owned(), "freeze".to_owned());
    assert_eq!(actions(&*store).await.last(), Some(&freeze));
    let by_key = PeerChange::Approved { key: Some(key(2)) };
    let active = done(&*store, ONE, by_key, 4).await;
    assert_eq!((active.status, active.key), (PeerStatus::Active, Some(key(2))));
}

/// The same key at two addresses is one peer.
pub async fn pitfall_49_one_key_is_one_peer<S: Store>(store: Arc<S>) {
    done(&*store, ONE, approved(), 0).await;
    done(&*store, ONE, crawled(1, 9), 1).await;
    let used = PeerChanged::KeyInUse { url: ONE.to_owned() };
    let by_key = PeerChange::Approved { key: Some(key(1)) };
    let changed = store.change_peer(TWO, by_key, Some(note("approve")), at(2)).await;
    assert_eq!(changed.unwrap(), used);
    assert_eq!(store.market_peer(TWO).await.unwrap(), None);
    done(&*store, TWO, approved(), 3).await;
    let second = done(&*store, TWO, crawled(1, 9), 4).await;
    assert_eq!(
        (second.status, second.key, second.capabilities),
        (PeerStatus::Pending, None, 0)
    );
    assert!(second.last_error.unwrap().contains(ONE));
    let repinned = PeerChange::Repinned { key: Some(key(1)) };
    done(&*store, TWO, PeerChange::Approved { key: Some(key(2)) }, 5).await;
    assert_eq!(store.change_peer(TWO, repinned, None, at(6)).await.unwrap(), used);
    done(&*store, ONE, PeerChange::Blocked, 7).await;
    let by_key = PeerChange::Approved { key: Some(key(1)) };
    assert_eq!(
        done(&*store, TWO, by_key, 8).await.status,
        PeerStatus::Active,
        "the other one sells no more"
    );
}

/// A blocked one is not asked, and no answer that was under way brings it back.
pub async fn a_blocked_peer_stays_blocked<S: Store>(store: Arc<S>) {
    let blocked = done(&*store, ONE, PeerChange::Blocked, 0).await;
    assert_eq!(blocked.status, PeerStatus::Blocked);
    assert_eq!(store.due_peers(at(9), at(99), 10).await.unwrap(), []);
    let shown = PeerChange::Mismatched {
        shown: key(3),
        next: at(9),
    };
    for change in [crawled(1, 9), announced(), shown] {
        let after = done(&*store, ONE, change, 1).await;
        assert_eq!((after.status, after.key), (PeerStatus::Blocked, None));
    }
    assert_eq!(done(&*store, ONE, approved(), 2).await.status, PeerStatus::Active);
}

/// Each once, the longest waiting first; who took one and went away has it asked again after a while.
pub async fn peers_are_asked_in_turn<S: Store>(store: Arc<S>) {
    for (url, secs) in [
        ("https://a.example", 3),
        ("https://b.example", 1),
        ("https://c.example", 2),
    ] {
        done(&*store, url, announced(), secs).await;
    }
    let urls = |peers: Vec<MarketPeer>| peers.into_iter().map(|peer| peer.url).collect::<Vec<_>>();
    let take = async |secs: i64, limit: u32| {
        let taken = store.due_peers(at(secs), at(secs + 60), limit).await.unwrap();
        urls(taken)
    };
    assert_eq!(take(0, 10).await, Vec::<String>::new());
    assert_eq!(take(4, 2).await, ["https://b.example", "https://c.example"]);
    assert_eq!(take(5, 2).await, ["https://a.example"]);
    assert_eq!(take(60, 2).await, Vec::<String>::new());
    assert_eq!(take(64, 2).await, ["https://b.example", "https://c.example"]);
    done(&*store, "https://a.example", PeerChange::CrawlAt(at(64)), 64).await;
    assert_eq!(take(64, 2).await, ["https://a.example"]);
    let page = store.market_peers(Some("https://a.example"), 1).await.unwrap();
    assert_eq!(urls(page), ["https://b.example"]);
    // Those that were let in wait for no stranger.
    done(&*store, "https://d.example", approved(), 200).await;
    assert_eq!(take(200, 2).await, ["https://d.example", "https://a.example"]);
}

/// However many strangers show the key of a hub, it is seen that the hub sells with it.
pub async fn strangers_with_its_key_hide_no_peer<S: Store>(store: Arc<S>) {
    for number in 0..=100 {
        let url = format!("https://a{number}.example");
        done(&*store, &url, announced(), 0).await;
        let met = done(&*store, &url, crawled(1, 9), 1).await;
        assert_eq!((met.status, met.key), (PeerStatus::Pending, Some(key(1))));
    }
    done(&*store, ONE, PeerChange::Approved { key: Some(key(1)) }, 2).await;
    let changed = store
        .change_peer("https://a0.example", approved(), None, at(3))
        .await;
    assert_eq!(changed.unwrap(), PeerChanged::KeyInUse { url: ONE.to_owned() });
}

/// Strangers that are named and never answer go; others stay.
pub async fn silent_peers_are_forgotten<S: Store>(store: Arc<S>) {
    for url in ["https://a.example", "https://b.example", "https://c.example"] {
        done(&*store, url, announced(), 0).await;
    }
    done(&*store, "https://b.example", crawled(1, 9), 5).await;
    done(&*store, "https://c.example", approved(), 1).await;
    done(&*store, "https://d.example", announced(), 6).await;
    assert_eq!(store.forget_silent_peers(at(0), 10).await.unwrap(), 0);
    assert_eq!(store.forget_silent_peers(at(5), 10).await.unwrap(), 1);
    let left = store.market_peers(None, 10).await.unwrap();
    let left: Vec<_> = left.iter().map(|peer| peer.url.as_str()).collect();
    assert_eq!(
        left,
        ["https://b.example", "https://c.example", "https://d.example"]
    );
    assert_eq!(store.forget_silent_peers(at(6), 10).await.unwrap(), 1);
    assert_eq!(store.peer_preview("https://b.example").await.unwrap(), []);
}

/// The log stays when the peer goes.
pub async fn what_was_decided_is_kept<S: Store>(store: Arc<S>) {
    for (action, change) in [("approve", approved()), ("block", PeerChange::Blocked)] {
        store
            .change_peer(ONE, change, Some(note(action)), at(1))
            .await
            .unwrap();
    }
    assert!(store.forget_peer(ONE, Some(note("remove")), at(2)).await.unwrap());
    assert_eq!(store.market_peer(ONE).await.unwrap(), None);
    let lines = store.peer_lines(None, 2).await.unwrap();
    let numbers: Vec<_> = lines
        .iter()
        .map(|line| (line.number, line.action.as_str()))
        .collect();
    assert_eq!(numbers, [(3, "remove"), (2, "block")]);
    assert_eq!((lines[0].at, lines[0].peer.as_str()), (at(2), ONE));
    assert!(lines[0].detail.starts_with("ü'; DROP TABLE market_peers; --"));
    let older = store.peer_lines(Some(2), 5).await.unwrap();
    assert_eq!((older.len(), older[0].action.as_str()), (1, "approve"));
}

/// Anybody can name any number of hubs; the operator and the settings are not held up by it.
pub async fn pitfall_46_pending_peers_are_bounded<S: Store>(store: Arc<S>) {
    for number in 0..PENDING_PEERS_MAX {
        done(&*store, &format!("https://h{number}.example"), announced(), 0).await;
    }
    let full = store.change_peer(ONE, announced(), None, at(1)).await.unwrap();
    assert_eq!(full, PeerChanged::Full);
    done(&*store, "https://h0.example", announced(), 1).await;
    done(&*store, ONE, approved(), 1).await;
    done(&*store, "https://h0.example", PeerChange::Blocked, 1).await;
    done(&*store, TWO, announced(), 1).await;
}
