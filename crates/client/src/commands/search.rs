//! `aip search TEXT`: finds what agents offer.

use std::time::Duration;

use aip_client::protocol::listing::ListingKind;
use aip_client::protocol::name::Domain;
use aip_client::protocol::time::Timestamp;
use aip_client::search::{Answer, Hit, Query};
use futures_util::stream::LocalBoxStream;
use futures_util::{StreamExt as _, TryStreamExt as _};
use serde_json::Value;

use super::Outcome;
use super::table::{Column, Table, fitted};
use crate::cli::values;
use crate::context::Context;
use crate::failure::Failure;
use crate::output::note;

const EXAMPLES: &str = "\
Examples:
  aip search iphone 15 pro max 256gb
  aip search \"machine à laver\" --kind product --price-max 400 --currency EUR --available
  aip search PS-LX350H --brand sony --attr color=black
  aip search \"current weather\" --kind capability --explain
  aip search --brand sony --all --json
  aip search \"green tea\" --by-message --wait 1m

Words are words: there is no query language, and no character is special. Without words, all that passes the filters is
listed, by trust. With --json, each page is one line; prices are exact text.

With --by-message the hub's own agent (hub#DOMAIN) is asked by a sealed message, and its answer is awaited in the mailbox:
for where only the relay is reachable, and for asking without showing the words to what stands in front of the hub. It
needs the keys of a registered agent. While `aip listen` runs for the same agent, it may take the answer.";

/// Codes find things too: ps-lx350h, pslx350h and ps lx350h are the same. Results are those of the hub, best first.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// What to look for
    #[arg(value_name = "TEXT")]
    words: Vec<String>,
    /// Only this kind: capability, product or concept; several with commas between
    #[arg(long, value_name = "KIND", value_parser = values::kind, value_delimiter = ',')]
    kind: Vec<ListingKind>,
    /// Costs at least this, such as 12.50
    #[arg(long, value_name = "PRICE")]
    price_min: Option<String>,
    /// Costs at most this
    #[arg(long, value_name = "PRICE")]
    price_max: Option<String>,
    /// The currency of prices
    #[arg(long, value_name = "EUR", value_parser = values::currency)]
    currency: Option<String>,
    /// Only what can be had now; --available=false for what cannot
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    available: Option<bool>,
    /// Only of this category
    #[arg(long)]
    category: Option<String>,
    /// Only of this brand
    #[arg(long)]
    brand: Option<String>,
    /// Only in this language, such as fr
    #[arg(long)]
    lang: Option<String>,
    /// Only listed at this hub
    #[arg(long)]
    domain: Option<String>,
    /// The trust in the agent is at least this, 0 to 1
    #[arg(long, value_name = "TRUST")]
    trust_min: Option<String>,
    /// Only with this attribute; may be given several times
    #[arg(long, value_name = "NAME=VALUE", value_parser = values::attribute)]
    attr: Vec<(String, String)>,
    /// Only what was published at or after this moment, such as 2026-11-29T00:00:00Z
    #[arg(long, value_name = "TIME", value_parser = |text: &str| Timestamp::parse(text))]
    updated_after: Option<Timestamp>,
    /// So many results on a page
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100))]
    limit: Option<u32>,
    /// All pages
    #[arg(long)]
    all: bool,
    /// Say why each result stands where it stands, and its id
    #[arg(long)]
    explain: bool,
    /// Count what was found by kind, category, brand and so on
    #[arg(long)]
    facets: bool,
    #[command(flatten)]
    way: Way,
}

/// How the hub is asked.
#[derive(Debug, Clone, clap::Args)]
struct Way {
    /// Ask the hub's own agent by message, over the relay
    #[arg(long)]
    by_message: bool,
    /// Ask the agent of another hub
    #[arg(long, value_name = "DOMAIN", requires = "by_message", value_parser = |text: &str| Domain::parse(text))]
    at: Option<Domain>,
    /// Wait so long for each answer
    #[arg(long, value_name = "SPAN", requires = "by_message", value_parser = values::span, default_value = "30s")]
    wait: Duration,
}

pub(crate) async fn run(context: &Context, args: Args) -> Outcome {
    let (is_all, is_explained) = (args.all, args.explain);
    let mut pages = pages(context, args)?;
    let mut table = Table::new(columns());
    let mut shown = 0;
    while let Some(answer) = pages.try_next().await? {
        let value = serde_json::to_value(&answer).map_err(std::io::Error::from)?;
        let lines = lines(&mut table, &answer, shown, is_explained);
        if lines.is_empty() && !context.output.is_json() {
            note("nothing was found");
        } else {
            context.output.show(&value, &lines)?;
        }
        if shown == 0 && !answer.degraded.is_empty() {
            note(&format!(
                "the hub searched without this just now: {}",
                answer.degraded.join(", ")
            ));
        }
        shown += answer.results.len();
        if !is_all {
            if answer.next_cursor.is_some() && !context.output.is_json() {
                note("there is more: --all shows everything, --limit up to 100");
            }
            break;
        }
    }
    Ok(())
}

/// The pages, asked over HTTP or by message.
fn pages(
    context: &Context,
    args: Args,
) -> Result<LocalBoxStream<'static, aip_client::Result<Answer>>, Failure> {
    if !args.way.by_message {
        let client = context.client_without_keys(None)?;
        return Ok(client.search_pages(query(args)).boxed_local());
    }
    let Way { at, wait, .. } = args.way.clone();
    let client = context.client()?;
    Ok(client
        .search_pages_by_message(query(args), at, wait)
        .boxed_local())
}

