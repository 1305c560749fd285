//! Accounts: money of an agent at its hub, and the keys that spend it.

use serde_json::{Map, Value, json};

use super::{API_KEY, MARKET};
use crate::client::Client;
use crate::error::{Error, Result};
use crate::market::{
    Account, AccountMade, Amount, ApiKey, Earnings, KeyAnswer, KeyMade, LedgerAnswer, LedgerPage,
};
use crate::transport::Request;
use crate::wire::encoded;

const MAKING: &str = "making an account";
const MAKING_KEY: &str = "making a key of an account";

impl Client {
    /// Makes this agent's account; it has one at most. Its first key is told now and never again.
    ///
    /// # Errors
    /// [`Error::Refused`] with `account_exists`: a new key is had with [`Client::add_account_key`].
    pub async fn create_account(&self, label: &str, budget: Option<Amount>) -> Result<AccountMade> {
        let body = labelled(label, budget);
        let ask = || Request::post(MAKING, format!("{MARKET}/accounts"), body.clone());
        self.call_with_token(ask).await?.json()
    }

    /// An account: that of the key, or, without one, this agent's own.
    pub async fn account(&self, key: Option<&ApiKey>) -> Result<Account> {
        let ask = || Request::get("asking for an account", format!("{MARKET}/account"));
        self.call_for_account(key, ask).await?.json()
    }

    /// Lines of an account after number `after`, oldest first.
    pub async fn account_ledger(&self, key: Option<&ApiKey>, after: Option<u64>) -> Result<LedgerPage> {
        let query = after.map(|after| format!("?after={after}")).unwrap_or_default();
        let ask = || {
            Request::get(
                "reading the lines of an account",
                format!("{MARKET}/account/ledger{query}"),
            )
        };
        let LedgerAnswer { entries, next } = self.call_for_account(key, ask).await?.json()?;
        Ok(LedgerPage { entries, next })
    }

    /// Makes another key of an account, which may spend `budget` in all; it is told now and never again.
    ///
    /// # Errors
    /// [`Error::Refused`] with `too_many_keys`, or `key_limited` for a key that has a budget itself.
    pub async fn add_account_key(
        &self,
        key: Option<&ApiKey>,
        label: &str,
        budget: Option<Amount>,
    ) -> Result<KeyMade> {
        let body = labelled(label, budget);
        let ask = || Request::post(MAKING_KEY, format!("{MARKET}/account/keys"), body.clone());
        let answer: KeyAnswer = self.call_for_account(key, ask).await?.json()?;
        answer
            .into_key()
            .ok_or_else(|| Error::answer(MAKING_KEY, "it does not name the key"))
    }

    /// Ends a key of an account.
    ///
    /// # Errors
    /// [`Error::Refused`] with `key_not_found`.
    pub async fn remove_account_key(&self, key: Option<&ApiKey>, key_id: &str) -> Result<()> {
        let path = format!("{MARKET}/account/keys/{}", encoded(key_id));
        let ask = || Request::delete("ending a key of an account", path.as_str(), "{}");
        self.call_for_account(key, ask).await.map(drop)
    }

    /// A new key in place of this one, which ends at once.
    pub async fn rotate_account_key(&self, key: &ApiKey) -> Result<KeyMade> {
        let ask = || Request::post(MAKING_KEY, format!("{MARKET}/account/rotate-key"), "{}");
        let answer: KeyAnswer = self.call_for_account(Some(key), ask).await?.json()?;
        answer
            .into_key()
            .ok_or_else(|| Error::answer(MAKING_KEY, "it does not name the key"))
    }

    /// What this agent has earned with what it sells.
    pub async fn earnings(&self) -> Result<Earnings> {
        let ask = || Request::get("asking for earnings", "/api/v1/market/earnings");
        self.call_with_token(ask).await?.json()
    }

    /// Shows the key, or the agent's token where there is none. Asked once: keys are made by some of these.
    async fn call_for_account(
        &self,
        key: Option<&ApiKey>,
        request: impl Fn() -> Request,
    ) -> Result<crate::transport::Answer> {
        match key {
            Some(key) => {
                self.transport()
                    .call(request().header(API_KEY, key.reveal()))
                    .await
            }
            None => self.call_with_token(request).await,
        }
    }
}

/// `{label?, budget_usd?}`
fn labelled(label: &str, budget: Option<Amount>) -> String {
    let mut body = Map::new();
    if !label.is_empty() {
        body.insert("label".to_owned(), label.into());
    }
    if let Some(budget) = budget {
        body.insert("budget_usd".to_owned(), json!(budget));
    }
    Value::Object(body).to_string()
}
