//! The rows in memory, as a step changes them.

use std::collections::btree_map::Entry as Place;
use std::collections::{BTreeMap, BTreeSet};

use aip_protocol::multikey::VerifyingKey;
use aip_protocol::name::Did;
use aip_protocol::time::Timestamp;
use bytes::Bytes;
use uuid::Uuid;

use super::peers::PeerState;
use crate::money::Usd;
use crate::peers::MarketPeer;
use crate::store::rows::{
    AccountRow, EarnedRow, InvocationRow, Issued, KeyRow, PaymentRow, Reference, Repeat, Rows,
};
use crate::store::{
    AccountId, Answer, Channel, ChannelId, ChannelStatus, Entry, Funding, InvocationStatus, KeptReceipt,
    KeyId, PeerLine, PreviewRow, StoreError,
};

type Answered<T> = Result<T, StoreError>;

/// Everything.
#[derive(Debug, Default)]
pub(super) struct State {
    pub(super) issued: Issued,
    pub(super) accounts: BTreeMap<AccountId, AccountRow>,
    pub(super) owners: BTreeMap<Did, AccountId>,
    pub(super) lines: BTreeMap<AccountId, Vec<Entry>>,
    pub(super) keys: BTreeMap<(AccountId, KeyId), KeyRow>,
    pub(super) hashes: BTreeMap<[u8; 32], (AccountId, KeyId)>,
    pub(super) references: BTreeMap<String, Reference>,
    pub(super) channels: BTreeMap<ChannelId, Channel>,
    /// Those of them that are open, by their ends.
    pub(super) open: BTreeSet<(Timestamp, ChannelId)>,
    pub(super) invocations: BTreeMap<Uuid, InvocationRow>,
    /// Those of them that are under way.
    pub(super) under_way: BTreeMap<(Timestamp, Uuid), Uuid>,
    pub(super) payments: BTreeMap<[u8; 32], PaymentRow>,
    /// The calls whose payment is being made.
    pub(super) settling: BTreeSet<Uuid>,
    pub(super) repeats: BTreeMap<[u8; 32], Repeat>,
    /// Under which key an invocation was asked for.
    pub(super) asked: BTreeMap<Uuid, [u8; 32]>,
    pub(super) trials: BTreeMap<[u8; 32], u32>,
    pub(super) receipts: BTreeMap<String, Bytes>,
    pub(super) earnings: BTreeMap<Did, EarnedRow>,
    pub(super) peers: PeerState,
}

impl Rows for State {
    type Error = StoreError;

    fn corrupt(sentence: &'static str) -> StoreError {
        StoreError::Corrupt(sentence.into())
    }

    async fn issued(&mut self) -> Answered<Issued> {
        Ok(self.issued)
    }

    async fn set_issued(&mut self, issued: Issued) -> Answered<()> {
        self.issued = issued;
        Ok(())
    }

    async fn account(&mut self, id: &AccountId) -> Answered<Option<AccountRow>> {
        Ok(self.accounts.get(id).cloned())
    }

    async fn account_of(&mut self, owner: &Did) -> Answered<Option<AccountId>> {
        Ok(self.owners.get(owner).cloned())
    }

    async fn put_account(&mut self, row: &AccountRow) -> Answered<()> {
        if let Some(owner) = &row.account.owner {
            self.owners.insert(owner.clone(), row.account.id.clone());
        }
        self.accounts.insert(row.account.id.clone(), row.clone());
        Ok(())
    }

    async fn add_line(&mut self, account: &AccountId, line: &Entry) -> Answered<()> {
        self.lines.entry(account.clone()).or_default().push(line.clone());
        Ok(())
    }

    async fn key(&mut self, account: &AccountId, id: &KeyId) -> Answered<Option<KeyRow>> {
        Ok(self.keys.get(&(account.clone(), id.clone())).cloned())
    }

    async fn has_hash(&mut self, hash: &[u8; 32]) -> Answered<bool> {
        Ok(self.hashes.contains_key(hash))
    }

    async fn key_count(&mut self, account: &AccountId) -> Answered<u64> {
        Ok(self.keys(account).len() as u64)
    }

