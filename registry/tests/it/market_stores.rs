//! The market's money, kept by several processes, through crashes and through moves, whichever engine it is.

use std::sync::Arc;

use aip_market::money::Usd;
use aip_market::store::{
    Accounts, Begin, Begun, Channels, Credited, Earnings, Finish, Finished, InvocationStatus, Invocations,
    MarketStore, MemoryMarket, Opened, StoreError, Unpayable,
};
use aip_market::testsuite::crowds::{begin_at_once, started};
use aip_market::testsuite::fixtures::{
    account_id, account_now, agent, answer, at, balanced, call, call_id, channel_id, failed, idempotency,
    key_id, new_channel, of_account, of_channel, open_account, open_channel, paid, receipt, trial, usd,
};
use aip_registry::SqlStore;
use tokio::task::JoinSet;
use uuid::Uuid;

use crate::place::{Place, on_both_engines};

on_both_engines!(
    on two threads:
    two_processes_at_once_and_money_for_ten,
    two_processes_at_once_and_a_channel_for_ten,
    two_processes_begin_one_of_many_repetitions,
    two_processes_and_one_reference,
    what_two_processes_do_adds_up,
    a_lost_process_is_cleared_away_by_the_next,
    everything_is_there_after_a_restart,
    a_copy_has_everything_and_follows_the_original,
    a_copy_takes_no_money_back,
    damage_of_the_money_is_found,
    damaged_rows_are_not_believed,
);

/// Two processes of one hub.
async fn processes(place: &Place) -> [Arc<SqlStore>; 2] {
    [place.open().await, place.open().await].map(Arc::new)
}

async fn is_whole(store: &SqlStore) {
    balanced(store).await;
    assert_eq!(
        store.check_integrity().await.expect("checked"),
        Vec::<String>::new()
    );
}

async fn two_processes_at_once_and_money_for_ten(place: Place) {
    let stores = processes(&place).await;
    open_account(&*stores[0], "a", "0.10").await;
    let calls = (0..40).map(|n| call(n, of_account("a"), "0.01"));
    let begun = begin_at_once(&stores, calls).await;
    assert_eq!(started(&begun, Unpayable::Insufficient(Usd::ZERO)), 10);
    for store in &stores {
        let account = account_now(&**store, "a").await;
        assert_eq!((account.balance, account.held), (Usd::ZERO, usd("0.10")));
    }
    is_whole(&stores[0]).await;
}

async fn two_processes_at_once_and_a_channel_for_ten(place: Place) {
    let stores = processes(&place).await;
    open_channel(&*stores[0], "c", None, "0.10").await;
    let calls = (0..40).map(|n| call(n, of_channel("c"), "0.01"));
    let begun = begin_at_once(&stores, calls).await;
    assert_eq!(started(&begun, Unpayable::Insufficient(Usd::ZERO)), 10);
    is_whole(&stores[1]).await;
}

async fn two_processes_begin_one_of_many_repetitions(place: Place) {
    let stores = processes(&place).await;
    open_account(&*stores[0], "a", "1").await;
    let calls = (0..40).map(|n| Begin {
        idempotency: Some(idempotency("k", "b")),
        ..call(n, of_account("a"), "0.01")
    });
    let begun = begin_at_once(&stores, calls).await;
    assert_eq!(begun.iter().filter(|begun| **begun == Begun::Started).count(), 1);
    assert_eq!(
        begun
            .iter()
            .filter(|begun| matches!(begun, Begun::Running(_)))
            .count(),
        39
    );
    is_whole(&stores[0]).await;
}

async fn two_processes_and_one_reference(place: Place) {
    let stores = processes(&place).await;
    open_account(&*stores[0], "a", "0").await;
    let mut tasks = JoinSet::new();
    for n in 0..20 {
        let store = Arc::clone(&stores[n % 2]);
        tasks.spawn(async move {
            let credited = store.credit(&account_id("a"), usd("1"), "bill", at(0)).await;
            u32::from(matches!(credited.expect("answered"), Credited::Done(_)))
        });
    }
    assert_eq!(tasks.join_all().await.into_iter().sum::<u32>(), 1);
    assert_eq!(account_now(&*stores[1], "a").await.balance, usd("1"));
    is_whole(&stores[1]).await;
}

