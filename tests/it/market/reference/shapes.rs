//! What both hubs answer, member by member. Every difference is in a table with its reason; one that is not there fails, and so
//! does one in the table that is no more.

use std::collections::{BTreeMap, BTreeSet};

use aip_tests::market::Purse;
use aip_tests::raw::{Answer, Request, ask};
use anyhow::Result;
use serde_json::{Value, json};

use super::{Both, fitting, purses};

/// A difference, and why it is one: `ours PATH`, `theirs PATH` (only there), or `type PATH`; with `*` at its end it is about
/// everything that begins so.
pub(super) type Known = (&'static str, &'static str);

/// Objects whose members are named by data, and those that are passed on as they are.
const MAPS: [&str; 1] = ["by_hub"];
const OPAQUE: [&str; 3] = ["tools[].input_schema", "tools[].output_schema", "result"];

type Shape = BTreeMap<String, BTreeSet<&'static str>>;

/// The types of every member, by its path. Those of all elements of an array are together, at `[]`.
fn shape(value: &Value, at: &str, found: &mut Shape) {
    let kind = match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "text",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    };
    found.entry(at.to_owned()).or_default().insert(kind);
    match value {
        Value::Array(elements) => {
            for element in elements {
                shape(element, &format!("{at}[]"), found);
            }
        }
        Value::Object(members) if !OPAQUE.contains(&at) => {
            for (name, member) in members {
                let name = if MAPS.contains(&at) { "{}" } else { name };
                let at = if at.is_empty() {
                    name.to_owned()
                } else {
                    format!("{at}.{name}")
                };
                shape(member, &at, found);
            }
        }
        _ => {}
    }
}

fn differences(ours: &Value, theirs: &Value) -> BTreeSet<String> {
    let [mut our_shape, mut their_shape] = [Shape::new(), Shape::new()];
    shape(ours, "", &mut our_shape);
    shape(theirs, "", &mut their_shape);
    let paths: BTreeSet<&String> = our_shape.keys().chain(their_shape.keys()).collect();
    // What is in an object that only one of them has is not told as well.
    let is_told = |path: &str| {
        let above = path
            .strip_suffix("[]")
            .or_else(|| path.rsplit_once('.').map(|(above, _)| above));
        above.is_none_or(|above| our_shape.contains_key(above) && their_shape.contains_key(above))
    };
    paths
        .into_iter()
        .filter(|path| is_told(path))
        .filter_map(|path| match (our_shape.get(path), their_shape.get(path)) {
            (Some(ours), Some(theirs)) => (ours != theirs).then(|| format!("type {path}")),
            (Some(_), None) => Some(format!("ours {path}")),
            (None, _) => Some(format!("theirs {path}")),
        })
        .collect()
}

fn covers(known: &str, difference: &str) -> bool {
    known
        .strip_suffix('*')
        .map_or(known == difference, |begins| difference.starts_with(begins))
}

/// That these two differ in what is known, and in nothing else.
pub(super) fn assert_differences(what: &str, ours: &Value, theirs: &Value, known: &[Known]) {
    let found = differences(ours, theirs);
    let new: Vec<&String> = found
        .iter()
        .filter(|difference| !known.iter().any(|(known, _)| covers(known, difference)))
        .collect();
    let gone: Vec<&str> = known
        .iter()
        .map(|(known, _)| *known)
        .filter(|known| !found.iter().any(|difference| covers(known, difference)))
        .collect();
    assert!(
        new.is_empty() && gone.is_empty(),
        "{what}: differences without a reason: {new:#?}\nno more: {gone:#?}\nours: {ours:#}\ntheirs: {theirs:#}"
    );
    assert!(known.iter().all(|(_, reason)| reason.len() > 10), "{what}");
}

const ON_CHAIN: &str =
    "on chains the reference takes transfers and holds wallets; here only a call is paid there";
const OTHER_ROOMS: &str = "it is about a part of the reference that is not here";
const NOT_MEASURED: &str = "what was not measured is left out rather than made up";
const NO_STAKES: &str = "nobody puts up money for being trusted";
const TWO_SIGNATURES: &str =
    "the reference signs twice, and a reader of the one signature passes the other over";
