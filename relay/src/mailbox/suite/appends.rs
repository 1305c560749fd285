//! Append, fetch, dedup and quota.

use std::time::Duration;

use bytes::Bytes;
use futures_util::future::join_all;
use tokio::task::JoinSet;
use tokio::task::coop::unconstrained;

use super::super::{AppendOutcome, Full, Quota, Route, Select, Status};
use super::{Context, bob, did, duplicate, forged, stored};
use crate::mailbox::MailboxId;

/// Sequence numbers start at 1; messages come back in order and byte for byte.
pub async fn appended_is_fetched_in_order(cx: &Context) {
    for n in 1..=5 {
        assert_eq!(cx.send(n).await, stored(n));
    }
    let messages = cx.pending().await;
    assert_eq!(
        messages.iter().map(|message| message.seq).collect::<Vec<_>>(),
        [1, 2, 3, 4, 5]
    );
    for (message, n) in messages.iter().zip(1..) {
        let sent = cx.envelope("alice", "bob", n);
        assert_eq!(
            (&message.wire, message.id, &message.sender),
            (&sent.wire, sent.id, &sent.sender)
        );
        assert_eq!(
            (message.accepted_at, message.expires_at),
            (sent.accepted_at, sent.expires_at)
        );
        assert_eq!((message.attempts, message.sessions), (0, 0));
    }
    let state = cx.state().await;
    assert_eq!(
        (state.floor, state.next_seq, state.pending, state.dead),
        (0, 6, 5, 0)
    );
    assert_eq!(
        state.bytes,
        messages
            .iter()
            .map(|message| message.wire.len() as u64)
            .sum::<u64>()
    );
    assert_eq!(state.epoch, cx.store.epoch());
}

/// Appends that are under way at the same time are stored in the order in which they were begun: so a batch keeps the
/// order of its array.
pub async fn begun_in_order_is_stored_in_order(cx: &Context) {
    // Without the runtime's budget, which would hold up some of them before they ask.
    let answers = unconstrained(join_all((1..=100).map(|n| cx.send(n)))).await;
    assert_eq!(answers, (1..=100).map(stored).collect::<Vec<_>>());
}

/// A mailbox that nobody wrote to is empty, not an error.
pub async fn an_unknown_mailbox_is_empty(cx: &Context) {
    let state = cx.state().await;
    assert_eq!(
        (state.floor, state.next_seq, state.pending, state.bytes),
        (0, 1, 0, 0)
    );
    assert!(cx.pending().await.is_empty());
    assert!(cx.store.dead(&bob(), 0, 10).await.unwrap().is_empty());
    assert_eq!(cx.status(1).await, None);
}

/// A retry gets the first answer's number: at once, after the ack, and when the mailbox is full.
pub async fn a_retry_is_a_duplicate_with_the_first_number(cx: &Context) {
    assert_eq!(cx.send(1).await, stored(1));
    assert_eq!(cx.send(2).await, stored(2));
    assert_eq!(cx.send(1).await, duplicate(1));
    cx.acked(2, &[]).await;
    assert_eq!(cx.send(2).await, duplicate(2));
    let mut full = cx.envelope("alice", "bob", 1);
    full.quota.mailbox_messages = 0;
    assert_eq!(cx.append(full).await, duplicate(1));
    assert_eq!(cx.state().await.next_seq, 3, "a duplicate takes no number");
}

/// The write may have happened although the caller saw an error: the same bytes tell, and always the same.
pub async fn row_45_the_same_id_gets_the_same_result(cx: &Context) {
    let first = cx.send(1).await;
    for _ in 0..3 {
        assert_eq!((first, cx.send(1).await), (stored(1), duplicate(1)));
    }
    assert_eq!(cx.pending_seqs().await, [1]);
}

/// Other bytes under a known id are refused and change nothing.
pub async fn other_bytes_under_one_id_are_refused(cx: &Context) {
    assert_eq!(cx.send(1).await, stored(1));
    let before = cx.pending().await;
    assert_eq!(
        cx.append(forged(cx.envelope("alice", "bob", 1))).await,
        AppendOutcome::Reused
    );
    assert_eq!(cx.pending().await, before);
    assert_eq!(cx.status(1).await, Some((Status::Stored, None)));
    assert_eq!(cx.send(1).await, duplicate(1));
}

