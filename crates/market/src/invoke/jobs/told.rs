//! What is told about a job, as JSON.

use std::borrow::Cow;
use std::collections::BTreeMap;

use aip_protocol::market::time_text;
use bytes::Bytes;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::{Job, JobStage};
use crate::credential::Secret;
use crate::market::Market;
use crate::refusal::{MarketCode, PROTOCOL_VERSION};

impl Job {
    /// `running`, `succeeded`, `failed` or `cancelled`.
    pub fn status(&self) -> &'static str {
        let JobStage::Ended(answer) = &self.stage else {
            return "running";
        };
        if answer.status == 200 {
            return "succeeded";
        }
        let refused: Option<Refused<'_>> = serde_json::from_slice(&answer.body).ok();
        match refused.and_then(|refused| refused.error).as_deref() {
            Some(code) if code == MarketCode::JobCancelled.as_str() => "cancelled",
            // It was answered, with more than is kept of a call that cost nothing.
            Some(code) if code == MarketCode::IdempotencyForgotten.as_str() => "succeeded",
            _ => "failed",
        }
    }
}

/// Of the body of a refusal.
#[derive(Deserialize)]
struct Refused<'a> {
    #[serde(borrow)]
    error: Option<Cow<'a, str>>,
}

/// What is answered about a job.
#[derive(Serialize)]
struct JobLine<'a> {
    success: bool,
    job_id: String,
    status: &'static str,
    product_id: &'a str,
    capability_id: &'a str,
    created_at: String,
    poll_url: &'a str,
    events_url: String,
    cancel_url: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    job_secret: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    progress: Option<WordLine<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    answer_status: Option<u16>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    answer_headers: BTreeMap<&'static str, &'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    answer: Option<&'a RawValue>,
    protocol_version: &'static str,
}

#[derive(Serialize)]
struct WordLine<'a> {
    number: u64,
    kind: &'static str,
    data: Option<&'a RawValue>,
}

/// JSON letter for letter: numbers of a receipt are signed as they are spelled.
fn raw(json: &[u8]) -> Option<&RawValue> {
    serde_json::from_slice(json).ok()
}

impl Market {
    /// What is answered about a job, as JSON; with its secret for who began it.
    pub fn job_body(&self, job: &Job, secret: Option<&Secret>) -> Bytes {
        let poll_url = format!("{}/ai-market/v2/jobs/{}", self.config.base_url, job.id);
        let (progress, answer) = match &job.stage {
            JobStage::Running(word) => (word.as_ref(), None),
            JobStage::Ended(answer) => (None, Some(answer)),
        };
        let line = JobLine {
            success: true,
            job_id: job.id.to_string(),
            status: job.status(),
            product_id: &job.product_id,
            capability_id: &job.capability_id,
            created_at: time_text(job.started_at),
            poll_url: &poll_url,
            events_url: format!("{poll_url}/events"),
            cancel_url: &poll_url,
            job_secret: secret.map(Secret::expose),
            progress: progress.map(|word| WordLine {
                number: word.number,
                kind: word.kind.as_str(),
                data: raw(&word.data),
            }),
            answer_status: answer.map(|answer| answer.status),
            answer_headers: job
                .headers
                .iter()
                .map(|(name, value)| (*name, value.as_str()))
                .collect(),
            answer: answer.and_then(|answer| raw(&answer.body)),
            protocol_version: PROTOCOL_VERSION,
        };
        // Writing it into memory cannot fail.
        serde_json::to_vec(&line).unwrap_or_default().into()
    }
}
