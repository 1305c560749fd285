//! Whose items they are: the senders' histories, at the peer that hands their mail in, and their own signatures.

use std::collections::BTreeSet;

use aip_protocol::error::{ErrorCode, Refusal};
use aip_protocol::name::{Did, Domain};
use aip_protocol::time::Timestamp;
use futures_util::stream::{self, StreamExt as _};

use super::lines::{Line, Sender, Senders, without_identity};
use super::{Inbound, Reception};
use crate::directory::Freshness;
use crate::limits::{SENDER_LOOKUPS_AT_ONCE, SENDERS_RETRY_SECS};

impl Inbound {
    /// A new peer hands in mail of so many senders only.
    pub(super) fn ration_senders(&self, peer: &Domain, lines: &mut [Line]) {
        let now = self.seams.clock.now();
        for line in lines {
            let sender = line.admitted().map(|item| &item.envelope.from);
            if sender.is_some_and(|sender| !self.gate.sender(peer, sender, now)) {
                line.decide(Reception::Retry {
                    code: ErrorCode::RateLimited,
                    after_secs: SENDERS_RETRY_SECS,
                });
            }
        }
    }

    /// The senders' own signatures, with the histories at hand; then once more with new ones, where those know no such key or
    /// no such sender. An agent may be as new as its first message, and somebody else may have asked for it before.
    pub(super) async fn verify(&self, lines: Vec<Line>) -> Result<Vec<Line>, Refusal> {
        let since = self.seams.clock.now();
        let senders = lines.iter().filter_map(Line::admitted);
        let senders: BTreeSet<Did> = senders.map(|item| item.envelope.from.clone()).collect();
        let senders = self.senders(senders, Freshness::Cached, since).await;
        let work = move || {
            let mut unknown = BTreeSet::new();
            let lines = lines.into_iter();
            let lines: Vec<Line> = lines
                .map(|line| line.verify(&senders, Some(&mut unknown)))
                .collect();
            (lines, unknown)
        };
        let (lines, unknown) = self.cpu.run(work).await?;
        if unknown.is_empty() {
            return Ok(lines);
        }
        let senders = self.senders(unknown, Freshness::Fresh, since).await;
        let work = move || {
            lines
                .into_iter()
                .map(|line| line.verify(&senders, None))
                .collect()
        };
        self.cpu.run(work).await
    }

    /// Looks up the senders of items that were here at `since`.
    async fn senders(&self, dids: BTreeSet<Did>, freshness: Freshness, since: Timestamp) -> Senders {
        let find = |did: Did| async move {
            if freshness == Freshness::Fresh {
                self.counters.look();
            }
            let sender = match self.seams.senders.identity(&did, freshness).await {
                // Another push may have asked before, and be waiting for the answer.
                Ok(resolved) => Sender {
                    identity: Ok(resolved.identity),
                    is_current: resolved.asked_at >= since,
                },
                Err(error) => Sender {
                    identity: Err(without_identity(&error)),
                    is_current: true,
                },
            };
            (did, sender)
        };
        stream::iter(dids)
            .map(find)
            .buffer_unordered(SENDER_LOOKUPS_AT_ONCE)
            .collect()
            .await
    }
}
