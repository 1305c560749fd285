//! Sessions that begin: their order, and the pause between two that replace each other.

use std::collections::BTreeSet;
use std::time::Duration;

use futures_util::future::join_all;
use tokio::time::{sleep, timeout};

use super::{Context, PATIENCE, Side, generation, mailbox};
use crate::limits::TAKEOVER_PAUSE_MILLIS;
use crate::mailbox::MailboxId;
use crate::neighbours::{Entry, Signal};

async fn enter(side: &Side, bob: &MailboxId) -> u64 {
    generation(side.neighbours.join(bob, true, 0).await)
}

/// A later session has a higher generation, whichever process it is in, and the others hear of it.
pub async fn generations_rise_across_processes(ctx: &Context) {
    let bob = mailbox("bob");
    ctx.other.neighbours.arrive(&bob).await;
    let (first, second, third) = (
        enter(&ctx.one, &bob).await,
        enter(&ctx.other, &bob).await,
        enter(&ctx.one, &bob).await,
    );
    assert!(0 < first && first < second && second < third);
    let joined = |generation| Signal::Joined {
        generation,
        share: true,
    };
    assert_eq!(
        ctx.other.ears.heard(&bob, 2).await,
        [joined(first), joined(third)]
    );
}

/// No two sessions have one generation, and they are told in order.
pub async fn many_at_once_have_generations_of_their_own(ctx: &Context) {
    let bob = mailbox("bob");
    ctx.other.neighbours.arrive(&bob).await;
    let (here, there) = tokio::join!(
        join_all((0..20).map(|_| enter(&ctx.one, &bob))),
        join_all((0..20).map(|_| enter(&ctx.other, &bob)))
    );
    let all: BTreeSet<u64> = here.iter().chain(&there).copied().collect();
    assert_eq!(all.len(), 40);
    let heard = ctx.other.ears.heard(&bob, 20).await;
    let told = heard.iter().map(|signal| match signal {
        Signal::Joined { generation, .. } => *generation,
        other => panic!("{other:?}"),
    });
    let told: Vec<u64> = told.collect();
    assert!(told.is_sorted());
    assert_eq!(told.iter().collect::<BTreeSet<_>>(), here.iter().collect());
}

/// Told of again, a session keeps its number.
pub async fn a_session_is_told_of_again_under_its_number(ctx: &Context) {
    let bob = mailbox("bob");
    let number = generation(ctx.one.neighbours.join(&bob, false, 0).await);
    ctx.other.neighbours.arrive(&bob).await;
    let again = ctx.one.neighbours.join(&bob, false, number).await;
    assert_eq!(again, Entry::In { generation: number });
    let joined = Signal::Joined {
        generation: number,
        share: false,
    };
    assert_eq!(ctx.other.ears.heard(&bob, 1).await, [joined]);
}

/// Who replaces another is let in at once; who comes right after waits, at most a second.
pub async fn after_a_takeover_the_next_one_waits(ctx: &Context) {
    let bob = mailbox("bob");
    generation(ctx.one.neighbours.join(&bob, false, 0).await);
    let second = generation(ctx.other.neighbours.join(&bob, false, 0).await);
    let Entry::Wait(pause) = ctx.one.neighbours.join(&bob, false, 0).await else {
        panic!("the third is let in at once")
    };
    assert!(!pause.is_zero() && pause <= Duration::from_millis(TAKEOVER_PAUSE_MILLIS));
    let later = async {
        loop {
            match ctx.one.neighbours.join(&bob, false, 0).await {
                Entry::Wait(pause) => sleep(pause).await,
                Entry::In { generation } => return generation,
            }
        }
    };
    assert!(timeout(PATIENCE, later).await.unwrap() > second);
}

/// Nobody waits for one who has left, nor among those who share.
pub async fn without_a_takeover_nobody_waits(ctx: &Context) {
    let bob = mailbox("bob");
    for _ in 0..3 {
        ctx.one.neighbours.arrive(&bob).await;
        generation(ctx.one.neighbours.join(&bob, false, 0).await);
        ctx.one.neighbours.leave(&bob);
    }
    let carol = mailbox("carol");
    for _ in 0..3 {
        enter(&ctx.one, &carol).await;
        enter(&ctx.other, &carol).await;
    }
}
