//! Dead letters and statuses.

use std::time::Duration;

use uuid::Uuid;

use super::super::{DeadLetter, Full, Quota, Redrive, RedriveOutcome, Route, Status};
use super::{Context, bob, did, duplicate, stored};
use crate::limits;

async fn bury(cx: &Context, seq: u64, code: &str) -> bool {
    cx.store
        .bury(&bob(), seq, code, cx.now())
        .await
        .unwrap()
        .is_some()
}

async fn dead(cx: &Context) -> Vec<DeadLetter> {
    cx.store.dead(&bob(), 0, 1_000).await.unwrap()
}

async fn redrive(cx: &Context, seq: u64, quota: Quota) -> RedriveOutcome {
    let (now, life) = (cx.now(), Duration::from_secs(limits::RETENTION_SECS));
    cx.store
        .redrive(
            &bob(),
            Redrive {
                seq,
                expires_at: now + life,
                now,
                quota,
            },
        )
        .await
        .unwrap()
}

/// A message that its recipient cannot digest leaves the way; those behind it flow.
pub async fn row_37_a_buried_message_leaves_the_way(cx: &Context) {
    for n in 1..=3 {
        cx.send(n).await;
    }
    let settled = cx
        .store
        .bury(&bob(), 1, "undecodable", cx.now())
        .await
        .unwrap()
        .unwrap();
    let sent = cx.envelope("alice", "bob", 1);
    assert_eq!(
        (settled.seq, settled.id, &settled.sender),
        (1, sent.id, &sent.sender)
    );
    assert_eq!(cx.pending_seqs().await, [2, 3]);
    let state = cx.state().await;
    assert_eq!((state.floor, state.pending, state.dead), (1, 2, 1));
    let letter = dead(cx).await.into_iter().next().unwrap();
    assert_eq!(
        (letter.seq, letter.code.as_str(), letter.at),
        (1, "undecodable", cx.now())
    );
    assert_eq!(
        (letter.wire, letter.id, letter.sender),
        (sent.wire, sent.id, sent.sender)
    );
    assert_eq!(
        cx.status(1).await,
        Some((Status::Dead, Some("undecodable".into())))
    );
    assert!(!bury(cx, 1, "again").await, "it is not pending any more");
    assert!(!bury(cx, 9, "never given out").await);
    assert_eq!(cx.send(1).await, duplicate(1), "dead is still accepted");
    assert_eq!(cx.store.stats().dead, 1);
}

/// From the middle: the floor waits for what is before it.
pub async fn burying_in_the_middle_holds_the_floor(cx: &Context) {
    for n in 1..=3 {
        cx.send(n).await;
    }
    assert!(bury(cx, 2, "x").await);
    assert_eq!(cx.state().await.floor, 0);
    assert_eq!(cx.acked(1, &[]).await, (2, vec![1]));
}

/// A redriven message is pending under a new number, once; the sender sees it stored again.
pub async fn a_redrive_gives_a_new_number(cx: &Context) {
    cx.send(1).await;
    cx.send(2).await;
    bury(cx, 1, "x").await;
    assert_eq!(
        redrive(cx, 1, Quota::default()).await,
        RedriveOutcome::Redriven { seq: 3 }
    );
    assert_eq!(redrive(cx, 1, Quota::default()).await, RedriveOutcome::NotFound);
    assert!(dead(cx).await.is_empty());
    let messages = cx.pending().await;
    assert_eq!(
        messages.iter().map(|message| message.seq).collect::<Vec<_>>(),
        [2, 3]
    );
    let sent = cx.envelope("alice", "bob", 1);
    assert_eq!(
        (&messages[1].wire, messages[1].id, messages[1].attempts),
        (&sent.wire, sent.id, 0)
    );
    assert_eq!(cx.status(1).await, Some((Status::Stored, None)));
    let state = cx.state().await;
    assert_eq!((state.pending, state.dead, state.next_seq), (2, 0, 4));
    assert_eq!(cx.acked(3, &[]).await, (3, vec![2, 3]));
    assert_eq!(cx.status(1).await, Some((Status::Acked, None)));
    assert_eq!(cx.store.stats().redriven, 1);
}

/// A redrive counts towards the mailbox quota; refused, the dead letter stays.
pub async fn a_redrive_into_a_full_mailbox_is_refused(cx: &Context) {
    cx.send(1).await;
    cx.send(2).await;
    bury(cx, 1, "x").await;
    let quota = Quota {
        mailbox_messages: 1,
        ..Quota::default()
    };
    assert_eq!(
        redrive(cx, 1, quota).await,
        RedriveOutcome::Full(Full::MailboxMessages)
    );
    assert_eq!(dead(cx).await.len(), 1);
    let no_sender_room = Quota {
        sender_messages: 0,
        ..Quota::default()
    };
    assert_eq!(
        redrive(cx, 1, no_sender_room).await,
        RedriveOutcome::Redriven { seq: 3 }
    );
}

