//! What the agent does with one message, for tests of other rooms.

use aip_protocol::envelope::Envelope;
use aip_relay::inbox::Item;

use super::receive::Verdict;
use super::{answer, ask};
use crate::app::App;

/// The word for what becomes of a message.
pub(crate) async fn take(app: &App, item: &Item) -> String {
    word(answer::take(app, item).await)
}

/// The same for an answer, where other processes read the mailbox, too.
pub(crate) fn take_shared(app: &App, envelope: &Envelope, attempt: u32) -> String {
    word(app.agent.take_answer(envelope, attempt, true))
}

/// Reads the answers to this process's own questions beside any session.
pub(crate) async fn watch(app: &App) {
    ask::watch(app).await;
}

/// Of its fate, or of why it is offered again or dead.
fn word(verdict: Verdict) -> String {
    match verdict {
        Verdict::Done(fate) => fate.as_str().to_owned(),
        Verdict::Later(_) => "later".to_owned(),
        Verdict::Dead(code) => code.to_owned(),
    }
}
