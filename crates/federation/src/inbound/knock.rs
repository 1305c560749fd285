//! At the door: what is checked of a request before its body is read and before its signature costs anything.

use std::net::IpAddr;

use aip_protocol::error::{ErrorCode, Refusal};
use aip_protocol::http_signature::{SignedRequest, Target};
use aip_protocol::limits::BATCH_BYTES_MAX;
use aip_protocol::name::Domain;
use aip_protocol::time::Timestamp;

use super::Inbound;
use super::counters::Call;
use crate::budgets::Place;
use crate::limits::{NONCE_BYTES_MAX, SIGNATURE_INPUT_BYTES_MAX};

/// A request of a peer, without its body.
#[derive(Debug, Clone)]
pub struct Incoming {
    /// What is asked of whom. `authority` is that of this hub's own discovery document, not what `Host` says.
    pub target: Target,
    /// The header fields, names in lower case.
    pub fields: Vec<(String, String)>,
    /// Where it comes from; `None` where that cannot be told from others.
    pub address: Option<IpAddr>,
}

impl Incoming {
    pub(super) fn fields(&self) -> Vec<(&str, &str)> {
        let fields = self.fields.iter();
        fields
            .map(|(name, value)| (name.as_str(), value.as_str()))
            .collect()
    }
}

/// A request that may go on: its fields have the right form and nobody's budget is used up. It holds a place among all
/// requests of peers until it is dropped.
#[derive(Debug)]
pub struct Ticket {
    pub(super) incoming: Incoming,
    pub(super) signed: SignedRequest,
    pub(super) domain: Domain,
    pub(super) call: Call,
    pub(super) place: Place,
}

impl Ticket {
    /// The domain that the request says that it is from. Nothing of that is verified.
    pub fn claimed(&self) -> &Domain {
        &self.domain
    }

    pub(crate) fn target(&self) -> &Target {
        &self.incoming.target
    }
}

impl Inbound {
    /// Lets a request in before its body is read; `body_bytes` is its `Content-Length`, where there is one.
    ///
    /// Costs no look-up, no signature and no store.
    ///
    /// # Errors
    ///
    /// `body_too_large`, `request_signature_invalid`, `rate_limited` and `unavailable`, both with the time to wait.
    pub fn knock(&self, call: Call, incoming: Incoming, body_bytes: Option<u64>) -> Result<Ticket, Refusal> {
        let ticket = check_size(body_bytes).and_then(|()| self.admit(call, incoming));
        // Who is let in is counted when it is answered.
        match ticket {
            Ok(ticket) => Ok(ticket),
            refused => self.counters.call(call, refused),
        }
    }

    fn admit(&self, call: Call, incoming: Incoming) -> Result<Ticket, Refusal> {
        let now = self.seams.clock.now();
        let (signed, domain) = read(&incoming, call.has_body(), now)
            .map_err(|refusal| self.gate.unreadable(incoming.address, refusal, now))?;
        let place = self.gate.arrive(&domain, incoming.address, now)?;
        Ok(Ticket {
            incoming,
            signed,
            domain,
            call,
            place,
        })
    }
}

pub(super) fn check_size(body_bytes: Option<u64>) -> Result<(), Refusal> {
    let bytes_max = u64::try_from(BATCH_BYTES_MAX).unwrap_or(u64::MAX);
    if body_bytes.unwrap_or(0) <= bytes_max {
        return Ok(());
    }
    let detail = format!("A push is at most {bytes_max} bytes.");
    Err(Refusal::new(ErrorCode::BodyTooLarge, detail).with("limit_bytes", bytes_max))
}

/// The signature fields, as far as they can be judged without a key, and the domain that they name.
fn read(incoming: &Incoming, has_body: bool, now: Timestamp) -> Result<(SignedRequest, Domain), Refusal> {
    let fields = incoming.fields();
    let is_long =
        |(name, value): &(&str, &str)| *name == "signature-input" && value.len() > SIGNATURE_INPUT_BYTES_MAX;
    if fields.iter().any(is_long) {
        return Err(invalid("Signature-Input is too long"));
    }
    let signed = SignedRequest::parse(&fields, has_body, now)?;
    if signed.nonce.len() > NONCE_BYTES_MAX {
        return Err(invalid("the nonce is too long"));
    }
    let claimed = signed.claimed_domain();
    let domain = Domain::parse(claimed).ok();
    let domain = domain.filter(|domain| domain.as_str() == claimed);
    let domain = domain.ok_or_else(|| invalid("keyid is a domain, '#' and a Multikey"))?;
    Ok((signed, domain))
}

pub(super) fn invalid(detail: &'static str) -> Refusal {
    Refusal::new(ErrorCode::RequestSignatureInvalid, detail)
}