/// Calls, ends, losses, channels that open and close, agents that register in between: everybody is answered, in time.
async fn what_two_processes_do_adds_up(place: Place) {
    let stores = processes(&place).await;
    open_account(&*stores[0], "a", "1").await;
    open_account(&*stores[0], "b", "1").await;
    let mut tasks = JoinSet::new();
    for n in 0..80_u8 {
        let store = Arc::clone(&stores[usize::from(n % 2)]);
        tasks.spawn(async move { busy(&store, n).await });
    }
    tasks.join_all().await;
    let lost = stores[0].abandon(None, 500, at(99)).await.expect("abandoned");
    let late = stores[1].abandon(None, 500, at(99)).await.expect("abandoned");
    assert!(late.is_empty(), "{} before", lost.len());
    stores[1].expire_channels(at(9_999), 500).await.expect("expired");
    let totals = balanced(&*stores[0]).await;
    assert_eq!((totals.held, totals.channels), (Usd::ZERO, Usd::ZERO));
    is_whole(&stores[1]).await;
}

async fn busy(store: &SqlStore, n: u8) {
    use aip_registry::Directory;
    use aip_registry::testsuite::fixtures::newcomer;

    let payer = if n.is_multiple_of(3) { "a" } else { "b" };
    let begin = call(n.into(), of_account(payer), "0.03");
    store.begin(begin, at(1)).await.expect("answered");
    store
        .create(newcomer(&format!("agent-{}", n % 7)))
        .await
        .expect("answered");
    match n % 4 {
        0 => drop(
            store
                .finish(call_id(n.into()), failed(), at(2))
                .await
                .expect("answered"),
        ),
        1 => {
            let ended = store.finish(call_id(n.into()), paid("0.03", "0.01"), at(2)).await;
            ended.expect("answered");
        }
        2 => {
            let channel = new_channel(&format!("c{}", n % 8), Some(payer), "0.05");
            let opened = store.open_channel(channel, at(2)).await.expect("answered");
            if let Opened::Done(channel) = opened {
                store.close_channel(&channel.id, at(3)).await.expect("answered");
            }
        }
        _ => {}
    }
}

/// What it held goes back; what it had answered stays answered.
async fn a_lost_process_is_cleared_away_by_the_next(place: Place) {
    let store = place.open().await;
    open_account(&store, "a", "1").await;
    open_channel(&store, "c", Some("a"), "0.5").await;
    for begin in [
        call(1, of_account("a"), "0.1"),
        call(2, of_channel("c"), "0.1"),
        trial(3, "v"),
        call(4, of_account("a"), "0.1"),
    ] {
        assert_eq!(store.begin(begin, at(1)).await.expect("answered"), Begun::Started);
    }
    let ended = store.finish(call_id(4), paid("0.1", "0"), at(2)).await;
    assert_eq!(ended.expect("answered"), Finished::Done);
    // It is gone without a word.
    drop(store);

    let store = place.open().await;
    assert_eq!(balanced(&store).await.held, usd("0.2"));
    let lost = store.abandon(Some(Uuid::from_u128(1)), 10, at(3)).await;
    assert_eq!(lost.expect("answered"), [1, 2, 3].map(call_id));
    let account = account_now(&store, "a").await;
    assert_eq!((account.balance, account.held), (usd("0.4"), Usd::ZERO));
    let there = store.invocation(call_id(4)).await.expect("read").expect("known");
    assert_eq!(there.status, InvocationStatus::Finished);
    is_whole(&store).await;
}

/// A bit of everything.
async fn fill(store: &SqlStore) {
    open_account(store, "a", "5").await;
    let mut owned = aip_market::testsuite::fixtures::account("b", "1");
    owned.owner = Some(agent("bob"));
    store.create_account(owned, at(0)).await.expect("made");
    open_channel(store, "c", Some("a"), "1").await;
    open_channel(store, "d", None, "1").await;
    open_channel(store, "e", Some("a"), "0.5").await;
    for n in 1..=3 {
        let begin = Begin {
            idempotency: Some(idempotency(&format!("k{n}"), "b")),
            ..call(n, of_account("a"), "0.1")
        };
        store.begin(begin, at(1)).await.expect("begun");
    }
    let finish = Finish {
        receipt: Some(receipt("1")),
        ..paid("0.1", "0.01")
    };
    store.finish(call_id(1), finish, at(2)).await.expect("ended");
    store
        .begin(call(4, of_channel("c"), "0.2"), at(1))
        .await
        .expect("begun");
    store.begin(trial(5, "v"), at(1)).await.expect("begun");
    store
        .close_channel(&channel_id("e"), at(2))
        .await
        .expect("closed");
    let (seller, amount) = (agent("seller"), usd("0.05"));
    store.pay_out(&seller, amount, "wire", at(3)).await.expect("paid");
}

