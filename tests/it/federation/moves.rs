//! An agent moves to another hub: it is reached under both names, and mail that was under way arrives.

use std::sync::Arc;

use aip_client::inbox::FileInbox;
use aip_client::{Client, Draft, KeyFile, ListenOptions, Move};
use aip_tests::raw::{Request, ask};
use aip_tests::{TestHub, clients};

use super::{DEADLINE, roomy};

/// The first message of a mailbox, acknowledged.
async fn first(client: &Client, inbox: std::path::PathBuf) -> String {
    let inbox = Arc::new(FileInbox::open(inbox).expect("an inbox"));
    let mut listener = client.listen(inbox, ListenOptions::default());
    let message = tokio::time::timeout(DEADLINE, listener.next())
        .await
        .expect("in time")
        .expect("a message");
    listener.ack(&message).await.expect("recorded");
    listener.close().await;
    message.content.as_text().unwrap_or_default().to_owned()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn an_agent_that_moved_is_reached_under_both_names() {
    let (alpha, beta) = (TestHub::start_with(roomy()), TestHub::start_with(roomy()));
    let alice = clients::agent(&alpha, "alice").await.expect("registered");
    let bob = clients::agent(&alpha, "bob").await.expect("registered");
    let to_bob = clients::handle(&alpha, "bob");
    let sent = alice.send(&Draft::text(&to_bob, "under way")).await;
    sent.expect("taken");
    let moved = bob.move_to(beta.url(), Move::default()).await.expect("moved");

    let resolve = format!("/api/v1/resolve/{}", to_bob.replace('#', "%23"));
    let answer = ask(alpha.url(), &Request::get(resolve)).await;
    assert_eq!(answer.json()["did"], moved.from.as_str());
    assert_eq!(answer.json()["moved_to"], moved.to.as_str());

    let carol = clients::agent(&alpha, "carol").await.expect("registered");
    let sealed = carol.seal(&Draft::text(&to_bob, "hello")).await.expect("sealed");
    assert_eq!(sealed.envelope().to, moved.to);
    let resolved = carol.resolve(&to_bob).await.expect("known");
    assert_eq!(resolved.identity.did(), &moved.to);
    carol.submit(&sealed).await.expect("taken");

    let folder = clients::folder(&alpha, "bob");
    let file = KeyFile::at(folder.join("agent.key"));
    let former = file.former().expect("readable").pop().expect("the old keys");
    let inbox = former.state_folder().join("inbox");
    let builder = Client::builder(alpha.url()).key_file(former).expect("keys");
    let old = builder.build().expect("a client");
    assert_eq!(first(&old, inbox).await, "under way");
    let inbox = file.state_folder().join("inbox");
    assert_eq!(first(&moved.client, inbox).await, "hello");
}
