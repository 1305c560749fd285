//! `aip offer …`: the details of something that is offered, by sealed message.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use aip_client::limits::{CREDIT_MAX, OFFER_FILE_BYTES_MAX};
use aip_client::protocol::listing::hub_id;
use aip_client::protocol::name::Did;
use aip_client::{AnsweredOffer, AskedOffer, ListenOptions, OfferAnswer, OnReplaced};
use serde_json::{Map, Value, json};
use tokio::sync::Notify;

use super::Outcome;
use super::listen::stop;
use super::listing;
use crate::cli::values;
use crate::context::Context;
use crate::failure::Failure;
use crate::output::note;

const EXAMPLES: &str = "\
Examples:
  aip search flat moscow                            the id of a result, and whose it is
  aip offer ask etagi#aigentix.org lst_6tadon6rdcsso4vhddbt7skx4q
  aip offer ask hub#aigentix.org lst_6tadon6rdcsso4vhddbt7skx4q --note \"is there a balcony?\"
  aip offer serve flats.json

The file of `serve` is an array of objects, or one a line. Each has `listing_id`, as in what was published, or `item_id`, as in
search results; what else it has is the answer: name, details {…}, price {amount, currency}, available, media [{url}],
contact {…}. It is read once, at the start.";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, clap::Subcommand)]
enum Action {
    /// Ask for the details of an item
    Ask(Ask),
    /// Answer whoever asks for what we offer
    Serve(Serve),
}

/// Who does not answer for it says who does, and is then asked instead.
#[derive(Debug, clap::Args)]
struct Ask {
    /// The agent of the search result, or a hub's own: hub#DOMAIN
    #[arg(value_name = "AGENT", value_parser = values::agent)]
    agent: Did,
    /// The id of the search result
    #[arg(value_name = "ITEM")]
    item: String,
    /// What you want to know, in words
    #[arg(long)]
    note: Option<String>,
    /// Wait so long for each answer
    #[arg(long, value_name = "SPAN", value_parser = values::span, default_value = "30s")]
    wait: Duration,
}

/// Anybody may ask. Other mail of the agent is left in the mailbox.
#[derive(Debug, clap::Args)]
struct Serve {
    /// What we offer; - is the standard input
    file: PathBuf,
    /// Stop after so many answers
    #[arg(long, value_name = "N")]
    count: Option<u64>,
    /// Share the mailbox with other servers that do the same
    #[arg(long)]
    share: bool,
}

pub(crate) async fn run(context: &Context, args: Args) -> Outcome {
    match args.action {
        Action::Ask(args) => ask(context, args).await,
        Action::Serve(args) => serve(context, &args).await,
    }
}

async fn ask(context: &Context, args: Ask) -> Outcome {
    let (client, note) = (context.client()?, args.note.as_deref());
    let mut answer = client.ask_offer(&args.agent, &args.item, note, args.wait).await?;
    // Once: whoever is named there may name somebody else for ever.
    if let Some(party) = answer.ask.clone().filter(|party| party.did != args.agent) {
        crate::output::note(&format!("{} answers for it", party.did.handle()));
        answer = client.ask_offer(&party.did, &args.item, note, args.wait).await?;
    }
    let value = serde_json::to_value(&answer).map_err(std::io::Error::from)?;
    Ok(context.output.show(&value, &text(&answer))?)
}

/// For people: a line for each thing that is said.
fn text(answer: &OfferAnswer) -> String {
    let said = |name: &str| {
        answer
            .details
            .get(name)
            .map(words)
            .filter(|words| !words.is_empty())
    };
    let mut lines = vec![said("name").unwrap_or_else(|| answer.item_id.clone())];
    if let Some(party) = &answer.ask {
        lines.push(format!("ask {}", party.did.handle()));
    }
    let price = answer.details.get("price").map(|price| {
        let part = |name: &str| price.get(name).map(words).unwrap_or_default();
        format!("{} {}", part("amount"), part("currency"))
            .trim()
            .to_owned()
    });
    lines.extend(
        price
            .filter(|price| !price.is_empty())
            .map(|price| format!("price: {price}")),
    );
    for name in ["available", "details", "contact", "media", "flags", "valid_until"] {
        lines.extend(said(name).map(|words| format!("{name}: {words}")));
    }
    lines.extend(said("description").map(|description| format!("\n{description}")));
    lines.join("\n")
}

fn words(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        Value::Array(items) => items.iter().map(words).collect::<Vec<_>>().join(", "),
        Value::Object(members) => {
            let pairs = members
                .iter()
                .map(|(name, value)| format!("{name} {}", words(value)));
            pairs.collect::<Vec<_>>().join("; ")
        }
        other => other.to_string(),
    }
}

