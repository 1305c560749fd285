//! A chain of its own, in memory: everybody has some test dollars, and payments move them. It checks what a real facilitator
//! checks, signatures and all, and is worth nothing: for development and tests only. It forgets everything when it ends.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use aip_protocol::clock::Clock;
use aip_protocol::market::evm::{Address, Word, keccak256};
use aip_protocol::market::x402::{Fault, Payment, Requirements};
use async_trait::async_trait;

use super::{Facilitator, FacilitatorError, Settled, Verified};
use crate::limits::{LOCAL_NONCES_MAX, LOCAL_WALLETS_MAX};

/// The chain that test networks of developers have (EIP-155 31337).
pub const CHAIN_ID: u64 = 31_337;

/// Makes payments in memory. Cheap to clone; clones share their wallets.
#[derive(Clone)]
pub struct LocalFacilitator {
    chain_id: u64,
    /// What everybody has to begin with, in the token's smallest units.
    grant: u128,
    clock: Arc<dyn Clock>,
    ledger: Arc<Mutex<Ledger>>,
}

#[derive(Debug, Default)]
struct Ledger {
    /// What wallets have that paid or were paid, of which token.
    balances: HashMap<(Address, Address), u128>,
    /// The transactions in which the nonces of payers were used, with a digest of what was paid.
    used: HashMap<(Address, Word), [u8; 32]>,
}

impl LocalFacilitator {
    /// A chain with this id, on which everybody has so much.
    pub fn new(chain_id: u64, grant: u128, clock: Arc<dyn Clock>) -> Self {
        Self {
            chain_id,
            grant,
            clock,
            ledger: Arc::default(),
        }
    }

    /// What a wallet has of a token.
    pub fn balance(&self, asset: Address, wallet: Address) -> u128 {
        let ledger = self.ledger.lock().unwrap_or_else(PoisonError::into_inner);
        ledger
            .balances
            .get(&(asset, wallet))
            .copied()
            .unwrap_or(self.grant)
    }

    fn now_secs(&self) -> u64 {
        u64::try_from(self.clock.now().unix_millis() / 1_000).unwrap_or(0)
    }

    /// Whether the payment is one, with which nonce and digest.
    fn look_at(&self, payment: &Payment, asked: &Requirements) -> Result<[u8; 32], Fault> {
        if asked.chain_id != self.chain_id {
            return Err(Fault::Network);
        }
        let now = self.now_secs();
        payment.check(asked, now, now)?;
        Ok(payment.transfer.digest(&asked.token()))
    }
}

impl Ledger {
    /// Whether the payer has enough, and this nonce not used: what it has and what the recipient has.
    fn funds(&self, payment: &Payment, asked: &Requirements, grant: u128) -> Result<(u128, u128), Fault> {
        let of = |wallet| {
            self.balances
                .get(&(asked.asset, wallet))
                .copied()
                .unwrap_or(grant)
        };
        let (payer, nonce) = (payment.transfer.from, payment.transfer.nonce);
        if self.used.contains_key(&(payer, nonce)) {
            return Err(Fault::State);
        }
        let is_full = self.used.len() >= LOCAL_NONCES_MAX || self.balances.len() + 2 > LOCAL_WALLETS_MAX;
        match of(payer).checked_sub(asked.amount) {
            Some(rest) if !is_full => Ok((rest, of(asked.pay_to))),
            _ => Err(Fault::Funds),
        }
    }
}

#[async_trait]
impl Facilitator for LocalFacilitator {
    async fn verify(&self, payment: &Payment, asked: &Requirements) -> Result<Verified, FacilitatorError> {
        let looked = self.look_at(payment, asked).and_then(|_digest| {
            let ledger = self.ledger.lock().unwrap_or_else(PoisonError::into_inner);
            ledger.funds(payment, asked, self.grant)
        });
        Ok(match looked {
            Ok(_funds) => Verified::Valid,
            Err(fault) => Verified::Invalid(fault.as_str().to_owned()),
        })
    }

    async fn settle(&self, payment: &Payment, asked: &Requirements) -> Result<Settled, FacilitatorError> {
        let refused = |fault: Fault| Ok(Settled::Refused(fault.as_str().to_owned()));
        let payer = payment.transfer.from;
        let place = (payer, payment.transfer.nonce);
        let mut ledger = self.ledger.lock().unwrap_or_else(PoisonError::into_inner);
        // Told again: the same transaction, also when the payment's time is over by now.
        let digest = payment.transfer.digest(&asked.token());
        match ledger.used.get(&place) {
            Some(used) if *used == digest && payment.check_signature().is_ok() => {
                return Ok(Settled::Done(transaction(digest)));
            }
            Some(_) => return Ok(Settled::Unclear(Fault::State.as_str().to_owned())),
            None => {}
        }
        if let Err(fault) = self.look_at(payment, asked) {
            return refused(fault);
        }
        match ledger.funds(payment, asked, self.grant) {
            Err(fault) => refused(fault),
            Ok((rest, before)) => {
                if payer != asked.pay_to {
                    ledger.balances.insert((asked.asset, payer), rest);
                    let after = before.saturating_add(asked.amount);
                    ledger.balances.insert((asked.asset, asked.pay_to), after);
                }
                ledger.used.insert(place, digest);
                Ok(Settled::Done(transaction(digest)))
            }
        }
    }

    async fn supports(&self, network: &str) -> Result<bool, FacilitatorError> {
        Ok(network == format!("eip155:{}", self.chain_id))
    }
}

impl fmt::Debug for LocalFacilitator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LocalFacilitator")
            .field("chain_id", &self.chain_id)
            .finish_non_exhaustive()
    }
}

/// What it is called on this chain.
fn transaction(digest: [u8; 32]) -> String {
    Word::from_bytes(keccak256(&digest)).to_string()
}

#[cfg(test)]
mod tests;
