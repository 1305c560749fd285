//! Refusals: what the hub says no to, with a code for machines and a sentence for people (§7).

use std::borrow::Cow;
use std::fmt;

use serde_json::Value;

mod code;

pub use code::{ErrorCode, UnknownCode};

/// A considered "no": a stable code, a sentence that says what to do, and members of the case.
///
/// A refusal is a value. What broke on our side (a disk, a peer) is an error of the room it
/// happened in, and becomes a refusal with a 5xx code only at the edge.
#[derive(Debug, Clone, PartialEq)]
pub struct Refusal {
    /// The stable code.
    pub code: ErrorCode,
    /// One sentence for the caller. Never holds a secret, a body or a key of someone else.
    pub detail: Cow<'static, str>,
    /// Further members of the problem document, such as `limit` or `head`.
    pub members: Vec<(&'static str, Value)>,
    /// When it makes sense to come back, in seconds.
    pub retry_after_secs: Option<u64>,
}

impl Refusal {
    /// A refusal without further members.
    pub fn new(code: ErrorCode, detail: impl Into<Cow<'static, str>>) -> Self {
        Self {
            code,
            detail: detail.into(),
            members: Vec::new(),
            retry_after_secs: None,
        }
    }

    /// Adds a member of the case.
    #[must_use]
    pub fn with(mut self, name: &'static str, value: impl Into<Value>) -> Self {
        self.members.push((name, value.into()));
        self
    }

    /// Says when to come back.
    #[must_use]
    pub fn retry_after(mut self, secs: u64) -> Self {
        self.retry_after_secs = Some(secs);
        self
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.code, self.detail)
    }
}

impl std::error::Error for Refusal {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn carries_code_sentence_and_members() {
        let refusal = Refusal::new(ErrorCode::RateLimited, "slow down")
            .with("limit", 20)
            .retry_after(3);
        assert_eq!(refusal.to_string(), "rate_limited: slow down");
        assert_eq!(refusal.members, [("limit", Value::from(20))]);
        assert_eq!(refusal.retry_after_secs, Some(3));
        assert_eq!(refusal.code.status(), 429);
    }
}
