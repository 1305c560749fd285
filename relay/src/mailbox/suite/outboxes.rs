//! Outboxes: what waits for hubs of other domains, how it leaves, and what its senders learn.

use std::collections::BTreeSet;
use std::time::Duration;

use aip_protocol::name::{Did, Domain};
use tokio::task::JoinSet;
use uuid::Uuid;

use super::super::{Append, AppendOutcome, Fate, Fetch, Full, Quota, Route, Select, Settled, Status};
use super::{Context, did, duplicate, forged, letter, outbox, remote, stored};
use crate::limits;
use crate::mailbox::{MailboxId, MailboxState, StatusRecord, StoredMessage};

/// The outbox of yet another peer.
fn third() -> MailboxId {
    MailboxId::of_peer(&Domain::parse("third.example").unwrap())
}

/// An agent of yet another peer.
fn remote_to_third(name: &str) -> Did {
    Did::parse(&format!("did:aip:third.example:{name}")).unwrap()
}

/// Envelope number `n` for an agent of the peer, accepted now.
fn letter_to(cx: &Context, from: &str, to: &str, n: u64) -> Append {
    letter(cx.now(), from, remote(to), n)
}

fn queued_before(seq: u64) -> AppendOutcome {
    AppendOutcome::Duplicate {
        seq: Some(seq),
        route: Route::Peer,
    }
}

/// Alice's letters 1 to `count`, to erin.
async fn letters(cx: &Context, count: u64) {
    for n in 1..=count {
        assert_eq!(cx.append(letter_to(cx, "alice", "erin", n)).await, stored(n));
    }
}

async fn waiting(cx: &Context, outbox: &MailboxId) -> Vec<StoredMessage> {
    let fetch = Fetch {
        select: Select::After(0),
        max_messages: 1_000,
        max_bytes: usize::MAX,
        now: cx.now(),
    };
    cx.store.fetch(outbox, fetch).await.unwrap()
}

async fn waiting_seqs(cx: &Context) -> Vec<u64> {
    let waiting = waiting(cx, &outbox()).await;
    waiting.iter().map(|message| message.seq).collect()
}

async fn state(cx: &Context) -> MailboxState {
    cx.store.state(&outbox()).await.unwrap()
}

async fn settle(cx: &Context, fates: &[(u64, Fate)]) -> Vec<Settled> {
    cx.store.settle_outbox(&outbox(), fates, cx.now()).await.unwrap()
}

/// The places that were settled.
async fn settled(cx: &Context, fates: &[(u64, Fate)]) -> Vec<u64> {
    let settled = settle(cx, fates).await;
    let mut seqs: Vec<u64> = settled.iter().map(|settled| settled.seq).collect();
    seqs.sort_unstable();
    seqs
}

/// What alice learns of her letter number `n` to erin.
async fn record(cx: &Context, n: u64) -> Option<StatusRecord> {
    let (alice, erin) = (did("alice"), remote("erin"));
    let found = cx
        .store
        .status(&alice, Uuid::from_u64_pair(4, n), Some(&erin))
        .await;
    found.unwrap().pop()
}

async fn status(cx: &Context, n: u64) -> Option<(Status, Option<String>)> {
    record(cx, n).await.map(|record| (record.status, record.code))
}

async fn advance(cx: &Context, n: u64, status: Status) -> bool {
    let (alice, erin, id) = (did("alice"), remote("erin"), Uuid::from_u64_pair(4, n));
    let advanced = cx
        .store
        .advance_status(&alice, id, &erin, (status, None), cx.now())
        .await;
    advanced.unwrap()
}

