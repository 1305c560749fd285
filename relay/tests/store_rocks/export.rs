//! A store read from end to end.

use std::collections::BTreeSet;
use std::time::Duration;

use aip_relay::mailbox::suite::{did, envelope, letter, outbox, remote};
use aip_relay::mailbox::{MailboxId, Mailboxes as _, Route, Status};

use super::ground::{Ground, start};

/// Pages of two, whatever there is.
const PAGE: usize = 2;

#[tokio::test]
async fn every_mailbox_and_every_status_is_met_once() {
    let ground = Ground::new();
    let store = ground.open();
    let names = ["bob", "carol", "dave", "erin", "frank"];
    for (n, name) in (0..).zip(names) {
        // Over several days, so that statuses lie in several buckets.
        let at = start() + Duration::from_hours(20 * n);
        store.append(envelope(at, "alice", name, n)).await.unwrap();
    }

    // Mail for other hubs lies in outboxes, which are walked over like mailboxes.
    let abroad = letter(start() + Duration::from_hours(120), "alice", remote("erin"), 9);
    store.append(abroad).await.unwrap();

    let mut mailboxes = Vec::new();
    loop {
        let page = store
            .mailboxes_after(mailboxes.last().copied(), PAGE)
            .await
            .unwrap();
        if page.is_empty() {
            break;
        }
        mailboxes.extend(page);
    }
    let own = names.iter().map(|name| MailboxId::of(&did(name)));
    let expected: BTreeSet<_> = own.chain([outbox()]).collect();
    assert_eq!(mailboxes, expected.into_iter().collect::<Vec<_>>());

    let mut statuses = Vec::new();
    loop {
        let page = store.statuses_after(statuses.last(), PAGE).await.unwrap();
        if page.is_empty() {
            break;
        }
        statuses.extend(page);
    }
    let told: Vec<_> = statuses.iter().map(|kept| kept.record.to.clone()).collect();
    let expected: Vec<_> = names.map(did).into_iter().chain([remote("erin")]).collect();
    assert_eq!(told, expected, "in the order of acceptance");
    assert!(
        statuses
            .iter()
            .all(|kept| kept.sender == MailboxId::of(&did("alice")))
    );
    let last = statuses.pop().unwrap();
    assert_eq!((last.record.status, last.record.seq), (Status::Queued, Some(1)));
    assert!(statuses.iter().all(|kept| kept.record.status == Status::Stored));
}

#[tokio::test]
async fn what_is_remembered_is_told_until_it_is_forgotten() {
    let ground = Ground::new();
    let store = ground.open();
    let mail = envelope(start(), "alice", "bob", 1);
    assert_eq!(store.accepted(mail.dedup_key, start()).await.unwrap(), None);
    store.append(mail.clone()).await.unwrap();
    let accepted = store.accepted(mail.dedup_key, start()).await.unwrap().unwrap();
    assert_eq!(accepted.digest, mail.digest);
    assert_eq!((accepted.seq, accepted.route), (Some(1), Route::Mailbox));
    assert_eq!(accepted.until, mail.remember_until);
    let over = mail.remember_until + Duration::from_millis(1);
    assert_eq!(store.accepted(mail.dedup_key, over).await.unwrap(), None);
}
