//! Agents of the scripted hub, and waiting with a deadline.

use std::sync::Arc;
use std::time::Duration;

use aip_client::inbox::MemoryInbox;
use aip_client::{Backoff, Client, ClientBuilder, Draft, Incoming, ListenOptions, Listener, Registration};

use crate::fake::FakeHub;

/// Long enough for a busy machine; a test that reaches it has failed.
pub(crate) const DEADLINE: Duration = Duration::from_mins(1);

/// Tries again at once: what the tests look at is the order of things, not their pace.
pub(crate) const QUICK: Backoff = Backoff {
    base: Duration::from_millis(1),
    cap: Duration::from_millis(5),
};

pub(crate) fn builder(hub: &FakeHub) -> ClientBuilder {
    Client::builder(hub.url()).backoff(QUICK)
}

/// A registered agent with keys in memory.
pub(crate) async fn agent(hub: &FakeHub, name: &str) -> Client {
    let client = builder(hub).build().unwrap();
    client.register(name, Registration::default()).await.unwrap();
    client
}

pub(crate) fn options() -> ListenOptions {
    ListenOptions {
        backoff: QUICK,
        ..ListenOptions::default()
    }
}

pub(crate) fn listen(client: &Client) -> Listener {
    client.listen(Arc::new(MemoryInbox::new()), options())
}

pub(crate) async fn within<T>(what: impl Future<Output = T>) -> T {
    tokio::time::timeout(DEADLINE, what)
        .await
        .expect("within the deadline")
}

pub(crate) async fn next(listener: &mut Listener) -> Incoming {
    within(listener.next()).await.unwrap()
}

/// Waits until it is so.
pub(crate) async fn eventually(what: &str, so: impl Fn() -> bool) {
    let polling = async {
        while !so() {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    };
    assert!(
        tokio::time::timeout(DEADLINE, polling).await.is_ok(),
        "never: {what}"
    );
}

/// Nothing comes: a message that is sent afterwards is the next one.
pub(crate) async fn nothing_before_marker(hub: &FakeHub, listener: &mut Listener, name: &str) {
    let marker = agent(hub, "marker").await;
    let to = format!("{name}#{}", hub.domain);
    marker.send(&Draft::text(to, "marker")).await.unwrap();
    let message = next(listener).await;
    assert_eq!(message.content.as_text(), Some("marker"));
}

/// Alice, who writes, and bob, who listens.
pub(crate) async fn two(hub: &FakeHub) -> (Client, Client) {
    (agent(hub, "alice").await, agent(hub, "bob").await)
}

/// From alice to bob: these numbers, one message each.
pub(crate) async fn send(hub: &FakeHub, alice: &Client, texts: impl IntoIterator<Item = usize>) {
    for text in texts {
        alice
            .send(&Draft::text(format!("bob#{}", hub.domain), text.to_string()))
            .await
            .unwrap();
    }
}

/// Takes so many messages, and acknowledges them; what they said.
pub(crate) async fn take(listener: &mut Listener, count: usize) -> Vec<String> {
    let mut texts = Vec::new();
    for _ in 0..count {
        let message = next(listener).await;
        texts.push(message.content.as_text().unwrap().to_owned());
        listener.ack(&message).await.unwrap();
    }
    texts
}

/// What [`take`] gives for these numbers.
pub(crate) fn texts(range: std::ops::Range<usize>) -> Vec<String> {
    range.map(|n| n.to_string()).collect()
}
