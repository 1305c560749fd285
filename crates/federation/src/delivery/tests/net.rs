//! Hubs that keep the receiving side of spec §8, and can be told to fail.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use aip_protocol::clock::Clock;
use aip_protocol::http_signature::{SignedRequest, Target};
use aip_protocol::json::Json;
use aip_protocol::multikey::SigningKey;
use aip_protocol::name::Domain;
use aip_protocol::peer::Batch;
use aip_protocol::time::Timestamp;
use async_trait::async_trait;
use bytes::Bytes;
use tokio::time::sleep;
use url::Url;

use super::world::{JumpingClock, domain};
use crate::egress::{EgressError, Exchange, Limits, Request, Response};
use crate::limits::{ABOVE_FAR_MAX, ABOVE_NEAR_MAX, ABOVE_PRESSURE};

/// What a hub does with one push.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Act {
    /// Takes it in and says so.
    Answer,
    /// Takes it in, and the answer is lost.
    LoseAnswer,
    /// Takes nothing in and says this.
    Say(u16, &'static str, &'static str),
    /// The same, with `Retry-After`.
    SayLater(u16, &'static str),
    /// Says of these items that it wants them again; takes in the others.
    WantAgain(Vec<u64>, Option<u64>),
    /// Says nothing about the last items of the batch, and has not taken them.
    Forget(usize),
    /// No connection.
    Refuse,
    /// Never answers.
    Hang,
}

/// One hub of the world: keeps what came in as spec §8 says.
#[derive(Debug, Default)]
pub(super) struct Hub {
    known: HashSet<u64>,
    /// Everything up to here has left the sender's outbox, it says.
    floor: u64,
    /// What was stored, in order.
    pub(super) stored: Vec<u64>,
    /// Items of each push, with the moment it came.
    pub(super) pushes: Vec<(Timestamp, Vec<u64>)>,
    /// What it does next, in order; afterwards `always`.
    pub(super) script: VecDeque<Act>,
    pub(super) always: Option<Act>,
    pub(super) refuses: HashMap<u64, &'static str>,
    /// Items for which their recipient's mailbox has no room.
    pub(super) full: HashSet<u64>,
    /// Whether it settles no more than a window holds, and refuses what is in the way, as this hub does.
    pub(super) has_window: bool,
    /// Everything up to here is settled.
    acked_through: u64,
    /// A batch with this item is no batch.
    pub(super) chokes_on: Option<u64>,
    pub(super) delay: Duration,
    pub(super) busy: usize,
    pub(super) busy_most: usize,
}

impl Hub {
    fn next(&mut self, items: &[u64]) -> Act {
        if self.chokes_on.is_some_and(|seq| items.contains(&seq)) {
            return Act::Say(400, "application/problem+json", r#"{"code":"member_invalid"}"#);
        }
        let scripted = self.script.pop_front();
        scripted.or_else(|| self.always.clone()).unwrap_or(Act::Answer)
    }

    /// Nothing up to there is taken in any more.
    fn pass_over(&mut self, floor: u64) {
        self.known.extend(self.floor + 1..=floor);
        self.floor = self.floor.max(floor);
    }

    /// Up to where numbers are near, and how many are settled above the contiguous part.
    fn window(&mut self) -> (u64, u64) {
        while self.known.contains(&(self.acked_through + 1)) {
            self.acked_through += 1;
        }
        let above = self.known.len() as u64 - self.acked_through;
        (self.acked_through + ABOVE_NEAR_MAX, above)
    }

    fn take(&mut self, seq: u64) -> Json {
        let (near, above) = self.window();
        let is_full = self.full.contains(&seq) && !self.known.contains(&seq);
        let status = if self.refuses.contains_key(&seq) {
            "refused"
        } else if self.has_window && seq > near && above >= ABOVE_FAR_MAX {
            return wanted_again(seq, "future_cursor");
        } else if is_full && self.has_window && above >= ABOVE_PRESSURE {
            self.known.insert(seq);
            self.refuses.insert(seq, "mailbox_full");
            "refused"
        } else if is_full {
            return wanted_again(seq, "mailbox_full");
        } else if self.known.insert(seq) {
            self.stored.push(seq);
            "stored"
        } else {
            "duplicate"
        };
        let code = self.refuses.get(&seq);
        let code = code.map_or(Json::Null, |code| Json::from(*code));
        Json::from([
            ("peer_seq", number(seq)),
            ("status", Json::from(status)),
            ("code", code),
        ])
    }
}

fn wanted_again(seq: u64, code: &str) -> Json {
    let status = Json::from("retry");
    Json::from([
        ("peer_seq", number(seq)),
        ("status", status),
        ("code", Json::from(code)),
    ])
}

fn number(value: u64) -> Json {
    Json::Int(i64::try_from(value).unwrap())
}

/// The way to the hubs. Every push is verified as a receiving hub would.
#[derive(Debug)]
pub(super) struct Net {
    pub(super) hubs: Mutex<HashMap<Domain, Hub>>,
    pub(super) clock: Arc<JumpingClock>,
}

impl Net {
    /// The items of a push, and its floor.
    fn verified(&self, request: &Request) -> (Vec<u64>, u64) {
        let fields: Vec<(&str, &str)> = request
            .headers
            .iter()
            .map(|(name, value)| (*name, value.as_str()))
            .collect();
        let signed = SignedRequest::parse(&fields, true, self.clock.now()).unwrap();
        let target = Target::of_url("POST", &Url::parse(&request.url).unwrap());
        let keys = [SigningKey::from_seed([7; 32]).public().clone()];
        signed
            .verify(&target, &fields, Some(&request.body), &keys)
            .unwrap();
        assert!(
            request.body.len() <= crate::limits::BATCH_BYTES_MAX,
            "{}",
            request.body.len()
        );
        let body = Json::parse(&request.body).unwrap();
        let floor = body.get("floor").and_then(Json::as_int).unwrap();
        let batch = Batch::from_json(&body, signed.claimed_domain()).unwrap();
        let items = batch.items.iter().map(|item| item.peer_seq).collect();
        (items, u64::try_from(floor).unwrap())
    }

