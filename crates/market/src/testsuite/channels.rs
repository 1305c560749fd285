//! The contract of channels.

use std::sync::Arc;

use super::fixtures::{
    Store, account_id, account_now, at, balanced, call, call_id, channel_id, digest, failed, key, key_id,
    new_channel, of_channel, open_account, open_channel, paid, usd,
};
use crate::limits::OPEN_CHANNELS_OF_ACCOUNT_MAX;
use crate::money::Usd;
use crate::store::{
    Begun, Channel, ChannelStatus, Closed, EntryKind, Finished, Funding, NewChannel, Opened, ToppedUp,
    Unpayable,
};

async fn now<S: Store>(store: &S, name: &str) -> Channel {
    store.channel(&channel_id(name)).await.unwrap().unwrap()
}

/// It leaves the balance, counts against the budgets, and comes back.
pub async fn a_channel_is_funded_and_what_is_left_comes_back<S: Store>(store: Arc<S>) {
    open_account(&*store, "a", "3").await;
    let there = Channel {
        id: channel_id("c"),
        secret_hash: digest("c"),
        funding: new_channel("c", Some("a"), "2").funding,
        deposit: usd("2"),
        used: Usd::ZERO,
        held: Usd::ZERO,
        refunded: Usd::ZERO,
        status: ChannelStatus::Open,
        opened_at: at(1),
        expires_at: at(3_600),
    };
    let opened = store.open_channel(new_channel("c", Some("a"), "2"), at(1)).await;
    assert_eq!(opened.unwrap(), Opened::Done(there.clone()));
    assert_eq!(now(&*store, "c").await, there);
    let (key, account) = store.key(&digest("a")).await.unwrap().unwrap();
    assert_eq!(
        (account.balance, account.spent, key.spent),
        (usd("1"), usd("2"), usd("2"))
    );
    assert_eq!(balanced(&*store).await.channels, usd("2"));

    let begun = store.begin(call(1, of_channel("c"), "0.5"), at(2)).await.unwrap();
    assert_eq!(begun, Begun::Started);
    let ended = store.finish(call_id(1), paid("0.5", "0"), at(3)).await.unwrap();
    assert_eq!(ended, Finished::Done);
    let closed = Channel {
        used: usd("0.5"),
        refunded: usd("1.5"),
        status: ChannelStatus::Closed,
        ..there
    };
    for secs in [4, 5] {
        let ended = store.close_channel(&channel_id("c"), at(secs)).await.unwrap();
        assert_eq!(ended, Closed::Done(closed.clone()));
    }
    assert_eq!(now(&*store, "c").await.balance(), Usd::ZERO);
    let (key, account) = store.key(&digest("a")).await.unwrap().unwrap();
    assert_eq!(
        (account.balance, account.spent, key.spent),
        (usd("2.5"), usd("0.5"), usd("0.5"))
    );
    let lines = store.entries(&account_id("a"), 1, 10).await.unwrap();
    let lines: Vec<_> = lines
        .iter()
        .map(|line| (line.kind, line.amount, line.reference.as_str(), line.balance))
        .collect();
    assert_eq!(
        lines,
        [
            (EntryKind::Deposit, usd("2"), "ch_c", usd("1")),
            (EntryKind::Refund, usd("1.5"), "ch_c", usd("2.5")),
        ]
    );
    assert_eq!(balanced(&*store).await.channels, Usd::ZERO);
}

/// Whatever it is called.
pub async fn a_channel_that_is_not_there_is_missing<S: Store>(store: Arc<S>) {
    for other in ["c", "c\0"].map(channel_id) {
        assert_eq!(store.channel(&other).await.unwrap(), None, "{other:?}");
        let closed = store.close_channel(&other, at(9)).await.unwrap();
        assert_eq!(closed, Closed::Missing, "{other:?}");
    }
}

