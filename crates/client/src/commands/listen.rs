//! `aip listen`: receives messages as they come, prints them or runs a command for each.

mod exec;
mod stop;

use std::sync::Arc;

use aip_client::{Error, Incoming, ListenOptions, Listener, OnReplaced};

use exec::Handler;

use super::show::{message_json, message_text};
use super::{Outcome, receipts as receipt_lines};
use crate::context::Context;
use crate::failure::Failure;
use crate::output::note;

/// Each message is acknowledged after it was printed, or after the command for it succeeded. What was processed is written
/// beside the key file, so that a message that is offered again is not seen again.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Run this with sh for each message; its program must be there from the start. The body is its standard input; `AIP_FROM`, `AIP_TYPE`, `AIP_ID`,
    /// `AIP_SEQ`, `AIP_ATTEMPT`, `AIP_CONTENT_TYPE`, `AIP_THREAD` and `AIP_REPLY_TO` tell the rest. When it fails, the
    /// message comes again
    #[arg(long, value_name = "COMMAND")]
    exec: Option<String>,
    /// Stop after so many messages
    #[arg(long, value_name = "N")]
    count: Option<u64>,
    /// Messages in flight at most
    #[arg(long, value_name = "N", default_value_t = 64, value_parser = clap::value_parser!(u32).range(1..=1024))]
    credit: u32,
    /// Share the mailbox with other listeners that do the same
    #[arg(long)]
    share: bool,
    /// When another listener takes over, come back later instead of stopping
    #[arg(long)]
    come_back: bool,
    /// Send no receipts, whoever asks for one
    #[arg(long)]
    no_receipts: bool,
}

pub(crate) async fn run(context: &Context, args: Args) -> Outcome {
    let handler = match &args.exec {
        Some(command) => Some(Handler::find(command).await.map_err(as_usage)?),
        None => None,
    };
    let client = context.builder()?.answer_receipts(!args.no_receipts).build()?;
    let inbox = Arc::new(context.inbox()?);
    let options = ListenOptions {
        credit: args.credit,
        share: args.share,
        on_replaced: if args.come_back {
            OnReplaced::ComeBack
        } else {
            OnReplaced::Stop
        },
        ..ListenOptions::default()
    };
    let mut stopped = stop::on_signal()?;
    let mut listener = client.listen(inbox, options);
    let outcome = receive(context, (handler, args.count), &mut listener, &mut stopped).await;
    listener.close().await;
    outcome
}

async fn receive(
    context: &Context,
    (handler, count): (Option<Handler<'_>>, Option<u64>),
    listener: &mut Listener,
    stopped: &mut stop::Stopped,
) -> Outcome {
    let mut left = count.unwrap_or(u64::MAX);
    let mut receipts = listener.receipts();
    while left > 0 {
        let message = tokio::select! {
            message = listener.next() => message?,
            Ok(receipt) = receipts.recv() => {
                note(&format!("aip: receipt: {}", receipt_lines::line(&receipt)));
                continue;
            }
            () = stopped.wait() => return Ok(()),
        };
        // A signal waits for the message in hand: it is either processed or it is not.
        match handle(context, handler, &message).await {
            Ok(()) => {
                listener.ack(&message).await?;
                left -= 1;
            }
            Err(failure) => {
                listener.nak(&message).await?;
                if ends_it_all(&failure) {
                    note(&format!("aip: message {} stays in the mailbox", message.seq));
                    return Err(failure);
                }
                note(&format!("aip: message {}: {}", message.seq, failure.sentence()));
            }
        }
    }
    Ok(())
}

async fn handle(context: &Context, handler: Option<Handler<'_>>, message: &Incoming) -> Outcome {
    match handler {
        Some(handler) => handler.run(message).await,
        None => Ok(context
            .output
            .show(&message_json(message), &message_text(message))?),
    }
}

/// Nobody reads any more, or nobody is there to process: going on would take messages and spend their attempts. They wait
/// in the mailbox instead.
fn ends_it_all(failure: &Failure) -> bool {
    match failure {
        Failure::Io(error) => error.kind() == std::io::ErrorKind::BrokenPipe,
        Failure::ProgramGone(_) | Failure::Client(Error::Closed) => true,
        _ => false,
    }
}

/// At the start it is the command line that is wrong; later it is the machine.
fn as_usage(failure: Failure) -> Failure {
    match failure {
        Failure::ProgramGone(why) => Failure::Usage(why),
        other => other,
    }
}