/// The id of another sender, or to another recipient, is another message.
pub async fn nobody_can_use_up_the_id_of_another(cx: &Context) {
    let mallory = cx.envelope("mallory", "bob", 1);
    assert_eq!(cx.append(mallory).await, stored(1));
    assert_eq!(cx.send(1).await, stored(2));
    assert_eq!(cx.append(cx.envelope("alice", "carol", 1)).await, stored(1));
}

/// Names that join to the same text stay apart.
pub async fn row_06_mailboxes_and_senders_do_not_mix(cx: &Context) {
    let pairs = [("a", "b.c"), ("a.b", "c"), ("c", "a.b"), ("b.c", "a")];
    for (from, to) in pairs {
        assert_eq!(
            cx.append(cx.envelope(from, to, 1)).await,
            stored(1),
            "{from} to {to}"
        );
    }
    for (_, to) in pairs {
        assert_eq!(cx.store.state(&MailboxId::of(&did(to))).await.unwrap().pending, 1);
    }
}

/// Each quota lets its limit pass and refuses one more; what was refused leaves no record.
pub async fn row_83_quotas_hold_at_the_limit(cx: &Context) {
    let quota = Quota {
        mailbox_messages: 3,
        mailbox_bytes: 100,
        sender_messages: 2,
    };
    let sized = |from: &str, n: u64, bytes: usize| {
        let mut append = cx.envelope(from, "bob", n);
        (append.quota, append.wire) = (quota, Bytes::from(vec![b'x'; bytes]));
        append
    };
    assert_eq!(cx.append(sized("alice", 1, 40)).await, stored(1));
    assert_eq!(cx.append(sized("alice", 2, 40)).await, stored(2));
    assert_eq!(
        cx.append(sized("alice", 3, 1)).await,
        AppendOutcome::Full(Full::Sender)
    );
    assert_eq!(
        cx.append(sized("carol", 4, 21)).await,
        AppendOutcome::Full(Full::MailboxBytes)
    );
    assert_eq!(cx.append(sized("carol", 5, 20)).await, stored(3));
    assert_eq!(
        cx.append(sized("dave", 6, 0)).await,
        AppendOutcome::Full(Full::MailboxMessages)
    );
    assert_eq!(cx.status(3).await, None, "a refused message leaves no status");
    assert_eq!(cx.state().await.bytes, 100);
    // Room again: the very same envelope is taken, so its id was not noted.
    cx.acked(1, &[]).await;
    assert_eq!(cx.append(sized("alice", 3, 1)).await, stored(4));
    let stats = cx.store.stats();
    assert_eq!(
        (stats.stored, stats.full),
        (4, 3),
        "what was refused is not counted as stored"
    );
}

/// Zero means none.
pub async fn a_quota_of_zero_lets_nothing_in(cx: &Context) {
    let none = [
        (
            Quota {
                mailbox_messages: 0,
                ..Quota::default()
            },
            Full::MailboxMessages,
        ),
        (
            Quota {
                mailbox_bytes: 0,
                ..Quota::default()
            },
            Full::MailboxBytes,
        ),
        (
            Quota {
                sender_messages: 0,
                ..Quota::default()
            },
            Full::Sender,
        ),
    ];
    for (quota, full) in none {
        let mut append = cx.envelope("alice", "bob", 1);
        append.quota = quota;
        assert_eq!(cx.append(append).await, AppendOutcome::Full(full));
    }
}

/// What the recipient's endpoint took is remembered and told, but does not wait in the mailbox.
pub async fn a_direct_delivery_is_remembered_only(cx: &Context) {
    let mut direct = cx.envelope("alice", "bob", 1);
    direct.route = Route::Direct;
    assert_eq!(
        cx.append(direct.clone()).await,
        AppendOutcome::Stored { seq: None }
    );
    let again = AppendOutcome::Duplicate {
        seq: None,
        route: Route::Direct,
    };
    assert_eq!(cx.append(direct.clone()).await, again);
    assert_eq!(cx.send(1).await, again, "by whatever route it comes again");
    assert_eq!(cx.append(forged(direct)).await, AppendOutcome::Reused);
    assert!(cx.pending().await.is_empty());
    assert_eq!(cx.status(1).await, Some((Status::Delivered, None)));
    assert_eq!(cx.send(2).await, stored(1), "no number was used");
    let stats = cx.store.stats();
    assert_eq!(
        (stats.direct, stats.stored, stats.duplicates, stats.reused),
        (1, 1, 2, 1)
    );
}

