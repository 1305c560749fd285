//! The contract of [`ReceivedStore`](aip_federation::peers::ReceivedStore): each item of a peer once, each nonce once.

use std::sync::Arc;

use aip_federation::peers::{Noted, ReceivedStore};
use aip_protocol::error::ErrorCode;
use aip_protocol::peer::Known::{self, Duplicate, New, Refused};
use tokio::task::JoinSet;

use super::fixtures::at;
use super::peers::{Store, domain};

/// Items that were stored.
pub fn stored(seqs: impl IntoIterator<Item = u64>) -> Vec<Noted> {
    let stored = |peer_seq| Noted {
        peer_seq,
        refused: None,
    };
    seqs.into_iter().map(stored).collect()
}

/// An item that was refused.
pub fn refused(peer_seq: u64, code: ErrorCode) -> Noted {
    Noted {
        peer_seq,
        refused: Some(code),
    }
}

/// What is known of items of peer.example in the epoch `e`.
pub async fn known<S: ReceivedStore>(store: &S, seqs: &[u64]) -> Vec<Known> {
    store.known(&domain("peer.example"), "e", seqs).await.unwrap()
}

/// Notes items of peer.example in the epoch `e`.
pub async fn note<S: ReceivedStore>(store: &S, noted: &[Noted]) -> u64 {
    store.note(&domain("peer.example"), "e", noted).await.unwrap()
}

async fn window<S: ReceivedStore>(store: &S) -> (u64, u64) {
    store.window(&domain("peer.example"), "e").await.unwrap()
}

/// And everything is new.
pub async fn a_window_begins_empty<S: Store>(store: Arc<S>) {
    assert_eq!(known(&*store, &[1, 2, 1]).await, [New, New, New]);
    assert_eq!(known(&*store, &[]).await, []);
    assert_eq!(window(&*store).await, (0, 0));
    assert_eq!(note(&*store, &[]).await, 0);
}

/// In the order in which they come, however that is.
pub async fn items_are_settled_in_any_order<S: Store>(store: Arc<S>) {
    assert_eq!(note(&*store, &stored([2, 4])).await, 0);
    assert_eq!(window(&*store).await, (0, 2));
    assert_eq!(note(&*store, &stored([1])).await, 2);
    assert_eq!(window(&*store).await, (2, 1));
    assert_eq!(
        known(&*store, &[4, 3, 2, 1, 5]).await,
        [Duplicate, New, Duplicate, Duplicate, New]
    );
    assert_eq!(note(&*store, &stored([3, 7, 6])).await, 4);
    assert_eq!(note(&*store, &stored(5..=5)).await, 7);
    assert_eq!(window(&*store).await, (7, 0));
    let far = 9_007_199_254_740_991;
    assert_eq!(note(&*store, &stored([far])).await, 7);
    assert_eq!(known(&*store, &[far - 1, far]).await, [New, Duplicate]);
    assert_eq!(window(&*store).await, (7, 1));
}

/// A refused item is passed over and keeps its code; what was said first stays.
pub async fn what_is_remembered_stays<S: Store>(store: Arc<S>) {
    let unknown = ErrorCode::RecipientUnknown;
    let noted = [
        refused(1, unknown),
        stored([2])[0],
        refused(4, ErrorCode::Expired),
    ];
    assert_eq!(note(&*store, &noted).await, 2);
    let expected = [Refused(unknown), Duplicate, New, Refused(ErrorCode::Expired)];
    assert_eq!(known(&*store, &[1, 2, 3, 4]).await, expected);
    let otherwise = [
        refused(2, unknown),
        stored([1])[0],
        refused(4, ErrorCode::SignatureInvalid),
        stored([4])[0],
    ];
    assert_eq!(note(&*store, &otherwise).await, 2);
    assert_eq!(known(&*store, &[1, 2, 3, 4]).await, expected);
    // Of a number that comes twice the first counts.
    assert_eq!(note(&*store, &[refused(3, unknown), stored([3])[0]]).await, 4);
    assert_eq!(note(&*store, &[stored([5])[0], refused(5, unknown)]).await, 5);
    assert_eq!(known(&*store, &[3, 5]).await, [Refused(unknown), Duplicate]);
}