    async fn put_key(&mut self, row: &KeyRow) -> Answered<()> {
        let place = (row.account.clone(), row.key.id.clone());
        self.hashes.insert(row.hash, place.clone());
        self.keys.insert(place, row.clone());
        Ok(())
    }

    async fn drop_key(&mut self, account: &AccountId, id: &KeyId) -> Answered<bool> {
        let gone = self.keys.remove(&(account.clone(), id.clone()));
        if let Some(row) = &gone {
            self.hashes.remove(&row.hash);
        }
        Ok(gone.is_some())
    }

    async fn reference(&mut self, text: &str) -> Answered<Option<Reference>> {
        Ok(self.references.get(text).cloned())
    }

    async fn add_reference(&mut self, reference: &Reference) -> Answered<()> {
        self.references.insert(reference.text.clone(), reference.clone());
        Ok(())
    }

    async fn channel(&mut self, id: &ChannelId) -> Answered<Option<Channel>> {
        Ok(self.channels.get(id).cloned())
    }

    async fn open_channels(&mut self) -> Answered<u64> {
        Ok(self.open.len() as u64)
    }

    async fn open_channels_of(&mut self, account: &AccountId) -> Answered<u64> {
        let is_its = |channel: &&Channel| matches!(&channel.funding, Funding::Account { account: of, .. } if of == account);
        let open = self.open.iter().filter_map(|(_, id)| self.channels.get(id));
        Ok(open.filter(is_its).count() as u64)
    }

    async fn over_channels(&mut self, now: Timestamp, limit: u32) -> Answered<Vec<Channel>> {
        let over = self.open.iter().take_while(|(expires_at, _)| *expires_at < now);
        let over = over.filter_map(|(_, id)| self.channels.get(id));
        let free = over.filter(|channel| channel.held == Usd::ZERO);
        Ok(free.take(limit as usize).cloned().collect())
    }

    async fn put_channel(&mut self, row: &Channel) -> Answered<()> {
        let place = (row.expires_at, row.id.clone());
        if row.status == ChannelStatus::Open {
            self.open.insert(place);
        } else {
            self.open.remove(&place);
        }
        self.channels.insert(row.id.clone(), row.clone());
        Ok(())
    }

    async fn invocation(&mut self, id: Uuid) -> Answered<Option<InvocationRow>> {
        Ok(self.invocations.get(&id).cloned())
    }

    async fn started(
        &mut self,
        holder: Option<Uuid>,
        now: Timestamp,
        limit: u32,
    ) -> Answered<Vec<InvocationRow>> {
        let rows = self.under_way.values().filter_map(|id| self.invocations.get(id));
        let is_asked = |row: &&InvocationRow| match holder {
            Some(holder) => row.holder == holder,
            None => row.deadline <= now,
        };
        Ok(rows.filter(is_asked).take(limit as usize).cloned().collect())
    }

    async fn put_invocation(&mut self, row: &InvocationRow) -> Answered<()> {
        let place = (row.deadline, row.id);
        if row.status == InvocationStatus::Started {
            self.under_way.insert(place, row.id);
        } else {
            self.under_way.remove(&place);
        }
        if row.status == InvocationStatus::Settling {
            self.settling.insert(row.id);
        } else {
            self.settling.remove(&row.id);
        }
        self.invocations.insert(row.id, row.clone());
        Ok(())
    }

    async fn settling(
        &mut self,
        holder: Option<Uuid>,
        now: Timestamp,
        limit: u32,
    ) -> Answered<Vec<InvocationRow>> {
        let rows = self.settling.iter().filter_map(|id| self.invocations.get(id));
        let is_asked = |row: &&InvocationRow| match holder {
            Some(holder) => row.holder == holder,
            None => row.deadline <= now,
        };
        let mut asked: Vec<_> = rows.filter(is_asked).cloned().collect();
        asked.sort_by_key(|row| (row.deadline, row.id));
        asked.truncate(limit as usize);
        Ok(asked)
    }

    async fn payment(&mut self, key: &[u8; 32]) -> Answered<Option<PaymentRow>> {
        Ok(self.payments.get(key).cloned())
    }

    async fn put_payment(&mut self, row: &PaymentRow) -> Answered<()> {
        self.payments.insert(row.key, row.clone());
        Ok(())
    }

