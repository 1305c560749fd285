//! Calls that are followed: by events as they come, or begun now and asked for later.

use std::time::Duration;

use aip_protocol::sse::{Decoder, Event};
use aip_protocol::time::Timestamp;
use reqwest::header::CONTENT_TYPE;
use serde_json::Value;
use serde_json::value::RawValue;
use tokio::time::timeout;

use super::MARKET;
use super::invoke::{checked, may_repeat, read};
use crate::client::Client;
use crate::error::{Error, Result};
use crate::limits::{EVENT_BYTES_MAX, STREAM_IDLE_MAX};
use crate::market::{Call, CallEvent, Invoked, JobKey, JobState, Purse, Started};
use crate::transport::{Opened, Request, problem_of};
use crate::wire::encoded;

const FOLLOWING: &str = "following a call";
const SECRET: &str = "X-AIMarket-Job-Secret";
const EVENTS: &str = "text/event-stream";

/// Where a reader of events stands.
#[derive(Debug, Default)]
struct Place {
    job: Option<JobKey>,
    /// The number of the last word.
    last: u64,
}

/// How a stream of events ended.
enum Heard {
    /// With the answer.
    Answered(Box<Invoked>),
    /// With none: it may be asked for.
    BrokeOff(Error),
}

impl Client {
    /// As [`Client::invoke`], and hears of the call while it is under way. Where the line breaks, the call is found again by its
    /// job; what is said of it meanwhile may be missed, its answer is not.
    ///
    /// # Errors
    /// Those of [`Client::invoke`].
    pub async fn invoke_streamed(
        &self,
        call: &Call,
        purse: &Purse,
        mut hear: impl FnMut(CallEvent),
    ) -> Result<Invoked> {
        let key = self.key_of(call)?;
        let ends_at = self.now() + call.timeout;
        let mut place = Place::default();
        let opened = self
            .offered(call, purse, (&key, ends_at), |request| {
                request.header("Accept", format!("{EVENTS}, application/json;q=0.5"))
            })
            .await?;
        if !is_events(&opened) {
            return read(&opened.whole().await?, key);
        }
        let mut invoked = match self.listened(opened, &mut place, &mut hear).await? {
            Heard::Answered(invoked) => *invoked,
            Heard::BrokeOff(error) => match &place.job {
                Some(_) => self
                    .followed(&mut place, ends_at, &mut hear)
                    .await
                    .map_err(doubt(&key))?,
                None => return Err(doubt(&key)(error)),
            },
        };
        invoked.idempotency_key = key;
        Ok(invoked)
    }

    /// Begins a call, and does not wait for its answer ([`Client::wait_job`]). As with every call, the same one under the same
    /// key is made once: asked again it is told with the same job.
    ///
    /// # Errors
    /// Those of [`Client::invoke`] that come before the work.
    pub async fn start_call(&self, call: &Call, purse: &Purse) -> Result<Started> {
        let key = self.key_of(call)?;
        let ends_at = self.now() + call.timeout;
        let opened = self
            .offered(call, purse, (&key, ends_at), |request| {
                request.header("Prefer", "respond-async")
            })
            .await?;
        let is_later = opened.status() == reqwest::StatusCode::ACCEPTED;
        let answer = opened.whole().await?;
        if !is_later {
            return Ok(Started::Answered(Box::new(read(&answer, key)?)));
        }
        let state: JobState = answer.json()?;
        let job = state.key();
        job.map(Started::Job)
            .ok_or_else(|| Error::answer(FOLLOWING, "it does not say what opens the job"))
    }

    /// A job as it stands.
    ///
    /// # Errors
    /// [`Error::Refused`] with `job_not_found`, also for another secret and for one that ended a day ago.
    pub async fn job(&self, key: &JobKey) -> Result<JobState> {
        let ask = || Request::get("asking for a job", path(key)).header(SECRET, key.reveal());
        self.call_patiently(ask).await?.json()
    }