/// A fetch keeps to its bounds, and always shows one message if there is one.
pub async fn a_fetch_is_bounded(cx: &Context) {
    for n in 1..=6 {
        let mut append = cx.envelope("alice", "bob", n);
        append.wire = Bytes::from(vec![b'x'; 1_000]);
        cx.append(append).await;
    }
    let seqs =
        |messages: Vec<super::StoredMessage>| messages.iter().map(|message| message.seq).collect::<Vec<_>>();
    assert_eq!(seqs(cx.fetch(Select::After(0), 2, usize::MAX).await), [1, 2]);
    assert_eq!(seqs(cx.fetch(Select::After(2), 10, 3_000).await), [3, 4, 5]);
    assert_eq!(seqs(cx.fetch(Select::After(2), 10, 2_999).await), [3, 4]);
    assert_eq!(seqs(cx.fetch(Select::After(5), 10, 1).await), [6], "one at least");
    assert!(cx.fetch(Select::After(6), 10, usize::MAX).await.is_empty());
    assert!(cx.fetch(Select::After(u64::MAX), 10, usize::MAX).await.is_empty());
    assert!(cx.fetch(Select::After(0), 0, usize::MAX).await.is_empty());
    assert_eq!(
        seqs(cx.fetch(Select::Seqs(vec![5, 2, 5, 99, 0]), 10, usize::MAX).await),
        [2, 5]
    );
}

/// The largest envelope there is comes back whole.
pub async fn a_large_envelope_comes_back_whole(cx: &Context) {
    let wire: Bytes = (0..256 * 1024_u32)
        .map(|n| n.to_le_bytes()[0] ^ n.to_le_bytes()[1])
        .collect();
    let mut append = cx.envelope("alice", "bob", 1);
    append.wire = wire.clone();
    assert_eq!(cx.append(append).await, stored(1));
    assert_eq!(cx.pending().await.into_iter().next().unwrap().wire, wire);
}

/// Of forty senders of one envelope at once, one is told `stored`.
pub async fn forty_inserts_of_one_key_store_one(cx: &Context) {
    let mut tasks = JoinSet::new();
    for _ in 0..40 {
        let (store, append) = (cx.store.clone(), cx.envelope("alice", "bob", 1));
        tasks.spawn(async move { store.append(append).await.unwrap() });
    }
    let outcomes = tasks.join_all().await;
    assert_eq!(
        outcomes.iter().filter(|outcome| **outcome == stored(1)).count(),
        1
    );
    assert_eq!(
        outcomes
            .iter()
            .filter(|outcome| **outcome == duplicate(1))
            .count(),
        39
    );
    assert_eq!(cx.pending_seqs().await, [1]);
}

/// Many at once: each number is given out once and none is left out.
pub async fn concurrent_appends_get_all_numbers(cx: &Context) {
    let mut tasks = JoinSet::new();
    for n in 1..=200 {
        let (store, mut append) = (cx.store.clone(), cx.envelope("alice", "bob", n));
        append.quota.sender_messages = 200;
        tasks.spawn(async move { store.append(append).await.unwrap() });
    }
    let mut seqs: Vec<u64> = tasks
        .join_all()
        .await
        .into_iter()
        .filter_map(|outcome| {
            if let AppendOutcome::Stored { seq } = outcome {
                seq
            } else {
                None
            }
        })
        .collect();
    seqs.sort_unstable();
    assert_eq!(seqs, (1..=200).collect::<Vec<_>>());
    assert_eq!(cx.pending_seqs().await, seqs);
}

/// The store tells the latest time it has seen, for a clock that never goes back.
pub async fn the_clock_high_water_only_rises(cx: &Context) {
    assert_eq!(cx.store.clock_high_water(), None);
    let start = cx.now();
    cx.send(1).await;
    assert_eq!(cx.store.clock_high_water(), Some(start));
    let mut earlier = cx.envelope("alice", "bob", 2);
    earlier.accepted_at = start - Duration::from_secs(5);
    cx.append(earlier).await;
    assert_eq!(cx.store.clock_high_water(), Some(start));
    cx.wait(7);
    cx.acked(1, &[]).await;
    assert_eq!(cx.store.clock_high_water(), Some(cx.now()));
}
