//! The second half of an attempt: where to, the push, and what became of it.

use std::collections::HashMap;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use aip_protocol::error::ErrorCode;
use aip_protocol::name::Domain;
use aip_protocol::time::Timestamp;
use tokio::time::timeout;

use super::answer::{Failure, FailureKind, ItemResult, Judgement, PEER_FAILED, bounded, judge};
use super::batch::{Sent, body};
use super::gather::Found;
use super::peer::{Pace, Peer};
use super::turn::Turn;
use super::{Backoff, Delivery, LookUpError, PeerFacts, own};
use crate::egress::{EgressError, Request, Response};
use crate::limits::{PUSH_PROMPT, PUSH_SLACK};
use crate::outbox::{Fate, OutboxItem};
use crate::peers::PeerChange;
use crate::schedule::Slot;
use crate::signing::below;

/// Messages that have left the outbox, and what kept others there.
#[derive(Default)]
pub(super) struct Settled {
    pub(super) left: Vec<u64>,
    pub(super) failure: Option<Failure>,
}

impl Delivery {
    /// One attempt, from the look at the outbox to the last word about what was sent.
    pub(super) async fn attempt(self: Arc<Self>, domain: Arc<Domain>, slot: Slot) {
        let mut turn = Turn::new(Arc::clone(&self), domain, slot);
        match self.gather(&mut turn).await {
            Ok(Found::Batch(items)) => self.push(&mut turn, items).await,
            Ok(Found::NotOurs) => {
                turn.ended(Peer::not_ours);
            }
            Ok(Found::Nothing) => self.rest(&mut turn).await,
            Err(failure) => turn.failed(&failure),
        }
    }

    async fn push(&self, turn: &mut Turn, items: Vec<OutboxItem>) {
        let seqs: Vec<u64> = items.iter().map(|item| item.peer_seq).collect();
        // What has left for good: a peer that was put back to an earlier state waits for none of it.
        let floor = self
            .seams
            .outbox
            .state(&turn.domain)
            .await
            .map_or(0, |state| state.floor);
        let body = body(
            self.seams.signer.domain(),
            &self.seams.outbox.epoch(),
            floor,
            &items,
        );
        let sent: Vec<Sent> = items.iter().map(Sent::of).collect();
        drop(items);
        turn.begin_push(seqs, body.len());
        let judgement = match self.facts(turn).await {
            Err(failure) => Judgement::Failed(failure),
            Ok(facts) => match below(&facts.hub, "federation/v1/messages") {
                None => Judgement::Failed(Failure::new(FailureKind::Away, PEER_FAILED, "url_invalid")),
                Some(url) => {
                    self.counters.pushed(sent.len());
                    let request = self.seams.signer.post(&url, &facts.names_itself, body);
                    judge(self.exchange(turn, request).await, self.now())
                }
            },
        };
        match judgement {
            Judgement::Results(results) => self.take_results(turn, sent, results).await,
            Judgement::Unfit { code, detail } => self.unfit(turn, sent, code, detail).await,
            Judgement::Failed(failure) => {
                self.counters.failed();
                turn.failed(&failure);
            }
        }
    }

    /// Whoever keeps the time limit: no push lasts longer.
    async fn exchange(&self, turn: &mut Turn, request: Request) -> Result<Response, EgressError> {
        let limits = self.config.push;
        let exchange = self.seams.exchange.exchange(request, limits);
        let mut exchange = pin!(timeout(limits.timeout + PUSH_SLACK, exchange));
        let answer = if let Ok(answer) = timeout(PUSH_PROMPT, &mut exchange).await {
            turn.with(|peer, _, _| peer.pace = Pace::Prompt);
            answer
        } else {
            turn.is_late();
            exchange.await
        };
        answer.unwrap_or(Err(EgressError::TimedOut))
    }

    async fn facts(&self, turn: &Turn) -> Result<PeerFacts, Failure> {
        let directory = &self.seams.directory;
        if turn.with(|peer, _, _| peer.takes_fresh()) == Some(true)
            && let Ok(facts) = directory.facts(&turn.domain, true).await
        {
            return Ok(facts);
        }
        // What is cached may be right although the document cannot be had at this moment.
        directory
            .facts(&turn.domain, false)
            .await
            .map_err(|error| match error {
                LookUpError::Blocked => Failure::new(
                    FailureKind::Policy,
                    ErrorCode::PeerBlocked.as_str(),
                    "blocked here",
                ),
                LookUpError::Frozen { code } => Failure::new(FailureKind::Policy, code, "frozen here"),
                LookUpError::Failed { detail, retry_after } => Failure {
                    retry_after: retry_after.map(bounded),
                    ..Failure::new(FailureKind::Away, PEER_FAILED, detail)
                },
                LookUpError::Unavailable => Failure::own("what is known of peers cannot be read"),
            })
    }

