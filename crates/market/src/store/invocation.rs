//! Invocations: what was begun and what came of it, with its hold, its receipt and its answer.

use aip_protocol::name::Did;
use aip_protocol::time::Timestamp;
use async_trait::async_trait;
use bytes::Bytes;
use uuid::Uuid;

use super::{AccountId, ChannelId, KeyId, PaymentClaim, Planned, StoreError, Unsettled};
use crate::money::Usd;

/// What a call is paid from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Purse {
    /// An account, by one of its keys.
    Account {
        /// The account.
        account: AccountId,
        /// The key.
        key: KeyId,
    },
    /// A channel, whose secret was shown.
    Channel(ChannelId),
}

/// What is set aside for a call before any work.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Charge {
    /// Paid from.
    pub purse: Purse,
    /// More than nothing.
    pub amount: Usd,
}

/// One of a visitor's free calls.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trial {
    /// Who tries: a digest of where the visitor comes from, and of which of those it is.
    pub visitor: [u8; 32],
    /// How many it may have.
    pub max: u32,
}

/// What makes a repetition the same invocation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Idempotency {
    /// A digest of who calls and of the key that the caller chose.
    pub key: [u8; 32],
    /// A digest of what is asked.
    pub body: [u8; 32],
}

/// An invocation to begin.
#[derive(Debug, Clone)]
pub struct Begin {
    /// Drawn by the caller.
    pub id: Uuid,
    /// `None`: a repetition is a call of its own.
    pub idempotency: Option<Idempotency>,
    /// Whose capability it is.
    pub agent: Did,
    /// AIMarket's ids.
    pub product_id: String,
    /// AIMarket's ids.
    pub capability_id: String,
    /// `None`: nothing is to be paid.
    pub charge: Option<Charge>,
    /// Set instead of a charge, never beside one.
    pub trial: Option<Trial>,
    /// What pays it outside this hub; set instead of a charge, never beside one.
    pub payment: Option<PaymentClaim>,
    /// Which process makes it.
    pub holder: Uuid,
    /// It is over by then: what is still under way may be given up by anybody.
    pub deadline: Timestamp,
}

/// What came of beginning.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Begun {
    /// It is under way, and its charge is held.
    Started,
    /// The same was asked before: this came of it.
    Again(Invocation),
    /// The same was asked before and is under way: it is this invocation.
    Running(Uuid),
    /// The same key came with something else.
    OtherBody,
    /// It cannot be paid. Nothing was done.
    Unpayable(Unpayable),
}

/// Why a charge is not taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unpayable {
    /// The purse has less: so much.
    Insufficient(Usd),
    /// A budget of the account or the key has less left: so much.
    OverBudget(Usd),
    /// There is no such purse, it has ended, or it is suspended.
    NoPurse,
    /// The visitor had its free calls: so many.
    TrialsUsed(u32),
    /// The payment pays another call, or did.
    PaymentUsed,
}

/// Where an invocation is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InvocationStatus {
    /// Its charge is held.
    Started,
    /// The work is done, and its payment is being made outside: it is not given up any more.
    Settling,
    /// It has ended: with an answer, or cancelled by its buyer.
    Finished,
    /// Its process was lost, or it was withdrawn; its charge went back.
    Abandoned,
}

/// An invocation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Invocation {
    /// Which one.
    pub id: Uuid,
    /// Where it is.
    pub status: InvocationStatus,
    /// Whose capability.
    pub agent: Did,
    /// AIMarket's ids.
    pub product_id: String,
    /// AIMarket's ids.
    pub capability_id: String,
    /// What was paid from a purse of this hub.
    pub charged: Usd,
    /// What was answered, where the same can be asked again ([`Begin::idempotency`]); forgotten after
    /// [`crate::limits::ANSWERS_KEPT`].
    pub answer: Option<Answer>,
    /// When it began.
    pub started_at: Timestamp,
    /// What it is paid from, where it is paid here.
    pub purse: Option<Purse>,
}

/// An answer as it was given.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// Its HTTP status.
    pub status: u16,
    /// Its body.
    pub body: Bytes,
}

