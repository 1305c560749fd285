//! Payment channels: money set aside, with a secret that spends it.

use serde_json::json;

use super::{API_KEY, MARKET};
use crate::client::Client;
use crate::error::{Error, Result};
use crate::market::{
    Amount, ApiKey, ChannelAnswer, ChannelKey, ChannelOpened, ChannelState, Settlement, SettlementAnswer,
};
use crate::transport::Request;
use crate::wire::encoded;

const OPENING: &str = "opening a payment channel";
const SECRET: &str = "X-Payment-Channel-Secret";

impl Client {
    /// Opens a channel: from an account, or, where the hub gives money for trying out, from nothing. Asked again until the hub
    /// has said yes or no, and opened once. A hub that does not know `Idempotency-Key` here may open one more, whose money goes
    /// back when its time is over.
    ///
    /// # Errors
    /// [`Error::Refused`] with `payment_failed`, `payment_required`, `deposit_invalid`, …
    pub async fn open_channel(&self, deposit: Amount, from: Option<&ApiKey>) -> Result<ChannelOpened> {
        let body = json!({"deposit_usd": deposit}).to_string();
        let once = self.entropy().message_id().hyphenated().to_string();
        let ask = || {
            let request = Request::post(OPENING, format!("{MARKET}/channel/open"), body.clone());
            let request = request.header("Idempotency-Key", once.as_str());
            match from {
                Some(key) => request.header(API_KEY, key.reveal()),
                None => request,
            }
        };
        let answer: ChannelAnswer = self.call_patiently(ask).await?.json()?;
        let opened = answer.channel.into_opened();
        opened.ok_or_else(|| Error::answer(OPENING, "it names no secret"))
    }

    /// A channel as it stands.
    ///
    /// # Errors
    /// [`Error::Refused`] with `channel_not_found`, also for another secret.
    pub async fn channel(&self, key: &ChannelKey) -> Result<ChannelState> {
        let path = format!("{MARKET}/channel/{}", encoded(key.id()));
        let ask = || Request::get("asking for a payment channel", path.as_str()).header(SECRET, key.reveal());
        let answer: ChannelAnswer = self.call_patiently(ask).await?.json()?;
        Ok(answer.channel.state)
    }

    /// Puts more into a channel, from where its first money came from; of an account, with the key that opened it. Asked
    /// again until the hub has said yes or no, and done once.
    ///
    /// # Errors
    /// [`Error::Refused`] with `payment_failed`, `channel_ended`, …
    pub async fn top_up(
        &self,
        key: &ChannelKey,
        amount: Amount,
        from: Option<&ApiKey>,
    ) -> Result<ChannelState> {
        let body = json!({"channel_id": key.id(), "amount_usd": amount}).to_string();
        let once = self.entropy().message_id().hyphenated().to_string();
        let ask = || {
            let request = Request::post(
                "topping up a channel",
                format!("{MARKET}/channel/topup"),
                body.clone(),
            );
            let request = request
                .header(SECRET, key.reveal())
                .header("Idempotency-Key", once.as_str());
            match from {
                Some(account) => request.header(API_KEY, account.reveal()),
                None => request,
            }
        };
        let answer: ChannelAnswer = self.call_patiently(ask).await?.json()?;
        Ok(answer.channel.state)
    }

    /// Ends a channel: what is left goes back where it came from. Again is harmless.
    ///
    /// # Errors
    /// [`Error::Refused`] with `channel_busy` while a call is under way.
    pub async fn close_channel(&self, key: &ChannelKey) -> Result<Settlement> {
        let body = json!({"channel_id": key.id()}).to_string();
        let ask = || {
            let request = Request::post(
                "closing a payment channel",
                format!("{MARKET}/channel/close"),
                body.clone(),
            );
            request.header(SECRET, key.reveal())
        };
        let answer: SettlementAnswer = self.call_patiently(ask).await?.json()?;
        Ok(answer.settlement)
    }
}
