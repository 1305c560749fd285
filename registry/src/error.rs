//! What can go wrong here: refusals (the caller's to mend) and failures (ours).

use std::error::Error;
use std::sync::Arc;

use aip_protocol::error::{ErrorCode, Refusal};

/// The cause of a failure, for the log only. Shared, because one broken commit fails many callers.
pub type Cause = Arc<dyn Error + Send + Sync>;

/// A store that did not do its job.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// Nothing was changed; the same call may work later.
    #[error("the registry's database does not answer")]
    Unavailable(#[source] Cause),
    /// The commit broke: the change may have happened or not. The same call again tells.
    #[error("the registry's database broke during a commit, the outcome is not known")]
    OutcomeUnknown(#[source] Cause),
    /// What is stored cannot be what was admitted.
    #[error("the registry's database is damaged: {0}")]
    Corrupt(String),
    /// The database was made by a newer hub.
    #[error(
        "the registry's database has schema {found}, which this hub does not know (newest known: {known}): \
         start the newer hub again, or restore a backup from before its upgrade"
    )]
    SchemaNewer {
        /// The version found.
        found: i64,
        /// The newest one that this binary knows.
        known: i64,
    },
    /// The database was made by an older hub, or is empty, and is not to be migrated on the way.
    #[error(
        "the registry's database has schema {found}, this hub needs {known}: \
         run `aip-hub migrate` once with this version and these settings"
    )]
    SchemaOlder {
        /// The version found; 0 in an empty database.
        found: i64,
        /// The one that this binary needs.
        known: i64,
    },
    /// The database belongs to a hub of another domain.
    #[error(
        "the registry's database belongs to {found}, this hub is {configured}: set the domain back, or use another data folder"
    )]
    OtherDomain {
        /// The domain in the database.
        found: String,
        /// The domain in the configuration.
        configured: String,
    },
    /// Not done by the hub on this engine: the sentence says what does it.
    #[error("{0}")]
    NotHere(&'static str),
    /// The database cannot be opened or migrated.
    #[error("the registry's database cannot be opened: {0}")]
    Open(String),
}

impl StoreError {
    /// The code that a caller sees.
    pub fn code(&self) -> ErrorCode {
        match self {
            Self::Unavailable(_) => ErrorCode::Unavailable,
            Self::OutcomeUnknown(_) => ErrorCode::OutcomeUnknown,
            Self::Corrupt(_)
            | Self::SchemaNewer { .. }
            | Self::SchemaOlder { .. }
            | Self::OtherDomain { .. }
            | Self::NotHere(_)
            | Self::Open(_) => ErrorCode::Internal,
        }
    }

    /// A failure that changed nothing, told in one sentence.
    pub(crate) fn unavailable(sentence: &'static str) -> Self {
        Self::Unavailable(Arc::from(Box::<dyn Error + Send + Sync>::from(sentence)))
    }
}

/// Why a call of [`crate::Registry`] has no answer.
#[derive(Debug, Clone, thiserror::Error)]
pub enum RegistryError {
    /// The caller is told no, with a code and a sentence.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// The store failed; the caller is told only the code.
    #[error(transparent)]
    Failed(#[from] StoreError),
}

impl RegistryError {
    /// The code that a caller sees.
    pub fn code(&self) -> ErrorCode {
        match self {
            Self::Refused(refusal) => refusal.code,
            Self::Failed(failure) => failure.code(),
        }
    }

    /// The refusal, where it is one.
    pub fn refusal(&self) -> Option<&Refusal> {
        match self {
            Self::Refused(refusal) => Some(refusal),
            Self::Failed(_) => None,
        }
    }
}

/// Says no with a fixed sentence.
pub(crate) fn refuse(code: ErrorCode, detail: &'static str) -> RegistryError {
    RegistryError::Refused(Refusal::new(code, detail))
}