async fn check(store: &SqlStore) {
    let account = account_now(store, "a").await;
    assert_eq!((account.balance, account.held), (usd("3.7"), usd("0.2")));
    let there = store.invocation(call_id(1)).await.expect("read").expect("known");
    assert_eq!(there.answer, Some(answer("done")));
    let kept = store.receipt("rcpt_1").await.expect("read");
    assert_eq!(kept, Some(receipt("1").receipt));
    let owned = store.account_of(&agent("bob")).await.expect("read");
    assert_eq!(owned.map(|account| account.id), Some(account_id("b")));
    let again = store
        .credit(&account_id("a"), usd("5"), "grant:acct_a", at(9))
        .await;
    assert_eq!(again.expect("answered"), Credited::Again(usd("3.7")));
    is_whole(store).await;
}

async fn everything_is_there_after_a_restart(place: Place) {
    let store = place.open().await;
    fill(&store).await;
    let totals = balanced(&store).await;
    store.close().await;
    let closed = store.totals().await.expect_err("closed");
    assert!(matches!(closed, StoreError::Unavailable(_)), "{closed:?}");
    let store = place.open().await;
    assert_eq!(balanced(&store).await, totals);
    check(&store).await;
    // Everything goes on where it was.
    let ended = store.finish(call_id(4), paid("0.2", "0"), at(5)).await;
    assert_eq!(ended.expect("answered"), Finished::Done);
    is_whole(&store).await;
}

async fn a_copy_has_everything_and_follows_the_original(place: Place) {
    let from = Place::sqlite();
    let (original, copy) = (from.open().await, place.open().await);
    fill(&original).await;
    let equal = async || original.digest().await.expect("a digest") == copy.digest().await.expect("a digest");
    assert!(!equal().await);
    for _ in 0..2 {
        original.copy_to(&copy).await.expect("copied");
        assert!(equal().await);
    }
    check(&copy).await;
    assert_eq!(balanced(&copy).await, balanced(&original).await);

    // Whatever can change in the original changes in the copy, and whatever can go is gone.
    original.finish(call_id(2), failed(), at(4)).await.expect("ended");
    original
        .finish(call_id(4), paid("0.2", "0.1"), at(4))
        .await
        .expect("ended");
    original.finish(call_id(5), failed(), at(4)).await.expect("ended");
    original
        .close_channel(&channel_id("c"), at(5))
        .await
        .expect("closed");
    original.forget_answers(at(9), 10).await.expect("forgotten");
    original
        .revoke_key(&account_id("a"), &key_id("a"))
        .await
        .expect("revoked");
    original.suspend(&account_id("b"), true).await.expect("suspended");
    open_account(&original, "z", "2").await;
    let paid = original
        .pay_out(&agent("seller"), usd("0.1"), "wire 2", at(6))
        .await;
    paid.expect("paid");
    assert!(!equal().await);
    original.copy_to(&copy).await.expect("copied");
    assert!(equal().await);
    is_whole(&copy).await;
}

/// Somebody was paid at the new place already.
async fn a_copy_takes_no_money_back(place: Place) {
    let from = Place::sqlite();
    let (original, copy) = (from.open().await, place.open().await);
    fill(&original).await;
    original.copy_to(&copy).await.expect("copied");
    let credited = copy.credit(&account_id("b"), usd("7"), "bill", at(4)).await;
    credited.expect("credited");
    copy.finish(call_id(2), paid("0.1", "0"), at(4))
        .await
        .expect("ended");
    copy.finish(call_id(4), paid("0.2", "0"), at(4))
        .await
        .expect("ended");
    copy.close_channel(&channel_id("d"), at(4)).await.expect("closed");
    let totals = balanced(&copy).await;
    original.copy_to(&copy).await.expect("copied");
    assert_eq!(balanced(&copy).await, totals);
    assert_eq!(account_now(&copy, "b").await.balance, usd("8"));
    is_whole(&copy).await;
}

