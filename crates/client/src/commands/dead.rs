//! `aip dead`: messages that could not be delivered to us, and how to have them again.

use aip_client::{Client, DeadLetter};
use serde_json::{Value, json};

use super::Outcome;
use super::show::{content_json, content_text, envelope_json};
use crate::context::Context;
use crate::output::note;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    action: Option<Action>,
}

#[derive(Debug, clap::Subcommand)]
enum Action {
    /// Put one back into the mailbox
    Redrive {
        /// Its number in the list
        seq: u64,
    },
}

pub(crate) async fn run(context: &Context, args: Args) -> Outcome {
    let client = context.client()?;
    match args.action {
        Some(Action::Redrive { seq }) => redrive(context, &client, seq).await,
        None => list(context, &client).await,
    }
}

async fn redrive(context: &Context, client: &Client, seq: u64) -> Outcome {
    let fresh = client.redrive(seq).await?;
    let place = fresh.map(|seq| format!(" as #{seq}")).unwrap_or_default();
    let value = json!({"redriven": seq, "seq": fresh});
    Ok(context
        .output
        .show(&value, &format!("#{seq} is back in the mailbox{place}"))?)
}

async fn list(context: &Context, client: &Client) -> Outcome {
    let mut cursor = None;
    let mut found = false;
    loop {
        let page = client.dead_letters(cursor.as_deref()).await?;
        for letter in &page.items {
            found = true;
            context.output.show(&letter_json(letter), &letter_text(letter))?;
        }
        cursor = page.next_cursor;
        if cursor.is_none() {
            break;
        }
    }
    if !found {
        note("no dead letters");
    }
    Ok(())
}

fn letter_json(letter: &DeadLetter) -> Value {
    let mut value = json!({"seq": letter.seq, "code": letter.code, "at": letter.at});
    if let Some(members) = value.as_object_mut() {
        members.extend(letter.envelope.iter().flat_map(envelope_json));
        members.extend(letter.content.iter().flat_map(content_json));
    }
    value
}

fn letter_text(letter: &DeadLetter) -> String {
    let from = match &letter.envelope {
        Some(envelope) => format!("{} from {} (not verified)", envelope.kind, envelope.from.handle()),
        None => "not an envelope".to_owned(),
    };
    let content = letter
        .content
        .as_ref()
        .map_or_else(|| "(does not open)".to_owned(), content_text);
    format!(
        "#{} {} at {}: {from}\n{content}",
        letter.seq, letter.code, letter.at
    )
}