/// A letter waits in the outbox of its recipient's hub and nowhere else; its status is kept by its recipient.
pub async fn a_letter_waits_in_the_outbox(cx: &Context) {
    let sent = letter_to(cx, "alice", "erin", 1);
    assert_eq!(cx.append(sent.clone()).await, stored(1));
    let waiting = waiting(cx, &outbox()).await;
    let shown: Vec<_> = waiting
        .iter()
        .map(|message| {
            (
                message.seq,
                &message.sender,
                &message.recipient,
                message.id,
                &message.wire,
            )
        })
        .collect();
    assert_eq!(shown, [(1, &sent.sender, &sent.recipient, sent.id, &sent.wire)]);
    assert_eq!(
        (waiting[0].accepted_at, waiting[0].expires_at),
        (sent.accepted_at, sent.expires_at)
    );
    let told = record(cx, 1).await.unwrap();
    assert_eq!(
        (told.status, told.seq, told.code),
        (Status::Queued, Some(1), None)
    );
    assert_eq!(
        (told.to, told.accepted_at, told.at),
        (remote("erin"), cx.now(), cx.now())
    );
    let state = state(cx).await;
    assert_eq!((state.floor, state.next_seq, state.pending), (0, 2, 1));
    assert_eq!(state.bytes, sent.wire.len() as u64);
    let mailbox = cx.store.state(&MailboxId::of(&sent.recipient)).await.unwrap();
    assert_eq!(
        (mailbox.next_seq, mailbox.pending),
        (1, 0),
        "no mailbox of its own"
    );
    let stats = cx.store.stats();
    assert_eq!((stats.queued, stats.stored), (1, 0));
}

/// A retry is told where the first one waits or waited: at once, when the outbox is full, and when it has left.
pub async fn a_letter_is_queued_once(cx: &Context) {
    let first = letter_to(cx, "alice", "erin", 1);
    assert_eq!(cx.append(first.clone()).await, stored(1));
    assert_eq!(cx.append(first.clone()).await, queued_before(1));
    let full = Append {
        quota: Quota {
            mailbox_messages: 0,
            ..Quota::default()
        },
        ..first.clone()
    };
    assert_eq!(cx.append(full).await, queued_before(1));
    assert_eq!(cx.append(forged(first.clone())).await, AppendOutcome::Reused);
    assert_eq!(settled(cx, &[(1, Fate::Delivered)]).await, [1]);
    assert_eq!(cx.append(first).await, queued_before(1));
    assert!(waiting(cx, &outbox()).await.is_empty());
    assert_eq!(status(cx, 1).await, Some((Status::Delivered, None)));
}

/// Each peer has its own outbox with its own numbers, and no outbox is an agent's mailbox.
pub async fn row_06_outboxes_and_mailboxes_do_not_mix(cx: &Context) {
    assert_eq!(cx.send(1).await, stored(1));
    assert_eq!(cx.append(letter_to(cx, "alice", "bob", 1)).await, stored(1));
    assert_eq!(cx.append(letter_to(cx, "carol", "erin", 1)).await, stored(2));
    let elsewhere = letter(cx.now(), "alice", remote_to_third("bob"), 1);
    assert_eq!(cx.append(elsewhere).await, stored(1));
    assert_eq!(cx.send(1).await, duplicate(1));
    assert_eq!(cx.pending_seqs().await, [1]);
    assert_eq!(waiting_seqs(cx).await, [1, 2]);
    let all = cx
        .store
        .status(&did("alice"), Uuid::from_u64_pair(4, 1), None)
        .await;
    let all: BTreeSet<_> = all
        .unwrap()
        .into_iter()
        .map(|record| (record.to, record.status.as_str()))
        .collect();
    let expected = [
        (did("bob"), "stored"),
        (remote("bob"), "queued"),
        (remote_to_third("bob"), "queued"),
    ];
    assert_eq!(all, BTreeSet::from(expected));
    assert_eq!(settled(cx, &[(1, Fate::Delivered)]).await, [1]);
    assert_eq!(cx.acked(1, &[]).await, (1, vec![1]));
    assert_eq!(waiting_seqs(cx).await, [2]);
    assert_eq!(waiting(cx, &third()).await.len(), 1);
}

