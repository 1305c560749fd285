//! Asking by message and waiting for the answer: the types of §11 that end in `.request` and `.response`.

use std::time::Duration;

use aip_protocol::error::ErrorCode;
use aip_protocol::name::{Did, Domain, HUB_NAME, Handle, Name};
use aip_protocol::time::Timestamp;
use futures_util::Stream;
use serde_json::{Map, Value};
use uuid::Uuid;

use super::Client;
use super::search::pages;
use crate::error::{Error, Problem, Result};
use crate::limits::ANSWER_POLL;
use crate::message::{Body, Draft, Incoming};
use crate::search::{Answer, Query};

const SEARCHING: &str = "searching by message";
const SEARCH_REQUEST: &str = "aip.search.request";
const SEARCH_RESPONSE: &str = "aip.search.response";

/// What the content type of a refused request says.
const PROBLEM_JSON: &str = "application/problem+json";

impl Client {
    /// Sends a request and waits for its answer: the message from its recipient whose `reply_to` is the request's id. The
    /// answer is acknowledged (where that fails, it may come once more); other mail is not touched, and what is of another
    /// thread not offered. A draft without a thread gets one of its own, and one without an end is not answered after `wait`.
    ///
    /// A [`crate::Listener`] of the same agent gets the answer as well, and may settle it first: ask from a listener's
    /// process by sending the draft, and take the answer from its stream.
    ///
    /// # Errors
    /// Those of [`Client::send`]; [`Error::NoAnswer`] when the time is over; [`Error::Refused`] with the code of its
    /// status when the request was given up on its way.
    pub async fn ask(&self, draft: &Draft, wait: Duration) -> Result<Incoming> {
        let (draft, id, thread) = draft.clone().into_request(self.entropy(), wait);
        let ends_at = self.now() + wait;
        let (sealed, _) = self.send_sealed(&draft).await?;
        // Who answers is who was written to: an agent that has moved answers as who it is now.
        let to = sealed.envelope().to.clone();
        let (mut failures, reply_to) = (0, id.hyphenated().to_string());
        loop {
            let found = self.fetch_answer(&thread, (&to, &reply_to), ends_at).await;
            match found {
                Ok(Some(answer)) => return Ok(answer),
                Ok(None) if self.now() >= ends_at => return Err(Error::NoAnswer { id, to }),
                Ok(None) => self.check_on(id, &to).await?,
                Err(error) if error.is_transient() => {
                    failures += 1;
                    if !self.pause(failures, &error, ends_at).await {
                        return Err(error);
                    }
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// One long poll for the answer.
    async fn fetch_answer(
        &self,
        thread: &str,
        (from, reply_to): (&Did, &str),
        ends_at: Timestamp,
    ) -> Result<Option<Incoming>> {
        let page = self.fetch_thread(thread, whole_secs(self.now(), ends_at)).await?;
        let is_answer =
            |message: &Incoming| message.from == *from && message.reply_to.as_deref() == Some(reply_to);
        let Some(answer) = page.items.into_iter().find(is_answer) else {
            return Ok(None);
        };
        // The answer is here, and may have left the mailbox although the hub's word of it was lost: waiting on would lose it.
        if let Err(error) = self.ack_recorded(&page.epoch, 0, &[answer.seq]).await {
            tracing::warn!(error = error.sentence(), "an answer may be offered once more");
        }
        Ok(Some(answer))
    }

    /// Whether the request can still be answered. What cannot be told just now is told by the next look.
    async fn check_on(&self, id: Uuid, to: &Did) -> Result<()> {
        let Ok(status) = self.status(id, Some(to.as_str())).await else {
            return Ok(());
        };
        if !matches!(status.status.as_str(), "dead" | "refused" | "expired") {
            return Ok(());
        }
        let detail = format!("{} did not take the request.", to.handle());
        let code = status.code.unwrap_or(status.status);
        Err(Error::Refused(Box::new(Problem::new(code, detail))))
    }

    /// One page of what is found, asked of a hub's own agent by message (`hub#domain`): sealed, and over the relay alone.
    /// `hub` is the domain of the hub to ask; the agent's own where it is `None`. An answer that would not fit into an
    /// envelope is a shorter page than was asked for.
    ///
    /// # Errors
    /// Those of [`Client::ask`], and those of [`Client::search`] as the hub's agent tells them.
    pub async fn search_by_message(
        &self,
        query: &Query,
        hub: Option<&Domain>,
        wait: Duration,
    ) -> Result<Answer> {
        let domain = match hub {
            Some(domain) => domain.clone(),
            None => self.keys()?.did().domain(),
        };
        let name = Name::parse(HUB_NAME)?;
        let body: Value = serde_json::from_slice(&query.to_json().to_jcs())
            .map_err(|error| Error::answer(SEARCHING, error))?;
        let draft = Draft::json(Handle { name, domain }, body).kind(SEARCH_REQUEST);
        let body = answered(self.ask(&draft, wait).await?, SEARCH_RESPONSE, SEARCHING)?;
        serde_json::from_value(body).map_err(|error| Error::answer(SEARCHING, error))
    }

    /// All that is found, page by page, as [`Client::search_pages`]; each page is a message, and may take `wait`.
    pub fn search_pages_by_message(
        &self,
        query: Query,
        hub: Option<Domain>,
        wait: Duration,
    ) -> impl Stream<Item = Result<Answer>> + use<> {
        let client = self.clone();
        pages(query, move |query| {
            let (client, hub) = (client.clone(), hub.clone());
            async move { client.search_by_message(&query, hub.as_ref(), wait).await }
        })
    }
}

/// The body of an answer of the type `kind`; a refusal is an error.
pub(super) fn answered(answer: Incoming, kind: &str, asking: &'static str) -> Result<Value> {
    let Body::Json(body) = answer.content.body else {
        return Err(Error::answer(asking, "it is not JSON"));
    };
    if answer.content.content_type == PROBLEM_JSON {
        return Err(refused(body));
    }
    if answer.kind != kind {
        return Err(Error::answer(asking, format_args!("it is a {}", answer.kind)));
    }
    Ok(body)
}

/// The time that is left, at most one poll's and rounded up, so that the last one does not come too early.
fn whole_secs(now: Timestamp, ends_at: Timestamp) -> Duration {
    let left_millis = u64::try_from(ends_at.millis_since(now)).unwrap_or(0);
    Duration::from_secs(left_millis.div_ceil(1_000)).min(ANSWER_POLL)
}

fn refused(problem: Value) -> Error {
    let members: Map<String, Value> = serde_json::from_value(problem).unwrap_or_default();
    let problem = Problem::from_members(members).unwrap_or_else(|| {
        let detail = "The request was refused, and the answer does not say why.";
        Problem::new(ErrorCode::Internal.as_str(), detail)
    });
    Error::Refused(Box::new(problem))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_last_poll_is_not_too_short_and_none_too_long() {
        let at = Timestamp::from_unix_millis;
        assert_eq!(whole_secs(at(0), at(1)), Duration::from_secs(1));
        assert_eq!(whole_secs(at(0), at(2_001)), Duration::from_secs(3));
        assert_eq!(whole_secs(at(5), at(0)), Duration::ZERO);
        assert_eq!(whole_secs(at(0), at(3_600_000)), ANSWER_POLL);
    }

    #[test]
    fn a_problem_is_read_whatever_it_lacks() {
        let error = refused(
            json!({"code": "parameter_invalid", "detail": "No.", "retry_after_s": 3, "parameter": "q"}),
        );
        let problem = error.problem().unwrap();
        assert_eq!(
            (problem.code.as_str(), problem.retry_after_secs),
            ("parameter_invalid", Some(3))
        );
        assert_eq!(refused(json!([1])).problem().unwrap().code, "internal");
    }
}