/// What ends an invocation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// The work was done: of what is held `amount` is paid, of which `fee` is the hub's and the rest the provider's; what is
    /// left goes back. A trial is used up.
    Captured {
        /// At most what is held.
        amount: Usd,
        /// At most `amount`.
        fee: Usd,
    },
    /// The work was not done: what is held goes back, and so does a trial or a claimed payment.
    Released,
    /// Its buyer does not want it any more: as [`Outcome::Released`], but only of what is under way, and a trial is used up.
    /// What is being settled goes on to its end.
    Cancelled,
    /// As if it had never begun: also what makes repetitions the same is forgotten, and the answer is not kept.
    Withdrawn,
    /// The payment was made outside, by this transaction.
    Paid {
        /// As the network names it; at most [`crate::limits::TRANSACTION_BYTES_MAX`] bytes.
        transaction: String,
    },
    /// The work was done, and nobody can say whether the payment was made: it stays claimed.
    Unclear,
}

/// The end of an invocation: money, receipt and answer in one step.
#[derive(Debug, Clone)]
pub struct Finish {
    /// What becomes of the charge.
    pub outcome: Outcome,
    /// What the caller is answered, and again if it asks again.
    pub answer: Answer,
    /// The signed receipt.
    pub receipt: Option<KeptReceipt>,
}

/// A receipt that was given out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeptReceipt {
    /// Unique.
    pub nonce: String,
    /// The signed JSON.
    pub receipt: Bytes,
}

/// Who takes over calls whose payment is being made.
#[derive(Debug, Clone, Copy)]
pub struct TakeOver {
    /// Whose they were; `None`: anybody's that are past their deadline.
    pub holder: Option<Uuid>,
    /// Whose they are now.
    pub by: Uuid,
    /// Until then.
    pub until: Timestamp,
}

/// What came of ending.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Finished {
    /// It has ended.
    Done,
    /// It is not under way any more (it was given up, or ended before): nothing was done.
    NotStarted,
}

/// Invocations.
#[async_trait]
pub trait Invocations {
    /// What `begin` would say of this repetition, without beginning anything: [`Begun::Again`], [`Begun::Running`] or
    /// [`Begun::OtherBody`]; `None`: it was not asked before, or it may be asked again.
    async fn repeated(&self, idempotency: &Idempotency) -> Result<Option<Begun>, StoreError>;

    /// Begins one: whether it is a repetition is looked up, its charge is held or its trial taken, in one step. The very same
    /// id and holder once more is [`Begun::Started`] and holds nothing more, so that who lost the answer may ask again.
    async fn begin(&self, begin: Begin, now: Timestamp) -> Result<Begun, StoreError>;

    /// Says that the work of a call is done and that its payment is being made outside, and keeps what it ends with. From here
    /// on it ends only by [`Self::finish`], and only by what became of the payment: [`Outcome::Paid`], [`Outcome::Unclear`] or
    /// [`Outcome::Withdrawn`].
    async fn settle(&self, id: Uuid, planned: Planned, now: Timestamp) -> Result<Finished, StoreError>;

    /// Takes over calls whose payment was being made by a process that is lost: of `holder`, or, for `None`, those that are
    /// past their deadline. They are the caller's (`by`) until `until`, so that each is asked about by one process. At most
    /// `limit` and a page. One whose payment is not there, or is not planned to the end, is put off until then and left out.
    async fn unsettled(
        &self,
        take: TakeOver,
        limit: u32,
        now: Timestamp,
    ) -> Result<Vec<Unsettled>, StoreError>;

    /// Ends one that is under way or being settled.
    async fn finish(&self, id: Uuid, finish: Finish, now: Timestamp) -> Result<Finished, StoreError>;

    /// Gives up what is under way: of `holder`, or, for `None`, what is past its deadline. Charges and trials go back, and the
    /// same may be asked again. At most `limit` and a page; which ones.
    async fn abandon(
        &self,
        holder: Option<Uuid>,
        limit: u32,
        now: Timestamp,
    ) -> Result<Vec<Uuid>, StoreError>;

    /// One of them.
    async fn invocation(&self, id: Uuid) -> Result<Option<Invocation>, StoreError>;

    /// A receipt that was given out.
    async fn receipt(&self, nonce: &str) -> Result<Option<Bytes>, StoreError>;

    /// Forgets answers and what makes repetitions the same of invocations that began before `before`; receipts stay. At most
    /// `limit` and a page; how many.
    async fn forget_answers(&self, before: Timestamp, limit: u32) -> Result<u64, StoreError>;
}
