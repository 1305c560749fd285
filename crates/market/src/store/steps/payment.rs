//! The steps of payments that move outside this hub.

use aip_protocol::time::Timestamp;
use uuid::Uuid;

use super::{Step, page, plain, whole};
use crate::limits::TRANSACTION_BYTES_MAX;
use crate::money::Usd;
use crate::store::rows::{EarnedRow, InvocationRow, PaymentRow, Rows};
use crate::store::{
    Begin, Finished, InvocationStatus, Outcome, PaymentStatus, Planned, TakeOver, Unpayable, Unsettled,
};

/// Claims the payment of a call, or says that it is another one's, and writes nothing.
pub(super) async fn claim<R: Rows>(
    rows: &mut R,
    begin: &Begin,
    now: Timestamp,
) -> Result<Result<(), Unpayable>, R::Error> {
    let Some(claim) = &begin.payment else {
        return Ok(Ok(()));
    };
    if rows.payment(&claim.key).await?.is_some() {
        return Ok(Err(Unpayable::PaymentUsed));
    }
    let row = PaymentRow {
        key: claim.key,
        invocation: begin.id,
        status: PaymentStatus::Claimed,
        amount: claim.amount,
        payment: claim.payment.clone(),
        planned: None,
        transaction: None,
        at: now,
    };
    rows.put_payment(&row).await?;
    Ok(Ok(()))
}

/// What becomes of the payment of a call that ends; one that was not made is given back.
pub(super) async fn end<R: Rows>(
    rows: &mut R,
    row: &InvocationRow,
    outcome: &Outcome,
) -> Result<(), R::Error> {
    let Some(key) = row.payment else {
        return Ok(());
    };
    let mut payment = of_call(rows, key).await?;
    payment.planned = None;
    match outcome {
        Outcome::Captured { .. } | Outcome::Released | Outcome::Cancelled | Outcome::Withdrawn => {
            rows.drop_payment(&key).await
        }
        Outcome::Unclear => {
            payment.status = PaymentStatus::Unclear;
            rows.put_payment(&payment).await
        }
        Outcome::Paid { transaction } => {
            payment.status = PaymentStatus::Settled;
            payment.transaction = Some(short(transaction));
            rows.put_payment(&payment).await?;
            let found = rows.earned(&row.agent).await?;
            let mut earned = found.unwrap_or_else(|| EarnedRow::nothing(&row.agent));
            let paid = [earned.earned.paid_directly, payment.amount];
            // No money of this hub bounds it: it stops at the largest amount.
            earned.earned.paid_directly = paid.into_iter().sum::<Usd>();
            earned.earned.calls += 1;
            rows.put_earned(&earned).await
        }
    }
}

async fn of_call<R: Rows>(rows: &mut R, key: [u8; 32]) -> Result<PaymentRow, R::Error> {
    let found = rows.payment(&key).await?;
    found.ok_or_else(|| R::corrupt("a call is paid with a payment that is not there"))
}

/// A name that others chose, of a bounded length.
fn short(transaction: &str) -> String {
    let plain = plain(transaction);
    let is_within = |end: &usize| plain.is_char_boundary(*end);
    let end = (0..=TRANSACTION_BYTES_MAX.min(plain.len())).rev().find(is_within);
    plain.get(..end.unwrap_or(0)).unwrap_or_default().to_owned()
}

/// See [`crate::store::Invocations::settle`].
#[derive(Debug, Clone)]
pub struct Settle {
    /// Which call.
    pub id: Uuid,
    /// What it ends with.
    pub planned: Planned,
}

impl Step for Settle {
    type Outcome = Finished;

    async fn run<R: Rows>(&self, rows: &mut R) -> Result<Finished, R::Error> {
        let found = rows.invocation(self.id).await?;
        let Some(mut row) = found else {
            return Ok(Finished::NotStarted);
        };
        match row.status {
            // The answer of an attempt before was lost.
            InvocationStatus::Settling => return Ok(Finished::Done),
            InvocationStatus::Started => {}
            InvocationStatus::Finished | InvocationStatus::Abandoned => return Ok(Finished::NotStarted),
        }
        let Some(key) = row.payment else {
            return Ok(Finished::NotStarted);
        };
        let mut payment = of_call(rows, key).await?;
        payment.status = PaymentStatus::Settling;
        payment.planned = Some(self.planned.clone());
        rows.put_payment(&payment).await?;
        row.status = InvocationStatus::Settling;
        rows.put_invocation(&row).await?;
        Ok(Finished::Done)
    }
}

/// See [`crate::store::Invocations::unsettled`].
#[derive(Debug, Clone)]
pub struct TakeUnsettled {
    /// Whose, and whose now.
    pub take: TakeOver,
    /// At most so many.
    pub limit: u32,
    /// Now.
    pub now: Timestamp,
}

impl Step for TakeUnsettled {
    type Outcome = Vec<Unsettled>;

    async fn run<R: Rows>(&self, rows: &mut R) -> Result<Vec<Unsettled>, R::Error> {
        let TakeOver { holder, by, until } = self.take;
        let mut taken = Vec::new();
        for mut row in rows.settling(holder, whole(self.now), page(self.limit)).await? {
            (row.holder, row.deadline) = (by, whole(until));
            rows.put_invocation(&row).await?;
            // One that is damaged is put off like the others, so that it is in nobody's way.
            let payment = match row.payment {
                Some(key) => rows.payment(&key).await?,
                None => None,
            };
            let Some(payment) = payment else { continue };
            let Some(planned) = payment.planned else { continue };
            taken.push(Unsettled {
                id: row.id,
                amount: payment.amount,
                payment: payment.payment,
                planned,
                since: payment.at,
            });
        }
        Ok(taken)
    }
}
