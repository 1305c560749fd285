//! Sending the receipts that acknowledged messages ask for, beside the listening.

use tokio::sync::mpsc;

use crate::client::Client;
use crate::limits::BATCH_MESSAGES_MAX;
use crate::message::Draft;

/// What the one who answers is told.
#[derive(Debug)]
pub(super) enum Answer {
    /// A receipt is to be sent.
    Receipt(Box<Draft>),
    /// Nothing more is to come.
    Close,
}

/// Sends what is asked for, in batches, until it is told to stop or nobody is left to ask.
pub(super) async fn answer(client: Client, mut answers: mpsc::Receiver<Answer>) {
    let mut waiting = Vec::new();
    loop {
        if answers.recv_many(&mut waiting, BATCH_MESSAGES_MAX).await == 0 {
            return;
        }
        let mut is_last = false;
        let mut drafts = Vec::with_capacity(waiting.len());
        for answer in waiting.drain(..) {
            match answer {
                Answer::Receipt(draft) => drafts.push(*draft),
                Answer::Close => is_last = true,
            }
        }
        if !drafts.is_empty() {
            client.send_receipts(&drafts).await;
        }
        if is_last {
            return;
        }
    }
}
