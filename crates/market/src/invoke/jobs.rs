//! Calls that are followed: what the provider says while it works, the answer for who comes back later, and an end before the
//! end. A job is an invocation under its own id. What is kept of it is what is kept of every call, so that a job outlives its
//! process as far as a call does: it is given up, nothing is charged, and who asks is told.

mod told;

use std::fmt;
use std::sync::Arc;

use aip_protocol::name::Did;
use aip_protocol::time::Timestamp;
use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq as _;
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::{sleep, timeout};
use uuid::Uuid;

use super::answer::{Failure, cancelled};
use super::run::{Plan, joined, repetition};
use super::{Intake, InvokeCall, Invoked};
use crate::credential::{JOB_SECRET_PREFIX, Secret};
use crate::limits::{CANCEL_GRACE, CANCEL_LOOK_INTERVAL, JOB_LOOK_INTERVAL};
use crate::market::Market;
use crate::money::Usd;
use crate::offer::Offer;
use crate::progress::{Follower, Next, Track, Word};
use crate::refusal::{MarketCode, MarketError, MarketRefusal};
use crate::store::{Answer, Begun, Finish, Idempotency, Invocation, InvocationStatus, Outcome, Purse};

/// What a caller shows to look at a job: the job's own secret, or what pays it.
#[derive(Clone, Default)]
pub struct JobShown {
    /// `X-AIMarket-Job-Secret`.
    pub secret: Option<String>,
    /// `X-API-Key`.
    pub api_key: Option<String>,
    /// `X-Payment-Channel`.
    pub channel: Option<String>,
    /// `X-Payment-Channel-Secret`.
    pub channel_secret: Option<String>,
}

/// Says what there is, and no secret.
impl fmt::Debug for JobShown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("JobShown")
            .field("secret", &self.secret.is_some())
            .field("api_key", &self.api_key.is_some())
            .field("channel", &self.channel)
            .finish_non_exhaustive()
    }
}

/// A job as it stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Job {
    /// Its invocation.
    pub id: Uuid,
    /// Who does the work.
    pub agent: Did,
    /// AIMarket's id.
    pub product_id: String,
    /// AIMarket's id.
    pub capability_id: String,
    /// When it began.
    pub started_at: Timestamp,
    /// How far it is.
    pub stage: JobStage,
    /// The headers of its answer, about payment, as long as this process remembers them.
    pub headers: Vec<(&'static str, String)>,
}

/// How far a job is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum JobStage {
    /// It is under way; the last word of its provider, where this process makes it.
    Running(Option<Word>),
    /// It has ended: this is what a call is answered that is not followed.
    Ended(Answer),
}

/// What came of a call that is to be followed, for the door and for its metrics.
#[derive(Debug)]
pub struct JobReport {
    /// What was invoked, where it is known.
    pub offer: Option<Arc<Offer>>,
    /// What there is to follow.
    pub answer: Result<Followed, MarketError>,
}

/// What there is to follow.
#[derive(Debug)]
pub enum Followed {
    /// Nothing: this is what the same call was answered before.
    Answered(Invoked),
    /// A call that is under way.
    Job(JobHandle),
}

/// A call that is under way, in the hand of its buyer.
#[derive(Debug)]
pub struct JobHandle {
    /// As it stands.
    pub job: Job,
    /// What opens it.
    pub secret: Secret,
    /// Whether this very request began it; else it is a repetition of the one that did.
    pub is_begun: bool,
    follower: Option<Follower>,
}

impl JobHandle {
    /// Waits for its end; `None` where this process does not make it.
    pub async fn end(&mut self) -> Option<Invoked> {
        self.follower.as_mut()?.end().await
    }
}

/// A place among the streams of events, which is taken before anything is begun.
#[derive(Debug)]
pub struct StreamPlace(#[expect(dead_code, reason = "given back when it is dropped")] OwnedSemaphorePermit);

/// What comes next in a stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum JobEvent {
    /// A word of the provider.
    Word(Word),
    /// The end.
    Ended(Invoked),
    /// Its answer is not kept any more.
    Gone,
}