    fn with<R>(&self, peer: &Domain, with: impl FnOnce(&mut Hub) -> R) -> R {
        with(self.hubs.lock().unwrap().entry(peer.clone()).or_default())
    }
}

fn text(status: u16, content_type: &str, body: &str) -> Response {
    Response {
        status,
        content_type: Some(content_type.to_owned()),
        body: Bytes::copy_from_slice(body.as_bytes()),
        ..Response::default()
    }
}

#[async_trait]
impl Exchange for Net {
    async fn exchange(&self, request: Request, _limits: Limits) -> Result<Response, EgressError> {
        let url = Url::parse(&request.url).unwrap();
        assert_eq!(url.path(), "/base/federation/v1/messages");
        let peer = domain(url.host_str().unwrap().strip_prefix("hub.").unwrap());
        let (items, floor) = self.verified(&request);
        let now = self.clock.now();
        let (act, delay) = self.with(&peer, |hub| {
            hub.pushes.push((now, items.clone()));
            hub.busy += 1;
            hub.busy_most = hub.busy_most.max(hub.busy);
            (hub.next(&items), hub.delay)
        });
        sleep(delay).await;
        let take = |items: &[u64]| {
            self.with(&peer, |hub| {
                hub.pass_over(floor);
                items.iter().map(|seq| hub.take(*seq)).collect::<Vec<Json>>()
            })
        };
        let results = |results: Vec<Json>| {
            let answer = Json::from([("results", Json::Array(results)), ("acked_through", number(0))]);
            Ok(text(200, "application/json", &answer.to_string()))
        };
        let answer = match act {
            Act::Answer => results(take(&items)),
            Act::LoseAnswer => {
                take(&items);
                Err(EgressError::Broken("lost".into()))
            }
            Act::Say(status, content_type, body) => Ok(text(status, content_type, body)),
            Act::SayLater(status, retry_after) => Ok(Response {
                retry_after: Some(retry_after.to_owned()),
                ..text(status, "application/json", "{}")
            }),
            Act::WantAgain(again, after) => {
                let (later, now): (Vec<u64>, Vec<u64>) = items.iter().partition(|seq| again.contains(seq));
                let want = |seq: &u64| {
                    let after = after.map_or(Json::Null, number);
                    let status = Json::from("retry");
                    Json::from([
                        ("peer_seq", number(*seq)),
                        ("status", status),
                        ("retry_after_s", after),
                    ])
                };
                results(take(&now).into_iter().chain(later.iter().map(want)).collect())
            }
            Act::Forget(count) => results(take(items.get(..items.len().saturating_sub(count)).unwrap())),
            Act::Refuse => Err(EgressError::ConnectFailed("nobody there".into())),
            Act::Hang => std::future::pending().await,
        };
        self.with(&peer, |hub| hub.busy -= 1);
        answer
    }
}
