//! What can go wrong: one enum for the whole client, with the hub's refusal as a typed value.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use aip_protocol::error::{ErrorCode, Refusal};
use aip_protocol::name::Did;
use serde_json::{Map, Value};
use uuid::Uuid;

/// A result of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why a call failed. No variant holds a key, a token or the content of a message.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The hub understood and said no.
    #[error("refused by the hub: {0}")]
    Refused(Box<Problem>),
    /// The hub could not be reached, or the connection broke before the answer came.
    #[error("{doing}: {}", how_far(.source.as_ref()))]
    Unreachable {
        /// What was being done.
        doing: &'static str,
        /// The cause.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The hub answered something that is not AIP/1.
    #[error("{doing}: the answer is not that of an AIP/1 hub: {why}")]
    Answer {
        /// What was being done.
        doing: &'static str,
        /// What is wrong with the answer.
        why: String,
    },
    /// The window of the message closed before the hub said yes or no: it may have been stored.
    #[error("message {id}: no answer within the time, it may have arrived; ask for its status")]
    OutcomeUnknown {
        /// The message.
        id: Uuid,
        /// What the last attempt ended with.
        #[source]
        last: Box<Error>,
    },
    /// A call of a capability has no answer within its time: it may have been carried out and paid. The same call under the
    /// same key tells, and is carried out and paid once.
    #[error(
        "no answer within the time, the call may have been paid; ask again with the idempotency key {key}"
    )]
    CallUnknown {
        /// What makes the call one.
        key: String,
        /// What the last attempt ended with.
        #[source]
        last: Box<Error>,
    },
    /// A request was sent and has no answer yet. One that comes later lies in the mailbox.
    #[error("{} has not answered within the time; the request is message {id}", .to.handle())]
    NoAnswer {
        /// The request.
        id: Uuid,
        /// Who was asked.
        to: Did,
    },
    /// What the caller gave is not valid; nothing was sent.
    #[error("{0}")]
    Invalid(#[from] Refusal),
    /// An agent's identity does not extend the history known before (spec §3 `history_forked`).
    #[error("the identity of {did} does not extend the history known before; only `repin` takes the new one{}", shown(.evidence.as_ref()))]
    Forked {
        /// Whose identity.
        did: Did,
        /// Where both histories are kept, when pins live on disk.
        evidence: Option<PathBuf>,
    },
    /// An agent's identity, or what the hub derived from it, does not check.
    #[error("the identity of {did} does not check: {why}")]
    Unverified {
        /// Whose identity.
        did: Did,
        /// What is wrong.
        why: String,
    },
    /// Another session of the same agent took over (close code 4409).
    #[error("another session of this agent took over")]
    Replaced,
    /// The listener or the socket is closed.
    #[error("the connection is closed")]
    Closed,
    /// Not the URL of a hub.
    #[error("{0:?} is not the URL of a hub; write it as https://hub.example")]
    Url(String),
    /// A hub URL that would send messages over an open line.
    #[error("{0}: plain http is for localhost only; use https, or allow it explicitly")]
    Insecure(String),
    /// The keys that the client has, or those in its key file, are another agent's: than the one that was to be registered,
    /// or since this one moved.
    #[error("these keys belong to {}; an agent of another name has keys of its own", .0.handle())]
    KeysOfAnother(Did),
    /// The agent cannot move there.
    #[error("{0}")]
    CannotMove(String),
    /// The client has no keys, and the call needs them.
    #[error("this client has no keys: register first, or load a key file")]
    NoKeys,
    /// Something about a key file.
    #[error(transparent)]
    Keys(#[from] KeyFileError),
    /// The inbox could not be read or written. Nothing that it was to record may be acknowledged.
    #[error(transparent)]
    Inbox(#[from] InboxError),
    /// A file or folder of the client's own.
    #[error("{}: {source}", path.display())]
    File {
        /// Which one.
        path: PathBuf,
        /// The cause.
        #[source]
        source: std::io::Error,
    },
    /// Transport security could not be set up.
    #[error("transport security cannot be set up: {0}")]
    Tls(String),
}

/// A line that opened and brought nothing has reached the hub.
fn how_far(source: &(dyn std::error::Error + Send + Sync + 'static)) -> &'static str {
    let failed = source.downcast_ref::<reqwest::Error>();
    if failed.is_some_and(|failed| failed.is_timeout() && !failed.is_connect()) {
        "the hub has not answered in time"
    } else {
        "the hub cannot be reached"
    }
}

fn shown(path: Option<&PathBuf>) -> String {
    path.map(|p| format!(" (both are kept in {})", p.display()))
        .unwrap_or_default()
}

impl Error {
    /// The hub's refusal, if that is what this is; also behind an unknown outcome.
    pub fn problem(&self) -> Option<&Problem> {
        match self {
            Self::Refused(problem) => Some(problem),
            Self::OutcomeUnknown { last, .. } | Self::CallUnknown { last, .. } => last.problem(),
            _ => None,
        }
    }

    /// The error and its causes, in one line.
    pub fn sentence(&self) -> String {
        let mut sentence = self.to_string();
        let mut cause = std::error::Error::source(self);
        while let Some(error) = cause {
            let text = error.to_string();
            // Some libraries repeat their cause in their own text.
            if !sentence.contains(&text) {
                sentence.push_str(": ");
                sentence.push_str(&text);
            }
            cause = error.source();
        }
        sentence
    }

    /// Whether what was asked for may have been done although this is how it ended. A line that never opened and a hub
    /// that is too busy leave no doubt.
    pub(crate) fn leaves_doubt(&self) -> bool {
        match self {
            Self::Unreachable { source, .. } => !source
                .downcast_ref::<reqwest::Error>()
                .is_some_and(reqwest::Error::is_connect),
            Self::Refused(problem) => problem.code != "rate_limited",
            _ => true,
        }
    }

    /// Whether the hub refused with this code.
    pub fn is_code(&self, code: ErrorCode) -> bool {
        matches!(self, Self::Refused(problem) if problem.code == code.as_str())
    }

    /// Whether the same bytes may be offered again: the network, an overloaded hub or an unknown outcome.
    pub fn is_transient(&self) -> bool {
        match self {
            Self::Unreachable { .. } | Self::Closed | Self::OutcomeUnknown { .. } => true,
            Self::Refused(problem) => problem.is_transient(),
            _ => false,
        }
    }

    /// How long the hub asks to wait.
    pub fn retry_after(&self) -> Option<Duration> {
        self.problem()
            .and_then(|p| p.retry_after_secs)
            .map(Duration::from_secs)
    }

    pub(crate) fn unreachable(
        doing: &'static str,
        source: impl Into<Box<dyn std::error::Error + Send + Sync>>,
    ) -> Self {
        Self::Unreachable {
            doing,
            source: source.into(),
        }
    }

    pub(crate) fn answer(doing: &'static str, why: impl fmt::Display) -> Self {
        Self::Answer {
            doing,
            why: why.to_string(),
        }
    }

    pub(crate) fn file(path: impl Into<PathBuf>) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.into();
        move |source| Self::File { path, source }
    }
}

/// A refusal of the hub (spec §7, RFC 9457).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// The stable code.
    pub code: String,
    /// The HTTP status; 0 where it came in a frame or a batch.
    pub status: u16,
    /// A sentence that says what to do.
    pub detail: String,
    /// What to quote when asking the operator.
    pub request_id: Option<String>,
    /// Seconds to wait before the next attempt: `Retry-After`, or the member of a batch result.
    pub retry_after_secs: Option<u64>,
    /// The other members of the case.
    pub members: Map<String, Value>,
}

impl Problem {
    /// A problem that carries nothing but a code and a sentence.
    pub fn new(code: impl Into<String>, detail: impl Into<String>) -> Self {
        Self {
            code: code.into(),
            status: 0,
            detail: detail.into(),
            request_id: None,
            retry_after_secs: None,
            members: Map::new(),
        }
    }

    /// Reads the members of a problem document, a batch result or a frame; `None` without a `code`.
    pub(crate) fn from_members(mut members: Map<String, Value>) -> Option<Self> {
        let mut text = |name: &str| match members.remove(name) {
            Some(Value::String(text)) => Some(text),
            _ => None,
        };
        let mut problem = Self::new(text("code")?, text("detail").unwrap_or_default());
        problem.request_id = text("request_id");
        problem.retry_after_secs = members.remove("retry_after_s").as_ref().and_then(Value::as_u64);
        problem.status = members
            .remove("status")
            .as_ref()
            .and_then(Value::as_u64)
            .map_or(0, |status| u16::try_from(status).unwrap_or(0));
        problem.members = members;
        Some(problem)
    }

    /// The same for a refusal in the form of AIMarket, whose code is called `error`; without one its `detail` is kept.
    pub(crate) fn from_market(mut members: Map<String, Value>, code: String) -> Option<Self> {
        let is_market = members.contains_key("error") || members.contains_key("detail");
        let code = match members.remove("error") {
            Some(Value::String(code)) => code,
            _ => code,
        };
        let detail = match members.remove("detail") {
            Some(Value::String(detail)) => detail,
            Some(list) => list.to_string(),
            None => String::new(),
        };
        members.remove("success");
        members.remove("protocol_version");
        let problem = Self {
            members,
            ..Self::new(code, detail)
        };
        is_market.then_some(problem)
    }

    /// The code as this version of the protocol knows it; `None` for one that came later.
    pub fn kind(&self) -> Option<ErrorCode> {
        self.code.parse().ok()
    }

    /// Whether the hub said this. A code `http_…` stands for an answer without a problem document: something before the
    /// hub gave it, such as a proxy that has no hub to ask just now.
    pub fn is_of_hub(&self) -> bool {
        !self.code.starts_with("http_")
    }

    /// Whether the same request may succeed later.
    pub fn is_transient(&self) -> bool {
        const CODES: [&str; 5] = [
            "rate_limited",
            "unavailable",
            "outcome_unknown",
            "peer_failed",
            "internal",
        ];
        CODES.contains(&self.code.as_str())
            || matches!(self.status, 408 | 425 | 429 | 500 | 502 | 503 | 504)
            || (self.status >= 500 && !self.is_of_hub())
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.code)?;
        if !self.detail.is_empty() {
            write!(f, ": {}", self.detail)?;
        }
        if let Some(id) = &self.request_id {
            write!(f, " (request {id})")?;
        }
        Ok(())
    }
}

/// Why a key file could not be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum KeyFileError {
    /// There is none.
    #[error("no key file at {}; run `aip register`", .0.display())]
    Missing(PathBuf),
    /// There is one already; keys are never overwritten.
    #[error("{} exists already; keys are never overwritten", .0.display())]
    Exists(PathBuf),
    /// Others than the owner may read it.
    #[error("{} may be read by others (mode {mode:03o}); run `chmod 600` on it", path.display())]
    Permissions {
        /// The file.
        path: PathBuf,
        /// Its permission bits.
        mode: u32,
    },
    /// It is sealed with a passphrase, and none was given.
    #[error("{} is sealed with a passphrase", .0.display())]
    PassphraseNeeded(PathBuf),
    /// The passphrase is wrong, or the file was changed.
    #[error("{}: the passphrase is wrong, or the file is damaged", .0.display())]
    PassphraseWrong(PathBuf),
    /// It is not a key file of a version that this client reads.
    #[error("{}: not a key file: {why}", path.display())]
    Malformed {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        why: String,
    },
    /// It could not be read or written.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The cause.
        #[source]
        source: std::io::Error,
    },
}