const WHAT_WAS_CALLED: &str = "an answer says what it answers, and under which name the call is kept";
const WHERE: &str = "a client finds every door in this document";
const WHOSE: &str = "a buyer names whose offer it is, so that nobody else is called or paid";
const CHANGES: &str = "a buyer sees that a description or a schema is another one than before";
const KEYS: &str = "an account has an owner, and keys with budgets";
const THREE_STATES: &str =
    "a receipt that could not be checked is no forgery, and what is not signed is named";
const ONE_FRAME: &str = "every answer has the same frame";
pub(super) const TERMS: &str = "whoever has to pay is told how much and how, whatever stopped the call";
const FIELDS: &str = "a client finds out what it needs to send";

const WELL_KNOWN: &[Known] = &[
    ("ours aip_url", WHERE),
    ("ours description", "every hub says what it is"),
    ("ours federation.announce_url", WHERE),
    ("ours federation.enabled", WHERE),
    ("ours federation.open", WHERE),
    ("ours federation.peers_url", WHERE),
    ("ours hub_url", WHERE),
    ("ours idempotency", "calls are made once under a key"),
    ("ours invoke_url", WHERE),
    ("ours jobs", "a call that takes long is polled"),
    (
        "ours payment_rails.channel.demo_credit",
        "money from nowhere is called so",
    ),
    ("ours payment_rails.channel.open_url", WHERE),
    ("ours payment_rails.channel.secret_header", FIELDS),
    ("ours search_url", WHERE),
    ("theirs a2a_*", OTHER_ROOMS),
    ("theirs ecosystem", OTHER_ROOMS),
    (
        "theirs federation.min_trust_score",
        "no trust is asked for: there is none yet",
    ),
    (
        "theirs federation.seed_list",
        "whom the operator named is nobody else's business",
    ),
    ("theirs free_trial.clients", OTHER_ROOMS),
    (
        "theirs free_trial.excluded_capabilities[]",
        "a trial is had of everything that has a price",
    ),
    (
        "theirs free_trial.excluded_reason",
        "a trial is had of everything that has a price",
    ),
    ("theirs free_trial.how", "members say it"),
    ("theirs lottery_admission", OTHER_ROOMS),
    ("theirs mandates", OTHER_ROOMS),
    ("theirs mcp_endpoint", OTHER_ROOMS),
    ("theirs mcp_servers", OTHER_ROOMS),
    (
        "theirs observed_hubs",
        "who waits for the operator is not told on",
    ),
    ("theirs pay_on_verified", OTHER_ROOMS),
    ("theirs payment_rails.channel.chains[]", ON_CHAIN),
    ("theirs payment_rails.credits.start_url", OTHER_ROOMS),
    ("theirs payment_rails.credits.topup*", ON_CHAIN),
    (
        "theirs payment_rails.seller_direct.*",
        "it is off here, and says no more",
    ),
    ("theirs pipeline_execution", OTHER_ROOMS),
    ("theirs plugins_*", OTHER_ROOMS),
    ("theirs seller_operations", OTHER_ROOMS),
    ("theirs signature.pq_*", TWO_SIGNATURES),
    ("theirs subcontracting", OTHER_ROOMS),
    ("theirs supported_*", ON_CHAIN),
];
const MANIFEST: &[Known] = &[
    ("ours capabilities_count", "the signature says how many there are"),
    ("ours tools[].description_sha256", CHANGES),
    ("ours tools[].listing_id", WHOSE),
    ("ours tools[].publisher_id", WHOSE),
    ("ours tools[].schema_sha256", CHANGES),
    ("ours tools[].version", CHANGES),
    ("theirs by_hub.{}.last_crawl", "a hub is not crawled by itself"),
    ("theirs signature.pq_*", TWO_SIGNATURES),
    ("theirs tools[].observations_30d", NOT_MEASURED),
    ("theirs tools[].p50_latency_ms", NOT_MEASURED),
    ("theirs tools[].reputation_basis", NOT_MEASURED),
    ("theirs tools[].success_rate_30d", NOT_MEASURED),
    ("theirs tools[].trust_score", NOT_MEASURED),
    ("type tools[].invoke_url", "what cannot be called is not shown"),
];
const PRICES: &[Known] = &[
    ("ours prices[].source_hub_name", "a buyer sees whose price it is"),
    ("ours total_capabilities", "a list that was cut says of how many"),
    ("theirs signature.pq_*", TWO_SIGNATURES),
    (
        "type prices[].routed_price_usd",
        "a price is a number always: clients add them",
    ),
];
const SEARCH: &[Known] = &[
    ("ours matches[].category", "a category can be searched for"),
    ("ours matches[].currency", TERMS),
    ("ours matches[].description_sha256", CHANGES),
    ("ours matches[].listing_id", WHOSE),
    ("ours matches[].price_text", TERMS),
    ("ours matches[].schema_sha256", CHANGES),
    ("ours matches[].version", CHANGES),
    ("theirs matches[].deliveries_30d", NOT_MEASURED),
    (
        "theirs matches[].input_hint",
        "the schema is in the manifest and in the listing",
    ),
    ("theirs matches[].input_independent", NOT_MEASURED),
    (
        "theirs matches[].matched_*",
        "words are found by an index, which does not say which",
    ),
    ("theirs matches[].observations_30d", NOT_MEASURED),
    ("theirs matches[].p50_latency_ms", NOT_MEASURED),
    (
        "theirs matches[].payout_address",
        "whom to pay on a chain is in the terms of the 402",
    ),
    ("theirs matches[].reputation_basis", NOT_MEASURED),
    (
        "theirs matches[].route_age_s",
        "what is too old is not found at all",
    ),
    ("theirs matches[].score_breakdown.quality", NOT_MEASURED),
    ("theirs matches[].stake_usd", NO_STAKES),
    ("theirs search.languages[]", "no language is left out"),
    ("type matches[].publisher_id", WHOSE),
];

