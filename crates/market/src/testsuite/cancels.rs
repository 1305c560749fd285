//! The contract of calls that their buyers cancel: nothing is paid, and what is being paid is not cancelled.

use std::sync::Arc;

use bytes::Bytes;

use super::fixtures::{
    Store, account_now, answer, at, balanced, call, call_id, digest, free_call, idempotency, of_account,
    of_channel, open_account, open_channel, paid, receipt, trial, usd,
};
use crate::money::Usd;
use crate::store::{
    Begin, Begun, Finish, Finished, InvocationStatus, Outcome, PaymentClaim, Planned, Unpayable,
};

fn cancelled() -> Finish {
    Finish {
        outcome: Outcome::Cancelled,
        answer: answer("cancelled"),
        receipt: None,
    }
}

/// From every purse, but a trial is used up: its provider was called. The first end counts, and it is what the same call is
/// answered.
pub async fn a_cancelled_call_costs_nothing<S: Store>(store: Arc<S>) {
    open_account(&*store, "a", "1").await;
    open_channel(&*store, "c", None, "1").await;
    let asked = Begin {
        idempotency: Some(idempotency("k", "b")),
        ..call(1, of_account("a"), "0.1")
    };
    for begin in [
        asked,
        call(2, of_channel("c"), "0.1"),
        trial(3, "v"),
        trial(4, "v"),
    ] {
        let id = begin.id;
        assert_eq!(store.begin(begin, at(1)).await.unwrap(), Begun::Started);
        let ended = store.finish(id, cancelled(), at(2)).await.unwrap();
        assert_eq!(ended, Finished::Done);
        let late = store.finish(id, paid("0.1", "0"), at(3)).await.unwrap();
        assert_eq!(late, Finished::NotStarted);
        let there = store.invocation(id).await.unwrap().unwrap();
        assert_eq!(
            (there.status, there.charged),
            (InvocationStatus::Finished, Usd::ZERO)
        );
    }
    let used = store.begin(trial(5, "v"), at(4)).await.unwrap();
    assert_eq!(used, Begun::Unpayable(Unpayable::TrialsUsed(2)));
    let Some(Begun::Again(there)) = store.repeated(&idempotency("k", "b")).await.unwrap() else {
        unreachable!("it is answered again");
    };
    assert_eq!(
        (there.answer, there.purse),
        (Some(answer("cancelled")), Some(of_account("a")))
    );
    assert_eq!(account_now(&*store, "a").await.balance, usd("1"));
    assert_eq!(balanced(&*store).await.held, Usd::ZERO);
}

/// What is paid stays paid.
pub async fn what_has_ended_is_not_cancelled<S: Store>(store: Arc<S>) {
    open_account(&*store, "a", "1").await;
    store.begin(call(1, of_account("a"), "0.1"), at(1)).await.unwrap();
    store.finish(call_id(1), paid("0.1", "0"), at(2)).await.unwrap();
    let late = store.finish(call_id(1), cancelled(), at(3)).await.unwrap();
    assert_eq!(late, Finished::NotStarted);
    assert_eq!(account_now(&*store, "a").await.balance, usd("0.9"));
    balanced(&*store).await;
}

/// Its money may have moved already; before that it is given back.
pub async fn what_is_being_settled_is_not_cancelled<S: Store>(store: Arc<S>) {
    let direct = |number| Begin {
        payment: Some(PaymentClaim {
            key: digest("p"),
            amount: usd("0.25"),
            payment: Bytes::from_static(b"{}"),
        }),
        ..free_call(number)
    };
    store.begin(direct(1), at(1)).await.unwrap();
    assert_eq!(
        store.finish(call_id(1), cancelled(), at(2)).await.unwrap(),
        Finished::Done
    );
    let again = store.begin(direct(2), at(2)).await.unwrap();
    assert_eq!(again, Begun::Started, "the payment pays another call");
    let planned = Planned {
        answer: answer("planned"),
        receipt: receipt("1"),
    };
    store.settle(call_id(2), planned, at(3)).await.unwrap();
    let refused = store.finish(call_id(2), cancelled(), at(4)).await.unwrap();
    assert_eq!(refused, Finished::NotStarted);
    let made = Finish {
        outcome: Outcome::Paid {
            transaction: "0xabc".to_owned(),
        },
        ..paid("0", "0")
    };
    assert_eq!(
        store.finish(call_id(2), made, at(5)).await.unwrap(),
        Finished::Done
    );
    assert_eq!(balanced(&*store).await.paid_directly, usd("0.25"));
}
