//! A payment on a chain (x402) that a wallet signed elsewhere: this client has no wallet.

use std::fmt;

use aip_protocol::error::{ErrorCode, Refusal};
use aip_protocol::market::x402::Payment;

use crate::error::Result;

/// What the header `PAYMENT-SIGNATURE` holds: an order to pay one provider an amount. Whoever has it can have it carried out, so
/// that it is not printed.
#[derive(Clone, PartialEq, Eq)]
pub struct SignedPayment(String);

impl SignedPayment {
    /// The base64 of a payment of x402, version 2, as a wallet makes it from the `accepts` of a 402.
    ///
    /// # Errors
    /// [`crate::Error::Invalid`] for what is none, or is not signed by who it says pays.
    pub fn new(header: &str) -> Result<Self> {
        let header = header.trim();
        let payment = Payment::from_header(header);
        let signed = payment.and_then(|payment| payment.check_signature());
        signed.map_err(|fault| {
            let detail = format!("this is no payment of x402, version 2: {fault}");
            Refusal::new(ErrorCode::ParameterInvalid, detail)
        })?;
        Ok(Self(header.to_owned()))
    }

    /// As the header has it.
    pub(crate) fn header(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for SignedPayment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SignedPayment(…)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_no_wallet_signed_is_told_before_it_is_sent() {
        for text in ["", "0xdeadbeef", "bnVsbA==", "eyJ4NDAyVmVyc2lvbiI6MX0="] {
            assert!(SignedPayment::new(text).is_err(), "{text}");
        }
    }
}
