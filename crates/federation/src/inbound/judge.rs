//! What becomes of the items of a push: each is judged on its own, in the order of the batch, cheap checks first.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use aip_protocol::error::{ErrorCode, Refusal};
use aip_protocol::name::{Did, Domain};
use futures_util::future::join_all;

use super::batch::Push;
use super::lines::{Line, Rules, Stage, Window};
use super::{Inbound, ItemResult, PushAnswer, Reception, Ticket, unavailable};
use crate::limits::{ABOVE_PRESSURE, PAIR_RETRY_SECS, PAIR_TIME};
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
        let window = Window { floor, above };
        let lines = push.items.into_iter().zip(known);
        let lines = lines
            .map(|(item, known)| Line::new(item, known, window))
            .collect();
        Ok((lines, window))
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

    /// One after the other; once one has to come again, or they took their time, those after it do too: a recipient whose
    /// endpoint is slow holds up its own mail alone, and the peer gets its answer while it waits for it.
    async fn deliver_pair(&self, mut lines: Vec<(usize, Line)>) -> Vec<(usize, Line)> {
        let clock = &self.seams.clock;
        let (mut retry, until) = (None, clock.now() + PAIR_TIME);
        for (_, line) in &mut lines {
            if retry.is_none() && clock.now() >= until {
                retry = Some(Reception::Retry {
                    code: ErrorCode::Unavailable,
                    after_secs: PAIR_RETRY_SECS,
                });
            }
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
/// noted would be stored again if the peer came back after their dedup records are gone. Until then the request keeps its
/// place.
pub(super) async fn judge_to_the_end(
    inbound: &Arc<Inbound>,
    ticket: Arc<Ticket>,
    push: Push,
) -> Result<PushAnswer, Refusal> {
    let inbound = Arc::clone(inbound);
    let judged = tokio::spawn(async move { inbound.judge(&ticket.domain, push).await }).await;
    judged.unwrap_or_else(|error| {
        tracing::error!(error = %error, "Judging a push ended early");
        Err(Refusal::new(
            ErrorCode::OutcomeUnknown,
            "The hub cannot tell what became of the push; send it again.",
        ))
    })
}