/// What is said about one says nothing about another.
pub async fn peers_and_epochs_are_apart<S: Store>(store: Arc<S>) {
    let odd = "an epoch with \0, 'quotes' and ü; ".repeat(200);
    let places = [
        ("peer.example", "e"),
        ("peer.example", ""),
        ("peer.example", odd.as_str()),
        ("peer.example:8443", "e"),
        ("other.example", "e"),
    ];
    for (n, (peer, epoch)) in (1..).zip(places) {
        let noted = [refused(n, ErrorCode::Expired)];
        store.note(&domain(peer), epoch, &noted).await.unwrap();
    }
    for (n, (peer, epoch)) in (1..).zip(places) {
        let found = store.known(&domain(peer), epoch, &[1, 2, 3, 4, 5]).await.unwrap();
        let mut expected = [New; 5];
        expected[n - 1] = Refused(ErrorCode::Expired);
        assert_eq!(found, expected, "{peer} {epoch:.20}");
    }
}

/// More than one statement asks for or stores.
pub async fn a_great_many_are_noted_and_known<S: Store>(store: Arc<S>) {
    let noted: Vec<_> = (1..=500)
        .map(|seq| match seq % 3 {
            0 => refused(seq, ErrorCode::RecipientUnknown),
            _ => stored([seq])[0],
        })
        .collect();
    assert_eq!(note(&*store, &noted).await, 500);
    let seqs: Vec<_> = (1..=501).rev().collect();
    for (seq, known) in seqs.iter().zip(known(&*store, &seqs).await) {
        let expected = match seq {
            501 => New,
            seq if seq % 3 == 0 => Refused(ErrorCode::RecipientUnknown),
            _ => Duplicate,
        };
        assert_eq!(known, expected, "{seq}");
    }
}

/// A window that is behind its peer goes on where the peer's outbox begins, and never goes back.
pub async fn what_never_comes_is_passed_over<S: Store>(store: Arc<S>) {
    let peer = domain("peer.example");
    let pass_over = async |through| store.pass_over(&peer, "e", through).await.unwrap();
    assert_eq!(
        note(&*store, &[refused(2, ErrorCode::Expired), stored([5])[0]]).await,
        0
    );
    assert_eq!(pass_over(1).await, 2);
    assert_eq!(
        known(&*store, &[1, 2, 3]).await,
        [Duplicate, Refused(ErrorCode::Expired), New]
    );
    assert_eq!(pass_over(1).await, 2, "not back");
    assert_eq!(pass_over(4).await, 5);
    assert_eq!(window(&*store).await, (5, 0));
    assert_eq!(pass_over(1_000_000).await, 1_000_000);
    assert_eq!(known(&*store, &[7, 1_000_001]).await, [Duplicate, New]);
    assert_eq!(note(&*store, &stored([1_000_001])).await, 1_000_001);
    assert_eq!(
        store.pass_over(&peer, "another", 9).await.unwrap(),
        9,
        "one that is not there yet"
    );
}

