//! `aip listen`: receives messages as they come, prints them or runs a command for each.

pub(super) mod exec;
pub(super) mod stop;

use std::sync::Arc;

use aip_client::{Error, Incoming, ListenOptions, Listener, OnReplaced};

use exec::Handler;
use futures_util::future::{join_all, select_all};

use super::show::{message_json, message_text};
use super::{Outcome, receipts as receipt_lines};
use crate::context::Context;
use crate::failure::Failure;
use crate::output::note;

/// Each message is acknowledged after it was printed, or after the command for it succeeded. What was processed is written
/// beside the key file, so that a message that is offered again is not seen again.
#[derive(Debug, clap::Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of the command line")]
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
    /// After a move, leave the mailbox at the former hub alone
    #[arg(long)]
    no_former: bool,
}

pub(crate) async fn run(context: &Context, args: Args) -> Outcome {
    let handler = match &args.exec {
        Some(command) => Some(Handler::find(command).await.map_err(as_usage)?),
        None => None,
    };
    let file = context.key_file()?;
    let former = if args.no_former {
        Vec::new()
    } else {
        context.former(&file)?
    };
    let client = context
        .builder_of(file)?
        .answer_receipts(!args.no_receipts)
        .build()?;
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
    let mut listeners = vec![client.listen(inbox, options)];
    for (builder, inbox) in former {
        let client = builder.answer_receipts(!args.no_receipts).build()?;
        listeners.push(client.listen(Arc::new(inbox), options));
    }
    let outcome = receive(context, (handler, args.count), &mut listeners, &mut stopped).await;
    join_all(listeners.into_iter().map(Listener::close)).await;
    outcome
}

async fn receive(
    context: &Context,
    (handler, count): (Option<Handler<'_>>, Option<u64>),
    listeners: &mut Vec<Listener>,
    stopped: &mut stop::Stopped,
) -> Outcome {
    let mut left = count.unwrap_or(u64::MAX);
    let mut receipts = listeners
        .iter()
        .map(Listener::receipts)
        .next()
        .ok_or(Error::Closed)?;
    while left > 0 {
        let message = tokio::select! {
            message = next(listeners) => message,
            Ok(receipt) = receipts.recv() => {
                note(&format!("aip: receipt: {}", receipt_lines::line(&receipt)));
                continue;
            }
            () = stopped.wait() => return Ok(()),
        };
        let (message, index) = match message {
            // A former hub that is no more does not end the listening at the present one.
            (Err(error), index) if index > 0 => {
                note(&format!("aip: the mailbox at a former hub: {}", error.sentence()));
                listeners.remove(index).close().await;
                continue;
            }
            (message, index) => (message?, index),
        };
        let Some(listener) = listeners.get(index) else {
            continue;
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

/// What comes first at any of them, and at which. Safe to abandon.
async fn next(listeners: &mut [Listener]) -> (aip_client::Result<Incoming>, usize) {
    let waiting = listeners.iter_mut().map(|listener| Box::pin(listener.next()));
    let (message, index, _) = select_all(waiting).await;
    (message, index)
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
