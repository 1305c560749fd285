//! Receipts: asked for inside the sealed body, given once, and believed only from the very recipient for the very bytes.

use aip_client::inbox::MemoryInbox;
use aip_client::{Client, Content, Draft, KIND_BOUNCE, KIND_RECEIPT, ReceiptState, Registration};
use serde_json::{Value, json};

use crate::aip::Aip;
use crate::fake::FakeHub;
use crate::support::{agent, builder, listen, next, nothing_before_marker, two, within};

fn to(hub: &FakeHub, name: &str) -> String {
    format!("{name}#{}", hub.domain)
}

/// How many messages wait in a mailbox.
fn waiting(hub: &FakeHub, name: &str) -> usize {
    let state = hub.state();
    match state.mailboxes.get(name) {
        Some(mailbox) => mailbox.pending(),
        None => 0,
    }
}

#[tokio::test]
async fn who_asks_gets_the_recipient_s_own_word() {
    let hub = FakeHub::start().await;
    let (alice, bob) = two(&hub).await;
    let draft = Draft::text(to(&hub, "bob"), "sign here").ask_receipt();
    let sealed = alice.seal(&draft).await.unwrap();
    assert!(
        !String::from_utf8_lossy(sealed.wire()).contains("receipt"),
        "no hub learns of the wish"
    );
    alice.submit(&sealed).await.unwrap();
    let mut listener = listen(&bob);
    let message = next(&mut listener).await;
    assert!(message.asks_receipt);
    assert_eq!(message.content.as_text(), Some("sign here"));
    listener.ack(&message).await.unwrap();
    listener.ack(&message).await.unwrap();
    listener.close().await;
    assert_eq!(
        waiting(&hub, "alice"),
        1,
        "one receipt, however often it is acknowledged"
    );

    let mut listener = listen(&alice);
    let mut told = listener.receipts();
    nothing_before_marker(&hub, &mut listener, "alice").await;
    let receipt = within(told.recv()).await.unwrap();
    assert_eq!(receipt.id, sealed.id());
    assert_eq!(Some(receipt.from.clone()), bob.did());
    assert_eq!(receipt.digest, sealed.envelope().multihash());
    assert_eq!(receipt.state, ReceiptState::Delivered);
    assert_eq!(alice.receipt(sealed.id()).await.unwrap(), Some(receipt));
    let read = bob.receipt_for(&message, ReceiptState::Read).unwrap();
    bob.send(&read).await.unwrap();
    let marker = agent(&hub, "carol").await;
    marker
        .send(&Draft::text(to(&hub, "alice"), "after"))
        .await
        .unwrap();
    assert_eq!(next(&mut listener).await.content.as_text(), Some("after"));
    let receipts = alice.receipts().await.unwrap();
    assert_eq!(
        receipts.iter().map(|receipt| receipt.state).collect::<Vec<_>>(),
        [ReceiptState::Read]
    );
}

#[tokio::test]
async fn who_does_not_ask_gets_none_and_who_gives_none_gives_none() {
    let hub = FakeHub::start().await;
    let (alice, bob) = two(&hub).await;
    let drafts = [
        Draft::text(to(&hub, "bob"), "plain"),
        Draft::text(to(&hub, "bob"), "a bounce")
            .kind(KIND_BOUNCE)
            .ask_receipt(),
    ];
    for draft in &drafts {
        alice.send(draft).await.unwrap();
    }
    let mut listener = listen(&bob);
    for _ in &drafts {
        let message = next(&mut listener).await;
        assert!(bob.receipt_for(&message, ReceiptState::Delivered).is_none());
        listener.ack(&message).await.unwrap();
    }
    listener.close().await;
    assert_eq!(waiting(&hub, "alice"), 0);

    let silent = builder(&hub).answer_receipts(false).build().unwrap();
    silent.register("silent", Registration::default()).await.unwrap();
    let asked = Draft::text(to(&hub, "silent"), "please").ask_receipt();
    alice.send(&asked).await.unwrap();
    let mut listener = listen(&silent);
    let message = next(&mut listener).await;
    assert!(message.asks_receipt);
    listener.ack(&message).await.unwrap();
    listener.close().await;
    assert_eq!(waiting(&hub, "alice"), 0);
    // Not even a receipt that asks for one.
    let receipt = silent.receipt_for(&message, ReceiptState::Delivered).unwrap();
    silent.send(&receipt.ask_receipt()).await.unwrap();
    let mut listener = listen(&alice);
    nothing_before_marker(&hub, &mut listener, "alice").await;
    listener.close().await;
    assert_eq!(waiting(&hub, "silent"), 0);
}