    /// Waits for the answer of a job, for so long, and hears of it meanwhile.
    ///
    /// # Errors
    /// [`Error::Refused`] with what the call was refused with (`provider_failed`, `job_cancelled`, `job_lost`, …), or with
    /// `job_not_found`; [`Error::Unreachable`] where the time was over first: the job goes on.
    pub async fn wait_job(
        &self,
        key: &JobKey,
        wait: Duration,
        mut hear: impl FnMut(CallEvent),
    ) -> Result<Invoked> {
        let ends_at = self.now() + wait;
        let mut place = Place {
            job: Some(key.clone()),
            last: 0,
        };
        self.followed(&mut place, ends_at, &mut hear).await
    }

    /// Ends a job of which nothing is wanted any more: nothing is charged then. The state that comes back says whether it was
    /// cancelled, or had ended before.
    ///
    /// # Errors
    /// [`Error::Refused`] with `job_not_found`, or `job_binding` for what another hub does.
    pub async fn cancel_job(&self, key: &JobKey) -> Result<JobState> {
        let ask = || Request::delete("cancelling a job", path(key), "{}").header(SECRET, key.reveal());
        self.call_patiently(ask).await?.json()
    }

    fn key_of(&self, call: &Call) -> Result<String> {
        match &call.idempotency_key {
            Some(key) => checked(key),
            None => Ok(self.entropy().message_id().hyphenated().to_string()),
        }
    }

    /// Offers a call until the hub has taken or refused it.
    async fn offered(
        &self,
        call: &Call,
        purse: &Purse,
        (key, ends_at): (&str, Timestamp),
        shaped: impl Fn(Request) -> Request,
    ) -> Result<Opened> {
        let (body, path) = (call.body(), format!("{MARKET}/invoke"));
        let (mut failures, mut may_have_arrived) = (0, false);
        loop {
            let request = Request::post(FOLLOWING, path.as_str(), body.clone())
                .header("Idempotency-Key", key)
                .timeout(left(ends_at, self.now()));
            let request = purse
                .headers()
                .into_iter()
                .fold(shaped(request), |request, (name, value)| {
                    request.header(name, value)
                });
            let error = match self.transport().open(request).await {
                Ok(opened) => return Ok(opened),
                Err(error) => error,
            };
            if !may_repeat(&error) {
                return Err(error);
            }
            may_have_arrived |= error.leaves_doubt();
            failures += 1;
            if !self.pause(failures, &error, ends_at).await {
                return Err(if may_have_arrived {
                    doubt(key)(error)
                } else {
                    error
                });
            }
        }
    }

    /// Follows a job to its end, by a new stream whenever one breaks off.
    async fn followed(
        &self,
        place: &mut Place,
        ends_at: Timestamp,
        hear: &mut impl FnMut(CallEvent),
    ) -> Result<Invoked> {
        let Some(key) = place.job.clone() else {
            return Err(Error::Closed);
        };
        let mut failures = 0;
        loop {
            let before = place.last;
            let request = Request::get(FOLLOWING, format!("{}/events", path(&key)))
                .header(SECRET, key.reveal())
                .header("Last-Event-ID", place.last.to_string())
                .timeout(left(ends_at, self.now()));
            let error = match self.transport().open(request).await {
                Ok(opened) if is_events(&opened) => match self.listened(opened, place, hear).await? {
                    Heard::Answered(invoked) => return Ok(*invoked),
                    Heard::BrokeOff(error) => error,
                },
                Ok(_) => return Err(Error::answer(FOLLOWING, "it is no stream of events")),
                Err(error) if error.is_transient() => error,
                Err(error) => return Err(error),
            };
            failures = if place.last > before { 1 } else { failures + 1 };
            if !self.pause(failures, &error, ends_at).await {
                return Err(late(error));
            }
        }
    }

