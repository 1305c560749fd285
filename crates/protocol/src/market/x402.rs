//! x402, version 2, on the wire: what a call costs on a chain (`PAYMENT-REQUIRED`), what pays it (`PAYMENT-SIGNATURE`) and what
//! became of it (`PAYMENT-RESPONSE`), each the base64 of a JSON object.
//!
//! Of the schemes it knows `exact`, of the networks `eip155:*`, of the ways to sign EIP-3009: an order to pay exactly so much
//! that the payer's wallet signed ([`super::evm::transfer`]). Wallets that are contracts (EIP-1271) cannot sign it.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::evm::eip712::Domain;
use super::evm::{Address, Word};

mod payment;

pub use payment::{Fault, Payment};

/// The version that is spoken.
pub const VERSION: u64 = 2;
/// The header of a 402 that says what is to be paid.
pub const REQUIRED_HEADER: &str = "payment-required";
/// The header of a request that pays.
pub const SIGNATURE_HEADER: &str = "payment-signature";
/// The header of an answer that says what became of the payment.
pub const RESPONSE_HEADER: &str = "payment-response";

const SCHEME: &str = "exact";
const NETWORKS: &str = "eip155:";
/// How the token is paid; there are others, which are not spoken here.
const METHOD: &str = "eip3009";

/// The chain of a network's name, such as 8453 of `eip155:8453`.
pub fn chain_id(network: &str) -> Option<u64> {
    let digits = network.strip_prefix(NETWORKS)?;
    let id: u64 = digits.parse().ok()?;
    (id > 0 && id.to_string() == digits).then_some(id)
}

/// The name of a chain.
pub fn network(chain_id: u64) -> String {
    format!("{NETWORKS}{chain_id}")
}

/// What has to be paid, to whom and where: one way of `accepts`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Requirements {
    /// The chain.
    pub chain_id: u64,
    /// How much, in the token's smallest units.
    pub amount: u128,
    /// The token.
    pub asset: Address,
    /// What the token calls itself, as its signatures say (EIP-712).
    pub asset_name: String,
    /// Its version there.
    pub asset_version: String,
    /// Who is paid.
    pub pay_to: Address,
    /// How long the payment has to be good for, in seconds.
    pub timeout_secs: u64,
}

impl Requirements {
    /// The network's name.
    pub fn network(&self) -> String {
        network(self.chain_id)
    }

    /// What payments of the token are signed for.
    pub fn token(&self) -> Domain {
        Domain {
            name: self.asset_name.clone(),
            version: self.asset_version.clone(),
            chain_id: self.chain_id,
            contract: self.asset,
        }
    }

    /// The JSON object.
    pub fn to_json(&self) -> Value {
        json!({
            "scheme": SCHEME,
            "network": self.network(),
            "amount": self.amount.to_string(),
            "asset": self.asset.to_string(),
            "payTo": self.pay_to.to_string(),
            "maxTimeoutSeconds": self.timeout_secs,
            "extra": { "name": self.asset_name, "version": self.asset_version, "assetTransferMethod": METHOD },
        })
    }

    /// Reads the JSON object.
    ///
    /// # Errors
    /// It is of another scheme or network, or not in its form.
    pub fn from_json(json: &Value) -> Result<Self, Fault> {
        let text = |json: &Value, name: &str| json.get(name).and_then(Value::as_str).map(str::to_owned);
        let form = || Fault::Requirements;
        if text(json, "scheme").as_deref() != Some(SCHEME) {
            return Err(Fault::Scheme);
        }
        let network = text(json, "network").ok_or(Fault::Network)?;
        let extra = json.get("extra").ok_or_else(form)?;
        let address = |name| {
            text(json, name)
                .and_then(|text| Address::parse(&text).ok())
                .ok_or_else(form)
        };
        let amount = text(json, "amount").and_then(|text| Word::parse(&text).ok()?.to_u128());
        Ok(Self {
            chain_id: chain_id(&network).ok_or(Fault::Network)?,
            amount: amount.ok_or_else(form)?,
            asset: address("asset")?,
            asset_name: text(extra, "name").ok_or_else(form)?,
            asset_version: text(extra, "version").ok_or_else(form)?,
            pay_to: address("payTo")?,
            timeout_secs: json
                .get("maxTimeoutSeconds")
                .and_then(Value::as_u64)
                .ok_or_else(form)?,
        })
    }
}

/// What is bought.
#[derive(Debug, Clone, Copy)]
pub struct Resource<'a> {
    /// Where it is asked for.
    pub url: &'a str,
    /// What it is.
    pub description: &'a str,
}

/// The object `PaymentRequired`; `error` says why it is asked.
pub fn payment_required(error: &str, resource: &Resource<'_>, accepts: &[Requirements]) -> Value {
    json!({
        "x402Version": VERSION,
        "error": error,
        "resource": { "url": resource.url, "description": resource.description, "mimeType": "application/json" },
        "accepts": accepts.iter().map(Requirements::to_json).collect::<Vec<_>>(),
    })
}

/// The object `SettlementResponse` of a payment that was made.
pub fn settled(requirements: &Requirements, payer: Address, transaction: &str) -> Value {
    json!({
        "success": true,
        "transaction": transaction,
        "network": requirements.network(),
        "payer": payer.to_string(),
    })
}

/// The object `SettlementResponse` of a payment that was not made.
pub fn not_settled(requirements: &Requirements, payer: Address, reason: &str) -> Value {
    json!({
        "success": false,
        "errorReason": reason,
        "transaction": "",
        "network": requirements.network(),
        "payer": payer.to_string(),
    })
}

/// How an object is written into a header.
pub fn to_header(object: &Value) -> String {
    STANDARD.encode(object.to_string())
}

#[cfg(test)]
mod tests;
