//! What becomes of the items of a push: each is judged on its own, in the order of the batch, cheap checks first.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use aip_protocol::error::{ErrorCode, Refusal};
use aip_protocol::name::{Did, Domain};
use futures_util::future::join_all;
use futures_util::stream::{self, StreamExt as _};

use super::batch::Push;
use super::lines::{Identities, Line, Rules, Stage, without_identity};
use super::{Inbound, ItemResult, PushAnswer, Reception, unavailable};
use crate::directory::Freshness;
use crate::limits::{ABOVE_PRESSURE, SENDER_LOOKUPS_AT_ONCE, SENDERS_RETRY_SECS};
use crate::peers::{Noted, PeerChange};

impl Inbound {
    /// Judges the items of a verified push. What is remembered of them is durable before the answer is there.
    pub(super) async fn judge(&self, peer: &Domain, push: Push) -> Result<PushAnswer, Refusal> {
        let epoch = push.epoch.clone();
        let (mut lines, window) = self.recall(peer, push).await?;
        self.ration(peer, &mut lines);
        let rules = Rules {
            peer: peer.clone(),
            own: self.policy.own.clone(),
            envelope_bytes_max: self.envelope_bytes_max,
            now: self.seams.clock.now(),
        };
        let admit = move || {
            lines
                .into_iter()
                .map(|line| line.admit(&rules))
                .collect::<Vec<_>>()
        };
        let mut lines = self.cpu.run(admit).await?;
        self.find_recipients(&mut lines).await;
        self.ration_senders(peer, &mut lines);
        let lines = self.verify(lines).await?;
        let mut lines = self.deliver(lines).await;
        if window.above >= ABOVE_PRESSURE {
            lines.iter_mut().for_each(give_way);
        }
        self.settle(peer, &epoch, &lines, window.floor).await
    }

    /// What is known of the items by their numbers.
    async fn recall(&self, peer: &Domain, push: Push) -> Result<(Vec<Line>, Window), Refusal> {
        let store = &self.seams.store;
        let (mut floor, above) = store.window(peer, &push.epoch).await.map_err(unavailable)?;
        if let Some(passed) = push.floor.filter(|passed| *passed > floor) {
            floor = store
                .pass_over(peer, &push.epoch, passed)
                .await
                .map_err(unavailable)?;
        }
        let seqs: Vec<u64> = push.items.iter().map(|item| item.seq).collect();
        let known = store.known(peer, &push.epoch, &seqs).await.map_err(unavailable)?;
        let lines = push.items.into_iter().zip(known);
        let lines = lines.map(|(item, known)| Line::new(item, known, floor)).collect();
        Ok((lines, Window { floor, above }))
    }

    /// New items use up the peer's budget; where it ends, the rest of the batch comes again.
    fn ration(&self, peer: &Domain, lines: &mut [Line]) {
        let wanted = lines.iter().filter(|line| line.is_new()).count();
        let wanted = u64::try_from(wanted).unwrap_or(u64::MAX);
        let (granted, after_secs) = self.gate.items(peer, wanted, self.seams.clock.now());
        let granted = usize::try_from(granted).unwrap_or(usize::MAX);
        let rest = lines.iter_mut().filter(|line| line.is_new()).skip(granted);
        rest.for_each(|line| {
            line.decide(Reception::Retry {
                code: ErrorCode::RateLimited,
                after_secs,
            });
        });
    }

    /// Who is nobody here is refused before anything is fetched for the item.
    async fn find_recipients(&self, lines: &mut [Line]) {
        let recipients: BTreeSet<Did> = lines
            .iter()
            .filter_map(Line::admitted)
            .map(|item| item.envelope.to.clone())
            .collect();
        let local = &self.seams.local;
        let known = recipients
            .iter()
            .map(|did| async move { (did, local.knows(did).await) });
        let known: BTreeMap<&Did, bool> = join_all(known).await.into_iter().collect();
        for line in lines {
            let is_unknown = line
                .admitted()
                .is_some_and(|item| known.get(&item.envelope.to) == Some(&false));
            if is_unknown {
                line.decide(Reception::Refused(ErrorCode::RecipientUnknown));
            }
        }
    }

