//! The steps of invocations.

use aip_protocol::time::Timestamp;
use uuid::Uuid;

use super::payer::Payer;
use super::payment;
use super::{Step, page, plain, rest, sum, whole};
use crate::money::Usd;
use crate::store::rows::{EarnedRow, InvocationRow, Repeat, Rows};
use crate::store::{
    Begin, Begun, Channel, ChannelId, Charge, EntryKind, Finish, Finished, InvocationStatus, Outcome, Purse,
    Trial, Unpayable,
};

/// See [`crate::store::Invocations::begin`].
#[derive(Debug, Clone)]
pub struct BeginInvocation {
    /// What is begun.
    pub begin: Begin,
    /// Now.
    pub now: Timestamp,
}

impl Step for BeginInvocation {
    type Outcome = Begun;

    async fn run<R: Rows>(&self, rows: &mut R) -> Result<Begun, R::Error> {
        if let Some(known) = self.known(rows).await? {
            return Ok(known);
        }
        let begin = &self.begin;
        let now = whole(self.now);
        let taken = match (&begin.trial, &begin.charge) {
            (Some(trial), _) => take_trial(rows, trial).await?,
            (None, Some(charge)) => hold(rows, charge, begin.id, now).await?,
            (None, None) => payment::claim(rows, begin, now).await?,
        };
        if let Err(unpayable) = taken {
            return Ok(Begun::Unpayable(unpayable));
        }
        rows.put_invocation(&self.row(now)).await?;
        if let Some(idempotency) = &begin.idempotency {
            let repeat = Repeat {
                key: idempotency.key,
                body: idempotency.body,
                invocation: begin.id,
                answer: None,
                started_at: now,
            };
            rows.add_repeat(&repeat).await?;
        }
        Ok(Begun::Started)
    }
}

impl BeginInvocation {
    /// What came of it, if it was begun before: by this very call, or by one that asked the same.
    async fn known<R: Rows>(&self, rows: &mut R) -> Result<Option<Begun>, R::Error> {
        let begin = &self.begin;
        if let Some(there) = rows.invocation(begin.id).await? {
            let is_mine = there.status == InvocationStatus::Started && there.holder == begin.holder;
            return Ok(Some(if is_mine {
                Begun::Started
            } else {
                Begun::Again(there.with(None))
            }));
        }
        let Some(idempotency) = &begin.idempotency else {
            return Ok(None);
        };
        let Some(repeat) = rows.repeat(&idempotency.key).await? else {
            return Ok(None);
        };
        let there = rows.invocation(repeat.invocation).await?;
        let there = there.ok_or_else(|| R::corrupt("what was asked before is of no invocation"))?;
        Ok(Some(repeat.say(&idempotency.body, there)))
    }

    /// What pays it outside, where nothing pays it here.
    fn payment(&self) -> Option<[u8; 32]> {
        let begin = &self.begin;
        let is_paid_here = begin.charge.is_some() || begin.trial.is_some();
        let claim = begin.payment.as_ref().filter(|_| !is_paid_here);
        claim.map(|claim| claim.key)
    }

    fn row(&self, now: Timestamp) -> InvocationRow {
        let begin = &self.begin;
        InvocationRow {
            id: begin.id,
            status: InvocationStatus::Started,
            agent: begin.agent.clone(),
            product_id: plain(&begin.product_id),
            capability_id: plain(&begin.capability_id),
            charge: begin.charge.clone().filter(|_| begin.trial.is_none()),
            visitor: begin.trial.as_ref().map(|trial| trial.visitor),
            payment: self.payment(),
            holder: begin.holder,
            deadline: whole(begin.deadline),
            charged: Usd::ZERO,
            fee: Usd::ZERO,
            started_at: now,
            ended_at: None,
        }
    }
}

