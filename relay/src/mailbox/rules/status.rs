//! The fate of a message, for its sender.

use uuid::Uuid;

use super::super::keys::{self, Bucket};
use super::super::outcomes::StatusRecord;
use super::super::records;
use super::super::view::{Family, Txn};
use super::Parties;
use crate::limits;

/// Writes a status, in place of an earlier one of the same message.
///
/// It lies in the bucket of the acceptance day, so that a later change finds it; once that bucket is due to
/// be dropped (a dead letter may outlive it) nothing is written any more. Whether it was.
pub(crate) fn put(txn: &mut Txn<'_>, parties: Parties, id: Uuid, record: &StatusRecord) -> bool {
    let accepted_at = keys::nanos(record.accepted_at);
    let kept = accepted_at.saturating_add(keys::secs(limits::STATUS_SECS)) >= keys::nanos(record.at);
    if kept {
        let key = keys::status(
            Bucket::status(accepted_at),
            &parties.sender,
            id,
            &parties.recipient,
        );
        txn.put(Family::Status, key, records::encode_status(record));
    }
    kept
}
