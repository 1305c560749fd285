//! Hubs of different making federate: one on its own folder, one of two processes on PostgreSQL, NATS and Redis.

use aip_tests::cluster::{Cluster, Engines};
use aip_tests::{HubOptions, TestAgent, TestHub};

use super::{ROOMY, inbox, until};

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn an_embedded_hub_and_one_on_engines_deliver_to_each_other() {
    let cluster = tokio::task::block_in_place(|| Cluster::on(Engines::shared(), 2, ROOMY));
    let (first, second) = (cluster.hub(0), cluster.hub(1));
    // Nobody can look the cluster's domain up by name: the embedded hub is told where it is.
    let told = format!(
        "[federation]\nstatic_peers = [\"{}={}\"]\n",
        first.domain(),
        first.url()
    );
    let alone = TestHub::start_with(HubOptions {
        config: Some(ROOMY.replace("[federation]\n", &told)),
        ..HubOptions::default()
    });
    let alice = TestAgent::registered(&alone, "alice").await;
    let bob = TestAgent::registered(first, "bob").await;
    let carol = TestAgent::registered(second, "carol").await;
    let (alices, bobs) = (alice.token(&alone).await, bob.token(second).await);
    for _ in 0..5 {
        assert_eq!(alice.send(&alone, &bob).await.json()["status"], "queued");
        assert_eq!(bob.send(first, &alice).await.json()["status"], "queued");
        assert_eq!(carol.send(second, &alice).await.json()["status"], "queued");
    }
    until("bob has his mail, whichever process he asks", || async {
        inbox(second, &bobs).await.len() == 5
    })
    .await;
    until("alice has hers, from both processes", || async {
        inbox(&alone, &alices).await.len() == 10
    })
    .await;
}
