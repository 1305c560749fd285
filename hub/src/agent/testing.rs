//! What the agent does with one message, for tests of other rooms.

use aip_relay::inbox::Item;

use super::answer;
use super::receive::Verdict;
use crate::app::App;

/// The word for what becomes of a message: of its fate, or of why it is offered again or dead.
pub(crate) async fn take(app: &App, item: &Item) -> String {
    match answer::take(app, item).await {
        Verdict::Done(fate) => fate.as_str().to_owned(),
        Verdict::Later(_) => "later".to_owned(),
        Verdict::Dead(code) => code.to_owned(),
    }
}