/// The events of a job, as fast as they are taken.
#[derive(Debug)]
pub struct JobFeed {
    market: Arc<Market>,
    id: Uuid,
    /// Where this process makes it.
    follower: Option<Follower>,
    _place: StreamPlace,
}

impl JobFeed {
    /// What comes next. May be dropped at any moment, and nothing is missed by that. A job that another process makes is
    /// looked at every [`JOB_LOOK_INTERVAL`].
    pub async fn next(&mut self) -> JobEvent {
        if let Some(follower) = &mut self.follower {
            match follower.next().await {
                Next::Word(word) => return JobEvent::Word(word),
                Next::Ended(invoked) => return JobEvent::Ended(invoked),
                Next::Lost => self.follower = None,
            }
        }
        loop {
            match self.market.find_job(self.id).await {
                Ok((job, _purse)) => {
                    if let JobStage::Ended(answer) = job.stage {
                        return JobEvent::Ended(answer.into());
                    }
                }
                Err(MarketError::Refused(_)) => return JobEvent::Gone,
                // It may be there again at the next look.
                Err(MarketError::Store(_)) => {}
            }
            sleep(JOB_LOOK_INTERVAL).await;
        }
    }
}

impl Market {
    /// Begins a call that somebody follows. Like every call it goes on to its end, whoever goes away.
    pub async fn invoke_followed(self: &Arc<Self>, call: InvokeCall) -> JobReport {
        let mut offer = None;
        let answer = self.followed(call, &mut offer).await;
        if let Err(MarketError::Store(error)) = &answer {
            tracing::warn!(%error, "an invocation fails");
        }
        JobReport { offer, answer }
    }

    async fn followed(
        self: &Arc<Self>,
        call: InvokeCall,
        sold: &mut Option<Arc<Offer>>,
    ) -> Result<Followed, MarketError> {
        let plan = match self.look_at(call, sold, true).await? {
            Intake::Call(plan) => plan,
            Intake::Repetition(Begun::Running(id)) => return self.under_way_already(id).await,
            Intake::Repetition(begun) => return repetition(begun).map(Followed::Answered),
        };
        let track = Arc::clone(&plan.track);
        let job = Job {
            id: plan.id,
            agent: plan.offer.agent.clone(),
            product_id: plan.offer.product_id.clone(),
            capability_id: plan.offer.capability_id.clone(),
            started_at: self.seams.clock.now(),
            stage: JobStage::Running(None),
            headers: Vec::new(),
        };
        let work = self.set_going(*plan)?;
        tokio::select! {
            biased;
            () = track.begun() => Ok(Followed::Job(JobHandle {
                secret: self.job_secret(job.id),
                job,
                is_begun: true,
                follower: Some(track.follow(0)),
            })),
            // It was not begun: it is refused, or was asked before after all.
            made = work => joined(made).map(Followed::Answered),
        }
    }

    /// Who asks the same once more is its buyer, and may have lost the first answer.
    async fn under_way_already(&self, id: Uuid) -> Result<Followed, MarketError> {
        let (job, _purse) = self.find_job(id).await?;
        Ok(Followed::Job(JobHandle {
            secret: self.job_secret(id),
            job,
            is_begun: false,
            follower: self.board.find(id).map(|track| track.follow(0)),
        }))
    }

    /// A place for a stream of events.
    ///
    /// # Errors
    /// `unavailable`: there are [`crate::limits::FOLLOWERS_MAX`].
    pub fn take_stream(&self) -> Result<StreamPlace, MarketError> {
        let full = |_full| {
            let detail = "Too many calls are being followed. Poll, or try again.";
            MarketRefusal::new(MarketCode::Unavailable, detail).retry_after(1)
        };
        let permit = Arc::clone(&self.followers).try_acquire_owned();
        Ok(permit.map(StreamPlace).map_err(full)?)
    }

