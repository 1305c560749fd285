//! What the market keeps from rows, and how some of it is written.

use aip_market::money::Usd;
use aip_market::store::rows::{
    AccountRow, EarnedRow, InvocationRow, Issued, KeyRow, PaymentRow, Purpose, Reference, Repeat,
};
use aip_market::store::{
    Account, AccountId, Answer, ApiKey, Channel, ChannelId, ChannelStatus, Charge, Earned, Entry, EntryKind,
    Funding, InvocationStatus, KeptReceipt, KeyId, PaymentStatus, Planned, Purse, Totals,
};
use aip_protocol::name::Did;
use bytes::Bytes;
use sqlx::any::AnyRow;
use uuid::Uuid;

use crate::error::StoreError;
use crate::sql::rows::{column, count, number, optional_time, time};

fn damaged(text: &str, what: &str) -> StoreError {
    StoreError::Corrupt(format!("{text:?} {what}"))
}

fn usd(row: &AnyRow, name: &str) -> Result<Usd, StoreError> {
    let micros = number(row, name)?;
    Usd::from_micros(micros).ok_or_else(|| damaged(&micros.to_string(), "is not an amount"))
}

/// A sum that no money of this hub bounds.
fn most(row: &AnyRow, name: &str) -> Result<Usd, StoreError> {
    Ok(Usd::from_micros(number(row, name)?).unwrap_or(Usd::MAX))
}

fn optional_usd(row: &AnyRow, name: &str) -> Result<Option<Usd>, StoreError> {
    let is_there = column::<Option<i64>>(row, name)?.is_some();
    is_there.then(|| usd(row, name)).transpose()
}

fn hash(row: &AnyRow, name: &str) -> Result<[u8; 32], StoreError> {
    let text: String = column(row, name)?;
    read_hash(&text)
}

fn read_hash(text: &str) -> Result<[u8; 32], StoreError> {
    let mut hash = [0; 32];
    let read = hex::decode_to_slice(text, &mut hash);
    read.map_err(|_error| damaged(text, "is not a hash"))?;
    Ok(hash)
}

fn id(row: &AnyRow, name: &str) -> Result<Uuid, StoreError> {
    let text: String = column(row, name)?;
    Uuid::parse_str(&text).map_err(|_error| damaged(&text, "is not the id of a call"))
}

fn did(text: &str) -> Result<Did, StoreError> {
    Did::parse(text).map_err(|_refusal| damaged(text, "is not a DID"))
}

/// How bytes are written, which are text nearly always.
pub(super) fn bytes_text(bytes: &[u8]) -> String {
    match str::from_utf8(bytes) {
        Ok(text) if !text.contains('\0') => format!("t{text}"),
        _ => format!("x{}", hex::encode(bytes)),
    }
}

fn read_bytes(text: &str) -> Result<Bytes, StoreError> {
    if let Some(text) = text.strip_prefix('t') {
        return Ok(Bytes::copy_from_slice(text.as_bytes()));
    }
    let bytes = text.strip_prefix('x').and_then(|digits| hex::decode(digits).ok());
    bytes
        .map(Bytes::from)
        .ok_or_else(|| damaged(text, "is not what was answered"))
}

pub(super) fn issued(row: &AnyRow) -> Result<Issued, StoreError> {
    Ok(Issued {
        credited: usd(row, "credited")?,
        demo: usd(row, "demo")?,
    })
}

pub(super) fn account(row: &AnyRow) -> Result<AccountRow, StoreError> {
    let owner: Option<String> = column(row, "owner")?;
    let account = Account {
        id: AccountId(column(row, "id")?),
        label: column(row, "label")?,
        owner: owner.as_deref().map(did).transpose()?,
        balance: usd(row, "balance")?,
        held: usd(row, "held")?,
        budget: optional_usd(row, "budget")?,
        spent: usd(row, "spent")?,
        suspended: column::<i64>(row, "suspended")? != 0,
        created_at: time(row, "created_at_ms")?,
    };
    let lines = count(row, "lines")?;
    Ok(AccountRow { account, lines })
}

/// How the kind of a line is written.
pub(super) fn kind_text(kind: EntryKind) -> &'static str {
    match kind {
        EntryKind::Credit => "credit",
        EntryKind::Hold => "hold",
        EntryKind::Capture => "capture",
        EntryKind::Release => "release",
        EntryKind::Deposit => "deposit",
        EntryKind::Refund => "refund",
    }
}

fn kind(row: &AnyRow) -> Result<EntryKind, StoreError> {
    match column::<&str>(row, "kind")? {
        "credit" => Ok(EntryKind::Credit),
        "hold" => Ok(EntryKind::Hold),
        "capture" => Ok(EntryKind::Capture),
        "release" => Ok(EntryKind::Release),
        "deposit" => Ok(EntryKind::Deposit),
        "refund" => Ok(EntryKind::Refund),
        other => Err(damaged(other, "is not what a line says")),
    }
}

