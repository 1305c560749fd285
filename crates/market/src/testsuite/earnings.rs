//! The contract of what providers earn, and of the sum of everything.

use std::sync::Arc;

use super::fixtures::{
    Store, account_id, agent, at, balanced, call, call_id, channel_id, of_account, of_channel, open_account,
    open_channel, paid, usd,
};
use crate::money::Usd;
use crate::store::{Credited, Earned, PaidOut, Totals};

/// A call of account `a` that `seller` is paid for.
async fn sold<S: Store>(store: &S, number: u128, seller: &str, amount: &str, fee: &str) {
    let mut begin = call(number, of_account("a"), amount);
    begin.agent = agent(seller);
    store.begin(begin, at(1)).await.unwrap();
    store
        .finish(call_id(number), paid(amount, fee), at(2))
        .await
        .unwrap();
}

/// What they earned, once for each reference, and no more.
pub async fn providers_earn_and_are_paid<S: Store>(store: Arc<S>) {
    open_account(&*store, "a", "9").await;
    let seller = agent("seller");
    let nothing = Earned {
        agent: seller.clone(),
        earned: Usd::ZERO,
        paid_out: Usd::ZERO,
        calls: 0,
        paid_directly: Usd::ZERO,
    };
    assert_eq!(store.earned(&seller).await.unwrap(), nothing);
    sold(&*store, 1, "seller", "1", "0.1").await;
    sold(&*store, 2, "seller", "2", "0.2").await;
    let mut earned = Earned {
        earned: usd("2.7"),
        calls: 2,
        ..nothing
    };
    assert_eq!(store.earned(&seller).await.unwrap(), earned);
    let pay = async |of: &str, amount: &str, reference: &str| {
        let of = agent(of);
        store.pay_out(&of, usd(amount), reference, at(3)).await.unwrap()
    };
    assert_eq!(
        pay("seller", "2.700001", "wire 1").await,
        PaidOut::Exceeds(usd("2.7"))
    );
    assert_eq!(pay("other", "0.1", "wire 1").await, PaidOut::Exceeds(Usd::ZERO));
    earned.paid_out = usd("1.7");
    assert_eq!(
        pay("seller", "1.7", "wire 1").await,
        PaidOut::Done(earned.clone())
    );
    assert_eq!(
        pay("seller", "1.7", "wire 1").await,
        PaidOut::Again(earned.clone())
    );
    assert_eq!(pay("seller", "1", "wire 1").await, PaidOut::OtherUse);
    assert_eq!(pay("other", "1.7", "wire 1").await, PaidOut::OtherUse);
    assert_eq!(pay("seller", "9", "grant:acct_a").await, PaidOut::OtherUse);
    let credited = store.credit(&account_id("a"), usd("1.7"), "wire 1", at(3)).await;
    assert_eq!(credited.unwrap(), Credited::OtherUse);
    assert_eq!(pay("seller", "1.1", "wire 2").await, PaidOut::Exceeds(usd("1")));
    earned.paid_out = usd("2.7");
    assert_eq!(pay("seller", "1", "wire 2").await, PaidOut::Done(earned.clone()));
    assert_eq!(store.earned(&seller).await.unwrap(), earned);
    let totals = balanced(&*store).await;
    assert_eq!(
        (totals.earned, totals.paid_out, totals.fees),
        (usd("2.7"), usd("2.7"), usd("0.3"))
    );
}

/// In the order of their DIDs.
pub async fn providers_are_read_in_pages<S: Store>(store: Arc<S>) {
    open_account(&*store, "a", "9").await;
    for (n, seller) in [(1, "zoe"), (2, "amy"), (3, "bob"), (4, "amy")] {
        sold(&*store, n, seller, "1", "0").await;
    }
    let read = async |after: Option<&str>, limit| {
        let after = after.map(agent);
        let page = store.all_earned(after.as_ref(), limit).await.unwrap();
        page.into_iter()
            .map(|earned| (earned.agent.name().to_owned(), earned.calls))
            .collect::<Vec<_>>()
    };
    assert_eq!(
        read(None, 2).await,
        [("amy".to_owned(), 2), ("bob".to_owned(), 1)]
    );
    assert_eq!(read(Some("bob"), u32::MAX).await, [("zoe".to_owned(), 1)]);
    assert_eq!(read(Some("zoe"), 9).await, []);
}

/// Wherever it is.
pub async fn the_sum_of_everything<S: Store>(store: Arc<S>) {
    assert_eq!(balanced(&*store).await, Totals::default());
    open_account(&*store, "a", "10").await;
    open_account(&*store, "b", "5").await;
    open_channel(&*store, "c", Some("b"), "2").await;
    open_channel(&*store, "d", None, "3").await;
    open_channel(&*store, "e", None, "1").await;
    sold(&*store, 1, "seller", "1", "0.25").await;
    for (n, purse) in [(2, of_account("a")), (3, of_channel("c")), (4, of_channel("d"))] {
        store.begin(call(n, purse, "0.5"), at(1)).await.unwrap();
    }
    store.finish(call_id(4), paid("0.5", "0"), at(2)).await.unwrap();
    store.close_channel(&channel_id("e"), at(3)).await.unwrap();
    let seller = agent("seller");
    store.pay_out(&seller, usd("0.5"), "wire", at(3)).await.unwrap();
    let all = Totals {
        credited: usd("15"),
        demo: usd("4"),
        balances: usd("8.5").checked_add(usd("3")).unwrap(),
        held: usd("1"),
        channels: usd("1.5").checked_add(usd("2.5")).unwrap(),
        earned: usd("1.25"),
        paid_out: usd("0.5"),
        fees: usd("0.25"),
        demo_returned: usd("1"),
        paid_directly: Usd::ZERO,
    };
    assert_eq!(balanced(&*store).await, all);
}