    /// Reads events up to the answer.
    async fn listened(
        &self,
        mut opened: Opened,
        place: &mut Place,
        hear: &mut impl FnMut(CallEvent),
    ) -> Result<Heard> {
        let mut decoder = Decoder::new(EVENT_BYTES_MAX);
        loop {
            // A hub says something every few seconds, if only that it is there.
            let piece = match timeout(STREAM_IDLE_MAX, opened.chunk()).await {
                Ok(Ok(Some(piece))) => piece,
                Ok(Ok(None)) | Err(_) => return Ok(Heard::BrokeOff(Error::Closed)),
                Ok(Err(error)) => return Ok(Heard::BrokeOff(error)),
            };
            let events = decoder.push(&piece);
            for event in events.map_err(|error| Error::answer(FOLLOWING, error))? {
                if let Some(invoked) = place.take(&event, hear)? {
                    return Ok(Heard::Answered(Box::new(invoked)));
                }
            }
        }
    }
}

impl Place {
    /// Takes one event; the answer, if it is that. Events that are not known say nothing.
    fn take(&mut self, event: &Event, hear: &mut impl FnMut(CallEvent)) -> Result<Option<Invoked>> {
        match event.name.as_str() {
            "job" => {
                let state: JobState = json(&event.data)?;
                if let (None, Some(key)) = (&self.job, state.key()) {
                    self.job = Some(key.clone());
                    hear(CallEvent::Began(key));
                }
            }
            "progress" => hear(CallEvent::Progress {
                number: self.numbered(event),
                data: json(&event.data)?,
            }),
            "chunk" => hear(CallEvent::Chunk {
                number: self.numbered(event),
                data: json(&event.data)?,
            }),
            "result" => return Ok(Some(json(&event.data)?)),
            "error" => return Err(refused(&event.data)),
            _ => {}
        }
        Ok(None)
    }

    fn numbered(&mut self, event: &Event) -> u64 {
        let number = event.id.as_deref().and_then(|id| id.parse().ok());
        self.last = number.unwrap_or(self.last);
        self.last
    }
}

impl JobState {
    /// What the call was answered, once it has ended: an error is what it was refused with. `None` while it is under way, and
    /// where its answer is not kept any more.
    pub fn outcome(&self) -> Option<Result<Invoked>> {
        let (status, answer) = (self.answer_status?, self.answer.as_ref()?);
        Some(if status == 200 {
            json(answer.get())
        } else {
            Err(refusal(status, answer))
        })
    }
}

fn json<T: serde::de::DeserializeOwned>(text: &str) -> Result<T> {
    serde_json::from_str(text).map_err(|error| Error::answer(FOLLOWING, error))
}

/// The refusal of an event, which names its status.
fn refused(data: &str) -> Error {
    let body: Value = serde_json::from_str(data).unwrap_or_default();
    let status = body.get("status").and_then(Value::as_u64);
    let status = status
        .and_then(|status| u16::try_from(status).ok())
        .unwrap_or(502);
    Error::Refused(Box::new(problem_of(status, data.as_bytes())))
}

fn refusal(status: u16, answer: &RawValue) -> Error {
    Error::Refused(Box::new(problem_of(status, answer.get().as_bytes())))
}

/// A hub that has no time to tell of a call has not refused it: the call goes on.
fn late(last: Error) -> Error {
    match last {
        Error::Refused(_) => Error::unreachable(FOLLOWING, last.sentence()),
        last => last,
    }
}

/// It may have been carried out: the same key tells.
fn doubt(key: &str) -> impl FnOnce(Error) -> Error {
    let key = key.to_owned();
    |last| match last {
        Error::Unreachable { .. } | Error::Closed => Error::CallUnknown {
            key,
            last: Box::new(last),
        },
        last if may_repeat(&last) => Error::CallUnknown {
            key,
            last: Box::new(last),
        },
        last => last,
    }
}

fn path(key: &JobKey) -> String {
    format!("{MARKET}/jobs/{}", encoded(key.id()))
}

