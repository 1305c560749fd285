//! What a push is answered with (spec §8).

use aip_protocol::error::ErrorCode;
use aip_protocol::json::{Json, Object};
use bytes::Bytes;

use super::Reception;
use crate::budgets::Tally;

/// The answer to a push: every item, in the order of the batch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PushAnswer {
    /// What became of each item.
    pub results: Vec<ItemResult>,
    /// Everything up to here is settled in this epoch, refused items too.
    pub acked_through: u64,
}

/// What became of one item.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ItemResult {
    /// Its place in the peer's outbox.
    pub peer_seq: u64,
    /// What became of it.
    pub reception: Reception,
}

impl PushAnswer {
    /// The body of the answer.
    pub fn to_body(&self) -> Bytes {
        let results: Vec<Json> = self.results.iter().map(|result| result.to_json()).collect();
        let answer = Json::from([
            ("results", Json::Array(results)),
            ("acked_through", number(self.acked_through)),
        ]);
        Bytes::from(answer.to_jcs())
    }

    /// How many items became what.
    pub(crate) fn tally(&self) -> Tally {
        let mut tally = Tally::default();
        for result in &self.results {
            let count = match result.reception {
                Reception::Stored => &mut tally.stored,
                Reception::Duplicate => &mut tally.duplicate,
                Reception::Refused(_) => &mut tally.refused,
                Reception::Retry { .. } => &mut tally.retry,
            };
            *count += 1;
        }
        tally
    }
}

impl ItemResult {
    fn to_json(self) -> Json {
        let (status, code, retry_after_secs): (_, Option<ErrorCode>, _) = match self.reception {
            Reception::Stored => ("stored", None, None),
            Reception::Duplicate => ("duplicate", None, None),
            Reception::Refused(code) => ("refused", Some(code), None),
            Reception::Retry { code, after_secs } => ("retry", Some(code), Some(after_secs)),
        };
        let mut object = Object::from([
            ("peer_seq", number(self.peer_seq)),
            ("status", Json::from(status)),
        ]);
        if let Some(code) = code {
            object.insert("code", code.as_str());
        }
        if let Some(secs) = retry_after_secs {
            object.insert("retry_after_s", number(secs));
        }
        Json::Object(object)
    }
}

/// Numbers here count items and seconds, far below 2^53.
pub(super) fn number(number: u64) -> Json {
    Json::Int(i64::try_from(number).unwrap_or(i64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_answer_says_what_became_of_each_item() {
        let result = |peer_seq, reception| ItemResult { peer_seq, reception };
        let retry = Reception::Retry {
            code: ErrorCode::MailboxFull,
            after_secs: 60,
        };
        let answer = PushAnswer {
            results: vec![
                result(7, Reception::Stored),
                result(8, Reception::Duplicate),
                result(9, Reception::Refused(ErrorCode::RecipientUnknown)),
                result(10, retry),
            ],
            acked_through: 9,
        };
        let text = concat!(
            r#"{"acked_through":9,"results":[{"peer_seq":7,"status":"stored"},{"peer_seq":8,"status":"duplicate"},"#,
            r#"{"code":"recipient_unknown","peer_seq":9,"status":"refused"},"#,
            r#"{"code":"mailbox_full","peer_seq":10,"retry_after_s":60,"status":"retry"}]}"#
        );
        assert_eq!(answer.to_body(), text);
        assert_eq!(
            answer.tally(),
            Tally {
                stored: 1,
                duplicate: 1,
                refused: 1,
                retry: 1
            }
        );
    }
}