/// Dead letters are bounded: the one with the lowest number goes first.
pub async fn dead_letters_are_bounded(cx: &Context) {
    let max = limits::DEAD_LETTERS_MAX;
    for n in 1..=max + 2 {
        let mut append = cx.envelope("alice", "bob", n);
        append.quota = Quota {
            sender_messages: u32::MAX,
            mailbox_messages: u32::MAX,
            ..Quota::default()
        };
        cx.append(append).await;
        bury(cx, n, "x").await;
    }
    let letters = dead(cx).await;
    assert_eq!(letters.len() as u64, max);
    assert_eq!((letters[0].seq, cx.state().await.dead), (3, max));
    let page = cx.store.dead(&bob(), 10, 2).await.unwrap();
    assert_eq!(page.iter().map(|letter| letter.seq).collect::<Vec<_>>(), [11, 12]);
}

/// They are kept 14 days from their burial.
pub async fn dead_letters_end_after_fourteen_days(cx: &Context) {
    cx.send(1).await;
    cx.wait(3_600);
    bury(cx, 1, "x").await;
    cx.wait(limits::DEAD_LETTER_SECS - 1);
    assert_eq!(cx.store.sweep(cx.now()).await.unwrap().dead_letters, 0);
    assert_eq!(dead(cx).await.len(), 1);
    cx.wait(1);
    assert_eq!(cx.store.sweep(cx.now()).await.unwrap().dead_letters, 1);
    assert!(dead(cx).await.is_empty());
    assert_eq!(cx.state().await.dead, 0);
}

/// A dead letter may outlive its status; bringing it back then is no trouble.
pub async fn a_late_redrive_leaves_no_status(cx: &Context) {
    cx.send(1).await;
    cx.wait(6 * 86_400);
    bury(cx, 1, "x").await;
    cx.wait(10 * 86_400);
    cx.store.sweep(cx.now()).await.unwrap();
    assert_eq!(
        redrive(cx, 1, Quota::default()).await,
        RedriveOutcome::Redriven { seq: 2 }
    );
    assert_eq!(cx.status(1).await, None);
    assert_eq!(cx.acked(2, &[]).await, (2, vec![2]));
}

/// A code longer than its bound is cut, between characters.
pub async fn a_long_code_is_cut(cx: &Context) {
    cx.send(1).await;
    bury(cx, 1, &"é".repeat(limits::CODE_BYTES_MAX)).await;
    assert_eq!(dead(cx).await[0].code, "é".repeat(limits::CODE_BYTES_MAX / 2));
}

/// One id to two recipients: two records, or the one asked for; another sender's id tells nothing.
pub async fn a_status_is_the_senders(cx: &Context) {
    cx.send(1).await;
    let mut direct = cx.envelope("alice", "carol", 1);
    direct.route = Route::Direct;
    cx.append(direct).await;
    let id = Uuid::from_u64_pair(4, 1);
    let mut all = cx.store.status(&did("alice"), id, None).await.unwrap();
    all.sort_by(|one, other| one.to.as_str().cmp(other.to.as_str()));
    let told: Vec<_> = all
        .iter()
        .map(|record| (record.to.clone(), record.status, record.seq))
        .collect();
    assert_eq!(
        told,
        [
            (did("bob"), Status::Stored, Some(1)),
            (did("carol"), Status::Delivered, None)
        ]
    );
    assert_eq!((all[0].accepted_at, all[0].at), (cx.now(), cx.now()));
    let one = cx
        .store
        .status(&did("alice"), id, Some(&did("carol")))
        .await
        .unwrap();
    assert_eq!(one, all[1..]);
    assert!(
        cx.store
            .status(&did("mallory"), id, None)
            .await
            .unwrap()
            .is_empty()
    );
    assert!(
        cx.store
            .status(&did("alice"), id, Some(&did("dave")))
            .await
            .unwrap()
            .is_empty()
    );
}

/// A status names the time of its last change, and is kept 14 days from acceptance.
pub async fn a_status_is_kept_fourteen_days(cx: &Context) {
    let accepted_at = cx.now();
    cx.send(1).await;
    cx.wait(2 * 86_400);
    cx.acked(1, &[]).await;
    let id = Uuid::from_u64_pair(4, 1);
    let records = cx.store.status(&did("alice"), id, None).await.unwrap();
    assert_eq!(
        records
            .iter()
            .map(|record| (record.accepted_at, record.at))
            .collect::<Vec<_>>(),
        [(accepted_at, cx.now())]
    );
    cx.wait(12 * 86_400);
    cx.store.sweep(cx.now()).await.unwrap();
    // Something later, so that the store knows what time it is.
    assert_eq!(cx.send(2).await, stored(2));
    assert_eq!(
        cx.status(1).await,
        Some((Status::Acked, None)),
        "14 days to the second"
    );
    cx.wait(2 * 86_400);
    cx.store.sweep(cx.now()).await.unwrap();
    cx.send(3).await;
    assert_eq!(cx.status(1).await, None);
}

/// After the window an id is forgotten and may be used again, if unwisely: its status is then that of the newest.
pub async fn an_id_used_again_has_its_newest_status(cx: &Context) {
    cx.send(1).await;
    cx.acked(1, &[]).await;
    cx.wait(86_400);
    cx.send(1).await;
    let (sender, id) = (did("alice"), Uuid::from_u64_pair(4, 1));
    for to in [None, Some(did("bob"))] {
        let found = cx.store.status(&sender, id, to.as_ref()).await.unwrap();
        let found: Vec<_> = found.iter().map(|record| (record.status, record.seq)).collect();
        assert_eq!(found, [(Status::Stored, Some(2))]);
    }
}
