//! What a store keeps, row by row: the seam between the steps of money ([`super::steps`]), which are written once, and the
//! place where it is kept.

use aip_protocol::multikey::VerifyingKey;
use aip_protocol::name::Did;
use aip_protocol::time::Timestamp;
use bytes::Bytes;
use uuid::Uuid;

use super::{
    Account, AccountId, Answer, ApiKey, Begun, Channel, ChannelId, Charge, Earned, Entry, Invocation,
    InvocationStatus, KeptReceipt, KeyId, PaymentStatus, PeerLine, Planned, PreviewRow,
};
use crate::money::Usd;
use crate::peers::MarketPeer;

/// All the money that was ever made; never more than [`Usd::MAX`] together, so that no sum of it overflows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Issued {
    /// Put into accounts.
    pub credited: Usd,
    /// Put into channels from nowhere.
    pub demo: Usd,
}

/// An account as it is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AccountRow {
    /// The account.
    pub account: Account,
    /// How many lines its ledger has.
    pub lines: u64,
}

/// A key as it is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyRow {
    /// Whose it is.
    pub account: AccountId,
    /// SHA-256 of its secret.
    pub hash: [u8; 32],
    /// The key.
    pub key: ApiKey,
}

/// A reference that was used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reference {
    /// Its text.
    pub text: String,
    /// For what.
    pub purpose: Purpose,
    /// For which account, channel or provider.
    pub subject: String,
    /// How much.
    pub amount: Usd,
    /// When.
    pub at: Timestamp,
}

/// What a reference was used for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// Money for an account.
    Credit,
    /// More money for a channel.
    TopUp,
    /// A payment to a provider.
    PayOut,
}

/// An invocation as it is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InvocationRow {
    /// Which one.
    pub id: Uuid,
    /// Where it is.
    pub status: InvocationStatus,
    /// Whose capability.
    pub agent: Did,
    /// AIMarket's id.
    pub product_id: String,
    /// AIMarket's id.
    pub capability_id: String,
    /// What was held for it.
    pub charge: Option<Charge>,
    /// The visitor whose free call it is.
    pub visitor: Option<[u8; 32]>,
    /// The payment that it is paid with.
    pub payment: Option<[u8; 32]>,
    /// Which process makes it.
    pub holder: Uuid,
    /// After it anybody may give it up.
    pub deadline: Timestamp,
    /// What was paid.
    pub charged: Usd,
    /// What of it is the hub's.
    pub fee: Usd,
    /// When it began.
    pub started_at: Timestamp,
    /// When it ended.
    pub ended_at: Option<Timestamp>,
}

impl InvocationRow {
    /// With its answer, if that is still kept.
    #[must_use]
    pub fn with(self, answer: Option<Answer>) -> Invocation {
        Invocation {
            id: self.id,
            status: self.status,
            agent: self.agent,
            product_id: self.product_id,
            capability_id: self.capability_id,
            charged: self.charged,
            answer,
            started_at: self.started_at,
            purse: self.charge.map(|charge| charge.purse),
        }
    }
}

/// What makes a repetition the same, and what it is answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Repeat {
    /// A digest of who calls and of the key that the caller chose.
    pub key: [u8; 32],
    /// A digest of what is asked.
    pub body: [u8; 32],
    /// Which invocation it is.
    pub invocation: Uuid,
    /// `None` while it is under way.
    pub answer: Option<Answer>,
    /// When it began.
    pub started_at: Timestamp,
}

impl Repeat {
    /// What is said to who asks this under the same key; `there` is the invocation that it was asked for.
    #[must_use]
    pub fn say(self, body: &[u8; 32], there: InvocationRow) -> Begun {
        if self.body != *body {
            return Begun::OtherBody;
        }
        match there.status {
            InvocationStatus::Started | InvocationStatus::Settling => Begun::Running(there.id),
            InvocationStatus::Finished | InvocationStatus::Abandoned => Begun::Again(there.with(self.answer)),
        }
    }
}

/// A payment outside this hub, as it is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PaymentRow {
    /// See [`super::PaymentClaim::key`].
    pub key: [u8; 32],
    /// The call that it pays.
    pub invocation: Uuid,
    /// What became of it.
    pub status: PaymentStatus,
    /// See [`super::PaymentClaim::amount`].
    pub amount: Usd,
    /// See [`super::PaymentClaim::payment`].
    pub payment: Bytes,
    /// What its call ends with, while it is being made.
    pub planned: Option<Planned>,
    /// The transaction, once it was made.
    pub transaction: Option<String>,
    /// When it was claimed.
    pub at: Timestamp,
}

