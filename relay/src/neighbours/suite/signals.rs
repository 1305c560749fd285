//! Signals: who hears what, and in which order.

use std::time::Duration;

use aip_protocol::time::Timestamp;
use uuid::Uuid;

use super::{Context, PATIENCE, did, mailbox};
use crate::mailbox::Status;
use crate::neighbours::Signal;
use crate::presence::{CloseReason, StatusUpdate};

fn offered(seq: u64) -> Signal {
    Signal::Offered { seq }
}

/// Every kind of signal, with the largest numbers.
fn all_kinds() -> Vec<Signal> {
    let status = |status, code: Option<&str>| {
        Signal::Status(StatusUpdate {
            id: Uuid::from_u128(u128::MAX),
            to: did("carol"),
            status,
            code: code.map(str::to_owned),
            at: Timestamp::parse("2026-11-29T20:15:30.123Z").unwrap(),
        })
    };
    let mut signals = vec![
        offered(u64::MAX),
        Signal::Settled {
            upto: 7,
            also: (9..1_033).collect(),
            floor: 7,
        },
        Signal::Settled {
            upto: 0,
            also: Vec::new(),
            floor: 0,
        },
        Signal::Buried { seq: 1 },
        Signal::Released { seqs: vec![3, 4] },
        Signal::Close(CloseReason::Unauthenticated),
        Signal::Close(CloseReason::Replaced),
        Signal::Close(CloseReason::GoingAway),
    ];
    signals.extend(Status::ALL.map(|each| status(each, None)));
    signals.push(status(Status::Dead, Some("attempts_exhausted")));
    signals
}

/// Signals come whole, in order, and once.
pub async fn a_signal_is_heard_where_the_agent_is(ctx: &Context) {
    let bob = mailbox("bob");
    ctx.other.neighbours.arrive(&bob).await;
    let signals = all_kinds();
    for signal in &signals {
        ctx.one.neighbours.tell(&bob, signal.clone());
    }
    assert_eq!(ctx.heard_by_now(&bob).await, signals);
    assert!(ctx.one.ears.about(&bob).is_empty());
}

/// Not in the process that told it.
pub async fn nobody_hears_itself(ctx: &Context) {
    let bob = mailbox("bob");
    ctx.one.neighbours.arrive(&bob).await;
    ctx.other.neighbours.arrive(&bob).await;
    ctx.one.neighbours.tell(&bob, offered(1));
    ctx.other.ears.heard(&bob, 1).await;
    ctx.other.neighbours.tell(&bob, offered(2));
    assert_eq!(ctx.one.ears.heard(&bob, 1).await, [offered(2)]);
}

/// Signals about one agent are not heard with another's.
pub async fn agents_do_not_mix(ctx: &Context) {
    let (bob, carol) = (mailbox("bob"), mailbox("carol"));
    ctx.other.neighbours.arrive(&carol).await;
    ctx.one.neighbours.tell(&bob, offered(1));
    assert!(ctx.heard_by_now(&carol).await.is_empty());
    assert!(ctx.other.ears.about(&bob).is_empty());
}

/// Arriving twice is ended by one leave; after it nothing is heard, until the agent comes again.
pub async fn one_leave_ends_every_arrival(ctx: &Context) {
    let (bob, carol) = (mailbox("bob"), mailbox("carol"));
    let there = &ctx.other.neighbours;
    there.arrive(&carol).await;
    there.arrive(&bob).await;
    there.arrive(&bob).await;
    there.leave(&bob);
    let quiet = async {
        loop {
            let before = ctx.other.ears.about(&bob).len();
            ctx.one.neighbours.tell(&bob, offered(1));
            ctx.heard_by_now(&carol).await;
            if ctx.other.ears.about(&bob).len() == before {
                return;
            }
        }
    };
    tokio::time::timeout(PATIENCE, quiet).await.unwrap();
    there.leave(&bob);
    there.arrive(&bob).await;
    let before = ctx.other.ears.about(&bob).len();
    ctx.one.neighbours.tell(&bob, offered(3));
    let heard = ctx.other.ears.heard(&bob, before + 1).await;
    assert_eq!(heard.last(), Some(&offered(3)));
}

/// Coming and going in quick succession ends as the last call says.
pub async fn the_last_of_many_comings_and_goings_counts(ctx: &Context) {
    let bob = mailbox("bob");
    for _ in 0..50 {
        ctx.other.neighbours.arrive(&bob).await;
        ctx.other.neighbours.leave(&bob);
    }
    // One that gives up waiting.
    let hurried = ctx.other.neighbours.arrive(&bob);
    drop(tokio::time::timeout(Duration::ZERO, hurried).await);
    ctx.other.neighbours.leave(&bob);
    ctx.other.neighbours.arrive(&bob).await;
    ctx.one.neighbours.tell(&bob, offered(1));
    let heard = ctx.other.ears.heard(&bob, 1).await;
    assert_eq!(heard, [offered(1)]);
}
