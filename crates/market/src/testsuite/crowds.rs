//! The contract of many who come at once.

use std::sync::Arc;

use tokio::task::JoinSet;
use uuid::Uuid;

use super::fixtures::{
    Store, account_id, account_now, agent, at, balanced, call, call_id, channel_id, failed, idempotency,
    key_id, of_account, of_channel, open_account, open_channel, paid, trial, usd,
};
use crate::money::Usd;
use crate::store::{Begin, Begun, Closed, Credited, Finished, PaidOut, Purse, Unpayable};

/// How many come at once.
const CROWD: u128 = 40;

/// What came of each call, all begun at once.
pub async fn begin_at_once<S: Store>(stores: &[Arc<S>], calls: impl Iterator<Item = Begin>) -> Vec<Begun> {
    let mut tasks = JoinSet::new();
    for (begin, store) in calls.zip(stores.iter().cycle()) {
        let store = Arc::clone(store);
        tasks.spawn(async move { store.begin(begin, at(1)).await.unwrap() });
    }
    tasks.join_all().await
}

/// How many of them were begun; the others were refused for this.
pub fn started(begun: &[Begun], refused: Unpayable) -> usize {
    let is_started = |begun: &&Begun| **begun == Begun::Started;
    let count = begun.iter().filter(is_started).count();
    let others = begun.iter().filter(|begun| !is_started(begun));
    for other in others {
        assert_eq!(*other, Begun::Unpayable(refused));
    }
    count
}

fn pennies(purse: &Purse) -> impl Iterator<Item = Begin> + use<> {
    let purse = purse.clone();
    (0..CROWD).map(move |n| call(n, purse.clone(), "0.01"))
}

/// Exactly ten of them get it.
pub async fn forty_at_once_and_money_for_ten<S: Store>(store: Arc<S>) {
    open_account(&*store, "a", "0.10").await;
    let begun = begin_at_once(&[Arc::clone(&store)], pennies(&of_account("a"))).await;
    assert_eq!(started(&begun, Unpayable::Insufficient(Usd::ZERO)), 10);
    let account = account_now(&*store, "a").await;
    assert_eq!((account.balance, account.held), (Usd::ZERO, usd("0.10")));
    balanced(&*store).await;
}

/// The same of a channel.
pub async fn forty_at_once_and_a_channel_for_ten<S: Store>(store: Arc<S>) {
    open_channel(&*store, "c", None, "0.10").await;
    let begun = begin_at_once(&[Arc::clone(&store)], pennies(&of_channel("c"))).await;
    assert_eq!(started(&begun, Unpayable::Insufficient(Usd::ZERO)), 10);
    let channel = store.channel(&channel_id("c")).await.unwrap().unwrap();
    assert_eq!((channel.balance(), channel.held), (Usd::ZERO, usd("0.10")));
    balanced(&*store).await;
}

/// The same of a budget.
pub async fn forty_at_once_and_a_budget_for_ten<S: Store>(store: Arc<S>) {
    open_account(&*store, "a", "5").await;
    let key = key_id("a");
    store
        .set_budget(&account_id("a"), Some(&key), Some(usd("0.10")))
        .await
        .unwrap();
    let begun = begin_at_once(&[Arc::clone(&store)], pennies(&of_account("a"))).await;
    assert_eq!(started(&begun, Unpayable::OverBudget(Usd::ZERO)), 10);
    balanced(&*store).await;
}

/// The others are told that it runs.
pub async fn one_of_many_repetitions_is_begun<S: Store>(store: Arc<S>) {
    open_account(&*store, "a", "5").await;
    let calls = pennies(&of_account("a")).map(|begin| Begin {
        idempotency: Some(idempotency("k", "b")),
        ..begin
    });
    let begun = begin_at_once(&[Arc::clone(&store)], calls).await;
    assert_eq!(begun.iter().filter(|begun| **begun == Begun::Started).count(), 1);
    assert_eq!(
        begun
            .iter()
            .filter(|begun| matches!(begun, Begun::Running(_)))
            .count(),
        39
    );
    assert_eq!(account_now(&*store, "a").await.held, usd("0.01"));
    balanced(&*store).await;
}

/// And it is paid once; whether it was given up meanwhile or not.
pub async fn one_of_many_ends_counts<S: Store>(store: Arc<S>) {
    open_account(&*store, "a", "1").await;
    for n in 0..CROWD / 4 {
        let begin = call(n, of_account("a"), "0.01");
        store.begin(begin, at(1)).await.unwrap();
    }
    let mut tasks = JoinSet::new();
    for n in 0..CROWD {
        let store = Arc::clone(&store);
        tasks.spawn(async move {
            let id = call_id(n / 4);
            match n % 4 {
                0 | 1 => {
                    u32::from(store.finish(id, paid("0.01", "0"), at(2)).await.unwrap() == Finished::Done)
                }
                2 => u32::from(store.finish(id, failed(), at(2)).await.unwrap() == Finished::Done),
                _ => {
                    let lost = store.abandon(None, 1, at(60)).await.unwrap();
                    u32::try_from(lost.len()).unwrap()
                }
            }
        });
    }
    assert_eq!(tasks.join_all().await.into_iter().sum::<u32>(), 10);
    let totals = balanced(&*store).await;
    assert_eq!(totals.held, Usd::ZERO);
    assert!(totals.earned <= usd("0.10"));
}