async fn take_trial<R: Rows>(rows: &mut R, trial: &Trial) -> Result<Result<(), Unpayable>, R::Error> {
    let used = rows.trials(&trial.visitor).await?;
    if used >= trial.max {
        return Ok(Err(Unpayable::TrialsUsed(used)));
    }
    rows.set_trials(&trial.visitor, used + 1).await?;
    Ok(Ok(()))
}

/// Sets a charge aside, or says why not, and writes nothing.
async fn hold<R: Rows>(
    rows: &mut R,
    charge: &Charge,
    invocation: Uuid,
    now: Timestamp,
) -> Result<Result<(), Unpayable>, R::Error> {
    match &charge.purse {
        Purse::Account { account, key } => {
            let Some(mut payer) = Payer::find(rows, account, key).await? else {
                return Ok(Err(Unpayable::NoPurse));
            };
            if let Err(unpayable) = payer.take(charge.amount) {
                return Ok(Err(unpayable));
            }
            payer.row.account.held = sum::<R>(payer.row.account.held, charge.amount)?;
            let reference = invocation.to_string();
            payer
                .line(rows, EntryKind::Hold, charge.amount, &reference, now)
                .await?;
            payer.save(rows).await?;
        }
        Purse::Channel(id) => {
            let found = rows.channel(id).await?;
            let Some(mut channel) = found.filter(|channel| channel.is_payable(now)) else {
                return Ok(Err(Unpayable::NoPurse));
            };
            if charge.amount > channel.balance() {
                return Ok(Err(Unpayable::Insufficient(channel.balance())));
            }
            channel.held = sum::<R>(channel.held, charge.amount)?;
            rows.put_channel(&channel).await?;
        }
    }
    Ok(Ok(()))
}

/// See [`crate::store::Invocations::finish`].
#[derive(Debug, Clone)]
pub struct FinishInvocation {
    /// Which one.
    pub id: Uuid,
    /// How it ends.
    pub finish: Finish,
    /// Now.
    pub now: Timestamp,
}

impl Step for FinishInvocation {
    type Outcome = Finished;

    async fn run<R: Rows>(&self, rows: &mut R) -> Result<Finished, R::Error> {
        let found = rows.invocation(self.id).await?;
        let Some(mut row) = found.filter(|row| self.may_end(row.status)) else {
            return Ok(Finished::NotStarted);
        };
        let now = whole(self.now);
        settle(rows, &mut row, &self.finish.outcome, now).await?;
        if self.finish.outcome == Outcome::Withdrawn {
            row.status = InvocationStatus::Abandoned;
            rows.put_invocation(&row).await?;
            rows.drop_repeat(self.id).await?;
            return Ok(Finished::Done);
        }
        row.status = InvocationStatus::Finished;
        rows.put_invocation(&row).await?;
        rows.set_answer(self.id, &self.finish.answer).await?;
        if let Some(receipt) = &self.finish.receipt {
            rows.add_receipt(self.id, receipt, now).await?;
        }
        Ok(Finished::Done)
    }
}

impl FinishInvocation {
    /// A call whose payment is being made outside ends by what became of the payment, and by nothing else.
    fn may_end(&self, status: InvocationStatus) -> bool {
        match status {
            InvocationStatus::Started => true,
            InvocationStatus::Settling => matches!(
                self.finish.outcome,
                Outcome::Paid { .. } | Outcome::Unclear | Outcome::Withdrawn
            ),
            InvocationStatus::Finished | InvocationStatus::Abandoned => false,
        }
    }
}