#[tokio::test]
async fn documents_differ_where_there_is_a_reason() -> Result<()> {
    let Some(both) = Both::open().await? else {
        return Ok(());
    };
    let documents = [
        ("well-known", "/.well-known/ai-market.json", WELL_KNOWN),
        ("manifest", "/ai-market/v2/manifest", MANIFEST),
        ("prices", "/ai-market/v2/prices", PRICES),
        ("search", "/ai-market/v2/search?intent=paid", SEARCH),
    ];
    for (what, path, known) in documents {
        let [ours, theirs] = both.ask(&Request::get(path)).await.map(|answer| answer.json());
        assert_differences(what, &ours, &theirs, known);
    }
    Ok(())
}

const CALLED: &[Known] = &[
    ("ours capability_id", WHAT_WAS_CALLED),
    ("ours invocation_id", WHAT_WAS_CALLED),
    ("ours product_id", WHAT_WAS_CALLED),
    (
        "ours receipt.signature.public_key",
        "a reader sees at once that a key is another one than the pinned one",
    ),
    ("theirs plugins_checked", OTHER_ROOMS),
    ("theirs receipt.signature.pq_*", TWO_SIGNATURES),
    ("theirs subcontracting", OTHER_ROOMS),
];
const TRIED: &[Known] = &[
    ("ours capability_id", WHAT_WAS_CALLED),
    ("ours invocation_id", WHAT_WAS_CALLED),
    ("ours product_id", WHAT_WAS_CALLED),
    (
        "ours receipt.signature.public_key",
        "a reader sees at once that a key is another one than the pinned one",
    ),
    ("theirs plugins_checked", OTHER_ROOMS),
    ("theirs receipt.signature.pq_*", TWO_SIGNATURES),
    ("theirs subcontracting", OTHER_ROOMS),
    (
        "theirs remaining",
        "who shares a place shares its trials, so that the number would be wrong",
    ),
    (
        "theirs used",
        "who shares a place shares its trials, so that the number would be wrong",
    ),
];
const VERIFIED: &[Known] = &[
    ("ours kept", "a receipt that this hub gave out is kept"),
    ("ours reason", THREE_STATES),
    ("ours reason_code", THREE_STATES),
    ("ours state", THREE_STATES),
    ("ours success", ONE_FRAME),
    ("ours uncovered", THREE_STATES),
];

