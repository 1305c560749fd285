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
                let at = if at.is_empty() { name.to_owned() } else { format!("{at}.{name}") };
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
    paths
        .into_iter()
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

const NO_CHAIN: &str = "what is paid on chains, and by cards, is another hub's business";
const OTHER_ROOMS: &str = "it is about a part of the reference that is not a market";
const NOT_MEASURED: &str = "what was not measured is left out rather than made up";
const MORE: &str = "more is said than the reference says, which readers pass over";

const WELL_KNOWN: &[Known] = &[];
const MANIFEST: &[Known] = &[];
const PRICES: &[Known] = &[];
const SEARCH: &[Known] = &[];

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

const CALLED_FREE: &[Known] = &[];
const CALLED_BY_KEY: &[Known] = &[];
const CALLED_BY_CHANNEL: &[Known] = &[];
const TRIED: &[Known] = &[];
const VERIFIED: &[Known] = &[];

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
        ("a free call", None, fitting("free@v1"), CALLED_FREE),
        ("a call paid by key", Some(0), fitting("paid@v1"), CALLED_BY_KEY),
        ("a call paid from a channel", Some(1), fitting("paid@v1"), CALLED_BY_CHANNEL),
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
        assert_eq!((&ours["valid"], &theirs["valid"]), (&json!(true), &json!(true)), "{what}");
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
    let account = ask(hub.url(), &purse.on(Request::get("/ai-market/v2/account"))).await.json();
    let id = account["account_id"].as_str().unwrap_or_default();
    let body = json!({ "amount": "1", "reference": "invoice" }).to_string();
    let answer = hub
        .operate(Request::post(format!("/admin/accounts/{id}/credits"), body))
        .await;
    anyhow::ensure!(answer.status < 300, "{}", answer.text());
    Ok(())
}

const ACCOUNT_MADE: &[Known] = &[];
const ACCOUNT: &[Known] = &[];
const LEDGER: &[Known] = &[];
const CHANNEL_OPENED: &[Known] = &[];
const CHANNEL_CLOSED: &[Known] = &[];

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
    for (what, path, known) in [("an account", "account", ACCOUNT), ("a ledger", "account/ledger", LEDGER)] {
        let request = Request::get(format!("/ai-market/v2/{path}"));
        let ours = both.ours.ask(&keys[0].on(request.clone())).await.json();
        let theirs = both.theirs.ask(&keys[1].on(request)).await.json();
        assert_differences(what, &ours, &theirs, known);
    }
    let opened = both.ask(&post("channel/open", json!({ "deposit_usd": 1 }))).await;
    let opened = opened.map(|answer| answer.json());
    assert_differences("a channel that was opened", &opened[0], &opened[1], CHANNEL_OPENED);
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
    let theirs = json!({ "a": "1", "b": [{ "c": "y", "e": {} }], "by_hub": { "http://x": { "n": 2 } } });
    let found: Vec<String> = differences(&ours, &theirs).into_iter().collect();
    assert_eq!(found, ["ours b[].d", "theirs b[].e", "type a"]);
    let reason = "there is a reason";
    assert_differences("all", &ours, &theirs, &[("ours b*", reason), ("theirs b[].e", reason), ("type a", reason)]);
    let told = |known: &'static [Known]| {
        std::panic::catch_unwind(|| assert_differences("some", &json!({ "a": 1 }), &json!({}), known)).is_err()
    };
    assert!(told(&[]) && told(&[("ours a", "a reason too"), ("ours b", "of what is no more")]));
    assert!(!told(&[("ours a", "a reason too")]));
}
