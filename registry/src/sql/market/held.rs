//! The rows of the market in the hand of one change: it holds the row of `market_money` until the commit, as every other
//! change of the market does, in every process. So they come one after the other, and each may read before it decides.

use aip_market::peers::MarketPeer;
use aip_market::store::rows::{
    AccountRow, EarnedRow, InvocationRow, Issued, KeyRow, PaymentRow, Reference, Repeat, Rows,
};
use aip_market::store::steps::Step;
use aip_market::store::{AccountId, Answer, Channel, ChannelId, Entry, Funding, KeptReceipt, KeyId, Purse};
use aip_market::store::{PeerLine, PreviewRow};
use aip_protocol::multikey::VerifyingKey;
use aip_protocol::name::Did;
use aip_protocol::time::Timestamp;
use sqlx::AnyConnection;
use sqlx::any::AnyRow;
use uuid::Uuid;

use super::hand::{HeldRows, limit_bind, micros, millis, optional_micros, payer};
use super::{peers, rows, statements};
use crate::error::StoreError;
use crate::sql::dialect::Dialect;
use crate::sql::rows::{Bind, broken, can_be_there, count, number, query, to_i64};
use crate::sql::writer::{Log, Write};

/// A step of the market, as a change.
pub(super) struct Held<S> {
    pub(super) dialect: Dialect,
    pub(super) step: S,
}

impl<S: Step> Write for Held<S> {
    type Outcome = S::Outcome;

    fn takes_the_log(&self) -> Option<Log> {
        Some(Log::Market)
    }

    async fn apply(&self, conn: &mut AnyConnection) -> sqlx::Result<S::Outcome> {
        let mut rows = HeldRows::take(conn, self.dialect).await?;
        self.step.run(&mut rows).await
    }
}

