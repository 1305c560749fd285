//! The contract of what a call costs: who pays what, and when.

use std::sync::Arc;

use super::fixtures::{
    Store, account_id, account_now, agent, answer, at, balanced, call, call_id, channel_id, digest, failed,
    free_call, key_id, of_account, of_channel, open_account, open_channel, paid, receipt, trial, usd,
};
use crate::money::Usd;
use crate::store::{
    Begun, Earned, EntryKind, Finish, Finished, Invocation, InvocationStatus, Outcome, Purse, Unpayable,
};

/// What the lines of the account `name` after the first say.
async fn lines<S: Store>(store: &S, name: &str) -> Vec<(EntryKind, Usd, Usd)> {
    let lines = store.entries(&account_id(name), 1, 100).await.unwrap();
    let brief = |line: &crate::store::Entry| (line.kind, line.amount, line.balance);
    lines.iter().map(brief).collect()
}

async fn began<S: Store>(store: &S, begin: crate::store::Begin) {
    assert_eq!(store.begin(begin, at(1)).await.unwrap(), Begun::Started);
}

/// First it is set aside, then it is the provider's and the hub's.
pub async fn a_call_is_held_and_paid<S: Store>(store: Arc<S>) {
    open_account(&*store, "a", "1").await;
    began(&*store, call(1, of_account("a"), "0.25")).await;
    let (key, account) = store.key(&digest("a")).await.unwrap().unwrap();
    assert_eq!((account.balance, account.held), (usd("0.75"), usd("0.25")));
    assert_eq!((account.spent, key.spent), (usd("0.25"), usd("0.25")));
    let mut there = Invocation {
        id: call_id(1),
        status: InvocationStatus::Started,
        agent: agent("seller"),
        product_id: "prod".to_owned(),
        capability_id: "cap'; --".to_owned(),
        charged: Usd::ZERO,
        answer: None,
        started_at: at(1),
        purse: Some(of_account("a")),
    };
    assert_eq!(store.invocation(call_id(1)).await.unwrap(), Some(there.clone()));
    assert_eq!(balanced(&*store).await.held, usd("0.25"));

    let ended = store.finish(call_id(1), paid("0.25", "0.01"), at(2)).await;
    assert_eq!(ended.unwrap(), Finished::Done);
    (there.status, there.charged) = (InvocationStatus::Finished, usd("0.25"));
    assert_eq!(store.invocation(call_id(1)).await.unwrap(), Some(there));
    let (key, account) = store.key(&digest("a")).await.unwrap().unwrap();
    assert_eq!((account.balance, account.held), (usd("0.75"), Usd::ZERO));
    assert_eq!((account.spent, key.spent), (usd("0.25"), usd("0.25")));
    let all = store.entries(&account_id("a"), 0, 100).await.unwrap();
    assert_eq!(
        all[1].reference,
        call_id(1).to_string(),
        "lines name the invocation"
    );
    assert_eq!(
        (all[2].reference.as_str(), all[2].at),
        (all[1].reference.as_str(), at(2))
    );
    assert_eq!(
        lines(&*store, "a").await,
        [
            (EntryKind::Hold, usd("0.25"), usd("0.75")),
            (EntryKind::Capture, usd("0.25"), usd("0.75")),
        ]
    );
    let earned = Earned {
        agent: agent("seller"),
        earned: usd("0.24"),
        paid_out: Usd::ZERO,
        calls: 1,
        paid_directly: Usd::ZERO,
    };
    assert_eq!(store.earned(&agent("seller")).await.unwrap(), earned);
    let totals = balanced(&*store).await;
    assert_eq!((totals.held, totals.fees), (Usd::ZERO, usd("0.01")));
    assert_eq!(store.invocation(call_id(2)).await.unwrap(), None);
}