#[tokio::test]
async fn answers_of_calls_and_their_receipts_differ_where_there_is_a_reason() -> Result<()> {
    let Some(both) = Both::open().await? else {
        return Ok(());
    };
    let urls = [both.ours.hub.url().to_owned(), both.theirs.url().to_owned()];
    let purses = [purses(&urls[0]).await?, purses(&urls[1]).await?];
    // Anybody has an account here, and there it has money: an operator puts it in here.
    fund(&both, &purses[0][0]).await?;
    let with = |hub: usize, at: Option<usize>, request: Request| match at {
        Some(at) => purses[hub][at].on(request),
        None => request,
    };
    let visitor = |request: Request| request.field("X-AIMarket-Sandbox-Visitor", "visitor-one");
    let cases = [
        ("a free call", None, fitting("free@v1"), CALLED),
        ("a call paid by key", Some(0), fitting("paid@v1"), CALLED),
        ("a call paid from a channel", Some(1), fitting("paid@v1"), CALLED),
        ("a trial", None, visitor(fitting("paid@v1")), TRIED),
    ];
    for (what, purse, request, known) in cases {
        let ours = ask(&urls[0], &with(0, purse, request.clone())).await;
        let theirs = ask(&urls[1], &with(1, purse, request)).await;
        for answer in [&ours, &theirs] {
            assert_eq!(answer.status, 200, "{what}: {}", answer.text());
        }
        assert_differences(what, &ours.json(), &theirs.json(), known);
        let verified = [(&urls[0], &ours), (&urls[1], &theirs)].map(|(url, called)| verified(url, called));
        let [ours, theirs] = futures_util::future::join_all(verified).await.try_into().unwrap();
        assert_eq!(
            (&ours["valid"], &theirs["valid"]),
            (&json!(true), &json!(true)),
            "{what}"
        );
        assert_differences("a receipt that is looked at", &ours, &theirs, VERIFIED);
    }
    Ok(())
}

async fn verified(url: &str, called: &Answer) -> Value {
    let body = json!({ "receipt": called.json()["receipt"] }).to_string();
    ask(url, &Request::post("/ai-market/v2/receipts/verify", body))
        .await
        .json()
}

/// Puts a dollar into the account of a key of our hub.
pub(super) async fn fund(both: &Both, purse: &Purse) -> Result<()> {
    let hub = &both.ours.hub;
    let account = ask(hub.url(), &purse.on(Request::get("/ai-market/v2/account")))
        .await
        .json();
    let id = account["account_id"].as_str().unwrap_or_default();
    let body = json!({ "amount": "1", "reference": "invoice" }).to_string();
    let answer = hub
        .operate(Request::post(format!("/admin/accounts/{id}/credits"), body))
        .await;
    anyhow::ensure!(answer.status < 300, "{}", answer.text());
    Ok(())
}

const ACCOUNT_MADE: &[Known] = &[
    ("ours budget_usd", KEYS),
    ("ours key_id", KEYS),
    ("ours owner", KEYS),
];
const ACCOUNT: &[Known] = &[
    ("ours budget_usd", KEYS),
    ("ours keys", KEYS),
    ("ours owner", KEYS),
    ("theirs collateral_usd", NO_STAKES),
    ("theirs granted_usd", "nothing is given with an account"),
    ("theirs topped_up_usd", "how money came in is in the ledger"),
];
const LEDGER: &[Known] = &[
    (
        "ours entries[].at",
        "the same under another name: a moment is `at` in every answer here",
    ),
    (
        "ours entries[].balance_usd",
        "each line can be checked against the one before",
    ),
    ("ours entries[].number", "pages go on by number"),
    (
        "ours entries[].reference",
        "what a line is about: a receipt, an invocation, an invoice",
    ),
    ("ours next", "pages go on by number"),
    (
        "theirs entries[].account_id",
        "it is the account that was asked about",
    ),
    (
        "theirs entries[].created_at",
        "the same under another name: a moment is `at` in every answer here",
    ),
    (
        "theirs entries[].note",
        "what a line is about: a receipt, an invocation, an invoice",
    ),
    (
        "theirs entries[].receipt_id",
        "what a line is about: a receipt, an invocation, an invoice",
    ),
];
const CHANNEL_OPENED: &[Known] = &[
    ("ours channel.funding", "money from nowhere is called so"),
    (
        "ours channel.held_usd",
        "a channel can be looked at while a call is under way",
    ),
    ("ours protocol_version", ONE_FRAME),
    ("ours success", ONE_FRAME),
    ("theirs channel.chain", ON_CHAIN),
    ("theirs channel.recipient", ON_CHAIN),
    ("theirs channel.token", ON_CHAIN),
    ("theirs channel.tx_hash", ON_CHAIN),
    ("theirs channel.verify_stub", ON_CHAIN),
    ("theirs channel.wallet", ON_CHAIN),
];
const CHANNEL_CLOSED: &[Known] = &[
    ("ours protocol_version", ONE_FRAME),
    ("ours success", ONE_FRAME),
    (
        "theirs settlement.obligation.*",
        "what is left goes back at once: nothing is owed",
    ),
    (
        "type settlement.obligation",
        "what is left goes back at once: nothing is owed",
    ),
    ("type settlement.settle_tx_hash", ON_CHAIN),
];

