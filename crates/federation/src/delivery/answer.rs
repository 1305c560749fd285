//! What a peer's answer to a push means.
//!
//! Only a 200 with readable results settles anything, and a refusal that names its code. Whatever else comes (a page of a
//! proxy, a redirect, a 404 of somebody who is no hub) is a failure of the moment: the batch goes out again.

use std::collections::HashMap;
use std::time::Duration;

use aip_protocol::error::ErrorCode;
use aip_protocol::time::Timestamp;
use serde::Deserialize;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc2822;

use crate::egress::{EgressError, Response};
use crate::limits::{BACKOFF_MAX, PEER_CODE_BYTES_MAX};

/// The code of a failure that brought none of its own.
pub(super) const PEER_FAILED: &str = ErrorCode::PeerFailed.as_str();

/// What became of a push.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Judgement {
    /// It was taken in; what became of each item, by its number.
    Results(HashMap<u64, ItemResult>),
    /// The peer cannot read it, or finds it too large: 400 or 413. With the code, if it was the peer itself that said so.
    Unfit {
        /// The code, from a problem document.
        code: Option<String>,
        /// For people.
        detail: String,
    },
    /// It did not get through.
    Failed(Failure),
}

/// What became of one item.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ItemResult {
    /// The peer has it.
    Delivered,
    /// Refused for good, with this code.
    Refused(String),
    /// The peer wants it again.
    Retry {
        /// Why.
        code: Option<ErrorCode>,
        /// When, if it says.
        after: Option<Duration>,
    },
}

/// A push that did not get through.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Failure {
    pub(super) kind: FailureKind,
    /// The code that senders see if this was the last attempt.
    pub(super) code: String,
    /// For people.
    pub(super) detail: String,
    /// When the peer wants to be asked again.
    pub(super) retry_after: Option<Duration>,
}

/// What kind of failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FailureKind {
    /// The peer is away or unwell.
    Away,
    /// No answer in time: perhaps there was too much in the batch.
    Slow,
    /// The peer is well and wants less.
    Busy,
    /// The peer does not take our signature: perhaps it has moved.
    Unauthentic,
    /// The peer, or our operator, wants none of this.
    Policy,
    /// Something of ours failed; says nothing about the peer.
    Own,
}

impl Failure {
    pub(super) fn new(kind: FailureKind, code: impl Into<String>, detail: impl Into<String>) -> Self {
        Self {
            kind,
            code: code.into(),
            detail: detail.into(),
            retry_after: None,
        }
    }

    /// Something of ours failed.
    pub(super) fn own(detail: impl Into<String>) -> Self {
        Self::new(FailureKind::Own, ErrorCode::Unavailable.as_str(), detail)
    }
}

/// Reads an answer.
pub(super) fn judge(answer: Result<Response, EgressError>, now: Timestamp) -> Judgement {
    let response = match answer {
        Ok(response) => response,
        Err(error) => return Judgement::Failed(no_answer(&error)),
    };
    match response.status {
        200 => results(&response).map_or_else(
            || {
                Judgement::Failed(Failure::new(
                    FailureKind::Away,
                    PEER_FAILED,
                    "the answer cannot be read",
                ))
            },
            Judgement::Results,
        ),
        400 | 413 => match code(&response) {
            // Somebody on the way changed the body: the peer would take it otherwise.
            Some(code) if code == ErrorCode::DigestMismatch.as_str() => {
                Judgement::Failed(failed(&response, now))
            }
            None if response.status == 400 => Judgement::Failed(failed(&response, now)),
            code => Judgement::Unfit {
                code,
                detail: status_text(&response),
            },
        },
        _ => Judgement::Failed(failed(&response, now)),
    }
}

fn no_answer(error: &EgressError) -> Failure {
    let kind = match error {
        EgressError::TimedOut => FailureKind::Slow,
        EgressError::Setup(_) => FailureKind::Own,
        _ => FailureKind::Away,
    };
    Failure::new(kind, PEER_FAILED, error.kind())
}

fn failed(response: &Response, now: Timestamp) -> Failure {
    let kind = match response.status {
        401 => FailureKind::Unauthentic,
        403 => FailureKind::Policy,
        429 => FailureKind::Busy,
        _ => FailureKind::Away,
    };
    let code = code(response).unwrap_or_else(|| PEER_FAILED.to_owned());
    Failure {
        retry_after: retry_after(response, now),
        ..Failure::new(kind, code, status_text(response))
    }
}

fn status_text(response: &Response) -> String {
    format!("HTTP {}", response.status)
}

#[derive(Deserialize)]
struct Answer {
    results: Vec<Told>,
}

#[derive(Deserialize)]
struct Told {
    peer_seq: u64,
    status: String,
    #[serde(default)]
    code: Option<String>,
    #[serde(default)]
    retry_after_s: Option<u64>,
}

/// `acked_through` is not looked at: an item is settled by its own result.
fn results(response: &Response) -> Option<HashMap<u64, ItemResult>> {
    if !is_json(response) {
        return None;
    }
    let answer: Answer = serde_json::from_slice(&response.body).ok()?;
    Some(
        answer
            .results
            .into_iter()
            .map(|told| (told.peer_seq, item_result(told)))
            .collect(),
    )
}

fn item_result(told: Told) -> ItemResult {
    let code = told.code.filter(|code| is_code(code));
    match told.status.as_str() {
        "stored" | "duplicate" => ItemResult::Delivered,
        "refused" => ItemResult::Refused(code.unwrap_or_else(|| PEER_FAILED.to_owned())),
        _ => ItemResult::Retry {
            code: code.and_then(|code| code.parse().ok()),
            after: told.retry_after_s.map(Duration::from_secs).map(bounded),
        },
    }
}

/// The code of a problem document.
fn code(response: &Response) -> Option<String> {
    #[derive(Deserialize)]
    struct Problem {
        code: String,
    }
    let problem: Problem = serde_json::from_slice(&response.body)
        .ok()
        .filter(|_| is_json(response))?;
    Some(problem.code).filter(|code| is_code(code))
}

fn is_json(response: &Response) -> bool {
    let media_type = response.content_type.as_deref().unwrap_or_default();
    media_type == "application/json"
        || (media_type.starts_with("application/") && media_type.ends_with("+json"))
}

/// Whether a peer's text has the form of a code, so that it may be shown to people.
pub fn is_code(text: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
    !text.is_empty() && text.len() <= PEER_CODE_BYTES_MAX && text.bytes().all(is_plain)
}

/// `Retry-After` (RFC 9110 §10.2.3): seconds, or a date.
fn retry_after(response: &Response, now: Timestamp) -> Option<Duration> {
    let text = response.retry_after.as_deref()?.trim();
    if let Ok(secs) = text.parse::<u64>() {
        return Some(bounded(Duration::from_secs(secs)));
    }
    let date = OffsetDateTime::parse(text, &Rfc2822).ok()?;
    let date = Timestamp::from_unix_secs(date.unix_timestamp());
    let millis = u64::try_from(date.millis_since(now)).unwrap_or(0);
    Some(bounded(Duration::from_millis(millis)))
}

/// A peer does not decide that we stay away for days.
pub(super) fn bounded(pause: Duration) -> Duration {
    pause.min(BACKOFF_MAX)
}

#[cfg(test)]
mod tests;