#[tokio::test]
async fn long_polls_give_and_take_receipts_too() {
    let hub = FakeHub::start().await;
    let (alice, bob) = two(&hub).await;
    let sent = alice
        .send(&Draft::text(to(&hub, "bob"), "x").ask_receipt())
        .await
        .unwrap();
    let inbox = MemoryInbox::new();
    let messages = bob.poll(&inbox, 10, std::time::Duration::ZERO).await.unwrap();
    bob.settle(&inbox, &messages).await.unwrap();
    let mut listener = listen(&alice);
    nothing_before_marker(&hub, &mut listener, "alice").await;
    assert!(alice.receipt(sent.id).await.unwrap().is_some());
    // The scripted hub polls for bob alone.
    let asked = bob
        .send(&Draft::text(to(&hub, "alice"), "y").ask_receipt())
        .await
        .unwrap();
    let message = next(&mut listener).await;
    listener.ack(&message).await.unwrap();
    listener.close().await;
    let messages = bob.poll(&inbox, 10, std::time::Duration::ZERO).await.unwrap();
    assert!(messages.is_empty(), "a receipt is not for the application");
    assert!(bob.receipt(asked.id).await.unwrap().is_some());
    assert_eq!(waiting(&hub, "bob"), 0, "it is acknowledged");
}

#[tokio::test]
async fn a_receipt_that_cannot_be_kept_holds_up_no_mail() {
    let hub = FakeHub::start().await;
    let alice = agent(&hub, "alice").await;
    let folder = tempfile::tempdir().unwrap();
    let bob = builder(&hub).state_folder(folder.path()).build().unwrap();
    bob.register("bob", Registration::default()).await.unwrap();
    let asked = bob
        .seal(&Draft::text(to(&hub, "alice"), "x").ask_receipt())
        .await
        .unwrap();
    let (id, digest) = (asked.id().to_string(), asked.envelope().multihash());
    says(&alice, claim_to(&hub, "bob", (&id, &digest))).await;
    says(&alice, Draft::text(to(&hub, "bob"), "mail")).await;
    // Something stands in the way of the store.
    let (receipts, aside) = (folder.path().join("receipts"), folder.path().join("aside"));
    std::fs::rename(&receipts, &aside).unwrap();
    std::fs::write(&receipts, "a file").unwrap();
    let inbox = MemoryInbox::new();
    let messages = bob.poll(&inbox, 10, std::time::Duration::ZERO).await.unwrap();
    assert_eq!(messages.len(), 1);
    assert_eq!(messages[0].content.as_text(), Some("mail"));
    assert_eq!(waiting(&hub, "bob"), 2, "the receipt stays in the mailbox");
    std::fs::remove_file(&receipts).unwrap();
    std::fs::rename(&aside, &receipts).unwrap();
    bob.settle(&inbox, &messages).await.unwrap();
    assert!(
        bob.poll(&inbox, 10, std::time::Duration::ZERO)
            .await
            .unwrap()
            .is_empty()
    );
    assert!(bob.receipt(asked.id()).await.unwrap().is_some());
    assert_eq!(waiting(&hub, "bob"), 0);
}

/// A receipt that says this, whoever signs it.
fn claim(hub: &FakeHub, id: &str, digest: &str) -> Draft {
    claim_to(hub, "alice", (id, digest))
}

fn claim_to(hub: &FakeHub, name: &str, (id, digest): (&str, &str)) -> Draft {
    let body = json!({"id": id, "digest": digest, "state": "delivered", "at": "2026-11-30T12:00:00.000Z"});
    Draft::json(to(hub, name), body).kind(KIND_RECEIPT).reply_to(id)
}

async fn says(who: &Client, draft: Draft) {
    who.send(&draft).await.unwrap();
}