/// Sixteen note what overlaps; everything is settled, and each item as one of them said.
pub async fn sixteen_note_what_overlaps<S: Store>(store: Arc<S>) {
    let mut tasks = JoinSet::new();
    for task in 0..16_u64 {
        let store = Arc::clone(&store);
        tasks.spawn(async move {
            for part in 0..12 {
                // Each number is noted by about four tasks, in different company.
                let first = 1 + (part * 16 + task * 7) % 192;
                let seqs = (first..first + 64).map(|seq| (seq - 1) % 192 + 1);
                let noted: Vec<_> = seqs
                    .map(|seq| match seq % 5 {
                        0 => refused(seq, ErrorCode::Expired),
                        _ => stored([seq])[0],
                    })
                    .collect();
                let before = store.window(&domain("peer.example"), "e").await.unwrap().0;
                let floor = note(&*store, &noted).await;
                assert!(floor >= before, "it never goes back");
            }
        });
    }
    tasks.join_all().await;
    assert_eq!(window(&*store).await, (192, 0));
    let seqs: Vec<_> = (1..=192).collect();
    for (seq, known) in seqs.iter().zip(known(&*store, &seqs).await) {
        let expected = if seq % 5 == 0 {
            Refused(ErrorCode::Expired)
        } else {
            Duplicate
        };
        assert_eq!(known, expected, "{seq}");
    }
}

/// Of many who note one item differently at once, one is believed by all.
pub async fn one_of_many_verdicts_stays<S: Store>(store: Arc<S>) {
    for seq in 1..=10 {
        let mut tasks = JoinSet::new();
        for task in 0..8 {
            let store = Arc::clone(&store);
            tasks.spawn(async move {
                let noted = match task % 2 {
                    0 => refused(seq, ErrorCode::Expired),
                    _ => stored([seq])[0],
                };
                note(&*store, &[noted]).await;
                known(&*store, &[seq]).await
            });
        }
        let seen = tasks.join_all().await;
        assert!(
            seen.iter().all(|known| *known == seen[0] && known[0] != New),
            "{seen:?}"
        );
    }
}

/// Until it is over.
pub async fn a_nonce_is_used_once<S: Store>(store: Arc<S>) {
    let (peer, other) = (domain("peer.example"), domain("other.example"));
    let long = "n\0nce ".repeat(500);
    for nonce in ["nonce", "", long.as_str()] {
        assert!(store.use_nonce(&peer, nonce, at(0), at(10)).await.unwrap());
        assert!(!store.use_nonce(&peer, nonce, at(0), at(10)).await.unwrap());
        assert!(store.use_nonce(&other, nonce, at(0), at(10)).await.unwrap());
    }
    assert!(!store.use_nonce(&peer, "nonce", at(9), at(19)).await.unwrap());
    assert!(
        store.use_nonce(&peer, "nonce", at(10), at(20)).await.unwrap(),
        "it was over"
    );
    assert!(!store.use_nonce(&peer, "nonce", at(19), at(29)).await.unwrap());
}

/// What is dropped is over; nothing else goes.
pub async fn nonces_stay_while_others_go<S: Store>(store: Arc<S>) {
    let peer = domain("peer.example");
    let fresh =
        async |nonce: String, now, until| store.use_nonce(&peer, &nonce, at(now), at(until)).await.unwrap();
    for n in 0..40 {
        let until = if n % 2 == 0 { 10 } else { 100 };
        assert!(fresh(format!("early {n}"), 0, until).await);
    }
    for n in 0..40 {
        assert!(fresh(format!("late {n}"), 50, 100).await);
    }
    for n in 0..40 {
        assert_eq!(
            fresh(format!("early {n}"), 60, 100).await,
            n % 2 == 0,
            "early {n}"
        );
        assert!(!fresh(format!("late {n}"), 60, 100).await, "late {n}");
    }
}

/// Of forty requests with one nonce one is let through.
pub async fn one_of_many_uses_a_nonce<S: Store>(store: Arc<S>) {
    for round in 0..5 {
        let mut callers = JoinSet::new();
        for _ in 0..40 {
            let store = Arc::clone(&store);
            // Each time the one before is over.
            let (now, until) = (at(10 * round), at(10 * round + 10));
            callers.spawn(async move {
                let peer = domain("peer.example");
                store.use_nonce(&peer, "nonce", now, until).await.unwrap()
            });
        }
        let fresh = callers.join_all().await;
        assert_eq!(fresh.iter().filter(|fresh| **fresh).count(), 1, "round {round}");
    }
}