    /// A new peer hands in mail of so many senders only.
    fn ration_senders(&self, peer: &Domain, lines: &mut [Line]) {
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

    /// The senders' own signatures, with the histories at hand; then once more with new ones, where those know no such key.
    async fn verify(&self, lines: Vec<Line>) -> Result<Vec<Line>, Refusal> {
        let senders = lines.iter().filter_map(Line::admitted);
        let senders: BTreeSet<Did> = senders.map(|item| item.envelope.from.clone()).collect();
        let identities = self.identities(senders, Freshness::Cached).await;
        let work = move || {
            let mut unknown = BTreeSet::new();
            let lines = lines.into_iter();
            let lines: Vec<Line> = lines
                .map(|line| line.verify(&identities, Some(&mut unknown)))
                .collect();
            (lines, unknown)
        };
        let (lines, unknown) = self.cpu.run(work).await?;
        if unknown.is_empty() {
            return Ok(lines);
        }
        let identities = self.identities(unknown, Freshness::Fresh).await;
        let work = move || {
            lines
                .into_iter()
                .map(|line| line.verify(&identities, None))
                .collect()
        };
        self.cpu.run(work).await
    }

    async fn identities(&self, senders: BTreeSet<Did>, freshness: Freshness) -> Identities {
        let find = |did: Did| async move {
            if freshness == Freshness::Fresh {
                self.counters.look();
            }
            let found = self.seams.senders.identity(&did, freshness).await;
            (did, found.map_err(|error| without_identity(&error)))
        };
        stream::iter(senders)
            .map(find)
            .buffer_unordered(SENDER_LOOKUPS_AT_ONCE)
            .collect()
            .await
    }

    /// Hands the verified items to this hub's agents: those of one pair in order, pairs side by side.
    async fn deliver(&self, lines: Vec<Line>) -> Vec<Line> {
        let mut pairs: BTreeMap<_, Vec<(usize, Line)>> = BTreeMap::new();
        for (place, line) in lines.into_iter().enumerate() {
            pairs.entry(line.pair.clone()).or_default().push((place, line));
        }
        let pairs = pairs.into_values().map(|lines| self.deliver_pair(lines));
        let mut lines: Vec<(usize, Line)> = join_all(pairs).await.into_iter().flatten().collect();
        lines.sort_by_key(|(place, _)| *place);
        lines.into_iter().map(|(_, line)| line).collect()
    }

    /// One after the other; once one has to come again, those after it do too.
    async fn deliver_pair(&self, mut lines: Vec<(usize, Line)>) -> Vec<(usize, Line)> {
        let mut retry = None;
        for (_, line) in &mut lines {
            let stage = std::mem::replace(&mut line.stage, Stage::Decided(Reception::Stored));
            line.stage = match (stage, retry) {
                (Stage::Verified(_), Some(retry)) => Stage::Decided(retry),
                (Stage::Verified(item), None) => {
                    Stage::Decided(self.seams.local.deliver(item, line.wire.clone()).await)
                }
                (stage, _) => stage,
            };
            // Items without a pair were decided before anybody could read whose they are.
            if line.is_retry() && line.pair.is_some() {
                retry = Some(line.reception());
            }
        }
        lines
    }

    /// Remembers what was decided, in one step, and answers.
    async fn settle(
        &self,
        peer: &Domain,
        epoch: &str,
        lines: &[Line],
        floor: u64,
    ) -> Result<PushAnswer, Refusal> {
        let store = &self.seams.store;
        let noted: Vec<Noted> = lines.iter().filter_map(Line::noted).collect();
        let acked_through = if noted.is_empty() {
            floor
        } else {
            store.note(peer, epoch, &noted).await.map_err(unavailable)?
        };
        let results = lines.iter().map(|line| ItemResult {
            peer_seq: line.seq,
            reception: line.reception(),
        });
        let answer = PushAnswer {
            results: results.collect(),
            acked_through,
        };
        self.counters.items(&answer);
        let now = self.seams.clock.now();
        if let Some(good_items) = self.gate.settled(peer, answer.tally(), now) {
            let change = PeerChange::CameIn { good_items };
            // The items are settled; that the peer grows a little later changes nothing about that.
            if let Err(error) = store.change(peer, change, now).await {
                tracing::warn!(error = %error, peer = %peer, "It was not noted that {peer} came in");
            }
        }
        Ok(answer)
    }
}

/// What is known of a peer's epoch.
#[derive(Debug, Clone, Copy)]
struct Window {
    floor: u64,
    above: u64,
}

/// While much is settled above it, an item is refused that would only wait for its own recipient or sender.
fn give_way(line: &mut Line) {
    if let Stage::Decided(Reception::Retry {
        code: code @ (ErrorCode::MailboxFull | ErrorCode::PeerFailed),
        ..
    }) = line.stage
    {
        line.decide(Reception::Refused(code));
    }
}

/// Judges in a task of its own, so that it ends whether or not the peer waits for the answer: items that were stored and not
/// noted would be stored again if the peer came back after their dedup records are gone.
pub(super) async fn judge_to_the_end(
    inbound: &Arc<Inbound>,
    peer: Domain,
    push: Push,
) -> Result<PushAnswer, Refusal> {
    let inbound = Arc::clone(inbound);
    let judged = tokio::spawn(async move { inbound.judge(&peer, push).await }).await;
    judged.unwrap_or_else(|error| {
        tracing::error!(error = %error, "Judging a push ended early");
        Err(Refusal::new(
            ErrorCode::OutcomeUnknown,
            "The hub cannot tell what became of the push; send it again.",
        ))
    })
}
