//! The order to pay that AIMarket's escrow takes (`AIMarketEscrow`, `DebitAuthorization`): up to a total, from a channel on a
//! chain, to a hub.

use serde_json::{Map, Value};

use super::address::Address;
use super::eip712::{Domain, hash_struct};
use super::key::EvmSignature;
use super::malformed;
use super::word::Word;
use crate::error::Refusal;

const TYPE: &str = "DebitAuthorization(bytes32 channelId,address hub,address token,uint256 amount,bytes32 receiptId,\
                    uint256 nonce,uint256 deadline)";

/// What the depositor of a channel lets a hub take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DebitAuthorization {
    /// The channel on the chain.
    pub channel_id: Word,
    /// The hub's address there.
    pub hub: Address,
    /// The token.
    pub token: Address,
    /// How much, in the token's smallest units: all that was served at this nonce, not only the last call.
    pub amount: Word,
    /// Chosen by the buyer; good once on the chain.
    pub receipt_id: Word,
    /// How often the channel was debited before.
    pub nonce: Word,
    /// Until this second since 1970.
    pub deadline: Word,
}

impl DebitAuthorization {
    /// The domain of an escrow.
    pub fn domain(chain_id: u64, escrow: Address) -> Domain {
        Domain {
            name: "AIMarketEscrow".to_owned(),
            version: "1".to_owned(),
            chain_id,
            contract: escrow,
        }
    }

    /// Reads a `payment_authorization`: the seven members in either spelling (`channelId`, `channel_id`), and `signature` (or
    /// `sig`).
    ///
    /// # Errors
    /// `member_invalid`, `signature_invalid`: one is absent, there in both spellings, or not in its form.
    pub fn read(object: &Map<String, Value>) -> Result<(Self, EvmSignature), Refusal> {
        let number = |names| Word::parse(&digits(object, names)?);
        let hash = |names| Word::parse_hash(&digits(object, names)?);
        let address = |names| Address::parse(&digits(object, names)?);
        let authorization = Self {
            channel_id: hash(["channelId", "channel_id"])?,
            hub: address(["hub", "hub"])?,
            token: address(["token", "token"])?,
            amount: number(["amount", "amount"])?,
            receipt_id: hash(["receiptId", "receipt_id"])?,
            nonce: number(["nonce", "nonce"])?,
            deadline: number(["deadline", "deadline"])?,
        };
        let signature = EvmSignature::parse(&digits(object, ["signature", "sig"])?)?;
        Ok((authorization, signature))
    }

    /// What is signed.
    pub fn digest(&self, escrow: &Domain) -> [u8; 32] {
        escrow.digest(&hash_struct(
            TYPE,
            &[
                self.channel_id,
                self.hub.word(),
                self.token.word(),
                self.amount,
                self.receipt_id,
                self.nonce,
                self.deadline,
            ],
        ))
    }
}

/// A member under one of two names: text, or a whole number.
fn digits(object: &Map<String, Value>, [one, other]: [&'static str; 2]) -> Result<String, Refusal> {
    let refusal = || {
        malformed(
            "`payment_authorization` has channelId, hub, token, amount, receiptId, nonce, deadline and signature, each once.",
        )
    };
    let member = match (object.get(one), object.get(other)) {
        (Some(value), _) if one == other => value,
        (Some(value), None) | (None, Some(value)) => value,
        _ => return Err(refusal()),
    };
    match member {
        Value::String(text) => Ok(text.clone()),
        Value::Number(number) => number
            .as_u64()
            .map(|number| number.to_string())
            .ok_or_else(refusal),
        _ => Err(refusal()),
    }
}
