//! One process on engines does what one on its data folder does.

use aip_tests::cluster::{Cluster, Engines};
use aip_tests::keyed;

use super::{acked, inbox, places, sent, status, two};

async fn works(engines: Engines) {
    let cluster = Cluster::on(engines, 1, "");
    let hub = cluster.hub(0);
    let (alice, bob) = two(&cluster).await;
    let (alices, bobs) = (alice.token(hub).await, bob.token(hub).await);

    let envelope = alice.envelope(&bob);
    let answer = keyed::send(hub, envelope.to_wire()).await;
    assert_eq!((answer.status, answer.json()["seq"].as_u64()), (202, Some(1)));
    let answer = keyed::send(hub, envelope.to_wire()).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    assert_eq!(answer.json()["status"], "duplicate");
    assert_eq!(answer.json()["seq"], 1, "the first answer again");
    assert_eq!(sent(hub, &alice, &bob).await, 2);
    status(hub, &alices, envelope.id, "stored").await;

    let waiting = inbox(hub, &bobs).await;
    assert_eq!(places(&waiting), [1, 2]);
    let epoch = &waiting.json()["epoch"];
    assert_eq!(acked(hub, &bobs, epoch, 1).await.status, 200);
    assert_eq!(places(&inbox(hub, &bobs).await), [2]);
    status(hub, &alices, envelope.id, "acked").await;
}

#[tokio::test]
async fn a_hub_on_engines_takes_keeps_and_delivers() {
    works(Engines::shared()).await;
}

/// Each engine by itself, and the rest in the data folder.
#[tokio::test]
async fn any_of_the_engines_may_be_left_out() {
    let all = Engines::shared();
    let none = String::new;
    for (registry, mailboxes, shared) in [
        (all.registry.clone(), none(), none()),
        (none(), all.mailboxes.clone(), none()),
        (Engines::shared().registry, Engines::shared().mailboxes, none()),
        (none(), none(), all.shared.clone()),
    ] {
        works(Engines {
            registry,
            mailboxes,
            shared,
            ..Engines::shared()
        })
        .await;
    }
}

/// What it acknowledged is there after SIGKILL, and its time does not go back.
#[tokio::test]
async fn a_process_that_was_killed_finds_everything_again() {
    let mut cluster = Cluster::start(1);
    let (alice, bob) = two(&cluster).await;
    let envelope = alice.envelope(&bob);
    assert_eq!(keyed::send(cluster.hub(0), envelope.to_wire()).await.status, 202);
    cluster.hub_mut(0).kill();
    cluster.hub_mut(0).restart();
    let hub = cluster.hub(0);
    let token = bob.token(hub).await;
    assert_eq!(places(&inbox(hub, &token).await), [1]);
    let again = keyed::send(hub, envelope.to_wire()).await;
    assert_eq!(again.json()["status"], "duplicate", "{}", again.text());
}
