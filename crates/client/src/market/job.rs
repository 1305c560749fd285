//! Calls that are followed: what opens a job, how it stands, and what is heard while it is under way.

use std::fmt;

use aip_protocol::error::{ErrorCode, Refusal};
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;
use zeroize::Zeroizing;

use super::answers::Invoked;
use crate::error::Result;
use crate::limits::PURSE_SECRET_BYTES_MAX;

/// A job and what opens it. Wiped when dropped, and shown by nothing but [`JobKey::reveal`].
#[derive(Clone, PartialEq, Eq)]
pub struct JobKey {
    id: String,
    secret: Zeroizing<String>,
}

impl JobKey {
    /// A job's id and secret as the hub gave them.
    ///
    /// # Errors
    /// [`crate::Error::Invalid`] for another form than they have.
    pub fn new(id: &str, secret: &str) -> Result<Self> {
        let (id, secret) = (id.trim(), secret.trim());
        let is_id = (1..=PURSE_SECRET_BYTES_MAX).contains(&id.len())
            && id.starts_with(|c: char| c.is_ascii_alphanumeric())
            && id
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte));
        if !is_id {
            let detail = "the id of a job is letters, digits, _ and -";
            return Err(Refusal::new(ErrorCode::ParameterInvalid, detail).into());
        }
        let is_word = (1..=PURSE_SECRET_BYTES_MAX).contains(&secret.len())
            && secret.bytes().all(|byte| byte.is_ascii_graphic());
        if !is_word {
            let detail = "the secret of a job is one word of letters, digits and signs";
            return Err(Refusal::new(ErrorCode::TokenInvalid, detail).into());
        }
        Ok(Self {
            id: id.to_owned(),
            secret: Zeroizing::new(secret.to_owned()),
        })
    }

    /// The job's id, which is no secret.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// The secret itself, to be written down.
    pub fn reveal(&self) -> &str {
        &self.secret
    }
}

impl fmt::Debug for JobKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("JobKey")
            .field("id", &self.id)
            .finish_non_exhaustive()
    }
}

/// What came of beginning a call that is to be answered later.
#[derive(Debug, Clone)]
pub enum Started {
    /// It is under way.
    Job(JobKey),
    /// It has its answer already.
    Answered(Box<Invoked>),
}

/// A job as it stands.
#[derive(Debug, Clone, Deserialize)]
#[non_exhaustive]
pub struct JobState {
    /// Which one: the invocation that its answer names.
    pub job_id: String,
    /// `running`, `succeeded`, `failed` or `cancelled`.
    pub status: String,
    /// Whose capability.
    #[serde(default)]
    pub product_id: String,
    /// Which capability.
    #[serde(default)]
    pub capability_id: String,
    /// When it began.
    #[serde(default)]
    pub created_at: Option<String>,
    /// The last word of its provider.
    #[serde(default)]
    pub progress: Option<JobWord>,
    /// The status of its answer.
    #[serde(default)]
    pub answer_status: Option<u16>,
    /// Its answer, letter for letter.
    #[serde(default)]
    pub answer: Option<Box<RawValue>>,
    #[serde(default)]
    job_secret: Option<SecretText>,
}

impl JobState {
    /// Whether there is no answer yet.
    pub fn is_running(&self) -> bool {
        self.answer_status.is_none() && self.status == "running"
    }

    /// What opens it, where the hub tells that.
    pub(crate) fn key(&self) -> Option<JobKey> {
        JobKey::new(&self.job_id, &self.job_secret.as_ref()?.0).ok()
    }
}

/// The last word of a provider.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[non_exhaustive]
pub struct JobWord {
    /// Which one, from 1.
    pub number: u64,
    /// `progress` or `chunk`.
    pub kind: String,
    /// What it says: a stranger's.
    #[serde(default)]
    pub data: Value,
}

/// What is heard of a call that is followed.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum CallEvent {
    /// It is under way. With this key it is found again, whatever becomes of the line.
    Began(JobKey),
    /// How far the provider is. A gap in the numbers says that words were missed.
    Progress {
        /// From 1.
        number: u64,
        /// What it says.
        data: Value,
    },
    /// A part of what the result will be.
    Chunk {
        /// From 1.
        number: u64,
        /// The part.
        data: Value,
    },
}

/// Wiped when dropped.
#[derive(Clone, Deserialize)]
#[serde(from = "String")]
struct SecretText(Zeroizing<String>);

impl From<String> for SecretText {
    fn from(text: String) -> Self {
        Self(Zeroizing::new(text))
    }
}

impl fmt::Debug for SecretText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SecretText")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_opens_a_job_is_never_shown() {
        let text = r#"{"job_id": "0011-22", "status": "running", "job_secret": "aimj_hidden",
            "progress": {"number": 3, "kind": "progress", "data": {"done": 0.5}}}"#;
        let state: JobState = serde_json::from_str(text).unwrap();
        assert!(state.is_running());
        let key = state.key().unwrap();
        assert_eq!((key.id(), key.reveal()), ("0011-22", "aimj_hidden"));
        assert!(!format!("{state:?} {key:?}").contains("hidden"));
        assert_eq!(state.progress.unwrap().number, 3);
    }

    #[test]
    fn ids_and_secrets_have_their_forms() {
        for id in ["", ".", "../x", "a/b", "a b", "é", "-a"] {
            assert!(JobKey::new(id, "s").is_err(), "{id}");
        }
        for secret in ["", "a b", "a\r\nx: y"] {
            assert!(JobKey::new("j1", secret).is_err());
        }
    }
}
