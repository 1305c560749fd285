//! The contract, and where the money goes.

use aip_protocol::clock::ManualClock;
use aip_protocol::time::Timestamp;

use super::*;
use crate::testsuite::facilitators::{GRANT, NOW_SECS, asked, payment, wallet};

fn open() -> LocalFacilitator {
    let now = i64::try_from(NOW_SECS).unwrap();
    LocalFacilitator::new(
        CHAIN_ID,
        GRANT,
        Arc::new(ManualClock::new(Timestamp::from_unix_secs(now))),
    )
}

crate::stamp_facilitator!(open());

#[tokio::test]
async fn money_goes_from_one_to_the_other() {
    let facilitator = open();
    let asked = asked();
    facilitator.settle(&payment(1, |_| {}), &asked).await.unwrap();
    facilitator.settle(&payment(1, |_| {}), &asked).await.unwrap();
    assert_eq!(
        facilitator.balance(asked.asset, wallet(1).address()),
        GRANT - 300_000
    );
    assert_eq!(facilitator.balance(asked.asset, asked.pay_to), GRANT + 300_000);
    assert_eq!(
        facilitator.balance(wallet(1).address(), wallet(1).address()),
        GRANT
    );
}