/// As from an account, without a ledger of its own.
pub async fn a_call_from_a_channel_is_held_and_paid<S: Store>(store: Arc<S>) {
    open_account(&*store, "a", "1").await;
    open_channel(&*store, "c", Some("a"), "0.5").await;
    let now = async || {
        let channel = store.channel(&channel_id("c")).await.unwrap().unwrap();
        (channel.held, channel.used, channel.balance())
    };
    began(&*store, call(1, of_channel("c"), "0.2")).await;
    assert_eq!(now().await, (usd("0.2"), Usd::ZERO, usd("0.3")));
    began(&*store, call(2, of_channel("c"), "0.3")).await;
    assert_eq!(now().await, (usd("0.5"), Usd::ZERO, Usd::ZERO));
    store.finish(call_id(1), paid("0.2", "0"), at(2)).await.unwrap();
    assert_eq!(now().await, (usd("0.3"), usd("0.2"), Usd::ZERO));
    store.finish(call_id(2), failed(), at(2)).await.unwrap();
    assert_eq!(now().await, (Usd::ZERO, usd("0.2"), usd("0.3")));
    assert_eq!(
        lines(&*store, "a").await,
        [(EntryKind::Deposit, usd("0.5"), usd("0.5"))]
    );
    balanced(&*store).await;
}

/// Nor does it count against a budget.
pub async fn a_call_that_failed_costs_nothing<S: Store>(store: Arc<S>) {
    open_account(&*store, "a", "1").await;
    began(&*store, call(1, of_account("a"), "0.25")).await;
    store.finish(call_id(1), failed(), at(2)).await.unwrap();
    let (key, account) = store.key(&digest("a")).await.unwrap().unwrap();
    assert_eq!((account.balance, account.held), (usd("1"), Usd::ZERO));
    assert_eq!((account.spent, key.spent), (Usd::ZERO, Usd::ZERO));
    assert_eq!(
        lines(&*store, "a").await,
        [
            (EntryKind::Hold, usd("0.25"), usd("0.75")),
            (EntryKind::Release, usd("0.25"), usd("1")),
        ]
    );
    let there = store.invocation(call_id(1)).await.unwrap().unwrap();
    assert_eq!(
        (there.status, there.charged),
        (InvocationStatus::Finished, Usd::ZERO)
    );
    let earned = store.earned(&agent("seller")).await.unwrap();
    assert_eq!((earned.earned, earned.calls), (Usd::ZERO, 0));
    assert_eq!(store.all_earned(None, 10).await.unwrap(), []);
    balanced(&*store).await;
}

/// Whatever is asked at the end; nor is a fee more than what is paid.
pub async fn nobody_pays_more_than_was_held<S: Store>(store: Arc<S>) {
    open_account(&*store, "a", "1").await;
    open_channel(&*store, "c", None, "1").await;
    for (n, purse) in [(1, of_account("a")), (2, of_channel("c"))] {
        began(&*store, call(n, purse, "0.25")).await;
        let ended = store.finish(call_id(n), paid("0.75", "0.5"), at(2)).await;
        assert_eq!(ended.unwrap(), Finished::Done);
    }
    began(&*store, free_call(3)).await;
    store.finish(call_id(3), paid("5", "5"), at(2)).await.unwrap();
    assert_eq!(account_now(&*store, "a").await.balance, usd("0.75"));
    let channel = store.channel(&channel_id("c")).await.unwrap().unwrap();
    assert_eq!(channel.balance(), usd("0.75"));
    let totals = balanced(&*store).await;
    assert_eq!((totals.earned, totals.fees), (Usd::ZERO, usd("0.5")));
    let free = store.invocation(call_id(3)).await.unwrap().unwrap();
    assert_eq!(free.charged, Usd::ZERO);
}

/// A part is paid, and the rest is in the balance again.
pub async fn pitfall_32_what_is_not_used_comes_back<S: Store>(store: Arc<S>) {
    open_account(&*store, "a", "1").await;
    open_channel(&*store, "c", None, "1").await;
    for (n, purse) in [(1, of_account("a")), (2, of_channel("c"))] {
        began(&*store, call(n, purse, "0.5")).await;
        store
            .finish(call_id(n), paid("0.1", "0.000001"), at(2))
            .await
            .unwrap();
    }
    let account = account_now(&*store, "a").await;
    assert_eq!((account.balance, account.spent), (usd("0.9"), usd("0.1")));
    assert_eq!(
        lines(&*store, "a").await,
        [
            (EntryKind::Hold, usd("0.5"), usd("0.5")),
            (EntryKind::Capture, usd("0.1"), usd("0.5")),
            (EntryKind::Release, usd("0.4"), usd("0.9")),
        ]
    );
    let channel = store.channel(&channel_id("c")).await.unwrap().unwrap();
    assert_eq!((channel.used, channel.balance()), (usd("0.1"), usd("0.9")));
    let earned = store.earned(&agent("seller")).await.unwrap();
    assert_eq!((earned.earned, earned.calls), (usd("0.199998"), 2));
    balanced(&*store).await;
}

