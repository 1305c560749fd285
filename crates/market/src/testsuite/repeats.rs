//! The contract of what is asked twice, ends twice, or never ends.

use std::sync::Arc;

use bytes::Bytes;
use uuid::Uuid;

use super::fixtures::{
    Store, account_now, answer, at, balanced, call, call_id, failed, free_call, idempotency, of_account,
    of_channel, open_account, open_channel, paid, receipt, usd,
};
use crate::store::{Answer, Begin, Begun, Finish, Finished, InvocationStatus, Outcome, Unpayable};

/// A call of account `a` for a tenth of a dollar.
fn asked(number: u128, key: &str, body: &str) -> Begin {
    Begin {
        idempotency: Some(idempotency(key, body)),
        ..call(number, of_account("a"), "0.1")
    }
}

/// Once it has ended, whatever came of it; and it is paid once.
pub async fn the_same_is_answered_again<S: Store>(store: Arc<S>) {
    open_account(&*store, "a", "1").await;
    let begin = async |n, key: &str, body: &str| store.begin(asked(n, key, body), at(1)).await.unwrap();
    let asked = idempotency("k", "b");
    assert_eq!(store.repeated(&asked).await.unwrap(), None);
    assert_eq!(begin(1, "k", "b").await, Begun::Started);
    let running = Begun::Running(call_id(1));
    assert_eq!(begin(2, "k", "b").await, running);
    assert_eq!(store.repeated(&asked).await.unwrap(), Some(running));
    store.finish(call_id(1), paid("0.1", "0"), at(2)).await.unwrap();
    let Begun::Again(there) = begin(3, "k", "b").await else {
        unreachable!("asked before");
    };
    assert_eq!((there.id, there.status), (call_id(1), InvocationStatus::Finished));
    assert_eq!(
        (&there.answer, there.charged),
        (&Some(answer("done")), usd("0.1"))
    );
    assert_eq!(store.invocation(call_id(1)).await.unwrap(), Some(there.clone()));
    assert_eq!(store.repeated(&asked).await.unwrap(), Some(Begun::Again(there)));
    assert_eq!(store.invocation(call_id(3)).await.unwrap(), None);

    assert_eq!(begin(4, "other", "b").await, Begun::Started, "another key");
    let bytes = Answer {
        status: 502,
        body: Bytes::from_static(b"\x00\xff not even text"),
    };
    let failed = Finish {
        outcome: Outcome::Released,
        answer: bytes.clone(),
        receipt: None,
    };
    store.finish(call_id(4), failed, at(2)).await.unwrap();
    assert!(
        matches!(begin(5, "other", "b").await, Begun::Again(there) if there.answer == Some(bytes.clone()))
    );
    assert_eq!(account_now(&*store, "a").await.balance, usd("0.9"));
    balanced(&*store).await;
}

/// Before its end and after it; and who has no money is told all the same.
pub async fn another_body_is_told<S: Store>(store: Arc<S>) {
    open_account(&*store, "a", "0.1").await;
    let begin = async |n, body: &str| store.begin(asked(n, "k", body), at(1)).await.unwrap();
    assert_eq!(begin(1, "b").await, Begun::Started);
    for n in [2, 3] {
        assert_eq!(begin(n, "other").await, Begun::OtherBody);
        let repeated = store.repeated(&idempotency("k", "other")).await.unwrap();
        assert_eq!(repeated, Some(Begun::OtherBody));
        store.finish(call_id(1), paid("0.1", "0"), at(2)).await.unwrap();
    }
    assert!(matches!(begin(4, "b").await, Begun::Again(_)));
    let unpaid = store.begin(asked(5, "fresh", "b"), at(1)).await.unwrap();
    assert_eq!(
        unpaid,
        Begun::Unpayable(Unpayable::Insufficient(usd("0"))),
        "and nothing is remembered of it"
    );
    assert_eq!(store.repeated(&idempotency("fresh", "b")).await.unwrap(), None);
    balanced(&*store).await;
}

/// By its id and its process: who lost the answer asks again.
pub async fn the_very_same_call_is_begun_once<S: Store>(store: Arc<S>) {
    open_account(&*store, "a", "1").await;
    for begin in [asked(1, "k", "b"), call(2, of_account("a"), "0.1"), free_call(3)] {
        for _ in 0..2 {
            assert_eq!(store.begin(begin.clone(), at(1)).await.unwrap(), Begun::Started);
        }
        let mut others = begin.clone();
        others.holder = Uuid::from_u128(2);
        assert!(matches!(
            store.begin(others, at(1)).await.unwrap(),
            Begun::Again(_)
        ));
        store.finish(begin.id, failed(), at(2)).await.unwrap();
        assert!(matches!(
            store.begin(begin, at(3)).await.unwrap(),
            Begun::Again(there) if there.status == InvocationStatus::Finished
        ));
    }
    assert_eq!(account_now(&*store, "a").await.balance, usd("1"));
    balanced(&*store).await;
}

