//! `aip listing publish`: signs one listing and publishes it.

use std::path::PathBuf;
use std::time::Duration;

use aip_client::limits::LISTING_BYTES_MAX;
use aip_client::protocol::clock::Clock as _;
use aip_client::protocol::json::Json;
use aip_client::protocol::listing::{ListingKind, Offer};
use aip_client::{Error, SystemClock};
use sha2::{Digest as _, Sha256};

use super::{Outcome, published_json, read};
use crate::cli::values;
use crate::context::Context;
use crate::failure::Failure;

const EXAMPLES: &str = "\
Examples:
  aip listing publish --name \"Green tea, 100 g\" --price 3.50 --currency EUR --attr brand=Acme --tag tea
  aip listing publish --kind capability --name \"Current weather\" --description \"For any town.\" --price 0.01 --currency USD
  aip listing publish tea.json

A file holds one object: listing_id, kind, name, description, and, if you like, lang, tags, price (as text), currency,
available, attributes (text, whole numbers, true and false; brand and category among them), input_schema, output_schema,
invoke, expires_at. A listing of the same id replaces the one before. For many listings, see `aip listing import`.";

/// What is published is found by its text within two seconds.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Args {
    /// A JSON file; - is the standard input
    #[arg(required_unless_present = "name", conflicts_with = "name")]
    file: Option<PathBuf>,
    /// What it is called
    #[arg(long)]
    name: Option<String>,
    /// Your own id of it; made of the name if you give none
    #[arg(long, conflicts_with = "file")]
    id: Option<String>,
    /// capability, product or concept
    #[arg(long, conflicts_with = "file", value_parser = values::kind, default_value = "product")]
    kind: ListingKind,
    /// What it is
    #[arg(long, conflicts_with = "file")]
    description: Option<String>,
    /// What it costs: plain digits with an optional fraction
    #[arg(long, requires = "currency", conflicts_with = "file")]
    price: Option<String>,
    /// The currency of the price
    #[arg(long, value_name = "EUR", requires = "price", conflicts_with = "file", value_parser = values::currency)]
    currency: Option<String>,
    /// The language of name and description, such as fr
    #[arg(long, conflicts_with = "file")]
    lang: Option<String>,
    /// A further word to find it by; may be given several times
    #[arg(long, conflicts_with = "file")]
    tag: Vec<String>,
    /// An attribute, such as brand=Acme; may be given several times
    #[arg(long, value_name = "NAME=VALUE", conflicts_with = "file", value_parser = values::attribute)]
    attr: Vec<(String, String)>,
    /// It cannot be had now
    #[arg(long, conflicts_with = "file")]
    unavailable: bool,
    /// How long it is offered, such as 7d
    #[arg(long, value_name = "SPAN", conflicts_with = "file", value_parser = values::span)]
    expires: Option<Duration>,
    /// Show what would be published, and publish nothing
    #[arg(long)]
    dry_run: bool,
}

pub(super) async fn run(context: &Context, args: Args) -> Outcome {
    let is_dry = args.dry_run;
    let offer = offer(args)?;
    if is_dry {
        let json = Json::Object(offer.to_object());
        let value = json.into();
        return Ok(context.output.show(&value, &format!("{value:#}"))?);
    }
    let client = context.client()?;
    let published = client.publish_listing(&offer).await?;
    let (id, version) = (&published.id, published.version);
    let unusual = match published.flags.as_slice() {
        [] => String::new(),
        flags => format!("\nunusual: {}", flags.join(", ")),
    };
    let held = match published.held.as_deref() {
        None => "",
        Some("quarantined") => "\nquarantined: it is found when the hub's operator has looked at it",
        Some(_) => "\nrejected by the hub's operator: nobody finds it",
    };
    let lines = format!("{id} is {} as version {version}{unusual}{held}", published.status);
    Ok(context.output.show(&published_json(&published), &lines)?)
}

fn offer(args: Args) -> Result<Offer, Failure> {
    if let Some(path) = args.file {
        let json = Json::parse(&read(&path, LISTING_BYTES_MAX)?).map_err(Error::from)?;
        if json.as_array().is_some() {
            let path = path.display();
            return Err(Failure::Usage(format!(
                "this is a list; publish it with `aip listing import {path}`"
            )));
        }
        return Ok(Offer::from_json(&json).map_err(Error::from)?);
    }
    let name = args.name.unwrap_or_default();
    let id = args.id.unwrap_or_else(|| id_of(&name));
    if id.is_empty() {
        return Err(Failure::Usage(
            "no id can be made of this name; give one with --id".to_owned(),
        ));
    }
    let now = SystemClock.now();
    let attributes = args
        .attr
        .into_iter()
        .map(|(name, value)| (name, Json::from(value)));
    let offer = Offer {
        description: args.description.unwrap_or_default(),
        lang: args.lang,
        tags: args.tag,
        price: args.price,
        currency: args.currency,
        available: args.unavailable.then_some(false),
        attributes: attributes.collect(),
        expires_at: args.expires.map(|span| now + span),
        ..Offer::new(args.kind, id, name)
    };
    // What is wrong with it is said before a key is asked for.
    Ok(Offer::from_json(&Json::Object(offer.to_object())).map_err(Error::from)?)
}

/// The words of a name, in lower case, with hyphens between. Where signs are left out a few digits of the name's hash
/// follow, so that `C++ course` and `C# course` are two listings.
fn id_of(name: &str) -> String {
    let words = name
        .split(|c: char| !c.is_alphanumeric())
        .filter(|word| !word.is_empty());
    let id = words.map(str::to_lowercase).collect::<Vec<_>>().join("-");
    let is_sign = |c: char| !c.is_alphanumeric() && !c.is_whitespace() && !matches!(c, ',' | '.' | '-');
    if id.is_empty() || !name.contains(is_sign) {
        return id;
    }
    let digest = Sha256::digest(name.as_bytes());
    let start = digest.first_chunk().copied().map_or(0, u32::from_be_bytes);
    format!("{id}-{start:08x}")
}

#[cfg(test)]
mod tests {
    use super::id_of;

    #[test]
    fn names_that_differ_by_a_sign_have_two_ids() {
        assert_eq!(id_of("Green tea, 100 g"), "green-tea-100-g");
        assert_eq!(id_of("Чай зелёный"), "чай-зелёный");
        let (plus, sharp) = (id_of("C++ course"), id_of("C# course"));
        assert!(plus.starts_with("c-course-") && plus != sharp, "{plus} {sharp}");
        assert_eq!(id_of("C++ course"), plus);
        assert_eq!(id_of("!?"), "");
    }
}