/// And nothing is changed.
pub async fn what_cannot_be_paid_is_not_begun<S: Store>(store: Arc<S>) {
    open_account(&*store, "a", "1").await;
    open_account(&*store, "b", "1").await;
    open_channel(&*store, "c", None, "0.5").await;
    let stranger = Purse::Account {
        account: account_id("b"),
        key: key_id("a"),
    };
    for (purse, amount, unpayable) in [
        (of_account("a"), "1.000001", Unpayable::Insufficient(usd("1"))),
        (of_channel("c"), "0.500001", Unpayable::Insufficient(usd("0.5"))),
        (of_account("none"), "0.1", Unpayable::NoPurse),
        (of_channel("none"), "0.1", Unpayable::NoPurse),
        (stranger, "0.1", Unpayable::NoPurse),
    ] {
        let begun = store.begin(call(1, purse.clone(), amount), at(1)).await.unwrap();
        assert_eq!(begun, Begun::Unpayable(unpayable), "{purse:?}");
        assert_eq!(store.invocation(call_id(1)).await.unwrap(), None);
    }
    store.suspend(&account_id("a"), true).await.unwrap();
    let begun = store.begin(call(1, of_account("a"), "0.1"), at(1)).await.unwrap();
    assert_eq!(begun, Begun::Unpayable(Unpayable::NoPurse));
    assert_eq!(
        store.finish(call_id(1), failed(), at(2)).await.unwrap(),
        Finished::NotStarted
    );
    assert_eq!(lines(&*store, "a").await, []);
    assert_eq!(balanced(&*store).await.held, Usd::ZERO);
    store.suspend(&account_id("a"), false).await.unwrap();
    began(&*store, call(1, of_account("a"), "1")).await;
}

/// Of the key, and of all keys of the account together; nothing at all buys nothing.
pub async fn a_budget_counts_what_is_held<S: Store>(store: Arc<S>) {
    open_account(&*store, "a", "9").await;
    let set = async |key: Option<&str>, budget: &str| {
        let key = key.map(key_id);
        let set = store
            .set_budget(&account_id("a"), key.as_ref(), Some(usd(budget)))
            .await;
        assert!(set.unwrap());
    };
    let begin = async |n| {
        let begin = call(n, of_account("a"), "0.3");
        store.begin(begin, at(1)).await.unwrap()
    };
    set(Some("a"), "0.7").await;
    assert_eq!(begin(1).await, Begun::Started);
    assert_eq!(begin(2).await, Begun::Started);
    assert_eq!(
        begin(3).await,
        Begun::Unpayable(Unpayable::OverBudget(usd("0.1")))
    );
    store.finish(call_id(1), failed(), at(2)).await.unwrap();
    assert_eq!(begin(3).await, Begun::Started);
    set(None, "0.6").await;
    set(Some("a"), "7").await;
    assert_eq!(begin(4).await, Begun::Unpayable(Unpayable::OverBudget(Usd::ZERO)));
    store.finish(call_id(2), paid("0.3", "0"), at(2)).await.unwrap();
    assert_eq!(begin(4).await, Begun::Unpayable(Unpayable::OverBudget(Usd::ZERO)));
    set(None, "0").await;
    assert_eq!(begin(4).await, Begun::Unpayable(Unpayable::OverBudget(Usd::ZERO)));
    let free = store.begin(free_call(5), at(1)).await.unwrap();
    assert_eq!(free, Begun::Started);
    balanced(&*store).await;
}

/// But what was begun before is paid.
pub async fn a_channel_that_is_over_pays_nothing<S: Store>(store: Arc<S>) {
    open_channel(&*store, "c", None, "1").await;
    let begin = async |n, secs| {
        let begin = call(n, of_channel("c"), "0.1");
        store.begin(begin, at(secs)).await.unwrap()
    };
    assert_eq!(begin(1, 3_600).await, Begun::Started);
    assert_eq!(begin(2, 3_601).await, Begun::Unpayable(Unpayable::NoPurse));
    store
        .finish(call_id(1), paid("0.1", "0"), at(3_700))
        .await
        .unwrap();
    let ended = store.expire_channels(at(3_701), 10).await.unwrap();
    assert_eq!((ended[0].used, ended[0].refunded), (usd("0.1"), usd("0.9")));
    balanced(&*store).await;
}

