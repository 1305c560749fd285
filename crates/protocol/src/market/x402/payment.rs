//! What a buyer shows: an order to pay, signed by its wallet.

use base64::Engine as _;
use base64::alphabet;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use serde_json::Value;

use super::{Requirements, VERSION};
use crate::limits::X402_HEADER_CHARS_MAX;
use crate::market::evm::transfer::Transfer;
use crate::market::evm::{Address, EvmSignature, Word};

const LENIENT: GeneralPurposeConfig =
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent);
const EITHER: [GeneralPurpose; 2] = [
    GeneralPurpose::new(&alphabet::STANDARD, LENIENT),
    GeneralPurpose::new(&alphabet::URL_SAFE, LENIENT),
];

/// Why a payment is none, in the words of x402 §9.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{}", self.as_str())]
pub enum Fault {
    /// Another version of the protocol.
    Version,
    /// Another scheme.
    Scheme,
    /// Another network.
    Network,
    /// It is not in its form.
    Payload,
    /// What it accepts is not what is asked: another price, token or recipient.
    Requirements,
    /// It pays another amount.
    Value,
    /// It pays somebody else.
    Recipient,
    /// It is not good yet.
    ValidAfter,
    /// It is over, or will be before the work is done.
    ValidBefore,
    /// Its payer did not sign it, or not for this token.
    Signature,
    /// The payer has less.
    Funds,
    /// Its nonce was used, or the chain refuses it.
    State,
}

impl Fault {
    /// As on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Version => "invalid_x402_version",
            Self::Scheme => "unsupported_scheme",
            Self::Network => "invalid_network",
            Self::Payload => "invalid_payload",
            Self::Requirements => "invalid_payment_requirements",
            Self::Value => "invalid_exact_evm_payload_authorization_value",
            Self::Recipient => "invalid_exact_evm_payload_recipient_mismatch",
            Self::ValidAfter => "invalid_exact_evm_payload_authorization_valid_after",
            Self::ValidBefore => "invalid_exact_evm_payload_authorization_valid_before",
            Self::Signature => "invalid_exact_evm_payload_signature",
            Self::Funds => "insufficient_funds",
            Self::State => "invalid_transaction_state",
        }
    }
}

/// A payment as it is shown. Read, and no more: [`Self::check`] says whether it is one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Payment {
    /// The order.
    pub transfer: Transfer,
    /// Its signature.
    pub signature: EvmSignature,
    /// The way of `accepts` that it is for, as it says.
    pub accepted: Requirements,
    /// All of it, as a facilitator is told it.
    pub json: Value,
}

impl Payment {
    /// Reads the header `PAYMENT-SIGNATURE`: base64 in either alphabet, padded or not.
    ///
    /// # Errors
    /// It is not in its form, or of another version, scheme or network.
    pub fn from_header(header: &str) -> Result<Self, Fault> {
        if header.len() > X402_HEADER_CHARS_MAX {
            return Err(Fault::Payload);
        }
        let bytes = EITHER.iter().find_map(|alphabet| alphabet.decode(header).ok());
        let json = bytes.and_then(|bytes| serde_json::from_slice(&bytes).ok());
        Self::from_json(json.ok_or(Fault::Payload)?)
    }

    /// Reads the object.
    ///
    /// # Errors
    /// As [`Self::from_header`].
    pub fn from_json(json: Value) -> Result<Self, Fault> {
        if json.get("x402Version").and_then(Value::as_u64) != Some(VERSION) {
            return Err(Fault::Version);
        }
        let accepted = Requirements::from_json(json.get("accepted").ok_or(Fault::Payload)?)?;
        let payload = json.get("payload").ok_or(Fault::Payload)?;
        let text = |object: &Value, name: &str| object.get(name).and_then(Value::as_str).map(str::to_owned);
        let signature = text(payload, "signature").ok_or(Fault::Payload)?;
        let signature = EvmSignature::parse(&signature).map_err(|_refusal| Fault::Signature)?;
        let order = payload.get("authorization").ok_or(Fault::Payload)?;
        let member = |name| text(order, name).ok_or(Fault::Payload);
        let address = |name| Address::parse(&member(name)?).map_err(|_refusal| Fault::Payload);
        let number = |name| Word::parse(&member(name)?).map_err(|_refusal| Fault::Payload);
        let transfer = Transfer {
            from: address("from")?,
            to: address("to")?,
            value: number("value")?,
            valid_after: number("validAfter")?,
            valid_before: number("validBefore")?,
            nonce: number("nonce")?,
        };
        Ok(Self {
            transfer,
            signature,
            accepted,
            json,
        })
    }

    /// Whether it is signed by who it says pays, for the token that it says it is for.
    ///
    /// # Errors
    /// [`Fault::Signature`].
    pub fn check_signature(&self) -> Result<(), Fault> {
        if self.transfer.is_signed(&self.accepted.token(), &self.signature) {
            Ok(())
        } else {
            Err(Fault::Signature)
        }
    }

    /// Whether it pays exactly what is asked, from this second until `needed_until` at least.
    ///
    /// # Errors
    /// What of it does not.
    pub fn check(&self, asked: &Requirements, now_secs: u64, needed_until: u64) -> Result<(), Fault> {
        let Transfer {
            to,
            value,
            valid_after,
            valid_before,
            ..
        } = self.transfer;
        let accepted = Requirements {
            timeout_secs: asked.timeout_secs,
            ..self.accepted.clone()
        };
        if accepted.chain_id != asked.chain_id {
            return Err(Fault::Network);
        }
        if accepted != *asked {
            return Err(Fault::Requirements);
        }
        if to != asked.pay_to {
            return Err(Fault::Recipient);
        }
        if value != Word::from(asked.amount) {
            return Err(Fault::Value);
        }
        if valid_after >= Word::from(now_secs) {
            return Err(Fault::ValidAfter);
        }
        if valid_before <= Word::from(needed_until.max(now_secs)) {
            return Err(Fault::ValidBefore);
        }
        self.check_signature()
    }
}