/// What may wait for a peer is bounded, in all and of one sender, whoever the recipients; what leaves makes room.
pub async fn row_83_outboxes_are_bounded(cx: &Context) {
    let quota = Quota {
        mailbox_messages: 3,
        mailbox_bytes: 10_000,
        sender_messages: 2,
    };
    let bounded = |from, to, n| Append {
        quota,
        ..letter_to(cx, from, to, n)
    };
    assert_eq!(cx.append(bounded("alice", "erin", 1)).await, stored(1));
    assert_eq!(cx.append(bounded("alice", "frank", 2)).await, stored(2));
    let third = bounded("alice", "grace", 3);
    assert_eq!(cx.append(third.clone()).await, AppendOutcome::Full(Full::Sender));
    assert_eq!(cx.append(bounded("carol", "erin", 4)).await, stored(3));
    assert_eq!(
        cx.append(bounded("dave", "erin", 5)).await,
        AppendOutcome::Full(Full::MailboxMessages)
    );
    assert_eq!(cx.append(bounded("alice", "erin", 1)).await, queued_before(1));
    let other = letter(cx.now(), "alice", remote_to_third("erin"), 6);
    assert_eq!(
        cx.append(Append { quota, ..other }).await,
        stored(1),
        "another peer has room of its own"
    );
    assert_eq!(settled(cx, &[(2, Fate::Delivered)]).await, [2]);
    assert_eq!(cx.append(third).await, stored(4), "a refused one left no record");
    let mut large = bounded("dave", "erin", 5);
    assert_eq!(settled(cx, &[(1, Fate::Delivered)]).await, [1]);
    large.quota.mailbox_bytes = state(cx).await.bytes;
    assert_eq!(cx.append(large).await, AppendOutcome::Full(Full::MailboxBytes));
}

/// Each letter leaves with its own fate, which its sender learns; no dead letter is left behind.
pub async fn letters_leave_each_with_its_fate(cx: &Context) {
    letters(cx, 5).await;
    cx.wait(60);
    let fates = [
        (2, Fate::Refused("recipient_unknown".into())),
        (1, Fate::Delivered),
        (4, Fate::Expired),
        (3, Fate::Dead("unavailable".into())),
    ];
    let settled = settle(cx, &fates).await;
    let sent = letter_to(cx, "alice", "erin", 2);
    let refused = settled.iter().find(|settled| settled.seq == 2).unwrap();
    assert_eq!(
        (&refused.sender, &refused.recipient, refused.id),
        (&sent.sender, &sent.recipient, sent.id)
    );
    assert_eq!(settled.len(), 4);
    assert_eq!(status(cx, 1).await, Some((Status::Delivered, None)));
    let refused = record(cx, 2).await.unwrap();
    assert_eq!(
        (refused.status, refused.code.as_deref(), refused.at, refused.seq),
        (Status::Refused, Some("recipient_unknown"), cx.now(), Some(2))
    );
    assert_eq!(
        status(cx, 3).await,
        Some((Status::Dead, Some("unavailable".into())))
    );
    assert_eq!(
        status(cx, 4).await,
        Some((Status::Expired, Some("expired".into())))
    );
    assert_eq!(status(cx, 5).await, Some((Status::Queued, None)));
    assert_eq!(waiting_seqs(cx).await, [5]);
    let state = state(cx).await;
    assert_eq!(
        (state.floor, state.next_seq, state.pending, state.dead),
        (4, 6, 1, 0)
    );
    assert_eq!(state.bytes, waiting(cx, &outbox()).await[0].wire.len() as u64);
    assert!(cx.store.dead(&outbox(), 0, 10).await.unwrap().is_empty());
    let stats = cx.store.stats();
    assert_eq!(
        (stats.handed_over, stats.refused, stats.dead, stats.expired),
        (1, 1, 1, 1)
    );
}