    /// The events of a job that the caller has opened, from behind the word of this number.
    pub fn feed(self: &Arc<Self>, id: Uuid, after: u64, place: StreamPlace) -> JobFeed {
        JobFeed {
            market: Arc::clone(self),
            id,
            follower: self.board.find(id).map(|track| track.follow(after)),
            _place: place,
        }
    }

    /// A job as it stands, for who may look at it.
    ///
    /// # Errors
    /// `job_not_found`, the same for no such job and for one that is not opened by what is shown; `job_secret_required`;
    /// `invalid_api_key`, `channel_not_found` and the like of a purse that is none.
    pub async fn open_job(&self, id: &str, shown: &JobShown) -> Result<Job, MarketError> {
        let id = Uuid::try_parse(id).map_err(|_other| unknown())?;
        if let Some(secret) = &shown.secret {
            let secret = Secret::shown(JOB_SECRET_PREFIX, secret).ok_or_else(unknown)?;
            if !bool::from(secret.hash().ct_eq(&self.job_secret(id).hash())) {
                return Err(unknown().into());
            }
            return Ok(self.find_job(id).await?.0);
        }
        let purse = self.purse_shown(shown).await?;
        let (job, payer) = self.find_job(id).await?;
        let is_payer = match (&purse, &payer) {
            (Purse::Account { account, .. }, Some(Purse::Account { account: payer, .. })) => account == payer,
            (Purse::Channel(channel), Some(Purse::Channel(payer))) => channel == payer,
            _ => false,
        };
        if is_payer { Ok(job) } else { Err(unknown().into()) }
    }

    async fn purse_shown(&self, shown: &JobShown) -> Result<Purse, MarketError> {
        if let Some(key) = &shown.api_key {
            let (key, account) = self.account_of_key(key).await?;
            let (account, key) = (account.id, key.id);
            return Ok(Purse::Account { account, key });
        }
        let Some(channel) = &shown.channel else {
            let detail =
                "Send the job's secret as X-AIMarket-Job-Secret, or the key or channel that pays it.";
            return Err(MarketRefusal::new(MarketCode::JobSecretRequired, detail).into());
        };
        let secret = shown.channel_secret.as_deref();
        Ok(Purse::Channel(self.channel_of_secret(channel, secret).await?.id))
    }

    /// A job, and what pays it. What this process remembers of it is more than what is kept.
    async fn find_job(&self, id: Uuid) -> Result<(Job, Option<Purse>), MarketError> {
        let found = self.seams.store.invocation(id).await?;
        let found = found.ok_or_else(unknown)?;
        let track = self.board.find(id);
        let mut remembered = track.as_ref().and_then(|track| track.ended());
        let headers = remembered
            .as_mut()
            .map(|invoked| std::mem::take(&mut invoked.headers));
        let stage = match (remembered, found.status) {
            (Some(Invoked { status, body, .. }), _) => JobStage::Ended(Answer { status, body }),
            (None, InvocationStatus::Started | InvocationStatus::Settling) => {
                JobStage::Running(track.and_then(|track| track.latest()))
            }
            (None, InvocationStatus::Finished) => JobStage::Ended(found.answer.ok_or_else(forgotten)?),
            (None, InvocationStatus::Abandoned) => JobStage::Ended(lost(&found)),
        };
        let job = Job {
            id,
            agent: found.agent,
            product_id: found.product_id,
            capability_id: found.capability_id,
            started_at: found.started_at,
            stage,
            headers: headers.unwrap_or_default(),
        };
        Ok((job, found.purse))
    }