pub(super) fn line(row: &AnyRow) -> Result<Entry, StoreError> {
    Ok(Entry {
        number: count(row, "number")?,
        kind: kind(row)?,
        amount: usd(row, "amount")?,
        reference: column(row, "reference")?,
        balance: usd(row, "balance")?,
        at: time(row, "at_ms")?,
    })
}

pub(super) fn key(row: &AnyRow) -> Result<KeyRow, StoreError> {
    Ok(KeyRow {
        account: AccountId(column(row, "key_account")?),
        hash: hash(row, "key_hash")?,
        key: ApiKey {
            id: KeyId(column(row, "key_id")?),
            label: column(row, "key_label")?,
            budget: optional_usd(row, "key_budget")?,
            spent: usd(row, "key_spent")?,
            created_at: time(row, "key_created_at_ms")?,
        },
    })
}

/// How the purpose of a reference is written.
pub(super) fn purpose_text(purpose: Purpose) -> &'static str {
    match purpose {
        Purpose::Credit => "credit",
        Purpose::TopUp => "top_up",
        Purpose::PayOut => "pay_out",
    }
}

pub(super) fn reference(row: &AnyRow) -> Result<Reference, StoreError> {
    let purpose = match column::<&str>(row, "purpose")? {
        "credit" => Purpose::Credit,
        "top_up" => Purpose::TopUp,
        "pay_out" => Purpose::PayOut,
        other => return Err(damaged(other, "is not what a reference is for")),
    };
    Ok(Reference {
        text: column(row, "reference")?,
        purpose,
        subject: column(row, "subject")?,
        amount: usd(row, "amount")?,
        at: time(row, "at_ms")?,
    })
}

/// An account and its key, where a row names them.
fn payer(row: &AnyRow) -> Result<Option<(AccountId, KeyId)>, StoreError> {
    let account: Option<String> = column(row, "account")?;
    let key: Option<String> = column(row, "account_key")?;
    Ok(account
        .zip(key)
        .map(|(account, key)| (AccountId(account), KeyId(key))))
}

/// How the status of a channel is written.
pub(super) fn channel_status_text(status: ChannelStatus) -> &'static str {
    match status {
        ChannelStatus::Open => "open",
        ChannelStatus::Closed => "closed",
        ChannelStatus::Expired => "expired",
    }
}

pub(super) fn channel(row: &AnyRow) -> Result<Channel, StoreError> {
    let status = match column::<&str>(row, "status")? {
        "open" => ChannelStatus::Open,
        "closed" => ChannelStatus::Closed,
        "expired" => ChannelStatus::Expired,
        other => return Err(damaged(other, "is not where a channel is")),
    };
    let payer = payer(row)?;
    Ok(Channel {
        id: ChannelId(column(row, "id")?),
        secret_hash: hash(row, "secret_hash")?,
        funding: payer.map_or(Funding::Demo, |(account, key)| Funding::Account { account, key }),
        deposit: usd(row, "deposit")?,
        used: usd(row, "used")?,
        held: usd(row, "held")?,
        refunded: usd(row, "refunded")?,
        status,
        opened_at: time(row, "opened_at_ms")?,
        expires_at: time(row, "expires_at_ms")?,
    })
}

/// How the status of an invocation is written.
pub(super) fn invocation_status_text(status: InvocationStatus) -> &'static str {
    match status {
        InvocationStatus::Started => "started",
        InvocationStatus::Settling => "settling",
        InvocationStatus::Finished => "finished",
        InvocationStatus::Abandoned => "abandoned",
    }
}

fn charge(row: &AnyRow) -> Result<Option<Charge>, StoreError> {
    let channel: Option<String> = column(row, "channel")?;
    let channel = channel.map(|id| Purse::Channel(ChannelId(id)));
    let account = payer(row)?.map(|(account, key)| Purse::Account { account, key });
    let amount = usd(row, "amount")?;
    Ok(channel.or(account).map(|purse| Charge { purse, amount }))
}

pub(super) fn invocation(row: &AnyRow) -> Result<InvocationRow, StoreError> {
    let status = match column::<&str>(row, "status")? {
        "started" => InvocationStatus::Started,
        "settling" => InvocationStatus::Settling,
        "finished" => InvocationStatus::Finished,
        "abandoned" => InvocationStatus::Abandoned,
        other => return Err(damaged(other, "is not where a call is")),
    };
    let visitor: Option<String> = column(row, "visitor")?;
    let payment: Option<String> = column(row, "payment")?;
    Ok(InvocationRow {
        id: id(row, "id")?,
        status,
        agent: did(column(row, "agent")?)?,
        product_id: column(row, "product")?,
        capability_id: column(row, "capability")?,
        charge: charge(row)?,
        visitor: visitor.as_deref().map(read_hash).transpose()?,
        payment: payment.as_deref().map(read_hash).transpose()?,
        holder: id(row, "holder")?,
        deadline: time(row, "deadline_ms")?,
        charged: usd(row, "charged")?,
        fee: usd(row, "fee")?,
        started_at: time(row, "started_at_ms")?,
        ended_at: optional_time(row, "ended_at_ms")?,
    })
}

