//! Receiving: a session like that of any agent, inside the process. The processes of a hub share the mailbox, so each
//! message is in the hands of one of them at a time; where that fails, two send the same answer, which is one.

use std::time::Duration;

use actix_web::web::Data;
use aip_registry::Standing;
use aip_relay::inbox::{Item, Join, Link, Output};
use aip_relay::mailbox::StoreError;
use aip_relay::presence::CloseReason;
use aip_relay::session::SessionId;
use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

use super::answer::take;
use super::ask;
use super::limits::{IDENTITY_PAUSE, MESSAGES_AT_ONCE, SESSION_PAUSE};
use super::stats::Fate;
use super::{Established, IdentityError};
use crate::app::App;
use crate::limits::{ROUND_MILLIS, SETTLE_SECS};

/// What is to become of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    /// It is done with.
    Done(Fate),
    /// It is to be offered again after a pause.
    Later(Duration),
    /// It goes to the dead letters, with this code for its sender.
    Dead(&'static str),
}

impl Verdict {
    fn fate(self) -> Fate {
        match self {
            Self::Done(fate) => fate,
            Self::Later(_) => Fate::Postponed,
            Self::Dead(_) => Fate::Rejected,
        }
    }
}

/// Why nobody reads the mailbox just now.
#[derive(Debug, thiserror::Error)]
enum Away {
    #[error(transparent)]
    Identity(#[from] IdentityError),
    #[error("the operator suspended it")]
    Suspended,
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Keeps the agent's identity in order and reads its mailbox, until the hub closes.
pub async fn run(app: Data<App>, closing: CancellationToken) {
    while !closing.is_cancelled() {
        let pause = match attend(&app, &closing).await {
            Ok(()) => SESSION_PAUSE,
            Err(Away::Store(error)) => {
                tracing::warn!(%error, "The hub's own agent cannot read its mailbox; it tries again");
                SESSION_PAUSE
            }
            Err(why) => {
                tracing::error!(agent = %app.agent.did(), "The hub's own agent is silent: {why}");
                IDENTITY_PAUSE
            }
        };
        tokio::select! {
            () = closing.cancelled() => {}
            () = sleep(pause) => {}
        }
    }
}

/// One session, from its beginning to its end.
async fn attend(app: &App, closing: &CancellationToken) -> Result<(), Away> {
    let (established, agent) = app.agent.establish().await?;
    if established != Established::Same {
        tracing::info!(agent = %app.agent.did(), ?established, "The hub's own agent has its identity");
    }
    if agent.standing == Standing::Suspended {
        return Err(Away::Suspended);
    }
    let join = Join {
        session: SessionId::from_random(app.agent.with_rng(|rng| rng.next_u64())),
        share: true,
        credit: MESSAGES_AT_ONCE,
    };
    let (mut link, _ready) = app.inbox.join(app.agent.did().clone(), join).await?;
    let _session = app.agent.stats().begin_session();
    tokio::select! {
        () = read(app, &mut link, closing) => {}
        () = own_answers(app), if app.shares_stores() => {}
    }
    // What was answered is acked, as far as there is time; the rest is offered again.
    timeout(Duration::from_secs(SETTLE_SECS), link.settle())
        .await
        .unwrap_or_default();
    Ok(())
}

/// Takes messages until the session or the hub ends. At most [`MESSAGES_AT_ONCE`] are in hand: that is the session's
/// credit.
async fn read(app: &App, link: &mut Link, closing: &CancellationToken) {
    let mut in_hand = FuturesUnordered::new();
    loop {
        tokio::select! {
            biased;
            () = closing.cancelled() => return,
            Some((seq, verdict)) = in_hand.next(), if !link.is_backlogged() => settle(app, link, seq, verdict),
            // What is in the way may pass without a word.
            () = sleep(Duration::from_millis(ROUND_MILLIS)), if link.is_backlogged() => {}
            output = link.next() => match output {
                Output::Message(item) => in_hand.push(judged(app, item)),
                Output::Refused { code, detail } => {
                    tracing::warn!(%code, "The hub's own agent misspoke: {detail}");
                }
                Output::Status(update) => app.agent.questions().hear(&update),
                Output::Acked(_) => {}
                Output::Close(CloseReason::GoingAway) => return,
                Output::Close(reason) => {
                    tracing::debug!(?reason, "The session of the hub's own agent was ended");
                    return;
                }
            },
        }
    }
}

/// Reads answers to this process's own questions beside the session, for as long as that lasts.
async fn own_answers(app: &App) {
    loop {
        ask::watch(app).await;
        sleep(SESSION_PAUSE).await;
    }
}

async fn judged(app: &App, item: Item) -> (u64, Verdict) {
    (item.seq, take(app, &item).await)
}

fn settle(app: &App, link: &mut Link, seq: u64, verdict: Verdict) {
    app.agent.stats().count(verdict.fate());
    let epoch = link.epoch().to_string();
    match verdict {
        Verdict::Done(_) => link.ack(epoch, 0, vec![seq]),
        Verdict::Later(pause) => link.nak(epoch, seq, pause),
        Verdict::Dead(code) => link.reject(epoch, seq, code.to_owned()),
    }
}
