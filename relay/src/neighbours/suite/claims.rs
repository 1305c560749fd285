//! Claims: one message is in the hands of one process.

use std::collections::BTreeMap;
use std::time::Duration;

use futures_util::future::join_all;
use tokio::time::{sleep, timeout};

use super::{Context, PATIENCE, Side, mailbox};
use crate::mailbox::MailboxId;
use crate::neighbours::{Claim, Signal};

const LONG: Duration = Duration::from_mins(1);

fn claims(seqs: &[u64], hold: Duration) -> Vec<Claim> {
    seqs.iter().map(|seq| Claim { seq: *seq, hold }).collect()
}

async fn taken(side: &Side, bob: &MailboxId, seqs: &[u64], hold: Duration) -> Vec<u64> {
    let taken = side.neighbours.claim(bob, &claims(seqs, hold)).await;
    for taken in &taken {
        assert!(!taken.hold.is_zero() && taken.hold <= LONG, "{taken:?}");
    }
    taken.iter().map(|taken| taken.seq).collect()
}

async fn until_free(side: &Side, bob: &MailboxId, seq: u64) {
    let free = async {
        while !taken(side, bob, &[seq], LONG).await.is_empty() {
            sleep(Duration::from_millis(5)).await;
        }
    };
    timeout(PATIENCE, free).await.unwrap();
}

/// The first has it; of several, the others are told which.
pub async fn a_claimed_message_is_taken(ctx: &Context) {
    let bob = mailbox("bob");
    assert!(taken(&ctx.one, &bob, &[1, 2, 3], LONG).await.is_empty());
    assert_eq!(taken(&ctx.other, &bob, &[2, 3, 4], LONG).await, [2, 3]);
    assert_eq!(taken(&ctx.one, &bob, &[3, 4, u64::MAX], LONG).await, [4]);
    assert!(
        taken(&ctx.other, &mailbox("carol"), &[1, 2], LONG)
            .await
            .is_empty()
    );
    assert!(taken(&ctx.other, &bob, &[], LONG).await.is_empty());
}

/// A process is never in its own way.
pub async fn a_claim_is_renewed_by_its_process(ctx: &Context) {
    let bob = mailbox("bob");
    let short = Duration::from_millis(200);
    assert!(taken(&ctx.one, &bob, &[1], short).await.is_empty());
    assert!(taken(&ctx.one, &bob, &[1], LONG).await.is_empty());
    sleep(short * 2).await;
    assert_eq!(taken(&ctx.other, &bob, &[1], LONG).await, [1]);
}

/// A claim ends by itself: a process that died holds nothing for ever.
pub async fn a_claim_ends_with_its_hold(ctx: &Context) {
    let bob = mailbox("bob");
    let short = Duration::from_millis(200);
    assert!(taken(&ctx.one, &bob, &[1], short).await.is_empty());
    until_free(&ctx.other, &bob, 1).await;
    assert_eq!(taken(&ctx.one, &bob, &[1], LONG).await, [1]);
}

/// Given back, it is free, and the others hear so.
pub async fn a_released_message_is_free(ctx: &Context) {
    let bob = mailbox("bob");
    ctx.other.neighbours.arrive(&bob).await;
    assert!(taken(&ctx.one, &bob, &[1, 2], LONG).await.is_empty());
    ctx.one.neighbours.release(&bob, &[1], Duration::ZERO);
    let released = Signal::Released { seqs: vec![1] };
    assert_eq!(ctx.other.ears.heard(&bob, 1).await, [released]);
    assert_eq!(taken(&ctx.other, &bob, &[1, 2], LONG).await, [2]);
}

/// Given back for later, it is held until then.
pub async fn a_message_can_be_given_back_for_later(ctx: &Context) {
    let bob = mailbox("bob");
    assert!(taken(&ctx.one, &bob, &[1], LONG).await.is_empty());
    ctx.one.neighbours.release(&bob, &[1], Duration::from_millis(200));
    until_free(&ctx.other, &bob, 1).await;
}

/// Released and claimed again in one breath, it is not free.
pub async fn a_claim_after_a_release_stands(ctx: &Context) {
    let bob = mailbox("bob");
    for _ in 0..50 {
        assert!(taken(&ctx.one, &bob, &[1], LONG).await.is_empty());
        ctx.one.neighbours.release(&bob, &[1], Duration::ZERO);
    }
    assert!(taken(&ctx.one, &bob, &[1], LONG).await.is_empty());
    assert_eq!(taken(&ctx.other, &bob, &[1], LONG).await, [1]);
}

/// Nobody can release what another holds.
pub async fn nobody_releases_for_another(ctx: &Context) {
    let bob = mailbox("bob");
    assert!(taken(&ctx.one, &bob, &[1], LONG).await.is_empty());
    ctx.other.neighbours.release(&bob, &[1], Duration::ZERO);
    ctx.other.neighbours.release(&bob, &[1], Duration::from_millis(1));
    assert_eq!(taken(&ctx.other, &bob, &[1], LONG).await, [1]);
}

/// However many ask at once.
pub async fn of_two_processes_exactly_one_gets_a_message(ctx: &Context) {
    let bob = mailbox("bob");
    let seqs: Vec<u64> = (1..=100).collect();
    let ask = |number: usize| {
        let (bob, seqs) = (&bob, &seqs);
        let side = if number.is_multiple_of(2) {
            &ctx.one
        } else {
            &ctx.other
        };
        async move { (number % 2, taken(side, bob, seqs, LONG).await) }
    };
    let mut holders = BTreeMap::new();
    for (side, taken) in join_all((0..40).map(ask)).await {
        for seq in seqs.iter().filter(|seq| !taken.contains(seq)) {
            let holder = *holders.entry(*seq).or_insert(side);
            assert_eq!(holder, side, "message {seq} is in two hands");
        }
    }
    assert_eq!(holders.len(), 100);
}
