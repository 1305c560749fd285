//! Receipts across hubs: the recipient's own signed word, which two hubs carry and neither can make or read.

use std::sync::Arc;

use aip_client::inbox::FileInbox;
use aip_client::{Client, Draft, ListenOptions, Listener};
use aip_tests::{TestHub, clients};

use super::{DEADLINE, roomy, until};

fn listen(client: &Client, hub: &TestHub, name: &str) -> Listener {
    let inbox = FileInbox::open(clients::folder(hub, name).join("inbox")).expect("an inbox");
    client.listen(Arc::new(inbox), ListenOptions::default())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_receipt_comes_back_from_another_hub() {
    let (alpha, beta) = (TestHub::start_with(roomy()), TestHub::start_with(roomy()));
    let alice = clients::agent(&alpha, "alice").await.expect("registered");
    let bob = clients::agent(&beta, "bob").await.expect("registered");
    let draft = Draft::text(clients::handle(&beta, "bob"), "sign here").ask_receipt();
    let sealed = alice.seal(&draft).await.expect("sealed");
    alice.submit(&sealed).await.expect("taken");

    let mut at_bob = listen(&bob, &beta, "bob");
    let message = tokio::time::timeout(DEADLINE, at_bob.next())
        .await
        .expect("in time")
        .expect("a message");
    assert_eq!(message.id, sealed.id());
    assert!(message.asks_receipt);
    at_bob.ack(&message).await.expect("recorded");
    at_bob.close().await;

    let mut at_alice = listen(&alice, &alpha, "alice");
    let listening = tokio::spawn(async move { at_alice.next().await.map(|message| message.kind) });
    until("the receipt is kept", || async {
        alice.receipt(sealed.id()).await.expect("readable").is_some()
    })
    .await;
    let receipt = alice.receipt(sealed.id()).await.expect("readable").expect("kept");
    assert_eq!(Some(receipt.from), bob.did());
    assert_eq!(receipt.digest, sealed.envelope().multihash());
    listening.abort();
}