/// How the status of a payment is written.
pub(super) fn payment_status_text(status: PaymentStatus) -> &'static str {
    match status {
        PaymentStatus::Claimed => "claimed",
        PaymentStatus::Settling => "settling",
        PaymentStatus::Settled => "settled",
        PaymentStatus::Unclear => "unclear",
    }
}

fn payment_status(row: &AnyRow) -> Result<PaymentStatus, StoreError> {
    match column::<&str>(row, "status")? {
        "claimed" => Ok(PaymentStatus::Claimed),
        "settling" => Ok(PaymentStatus::Settling),
        "settled" => Ok(PaymentStatus::Settled),
        "unclear" => Ok(PaymentStatus::Unclear),
        other => Err(damaged(other, "is not what became of a payment")),
    }
}

/// What a call ends with, while its payment is being made.
fn planned(row: &AnyRow) -> Result<Option<Planned>, StoreError> {
    let Some(answer) = answer(row)? else {
        return Ok(None);
    };
    let receipt = KeptReceipt {
        nonce: column(row, "receipt_nonce")?,
        receipt: receipt(row)?,
    };
    Ok(Some(Planned { answer, receipt }))
}

pub(super) fn payment(row: &AnyRow) -> Result<PaymentRow, StoreError> {
    let payment: String = column(row, "payment")?;
    Ok(PaymentRow {
        key: hash(row, "key_hash")?,
        invocation: id(row, "invocation")?,
        status: payment_status(row)?,
        amount: usd(row, "amount")?,
        payment: read_bytes(&payment)?,
        planned: planned(row)?,
        transaction: column(row, "transaction_id")?,
        at: time(row, "at_ms")?,
    })
}

pub(super) fn answer(row: &AnyRow) -> Result<Option<Answer>, StoreError> {
    let body: Option<String> = column(row, "answer_body")?;
    let Some(body) = body else {
        return Ok(None);
    };
    let (status, body) = (number(row, "answer_status")?, read_bytes(&body)?);
    Ok(Some(Answer { status, body }))
}

pub(super) fn repeat(row: &AnyRow) -> Result<Repeat, StoreError> {
    Ok(Repeat {
        key: hash(row, "key_hash")?,
        body: hash(row, "body_hash")?,
        invocation: id(row, "invocation")?,
        answer: answer(row)?,
        started_at: time(row, "asked_at_ms")?,
    })
}

pub(super) fn receipt(row: &AnyRow) -> Result<Bytes, StoreError> {
    let text: String = column(row, "receipt")?;
    read_bytes(&text)
}

pub(super) fn earned(row: &AnyRow) -> Result<EarnedRow, StoreError> {
    let earned = Earned {
        agent: did(column(row, "agent")?)?,
        earned: usd(row, "earned")?,
        paid_out: usd(row, "paid_out")?,
        calls: count(row, "calls")?,
        paid_directly: usd(row, "paid_directly")?,
    };
    let fees = usd(row, "fees")?;
    Ok(EarnedRow { earned, fees })
}

pub(super) fn totals(row: &AnyRow) -> Result<Totals, StoreError> {
    let held = [usd(row, "held_of_accounts")?, usd(row, "held_of_channels")?];
    Ok(Totals {
        credited: usd(row, "credited")?,
        demo: usd(row, "demo")?,
        balances: usd(row, "balances")?,
        held: held.into_iter().sum(),
        channels: usd(row, "channels")?,
        earned: usd(row, "earned")?,
        paid_out: usd(row, "paid_out")?,
        fees: usd(row, "fees")?,
        demo_returned: usd(row, "demo_returned")?,
        paid_directly: most(row, "paid_directly")?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_come_back_whatever_they_are() {
        for bytes in [
            b"".as_slice(),
            b"x",
            b"t",
            b"{\"a\":\"\xc3\xbc\"}",
            b"a\0b",
            b"\xff\xfe",
        ] {
            let text = bytes_text(bytes);
            assert!(!text.contains('\0'));
            assert_eq!(read_bytes(&text).expect("read"), bytes);
        }
        for text in ["", "y", "xg0", "x0"] {
            assert!(read_bytes(text).is_err(), "{text}");
        }
    }
}
