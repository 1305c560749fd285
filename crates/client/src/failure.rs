//! Why a command did not succeed, and with which exit code it ends.

use aip_client::{Error, KeyFileError, Problem};

/// What a command ends with when it does not succeed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    /// The command line asks for something that makes no sense.
    #[error("{0}")]
    Usage(String),
    /// The library could not do it.
    #[error(transparent)]
    Client(#[from] Error),
    /// The machine could not do it.
    #[error(transparent)]
    Io(#[from] std::io::Error),
    /// The program that is to be run for each message is gone.
    #[error("{0}")]
    ProgramGone(String),
    /// Something else went wrong.
    #[error("{0}")]
    Other(String),
}

impl Failure {
    /// 1 failed, 2 wrong usage, 3 refused by the hub.
    pub(crate) fn exit_code(&self) -> u8 {
        match self {
            Self::Usage(_) | Self::Client(Error::Invalid(_) | Error::Url(_) | Error::Insecure(_)) => 2,
            Self::Client(error) if error.problem().is_some() => 3,
            _ => 1,
        }
    }

    /// The hub's refusal, if that is what it is.
    pub(crate) fn problem(&self) -> Option<&Problem> {
        match self {
            Self::Client(error) => error.problem(),
            _ => None,
        }
    }

    /// The failure and its causes, in one line.
    pub(crate) fn sentence(&self) -> String {
        match self {
            Self::Client(Error::CallUnknown { key, last }) => format!(
                "no answer within the time, the call may have been paid; the same call with --idempotency-key {key} \
                 tells, and is not paid twice: {}",
                last.sentence()
            ),
            Self::Client(error) => error.sentence(),
            other => other.to_string(),
        }
    }

    /// What stands beside the code of a refusal; the whole sentence where a call is open, which names its key.
    pub(crate) fn detail(&self) -> String {
        match (self, self.problem()) {
            (Self::Client(Error::CallUnknown { .. }), _) | (_, None) => self.sentence(),
            (_, Some(problem)) => problem.detail.clone(),
        }
    }
}

impl From<KeyFileError> for Failure {
    fn from(error: KeyFileError) -> Self {
        Self::Client(error.into())
    }
}

impl From<aip_client::InboxError> for Failure {
    fn from(error: aip_client::InboxError) -> Self {
        Self::Client(error.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exit_codes_tell_refusals_from_failures() {
        let refused = Error::Refused(Box::new(Problem::new("handle_taken", "Choose another name.")));
        assert_eq!(Failure::from(refused).exit_code(), 3);
        assert_eq!(Failure::from(Error::Closed).exit_code(), 1);
        assert_eq!(Failure::from(Error::Url("x".into())).exit_code(), 2);
        assert_eq!(Failure::Usage("x".into()).exit_code(), 2);
        assert_eq!(Failure::from(KeyFileError::Missing("k".into())).exit_code(), 1);
    }

    #[test]
    fn an_open_call_names_the_flag_that_tells() {
        let unknown = |last: Error| {
            Failure::from(Error::CallUnknown {
                key: "key-1".to_owned(),
                last: Box::new(last),
            })
        };
        let busy = Error::Refused(Box::new(Problem::new("busy", "Later.")));
        for failure in [unknown(busy), unknown(Error::Closed)] {
            let said = failure.sentence();
            assert!(said.contains("--idempotency-key key-1 tells"), "{said}");
            assert_eq!(failure.detail(), said);
        }
        let refused = Error::Refused(Box::new(Problem::new("busy", "Later.")));
        assert_eq!(Failure::from(refused).detail(), "Later.");
    }
}
