//! What became of messages that are gone: for their senders, and for a retry that must not be taken for news.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use aip_protocol::envelope::dedup_key;
use aip_protocol::name::{Did, Domain, Handle};
use aip_protocol::time::Timestamp;
use aip_registry::limits::LIST_PAGE_MAX;
use aip_registry::{Directory as _, SqlStore};
use aip_relay::limits::{CLOCK_SLACK_SECS, DEDUP_LIFE_SECS};
use aip_relay::mailbox::rocks::KeptStatus;
use aip_relay::mailbox::{
    Append, AppendOutcome, Fate, MailboxId, Mailboxes as _, Outboxes as _, Route, Status, StatusRecord,
};
use bytes::Bytes;
use futures_util::{StreamExt as _, TryStreamExt as _, stream};

use super::mailbox::NO_QUOTA;
use super::{MAILBOXES_AT_ONCE, Move, MoveError, PAGE};

/// Senders by the hash that a status knows them by.
pub type Senders = HashMap<MailboxId, Did>;

impl Move {
    /// Writes every final status that changed after `since`; returns how many. What still waits has told of itself when
    /// it was appended.
    ///
    /// # Errors
    /// What stood in the way.
    pub async fn statuses(&self, since: Option<Timestamp>) -> Result<u64, MoveError> {
        let mut count = 0;
        let mut page = self.status_page(None).await?;
        while let Some(last) = page.last().cloned() {
            let changed = page
                .into_iter()
                .filter(|kept| is_over(kept) && since.is_none_or(|since| kept.record.at >= since));
            let statuses: Vec<_> = changed.map(|kept| (kept.sender, kept.id, kept.record)).collect();
            count += statuses.len() as u64;
            let written = self.target.import_statuses(statuses).await;
            written.map_err(MoveError::Target)?;
            page = self.status_page(Some(&last)).await?;
        }
        Ok(count)
    }

    /// Lets the target remember what the source does of messages that are gone from it: a sender who tries again is
    /// told so. Returns how many there are.
    ///
    /// # Errors
    /// What stood in the way.
    pub async fn remembered(&self, senders: &Senders) -> Result<u64, MoveError> {
        let mut count = 0;
        let mut page = self.status_page(None).await?;
        while let Some(last) = page.last().cloned() {
            let gone = page.into_iter().filter(|kept| self.may_be_remembered(kept));
            let known = gone.filter_map(|kept| Some((senders.get(&kept.sender)?.clone(), kept)));
            let marked: Vec<bool> = stream::iter(known)
                .map(|(sender, kept)| self.mark(sender, kept))
                .buffer_unordered(MAILBOXES_AT_ONCE)
                .try_collect()
                .await?;
            count += marked.into_iter().filter(|marked| *marked).count() as u64;
            page = self.status_page(Some(&last)).await?;
        }
        Ok(count)
    }

    /// The senders of messages that may still be remembered, among the agents of `registry`.
    ///
    /// # Errors
    /// The copy or the registry cannot be read.
    pub async fn senders(&self, registry: &SqlStore, domain: &Domain) -> anyhow::Result<Senders> {
        let mut wanted = HashSet::new();
        let mut page = self.status_page(None).await?;
        while let Some(last) = page.last().cloned() {
            let gone = page.iter().filter(|kept| self.may_be_remembered(kept));
            wanted.extend(gone.map(|kept| kept.sender));
            page = self.status_page(Some(&last)).await?;
        }
        let (mut senders, mut after) = (Senders::new(), None);
        loop {
            let agents = registry.list(after.as_ref(), LIST_PAGE_MAX).await?;
            let Some(last) = agents.last() else {
                return Ok(senders);
            };
            after = Some(last.name.clone());
            let dids = agents
                .iter()
                .filter_map(|agent| Handle::parse(&format!("{}#{domain}", agent.name)).ok())
                .map(|handle| handle.did());
            senders.extend(
                dids.map(|did| (MailboxId::of(&did), did))
                    .filter(|(id, _)| wanted.contains(id)),
            );
        }
    }

    fn may_be_remembered(&self, kept: &KeptStatus) -> bool {
        let life = Duration::from_secs(DEDUP_LIFE_SECS + CLOCK_SLACK_SECS);
        kept.record.accepted_at + life >= self.now && is_over(kept)
    }

    /// Puts an entry without an envelope where the message was, and settles it; whether there was something to do.
    async fn mark(&self, sender: Did, kept: KeptStatus) -> Result<bool, MoveError> {
        let record = kept.record;
        let key = dedup_key(&sender, &record.to, kept.id);
        let accepted = self
            .source
            .accepted(key, self.now)
            .await
            .map_err(MoveError::Source)?;
        let Some(accepted) = accepted else {
            return Ok(false);
        };
        if record.status == Status::Dead && accepted.route == Route::Mailbox {
            // It was appended, and buried.
            return Ok(false);
        }
        let append = Append {
            recipient: record.to.clone(),
            sender,
            id: kept.id,
            dedup_key: key,
            digest: accepted.digest,
            remember_until: accepted.until,
            accepted_at: record.accepted_at,
            expires_at: record.accepted_at,
            wire: Bytes::new(),
            route: accepted.route,
            quota: NO_QUOTA,
        };
        let mailbox = append.mailbox();
        let outcome = self.target.append(append).await.map_err(MoveError::Target)?;
        let (AppendOutcome::Stored { seq: Some(seq) } | AppendOutcome::Duplicate { seq: Some(seq), .. }) =
            outcome
        else {
            return Ok(true);
        };
        match accepted.route {
            Route::Mailbox => {
                let acked = self.target.ack(&mailbox, 0, &[seq], record.at).await;
                acked.map_err(MoveError::Target)?;
            }
            Route::Peer => {
                // As early as can be: what the source tells of it is the newer status.
                let fates = [(seq, fate(&record))];
                let settled = self
                    .target
                    .settle_outbox(&mailbox, &fates, record.accepted_at)
                    .await;
                settled.map_err(MoveError::Target)?;
            }
            Route::Direct => {}
        }
        Ok(true)
    }

    async fn status_page(&self, after: Option<&KeptStatus>) -> Result<Vec<KeptStatus>, MoveError> {
        let page = self.source.statuses_after(after, PAGE).await;
        page.map_err(MoveError::Source)
    }
}

/// Whether the message has left its mailbox or outbox.
fn is_over(kept: &KeptStatus) -> bool {
    !matches!(kept.record.status, Status::Stored | Status::Queued)
}

/// How a message left an outbox.
fn fate(record: &StatusRecord) -> Fate {
    let code = || record.code.clone().unwrap_or_default();
    match record.status {
        Status::Refused => Fate::Refused(code()),
        Status::Dead => Fate::Dead(code()),
        Status::Expired => Fate::Expired,
        Status::Queued | Status::Stored | Status::Delivered | Status::Acked => Fate::Delivered,
    }
}
