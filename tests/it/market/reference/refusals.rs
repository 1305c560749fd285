//! How both hubs refuse the same, and in which form they ask for money. Where they differ, there is a reason.

use aip_tests::market::{INVOKE, Purse};
use aip_tests::provider::Reply;
use aip_tests::raw::{Answer, Request, ask};
use anyhow::Result;
use serde_json::{Value, json};

use super::shapes::{Known, TERMS, assert_differences};
use super::{Both, fitting, purses};

/// Whose purse a request has.
#[derive(Debug, Clone, Copy)]
enum With {
    Nothing,
    Key,
    Channel,
    /// A channel without its secret.
    ChannelAlone,
    Both,
}

/// What is asked, how this hub and the reference answer (status and code; `-`: a `detail` without a code), and why they
/// differ; nothing where they do not.
struct Case {
    what: &'static str,
    with: With,
    request: Request,
    ours: (u16, &'static str),
    theirs: (u16, &'static str),
    reason: &'static str,
}

fn same(what: &'static str, with: With, request: Request, status: u16, code: &'static str) -> Case {
    Case {
        what,
        with,
        request,
        ours: (status, code),
        theirs: (status, code),
        reason: "",
    }
}

fn differs(
    what: &'static str,
    with: With,
    request: Request,
    ours: (u16, &'static str),
    theirs: (u16, &'static str),
    reason: &'static str,
) -> Case {
    Case {
        what,
        with,
        request,
        ours,
        theirs,
        reason,
    }
}

/// A call of `paid@v1` with an input that fits, with these members beside or instead.
fn body(members: &Value) -> Request {
    let mut body = json!({ "product_id": "shop", "capability_id": "paid@v1", "input": { "text": "x" } });
    for (name, value) in members.as_object().into_iter().flatten() {
        body[name] = value.clone();
    }
    Request::post(INVOKE, body.to_string())
}

fn code(answer: &Answer) -> String {
    match &answer.json()["error"] {
        // In a few places it has a sentence there.
        Value::String(code) if !code.contains(' ') => code.clone(),
        _ => "-".to_owned(),
    }
}

const ONE_FORM: &str = "every refusal here is of one form and has a code";
const RAILS: &str = "who shows two purses is asked which of them is to pay";
const LATER: &str = "what is not there yet is refused where somebody asks for it, never passed over";

fn unpaid() -> Vec<Case> {
    let unknown = |capability| fitting(capability).field("X-API-Key", "aimk_nobody");
    vec![
        same(
            "nobody pays",
            With::Nothing,
            fitting("paid@v1"),
            402,
            "payment_required",
        ),
        same(
            "nobody pays, and the input is incomplete",
            With::Nothing,
            body(&json!({ "input": {} })),
            402,
            "payment_required",
        ),
        same(
            "an unknown key",
            With::Nothing,
            unknown("paid@v1"),
            401,
            "invalid_api_key",
        ),
        same(
            "an unknown key for what is free",
            With::Nothing,
            unknown("free@v1"),
            401,
            "invalid_api_key",
        ),
    ]
}

fn purses_that_do_not_pay() -> Vec<Case> {
    vec![
        differs(
            "a channel without its secret",
            With::ChannelAlone,
            fitting("paid@v1"),
            (402, "payment_failed"),
            (402, "payment_required"),
            "who does pay and cannot is told something else than who does not",
        ),
        same(
            "a channel without its secret for what is free",
            With::ChannelAlone,
            fitting("free@v1"),
            402,
            "payment_failed",
        ),
        same(
            "dearer than the buyer pays",
            With::Key,
            body(&json!({ "max_price_usd": 0.01 })),
            409,
            "price_limit_exceeded",
        ),
        same(
            "a trial beside a channel",
            With::Channel,
            fitting("paid@v1").field("X-AIMarket-Sandbox-Visitor", "visitor-one"),
            400,
            "sandbox_conflict",
        ),
        differs(
            "a key and a channel",
            With::Both,
            fitting("paid@v1"),
            (400, "payment_rails_conflict"),
            (200, "-"),
            RAILS,
        ),
    ]
}

fn malformed() -> Vec<Case> {
    let form =
        |what, members: Value, ours, theirs| differs(what, With::Key, body(&members), ours, theirs, ONE_FORM);
    vec![
        form(
            "an input that is no object",
            json!({ "input": [1] }),
            (422, "request_invalid"),
            (422, "-"),
        ),
        form(
            "a price below nothing",
            json!({ "max_price_usd": -1 }),
            (422, "request_invalid"),
            (422, "-"),
        ),
        form(
            "an id that is a path",
            json!({ "capability_id": "../secret" }),
            (400, "id_invalid"),
            (400, "-"),
        ),
        form(
            "an unknown capability",
            json!({ "capability_id": "none@v1" }),
            (404, "capability_unknown"),
            (404, "-"),
        ),
        form(
            "an unknown hub",
            json!({ "source_hub": "https://other.example" }),
            (404, "hub_unknown"),
            (404, "-"),
        ),
    ]
}

fn unfit() -> Vec<Case> {
    vec![
        same(
            "an input without what it needs",
            With::Key,
            body(&json!({ "input": {} })),
            400,
            "incomplete_input",
        ),
        differs(
            "an input of a wrong type",
            With::Key,
            body(&json!({ "input": { "text": 1 } })),
            (400, "invalid_input"),
            (200, "-"),
            "a wrong type costs nobody a call",
        ),
        differs(
            "paying on a verdict, without saying what for",
            With::Channel,
            body(&json!({ "verify": { "requested": true, "intent": "" } })),
            (400, "verify_unsupported"),
            (400, "verify_invalid"),
            LATER,
        ),
        differs(
            "parts of the work for others",
            With::Key,
            body(&json!({ "subcontract": { "allowance_usd": 0.01 } })),
            (400, "subcontract_unsupported"),
            (200, "-"),
            LATER,
        ),
    ]
}

fn elsewhere() -> Vec<Case> {
    let get = |path: &str| Request::get(path);
    let post = |path: &str, body: &Value| Request::post(path, body.to_string());
    vec![
        differs(
            "a parameter of a search that does not exist",
            With::Nothing,
            get("/ai-market/v2/search?q=paid"),
            (422, "request_invalid"),
            (200, "-"),
            "a search that passes it over answers everything",
        ),
        differs(
            "a path that does not exist",
            With::Nothing,
            get("/ai-market/v2/nothing"),
            (404, "not_found"),
            (404, "-"),
            ONE_FORM,
        ),
        differs(
            "a channel with less than nothing in it",
            With::Nothing,
            post("/ai-market/v2/channel/open", &json!({ "deposit_usd": -1 })),
            (400, "deposit_invalid"),
            (422, "-"),
            ONE_FORM,
        ),
        differs(
            "to close a channel without its secret",
            With::Nothing,
            post(
                "/ai-market/v2/channel/close",
                &json!({ "channel_id": "ch_0123456789abcdef" }),
            ),
            (400, "channel_secret_required"),
            (400, "-"),
            ONE_FORM,
        ),
        same(
            "a verdict that nobody waits for",
            With::Nothing,
            get("/ai-market/v2/verification/rcpt_0"),
            404,
            "verification_not_found",
        ),
    ]
}

/// Both as they were asked.
async fn answers(both: &Both, purses: &[[Purse; 2]; 2], case: &Case) -> [Answer; 2] {
    let request = |hub: usize| {
        let [key, channel] = &purses[hub];
        let request = case.request.clone();
        match case.with {
            With::Nothing => request,
            With::Key => key.on(request),
            With::Channel => channel.on(request),
            With::Both => key.on(channel.on(request)),
            With::ChannelAlone => match channel {
                Purse::Channel(id, _) => request.field("X-Payment-Channel", id),
                _ => request,
            },
        }
    };
    [
        ask(both.ours.hub.url(), &request(0)).await,
        ask(both.theirs.url(), &request(1)).await,
    ]
}

async fn assert_cases(both: &Both, purses: &[[Purse; 2]; 2], cases: &[Case]) {
    for case in cases {
        let Case { what, reason, .. } = case;
        let [ours, theirs] = answers(both, purses, case).await;
        let told = |answer: &Answer| (answer.status, code(answer));
        let (ours, theirs) = ((told(&ours), ours.text()), (told(&theirs), theirs.text()));
        let wanted = |(status, code): (u16, &str)| (status, code.to_owned());
        assert_eq!(ours.0, wanted(case.ours), "{what}, here: {}", ours.1);
        assert_eq!(theirs.0, wanted(case.theirs), "{what}, there: {}", theirs.1);
        assert_eq!(case.ours == case.theirs, reason.is_empty(), "{what}");
    }
}

#[tokio::test]
async fn refusals_differ_where_there_is_a_reason() -> Result<()> {
    let Some(both) = Both::open().await? else {
        return Ok(());
    };
    let purses = [
        purses(both.ours.hub.url()).await?,
        purses(both.theirs.url()).await?,
    ];
    super::shapes::fund(&both, &purses[0][0]).await?;
    for cases in [
        unpaid(),
        purses_that_do_not_pay(),
        malformed(),
        unfit(),
        elsewhere(),
    ] {
        assert_cases(&both, &purses, &cases).await;
    }
    failing_provider(&both, &purses).await;
    Ok(())
}

/// A provider that fails is 502 at both, and costs nothing.
async fn failing_provider(both: &Both, purses: &[[Purse; 2]; 2]) {
    let fails = |ours, reason| {
        let call = fitting("paid@v1");
        [differs(
            "a provider that fails",
            With::Channel,
            call,
            ours,
            (502, "-"),
            reason,
        )]
    };
    let failures: [fn() -> Reply; 3] = [
        || Reply::Raw(500, String::new(), b"{}".to_vec()),
        || Reply::Json(json!({ "ok": false, "error": "no data" })),
        || Reply::Raw(200, String::new(), b"<html>".to_vec()),
    ];
    for failure in failures {
        both.ours.provider.answer(move |_| failure());
        assert_cases(both, purses, &fails((502, "provider_failed"), ONE_FORM)).await;
    }
    let within = "a result may say of something else that it is not ok: the provider refuses in its answer";
    both.ours
        .provider
        .answer(|_| Reply::Json(json!({ "result": { "ok": false } })));
    assert_cases(both, purses, &fails((200, "-"), within)).await;
    both.ours.provider.answer(Reply::echo);
}

const UNPAID: &[Known] = &[
    (
        "ours payment_ways[].secret_header",
        "a client finds out what it needs to send",
    ),
    ("ours price_usd", "it is the price, whatever else is to be paid"),
    (
        "theirs payment_ways[].start",
        "it is about a part of the reference that is not here",
    ),
];
const POOR: &[Known] = &[("ours payment_ways", TERMS), ("ours price_usd", TERMS)];
const INCOMPLETE: &[Known] = &[];
const LIMITED: &[Known] = &[];
const TRIED_OUT: &[Known] = &[
    ("ours needed", TERMS),
    ("ours payment_ways", TERMS),
    ("ours price_usd", TERMS),
    ("theirs sandbox.error", "the code is said once"),
];

/// Channels with too little in them, of both.
async fn poor(both: &Both) -> [[Purse; 2]; 2] {
    let open = Request::post("/ai-market/v2/channel/open", r#"{"deposit_usd":0.01}"#);
    both.ask(&open).await.map(|answer| {
        let channel = &answer.json()["channel"];
        let member = |name: &str| channel[name].as_str().unwrap_or_default().to_owned();
        let purse = Purse::Channel(member("channel_id"), member("channel_secret"));
        [purse.clone(), purse]
    })
}

#[tokio::test]
async fn what_is_asked_for_money_differs_where_there_is_a_reason() -> Result<()> {
    let Some(both) = Both::open().await? else {
        return Ok(());
    };
    let poor = poor(&both).await;
    let visitor = fitting("paid@v1").field("X-AIMarket-Sandbox-Visitor", "visitor-two");
    for _ in 0..3 {
        for answer in both.ask(&visitor).await {
            assert_eq!(answer.status, 200, "{}", answer.text());
        }
    }
    let cases = [
        (With::Nothing, fitting("paid@v1"), 402, UNPAID),
        (With::Channel, fitting("paid@v1"), 402, POOR),
        (
            With::Nothing,
            body(&json!({ "capability_id": "free@v1", "input": {} })),
            400,
            INCOMPLETE,
        ),
        (
            With::Channel,
            body(&json!({ "max_price_usd": 0.01 })),
            409,
            LIMITED,
        ),
        (With::Nothing, visitor, 429, TRIED_OUT),
    ];
    for (with, request, status, known) in cases {
        let what = String::from_utf8_lossy(&request.to_bytes()).into_owned();
        let case = same("", with, request, status, "");
        let [ours, theirs] = answers(&both, &poor, &case).await;
        assert_eq!((ours.status, theirs.status), (status, status), "{what}");
        let [ours, theirs] = [ours.json(), theirs.json()];
        for member in [
            "needed",
            "missing",
            "accepts",
            "current_price_usd",
            "maximum_price_usd",
            "balance",
        ] {
            let both_say = ours.get(member).is_some() && theirs.get(member).is_some();
            assert!(
                !both_say || ours[member] == theirs[member],
                "{member}: {ours} {theirs}"
            );
        }
        assert_differences(&what, &ours, &theirs, known);
    }
    Ok(())
}