/// Why an inbox could not do its work.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum InboxError {
    /// Another process has it open.
    #[error("another process uses the inbox in {}", .0.display())]
    InUse(PathBuf),
    /// It holds something that this client did not write.
    #[error("the inbox file {} is damaged: {why}", path.display())]
    Corrupt {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        why: String,
    },
    /// It could not be read or written.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The cause.
        #[source]
        source: std::io::Error,
    },
    /// A store of the application's own failed.
    #[error("the inbox store failed")]
    Store(#[source] Box<dyn std::error::Error + Send + Sync>),
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problem(text: &str) -> Problem {
        Problem::from_members(serde_json::from_str(text).expect("an object")).expect("a problem")
    }

    #[test]
    fn a_problem_keeps_code_detail_request_and_members() {
        let problem = problem(
            r#"{"type":"https://x/e","title":"T","status":422,"detail":"Mend your clock.","code":"created_at_out_of_window",
                "request_id":"r-1","hub_time":"2026-11-29T20:15:30.123Z"}"#,
        );
        assert_eq!(problem.kind(), Some(ErrorCode::CreatedAtOutOfWindow));
        assert_eq!(problem.status, 422);
        assert_eq!(problem.members["hub_time"], "2026-11-29T20:15:30.123Z");
        assert_eq!(
            problem.to_string(),
            "created_at_out_of_window: Mend your clock. (request r-1)"
        );
        assert!(!problem.is_transient());
    }

    #[test]
    fn a_later_code_is_kept_as_text() {
        let problem = problem(r#"{"code":"moon_phase_wrong"}"#);
        assert_eq!(problem.kind(), None);
        assert_eq!(problem.to_string(), "moon_phase_wrong");
    }

    #[test]
    fn what_may_be_tried_again() {
        for code in ["rate_limited", "unavailable", "outcome_unknown"] {
            assert!(Problem::new(code, "").is_transient(), "{code}");
        }
        for code in ["id_reused", "mailbox_full", "signature_invalid", "expired"] {
            assert!(!Problem::new(code, "").is_transient(), "{code}");
        }
        let at = |status, code: &str| Problem {
            status,
            ..Problem::new(code, "")
        };
        for status in [408, 425, 429, 500, 502, 503, 504, 520, 530] {
            assert!(at(status, &format!("http_{status}")).is_transient(), "{status}");
        }
        for (status, code) in [(507, "mailbox_full"), (404, "http_404"), (301, "http_301")] {
            assert!(!at(status, code).is_transient(), "{code}");
        }
    }

    #[test]
    fn a_cause_is_said_once() {
        let cause = std::io::Error::other("the cable is out");
        let error = Error::unreachable("sending", cause);
        assert_eq!(
            error.sentence(),
            "sending: the hub cannot be reached: the cable is out"
        );
        let file = Error::file("/x")(std::io::Error::other("no room"));
        assert_eq!(file.sentence(), "/x: no room");
    }
}
