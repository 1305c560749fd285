//! What a peer knows of a message that it took: asked when its sender asks (`docs/protocol/federation.md`).

use std::sync::Arc;
use std::time::Duration;

use aip_federation::delivery::is_code;
use aip_federation::directory::Freshness;
use aip_federation::egress::{Limits, Request, Response};
use aip_protocol::name::Did;
use aip_relay::mailbox::{MailboxStore, Status, StatusRecord};
use moka::sync::Cache;
use serde::Deserialize;
use url::Url;
use uuid::Uuid;

use super::Federation;

/// The feature of a peer that can be asked.
pub(crate) const FEATURE: &str = "mail-status";
/// What one question may cost; its asker waits.
const QUESTION: Limits = Limits {
    timeout: Duration::from_secs(3),
    answer_bytes_max: 16 * 1024,
};
/// How long a message that had no news is not asked for again.
const ASKED_AGAIN_AFTER: Duration = Duration::from_secs(2);
/// Messages about which it is remembered that they had no news.
const ASKED_MAX: u64 = 10_000;

/// Which messages had no news a moment ago.
pub(super) type Asked = Cache<(Did, Uuid, Did), ()>;

pub(super) fn asked() -> Asked {
    Cache::builder()
        .max_capacity(ASKED_MAX)
        .time_to_live(ASKED_AGAIN_AFTER)
        .build()
}

/// The answer of a peer, as far as it is looked at.
#[derive(Deserialize)]
struct Answer {
    status: String,
    #[serde(default)]
    code: Option<String>,
}

impl Federation {
    /// The record of a message that a peer took, as the peer knows it: asks the peer, and keeps what it says. Where there is
    /// nothing to ask for, or no answer, the record as it is.
    pub async fn refreshed(
        &self,
        mailboxes: &Arc<dyn MailboxStore>,
        sender: &Did,
        id: Uuid,
        record: StatusRecord,
    ) -> StatusRecord {
        let of_peer = record.status == Status::Delivered && record.to.domain() != *self.signer.domain();
        let key = (sender.clone(), id, record.to.clone());
        if !of_peer || self.asked.contains_key(&key) {
            return record;
        }
        let news = self.ask(sender, id, &record.to).await;
        let Some((status, code)) = news else {
            self.asked.insert(key, ());
            return record;
        };
        let at = self.clock.now();
        let told = (status, code.as_deref());
        match mailboxes.advance_status(sender, id, &record.to, told, at).await {
            Ok(true) => StatusRecord {
                status,
                code,
                at,
                ..record
            },
            Ok(false) => record,
            Err(error) => {
                tracing::warn!(%error, "What a peer told of a message was not kept; it will be asked again");
                record
            }
        }
    }

    /// The status that ends a message at the peer, if it has one, with its code.
    async fn ask(&self, sender: &Did, id: Uuid, to: &Did) -> Option<(Status, Option<String>)> {
        let domain = to.domain();
        self.reachable(&domain).await.ok()?;
        let peer = self.directory.peer(&domain, Freshness::Cached).await.ok()?;
        if !peer.offers(FEATURE) {
            return None;
        }
        let mut url = Url::parse(&peer.url("/federation/v1/status")).ok()?;
        url.query_pairs_mut()
            .append_pair("from", sender.as_str())
            .append_pair("id", &id.hyphenated().to_string())
            .append_pair("to", to.as_str());
        let request: Request = self.signer.get(&url, &peer.names_itself);
        let answer: Response = self.exchange.exchange(request, QUESTION).await.ok()?;
        if answer.status != 200 || answer.content_type.as_deref() != Some("application/json") {
            return None;
        }
        let answer: Answer = serde_json::from_slice(&answer.body).ok()?;
        let status = [Status::Acked, Status::Expired, Status::Dead]
            .into_iter()
            .find(|status| status.as_str() == answer.status)?;
        Some((status, answer.code.filter(|code| is_code(code))))
    }
}