    async fn drop_payment(&mut self, key: &[u8; 32]) -> Answered<()> {
        self.payments.remove(key);
        Ok(())
    }

    async fn repeat(&mut self, key: &[u8; 32]) -> Answered<Option<Repeat>> {
        Ok(self.repeats.get(key).cloned())
    }

    async fn add_repeat(&mut self, repeat: &Repeat) -> Answered<()> {
        self.asked.insert(repeat.invocation, repeat.key);
        self.repeats.insert(repeat.key, repeat.clone());
        Ok(())
    }

    async fn set_answer(&mut self, invocation: Uuid, answer: &Answer) -> Answered<()> {
        let key = self.asked.get(&invocation);
        if let Some(repeat) = key.and_then(|key| self.repeats.get_mut(key)) {
            repeat.answer = Some(answer.clone());
        }
        Ok(())
    }

    async fn drop_repeat(&mut self, invocation: Uuid) -> Answered<()> {
        if let Some(key) = self.asked.remove(&invocation) {
            self.repeats.remove(&key);
        }
        Ok(())
    }

    async fn drop_answered(&mut self, before: Timestamp, limit: u32) -> Answered<u64> {
        let is_old = |repeat: &&Repeat| repeat.answer.is_some() && repeat.started_at < before;
        let old = self.repeats.values().filter(is_old).take(limit as usize);
        let old: Vec<_> = old.map(|repeat| (repeat.key, repeat.invocation)).collect();
        for (key, invocation) in &old {
            self.repeats.remove(key);
            self.asked.remove(invocation);
        }
        Ok(old.len() as u64)
    }

    async fn trials(&mut self, visitor: &[u8; 32]) -> Answered<u32> {
        Ok(self.trials.get(visitor).copied().unwrap_or_default())
    }

    async fn set_trials(&mut self, visitor: &[u8; 32], used: u32) -> Answered<()> {
        self.trials.insert(*visitor, used);
        Ok(())
    }

    async fn add_receipt(
        &mut self,
        _invocation: Uuid,
        receipt: &KeptReceipt,
        _now: Timestamp,
    ) -> Answered<()> {
        match self.receipts.entry(receipt.nonce.clone()) {
            Place::Vacant(place) => {
                place.insert(receipt.receipt.clone());
                Ok(())
            }
            Place::Occupied(_) => Err(Self::corrupt("a receipt has the nonce of another one")),
        }
    }

    async fn earned(&mut self, agent: &Did) -> Answered<Option<EarnedRow>> {
        Ok(self.earnings.get(agent).cloned())
    }

    async fn put_earned(&mut self, row: &EarnedRow) -> Answered<()> {
        self.earnings.insert(row.earned.agent.clone(), row.clone());
        Ok(())
    }

    async fn peer(&mut self, url: &str) -> Answered<Option<MarketPeer>> {
        Ok(self.peers.one(url))
    }

    async fn peers_with_key(&mut self, key: &VerifyingKey, limit: u32) -> Answered<Vec<MarketPeer>> {
        Ok(self.peers.with_key(key, limit))
    }

    async fn pending_peers(&mut self) -> Answered<u64> {
        Ok(self.peers.pending())
    }

    async fn due_peers(&mut self, now: Timestamp, limit: u32) -> Answered<Vec<MarketPeer>> {
        Ok(self.peers.due(now, limit))
    }

    async fn silent_peers(&mut self, before: Timestamp, limit: u32) -> Answered<Vec<MarketPeer>> {
        Ok(self.peers.silent(before, limit))
    }

    async fn put_peer(&mut self, peer: &MarketPeer, preview: Option<&[PreviewRow]>) -> Answered<()> {
        self.peers.put(peer, preview);
        Ok(())
    }

    async fn drop_peer(&mut self, url: &str) -> Answered<bool> {
        Ok(self.peers.drop(url))
    }

    async fn last_peer_line(&mut self) -> Answered<u64> {
        Ok(self.peers.last_line())
    }

    async fn add_peer_line(&mut self, line: &PeerLine) -> Answered<()> {
        self.peers.add_line(line);
        Ok(())
    }
}