impl Rows for HeldRows<'_> {
    type Error = sqlx::Error;

    fn corrupt(sentence: &'static str) -> sqlx::Error {
        broken(StoreError::Corrupt(sentence.to_owned()))
    }

    async fn issued(&mut self) -> sqlx::Result<Issued> {
        Ok(self.issued)
    }

    async fn set_issued(&mut self, issued: Issued) -> sqlx::Result<()> {
        self.issued = issued;
        let values = [micros(issued.credited), micros(issued.demo)];
        self.run(statements::SET_MONEY, &values).await.map(drop)
    }

    async fn account(&mut self, id: &AccountId) -> sqlx::Result<Option<AccountRow>> {
        let values = [Bind::Text(&id.0)];
        self.one(&statements::GET_ACCOUNT, &values, rows::account).await
    }

    async fn account_of(&mut self, owner: &Did) -> sqlx::Result<Option<AccountId>> {
        let values = [Bind::Text(owner.as_str())];
        let found = self
            .one(&statements::GET_ACCOUNT_OF, &values, rows::account)
            .await?;
        Ok(found.map(|row| row.account.id))
    }

    async fn put_account(&mut self, AccountRow { account, lines }: &AccountRow) -> sqlx::Result<()> {
        let values = [
            Bind::Text(&account.id.0),
            Bind::Text(&account.label),
            Bind::OptionalText(account.owner.as_ref().map(Did::as_str)),
            micros(account.balance),
            micros(account.held),
            optional_micros(account.budget),
            micros(account.spent),
            Bind::Number(account.suspended.into()),
            millis(account.created_at),
            Bind::Number(to_i64(*lines)),
        ];
        self.run(&statements::PUT_ACCOUNT, &values).await.map(drop)
    }

    async fn add_line(&mut self, account: &AccountId, line: &Entry) -> sqlx::Result<()> {
        let values = [
            Bind::Text(&account.0),
            Bind::Number(to_i64(line.number)),
            Bind::Text(rows::kind_text(line.kind)),
            micros(line.amount),
            Bind::Text(&line.reference),
            micros(line.balance),
            millis(line.at),
        ];
        self.run(&statements::ADD_LINE, &values).await.map(drop)
    }

    async fn key(&mut self, account: &AccountId, id: &KeyId) -> sqlx::Result<Option<KeyRow>> {
        let values = [Bind::Text(&account.0), Bind::Text(&id.0)];
        self.one(&statements::GET_KEY, &values, rows::key).await
    }

    async fn has_hash(&mut self, hash: &[u8; 32]) -> sqlx::Result<bool> {
        let hash = hex::encode(hash);
        let found = self
            .one(statements::HAS_HASH, &[Bind::Text(&hash)], |_| Ok(()))
            .await?;
        Ok(found.is_some())
    }

    async fn key_count(&mut self, account: &AccountId) -> sqlx::Result<u64> {
        let values = [Bind::Text(&account.0)];
        let found = self
            .one(statements::COUNT_KEYS, &values, |row| count(row, "keys"))
            .await?;
        Ok(found.unwrap_or_default())
    }

    async fn put_key(&mut self, row: &KeyRow) -> sqlx::Result<()> {
        let hash = hex::encode(row.hash);
        let values = [
            Bind::Text(&row.account.0),
            Bind::Text(&row.key.id.0),
            Bind::Text(&hash),
            Bind::Text(&row.key.label),
            optional_micros(row.key.budget),
            micros(row.key.spent),
            millis(row.key.created_at),
        ];
        self.run(&statements::PUT_KEY, &values).await.map(drop)
    }

    async fn drop_key(&mut self, account: &AccountId, id: &KeyId) -> sqlx::Result<bool> {
        let values = [Bind::Text(&account.0), Bind::Text(&id.0)];
        if !can_be_there(&values) {
            return Ok(false);
        }
        Ok(self.run(statements::DROP_KEY, &values).await? == 1)
    }

    async fn reference(&mut self, text: &str) -> sqlx::Result<Option<Reference>> {
        let values = [Bind::Text(text)];
        self.one(statements::GET_REFERENCE, &values, rows::reference)
            .await
    }

    async fn add_reference(&mut self, reference: &Reference) -> sqlx::Result<()> {
        let values = [
            Bind::Text(&reference.text),
            Bind::Text(rows::purpose_text(reference.purpose)),
            Bind::Text(&reference.subject),
            micros(reference.amount),
            millis(reference.at),
        ];
        self.run(statements::ADD_REFERENCE, &values).await.map(drop)
    }

    async fn channel(&mut self, id: &ChannelId) -> sqlx::Result<Option<Channel>> {
        let values = [Bind::Text(&id.0)];
        self.one(&statements::GET_CHANNEL, &values, rows::channel).await
    }

    async fn open_channels(&mut self) -> sqlx::Result<u64> {
        let read = |row: &AnyRow| count(row, "channels");
        let found = self.one(statements::COUNT_OPEN_CHANNELS, &[], read).await?;
        Ok(found.unwrap_or_default())
    }

    async fn open_channels_of(&mut self, account: &AccountId) -> sqlx::Result<u64> {
        let (values, read) = ([Bind::Text(&account.0)], |row: &AnyRow| count(row, "channels"));
        let found = self
            .one(statements::COUNT_OPEN_CHANNELS_OF, &values, read)
            .await?;
        Ok(found.unwrap_or_default())
    }

    async fn over_channels(&mut self, now: Timestamp, limit: u32) -> sqlx::Result<Vec<Channel>> {
        let values = [millis(now), limit_bind(limit)];
        self.all(&statements::LIST_OVER_CHANNELS, &values, rows::channel)
            .await
    }

    async fn put_channel(&mut self, row: &Channel) -> sqlx::Result<()> {
        let secret_hash = hex::encode(row.secret_hash);
        let [account, account_key] = payer(match &row.funding {
            Funding::Account { account, key } => Some((account, key)),
            Funding::Demo => None,
        });
        let values = [
            Bind::Text(&row.id.0),
            Bind::Text(&secret_hash),
            account,
            account_key,
            micros(row.deposit),
            micros(row.used),
            micros(row.held),
            micros(row.refunded),
            Bind::Text(rows::channel_status_text(row.status)),
            millis(row.opened_at),
            millis(row.expires_at),
        ];
        self.run(&statements::PUT_CHANNEL, &values).await.map(drop)
    }

    async fn invocation(&mut self, id: Uuid) -> sqlx::Result<Option<InvocationRow>> {
        let id = id.to_string();
        self.one(&statements::GET_INVOCATION, &[Bind::Text(&id)], rows::invocation)
            .await
    }

    async fn started(
        &mut self,
        holder: Option<Uuid>,
        now: Timestamp,
        limit: u32,
    ) -> sqlx::Result<Vec<InvocationRow>> {
        let limit = limit_bind(limit);
        if let Some(holder) = holder.map(|holder| holder.to_string()) {
            let values = [Bind::Text(&holder), limit];
            self.all(&statements::LIST_STARTED_BY, &values, rows::invocation)
                .await
        } else {
            let values = [millis(now), limit];
            self.all(&statements::LIST_STARTED, &values, rows::invocation)
                .await
        }
    }

    async fn put_invocation(&mut self, row: &InvocationRow) -> sqlx::Result<()> {
        let (id, holder) = (row.id.to_string(), row.holder.to_string());
        let visitor = row.visitor.map(hex::encode);
        let payment = row.payment.map(hex::encode);
        let purse = row.charge.as_ref().map(|charge| &charge.purse);
        let [account, account_key] = payer(match purse {
            Some(Purse::Account { account, key }) => Some((account, key)),
            _ => None,
        });
        let channel = match purse {
            Some(Purse::Channel(id)) => Some(id.0.as_str()),
            _ => None,
        };
        let amount = row
            .charge
            .as_ref()
            .map(|charge| charge.amount)
            .unwrap_or_default();
        let values = [
            Bind::Text(&id),
            Bind::Text(rows::invocation_status_text(row.status)),
            Bind::Text(row.agent.as_str()),
            Bind::Text(&row.product_id),
            Bind::Text(&row.capability_id),
            account,
            account_key,
            Bind::OptionalText(channel),
            micros(amount),
            Bind::OptionalText(visitor.as_deref()),
            Bind::Text(&holder),
            millis(row.deadline),
            micros(row.charged),
            micros(row.fee),
            millis(row.started_at),
            Bind::OptionalNumber(row.ended_at.map(Timestamp::unix_millis)),
            Bind::OptionalText(payment.as_deref()),
        ];
        self.run(&statements::PUT_INVOCATION, &values).await.map(drop)
    }

    async fn settling(
        &mut self,
        holder: Option<Uuid>,
        now: Timestamp,
        limit: u32,
    ) -> sqlx::Result<Vec<InvocationRow>> {
        let limit = limit_bind(limit);
        if let Some(holder) = holder.map(|holder| holder.to_string()) {
            let values = [Bind::Text(&holder), limit];
            self.all(&statements::LIST_SETTLING_BY, &values, rows::invocation)
                .await
        } else {
            let values = [millis(now), limit];
            self.all(&statements::LIST_SETTLING, &values, rows::invocation)
                .await
        }
    }

    async fn payment(&mut self, key: &[u8; 32]) -> sqlx::Result<Option<PaymentRow>> {
        let key = hex::encode(key);
        self.one(&statements::GET_PAYMENT, &[Bind::Text(&key)], rows::payment)
            .await
    }

    async fn put_payment(&mut self, row: &PaymentRow) -> sqlx::Result<()> {
        let (key, invocation) = (hex::encode(row.key), row.invocation.to_string());
        let payment = rows::bytes_text(&row.payment);
        let (answer, receipt) = row
            .planned
            .as_ref()
            .map(|planned| (&planned.answer, &planned.receipt))
            .unzip();
        let body = answer.map(|answer| rows::bytes_text(&answer.body));
        let kept = receipt.map(|receipt| rows::bytes_text(&receipt.receipt));
        let values = [
            Bind::Text(&key),
            Bind::Text(&invocation),
            Bind::Text(rows::payment_status_text(row.status)),
            micros(row.amount),
            Bind::Text(&payment),
            Bind::OptionalNumber(answer.map(|answer| answer.status.into())),
            Bind::OptionalText(body.as_deref()),
            Bind::OptionalText(receipt.map(|receipt| receipt.nonce.as_str())),
            Bind::OptionalText(kept.as_deref()),
            Bind::OptionalText(row.transaction.as_deref()),
            millis(row.at),
        ];
        self.run(&statements::PUT_PAYMENT, &values).await.map(drop)
    }

    async fn drop_payment(&mut self, key: &[u8; 32]) -> sqlx::Result<()> {
        let key = hex::encode(key);
        self.run(statements::DROP_PAYMENT, &[Bind::Text(&key)])
            .await
            .map(drop)
    }

    async fn repeat(&mut self, key: &[u8; 32]) -> sqlx::Result<Option<Repeat>> {
        let key = hex::encode(key);
        self.one(&statements::GET_REPEAT, &[Bind::Text(&key)], rows::repeat)
            .await
    }

    async fn add_repeat(&mut self, repeat: &Repeat) -> sqlx::Result<()> {
        let (key, body) = (hex::encode(repeat.key), hex::encode(repeat.body));
        let invocation = repeat.invocation.to_string();
        let values = [
            Bind::Text(&key),
            Bind::Text(&body),
            Bind::Text(&invocation),
            millis(repeat.started_at),
        ];
        self.run(statements::ADD_REPEAT, &values).await.map(drop)
    }

    async fn set_answer(&mut self, invocation: Uuid, answer: &Answer) -> sqlx::Result<()> {
        let (invocation, body) = (invocation.to_string(), rows::bytes_text(&answer.body));
        let values = [
            Bind::Text(&invocation),
            Bind::Number(answer.status.into()),
            Bind::Text(&body),
        ];
        self.run(statements::SET_ANSWER, &values).await.map(drop)
    }

    async fn drop_repeat(&mut self, invocation: Uuid) -> sqlx::Result<()> {
        let invocation = invocation.to_string();
        self.run(statements::DROP_REPEAT, &[Bind::Text(&invocation)])
            .await
            .map(drop)
    }

    async fn drop_answered(&mut self, before: Timestamp, limit: u32) -> sqlx::Result<u64> {
        let values = [millis(before), limit_bind(limit)];
        self.run(statements::DROP_ANSWERED, &values).await
    }

    async fn trials(&mut self, visitor: &[u8; 32]) -> sqlx::Result<u32> {
        let visitor = hex::encode(visitor);
        let read = |row: &AnyRow| number(row, "used");
        let found = self
            .one(statements::GET_TRIALS, &[Bind::Text(&visitor)], read)
            .await?;
        Ok(found.unwrap_or_default())
    }

    async fn set_trials(&mut self, visitor: &[u8; 32], used: u32) -> sqlx::Result<()> {
        let visitor = hex::encode(visitor);
        let values = [Bind::Text(&visitor), Bind::Number(used.into())];
        self.run(statements::SET_TRIALS, &values).await.map(drop)
    }

    async fn add_receipt(
        &mut self,
        invocation: Uuid,
        kept: &KeptReceipt,
        now: Timestamp,
    ) -> sqlx::Result<()> {
        let (invocation, receipt) = (invocation.to_string(), rows::bytes_text(&kept.receipt));
        let values = [
            Bind::Text(&kept.nonce),
            Bind::Text(&invocation),
            Bind::Text(&receipt),
            millis(now),
        ];
        self.run(statements::ADD_RECEIPT, &values).await.map(drop)
    }

    async fn earned(&mut self, agent: &Did) -> sqlx::Result<Option<EarnedRow>> {
        let values = [Bind::Text(agent.as_str())];
        self.one(&statements::GET_EARNED, &values, rows::earned).await
    }

    async fn peer(&mut self, url: &str) -> sqlx::Result<Option<MarketPeer>> {
        self.one(&peers::GET, &[Bind::Text(url)], peers::peer).await
    }

    async fn peers_with_key(&mut self, key: &VerifyingKey, limit: u32) -> sqlx::Result<Vec<MarketPeer>> {
        let values = [Bind::Text(key.as_str()), limit_bind(limit)];
        self.all(&peers::WITH_KEY, &values, peers::peer).await
    }

    async fn pending_peers(&mut self) -> sqlx::Result<u64> {
        let read = |row: &AnyRow| count(row, "peers");
        let found = self.one(peers::COUNT_PENDING, &[], read).await?;
        Ok(found.unwrap_or_default())
    }

    async fn due_peers(&mut self, now: Timestamp, limit: u32) -> sqlx::Result<Vec<MarketPeer>> {
        self.all(&peers::DUE, &[millis(now), limit_bind(limit)], peers::peer)
            .await
    }

    async fn silent_peers(&mut self, before: Timestamp, limit: u32) -> sqlx::Result<Vec<MarketPeer>> {
        let values = [millis(before), limit_bind(limit)];
        self.all(&peers::SILENT, &values, peers::peer).await
    }

    async fn put_peer(&mut self, peer: &MarketPeer, preview: Option<&[PreviewRow]>) -> sqlx::Result<()> {
        peers::with_values(peer, |values| query(&peers::PUT, values))
            .execute(&mut *self.conn)
            .await?;
        if let Some(preview) = preview.map(peers::preview_text) {
            let values = [Bind::Text(&peer.url), Bind::Text(&preview)];
            self.run(peers::SET_PREVIEW, &values).await?;
        }
        Ok(())
    }

    async fn drop_peer(&mut self, url: &str) -> sqlx::Result<bool> {
        Ok(self.run(peers::DROP, &[Bind::Text(url)]).await? == 1)
    }

    async fn last_peer_line(&mut self) -> sqlx::Result<u64> {
        let read = |row: &AnyRow| count(row, "number");
        Ok(self.one(peers::LAST_LINE, &[], read).await?.unwrap_or_default())
    }

    async fn add_peer_line(&mut self, line: &PeerLine) -> sqlx::Result<()> {
        let values = [
            Bind::Number(to_i64(line.number)),
            Bind::Text(&line.peer),
            Bind::Text(&line.actor),
            Bind::Text(&line.action),
            Bind::Text(&line.detail),
            millis(line.at),
        ];
        self.run(&peers::ADD_LINE, &values).await.map(drop)
    }

    async fn put_earned(&mut self, EarnedRow { earned, fees }: &EarnedRow) -> sqlx::Result<()> {
        let values = [
            Bind::Text(earned.agent.as_str()),
            micros(earned.earned),
            micros(earned.paid_out),
            micros(*fees),
            Bind::Number(to_i64(earned.calls)),
            micros(earned.paid_directly),
        ];
        self.run(&statements::PUT_EARNED, &values).await.map(drop)
    }
}