async fn damage_of_the_money_is_found(place: Place) {
    let store = place.open().await;
    fill(&store).await;
    let found = async |damage: &str| {
        place.damage(damage).await;
        store.check_integrity().await.expect("checked")
    };
    assert_eq!(
        found("UPDATE market_money SET credited = credited + 1").await,
        [
            "of the 6000001 millionths of a dollar that were put in some were lost, or there are too many",
            "the ledgers do not say that 6000001 millionths of a dollar were put in",
        ]
    );
    assert!(!store.totals().await.expect("read").balance());
    assert_eq!(
        found(
            "UPDATE market_money SET credited = credited - 1; \
             UPDATE market_accounts SET balance = balance - 2, held = held + 2 WHERE id = 'acct_a'"
        )
        .await,
        [
            "the balance of acct_a is not that of its last line",
            "what is held of acct_a is not what its calls hold",
        ]
    );
    assert_eq!(
        found(
            "UPDATE market_accounts SET balance = balance + 2, held = held - 2 WHERE id = 'acct_a'; \
             DELETE FROM market_lines WHERE account = 'acct_a' AND number = 2; \
             UPDATE market_channels SET held = held + 1, deposit = deposit + 1 WHERE id = 'ch_e'; \
             UPDATE market_earnings SET earned = earned - 1"
        )
        .await,
        [
            "the ledger of acct_a has not as many lines as were counted",
            "what is held of ch_e is not what its calls hold",
            "ch_e has ended, and not all of its money went somewhere",
            "what did:aip:hub.example:seller earned is not what was paid for its calls",
        ]
    );
}

async fn damaged_rows_are_not_believed(place: Place) {
    let store = place.open().await;
    fill(&store).await;
    place
        .damage("UPDATE market_accounts SET balance = -1 WHERE id = 'acct_a'")
        .await;
    let read = store.account(&account_id("a")).await.expect_err("not believed");
    assert!(matches!(read, StoreError::Corrupt(_)), "{read:?}");
    let begun = store.begin(call(9, of_account("a"), "0.1"), at(2)).await;
    begun.expect_err("not written over");
    place
        .damage("DELETE FROM market_channels WHERE id = 'ch_c'")
        .await;
    let ended = store.finish(call_id(4), paid("0.2", "0"), at(2)).await;
    ended.expect_err("its money is nowhere");
    assert_eq!(
        store
            .invocation(call_id(4))
            .await
            .expect("read")
            .map(|there| there.status),
        Some(InvocationStatus::Started),
        "a change that fails changes nothing"
    );
    // And harms nobody else.
    open_account(&store, "z", "1").await;
}

/// What waits together is committed together.
#[tokio::test]
async fn changes_that_wait_together_share_a_commit() {
    for place in [Place::sqlite(), Place::postgres()] {
        let store = place.open().await;
        open_account(&store, "a", "5").await;
        let before = store.commits();
        let calls = (0..100).map(|n| store.begin(call(n, of_account("a"), "0.01"), at(1)));
        let begun = futures_util::future::join_all(calls).await;
        assert!(begun.into_iter().all(|begun| matches!(begun, Ok(Begun::Started))));
        let commits = store.commits() - before;
        assert!(commits <= 3, "{commits} commits");
        is_whole(&store).await;
    }
}

/// A backup has all of it, and it is whole.
#[tokio::test]
async fn a_backup_has_the_money() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = crate::kit::sqlite(folder.path()).await;
    fill(&store).await;
    let path = folder.path().join("backup.sqlite");
    store.backup_to(&path).await.expect("backed up");
    store.finish(call_id(2), failed(), at(4)).await.expect("ended");
    let restored = SqlStore::open_sqlite(&path, &crate::kit::domain())
        .await
        .expect("opened");
    check(&restored).await;
}

/// As the hub is given them.
#[tokio::test]
async fn a_store_is_one_object() {
    let place = Place::sqlite();
    let stores: [Arc<dyn MarketStore>; 2] = [Arc::new(MemoryMarket::new()), Arc::new(place.open().await)];
    for store in stores {
        assert!(store.totals().await.expect("read").balance());
    }
}
