//! `aip inbox`: fetches the messages that wait, without keeping a connection.

use std::time::Duration;

use aip_client::{Inbox as _, InboxPage};

use super::Outcome;
use super::show::{message_json, message_text};
use crate::cli::values;
use crate::context::Context;
use crate::output::note;
use serde_json::json;

/// Fetching counts as an attempt to deliver: what is not acknowledged is offered again, eight times at most.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// So many messages at most
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=100))]
    limit: u32,
    /// Acknowledge what is printed; messages that were processed before are left out
    #[arg(long)]
    ack: bool,
    /// Send no receipts, whoever asks for one
    #[arg(long, requires = "ack")]
    no_receipts: bool,
    /// Wait so long for the first
    #[arg(long, value_name = "SPAN", value_parser = values::span, default_value = "0s")]
    wait: Duration,
}

pub(crate) async fn run(context: &Context, args: Args) -> Outcome {
    let client = context.builder()?.answer_receipts(!args.no_receipts).build()?;
    if args.ack {
        let inbox = context.inbox()?;
        for message in client.poll(&inbox, args.limit, args.wait).await? {
            context
                .output
                .show(&message_json(&message), &message_text(&message))?;
            client.settle(&inbox, std::slice::from_ref(&message)).await?;
        }
        tracing::debug!(cursor = ?inbox.cursor().await?, "settled");
        return Ok(());
    }
    show(context, &client.fetch_inbox(None, args.limit, args.wait).await?)
}

fn show(context: &Context, page: &InboxPage) -> Outcome {
    for message in &page.items {
        context
            .output
            .show(&message_json(message), &message_text(message))?;
    }
    for bad in &page.unreadable {
        let value = json!({"epoch": page.epoch, "seq": bad.seq, "unreadable": bad.code});
        context
            .output
            .show(&value, &format!("#{} cannot be shown: {}", bad.seq, bad.code))?;
    }
    if page.items.is_empty() && page.unreadable.is_empty() {
        note("nothing waits");
    }
    Ok(())
}