fn left(ends_at: Timestamp, now: Timestamp) -> Duration {
    let millis = u64::try_from(ends_at.millis_since(now)).unwrap_or(0);
    Duration::from_millis(millis.max(1))
}

fn is_events(opened: &Opened) -> bool {
    let content_type = opened.headers().get(CONTENT_TYPE);
    content_type
        .and_then(|value| value.to_str().ok())
        .is_some_and(|text| text.to_ascii_lowercase().starts_with(EVENTS))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(name: &str, id: Option<&str>, data: &str) -> Event {
        Event {
            name: name.to_owned(),
            id: id.map(str::to_owned),
            data: data.to_owned(),
        }
    }

    #[test]
    fn events_say_where_a_call_stands_and_how_it_ends() {
        let (mut place, mut heard) = (Place::default(), Vec::new());
        let mut hear = |event| heard.push(event);
        for event in [
            event(
                "job",
                None,
                r#"{"job_id":"j1","status":"running","job_secret":"s"}"#,
            ),
            event("progress", Some("1"), r#"{"done":0.5}"#),
            event("moon", Some("1"), "full"),
            event("chunk", Some("7"), r#""Once""#),
        ] {
            assert!(place.take(&event, &mut hear).unwrap().is_none());
        }
        let end = event(
            "result",
            None,
            r#"{"result":{"a":1},"receipt":{"price_usd":1e-05},"price_usd":0.01}"#,
        );
        let invoked = place.take(&end, &mut hear).unwrap().unwrap();
        assert_eq!(invoked.result, serde_json::json!({"a": 1}));
        assert_eq!(invoked.receipt.unwrap().get(), r#"{"price_usd":1e-05}"#);
        assert_eq!(
            heard,
            [
                CallEvent::Began(JobKey::new("j1", "s").unwrap()),
                CallEvent::Progress {
                    number: 1,
                    data: serde_json::json!({"done": 0.5})
                },
                CallEvent::Chunk {
                    number: 7,
                    data: "Once".into()
                },
            ]
        );
        assert_eq!(place.last, 7);
    }

    #[test]
    fn a_refusal_has_its_code_and_its_status() {
        let data =
            r#"{"success":false,"error":"provider_failed","detail":"No.","reason":"refused","status":502}"#;
        let refused = Place::default().take(&event("error", None, data), &mut |_| ());
        let error = refused.unwrap_err();
        let problem = error.problem().unwrap();
        assert_eq!((problem.code.as_str(), problem.status), ("provider_failed", 502));
        for (name, data) in [("result", "{"), ("progress", "x"), ("job", "[]")] {
            let odd = Place::default().take(&event(name, None, data), &mut |_| ());
            assert!(matches!(odd, Err(Error::Answer { .. })), "{name}");
        }
    }

    #[test]
    fn a_hub_without_time_has_not_refused_the_call() {
        let busy = Error::Refused(Box::new(problem_of(503, br#"{"error":"unavailable"}"#)));
        let error = late(busy);
        assert!(matches!(error, Error::Unreachable { .. }) && error.problem().is_none());
        assert!(matches!(late(Error::Closed), Error::Closed));
    }

    #[test]
    fn a_job_that_has_ended_has_an_outcome() {
        let state = |text: &str| serde_json::from_str::<JobState>(text).unwrap();
        assert!(state(r#"{"job_id":"j","status":"running"}"#).outcome().is_none());
        let good = state(r#"{"job_id":"j","status":"succeeded","answer_status":200,"answer":{"result":1}}"#);
        assert_eq!(good.outcome().unwrap().unwrap().result, 1);
        let bad = state(
            r#"{"job_id":"j","status":"cancelled","answer_status":409,"answer":{"success":false,"error":"job_cancelled"}}"#,
        );
        let error = bad.outcome().unwrap().unwrap_err();
        assert_eq!(error.problem().unwrap().code, "job_cancelled");
    }
}