/// The first one counts.
pub async fn an_end_comes_once<S: Store>(store: Arc<S>) {
    open_account(&*store, "a", "1").await;
    store.begin(asked(1, "k", "b"), at(1)).await.unwrap();
    let first = store.finish(call_id(1), failed(), at(2)).await.unwrap();
    assert_eq!(first, Finished::Done);
    let second = Finish {
        receipt: Some(receipt("late")),
        ..paid("0.1", "0")
    };
    let second = store.finish(call_id(1), second, at(3)).await.unwrap();
    assert_eq!(second, Finished::NotStarted);
    assert_eq!(store.receipt("rcpt_late").await.unwrap(), None);
    let there = store.invocation(call_id(1)).await.unwrap().unwrap();
    assert_eq!(there.answer, Some(answer("failed")));
    assert_eq!(account_now(&*store, "a").await.balance, usd("1"));
    let unknown = store.finish(call_id(9), failed(), at(3)).await.unwrap();
    assert_eq!(unknown, Finished::NotStarted);
    balanced(&*store).await;
}

/// Of one process, whatever its deadline; money goes back, and the same may be asked again.
pub async fn what_is_lost_is_given_up<S: Store>(store: Arc<S>) {
    open_account(&*store, "a", "1").await;
    open_channel(&*store, "c", None, "1").await;
    let others = Begin {
        holder: Uuid::from_u128(2),
        ..call(4, of_account("a"), "0.1")
    };
    let ended = call(5, of_account("a"), "0.1");
    for begin in [
        asked(1, "k", "b"),
        call(2, of_channel("c"), "0.1"),
        free_call(3),
        others,
        ended,
    ] {
        assert_eq!(store.begin(begin, at(1)).await.unwrap(), Begun::Started);
    }
    store.finish(call_id(5), paid("0.1", "0"), at(2)).await.unwrap();
    let abandon = async |limit| {
        let lost = store.abandon(Some(Uuid::from_u128(1)), limit, at(2)).await;
        lost.unwrap()
    };
    assert_eq!(abandon(2).await, [call_id(1), call_id(2)]);
    assert_eq!(abandon(2).await, [call_id(3)]);
    assert_eq!(abandon(2).await, Vec::<Uuid>::new());
    let account = account_now(&*store, "a").await;
    assert_eq!((account.balance, account.held), (usd("0.8"), usd("0.1")));
    assert_eq!(balanced(&*store).await.held, usd("0.1"));
    let late = store.finish(call_id(1), paid("0.1", "0"), at(3)).await.unwrap();
    assert_eq!(late, Finished::NotStarted);
    let there = store.invocation(call_id(1)).await.unwrap().unwrap();
    assert_eq!((there.status, there.answer), (InvocationStatus::Abandoned, None));
    assert_eq!(store.repeated(&idempotency("k", "b")).await.unwrap(), None);
    let again = store.begin(asked(6, "k", "other"), at(4)).await.unwrap();
    assert_eq!(again, Begun::Started, "the key is free");
    balanced(&*store).await;
}

/// Of any process, the oldest first.
pub async fn what_is_past_its_deadline_is_given_up<S: Store>(store: Arc<S>) {
    open_account(&*store, "a", "1").await;
    for (n, secs) in [(1, 30), (2, 10), (3, 20), (4, 40)] {
        let mut begin = call(n, of_account("a"), "0.1");
        begin.deadline = at(secs);
        begin.holder = Uuid::from_u128(n);
        store.begin(begin, at(1)).await.unwrap();
    }
    let abandon = async |limit, secs| store.abandon(None, limit, at(secs)).await.unwrap();
    assert_eq!(abandon(9, 9).await, Vec::<Uuid>::new());
    assert_eq!(abandon(2, 30).await, [2, 3].map(call_id));
    assert_eq!(abandon(2, 30).await, [1].map(call_id));
    assert_eq!(account_now(&*store, "a").await.held, usd("0.1"));
    balanced(&*store).await;
}

/// With what made repetitions the same; receipts stay, and so does what is under way.
pub async fn answers_are_forgotten<S: Store>(store: Arc<S>) {
    open_account(&*store, "a", "1").await;
    for n in 1..=5_u8 {
        let begin = asked(n.into(), &format!("k{n}"), "b");
        store.begin(begin, at(i64::from(n))).await.unwrap();
        let finish = Finish {
            receipt: Some(receipt(&n.to_string())),
            ..paid("0.1", "0")
        };
        if n != 2 {
            store.finish(call_id(n.into()), finish, at(9)).await.unwrap();
        }
    }
    assert_eq!(store.forget_answers(at(1), 10).await.unwrap(), 0);
    assert_eq!(store.forget_answers(at(5), 2).await.unwrap(), 2);
    assert_eq!(store.forget_answers(at(5), 2).await.unwrap(), 1);
    assert_eq!(store.forget_answers(at(5), 2).await.unwrap(), 0);
    for (n, is_kept) in [(1, false), (2, true), (3, false), (4, false), (5, true)] {
        let asked = idempotency(&format!("k{n}"), "b");
        let repeated = store.repeated(&asked).await.unwrap();
        assert_eq!(repeated.is_some(), is_kept, "{n}");
    }
    let there = store.invocation(call_id(1)).await.unwrap().unwrap();
    assert_eq!((there.answer, there.charged), (None, usd("0.1")));
    assert!(store.receipt("rcpt_1").await.unwrap().is_some());
    let again = store.begin(asked(6, "k1", "b"), at(90_000)).await.unwrap();
    assert_eq!(again, Begun::Started);
    balanced(&*store).await;
}