    /// The peer took the batch in. Its word is durable here before the next message of a pair goes out.
    async fn take_results(&self, turn: &mut Turn, sent: Vec<Sent>, mut results: HashMap<u64, ItemResult>) {
        let (mut fates, mut again) = (Vec::new(), Vec::new());
        for item in sent {
            match results.remove(&item.seq) {
                Some(ItemResult::Delivered) => fates.push((item, Fate::Delivered)),
                Some(ItemResult::Refused(code)) => fates.push((item, Fate::Refused(code))),
                Some(ItemResult::Retry { code, after }) => again.push((item.seq, code, after)),
                None => again.push((item.seq, None, None)),
            }
        }
        let settled = self.settle(&turn.domain, &fates).await;
        let is_news = turn.ended(|peer, now, chance| {
            let is_news = peer.succeeded(now);
            peer.ledger.got_through(settled.left, now);
            if let Some(failure) = &settled.failure {
                peer.failed(failure, 0, u64::MAX, now, chance);
            }
            defer(peer, &again, self.config.backoff, now, chance);
            is_news
        });
        if is_news == Some(true) {
            self.note_answer(&turn.domain).await;
        }
    }

    /// The batch as a whole was not taken: smaller ones tell which message is amiss. One that is alone has its answer.
    async fn unfit(&self, turn: &mut Turn, mut sent: Vec<Sent>, code: Option<String>, detail: String) {
        if sent.len() > 1 {
            turn.ended(|peer, _, _| peer.unfit(sent.len()));
            return;
        }
        let (Some(code), Some(item)) = (code, sent.pop()) else {
            let failure = Failure::new(FailureKind::Away, PEER_FAILED, detail);
            self.counters.failed();
            turn.failed(&failure);
            return;
        };
        let settled = self.settle(&turn.domain, &[(item, Fate::Refused(code))]).await;
        match settled.failure {
            Some(failure) => turn.failed(&failure),
            None => {
                turn.ended(|peer, now, _| peer.ledger.got_through(settled.left, now));
            }
        }
    }

    /// Tells senders, then takes messages out of the outbox. One whose sender could not be told stays.
    pub(super) async fn settle(&self, domain: &Domain, fates: &[(Sent, Fate)]) -> Settled {
        let mut settled = Settled::default();
        let mut told = Vec::with_capacity(fates.len());
        for (sent, fate) in fates {
            let bounced = match sent.bounce(fate) {
                Some(bounce) => self.seams.bounces.bounce(bounce).await,
                None => Ok(()),
            };
            match bounced {
                Ok(()) => told.push((sent.seq, fate.clone())),
                Err(error) => {
                    tracing::warn!(peer = %domain, id = %sent.id, %error, "A sender could not be told; the message stays");
                    settled.failure = Some(own(&error));
                }
            }
        }
        if told.is_empty() {
            return settled;
        }
        match self.seams.outbox.settle(domain, &told).await {
            Ok(()) => {
                for (_, fate) in &told {
                    self.counters.settled(fate);
                }
                settled.left = told.into_iter().map(|(seq, _)| seq).collect();
            }
            Err(error) => settled.failure = Some(own(&error)),
        }
        settled
    }

    async fn note_answer(&self, domain: &Domain) {
        let noted = self
            .seams
            .store
            .change(domain, PeerChange::WentOut, self.now())
            .await;
        if let Err(error) = noted {
            tracing::warn!(peer = %domain, %error, "That a peer answered was not noted");
        }
    }
}

/// Messages that the peer wants again: when it says, else later and later.
fn defer(
    peer: &mut Peer,
    again: &[(u64, Option<ErrorCode>, Option<Duration>)],
    backoff: Backoff,
    now: Timestamp,
    chance: u32,
) {
    let deferred: Vec<_> = again
        .iter()
        .map(|(seq, code, after)| {
            let tries = peer.ledger.tries(*seq).saturating_add(1);
            let pause = after.unwrap_or_else(|| backoff.pause(tries, chance));
            (*seq, now + pause, *code)
        })
        .collect();
    peer.ledger.defer(&deferred);
    let is_ahead = |code: &Option<ErrorCode>| *code == Some(ErrorCode::FutureCursor);
    if again.iter().any(|(_, code, _)| is_ahead(code)) {
        peer.ledger.hurry(now);
    }
}
