//! What the suites are made of.

use aip_protocol::name::Did;
use aip_protocol::time::Timestamp;
use bytes::Bytes;
use uuid::Uuid;

use crate::money::Usd;
use crate::store::{
    Account, AccountId, Answer, Begin, ChannelId, Charge, Created, Finish, Funding, Idempotency, KeptReceipt,
    KeyId, MarketStore, NewAccount, NewChannel, NewKey, Opened, Outcome, Purse, Totals, Trial,
};

/// A store, as the suites take it.
pub trait Store: MarketStore + 'static {}

impl<T: MarketStore + 'static> Store for T {}

/// This many seconds after the moment the suites begin.
pub fn at(secs: i64) -> Timestamp {
    Timestamp::from_unix_millis(1_796_000_000_123 + secs * 1_000)
}

/// So many dollars.
pub fn usd(text: &str) -> Usd {
    Usd::parse(text).unwrap()
}

/// An agent of this hub.
pub fn agent(name: &str) -> Did {
    Did::parse(&format!("did:aip:hub.example:{name}")).unwrap()
}

/// The id of an account.
pub fn account_id(name: &str) -> AccountId {
    AccountId(format!("acct_{name}"))
}

/// The id of a key.
pub fn key_id(name: &str) -> KeyId {
    KeyId(format!("key_{name}"))
}

/// The id of a channel.
pub fn channel_id(name: &str) -> ChannelId {
    ChannelId(format!("ch_{name}"))
}

/// Something in the place of a digest.
pub fn digest(text: &str) -> [u8; 32] {
    let mut digest = [7; 32];
    for (place, byte) in digest.iter_mut().zip(text.bytes()) {
        *place = byte;
    }
    digest
}

/// A key called `name`, without a budget.
pub fn key(name: &str) -> NewKey {
    NewKey {
        id: key_id(name),
        hash: digest(name),
        label: format!("key of ü'; DROP TABLE market_keys; -- {name}"),
        budget: None,
    }
}

/// An account of nobody called `name`, with one key that is called like it.
pub fn account(name: &str, grant: &str) -> NewAccount {
    NewAccount {
        id: account_id(name),
        label: format!("account of ü'; DROP TABLE market_accounts; -- {name}"),
        owner: None,
        budget: None,
        grant: usd(grant),
        key: key(name),
    }
}

/// Makes such an account.
pub async fn open_account<S: Store>(store: &S, name: &str, grant: &str) {
    let made = store.create_account(account(name, grant), at(0)).await.unwrap();
    assert_eq!(made, Created::Made);
}

/// What an account is now.
pub async fn account_now<S: Store>(store: &S, name: &str) -> Account {
    store.account(&account_id(name)).await.unwrap().unwrap()
}

/// A channel called `name` that lives for an hour, funded by the account `payer` or, without one, with demo money.
pub fn new_channel(name: &str, payer: Option<&str>, deposit: &str) -> NewChannel {
    let funding = payer.map_or(Funding::Demo, |payer| Funding::Account {
        account: account_id(payer),
        key: key_id(payer),
    });
    NewChannel {
        id: channel_id(name),
        secret_hash: digest(name),
        funding,
        deposit: usd(deposit),
        expires_at: at(3_600),
    }
}

/// Opens such a channel.
pub async fn open_channel<S: Store>(store: &S, name: &str, payer: Option<&str>, deposit: &str) {
    let new = new_channel(name, payer, deposit);
    let opened = store.open_channel(new, at(0)).await.unwrap();
    assert!(matches!(opened, Opened::Done(_)), "{opened:?}");
}

/// The account `name` by its first key.
pub fn of_account(name: &str) -> Purse {
    Purse::Account {
        account: account_id(name),
        key: key_id(name),
    }
}

/// The channel `name`.
pub fn of_channel(name: &str) -> Purse {
    Purse::Channel(channel_id(name))
}

/// The id of a call.
pub fn call_id(number: u128) -> Uuid {
    Uuid::from_u128(0x6f00_0000_0000_4000_8000_0000_0000_0000 + number)
}

/// A call of `seller`'s capability that is free, by the process 1, which has a minute.
pub fn free_call(number: u128) -> Begin {
    Begin {
        id: call_id(number),
        idempotency: None,
        agent: agent("seller"),
        product_id: "prod".to_owned(),
        capability_id: "cap'; --".to_owned(),
        charge: None,
        trial: None,
        payment: None,
        holder: Uuid::from_u128(1),
        deadline: at(60),
    }
}

/// A call that is paid.
pub fn call(number: u128, purse: Purse, amount: &str) -> Begin {
    let amount = usd(amount);
    let charge = Some(Charge { purse, amount });
    Begin {
        charge,
        ..free_call(number)
    }
}

/// The free call of a visitor who may have two.
pub fn trial(number: u128, visitor: &str) -> Begin {
    let trial = Some(Trial {
        visitor: digest(visitor),
        max: 2,
    });
    Begin {
        trial,
        ..free_call(number)
    }
}

/// What makes repetitions the same.
pub fn idempotency(key: &str, body: &str) -> Idempotency {
    Idempotency {
        key: digest(key),
        body: digest(body),
    }
}

/// An answer.
pub fn answer(text: &str) -> Answer {
    Answer {
        status: 200,
        body: Bytes::from(format!(r#"{{"text":"ü '; --","answer":"{text}"}}"#)),
    }
}

/// An end at which so much is paid, of which so much is the hub's, without a receipt.
pub fn paid(amount: &str, fee: &str) -> Finish {
    Finish {
        outcome: Outcome::Captured {
            amount: usd(amount),
            fee: usd(fee),
        },
        answer: answer("done"),
        receipt: None,
    }
}

/// An end at which nothing is paid.
pub fn failed() -> Finish {
    Finish {
        outcome: Outcome::Released,
        answer: answer("failed"),
        receipt: None,
    }
}

/// A receipt.
pub fn receipt(nonce: &str) -> KeptReceipt {
    KeptReceipt {
        nonce: format!("rcpt_{nonce}"),
        receipt: Bytes::from(format!(r#"{{"nonce":"{nonce}","price":0.01}}"#)),
    }
}

/// The sum of everything, which must balance.
pub async fn balanced<S: Store>(store: &S) -> Totals {
    let totals = store.totals().await.unwrap();
    assert!(totals.balance(), "{totals:?}");
    totals
}