/// So that nobody takes the places of everybody else.
pub async fn an_account_has_so_many_open<S: Store>(store: Arc<S>) {
    open_account(&*store, "a", "1").await;
    open_account(&*store, "b", "1").await;
    for number in 0..OPEN_CHANNELS_OF_ACCOUNT_MAX {
        open_channel(&*store, &format!("a{number}"), Some("a"), "0.001").await;
    }
    let one_more = store
        .open_channel(new_channel("a", Some("a"), "0.001"), at(0))
        .await;
    assert_eq!(one_more.unwrap(), Opened::TooMany);
    open_channel(&*store, "b", Some("b"), "0.001").await;
    open_channel(&*store, "c", None, "0.001").await;
    store.close_channel(&channel_id("a0"), at(1)).await.unwrap();
    open_channel(&*store, "a", Some("a"), "0.001").await;
    balanced(&*store).await;
}

/// And nothing is changed.
pub async fn what_cannot_be_paid_is_not_opened<S: Store>(store: Arc<S>) {
    open_account(&*store, "a", "1").await;
    open_account(&*store, "b", "1").await;
    let mut new = new_channel("c", Some("a"), "1");
    let open = async |new| store.open_channel(new, at(0)).await.unwrap();
    assert_eq!(
        open(new_channel("c", Some("a"), "1.000001")).await,
        Opened::Insufficient(usd("1"))
    );
    for (of_key, left) in [(Some("a"), "0.3"), (None, "0.2")] {
        let key = of_key.map(key_id);
        let set = store
            .set_budget(&account_id("a"), key.as_ref(), Some(usd(left)))
            .await;
        assert!(set.unwrap());
        assert_eq!(open(new.clone()).await, Opened::OverBudget(usd(left)));
    }
    assert!(store.suspend(&account_id("a"), true).await.unwrap());
    assert_eq!(open(new.clone()).await, Opened::NoAccount);
    new.funding = Funding::Account {
        account: account_id("b"),
        key: key_id("a"),
    };
    assert_eq!(open(new.clone()).await, Opened::NoAccount, "the key of another");
    assert_eq!(open(new_channel("c", Some("none"), "1")).await, Opened::NoAccount);
    assert_eq!(store.channel(&channel_id("c")).await.unwrap(), None);
    assert_eq!(account_now(&*store, "a").await.balance, usd("1"));
    assert_eq!(store.entries(&account_id("a"), 0, 10).await.unwrap().len(), 1);
    balanced(&*store).await;
}

/// Whatever has become of it since.
pub async fn opening_again_changes_nothing<S: Store>(store: Arc<S>) {
    open_account(&*store, "a", "3").await;
    let new = new_channel("c", Some("a"), "2");
    open_channel(&*store, "c", Some("a"), "2").await;
    let there = now(&*store, "c").await;
    let again = store.open_channel(new.clone(), at(7)).await.unwrap();
    assert_eq!(again, Opened::Done(there));
    let other = NewChannel {
        secret_hash: [7; 32],
        ..new.clone()
    };
    assert_eq!(store.open_channel(other, at(2)).await.unwrap(), Opened::OtherUse);
    store.close_channel(&channel_id("c"), at(8)).await.unwrap();
    let closed = now(&*store, "c").await;
    assert_eq!(
        store.open_channel(new, at(9)).await.unwrap(),
        Opened::Done(closed)
    );
    assert_eq!(account_now(&*store, "a").await.balance, usd("3"));
    balanced(&*store).await;
}

/// What is left of it is nothing.
pub async fn demo_money_comes_and_goes<S: Store>(store: Arc<S>) {
    open_channel(&*store, "c", None, "2").await;
    store.begin(call(1, of_channel("c"), "0.5"), at(2)).await.unwrap();
    store.finish(call_id(1), paid("0.5", "0.1"), at(3)).await.unwrap();
    let topped = store.top_up(&channel_id("c"), usd("1"), "more", at(4)).await;
    assert!(matches!(topped.unwrap(), ToppedUp::Done(_)));
    let totals = balanced(&*store).await;
    assert_eq!((totals.demo, totals.channels), (usd("3"), usd("2.5")));
    store.close_channel(&channel_id("c"), at(5)).await.unwrap();
    let totals = balanced(&*store).await;
    assert_eq!((totals.demo, totals.demo_returned), (usd("3"), usd("2.5")));
    assert_eq!((totals.earned, totals.fees), (usd("0.4"), usd("0.1")));
    assert_eq!(totals.credited, Usd::ZERO);
}

