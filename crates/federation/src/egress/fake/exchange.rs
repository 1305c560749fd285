//! Other hubs, as a script: what each URL answers, what was asked.

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};

use aip_protocol::json::Json;
use async_trait::async_trait;
use bytes::Bytes;
use tokio::sync::watch;

use super::super::{EgressError, Exchange, Limits, Request, Response};

/// What becomes of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Told {
    /// This answer comes, unless its body is longer than the caller takes.
    Response(Response),
    /// No answer within the time limit; told at once, without waiting.
    TimedOut,
    /// Nobody listens there.
    NoConnection,
    /// The exchange begins and breaks off.
    Broken,
    /// The guard refuses to call the address.
    Refused,
    /// No answer, ever: the caller waits until it gives up.
    Hangs,
}

impl Told {
    /// An answer with a JSON body.
    pub fn json(status: u16, body: &Json) -> Self {
        Self::text(status, "application/json", body.to_string())
    }

    /// The problem document (RFC 9457) of a refusal with this code.
    pub fn problem(status: u16, code: &str) -> Self {
        let status_number = Json::Int(i64::from(status));
        let members = [
            ("type", Json::from("about:blank")),
            ("status", status_number),
            ("code", Json::from(code)),
        ];
        Self::text(
            status,
            "application/problem+json",
            Json::from(members).to_string(),
        )
    }

    /// An answer with any text.
    pub fn text(status: u16, content_type: &str, body: impl Into<String>) -> Self {
        Self::Response(Response {
            status,
            content_type: Some(content_type.to_owned()),
            body: Bytes::from(body.into()),
            ..Response::default()
        })
    }

    /// The same answer with `Cache-Control`.
    #[must_use]
    pub fn cached(mut self, cache_control: &str) -> Self {
        if let Self::Response(response) = &mut self {
            response.cache_control = Some(cache_control.to_owned());
        }
        self
    }

    /// The same answer with `Retry-After`.
    #[must_use]
    pub fn retry_after(mut self, value: &str) -> Self {
        if let Self::Response(response) = &mut self {
            response.retry_after = Some(value.to_owned());
        }
        self
    }
}

type Answering = Box<dyn Fn(&Request) -> Told + Send + Sync>;

/// How one URL answers.
enum Script {
    /// In order, the last one for ever.
    Replies(VecDeque<Told>),
    /// As the test computes it.
    Computed(Answering),
}

impl Script {
    fn next(&mut self, request: &Request) -> Told {
        let told = match self {
            Self::Replies(replies) if replies.len() > 1 => replies.pop_front(),
            Self::Replies(replies) => replies.front().cloned(),
            Self::Computed(answering) => Some(answering(request)),
        };
        told.unwrap_or(Told::NoConnection)
    }
}

/// An [`Exchange`] for tests. A request meets the script of its URL, else that of its URL without the query; where there is
/// none, nobody listens.
pub struct FakeExchange {
    scripts: Mutex<BTreeMap<String, Script>>,
    asked: Mutex<Vec<(Request, Limits)>>,
    held: watch::Sender<bool>,
}

impl Default for FakeExchange {
    fn default() -> Self {
        Self {
            scripts: Mutex::default(),
            asked: Mutex::default(),
            held: watch::Sender::new(false),
        }
    }
}

impl fmt::Debug for FakeExchange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FakeExchange").finish_non_exhaustive()
    }
}

impl FakeExchange {
    /// A world in which nobody listens.
    pub fn new() -> Self {
        Self::default()
    }

    /// From now on this URL gives these answers in order, the last one for ever.
    pub fn tell(&self, url: &str, replies: impl IntoIterator<Item = Told>) {
        let script = Script::Replies(replies.into_iter().collect());
        lock(&self.scripts).insert(url.to_owned(), script);
    }

    /// From now on this URL answers what `answering` makes of each request.
    pub fn compute(&self, url: &str, answering: impl Fn(&Request) -> Told + Send + Sync + 'static) {
        let script = Script::Computed(Box::new(answering));
        lock(&self.scripts).insert(url.to_owned(), script);
    }

    /// Requests are recorded from now on, and answered after [`FakeExchange::release`]. The answer is the one of that time.
    pub fn hold(&self) {
        self.held.send_replace(true);
    }

    /// Lets the answers go.
    pub fn release(&self) {
        self.held.send_replace(false);
    }

    /// Every request so far, in the order they came.
    pub fn asked(&self) -> Vec<Request> {
        lock(&self.asked)
            .iter()
            .map(|(request, _)| request.clone())
            .collect()
    }

    /// The limits that each request was made with.
    pub fn limits(&self) -> Vec<Limits> {
        lock(&self.asked).iter().map(|(_, limits)| *limits).collect()
    }

    /// How many requests went to this URL, with any query.
    pub fn count(&self, url: &str) -> usize {
        let is_it =
            |(request, _): &&(Request, Limits)| request.url == url || without_query(&request.url) == url;
        lock(&self.asked).iter().filter(is_it).count()
    }

    fn next(&self, request: &Request) -> Told {
        let mut scripts = lock(&self.scripts);
        let url = if scripts.contains_key(&request.url) {
            request.url.as_str()
        } else {
            without_query(&request.url)
        };
        scripts
            .get_mut(url)
            .map_or(Told::NoConnection, |script| script.next(request))
    }
}

fn without_query(url: &str) -> &str {
    url.split('?').next().unwrap_or(url)
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[async_trait]
impl Exchange for FakeExchange {
    async fn exchange(&self, request: Request, limits: Limits) -> Result<Response, EgressError> {
        lock(&self.asked).push((request.clone(), limits));
        let mut held = self.held.subscribe();
        // The sender lives as long as `self`, so this ends with the release.
        drop(held.wait_for(|held| !held).await);
        let bytes_max = limits.answer_bytes_max;
        match self.next(&request) {
            Told::Response(response) if response.body.len() > bytes_max => {
                Err(EgressError::AnswerTooLarge { bytes_max })
            }
            Told::Response(response) => Ok(response),
            Told::TimedOut => Err(EgressError::TimedOut),
            Told::NoConnection => Err(EgressError::ConnectFailed("nobody listens there".into())),
            Told::Broken => Err(EgressError::Broken("the test broke it off".into())),
            Told::Refused => Err(EgressError::AddressRefused([127, 0, 0, 1].into())),
            Told::Hangs => std::future::pending().await,
        }
    }
}
