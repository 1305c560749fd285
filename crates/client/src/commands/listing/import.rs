//! `aip listing import FILE`: publishes what a file of another form lists, with a report of each row.

use std::path::PathBuf;
use std::time::Duration;

use aip_client::ProviderKey;
use aip_client::import::{self, Format, Import, Options};
use aip_client::limits::IMPORT_BYTES_MAX;
use aip_client::protocol::listing::{ListingKind, Offer};
use clap::ValueEnum;

use super::rows::{Fate, Report};
use super::{Outcome, read, refused};
use crate::cli::values;
use crate::context::Context;
use crate::failure::Failure;
use crate::output::note;

const EXAMPLES: &str = "\
Formats:
  manifest  JSON: an AIMarket manifest, MCP tools/list, functions, or listings as objects, one a line too
  jsonld    schema.org Products, as pages carry them
  csv       a table with a header line; , ; tab or | between the columns
  merchant  a Google-Merchant-style feed, RSS or Atom

Examples:
  aip listing import products.csv --currency EUR --dry-run
  aip listing import feed.xml
  aip listing import tools.json --lang en
  aip listing import prices.csv --decimal-comma --separator ';' --provider-key-file key --hub https://hub.example

A row keeps its own id (id, sku, gtin; its name where it has none), so importing a file again changes only what has changed
in it. With your own key each listing is signed; with a provider key the hub's operator vouches for them. Rows that are wrong
are said, with what to do, and left out; the exit code is then 1. What is no longer in the file stays published.";

/// Nothing is guessed that could be wrong: a price that can be read in two ways, or without a currency, is said.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Args {
    /// The file; - is the standard input
    file: PathBuf,
    /// What the file is
    #[arg(long, value_enum, default_value = "auto")]
    format: Form,
    /// Read and report, and publish nothing
    #[arg(long)]
    dry_run: bool,
    /// Hand the rows in with the provider key in this file, instead of signing each
    #[arg(long, value_name = "FILE")]
    provider_key_file: Option<PathBuf>,
    /// The currency of prices that name none
    #[arg(long, value_name = "EUR", value_parser = values::currency)]
    currency: Option<String>,
    /// The language of rows that name none, such as fr
    #[arg(long)]
    lang: Option<String>,
    /// What kind of thing each row is; capabilities in a manifest, else products
    #[arg(long, value_parser = values::kind)]
    kind: Option<ListingKind>,
    /// In prices, the comma is the decimal point
    #[arg(long)]
    decimal_comma: bool,
    /// In prices, the point is the decimal point, also before three digits
    #[arg(long, conflicts_with = "decimal_comma")]
    decimal_point: bool,
    /// What separates the columns of a table: one character, or the word tab
    #[arg(long, value_name = "CHAR", value_parser = values::separator)]
    separator: Option<u8>,
    /// How long to try when the hub does not answer; at most 15m
    #[arg(long, value_name = "SPAN", value_parser = values::span, default_value = "2m")]
    retry_for: Duration,
}

/// What the file is.
#[derive(Debug, Clone, Copy, ValueEnum)]
enum Form {
    Auto,
    Manifest,
    Jsonld,
    Csv,
    Merchant,
}

impl Form {
    fn format(self) -> Option<Format> {
        match self {
            Self::Auto => None,
            Self::Manifest => Some(Format::Manifest),
            Self::Jsonld => Some(Format::JsonLd),
            Self::Csv => Some(Format::Csv),
            Self::Merchant => Some(Format::Merchant),
        }
    }
}

pub(super) async fn run(context: &Context, args: Args) -> Outcome {
    let options = Options {
        currency: args.currency.clone(),
        lang: args.lang.clone(),
        kind: args.kind,
        decimal_comma: args.decimal_comma,
        decimal_point: args.decimal_point,
        separator: args.separator,
    };
    let bytes = read(&args.file, IMPORT_BYTES_MAX)?;
    let named = |error: import::ImportError| Failure::Other(format!("{}: {error}", args.file.display()));
    let import = import::read(&bytes, args.format.format(), &options).map_err(named)?;
    note(&format!(
        "{} rows, read as {}",
        import.rows.len(),
        import.format.as_str()
    ));
    let offers: Vec<Offer> = import.rows.iter().filter_map(|row| row.offer.clone()).collect();
    let fates = if args.dry_run || offers.is_empty() {
        offers.iter().map(|_| Fate::Good).collect()
    } else if let Some(path) = &args.provider_key_file {
        ingest(context, &ProviderKey::read(path)?, &offers, args.retry_for).await?
    } else {
        publish(context, &offers, args.retry_for).await?
    };
    report(context, &import, fates, args.dry_run)
}

async fn publish(context: &Context, offers: &[Offer], retry_for: Duration) -> Result<Vec<Fate>, Failure> {
    let client = context.client_with(Some(retry_for))?;
    let results = client.publish_listings(offers).await?;
    let fate = |result: aip_client::Result<_>| match result {
        Ok(published) => Fate::Held(published),
        Err(error) => Fate::Refused {
            code: error.problem().map(|problem| problem.code.clone()),
            why: error.sentence(),
        },
    };
    Ok(results.into_iter().map(fate).collect())
}

async fn ingest(
    context: &Context,
    key: &ProviderKey,
    offers: &[Offer],
    retry_for: Duration,
) -> Result<Vec<Fate>, Failure> {
    let client = context.client_to_read(retry_for)?;
    let report = client.ingest(key, offers).await?;
    Ok(report
        .rows
        .into_iter()
        .map(|row| match (row.status.as_str(), &row.id) {
            ("refused", _) | (_, None) => Fate::Refused {
                why: refused(&row),
                code: row.code,
            },
            (_, Some(id)) => Fate::Taken {
                id: id.clone(),
                version: row.version,
                status: row.status,
            },
        })
        .collect())
}

fn report(context: &Context, import: &Import, fates: Vec<Fate>, is_dry: bool) -> Outcome {
    let mut report = Report::new(context.output, is_dry);
    let mut fates = fates.into_iter();
    for row in &import.rows {
        let fate = match &row.offer {
            Some(_) => fates.next().unwrap_or(Fate::Good),
            None => Fate::Unread,
        };
        report.row(row, &fate)?;
    }
    report.end()
}