async fn serve(context: &Context, args: &Serve) -> Outcome {
    let client = context.client()?;
    let own = context
        .did()
        .ok_or_else(|| Failure::Usage("whose? Name a key file with --key".to_owned()))?;
    let offers = Arc::new(read(&args.file, &own)?);
    let inbox = Arc::new(context.inbox()?);
    let options = ListenOptions {
        credit: CREDIT_MAX,
        share: args.share,
        on_replaced: OnReplaced::Stop,
        ..ListenOptions::default()
    };
    let mut stopped = stop::on_signal()?;
    let mut listener = client.listen(inbox, options);
    let is_done = Notify::new();
    let mut left = args.count.unwrap_or(u64::MAX);
    let told = |answered: &AnsweredOffer| {
        tell(context, answered);
        if matches!(answered, AnsweredOffer::Answered(_) | AnsweredOffer::Unknown(_)) {
            left = left.saturating_sub(1);
        }
        if left == 0 {
            is_done.notify_one();
        }
    };
    let until = async {
        tokio::select! {
            () = stopped.wait() => {}
            () = is_done.notified() => {}
        }
    };
    let handler = |asked: AskedOffer| {
        let found = offers.get(&asked.item_id).cloned();
        async move { found }
    };
    let outcome = client.serve_offers(&mut listener, handler, told, until).await;
    listener.close().await;
    Ok(outcome?)
}

/// What we offer, by the ids under which it is asked for.
fn read(path: &Path, own: &Did) -> Result<HashMap<String, Map<String, Value>>, Failure> {
    let bytes = listing::read(path, OFFER_FILE_BYTES_MAX)?;
    if bytes.len() > OFFER_FILE_BYTES_MAX {
        return Err(Failure::Other(format!(
            "{}: it is larger than {OFFER_FILE_BYTES_MAX} bytes",
            path.display()
        )));
    }
    let wrong = |why: String| Failure::Other(format!("{}: {why}", path.display()));
    let values = serde_json::Deserializer::from_slice(&bytes).into_iter::<Value>();
    let mut offers = HashMap::new();
    for value in values {
        let value = value.map_err(|error| wrong(error.to_string()))?;
        let rows = match value {
            Value::Array(rows) => rows,
            row => vec![row],
        };
        for row in rows {
            let (id, details) = offer(row, own).map_err(wrong)?;
            offers.insert(id, details);
        }
    }
    Ok(offers)
}

fn offer(row: Value, own: &Did) -> Result<(String, Map<String, Value>), String> {
    let Value::Object(mut details) = row else {
        return Err("an offer is an object".to_owned());
    };
    let id = match (details.remove("item_id"), details.get("listing_id")) {
        (Some(Value::String(id)), _) => id,
        (None, Some(Value::String(id))) => hub_id(own, id),
        _ => return Err("an offer has a text `listing_id`, or `item_id`".to_owned()),
    };
    Ok((id, details))
}

/// Says what became of a message. Who has closed the standard output does not want to know.
fn tell(context: &Context, answered: &AnsweredOffer) {
    let said = |asked: &AskedOffer, status: &str, why: Option<String>| {
        let line = format!(
            "{} asked for {}: {}",
            asked.from.handle(),
            asked.item_id,
            why.as_deref().unwrap_or(status)
        );
        let value = json!({
            "item_id": asked.item_id, "from": asked.from.as_str(), "note": asked.note, "status": status, "error": why,
        });
        (value, line)
    };
    let (value, line) = match answered {
        AnsweredOffer::Answered(asked) => said(asked, "answered", None),
        AnsweredOffer::Unknown(asked) => said(asked, "unknown", None),
        AnsweredOffer::Unanswered(asked, error) => said(asked, "unanswered", Some(error.sentence())),
        AnsweredOffer::Rejected(message) => {
            let from = message.from.handle();
            note(&format!(
                "aip: a question that is none, from {from}, went to the dead letters"
            ));
            return;
        }
        AnsweredOffer::Left(message) => {
            let (seq, from) = (message.seq, message.from.handle());
            note(&format!(
                "aip: message {seq} from {from} asks for no offer; it stays in the mailbox"
            ));
            return;
        }
        _ => return,
    };
    drop(context.output.show(&value, &line));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_offer_is_found_by_the_id_of_a_search_result() {
        let own = Did::parse("did:aip:hub.example:shop").unwrap();
        let (id, details) = offer(json!({ "listing_id": "a", "name": "Tea" }), &own).unwrap();
        assert_eq!(id, "lst_6tadon6rdcsso4vhddbt7skx4q");
        assert_eq!(Value::from(details), json!({ "listing_id": "a", "name": "Tea" }));
        let (id, details) = offer(json!({ "item_id": "lst_b", "name": "Tea" }), &own).unwrap();
        assert_eq!((id.as_str(), details.len()), ("lst_b", 1));
        for wrong in [
            json!([]),
            json!({ "name": "Tea" }),
            json!({ "listing_id": 7 }),
            json!({ "item_id": 7, "listing_id": "a" }),
        ] {
            assert!(offer(wrong.clone(), &own).is_err(), "{wrong}");
        }
    }

    #[test]
    fn people_read_what_is_said_line_by_line() {
        let answer: OfferAnswer = serde_json::from_value(json!({
            "item_id": "lst_a", "status": "offered", "name": "Flat", "price": { "amount": "79000", "currency": "RUB" },
            "details": { "rooms": 2 }, "media": [{ "url": "https://x.example/a.jpg" }], "contact": { "phone": "1" },
        }))
        .unwrap();
        assert_eq!(
            text(&answer),
            "Flat\nprice: 79000 RUB\ndetails: rooms 2\ncontact: phone 1\nmedia: url https://x.example/a.jpg"
        );
    }
}
