//! From a message to its answer. What can be answered is a type that ends in `.request`; everything else is settled in
//! silence or goes to the dead letters, so that no two agents can keep each other talking.

use std::time::Duration;

use aip_protocol::envelope::Envelope;
use aip_protocol::error::{ErrorCode, Refusal};
use aip_relay::inbox::Item;
use aip_relay::mailbox::MailboxId;
use aip_relay::relay::SendError;
use serde_json::{Map, Value};

use super::ask::PROGRESS;
use super::limits::{ANSWER_ATTEMPTS_MAX, FAILURE_ATTEMPTS_MAX, FAILURE_PAUSE, REFUSAL_PAUSE};
use super::receive::Verdict;
use super::stats::Fate;
use super::{Outcome, Outgoing, offer, search};
use crate::app::App;
use crate::error::{ApiError, PROBLEM_JSON};

const REQUEST: &str = ".request";
const RESPONSE: &str = ".response";
const RECEIPT: &str = "aip.receipt";

/// The media type of a body.
pub(super) const JSON: &str = "application/json";

/// The code of a message whose body this agent has no key for, or that is no envelope: what clients say, too.
const UNREADABLE: &str = "unreadable";

/// Does what a message asks for.
pub(super) async fn take(app: &App, item: &Item) -> Verdict {
    let Ok(envelope) = Envelope::parse(&item.wire) else {
        return Verdict::Dead(UNREADABLE);
    };
    if envelope.from == *app.agent.did() || envelope.kind == RECEIPT {
        return Verdict::Done(Fate::Ignored);
    }
    if envelope.kind.ends_with(RESPONSE) || envelope.kind.ends_with(PROGRESS) {
        return app
            .agent
            .take_answer(&envelope, item.attempt, app.shares_stores());
    }
    let Some(stem) = envelope.kind.strip_suffix(REQUEST) else {
        return Verdict::Dead(ErrorCode::TypeUnsupported.as_str());
    };
    let Ok(plaintext) = app.agent.open(&envelope) else {
        return Verdict::Dead(UNREADABLE);
    };
    let kind = format!("{stem}{RESPONSE}");
    let (answer, fate) = match respond(app, &envelope, &plaintext).await {
        Ok(body) => (
            Outgoing::json(envelope.from.clone(), kind, JSON, &body),
            Fate::Answered,
        ),
        Err(error) if is_worth_a_try(&error, item.attempt) => {
            tracing::warn!(code = error.code().as_str(), cause = ?error.cause(), "A request to the hub's own agent waits");
            return Verdict::Later(FAILURE_PAUSE);
        }
        Err(error) => {
            let problem = problem(app, &envelope, &error);
            let answer = Outgoing::json(envelope.from.clone(), kind, PROBLEM_JSON, &problem);
            (answer, Fate::Refused)
        }
    };
    match answer {
        Ok(answer) => send(app, &envelope, item.attempt, (answer, fate)).await,
        Err(_does_not_print) => Verdict::Dead(ErrorCode::Internal.as_str()),
    }
}

/// The answer's body.
async fn respond(app: &App, envelope: &Envelope, plaintext: &[u8]) -> Result<search::Found, ApiError> {
    let sender = MailboxId::of(&envelope.from);
    app.agent.requests.take(sender.as_bytes()).map_err(too_fast)?;
    match envelope.kind.as_str() {
        search::REQUEST => {
            may_search(app, envelope).await?;
            search::respond(app, plaintext).await
        }
        offer::REQUEST => {
            may_search(app, envelope).await?;
            offer::respond(app, plaintext).await
        }
        kind => {
            let detail = format!(
                "The hub's own agent does not answer {kind:?}. It answers {:?} and {:?}.",
                search::REQUEST,
                offer::REQUEST
            );
            Err(Refusal::new(ErrorCode::TypeUnsupported, detail).into())
        }
    }
}

/// A peer that is limited to mail does not get the catalog by mail.
async fn may_search(app: &App, envelope: &Envelope) -> Result<(), ApiError> {
    let domain = envelope.from.domain();
    let Some(federation) = app.federation.as_ref().filter(|_| domain != app.domain) else {
        return Ok(());
    };
    let record = federation.store.peer(&domain).await?;
    if federation.policy.permits(&domain, record.as_ref()).catalog {
        return Ok(());
    }
    let detail = "The catalog of this hub is not open to agents of yours; ask its operator.";
    Err(ApiError::refused(ErrorCode::PeerBlocked, detail))
}

fn too_fast(wait_secs: u64) -> ApiError {
    let per_sec = super::limits::REQUEST_RATE.messages_per_sec;
    let detail = format!(
        "The hub's own agent answers {per_sec} requests of one sender a second; wait `retry_after_s`."
    );
    Refusal::new(ErrorCode::RateLimited, detail)
        .with("limit_per_sec", per_sec.get())
        .retry_after(wait_secs)
        .into()
}

/// A failure of ours passes, mostly; its sender hears of it when it does not.
fn is_worth_a_try(error: &ApiError, attempt: u32) -> bool {
    error.status().is_server_error() && attempt < FAILURE_ATTEMPTS_MAX
}

/// The problem document (RFC 9457), with the request's id in the place of that of an HTTP request.
fn problem(app: &App, envelope: &Envelope, error: &ApiError) -> Map<String, Value> {
    let mut problem = error.problem(&envelope.id.hyphenated().to_string(), &app.public_url);
    if let Some(wait_secs) = error.refusal().retry_after_secs {
        problem.insert("retry_after_s".to_owned(), wait_secs.into());
    }
    problem
}

/// Sends the answer; the request is settled when that is stored.
async fn send(app: &App, request: &Envelope, attempt: u32, (mut answer, fate): (Outgoing, Fate)) -> Verdict {
    let id = request.id.hyphenated().to_string();
    answer.thread.clone_from(&request.thread);
    answer.reply_to = Some(id.clone());
    answer.key = Some(id);
    match app.agent.send(answer).await {
        Ok(Outcome::Sent(_)) => Verdict::Done(fate),
        Ok(Outcome::Known) => Verdict::Done(Fate::Repeated),
        Err(SendError::Refused(refusal)) if attempt < ANSWER_ATTEMPTS_MAX && may_pass(&refusal) => {
            Verdict::Later(
                refusal
                    .retry_after_secs
                    .map_or(REFUSAL_PAUSE, Duration::from_secs),
            )
        }
        Err(SendError::Refused(refusal)) => Verdict::Dead(refusal.code.as_str()),
        Err(failure) if attempt < ANSWER_ATTEMPTS_MAX => {
            tracing::warn!(code = failure.code().as_str(), cause = ?failure, "An answer of the hub's own agent waits");
            Verdict::Later(FAILURE_PAUSE.saturating_mul(1 << attempt))
        }
        Err(failure) => Verdict::Dead(failure.code().as_str()),
    }
}

/// Whether the same answer may be taken later: the asker's mailbox is full, or this agent's identity is being mended.
fn may_pass(refusal: &Refusal) -> bool {
    refusal.retry_after_secs.is_some()
        || matches!(
            refusal.code,
            ErrorCode::SenderUnknown | ErrorCode::SenderBlocked | ErrorCode::KeyUnknown
        )
}
