//! The contract of accounts, keys and ledgers.

use std::sync::Arc;

use super::fixtures::{
    Store, account, account_id, account_now, agent, at, balanced, digest, key, key_id, open_account, usd,
};
use crate::limits::{KEYS_PER_ACCOUNT_MAX, PAGE_MAX};
use crate::money::Usd;
use crate::store::{Account, ApiKey, Created, Credited, Entry, EntryKind};

/// Nothing is found, and nothing is owed.
pub async fn nothing_is_there_before<S: Store>(store: Arc<S>) {
    assert_eq!(store.account(&account_id("a")).await.unwrap(), None);
    assert_eq!(store.account_of(&agent("alice")).await.unwrap(), None);
    assert_eq!(store.accounts(None, 10).await.unwrap(), []);
    assert_eq!(store.key(&digest("a")).await.unwrap(), None);
    assert_eq!(store.keys(&account_id("a")).await.unwrap(), []);
    assert_eq!(store.entries(&account_id("a"), 0, 10).await.unwrap(), []);
    assert!(!store.revoke_key(&account_id("a"), &key_id("a")).await.unwrap());
    assert!(!store.suspend(&account_id("a"), true).await.unwrap());
    assert!(!store.set_budget(&account_id("a"), None, None).await.unwrap());
    let added = store.add_key(&account_id("a"), key("a"), at(0)).await.unwrap();
    assert_eq!(added, Created::Refused);
    assert_eq!(balanced(&*store).await.credited, Usd::ZERO);
}

/// As it was asked for; and asking again changes nothing.
pub async fn an_account_is_made_once<S: Store>(store: Arc<S>) {
    let mut new = account("a", "0");
    (new.owner, new.budget) = (Some(agent("alice")), Some(usd("5")));
    new.key.budget = Some(usd("0"));
    for _ in 0..2 {
        let made = store.create_account(new.clone(), at(3)).await.unwrap();
        assert_eq!(made, Created::Made);
    }
    let there = Account {
        id: account_id("a"),
        label: new.label.clone(),
        owner: Some(agent("alice")),
        balance: Usd::ZERO,
        held: Usd::ZERO,
        budget: Some(usd("5")),
        spent: Usd::ZERO,
        suspended: false,
        created_at: at(3),
    };
    let key = ApiKey {
        id: key_id("a"),
        label: new.key.label.clone(),
        budget: Some(Usd::ZERO),
        spent: Usd::ZERO,
        created_at: at(3),
    };
    assert_eq!(store.account(&there.id).await.unwrap(), Some(there.clone()));
    assert_eq!(
        store.account_of(&agent("alice")).await.unwrap(),
        Some(there.clone())
    );
    assert_eq!(store.keys(&there.id).await.unwrap(), std::slice::from_ref(&key));
    assert_eq!(store.key(&digest("a")).await.unwrap(), Some((key, there)));
    let mut other = new;
    (other.owner, other.key.hash) = (None, digest("other"));
    assert_eq!(
        store.create_account(other, at(4)).await.unwrap(),
        Created::Refused,
        "the id is taken"
    );
    assert_eq!(store.entries(&account_id("a"), 0, 10).await.unwrap(), []);
}

/// The second one is told which.
pub async fn an_agent_has_one_account<S: Store>(store: Arc<S>) {
    for (name, made) in [("a", Created::Made), ("b", Created::OwnerHasOne(account_id("a")))] {
        let mut new = account(name, "1");
        new.owner = Some(agent("alice"));
        assert_eq!(store.create_account(new, at(0)).await.unwrap(), made);
    }
    assert_eq!(store.account(&account_id("b")).await.unwrap(), None);
    assert_eq!(store.key(&digest("b")).await.unwrap(), None);
    assert_eq!(balanced(&*store).await.credited, usd("1"));
    for name in ["c", "d"] {
        open_account(&*store, name, "0").await;
    }
}

/// With a reference of its own.
pub async fn a_grant_is_a_credit<S: Store>(store: Arc<S>) {
    for _ in 0..2 {
        open_account(&*store, "a", "2.5").await;
    }
    let line = Entry {
        number: 1,
        kind: EntryKind::Credit,
        amount: usd("2.5"),
        reference: "grant:acct_a".to_owned(),
        balance: usd("2.5"),
        at: at(0),
    };
    assert_eq!(store.entries(&account_id("a"), 0, 10).await.unwrap(), [line]);
    let credited = store
        .credit(&account_id("a"), usd("2.5"), "grant:acct_a", at(1))
        .await;
    assert_eq!(credited.unwrap(), Credited::Again(usd("2.5")));
    assert_eq!(account_now(&*store, "a").await.balance, usd("2.5"));
    assert_eq!(balanced(&*store).await.balances, usd("2.5"));
}

