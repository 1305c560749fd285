//! The contract of payments that move outside: each pays one call, and whatever is lost, nothing is counted twice.

use std::sync::Arc;

use bytes::Bytes;
use uuid::Uuid;

use super::fixtures::{
    Store, agent, answer, at, balanced, call_id, digest, failed, free_call, idempotency, of_account,
    open_account, receipt, usd,
};
use crate::money::Usd;
use crate::store::{
    Begin, Begun, Charge, Finish, Finished, InvocationStatus, Outcome, PaymentClaim, Planned, TakeOver,
    Unpayable, Unsettled,
};

/// A call that is paid with the payment of this name.
fn direct(number: u128, payment: &str, amount: &str) -> Begin {
    Begin {
        payment: Some(PaymentClaim {
            key: digest(payment),
            amount: usd(amount),
            payment: kept(payment),
        }),
        ..free_call(number)
    }
}

fn kept(payment: &str) -> Bytes {
    Bytes::from(format!(r#"{{"of":"ü'; --","payment":"{payment}"}}"#))
}

fn planned(nonce: &str) -> Planned {
    Planned {
        answer: answer("planned"),
        receipt: receipt(nonce),
    }
}

fn paid_by(transaction: &str, nonce: Option<&str>) -> Finish {
    end(
        Outcome::Paid {
            transaction: transaction.to_owned(),
        },
        nonce,
    )
}

fn end(outcome: Outcome, nonce: Option<&str>) -> Finish {
    Finish {
        outcome,
        answer: answer("end"),
        receipt: nonce.map(receipt),
    }
}

async fn begin<S: Store>(store: &S, begin: Begin) -> Begun {
    store.begin(begin, at(1)).await.unwrap()
}

async fn finish<S: Store>(store: &S, number: u128, finish: Finish) -> Finished {
    store.finish(call_id(number), finish, at(3)).await.unwrap()
}

async fn settle<S: Store>(store: &S, number: u128, nonce: &str) -> Finished {
    store
        .settle(call_id(number), planned(nonce), at(2))
        .await
        .unwrap()
}

async fn take<S: Store>(store: &S, holder: Option<u128>, secs: i64) -> Vec<Unsettled> {
    let take = TakeOver {
        holder: holder.map(Uuid::from_u128),
        by: Uuid::from_u128(2),
        until: at(secs + 100),
    };
    store.unsettled(take, 10, at(secs)).await.unwrap()
}

async fn directly<S: Store>(store: &S) -> (Usd, u64, Usd) {
    let earned = store.earned(&agent("seller")).await.unwrap();
    let totals = balanced(store).await;
    assert_eq!(totals.paid_directly, earned.paid_directly);
    assert_eq!((totals.held, totals.fees), (Usd::ZERO, Usd::ZERO));
    (earned.paid_directly, earned.calls, earned.earned)
}

/// While it is under way, and once it is made.
pub async fn a_payment_pays_one_call<S: Store>(store: Arc<S>) {
    let used = Begun::Unpayable(Unpayable::PaymentUsed);
    assert_eq!(begin(&*store, direct(1, "p", "0.25")).await, Begun::Started);
    assert_eq!(
        begin(&*store, direct(1, "p", "0.25")).await,
        Begun::Started,
        "the very same call"
    );
    assert_eq!(begin(&*store, direct(2, "p", "0.25")).await, used);
    assert_eq!(store.invocation(call_id(2)).await.unwrap(), None);
    assert_eq!(begin(&*store, direct(3, "q", "0.25")).await, Begun::Started);
    assert_eq!(settle(&*store, 1, "1").await, Finished::Done);
    assert_eq!(begin(&*store, direct(2, "p", "0.25")).await, used);
    assert_eq!(
        finish(&*store, 1, paid_by("0xabc", Some("1"))).await,
        Finished::Done
    );
    assert_eq!(begin(&*store, direct(2, "p", "0.25")).await, used);
    assert_eq!(
        finish(&*store, 1, paid_by("0xabc", Some("1"))).await,
        Finished::NotStarted
    );
    assert_eq!(directly(&*store).await, (usd("0.25"), 1, Usd::ZERO));
    let there = store.invocation(call_id(1)).await.unwrap().unwrap();
    assert_eq!(
        (there.status, there.charged),
        (InvocationStatus::Finished, Usd::ZERO)
    );
    assert_eq!(store.receipt("rcpt_1").await.unwrap(), Some(receipt("1").receipt));
}

/// It pays another one, then.
pub async fn a_payment_that_was_not_made_is_given_back<S: Store>(store: Arc<S>) {
    for (number, outcome) in [
        (1, Outcome::Released),
        (2, Outcome::Withdrawn),
        (3, Outcome::Cancelled),
        (
            4,
            Outcome::Captured {
                amount: usd("1"),
                fee: usd("1"),
            },
        ),
    ] {
        assert_eq!(begin(&*store, direct(number, "p", "0.25")).await, Begun::Started);
        assert_eq!(finish(&*store, number, end(outcome, None)).await, Finished::Done);
    }
    assert_eq!(begin(&*store, direct(5, "p", "0.25")).await, Begun::Started);
    assert_eq!(store.abandon(None, 10, at(60)).await.unwrap(), [call_id(5)]);
    assert_eq!(begin(&*store, direct(6, "p", "0.25")).await, Begun::Started);
    assert_eq!(settle(&*store, 6, "6").await, Finished::Done);
    assert_eq!(
        finish(&*store, 6, end(Outcome::Withdrawn, None)).await,
        Finished::Done
    );
    assert_eq!(begin(&*store, direct(7, "p", "0.25")).await, Begun::Started);
    assert_eq!(directly(&*store).await, (Usd::ZERO, 0, Usd::ZERO));
}

/// By nobody: only what became of its payment ends it.
pub async fn a_call_that_is_being_paid_is_not_given_up<S: Store>(store: Arc<S>) {
    assert_eq!(begin(&*store, direct(1, "p", "0.25")).await, Begun::Started);
    assert_eq!(settle(&*store, 1, "1").await, Finished::Done);
    assert_eq!(
        settle(&*store, 1, "1").await,
        Finished::Done,
        "the answer was lost"
    );
    assert!(store.abandon(None, 10, at(9_000)).await.unwrap().is_empty());
    let of_process = store.abandon(Some(Uuid::from_u128(1)), 10, at(9_000)).await;
    assert!(of_process.unwrap().is_empty());
    for outcome in [
        Outcome::Released,
        Outcome::Cancelled,
        Outcome::Captured {
            amount: usd("1"),
            fee: Usd::ZERO,
        },
    ] {
        assert_eq!(finish(&*store, 1, end(outcome, None)).await, Finished::NotStarted);
    }
    let there = store.invocation(call_id(1)).await.unwrap().unwrap();
    assert_eq!(there.status, InvocationStatus::Settling);
    // What has no payment, was not begun, or has ended is not being paid.
    begin(&*store, free_call(2)).await;
    assert_eq!(settle(&*store, 2, "2").await, Finished::NotStarted);
    assert_eq!(settle(&*store, 3, "3").await, Finished::NotStarted);
    finish(&*store, 1, paid_by("0xabc", None)).await;
    assert_eq!(settle(&*store, 1, "1").await, Finished::NotStarted);
    assert_eq!(directly(&*store).await, (usd("0.25"), 1, Usd::ZERO));
}

/// After a crash, by one process at a time, with all that it needs.
pub async fn what_was_being_paid_is_taken_up<S: Store>(store: Arc<S>) {
    begin(&*store, direct(1, "p", "0.25")).await;
    begin(&*store, direct(2, "q", "0.5")).await;
    settle(&*store, 1, "1").await;
    assert_eq!(take(&*store, None, 59).await, [], "its process may be there");
    assert_eq!(take(&*store, Some(7), 59).await, []);
    let expected = Unsettled {
        id: call_id(1),
        amount: usd("0.25"),
        payment: kept("p"),
        planned: planned("1"),
        since: at(1),
    };
    let expected = vec![expected];
    assert_eq!(take(&*store, None, 60).await, expected);
    assert_eq!(take(&*store, None, 60).await, [], "somebody is at it");
    assert_eq!(take(&*store, Some(1), 60).await, [], "it is another's now");
    assert_eq!(take(&*store, Some(2), 61).await, expected);
    assert_eq!(take(&*store, None, 161).await, expected);
    finish(&*store, 1, paid_by("0xabc", Some("1"))).await;
    assert_eq!(take(&*store, Some(2), 9_000).await, []);
    assert_eq!(directly(&*store).await, (usd("0.25"), 1, Usd::ZERO));
}

/// It has its result, and its payment pays nothing else.
pub async fn a_payment_of_which_nobody_knows_stays_claimed<S: Store>(store: Arc<S>) {
    begin(&*store, direct(1, "p", "0.25")).await;
    settle(&*store, 1, "1").await;
    assert_eq!(
        finish(&*store, 1, end(Outcome::Unclear, None)).await,
        Finished::Done
    );
    let again = begin(&*store, direct(2, "p", "0.25")).await;
    assert_eq!(again, Begun::Unpayable(Unpayable::PaymentUsed));
    assert_eq!(store.receipt("rcpt_1").await.unwrap(), None);
    assert_eq!(directly(&*store).await, (Usd::ZERO, 0, Usd::ZERO));
}

/// And while its payment is being made it is under way.
pub async fn a_withdrawn_call_may_be_asked_again<S: Store>(store: Arc<S>) {
    let asked = |number| Begin {
        idempotency: Some(idempotency("k", "b")),
        ..direct(number, "p", "0.25")
    };
    let repeated = async || store.repeated(&idempotency("k", "b")).await.unwrap();
    assert_eq!(begin(&*store, asked(1)).await, Begun::Started);
    finish(&*store, 1, end(Outcome::Withdrawn, Some("1"))).await;
    let there = store.invocation(call_id(1)).await.unwrap().unwrap();
    assert_eq!((there.status, there.answer), (InvocationStatus::Abandoned, None));
    assert_eq!(
        (repeated().await, store.receipt("rcpt_1").await.unwrap()),
        (None, None)
    );
    assert_eq!(begin(&*store, asked(2)).await, Begun::Started);
    settle(&*store, 2, "2").await;
    assert_eq!(repeated().await, Some(Begun::Running(call_id(2))));
    finish(&*store, 2, paid_by("0xabc", None)).await;
    let again = match repeated().await {
        Some(Begun::Again(there)) => there.answer,
        _ => None,
    };
    assert_eq!(again, Some(answer("end")));
}

/// Never twice, nor outside where it is paid here; and a name of any length is kept short.
pub async fn a_call_is_paid_in_one_way<S: Store>(store: Arc<S>) {
    open_account(&*store, "a", "1").await;
    let both = Begin {
        charge: Some(Charge {
            purse: of_account("a"),
            amount: usd("0.25"),
        }),
        ..direct(1, "p", "0.25")
    };
    assert_eq!(begin(&*store, both).await, Begun::Started);
    assert_eq!(settle(&*store, 1, "1").await, Finished::NotStarted);
    finish(&*store, 1, failed()).await;
    assert_eq!(begin(&*store, direct(2, "p", "0.25")).await, Begun::Started);
    settle(&*store, 2, "2").await;
    finish(&*store, 2, paid_by(&"ü\0".repeat(5_000), None)).await;
    assert_eq!(directly(&*store).await, (usd("0.25"), 1, Usd::ZERO));
}