/// What a provider earned, as it is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EarnedRow {
    /// What it earned.
    pub earned: Earned,
    /// What the hub took.
    pub fees: Usd,
}

impl EarnedRow {
    /// Nothing yet.
    pub fn nothing(agent: &Did) -> Self {
        Self {
            earned: Earned {
                agent: agent.clone(),
                earned: Usd::ZERO,
                paid_out: Usd::ZERO,
                calls: 0,
                paid_directly: Usd::ZERO,
            },
            fees: Usd::ZERO,
        }
    }
}

/// The rows of a store, held by one step alone: what it reads stays as it is until it has ended, and what it writes is there
/// whole or not at all. Putting a row replaces the one that has its key.
pub trait Rows: Send {
    /// Why the rows could not be read or written; whatever the step wrote is undone.
    type Error: Send;

    /// The rows contradict each other, which is said in one sentence.
    fn corrupt(sentence: &'static str) -> Self::Error;

    /// The money that was made.
    fn issued(&mut self) -> impl Future<Output = Result<Issued, Self::Error>> + Send;

    /// Sets it.
    fn set_issued(&mut self, issued: Issued) -> impl Future<Output = Result<(), Self::Error>> + Send;

    /// One account.
    fn account(
        &mut self,
        id: &AccountId,
    ) -> impl Future<Output = Result<Option<AccountRow>, Self::Error>> + Send;

    /// Which account an agent has.
    fn account_of(
        &mut self,
        owner: &Did,
    ) -> impl Future<Output = Result<Option<AccountId>, Self::Error>> + Send;

    /// Makes or replaces an account.
    fn put_account(&mut self, row: &AccountRow) -> impl Future<Output = Result<(), Self::Error>> + Send;

    /// Adds a line to the ledger of an account.
    fn add_line(
        &mut self,
        account: &AccountId,
        line: &Entry,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send;

    /// One key of an account.
    fn key(
        &mut self,
        account: &AccountId,
        id: &KeyId,
    ) -> impl Future<Output = Result<Option<KeyRow>, Self::Error>> + Send;

    /// Whether some account has a key with this hash.
    fn has_hash(&mut self, hash: &[u8; 32]) -> impl Future<Output = Result<bool, Self::Error>> + Send;

    /// How many keys an account has.
    fn key_count(&mut self, account: &AccountId) -> impl Future<Output = Result<u64, Self::Error>> + Send;

    /// Makes or replaces a key.
    fn put_key(&mut self, row: &KeyRow) -> impl Future<Output = Result<(), Self::Error>> + Send;

    /// Removes a key; whether it was there.
    fn drop_key(
        &mut self,
        account: &AccountId,
        id: &KeyId,
    ) -> impl Future<Output = Result<bool, Self::Error>> + Send;

    /// What a reference was used for.
    fn reference(
        &mut self,
        text: &str,
    ) -> impl Future<Output = Result<Option<Reference>, Self::Error>> + Send;

    /// Uses a reference.
    fn add_reference(
        &mut self,
        reference: &Reference,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send;

    /// One channel.
    fn channel(
        &mut self,
        id: &ChannelId,
    ) -> impl Future<Output = Result<Option<Channel>, Self::Error>> + Send;

    /// How many channels are open.
    fn open_channels(&mut self) -> impl Future<Output = Result<u64, Self::Error>> + Send;

    /// How many of an account are.
    fn open_channels_of(
        &mut self,
        account: &AccountId,
    ) -> impl Future<Output = Result<u64, Self::Error>> + Send;

    /// Open channels that nothing is held of and whose time was over before `now`, the oldest first.
    fn over_channels(
        &mut self,
        now: Timestamp,
        limit: u32,
    ) -> impl Future<Output = Result<Vec<Channel>, Self::Error>> + Send;

    /// Makes or replaces a channel.
    fn put_channel(&mut self, row: &Channel) -> impl Future<Output = Result<(), Self::Error>> + Send;

    /// One invocation.
    fn invocation(
        &mut self,
        id: Uuid,
    ) -> impl Future<Output = Result<Option<InvocationRow>, Self::Error>> + Send;

    /// Invocations that are under way: of a holder, or those whose deadline is `now` or was before, the oldest first.
    fn started(
        &mut self,
        holder: Option<Uuid>,
        now: Timestamp,
        limit: u32,
    ) -> impl Future<Output = Result<Vec<InvocationRow>, Self::Error>> + Send;

    /// Makes or replaces an invocation.
    fn put_invocation(&mut self, row: &InvocationRow)
    -> impl Future<Output = Result<(), Self::Error>> + Send;

    /// Calls whose payment is being made: of a holder, or those whose deadline is `now` or was before, the oldest first.
    fn settling(
        &mut self,
        holder: Option<Uuid>,
        now: Timestamp,
        limit: u32,
    ) -> impl Future<Output = Result<Vec<InvocationRow>, Self::Error>> + Send;

    /// One payment.
    fn payment(
        &mut self,
        key: &[u8; 32],
    ) -> impl Future<Output = Result<Option<PaymentRow>, Self::Error>> + Send;

    /// Makes or replaces a payment.
    fn put_payment(&mut self, row: &PaymentRow) -> impl Future<Output = Result<(), Self::Error>> + Send;

    /// Forgets a payment.
    fn drop_payment(&mut self, key: &[u8; 32]) -> impl Future<Output = Result<(), Self::Error>> + Send;

    /// What was asked under this key.
    fn repeat(&mut self, key: &[u8; 32]) -> impl Future<Output = Result<Option<Repeat>, Self::Error>> + Send;

    /// Remembers what was asked.
    fn add_repeat(&mut self, repeat: &Repeat) -> impl Future<Output = Result<(), Self::Error>> + Send;

    /// Keeps the answer of an invocation, if it can be asked for again.
    fn set_answer(
        &mut self,
        invocation: Uuid,
        answer: &Answer,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send;

    /// Forgets what was asked for an invocation.
    fn drop_repeat(&mut self, invocation: Uuid) -> impl Future<Output = Result<(), Self::Error>> + Send;

    /// Forgets what was asked and answered of invocations that began before this; how many.
    fn drop_answered(
        &mut self,
        before: Timestamp,
        limit: u32,
    ) -> impl Future<Output = Result<u64, Self::Error>> + Send;

    /// How many free calls a visitor had.
    fn trials(&mut self, visitor: &[u8; 32]) -> impl Future<Output = Result<u32, Self::Error>> + Send;

    /// Sets it.
    fn set_trials(
        &mut self,
        visitor: &[u8; 32],
        used: u32,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send;

    /// Keeps a receipt.
    fn add_receipt(
        &mut self,
        invocation: Uuid,
        receipt: &KeptReceipt,
        now: Timestamp,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send;

    /// What a provider earned, if anything.
    fn earned(&mut self, agent: &Did) -> impl Future<Output = Result<Option<EarnedRow>, Self::Error>> + Send;

    /// Makes or replaces it.
    fn put_earned(&mut self, row: &EarnedRow) -> impl Future<Output = Result<(), Self::Error>> + Send;

    /// One peer.
    fn peer(&mut self, url: &str) -> impl Future<Output = Result<Option<MarketPeer>, Self::Error>> + Send;

    /// The peers with this key pinned that are active or frozen, the first by their addresses: how many pending ones have it
    /// is for strangers to say.
    fn peers_with_key(
        &mut self,
        key: &VerifyingKey,
        limit: u32,
    ) -> impl Future<Output = Result<Vec<MarketPeer>, Self::Error>> + Send;

    /// How many peers are pending.
    fn pending_peers(&mut self) -> impl Future<Output = Result<u64, Self::Error>> + Send;

    /// Peers that are due at `now` and not blocked: first those that were let in, the longest waiting first.
    fn due_peers(
        &mut self,
        now: Timestamp,
        limit: u32,
    ) -> impl Future<Output = Result<Vec<MarketPeer>, Self::Error>> + Send;

    /// Pending peers that strangers named, that were first heard of before this and gave no good answer since, the oldest
    /// first.
    fn silent_peers(
        &mut self,
        before: Timestamp,
        limit: u32,
    ) -> impl Future<Output = Result<Vec<MarketPeer>, Self::Error>> + Send;

    /// Makes or replaces a peer; its preview stays as it is where none is given.
    fn put_peer(
        &mut self,
        peer: &MarketPeer,
        preview: Option<&[PreviewRow]>,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send;

    /// Removes a peer; whether it was there.
    fn drop_peer(&mut self, url: &str) -> impl Future<Output = Result<bool, Self::Error>> + Send;

    /// The number of the last line about peers; 0 before the first.
    fn last_peer_line(&mut self) -> impl Future<Output = Result<u64, Self::Error>> + Send;

    /// Adds a line about a peer.
    fn add_peer_line(&mut self, line: &PeerLine) -> impl Future<Output = Result<(), Self::Error>> + Send;
}