/// What has left stays as it was, whatever is told of it afterwards; what never was there is passed over.
pub async fn a_letter_leaves_once(cx: &Context) {
    assert!(
        settle(cx, &[(1, Fate::Delivered)]).await.is_empty(),
        "of an outbox that nobody wrote to"
    );
    letters(cx, 3).await;
    let twice = [(2, Fate::Delivered), (2, Fate::Dead("late".into()))];
    assert_eq!(settled(cx, &twice).await, [2]);
    assert_eq!(settled(cx, &[(2, Fate::Refused("no".into()))]).await, [0; 0]);
    assert_eq!(status(cx, 2).await, Some((Status::Delivered, None)));
    let never = [
        (0, Fate::Delivered),
        (4, Fate::Delivered),
        (u64::MAX, Fate::Expired),
    ];
    assert!(settle(cx, &never).await.is_empty());
    assert!(settle(cx, &[]).await.is_empty());
    assert_eq!(waiting_seqs(cx).await, [1, 3]);
    assert_eq!(cx.append(letter_to(cx, "alice", "erin", 4)).await, stored(4));
    assert_eq!(cx.store.stats().handed_over, 1);
}

/// Letters leave in any order: the floor waits for the lowest one, and no number is given out again.
pub async fn letters_leave_in_any_order(cx: &Context) {
    letters(cx, 6).await;
    let delivered =
        |seqs: &[u64]| -> Vec<(u64, Fate)> { seqs.iter().map(|seq| (*seq, Fate::Delivered)).collect() };
    for (seqs, floor) in [(&[5, 3][..], 0), (&[1], 1), (&[2], 3), (&[6, 4], 6)] {
        assert_eq!(settle(cx, &delivered(seqs)).await.len(), seqs.len());
        assert_eq!(state(cx).await.floor, floor);
    }
    assert_eq!(cx.append(letter_to(cx, "alice", "erin", 7)).await, stored(7));
    assert_eq!(waiting_seqs(cx).await, [7]);
}

/// More than one step takes leave in one call, too.
pub async fn many_letters_leave_at_once(cx: &Context) {
    let many = limits::OUTBOX_SETTLED_AT_ONCE as u64 + 10;
    let mut tasks = JoinSet::new();
    for n in 1..=many {
        let store = cx.store.clone();
        let append = Append {
            quota: Quota {
                mailbox_messages: u32::MAX,
                sender_messages: u32::MAX,
                ..Quota::default()
            },
            ..letter_to(cx, "alice", "erin", n)
        };
        tasks.spawn(async move { store.append(append).await.unwrap() });
    }
    tasks.join_all().await;
    let fates: Vec<_> = (1..=many).map(|seq| (seq, Fate::Delivered)).collect();
    assert_eq!(settled(cx, &fates).await, (1..=many).collect::<Vec<_>>());
    let state = state(cx).await;
    assert_eq!((state.pending, state.bytes, state.floor), (0, 0, many));
}

/// Of many that settle the same letters at the same time, one settles each.
pub async fn concurrent_settlers_share_nothing(cx: &Context) {
    letters(cx, 20).await;
    let mut tasks = JoinSet::new();
    for _ in 0..8 {
        let (store, now) = (cx.store.clone(), cx.now());
        let fates: Vec<_> = (1..=20).map(|seq| (seq, Fate::Delivered)).collect();
        tasks.spawn(async move { store.settle_outbox(&outbox(), &fates, now).await.unwrap() });
    }
    let all = tasks.join_all().await;
    let mut seqs: Vec<u64> = all.into_iter().flatten().map(|settled| settled.seq).collect();
    seqs.sort_unstable();
    assert_eq!(seqs, (1..=20).collect::<Vec<_>>());
    assert_eq!(cx.store.stats().handed_over, 20);
}

/// From its expiry on a letter is not sent any more; a sweep tells its sender, once.
pub async fn an_expired_letter_is_not_sent(cx: &Context) {
    for (n, life) in [(1, 10), (2, 600)] {
        let expires_at = cx.now() + Duration::from_secs(life);
        let append = Append {
            expires_at,
            ..letter_to(cx, "alice", "erin", n)
        };
        assert_eq!(cx.append(append).await, stored(n));
    }
    cx.wait(10);
    assert_eq!(waiting_seqs(cx).await, [2]);
    let swept = cx.store.sweep(cx.now()).await.unwrap();
    let told: Vec<_> = swept
        .expired
        .iter()
        .map(|settled| (settled.seq, settled.recipient.clone()))
        .collect();
    assert_eq!(told, [(1, remote("erin"))]);
    assert_eq!(
        status(cx, 1).await,
        Some((Status::Expired, Some("expired".into())))
    );
    assert!(settle(cx, &[(1, Fate::Delivered)]).await.is_empty());
    assert_eq!(
        status(cx, 1).await,
        Some((Status::Expired, Some("expired".into())))
    );
    let state = state(cx).await;
    assert_eq!((state.floor, state.pending, state.dead), (1, 1, 0));
    assert_eq!(cx.store.stats().expired, 1);
}