/// With one reference; and its money is in the balance and in the deposit.
pub async fn a_top_up_is_done_once<S: Store>(store: Arc<S>) {
    open_account(&*store, "a", "3").await;
    open_channel(&*store, "c", Some("a"), "1").await;
    open_channel(&*store, "d", Some("a"), "0.5").await;
    let top = async |name: &str, amount: &str, reference: &str| {
        let id = channel_id(name);
        store.top_up(&id, usd(amount), reference, at(9)).await.unwrap()
    };
    let ToppedUp::Done(more) = top("c", "0.25", "top 1").await else {
        unreachable!("topped up");
    };
    assert_eq!((more.deposit, more.balance()), (usd("1.25"), usd("1.25")));
    assert_eq!(more, now(&*store, "c").await);
    assert_eq!(top("c", "0.25", "top 1").await, ToppedUp::Again(more));
    assert_eq!(top("c", "0.26", "top 1").await, ToppedUp::OtherUse);
    assert_eq!(top("d", "0.25", "top 1").await, ToppedUp::OtherUse);
    assert_eq!(top("c", "3", "grant:acct_a").await, ToppedUp::OtherUse);
    let account = account_now(&*store, "a").await;
    assert_eq!((account.balance, account.spent), (usd("1.25"), usd("1.75")));
    balanced(&*store).await;
}

/// And uses no reference.
pub async fn what_cannot_be_paid_is_not_topped_up<S: Store>(store: Arc<S>) {
    open_account(&*store, "a", "3").await;
    open_channel(&*store, "c", Some("a"), "1").await;
    let top = async |amount: &str, secs| {
        let id = channel_id("c");
        store.top_up(&id, usd(amount), "top", at(secs)).await.unwrap()
    };
    assert_eq!(top("2.1", 1).await, ToppedUp::Insufficient(usd("2")));
    store
        .set_budget(&account_id("a"), None, Some(usd("1.5")))
        .await
        .unwrap();
    assert_eq!(top("1", 1).await, ToppedUp::OverBudget(usd("0.5")));
    assert_eq!(top("0.5", 3_601).await, ToppedUp::Refused, "its time is over");
    store.suspend(&account_id("a"), true).await.unwrap();
    assert_eq!(top("0.5", 1).await, ToppedUp::Refused, "suspended");
    store.suspend(&account_id("a"), false).await.unwrap();
    let missing = store.top_up(&channel_id("no"), usd("0.5"), "top", at(1)).await;
    assert_eq!(missing.unwrap(), ToppedUp::Refused);
    assert!(matches!(top("0.5", 3_600).await, ToppedUp::Done(_)));
    store.close_channel(&channel_id("c"), at(2)).await.unwrap();
    let after = store.top_up(&channel_id("c"), usd("0.1"), "late", at(3)).await;
    assert_eq!(after.unwrap(), ToppedUp::Refused, "closed");
    assert_eq!(account_now(&*store, "a").await.balance, usd("3"));
    balanced(&*store).await;
}

/// What is under way is paid or given back first.
pub async fn a_channel_ends_when_nothing_is_held<S: Store>(store: Arc<S>) {
    open_account(&*store, "a", "3").await;
    open_channel(&*store, "c", Some("a"), "1").await;
    for n in [1, 2] {
        let begun = store.begin(call(n, of_channel("c"), "0.4"), at(1)).await.unwrap();
        assert_eq!(begun, Begun::Started);
    }
    let close = async || store.close_channel(&channel_id("c"), at(2)).await.unwrap();
    assert_eq!(close().await, Closed::Pending(usd("0.8")));
    store.finish(call_id(1), paid("0.4", "0"), at(3)).await.unwrap();
    assert_eq!(close().await, Closed::Pending(usd("0.4")));
    assert_eq!(store.expire_channels(at(9_999), 10).await.unwrap(), []);
    store.finish(call_id(2), failed(), at(3)).await.unwrap();
    assert!(matches!(close().await, Closed::Done(channel) if channel.refunded == usd("0.6")));
    let begun = store.begin(call(3, of_channel("c"), "0.1"), at(4)).await.unwrap();
    assert_eq!(begun, Begun::Unpayable(Unpayable::NoPurse));
    assert_eq!(account_now(&*store, "a").await.balance, usd("2.6"));
    balanced(&*store).await;
}

