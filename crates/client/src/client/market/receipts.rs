//! Receipts of the market: fetched, and checked against the key of the hub that signed them.

use std::sync::PoisonError;

use aip_protocol::error::{ErrorCode, Refusal};
use aip_protocol::market::origin::{Lookup, Origin, published_key};
use aip_protocol::market::receipt::{Expected, verify};
use aip_protocol::market::{Check, Value, document};
use aip_protocol::multikey::VerifyingKey;
use serde_json::value::RawValue;

use super::MARKET;
use crate::client::Client;
use crate::error::{Error, Result};
use crate::limits::RECEIPT_JSON_BYTES_MAX;
use crate::market::{Call, Invoked, ReceiptAnswer};
use crate::transport::Request;
use crate::wire::encoded;

const ASKING_KEY: &str = "asking for the key of a market";

impl Client {
    /// A receipt that the hub gave out, letter for letter.
    ///
    /// # Errors
    /// [`Error::Refused`] with `receipt_not_found`.
    pub async fn market_receipt(&self, nonce: &str) -> Result<Box<RawValue>> {
        let path = format!("{MARKET}/receipts/{}", encoded(nonce));
        let ask = || Request::get("asking for a receipt", path.as_str());
        let answer: ReceiptAnswer = self.call_patiently(ask).await?.json()?;
        Ok(answer.receipt)
    }

    /// Checks a receipt of this hub: its signature against the hub's key, never against the one that it names itself, and
    /// whether it is about what was called. Where the key cannot be had, it is not checked, which says nothing against it;
    /// the hub is asked again after a minute.
    ///
    /// # Errors
    /// [`Error::Invalid`] for what is no JSON, or too long.
    pub async fn check_receipt(&self, receipt: &[u8], expected: &Expected<'_>) -> Result<Check> {
        let receipt = read_receipt(receipt)?;
        let pinned = self.market_key().await;
        Ok(verify(&receipt, pinned.as_slice(), expected))
    }

    /// The same for what a call has brought; `None` where it brought no receipt.
    pub async fn check_invoked(&self, call: &Call, invoked: &Invoked) -> Result<Option<Check>> {
        let Some(receipt) = &invoked.receipt else {
            return Ok(None);
        };
        let expected = Expected {
            capability_id: Some(call.capability_id()),
            product_id: Some(call.product_id()),
            price_micros: Some(invoked.price_usd.micros()),
        };
        self.check_receipt(receipt.get().as_bytes(), &expected)
            .await
            .map(Some)
    }

    /// The key that the hub's market signs with, as its discovery document says, which is signed with it. Asked for once.
    async fn market_key(&self) -> Option<VerifyingKey> {
        let origin = Origin::of("local", self.hub_url()).ok()?;
        let keys = || self.0.market_keys.lock().unwrap_or_else(PoisonError::into_inner);
        let known = keys().look_up(&origin, self.now());
        match known {
            Lookup::Known(key) => return Some(key),
            Lookup::Missed => return None,
            Lookup::Unknown => {}
        }
        match self.ask_market_key().await {
            Ok(key) => {
                keys().found(origin, key.clone(), self.now());
                Some(key)
            }
            Err(error) => {
                tracing::warn!(error = error.sentence(), "receipts are not checked for a minute");
                keys().missed(origin, self.now());
                None
            }
        }
    }

    async fn ask_market_key(&self) -> Result<VerifyingKey> {
        let request = Request::get(ASKING_KEY, "/.well-known/ai-market.json");
        let answer = self.transport().call(request).await?;
        let found = Value::parse(&answer.body).map_err(|refusal| Error::answer(ASKING_KEY, refusal))?;
        let key = published_key(&found).map_err(|refusal| Error::answer(ASKING_KEY, refusal))?;
        let check = document::verify(&found, std::slice::from_ref(&key));
        match check.verdict.reason() {
            None => Ok(key),
            Some(reason) => Err(Error::answer(ASKING_KEY, reason)),
        }
    }
}

/// Reads a receipt as strictly as its signature needs.
fn read_receipt(bytes: &[u8]) -> Result<Value> {
    if bytes.len() > RECEIPT_JSON_BYTES_MAX {
        let detail = format!("a receipt has at most {RECEIPT_JSON_BYTES_MAX} bytes");
        return Err(Refusal::new(ErrorCode::BodyTooLarge, detail).into());
    }
    Ok(Value::parse(bytes)?)
}