#[tokio::test]
async fn lies_are_not_kept() {
    let hub = FakeHub::start().await;
    let (alice, bob) = two(&hub).await;
    let mallory = agent(&hub, "mallory").await;
    let drafts = ["one", "two"].map(|text| Draft::text(to(&hub, "bob"), text).ask_receipt());
    let (one, two) = (
        alice.seal(&drafts[0]).await.unwrap(),
        alice.seal(&drafts[1]).await.unwrap(),
    );
    let unasked = alice.seal(&Draft::text(to(&hub, "bob"), "three")).await.unwrap();
    let (id, digest) = (one.id().to_string(), one.envelope().multihash());
    // Another signer with the right digest; other bytes; a message that never asked; one that never was.
    says(&mallory, claim(&hub, &id, &digest)).await;
    says(&bob, claim(&hub, &id, &two.envelope().multihash())).await;
    says(
        &bob,
        claim(&hub, &unasked.id().to_string(), &unasked.envelope().multihash()),
    )
    .await;
    says(&bob, claim(&hub, "6f8f3f5e-2a52-4e0b-9a5f-6f0c6f1d7c11", &digest)).await;
    // The header and the body speak of two messages; no receipt at all; far too large.
    says(&bob, claim(&hub, &id, &digest).reply_to(two.id().to_string())).await;
    says(
        &bob,
        Draft::new(to(&hub, "alice"), Content::text("got it"))
            .kind(KIND_RECEIPT)
            .reply_to(&id),
    )
    .await;
    let padded = json!({"id": id, "digest": digest, "state": "delivered", "at": "2026-11-30T12:00:00Z",
        "more": "x".repeat(9000)});
    says(
        &bob,
        Draft::json(to(&hub, "alice"), padded)
            .kind(KIND_RECEIPT)
            .reply_to(&id),
    )
    .await;
    let mut listener = listen(&alice);
    nothing_before_marker(&hub, &mut listener, "alice").await;
    assert_eq!(alice.receipts().await.unwrap(), []);
    let codes: Vec<Value> = hub
        .frames("reject")
        .iter()
        .map(|frame| frame["code"].clone())
        .collect();
    assert_eq!(
        codes,
        ["receipt_mismatch", "unreadable", "unreadable", "unreadable"]
    );
    the_truth_is_kept_once(&hub, &bob, (&id, &digest)).await;
    says(&mallory, Draft::text(to(&hub, "alice"), "after")).await;
    assert_eq!(next(&mut listener).await.content.as_text(), Some("after"));
    let receipts = alice.receipts().await.unwrap();
    assert_eq!(receipts.len(), 1);
    assert_eq!(receipts[0].at.to_string(), "2026-11-30T12:00:00.000Z");
}

/// Told again in another envelope, it changes nothing.
async fn the_truth_is_kept_once(hub: &FakeHub, bob: &Client, (id, digest): (&str, &str)) {
    says(bob, claim(hub, id, digest)).await;
    let other_time = json!({"id": id, "digest": digest, "state": "delivered", "at": "2030-01-01T00:00:00Z"});
    let draft = Draft::json(to(hub, "alice"), other_time);
    says(bob, draft.kind(KIND_RECEIPT).reply_to(id)).await;
}

#[tokio::test]
async fn the_command_asks_gives_keeps_and_shows() {
    let hub = FakeHub::start().await;
    let (alice, bob) = (
        Aip::registered(&hub, "alice").await,
        Aip::registered(&hub, "bob").await,
    );
    let sent = alice
        .succeeds(&["--json", "send", &to(&hub, "bob"), "x", "--receipt"])
        .await;
    let sent: Value = serde_json::from_str(&sent).unwrap();
    let id = sent["id"].as_str().unwrap();
    let said = alice.fails(1, &["receipts", id]).await;
    assert!(said.contains("no receipt"), "{said}");
    bob.succeeds(&["listen", "--count", "1"]).await;
    let marker = agent(&hub, "marker").await;
    marker
        .send(&Draft::text(to(&hub, "alice"), "after"))
        .await
        .unwrap();
    alice.succeeds(&["listen", "--count", "1"]).await;
    let shown = alice.succeeds(&["receipts", id]).await;
    assert!(
        shown.contains(id) && shown.contains(&format!("received by {}", to(&hub, "bob"))),
        "{shown}"
    );
    let shown: Value = serde_json::from_str(&alice.succeeds(&["--json", "receipts"]).await).unwrap();
    assert_eq!(shown["id"], id);
    assert_eq!(shown["envelope"]["type"], KIND_RECEIPT);

    alice
        .succeeds(&["send", &to(&hub, "bob"), "y", "--receipt"])
        .await;
    let before = hub.count("/api/v1/messages");
    bob.succeeds(&["listen", "--count", "1", "--no-receipts"]).await;
    assert_eq!(hub.count("/api/v1/messages"), before);
}