/// They are paid, or come back to the account.
pub async fn a_revoked_key_leaves_its_calls_whole<S: Store>(store: Arc<S>) {
    open_account(&*store, "a", "1").await;
    for n in [1, 2] {
        began(&*store, call(n, of_account("a"), "0.3")).await;
    }
    store.revoke_key(&account_id("a"), &key_id("a")).await.unwrap();
    let begun = store.begin(call(3, of_account("a"), "0.3"), at(1)).await.unwrap();
    assert_eq!(begun, Begun::Unpayable(Unpayable::NoPurse));
    store.finish(call_id(1), paid("0.3", "0"), at(2)).await.unwrap();
    store.finish(call_id(2), failed(), at(2)).await.unwrap();
    let account = account_now(&*store, "a").await;
    assert_eq!((account.balance, account.spent), (usd("0.7"), usd("0.3")));
    balanced(&*store).await;
}

/// Whether it succeeds or not.
pub async fn a_free_call_moves_nothing<S: Store>(store: Arc<S>) {
    open_account(&*store, "a", "1").await;
    began(&*store, free_call(1)).await;
    began(&*store, free_call(2)).await;
    began(&*store, call(3, of_account("a"), "0")).await;
    for (n, finish) in [(1, paid("0", "0")), (2, failed()), (3, paid("0", "0"))] {
        let ended = store.finish(call_id(n), finish, at(2)).await.unwrap();
        assert_eq!(ended, Finished::Done);
    }
    assert_eq!(lines(&*store, "a").await, [], "nothing has no line");
    assert_eq!(store.all_earned(None, 10).await.unwrap(), []);
    assert_eq!(balanced(&*store).await.balances, usd("1"));
}

/// Of each visitor; one that failed or was lost is given back, and one that succeeded is not.
pub async fn trials_are_counted<S: Store>(store: Arc<S>) {
    let begin = async |n, visitor: &str| store.begin(trial(n, visitor), at(1)).await.unwrap();
    let used_up = Begun::Unpayable(Unpayable::TrialsUsed(2));
    assert_eq!(begin(1, "v").await, Begun::Started);
    assert_eq!(begin(2, "v").await, Begun::Started);
    assert_eq!(begin(3, "v").await, used_up);
    assert_eq!(store.invocation(call_id(3)).await.unwrap(), None);
    assert_eq!(begin(4, "w").await, Begun::Started);
    store.finish(call_id(1), failed(), at(2)).await.unwrap();
    assert_eq!(begin(3, "v").await, Begun::Started);
    assert_eq!(begin(5, "v").await, used_up);
    for n in [2, 3] {
        store.finish(call_id(n), paid("0", "0"), at(2)).await.unwrap();
    }
    assert_eq!(begin(5, "v").await, used_up);
    let abandoned = store.abandon(None, 10, at(60)).await.unwrap();
    assert_eq!(abandoned, [call_id(4)]);
    assert_eq!(begin(6, "w").await, Begun::Started);
    assert_eq!(begin(7, "w").await, Begun::Started);
    assert_eq!(begin(8, "w").await, used_up);
}

/// By their nonces, byte for byte.
pub async fn receipts_are_kept<S: Store>(store: Arc<S>) {
    began(&*store, free_call(1)).await;
    assert_eq!(store.receipt("rcpt_1").await.unwrap(), None);
    let kept = receipt("1");
    let finish = Finish {
        outcome: Outcome::Released,
        answer: answer("no"),
        receipt: Some(kept.clone()),
    };
    store.finish(call_id(1), finish, at(2)).await.unwrap();
    assert_eq!(store.receipt("rcpt_1").await.unwrap(), Some(kept.receipt));
    // A stranger asks for whatever text there is.
    for other in ["RCPT_1", "", "rcpt_1\0", "\0"] {
        assert_eq!(store.receipt(other).await.unwrap(), None, "{other:?}");
    }
}
