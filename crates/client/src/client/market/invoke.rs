//! Calling a capability: once, whatever the line does.

use aip_protocol::error::{ErrorCode, Refusal};
use reqwest::header::HeaderMap;

use super::MARKET;
use crate::client::Client;
use crate::error::{Error, Problem, Result};
use crate::market::{Call, Invoked, Purse};
use crate::transport::{Answer, Request};

const INVOKING: &str = "calling a capability";
const REPLAYED: &str = "idempotency-replayed";

impl Client {
    /// Calls a capability, paid from `purse`. Each call carries a key that makes it one: after a broken line, or where the
    /// hub is too busy, the same call goes out again within its time, and is carried out and paid once.
    ///
    /// # Errors
    /// [`Error::Refused`] with the market's code (`payment_required`, `price_limit_exceeded`, `provider_failed`, …):
    /// nothing was paid. [`Error::CallUnknown`] when the time was over before the hub said yes or no: the same call again
    /// under the key that it names tells which. [`Error::Invalid`] for a key of another form.
    pub async fn invoke(&self, call: &Call, purse: &Purse) -> Result<Invoked> {
        let key = match &call.idempotency_key {
            Some(key) => checked(key)?,
            None => self.entropy().message_id().hyphenated().to_string(),
        };
        let (body, path) = (call.body(), format!("{MARKET}/invoke"));
        let ends_at = self.now() + call.timeout;
        let (mut failures, mut may_have_arrived) = (0, false);
        loop {
            let mut request = Request::post(INVOKING, path.as_str(), body.clone())
                .header("Idempotency-Key", key.as_str())
                .timeout(call.timeout);
            for (name, value) in purse.headers() {
                request = request.header(name, value);
            }
            let error = match self.transport().call(request).await {
                Ok(answer) => return read(&answer, key),
                Err(error) => error,
            };
            let may_repeat = may_repeat(&error);
            may_have_arrived |= may_repeat && error.leaves_doubt();
            if !may_repeat {
                return Err(error);
            }
            failures += 1;
            if !self.pause(failures, &error, ends_at).await {
                return Err(if may_have_arrived {
                    Error::CallUnknown {
                        key,
                        last: Box::new(error),
                    }
                } else {
                    error
                });
            }
        }
    }
}

/// Printable, and of the length that hubs take.
pub(super) fn checked(key: &str) -> Result<String> {
    let is_key = (8..=128).contains(&key.len()) && key.bytes().all(|byte| (0x20..0x7f).contains(&byte));
    if is_key && key.trim() == key {
        return Ok(key.to_owned());
    }
    let detail = "an idempotency key is 8 to 128 printable ASCII characters";
    Err(Refusal::new(ErrorCode::ParameterInvalid, detail).into())
}

/// Whether the same call may be offered again. What the market has refused or carried out it answers in the same way again.
pub(super) fn may_repeat(error: &Error) -> bool {
    const CODES: [&str; 5] = [
        "idempotency_in_progress",
        "rate_limited",
        "busy",
        "unavailable",
        "internal",
    ];
    match error {
        Error::Unreachable { .. } => true,
        Error::Refused(problem) if problem.is_of_hub() => CODES.contains(&problem.code.as_str()),
        Error::Refused(problem) => is_of_a_proxy(problem),
        _ => false,
    }
}

fn is_of_a_proxy(problem: &Problem) -> bool {
    matches!(problem.status, 408 | 425 | 429 | 500..)
}

pub(super) fn read(answer: &Answer, key: String) -> Result<Invoked> {
    let mut invoked: Invoked = answer.json()?;
    invoked.is_replayed = is_replayed(&answer.headers);
    invoked.idempotency_key = key;
    Ok(invoked)
}

fn is_replayed(headers: &HeaderMap) -> bool {
    headers
        .get(REPLAYED)
        .is_some_and(|value| value.as_bytes().eq_ignore_ascii_case(b"true"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pitfall_37_only_what_leaves_a_call_open_is_said_again() {
        let refused = |status, code: &str| {
            Error::Refused(Box::new(Problem {
                status,
                ..Problem::new(code, "")
            }))
        };
        for (status, code) in [
            (409, "idempotency_in_progress"),
            (429, "rate_limited"),
            (503, "busy"),
            (503, "unavailable"),
            (502, "http_502"),
            (504, "http_504"),
        ] {
            assert!(may_repeat(&refused(status, code)), "{code}");
        }
        for (status, code) in [
            (402, "payment_required"),
            (409, "idempotency_conflict"),
            (429, "trial_quota_exhausted"),
            (502, "provider_failed"),
            (503, "crypto_disabled"),
            (404, "http_404"),
        ] {
            assert!(!may_repeat(&refused(status, code)), "{code}");
        }
    }

    #[test]
    fn a_key_is_printable() {
        assert!(checked("12345678").is_ok() && checked(&"x".repeat(128)).is_ok());
        for key in ["1234567", " 12345678", "1234567\n8", "12345678é"] {
            assert!(checked(key).is_err(), "{key:?}");
        }
        assert!(checked(&"x".repeat(129)).is_err());
    }
}
