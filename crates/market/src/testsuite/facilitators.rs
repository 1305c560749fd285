//! The contract of every [`Facilitator`]: what it says of payments, and that it makes each of them once. For a chain on which
//! every wallet has [`GRANT`].

use aip_protocol::market::evm::transfer::Transfer;
use aip_protocol::market::evm::{Address, EvmKey, Word};
use aip_protocol::market::x402::{Payment, Requirements};
use serde_json::json;

use crate::facilitator::local::CHAIN_ID;
use crate::facilitator::{Facilitator, Settled, Verified};

/// What every wallet has.
pub const GRANT: u128 = 1_000_000;
/// The time at the facilitator.
pub const NOW_SECS: u64 = 1_800_000_000;

/// Stamps one `#[tokio::test]` for each function of the suite. `$open` is an expression that makes a fresh facilitator.
#[macro_export]
macro_rules! stamp_facilitator {
    ($open:expr) => {
        $crate::stamp_facilitator!(@each $open, [
            a_good_payment_is_made_once, what_is_no_payment_is_refused, nobody_pays_what_it_has_not,
            a_nonce_is_good_once, it_knows_its_network,
        ]);
    };
    (@each $open:expr, [$($name:ident),* $(,)?]) => {
        mod contract {
            use super::*;
            $(
                #[tokio::test]
                async fn $name() {
                    $crate::testsuite::facilitators::$name(&$open).await;
                }
            )*
        }
    };
}

/// A wallet.
pub fn wallet(number: u8) -> EvmKey {
    EvmKey::from_bytes(&[number; 32]).unwrap()
}

/// Something for 0.3 of a token with six digits.
pub fn asked() -> Requirements {
    Requirements {
        chain_id: CHAIN_ID,
        amount: 300_000,
        asset: Address::from_bytes([0xa5; 20]),
        asset_name: "USDC".to_owned(),
        asset_version: "2".to_owned(),
        pay_to: Address::from_bytes([0x11; 20]),
        timeout_secs: 60,
    }
}

/// The payment of a wallet for [`asked`], changed before it is signed.
pub fn payment(number: u8, change: impl FnOnce(&mut Transfer)) -> Payment {
    payment_for(&asked(), number, change)
}

/// The payment of a wallet for this.
pub fn payment_for(asked: &Requirements, number: u8, change: impl FnOnce(&mut Transfer)) -> Payment {
    let wallet = wallet(number);
    let mut transfer = Transfer {
        from: wallet.address(),
        to: asked.pay_to,
        value: Word::from(asked.amount),
        valid_after: Word::from(NOW_SECS - 600),
        valid_before: Word::from(NOW_SECS + 3_600),
        nonce: Word::from_bytes([9; 32]),
    };
    change(&mut transfer);
    let signature = wallet.sign(&transfer.digest(&asked.token()));
    let json = json!({
        "x402Version": 2,
        "accepted": asked.to_json(),
        "payload": {
            "signature": signature.to_string(),
            "authorization": {
                "from": transfer.from.to_string(),
                "to": transfer.to.to_string(),
                "value": transfer.value.to_string(),
                "validAfter": transfer.valid_after.to_string(),
                "validBefore": transfer.valid_before.to_string(),
                "nonce": transfer.nonce.to_string(),
            },
        },
    });
    Payment::from_json(json).unwrap()
}

async fn is_valid(facilitator: &impl Facilitator, payment: &Payment, asked: &Requirements) -> bool {
    facilitator.verify(payment, asked).await.unwrap() == Verified::Valid
}

/// And told again, it is the same transaction, or no other one.
pub async fn a_good_payment_is_made_once(facilitator: &impl Facilitator) {
    let good = payment(1, |_| {});
    assert!(is_valid(facilitator, &good, &asked()).await);
    assert!(
        is_valid(facilitator, &good, &asked()).await,
        "looking makes nothing"
    );
    let made = facilitator.settle(&good, &asked()).await.unwrap();
    assert!(matches!(&made, Settled::Done(transaction) if !transaction.is_empty()));
    assert!(!is_valid(facilitator, &good, &asked()).await);
    let again = facilitator.settle(&good, &asked()).await.unwrap();
    assert!(again == made || !matches!(again, Settled::Done(_)), "{again:?}");
}

/// Before the work, and after it.
pub async fn what_is_no_payment_is_refused(facilitator: &impl Facilitator) {
    let others = [
        payment(1, |transfer| transfer.value = Word::from(299_999_u64)),
        payment(1, |transfer| transfer.to = wallet(1).address()),
        payment(1, |transfer| transfer.from = wallet(2).address()),
        payment(1, |transfer| transfer.valid_before = Word::from(NOW_SECS)),
        payment(1, |transfer| transfer.valid_after = Word::from(NOW_SECS)),
        payment_for(&Requirements { amount: 1, ..asked() }, 1, |_| {}),
        payment_for(
            &Requirements {
                asset: wallet(3).address(),
                ..asked()
            },
            1,
            |_| {},
        ),
        payment_for(
            &Requirements {
                chain_id: 1,
                ..asked()
            },
            1,
            |_| {},
        ),
    ];
    for other in &others {
        assert!(!is_valid(facilitator, other, &asked()).await, "{other:?}");
        let settled = facilitator.settle(other, &asked()).await.unwrap();
        assert!(matches!(settled, Settled::Refused(_)), "{settled:?}");
    }
}

/// Three times 0.3 of 1, and no fourth time.
pub async fn nobody_pays_what_it_has_not(facilitator: &impl Facilitator) {
    let number = |nonce: u8| payment(1, |transfer| transfer.nonce = Word::from_bytes([nonce; 32]));
    for nonce in 1..=3 {
        let settled = facilitator.settle(&number(nonce), &asked()).await.unwrap();
        assert!(matches!(settled, Settled::Done(_)), "{settled:?}");
    }
    assert!(!is_valid(facilitator, &number(4), &asked()).await);
    let settled = facilitator.settle(&number(4), &asked()).await.unwrap();
    assert_eq!(settled, Settled::Refused("insufficient_funds".to_owned()));
    assert!(is_valid(facilitator, &payment(2, |_| {}), &asked()).await);
}

/// For one payment of one payer.
pub async fn a_nonce_is_good_once(facilitator: &impl Facilitator) {
    let first = facilitator.settle(&payment(1, |_| {}), &asked()).await.unwrap();
    assert!(matches!(first, Settled::Done(_)));
    let dearer = Requirements {
        amount: 400_000,
        ..asked()
    };
    let second = payment_for(&dearer, 1, |_| {});
    assert!(!is_valid(facilitator, &second, &dearer).await);
    let settled = facilitator.settle(&second, &dearer).await.unwrap();
    assert!(!matches!(settled, Settled::Done(_)), "{settled:?}");
    let of_another = facilitator.settle(&payment(2, |_| {}), &asked()).await.unwrap();
    assert!(matches!(of_another, Settled::Done(_)));
}

/// And no other.
pub async fn it_knows_its_network(facilitator: &impl Facilitator) {
    assert!(facilitator.supports(&asked().network()).await.unwrap());
    assert!(!facilitator.supports("eip155:1").await.unwrap());
}