/// Moves what is held for an invocation where it belongs. Nobody pays more than was held, whatever is asked.
async fn settle<R: Rows>(
    rows: &mut R,
    row: &mut InvocationRow,
    outcome: &Outcome,
    now: Timestamp,
) -> Result<(), R::Error> {
    let held = row.charge.as_ref().map_or(Usd::ZERO, |charge| charge.amount);
    let (paid, fee) = match outcome {
        Outcome::Captured { amount, fee } => (held.min(*amount), held.min(*amount).min(*fee)),
        Outcome::Released
        | Outcome::Cancelled
        | Outcome::Withdrawn
        | Outcome::Paid { .. }
        | Outcome::Unclear => (Usd::ZERO, Usd::ZERO),
    };
    match row.charge.as_ref().map(|charge| &charge.purse) {
        Some(Purse::Account { account, key }) => {
            let mut payer = Payer::recall(rows, account, key).await?;
            pay(rows, &mut payer, held, paid, &row.id.to_string(), now).await?;
            payer.save(rows).await?;
        }
        Some(Purse::Channel(id)) => {
            let mut channel = held_channel(rows, id).await?;
            channel.held = rest::<R>(channel.held, held)?;
            channel.used = sum::<R>(channel.used, paid)?;
            rows.put_channel(&channel).await?;
        }
        None => {}
    }
    if paid > Usd::ZERO {
        let found = rows.earned(&row.agent).await?;
        let mut earned = found.unwrap_or_else(|| EarnedRow::nothing(&row.agent));
        earned.earned.earned = sum::<R>(earned.earned.earned, paid.saturating_sub(fee))?;
        earned.earned.calls += 1;
        earned.fees = sum::<R>(earned.fees, fee)?;
        rows.put_earned(&earned).await?;
    }
    payment::end(rows, row, outcome).await?;
    // Not for a buyer who cancels: the provider was called, and would work for nothing without end.
    let is_undone = matches!(outcome, Outcome::Released | Outcome::Withdrawn);
    if let Some(visitor) = row.visitor.as_ref().filter(|_| is_undone) {
        let used = rows.trials(visitor).await?;
        rows.set_trials(visitor, used.saturating_sub(1)).await?;
    }
    (row.charged, row.fee, row.ended_at) = (paid, fee, Some(now));
    Ok(())
}

/// Of what an account holds a part is paid, and the rest goes back.
async fn pay<R: Rows>(
    rows: &mut R,
    payer: &mut Payer,
    held: Usd,
    paid: Usd,
    reference: &str,
    now: Timestamp,
) -> Result<(), R::Error> {
    let account = &mut payer.row.account;
    account.held = rest::<R>(account.held, held)?;
    let back = rest::<R>(held, paid)?;
    payer.line(rows, EntryKind::Capture, paid, reference, now).await?;
    payer.put_back::<R>(back)?;
    payer.line(rows, EntryKind::Release, back, reference, now).await
}

async fn held_channel<R: Rows>(rows: &mut R, id: &ChannelId) -> Result<Channel, R::Error> {
    let found = rows.channel(id).await?;
    found.ok_or_else(|| R::corrupt("money is held of a channel that is not there"))
}

/// See [`crate::store::Invocations::abandon`].
#[derive(Debug, Clone)]
pub struct Abandon {
    /// Whose, or what is past its deadline.
    pub holder: Option<Uuid>,
    /// At most so many.
    pub limit: u32,
    /// Now.
    pub now: Timestamp,
}

impl Step for Abandon {
    type Outcome = Vec<Uuid>;

    async fn run<R: Rows>(&self, rows: &mut R) -> Result<Vec<Uuid>, R::Error> {
        let now = whole(self.now);
        let mut abandoned = Vec::new();
        for mut row in rows.started(self.holder, now, page(self.limit)).await? {
            settle(rows, &mut row, &Outcome::Released, now).await?;
            row.status = InvocationStatus::Abandoned;
            rows.put_invocation(&row).await?;
            rows.drop_repeat(row.id).await?;
            abandoned.push(row.id);
        }
        Ok(abandoned)
    }
}

/// See [`crate::store::Invocations::forget_answers`].
#[derive(Debug, Clone)]
pub struct ForgetAnswers {
    /// What began before.
    pub before: Timestamp,
    /// At most so many.
    pub limit: u32,
}

impl Step for ForgetAnswers {
    type Outcome = u64;

    async fn run<R: Rows>(&self, rows: &mut R) -> Result<u64, R::Error> {
        rows.drop_answered(whole(self.before), page(self.limit)).await
    }
}
