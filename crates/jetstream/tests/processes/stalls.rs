//! A way to the server that does not break, but does not lead there either.

use std::sync::Arc;
use std::time::Duration;

use aip_engines::{Nats, NatsOptions, Proxy};
use aip_jetstream::JetStreamMailboxes;
use aip_relay::mailbox::suite::bob;
use aip_relay::mailbox::{AppendOutcome, Health, Mailboxes, StoreError, Upkeep};

use crate::kit::{
    PATIENCE, acked, append_until_known, eventually, impatient, mail, now, pending_seqs, seq_of, state,
};
use crate::stores::{open_forgetful, options};

struct Ground {
    _server: Nats,
    proxy: Proxy,
    /// By way of the proxy.
    far: Arc<JetStreamMailboxes>,
    near: JetStreamMailboxes,
}

async fn ground(prefix: &str) -> Ground {
    let server = Nats::start(NatsOptions::default());
    let proxy = Proxy::to(server.address());
    let near = open_forgetful(options(&server.url(), prefix)).await;
    let far = impatient(options(&proxy.url(&server.url()), prefix));
    Ground {
        far: Arc::new(open_forgetful(far).await),
        near,
        proxy,
        _server: server,
    }
}

/// Whatever is asked while nothing passes: an answer comes, and it is no yes.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stalled_connection_ends_in_an_honest_error() {
    let ground = ground("stall").await;
    assert_eq!(seq_of(ground.far.append(mail(1)).await.unwrap()), 1);
    ground.proxy.stall();
    let calls = async {
        let sent = [mail(2), mail(3), mail(4)];
        let appends = sent.map(|append| ground.far.append(append));
        for outcome in futures_util::future::join_all(appends).await {
            assert!(
                matches!(
                    outcome,
                    Err(StoreError::OutcomeUnknown(_) | StoreError::Unavailable(_))
                ),
                "{outcome:?}"
            );
        }
        assert!(ground.far.state(&bob()).await.is_err());
        assert!(ground.far.ack(&bob(), 1, &[], now()).await.is_err());
    };
    tokio::time::timeout(PATIENCE, calls).await.unwrap();
    ground.proxy.heal();
    let mut seqs: Vec<u64> = Vec::new();
    for n in 2..=4 {
        seqs.push(seq_of(append_until_known(&ground.far, &mail(n)).await));
    }
    seqs.sort_unstable();
    assert_eq!(seqs, [2, 3, 4], "each once");
    let floor = state(&ground.near).await.floor;
    assert!(floor <= 1, "{floor}");
    assert_eq!(acked(&ground.far, 1, &[]).await.0, 1);
    assert_eq!(pending_seqs(&ground.near).await, [2, 3, 4]);
}

/// What was done although nobody heard of it: the outcome is unknown, and a retry tells it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lost_answer_is_told_by_a_retry() {
    let ground = ground("mute").await;
    ground.far.append(mail(1)).await.unwrap();
    ground.proxy.mute();
    let unheard = ground.far.append(mail(2)).await;
    assert!(
        matches!(unheard, Err(StoreError::OutcomeUnknown(_))),
        "{unheard:?}"
    );
    eventually("it is stored", async || {
        pending_seqs(&ground.near).await == [1, 2]
    })
    .await;
    let unheard = ground.far.ack(&bob(), 1, &[], now()).await;
    assert!(
        matches!(unheard, Err(StoreError::OutcomeUnknown(_))),
        "{unheard:?}"
    );
    ground.proxy.cut();
    eventually("the loss is noticed", async || {
        matches!(ground.far.health(), Health::Unreachable { .. })
    })
    .await;
    let refused = ground.far.append(mail(3)).await;
    assert!(matches!(refused, Err(StoreError::Unavailable(_))), "{refused:?}");
    ground.proxy.heal();
    let again = append_until_known(&ground.far, &mail(2)).await;
    assert!(
        matches!(again, AppendOutcome::Duplicate { seq: Some(2), .. }),
        "{again:?}"
    );
    assert_eq!(acked(&ground.far, 1, &[]).await.0, 1);
    assert_eq!(pending_seqs(&ground.near).await, [2]);
    assert_eq!(seq_of(ground.near.append(mail(3)).await.unwrap()), 3);
    assert_eq!(ground.far.health(), Health::Ready);
}

/// Forty callers of one mailbox behind a stalled connection do not wait for each other's time-outs.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_queue_of_appends_does_not_add_up_its_time_outs() {
    let ground = ground("queue").await;
    ground.far.append(mail(1)).await.unwrap();
    ground.proxy.stall();
    let appends = (2..=41).map(|n| ground.far.append(mail(n)));
    let all = futures_util::future::join_all(appends);
    let outcomes = tokio::time::timeout(Duration::from_secs(30), all).await.unwrap();
    assert!(outcomes.iter().all(Result::is_err));
    ground.proxy.heal();
    append_until_known(&ground.far, &mail(2)).await;
}