/// A letter that nobody sends ends with the time that it may wait.
pub async fn a_letter_waits_for_a_bounded_time(cx: &Context) {
    letters(cx, 1).await;
    cx.wait(limits::OUTBOX_RETENTION_SECS - 1);
    assert_eq!(waiting_seqs(cx).await, [1]);
    cx.wait(1);
    assert!(waiting(cx, &outbox()).await.is_empty());
    cx.wait(limits::RETENTION_SECS - limits::OUTBOX_RETENTION_SECS);
    assert_eq!(cx.store.sweep(cx.now()).await.unwrap().expired.len(), 1);
    assert_eq!(
        status(cx, 1).await,
        Some((Status::Expired, Some("expired".into())))
    );
}

/// What the peer tells of a message that it took is noted, and nothing else is.
pub async fn a_delivered_letter_is_acked_once(cx: &Context) {
    letters(cx, 2).await;
    assert!(!advance(cx, 1, Status::Acked).await, "it waits");
    assert_eq!(
        settled(cx, &[(1, Fate::Delivered), (2, Fate::Refused("no".into()))]).await,
        [1, 2]
    );
    for status in [Status::Queued, Status::Stored, Status::Delivered, Status::Refused] {
        assert!(!advance(cx, 1, status).await, "{status:?}");
    }
    assert!(!advance(cx, 2, Status::Acked).await, "a refusal is final");
    assert!(!advance(cx, 3, Status::Acked).await, "nobody knows it");
    let delivered = record(cx, 1).await.unwrap();
    cx.wait(30);
    assert!(advance(cx, 1, Status::Acked).await);
    let acked = record(cx, 1).await.unwrap();
    assert_eq!(
        acked,
        StatusRecord {
            status: Status::Acked,
            at: cx.now(),
            ..delivered
        }
    );
    for status in [Status::Acked, Status::Dead, Status::Expired] {
        assert!(!advance(cx, 1, status).await, "an ack is final");
    }
    assert_eq!(record(cx, 1).await, Some(acked));
    assert_eq!(status(cx, 2).await, Some((Status::Refused, Some("no".into()))));
}

/// News of the peer come with their code; such as are older than what is known do not set the time back.
pub async fn old_news_do_not_set_the_time_back(cx: &Context) {
    letters(cx, 1).await;
    cx.wait(30);
    assert_eq!(settled(cx, &[(1, Fate::Delivered)]).await, [1]);
    let (alice, erin, id) = (did("alice"), remote("erin"), Uuid::from_u64_pair(4, 1));
    let before = cx.now() - Duration::from_secs(20);
    let advanced = cx
        .store
        .advance_status(&alice, id, &erin, (Status::Dead, Some("no_thanks")), before)
        .await;
    assert!(advanced.unwrap());
    let told = record(cx, 1).await.unwrap();
    assert_eq!((told.status, told.at), (Status::Dead, cx.now()));
    assert_eq!(told.code.as_deref(), Some("no_thanks"));
}

/// A code of the peer longer than its bound is cut, between characters.
pub async fn a_long_code_of_the_peer_is_cut(cx: &Context) {
    letters(cx, 1).await;
    let long = "é".repeat(limits::CODE_BYTES_MAX);
    assert_eq!(settled(cx, &[(1, Fate::Refused(long))]).await, [1]);
    let cut = "é".repeat(limits::CODE_BYTES_MAX / 2);
    assert_eq!(status(cx, 1).await, Some((Status::Refused, Some(cut))));
}