fn query(args: Args) -> Query {
    Query {
        text: args.words.join(" "),
        kinds: args.kind,
        price_min: args.price_min,
        price_max: args.price_max,
        currency: args.currency,
        available: args.available,
        trust_min: args.trust_min,
        domain: args.domain,
        category: args.category,
        brand: args.brand,
        lang: args.lang,
        attributes: args.attr.into_iter().collect(),
        updated_after: args.updated_after,
        // Fewer requests for the same results.
        limit: args
            .limit
            .or(args.all.then_some(aip_client::limits::SEARCH_LIMIT_MAX)),
        cursor: None,
        explain: args.explain,
        facets: args.facets,
    }
}

fn columns() -> Vec<Column> {
    let column = |head, cells_max, is_number| Column {
        head,
        cells_max,
        is_number,
    };
    vec![
        column("#", 6, true),
        column("NAME", 48, false),
        column("PRICE", 24, true),
        column("TRUST", 5, true),
        column("AGENT", 48, false),
    ]
}

fn lines(table: &mut Table, answer: &Answer, before: usize, is_explained: bool) -> String {
    let row = |(hit, number): (&Hit, usize)| {
        vec![
            number.to_string(),
            hit.name.clone(),
            price(hit),
            format!("{:.2}", hit.trust_score),
            hit.agent.handle.clone(),
        ]
    };
    if answer.results.is_empty() {
        return String::new();
    }
    let rows: Vec<Vec<String>> = answer.results.iter().zip(before + 1..).map(row).collect();
    let drawn = table.lines(&rows);
    // The heads stand before the rows of the first page only.
    let heads = drawn.len() - rows.len();
    let mut lines: Vec<String> = drawn.iter().take(heads).cloned().collect();
    for (line, hit) in drawn.into_iter().skip(heads).zip(&answer.results) {
        lines.push(line);
        if is_explained {
            lines.extend(why(hit));
        }
    }
    for (name, counts) in answer
        .facets
        .iter()
        .flatten()
        .filter(|(_, counts)| !counts.is_empty())
    {
        let counts: Vec<String> = counts
            .iter()
            .map(|count| format!("{} {}", fitted(&count.value, 32), count.count))
            .collect();
        lines.push(format!("{}: {}", fitted(name, 16), counts.join(", ")));
    }
    lines.join("\n")
}

fn price(hit: &Hit) -> String {
    let price = hit.price.iter().chain(&hit.currency).map(String::as_str);
    let mut words: Vec<&str> = price.collect();
    if hit.price.is_none() {
        words.clear();
    }
    if hit.available == Some(false) {
        words.push("(not now)");
    }
    words.join(" ")
}

/// Two lines under a result.
fn why(hit: &Hit) -> Vec<String> {
    let rank = |name: &str, rank: Option<u32>| match rank {
        Some(rank) => format!("{name} {rank}"),
        None => format!("{name} -"),
    };
    let mut facts = vec![
        hit.id.clone(),
        rank("text", hit.rank_fts),
        rank("meaning", hit.rank_semantic),
    ];
    let scores = [("relevance", hit.relevance_score), ("score", hit.final_score)];
    facts.extend(
        scores
            .iter()
            .filter_map(|(name, score)| score.map(|score| format!("{name} {score:.4}"))),
    );
    let mut lines = vec![format!("    {}", fitted(&facts.join("  "), 160))];
    let explained = hit.explain.as_ref().map(explained).unwrap_or_default();
    if !explained.is_empty() {
        lines.push(format!("    {}", fitted(&explained, 240)));
    }
    lines
}

/// What matched where, and how near the meaning is; as much of it as the hub tells.
fn explained(explain: &Value) -> String {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let list = |name: &str| explain.get(name).and_then(Value::as_array).into_iter().flatten();
    let matched = list("matched").map(|part| {
        let terms = part.get("terms").and_then(Value::as_array).into_iter().flatten();
        let terms = terms.map(text).collect::<Vec<_>>().join(", ");
        format!("{} ({terms})", part.get("field").map(text).unwrap_or_default())
    });
    let matched = matched.collect::<Vec<_>>().join(", ");
    let covered = explain.pointer("/text/coverage").and_then(Value::as_f64);
    let cosines = explain
        .get("cosines")
        .and_then(Value::as_object)
        .into_iter()
        .flatten();
    let mut facts = Vec::new();
    if !matched.is_empty() {
        facts.push(format!("matches {matched}"));
    }
    facts.extend(covered.map(|share| format!("says {:.0} % of the query", share * 100.0)));
    facts.extend(cosines.filter_map(|(model, near)| Some(format!("{model} {:.3}", near.as_f64()?))));
    facts.join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_result_is_explained_in_a_line() {
        let explain = json!({
            "text": {"score": 12.5, "coverage": 0.75, "exact": false}, "cosines": {"e5": 0.91},
            "matched": [{"field": "name", "terms": ["green", "tea"]}, {"field": "tags", "terms": ["tea"]}], "rrf": 0.03,
        });
        assert_eq!(
            explained(&explain),
            "matches name (green, tea), tags (tea); says 75 % of the query; e5 0.910"
        );
        assert_eq!(explained(&json!({"later": [1]})), "");
        assert_eq!(explained(&json!(null)), "");
    }
}
