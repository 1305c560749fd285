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
use crate::transport::{Request, Transport};
use crate::wire::encoded;

const ASKING_KEY: &str = "asking for the key of a market";
const DISCOVERY: &str = "/.well-known/ai-market.json";

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
        self.check_receipt_of("local", receipt, expected).await
    }

    /// The same of another hub, as search results name it (`source_hub`), whose key that hub itself tells: a receipt is signed
    /// by the hub that did the work, whichever was asked.
    ///
    /// # Errors
    /// [`Error::Invalid`] for what is no JSON, or too long, and for a hub that is no URL.
    pub async fn check_receipt_of(
        &self,
        source_hub: &str,
        receipt: &[u8],
        expected: &Expected<'_>,
    ) -> Result<Check> {
        let origin = Origin::of(source_hub, self.hub_url())?;
        let receipt = read_receipt(receipt)?;
        let pinned = self.market_key(origin).await;
        Ok(verify(&receipt, pinned.as_slice(), expected))
    }

    /// The same for what a call has brought: that of the hub that did the work, which is the one that the call named. `None`
    /// where it brought no receipt.
    pub async fn check_invoked(&self, call: &Call, invoked: &Invoked) -> Result<Option<Check>> {
        let Some(receipt) = &invoked.receipt else {
            return Ok(None);
        };
        let source_hub = call.source_hub.as_deref().unwrap_or("local");
        // Where the hub that was asked sells what another one does, the two agree among themselves what the other takes.
        let is_paid_there = call.source_hub.is_none() || invoked.route_mode.as_deref() == Some("broker");
        let expected = Expected {
            capability_id: Some(call.capability_id()),
            product_id: Some(call.product_id()),
            price_micros: is_paid_there.then(|| invoked.price_usd.micros()),
        };
        self.check_receipt_of(source_hub, receipt.get().as_bytes(), &expected)
            .await
            .map(Some)
    }

    /// The same for the receipt of the hub that was asked, where another one did the work. `None` where it gave none.
    pub async fn check_hub_receipt(&self, call: &Call, invoked: &Invoked) -> Result<Option<Check>> {
        let Some(receipt) = &invoked.hub_receipt else {
            return Ok(None);
        };
        let expected = Expected {
            capability_id: Some(call.capability_id()),
            product_id: Some(call.product_id()),
            price_micros: Some(invoked.charged_usd.unwrap_or(invoked.price_usd).micros()),
        };
        self.check_receipt(receipt.get().as_bytes(), &expected)
            .await
            .map(Some)
    }

    /// The key that a hub's market signs with, as its discovery document says. Asked for once.
    async fn market_key(&self, origin: Origin) -> Option<VerifyingKey> {
        let keys = || self.0.market_keys.lock().unwrap_or_else(PoisonError::into_inner);
        let known = keys().look_up(&origin, self.now());
        match known {
            Lookup::Known(key) => return Some(key),
            Lookup::Missed => return None,
            Lookup::Unknown => {}
        }
        match self.ask_market_key(&origin).await {
            Ok(key) => {
                keys().found(origin, key.clone(), self.now());
                Some(key)
            }
            Err(error) => {
                tracing::warn!(%origin, error = error.sentence(), "receipts are not checked for a minute");
                keys().missed(origin, self.now());
                None
            }
        }
    }

    async fn ask_market_key(&self, origin: &Origin) -> Result<VerifyingKey> {
        let is_here = Origin::of("local", self.hub_url()).is_ok_and(|here| here == *origin);
        if is_here {
            return published(self.transport(), true).await;
        }
        let mut last = None;
        for url in origin.discovery_urls() {
            let base = url.strip_suffix(DISCOVERY).unwrap_or(&url);
            let hub = Transport::new(base, self.0.allow_http)?;
            match published(&hub, false).await {
                Ok(key) => return Ok(key),
                Err(error) => last = Some(error),
            }
        }
        Err(last.unwrap_or_else(|| Error::answer(ASKING_KEY, "it has no address")))
    }
}

/// The key that a hub publishes. A document that is signed is so with that key; that of a bare provider may not be, and then it
/// is TLS that says whose it is.
async fn published(hub: &Transport, must_be_signed: bool) -> Result<VerifyingKey> {
    let answer = hub.call(Request::get(ASKING_KEY, DISCOVERY)).await?;
    let found = Value::parse(&answer.body).map_err(|refusal| Error::answer(ASKING_KEY, refusal))?;
    let key = published_key(&found).map_err(|refusal| Error::answer(ASKING_KEY, refusal))?;
    if !must_be_signed && found.get("signature").is_none() {
        return Ok(key);
    }
    let check = document::verify(&found, std::slice::from_ref(&key));
    match check.verdict.reason() {
        None => Ok(key),
        Some(reason) => Err(Error::answer(ASKING_KEY, reason)),
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