/// For money that comes in, and for money that goes into a channel.
pub async fn one_of_many_uses_of_a_reference_counts<S: Store>(store: Arc<S>) {
    open_account(&*store, "a", "1").await;
    open_channel(&*store, "c", Some("a"), "0.1").await;
    let mut tasks = JoinSet::new();
    for n in 0..CROWD {
        let store = Arc::clone(&store);
        tasks.spawn(async move {
            if n % 2 == 0 {
                let credited = store.credit(&account_id("a"), usd("2"), "bill", at(1)).await;
                u32::from(matches!(credited.unwrap(), Credited::Done(_)))
            } else {
                let topped = store.top_up(&channel_id("c"), usd("0.2"), "top", at(1)).await;
                u32::from(matches!(topped.unwrap(), crate::store::ToppedUp::Done(_)))
            }
        });
    }
    assert_eq!(tasks.join_all().await.into_iter().sum::<u32>(), 2);
    assert_eq!(account_now(&*store, "a").await.balance, usd("2.7"));
    balanced(&*store).await;
}

/// No more.
pub async fn visitors_at_once_get_what_they_may<S: Store>(store: Arc<S>) {
    let calls = (0..CROWD).map(|n| trial(n, if n % 2 == 0 { "v" } else { "w" }));
    let begun = begin_at_once(&[Arc::clone(&store)], calls).await;
    assert_eq!(started(&begun, Unpayable::TrialsUsed(2)), 4);
}

/// Whatever the references are.
pub async fn nobody_is_paid_out_twice<S: Store>(store: Arc<S>) {
    open_account(&*store, "a", "1").await;
    store
        .begin(call(1, of_account("a"), "0.10"), at(1))
        .await
        .unwrap();
    store.finish(call_id(1), paid("0.10", "0"), at(2)).await.unwrap();
    let mut tasks = JoinSet::new();
    for n in 0..CROWD {
        let store = Arc::clone(&store);
        tasks.spawn(async move {
            let (seller, reference) = (agent("seller"), format!("wire {n}"));
            let paid = store.pay_out(&seller, usd("0.03"), &reference, at(3)).await;
            u32::from(matches!(paid.unwrap(), PaidOut::Done(_)))
        });
    }
    assert_eq!(tasks.join_all().await.into_iter().sum::<u32>(), 3);
    assert_eq!(balanced(&*store).await.paid_out, usd("0.09"));
}

/// Calls from one account and its channel, with ends, losses, money that comes and closings in between.
pub async fn everything_at_once_adds_up<S: Store>(store: Arc<S>) {
    open_account(&*store, "a", "1").await;
    open_channel(&*store, "c", Some("a"), "0.5").await;
    let mut tasks = JoinSet::new();
    for n in 0..CROWD {
        let store = Arc::clone(&store);
        tasks.spawn(async move {
            let purse = if n % 2 == 0 {
                of_account("a")
            } else {
                of_channel("c")
            };
            let begin = Begin {
                holder: Uuid::from_u128(n % 3),
                idempotency: Some(idempotency(&format!("k{}", n / 3), "b")),
                ..call(n, purse, "0.04")
            };
            let begun = store.begin(begin, at(1)).await.unwrap();
            match n % 5 {
                0 => drop(store.finish(call_id(n), failed(), at(2)).await.unwrap()),
                1 => drop(store.abandon(Some(Uuid::from_u128(0)), 3, at(2)).await.unwrap()),
                2 => {
                    let reference = format!("bill {}", n % 4);
                    let credited = store
                        .credit(&account_id("a"), usd("0.1"), &reference, at(2))
                        .await;
                    credited.unwrap();
                }
                _ => {
                    let ended = store
                        .finish(call_id(n), paid("0.04", "0.01"), at(2))
                        .await
                        .unwrap();
                    assert!(begun == Begun::Started || ended == Finished::NotStarted);
                }
            }
            let totals = store.totals().await.unwrap();
            assert!(totals.balance(), "as of one moment: {totals:?}");
        });
    }
    tasks.join_all().await;
    for holder in 0..3 {
        let lost = store.abandon(Some(Uuid::from_u128(holder)), 100, at(3)).await;
        lost.unwrap();
    }
    let closed = store.close_channel(&channel_id("c"), at(4)).await.unwrap();
    assert!(matches!(closed, Closed::Done(_)), "{closed:?}");
    let totals = balanced(&*store).await;
    assert_eq!((totals.held, totals.channels), (Usd::ZERO, Usd::ZERO));
    let account = account_now(&*store, "a").await;
    let gone = totals.earned.checked_add(totals.fees).unwrap();
    assert_eq!(account.spent, gone, "what is spent is what was earned");
    let lines = store.entries(&account_id("a"), 0, 500).await.unwrap();
    assert_eq!(lines.last().map(|line| line.balance), Some(account.balance));
}