/// In the whole store, for one amount and one account; and a refusal uses none.
pub async fn pitfall_24_a_reference_is_used_once<S: Store>(store: Arc<S>) {
    open_account(&*store, "a", "0").await;
    open_account(&*store, "b", "0").await;
    for (name, amount, reference, credited) in [
        ("none", "1", "bill 1", Credited::Refused),
        ("a", "1", "bill 1", Credited::Done(usd("1"))),
        ("a", "1", "bill 1", Credited::Again(usd("1"))),
        ("a", "2", "bill 1", Credited::OtherUse),
        ("b", "1", "bill 1", Credited::OtherUse),
        ("none", "1", "bill 1", Credited::OtherUse),
        ("a", "0.000001", "bill 2", Credited::Done(usd("1.000001"))),
        ("a", "1", "bill 1", Credited::Again(usd("1.000001"))),
        ("b", "3", "BILL 1", Credited::Done(usd("3"))),
    ] {
        let id = account_id(name);
        let done = store.credit(&id, usd(amount), reference, at(1)).await.unwrap();
        assert_eq!(done, credited, "{name} {amount} {reference}");
    }
    let lines = store.entries(&account_id("a"), 0, 10).await.unwrap();
    let lines: Vec<_> = lines.iter().map(|line| (line.number, line.balance)).collect();
    assert_eq!(lines, [(1, usd("1")), (2, usd("1.000001"))]);
    assert_eq!(balanced(&*store).await.credited, usd("4.000001"));
}

/// An account has so many, the oldest first, and a revoked one makes room.
pub async fn keys_are_bounded_and_revoked<S: Store>(store: Arc<S>) {
    open_account(&*store, "a", "0").await;
    open_account(&*store, "b", "0").await;
    let name = |n: u32| format!("k{n:02}");
    for n in 1..KEYS_PER_ACCOUNT_MAX {
        for _ in 0..2 {
            let added = store
                .add_key(&account_id("a"), key(&name(n)), at(100 - i64::from(n)))
                .await;
            assert_eq!(added.unwrap(), Created::Made, "key {n}");
        }
    }
    let more = async || store.add_key(&account_id("a"), key("more"), at(200)).await;
    assert_eq!(more().await.unwrap(), Created::Refused);
    let keys = store.keys(&account_id("a")).await.unwrap();
    let labels: Vec<_> = keys.iter().map(|key| key.id.clone()).collect();
    let newest_last = (1..KEYS_PER_ACCOUNT_MAX).rev().map(|n| key_id(&name(n)));
    let expected: Vec<_> = [key_id("a")].into_iter().chain(newest_last).collect();
    assert_eq!(labels, expected);

    assert!(!store.revoke_key(&account_id("b"), &key_id("k03")).await.unwrap());
    assert!(
        !store
            .revoke_key(&account_id("a"), &key_id("k03\0"))
            .await
            .unwrap()
    );
    assert!(store.revoke_key(&account_id("a"), &key_id("k03")).await.unwrap());
    assert!(!store.revoke_key(&account_id("a"), &key_id("k03")).await.unwrap());
    assert_eq!(store.key(&digest("k03")).await.unwrap(), None);
    assert!(store.key(&digest("k04")).await.unwrap().is_some());
    assert_eq!(more().await.unwrap(), Created::Made);
}

/// Whoever comes with it is one and the same.
pub async fn a_secret_opens_one_account<S: Store>(store: Arc<S>) {
    open_account(&*store, "a", "0").await;
    let mut new = account("b", "1");
    new.key.hash = digest("a");
    assert_eq!(store.create_account(new, at(0)).await.unwrap(), Created::Refused);
    assert_eq!(store.account(&account_id("b")).await.unwrap(), None);
    open_account(&*store, "b", "1").await;
    let mut again = key("b2");
    again.hash = digest("a");
    let added = store.add_key(&account_id("b"), again, at(0)).await.unwrap();
    assert_eq!(added, Created::Refused);
    let (_, of) = store.key(&digest("a")).await.unwrap().unwrap();
    assert_eq!(of.id, account_id("a"));
    assert_eq!(store.keys(&account_id("b")).await.unwrap().len(), 1);
}

