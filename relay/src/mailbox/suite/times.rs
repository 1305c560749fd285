//! Expiry, sweep, and the dedup window inside a store.

use std::time::Duration;

use super::super::{Quota, Select, Status};
use super::{Context, duplicate, envelope, stored};
use crate::limits;

/// From its expiry on a message is not offered, swept or not; the sweep tells its sender.
pub async fn an_expired_message_is_never_offered(cx: &Context) {
    for (n, life) in [(1, 10), (2, 30), (3, 10)] {
        let mut append = cx.envelope("alice", "bob", n);
        append.expires_at = cx.now() + Duration::from_secs(life);
        cx.append(append).await;
    }
    cx.wait(9);
    assert_eq!(cx.pending_seqs().await, [1, 2, 3]);
    cx.wait(1);
    assert_eq!(cx.pending_seqs().await, [2], "at the very moment");
    assert!(cx.fetch(Select::Seqs(vec![1]), 1, usize::MAX).await.is_empty());
    let swept = cx.store.sweep(cx.now()).await.unwrap();
    assert_eq!(
        swept
            .expired
            .iter()
            .map(|settled| settled.seq)
            .collect::<Vec<_>>(),
        [1, 3]
    );
    assert!(!swept.more);
    let state = cx.state().await;
    assert_eq!((state.floor, state.pending), (1, 1));
    assert_eq!(
        cx.status(1).await,
        Some((Status::Expired, Some("expired".into())))
    );
    assert_eq!(cx.status(2).await, Some((Status::Stored, None)));
    assert!(cx.store.sweep(cx.now()).await.unwrap().expired.is_empty(), "once");
    assert_eq!(cx.acked(2, &[]).await, (3, vec![2]));
    assert_eq!(cx.store.stats().expired, 2);
}

/// What is full of the past takes new mail after a sweep; the oldest goes, nothing else.
pub async fn row_84_expiry_gives_room_back(cx: &Context) {
    let quota = Quota {
        mailbox_messages: 2,
        mailbox_bytes: 10_000,
        sender_messages: 2,
    };
    let short = |n, life| {
        let mut append = cx.envelope("alice", "bob", n);
        (append.quota, append.expires_at) = (quota, cx.now() + Duration::from_secs(life));
        append
    };
    assert_eq!(cx.append(short(1, 60)).await, stored(1));
    assert_eq!(cx.append(short(2, 600)).await, stored(2));
    cx.wait(60);
    cx.store.sweep(cx.now()).await.unwrap();
    assert_eq!(cx.append(short(3, 600)).await, stored(3));
    assert_eq!(cx.pending_seqs().await, [2, 3]);
    let left: u64 = cx
        .pending()
        .await
        .iter()
        .map(|message| message.wire.len() as u64)
        .sum();
    assert_eq!(cx.state().await.bytes, left);
}

/// A message that is accepted with its life behind it, after a sweep, is swept by the next one.
pub async fn a_late_append_is_swept_too(cx: &Context) {
    cx.send(1).await;
    cx.wait(limits::RETENTION_SECS);
    assert_eq!(cx.store.sweep(cx.now()).await.unwrap().expired.len(), 1);
    let mut late = cx.envelope("alice", "bob", 2);
    late.expires_at = cx.now() - Duration::from_secs(5);
    assert_eq!(cx.append(late).await, stored(2));
    assert!(cx.pending().await.is_empty());
    assert_eq!(cx.store.sweep(cx.now()).await.unwrap().expired.len(), 1);
    assert_eq!(cx.state().await.pending, 0);
}

/// A sweep does a bounded amount of work and says when there is more.
pub async fn a_sweep_is_bounded(cx: &Context) {
    let many = limits::SWEEP_ENTRIES_MAX as u64 + 10;
    let now = cx.now();
    let mut tasks = tokio::task::JoinSet::new();
    for n in 1..=many {
        let (store, mut append) = (cx.store.clone(), envelope(now, "alice", "bob", n));
        append.quota = Quota {
            mailbox_messages: u32::MAX,
            sender_messages: u32::MAX,
            ..Quota::default()
        };
        tasks.spawn(async move { store.append(append).await.unwrap() });
    }
    tasks.join_all().await;
    cx.wait(limits::RETENTION_SECS);
    let first = cx.store.sweep(cx.now()).await.unwrap();
    assert_eq!(
        (first.expired.len(), first.more),
        (limits::SWEEP_ENTRIES_MAX, true)
    );
    let rest = cx.store.sweep(cx.now()).await.unwrap();
    assert_eq!((rest.expired.len(), rest.more), (10, false));
    let state = cx.state().await;
    assert_eq!((state.pending, state.bytes, state.floor), (0, 0, many));
}

/// Within the legal interval a retry meets its record, sweeps or not; what became of the message does not
/// matter.
pub async fn a_legal_retry_always_meets_its_record(cx: &Context) {
    let first = cx.envelope("alice", "bob", 1);
    assert_eq!(cx.append(first.clone()).await, stored(1));
    cx.acked(1, &[]).await;
    for _ in 0..90 {
        cx.wait(10);
        cx.store.sweep(cx.now()).await.unwrap();
        let mut retry = first.clone();
        retry.accepted_at = cx.now();
        assert_eq!(cx.append(retry).await, duplicate(1), "at {}", cx.now());
    }
    assert_eq!(cx.now(), first.remember_until);
}