#[tokio::test]
async fn purses_differ_where_there_is_a_reason() -> Result<()> {
    let Some(both) = Both::open().await? else {
        return Ok(());
    };
    let post = |path: &str, body: Value| Request::post(format!("/ai-market/v2/{path}"), body.to_string());
    let made = both.ask(&post("accounts", json!({ "label": "a test" }))).await;
    let made = made.map(|answer| answer.json());
    assert_differences("an account that was made", &made[0], &made[1], ACCOUNT_MADE);
    let keys = made.map(|made| Purse::Key(made["api_key"].as_str().unwrap_or_default().to_owned()));
    fund(&both, &keys[0]).await?;
    for (what, path, known) in [
        ("an account", "account", ACCOUNT),
        ("a ledger", "account/ledger", LEDGER),
    ] {
        let request = Request::get(format!("/ai-market/v2/{path}"));
        let ours = both.ours.ask(&keys[0].on(request.clone())).await.json();
        let theirs = both.theirs.ask(&keys[1].on(request)).await.json();
        assert_differences(what, &ours, &theirs, known);
    }
    let opened = both.ask(&post("channel/open", json!({ "deposit_usd": 1 }))).await;
    let opened = opened.map(|answer| answer.json());
    assert_differences(
        "a channel that was opened",
        &opened[0],
        &opened[1],
        CHANNEL_OPENED,
    );
    let close = |opened: &Value| {
        let channel = &opened["channel"];
        post("channel/close", json!({ "channel_id": channel["channel_id"] })).field(
            "X-Payment-Channel-Secret",
            channel["channel_secret"].as_str().unwrap_or_default(),
        )
    };
    let ours = both.ours.ask(&close(&opened[0])).await.json();
    let theirs = both.theirs.ask(&close(&opened[1])).await.json();
    assert_differences("a channel that was closed", &ours, &theirs, CHANNEL_CLOSED);
    Ok(())
}

/// What tells the differences apart is right itself.
#[test]
fn a_difference_is_found_and_a_known_one_is_not_told() {
    let ours = json!({ "a": 1, "b": [{ "c": "x" }, { "d": null }], "by_hub": { "local": { "n": 1 } } });
    let theirs =
        json!({ "a": "1", "b": [{ "c": "y", "e": { "f": 1 } }], "by_hub": { "http://x": { "n": 2 } } });
    let found: Vec<String> = differences(&ours, &theirs).into_iter().collect();
    assert_eq!(found, ["ours b[].d", "theirs b[].e", "type a"]);
    let reason = "there is a reason";
    assert_differences(
        "all",
        &ours,
        &theirs,
        &[("ours b*", reason), ("theirs b[].e", reason), ("type a", reason)],
    );
    let told = |known: &'static [Known]| {
        std::panic::catch_unwind(|| assert_differences("some", &json!({ "a": 1 }), &json!({}), known))
            .is_err()
    };
    assert!(told(&[]) && told(&[("ours a", "a reason too"), ("ours b", "of what is no more")]));
    assert!(!told(&[("ours a", "a reason too")]));
}