/// In the order of their ids, a page at most.
pub async fn accounts_are_read_in_pages<S: Store>(store: Arc<S>) {
    for name in ["c", "a", "d", "b"] {
        open_account(&*store, name, "0").await;
    }
    let read = async |after: Option<&str>, limit| {
        let after = after.map(account_id);
        let page = store.accounts(after.as_ref(), limit).await.unwrap();
        page.into_iter().map(|account| account.id.0).collect::<Vec<_>>()
    };
    assert_eq!(read(None, 3).await, ["acct_a", "acct_b", "acct_c"]);
    assert_eq!(read(Some("b"), u32::MAX).await, ["acct_c", "acct_d"]);
    assert_eq!(read(Some("bb"), 1).await, ["acct_c"]);
    assert_eq!(read(Some("d"), 9).await, Vec::<String>::new());
}

/// In their order, a page at most.
pub async fn lines_are_read_in_pages<S: Store>(store: Arc<S>) {
    open_account(&*store, "a", "0").await;
    open_account(&*store, "b", "7").await;
    let count = u64::from(PAGE_MAX) + 5;
    for n in 1..=count {
        let reference = format!("bill {n}");
        let credited = store
            .credit(&account_id("a"), usd("0.01"), &reference, at(0))
            .await;
        credited.unwrap();
    }
    let read = async |after, limit| {
        let page = store.entries(&account_id("a"), after, limit).await.unwrap();
        page.into_iter().map(|line| line.number).collect::<Vec<_>>()
    };
    assert_eq!(read(0, 3).await, [1, 2, 3]);
    assert_eq!(read(count - 2, 10).await, [count - 1, count]);
    assert_eq!(read(count, 10).await, Vec::<u64>::new());
    assert_eq!(read(0, u32::MAX).await.len(), PAGE_MAX as usize);
}

/// Of an account, and of one key.
pub async fn budgets_are_set<S: Store>(store: Arc<S>) {
    open_account(&*store, "a", "1").await;
    let set = async |key: Option<&str>, budget: Option<&str>| {
        let key = key.map(key_id);
        let set = store
            .set_budget(&account_id("a"), key.as_ref(), budget.map(usd))
            .await;
        set.unwrap()
    };
    assert!(set(None, Some("2")).await && set(Some("a"), Some("0")).await);
    assert!(!set(Some("other"), None).await);
    let (key, account) = store.key(&digest("a")).await.unwrap().unwrap();
    assert_eq!((key.budget, account.budget), (Some(Usd::ZERO), Some(usd("2"))));
    assert!(set(None, None).await && set(Some("a"), None).await);
    let (key, account) = store.key(&digest("a")).await.unwrap().unwrap();
    assert_eq!((key.budget, account.budget), (None, None));
    assert_eq!(account.balance, usd("1"));
}

/// Its money stays.
pub async fn an_account_is_suspended_and_back<S: Store>(store: Arc<S>) {
    open_account(&*store, "a", "1").await;
    for suspended in [true, true, false] {
        assert!(store.suspend(&account_id("a"), suspended).await.unwrap());
        let (_, account) = store.key(&digest("a")).await.unwrap().unwrap();
        assert_eq!((account.suspended, account.balance), (suspended, usd("1")));
        let reference = "while it is suspended";
        let credited = store.credit(&account_id("a"), usd("0"), reference, at(0)).await;
        assert!(matches!(
            credited.unwrap(),
            Credited::Done(_) | Credited::Again(_)
        ));
    }
}

/// All of it together, whoever has it.
pub async fn there_is_no_more_money_than_can_be_counted<S: Store>(store: Arc<S>) {
    open_account(&*store, "a", "1").await;
    open_account(&*store, "b", "0").await;
    let rest = Usd::MAX.checked_sub(usd("1")).unwrap();
    let credit = async |name: &str, amount, reference: &str| {
        let id = account_id(name);
        store.credit(&id, amount, reference, at(0)).await.unwrap()
    };
    assert_eq!(credit("b", Usd::MAX, "too much").await, Credited::Refused);
    assert_eq!(credit("b", rest, "all there is").await, Credited::Done(rest));
    assert_eq!(credit("a", usd("0.000001"), "too much").await, Credited::Refused);
    let made = store
        .create_account(account("c", "0.000001"), at(0))
        .await
        .unwrap();
    assert_eq!(made, Created::Refused);
    assert_eq!(store.account(&account_id("c")).await.unwrap(), None);
    assert_eq!(balanced(&*store).await.credited, Usd::MAX);
}