/// The oldest first, so many at a time.
pub async fn channels_expire<S: Store>(store: Arc<S>) {
    open_account(&*store, "a", "9").await;
    for (name, secs) in [("c", 30), ("d", 10), ("e", 20), ("f", 40)] {
        let mut new = new_channel(name, Some("a"), "1");
        new.expires_at = at(secs);
        store.open_channel(new, at(0)).await.unwrap();
    }
    let expire = async |secs, limit| {
        let ended = store.expire_channels(at(secs), limit).await.unwrap();
        ended.into_iter().map(|channel| channel.id.0).collect::<Vec<_>>()
    };
    assert_eq!(
        expire(10, 9).await,
        Vec::<String>::new(),
        "at its moment it is open"
    );
    assert_eq!(expire(31, 2).await, ["ch_d", "ch_e"]);
    assert_eq!(expire(31, 2).await, ["ch_c"]);
    assert_eq!(expire(31, 2).await, Vec::<String>::new());
    let over = now(&*store, "c").await;
    assert_eq!((over.status, over.refunded), (ChannelStatus::Expired, usd("1")));
    let closed = store.close_channel(&channel_id("c"), at(50)).await.unwrap();
    assert_eq!(closed, Closed::Done(over), "it has ended");
    assert_eq!(account_now(&*store, "a").await.balance, usd("8"));
    balanced(&*store).await;
}

/// What went into it is spent with its own secret, and comes back to the account.
pub async fn a_channel_outlives_its_key<S: Store>(store: Arc<S>) {
    open_account(&*store, "a", "3").await;
    let added = store.add_key(&account_id("a"), key("other"), at(0)).await;
    added.unwrap();
    open_channel(&*store, "c", Some("a"), "1").await;
    store.revoke_key(&account_id("a"), &key_id("a")).await.unwrap();
    let topped = store.top_up(&channel_id("c"), usd("1"), "top", at(1)).await;
    assert_eq!(topped.unwrap(), ToppedUp::Refused);
    store.suspend(&account_id("a"), true).await.unwrap();
    let begun = store.begin(call(1, of_channel("c"), "0.4"), at(1)).await.unwrap();
    assert_eq!(begun, Begun::Started);
    store.finish(call_id(1), paid("0.4", "0"), at(2)).await.unwrap();
    store.close_channel(&channel_id("c"), at(3)).await.unwrap();
    let account = account_now(&*store, "a").await;
    assert_eq!((account.balance, account.spent), (usd("2.6"), usd("0.4")));
    balanced(&*store).await;
}

/// In the order of their ids.
pub async fn channels_are_read_in_pages<S: Store>(store: Arc<S>) {
    for name in ["c", "a", "d", "b"] {
        open_channel(&*store, name, None, "1").await;
    }
    store.close_channel(&channel_id("b"), at(1)).await.unwrap();
    let read = async |after: Option<&str>, limit| {
        let after = after.map(channel_id);
        let page = store.channels(after.as_ref(), limit).await.unwrap();
        page.into_iter().map(|channel| channel.id.0).collect::<Vec<_>>()
    };
    assert_eq!(read(None, 3).await, ["ch_a", "ch_b", "ch_c"]);
    assert_eq!(read(Some("b"), u32::MAX).await, ["ch_c", "ch_d"]);
    assert_eq!(read(Some("d"), 1).await, Vec::<String>::new());
}
