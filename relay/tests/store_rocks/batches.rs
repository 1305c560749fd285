//! Several operations in one batch.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;
use std::time::Duration;

use aip_relay::mailbox::rocks::RocksMailboxes;
use aip_relay::mailbox::suite::{bob, duplicate, envelope, stored};
use aip_relay::mailbox::{AckOutcome, Acked, Append, AppendOutcome, Full, Mailboxes, Upkeep};

use crate::ground::{Ground, mail, pending, start, until};

/// An operation to come.
type Job<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// Puts `appends` and then `run` into one batch, behind another that is held up.
async fn in_one_batch<T: Send + 'static>(
    ground: &Ground,
    store: &Arc<RocksMailboxes>,
    jobs: Vec<Job<T>>,
) -> Vec<T> {
    let (before, count) = (ground.disk.commits.load(SeqCst), jobs.len() as u64);
    let gate = ground.disk.close();
    let plug = Arc::clone(store);
    let plug = tokio::spawn(async move { plug.append(envelope(start(), "plug", "plug", 1)).await });
    until(|| ground.disk.commits.load(SeqCst) == before + 1).await;
    let mut tasks = Vec::new();
    for (job, queued) in jobs.into_iter().zip(1..) {
        tasks.push(tokio::spawn(job));
        until(|| store.stats().queue_depth == queued).await;
    }
    let stats = store.stats();
    drop(gate);
    plug.await.unwrap().unwrap();
    let mut answers = Vec::new();
    for task in tasks {
        answers.push(task.await.unwrap());
    }
    let after = store.stats();
    assert_eq!(
        (after.batches - stats.batches, after.batch_ops - stats.batch_ops),
        (2, count + 1)
    );
    answers
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn operations_in_one_batch_see_each_other() {
    let ground = Ground::new();
    let store = ground.open();
    store.append(mail(1)).await.unwrap();
    let append = |append: Append| {
        let store = Arc::clone(&store);
        Box::pin(async move { store.append(append).await.unwrap() }) as Job<_>
    };
    let mut other_bytes = mail(3);
    other_bytes.digest = [0; 32];
    let mut too_many = mail(4);
    too_many.quota.sender_messages = 3;
    let jobs = vec![
        append(mail(2)),
        append(mail(2)),
        append(mail(3)),
        append(other_bytes),
        append(too_many),
    ];
    let answers = in_one_batch(&ground, &store, jobs).await;
    let full = AppendOutcome::Full(Full::Sender);
    assert_eq!(
        answers,
        [stored(2), duplicate(2), stored(3), AppendOutcome::Reused, full]
    );
    assert_eq!(pending(&store).await, [1, 2, 3]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_ack_meets_an_append_of_its_batch() {
    let ground = Ground::new();
    let store = ground.open();
    store.append(mail(1)).await.unwrap();
    let (one, two) = (Arc::clone(&store), Arc::clone(&store));
    let jobs: Vec<Job<(u64, Vec<u64>)>> = vec![
        Box::pin(async move {
            one.append(mail(2)).await.unwrap();
            (0, vec![])
        }),
        Box::pin(async move {
            match two.ack(&bob(), 2, &[], start()).await.unwrap() {
                AckOutcome::Acked(Acked { floor, messages }) => {
                    (floor, messages.iter().map(|m| m.seq).collect())
                }
                _ => (u64::MAX, vec![]),
            }
        }),
    ];
    assert_eq!(in_one_batch(&ground, &store, jobs).await[1], (2, vec![1, 2]));
    assert!(pending(&store).await.is_empty());
    drop(store);
    assert_eq!(ground.open().append(mail(3)).await.unwrap(), stored(3));
}

/// A retry or a repeated ack finds its answer without another sync.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_changes_nothing_writes_nothing() {
    let ground = Ground::new();
    let store = ground.open();
    store.append(mail(1)).await.unwrap();
    store.ack(&bob(), 1, &[], start()).await.unwrap();
    store.sweep(start()).await.unwrap();
    let commits = ground.disk.commits.load(SeqCst);
    store.append(mail(1)).await.unwrap();
    store.ack(&bob(), 1, &[], start()).await.unwrap();
    store.sweep(start()).await.unwrap();
    assert_eq!(ground.disk.commits.load(SeqCst), commits);
}

/// A sweep that finds nothing is not written down, and the next one does not look back: but what is stored with its end
/// behind it is met all the same.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_ends_before_an_idle_sweep_is_met_by_the_next_one() {
    let ground = Ground::new();
    let store = ground.open();
    let swept = async |store: &RocksMailboxes| store.sweep(start()).await.unwrap().expired.len();
    let mut late = mail(1);
    late.expires_at = start() - Duration::from_secs(5);
    assert_eq!(swept(&store).await, 0);
    let batches = store.stats().batches;
    assert_eq!(swept(&store).await, 0);
    assert_eq!(store.stats().batches, batches, "nothing is written");
    store.append(late).await.unwrap();
    assert_eq!((swept(&store).await, swept(&store).await), (1, 0));
}

/// In one batch with the sweep, on either side of it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_stored_in_one_batch_with_a_sweep_is_met() {
    for sweep_first in [true, false] {
        let ground = Ground::new();
        let store = ground.open();
        let mut late = mail(1);
        late.expires_at = start() - Duration::from_secs(5);
        let append = {
            let store = Arc::clone(&store);
            Box::pin(async move { store.append(late).await.map(|_| 0_usize).unwrap() }) as Job<usize>
        };
        let sweep = {
            let store = Arc::clone(&store);
            Box::pin(async move { store.sweep(start()).await.unwrap().expired.len() }) as Job<usize>
        };
        let jobs = if sweep_first {
            vec![sweep, append]
        } else {
            vec![append, sweep]
        };
        let told: usize = in_one_batch(&ground, &store, jobs).await.into_iter().sum();
        let later = store.sweep(start()).await.unwrap().expired.len();
        assert_eq!(told + later, 1, "the sweep comes first: {sweep_first}");
    }
}