    /// Ends a job of which nothing is wanted any more, if it has not ended: then nothing is charged, and its provider is told
    /// as far as that can be. How it stands afterwards says which of the two it was.
    ///
    /// # Errors
    /// Those of [`Self::open_job`]; `job_binding` for a call of what another hub sells.
    pub async fn cancel_job(&self, id: &str, shown: &JobShown) -> Result<Job, MarketError> {
        let job = self.open_job(id, shown).await?;
        if matches!(job.stage, JobStage::Ended(_)) {
            return Ok(job);
        }
        if job.agent.domain().as_str() != self.config.domain {
            let detail =
                "Another hub does this work, and is paid for it whoever goes away: it goes on to its end.";
            return Err(MarketRefusal::new(MarketCode::JobBinding, detail).into());
        }
        let answer = cancelled(&job.product_id, &job.capability_id);
        let finish = Finish {
            outcome: Outcome::Cancelled,
            answer: answer.clone(),
            receipt: None,
        };
        if self.finish(job.id, finish).await
            && let Some(track) = self.board.find(job.id)
        {
            track.end(answer.into());
            track.cancelled.cancel();
        }
        Ok(self.find_job(job.id).await?.0)
    }

    /// The work of a provider, unless its buyer cancels it: here, or at another process.
    pub(super) async fn unless_cancelled<T>(
        &self,
        track: &Track,
        work: impl Future<Output = T>,
    ) -> Result<T, Failure> {
        tokio::pin!(work);
        tokio::select! {
            biased;
            done = &mut work => return Ok(done),
            () = self.is_cancelled(track) => {}
        }
        // The client of the provider tells it, which takes a moment.
        drop(timeout(CANCEL_GRACE, work).await);
        Err(Failure::Cancelled)
    }

    async fn is_cancelled(&self, track: &Track) {
        while timeout(CANCEL_LOOK_INTERVAL, track.cancelled.cancelled())
            .await
            .is_err()
        {
            let found = self.seams.store.invocation(track.id).await;
            let is_ended = matches!(
                found,
                Ok(Some(Invocation {
                    status: InvocationStatus::Finished,
                    ..
                }))
            );
            if is_ended {
                track.cancelled.cancel();
            }
        }
    }

    /// What a call was answered that ended otherwise meanwhile: its buyer cancelled it.
    pub(super) async fn ended_otherwise(&self, plan: &Plan) -> Option<Invoked> {
        let found = self.seams.store.invocation(plan.id).await.ok()??;
        if found.status != InvocationStatus::Finished {
            return None;
        }
        // Of a call that keeps no answer only who pays it can have cancelled it.
        let is_unpaid = found.purse.is_some() && found.charged == Usd::ZERO;
        let unkept = || is_unpaid.then(|| cancelled(&found.product_id, &found.capability_id));
        found.answer.clone().or_else(unkept).map(Invoked::from)
    }

    /// What opens a job: it follows from the hub's key, so that nothing of it is kept, and every process knows it.
    fn job_secret(&self, id: Uuid) -> Secret {
        Secret::of_job(&self.seams.key, id)
    }
}

/// What keeps the answer of a call whose caller chose no key.
pub(super) fn unnamed(id: Uuid, body: [u8; 32]) -> Idempotency {
    let mut hash = Sha256::new();
    hash.update(b"job");
    hash.update(id.as_bytes());
    Idempotency {
        key: hash.finalize().into(),
        body,
    }
}

fn unknown() -> MarketRefusal {
    let detail = "There is no job with this id that is opened by what you show.";
    MarketRefusal::new(MarketCode::JobUnknown, detail)
}

fn forgotten() -> MarketRefusal {
    let detail = "This job has ended, and its answer is not kept any more.";
    MarketRefusal::new(MarketCode::JobUnknown, detail)
}

/// The answer of a call whose process was lost.
fn lost(found: &Invocation) -> Answer {
    let detail = "The hub lost this call in the middle; nothing was charged. Call again.";
    let refusal = MarketRefusal::new(MarketCode::JobLost, detail)
        .with("product_id", found.product_id.as_str())
        .with("capability_id", found.capability_id.as_str());
    Answer {
        status: refusal.code.status(),
        body: refusal.body().to_string().into(),
    }
}
