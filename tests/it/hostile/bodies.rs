//! Bodies: no JSON, JSON that the protocol forbids, the wrong JSON, too much of it, in wrappings nobody asked for.

use aip_tests::Vitals;
use aip_tests::raw::{Answer, DEADLINE, Request, Wire};
use futures_util::future::join_all;
use serde_json::Value;

use super::{Door, House, assert_discreet, assert_refused};

/// Levels of the deepest nesting.
const LEVELS: usize = 100_000;

/// Texts that are nowhere what is asked for.
const TEXTS: &[&str] = &[
    // No JSON.
    "",
    " ",
    "{",
    "}",
    "[",
    "]",
    "{\"a\"",
    "{\"a\":}",
    "{\"a\":1,}",
    "{'a':1}",
    "{a:1}",
    "nul",
    "truee",
    "NaN",
    "Infinity",
    "-",
    "{} {}",
    "{}x",
    "// x\n{}",
    "/**/{}",
    "\u{feff}{}",
    "{\"a\":01}",
    "{\"a\":+1}",
    "{\"a\":.5}",
    "{\"a\":\"\n\"}",
    "{\"a\":\"\\x\"}",
    "{\"a\":\"\\u12\"}",
    "did=alice&kid=x",
    "<did>alice</did>",
    "--x\r\n\r\n--x--",
    // JSON, of another shape.
    "null",
    "true",
    "0",
    "\"text\"",
    "{}",
    "[null]",
    "[[]]",
    "[{}]",
    "[1,\"x\",null,{\"a\":[]}]",
    // Members twice, also when spelled differently.
    "{\"did\":\"a\",\"did\":\"b\"}",
    "{\"did\":1,\"\\u0064id\":2}",
    "{\"x\":{\"y\":1,\"y\":1}}",
    "[{\"a\":1,\"a\":2}]",
    // Numbers that no two readers read alike.
    "{\"n\":1e400}",
    "{\"n\":-1e400}",
    "{\"n\":9007199254740993}",
    "{\"n\":1.5}",
    "{\"n\":1.0}",
    "{\"n\":-0}",
    "{\"n\":1e3}",
    "{\"n\":99999999999999999999999999999999}",
    // Text that is none.
    "{\"a\":\"\\ud800\"}",
    "{\"a\":\"\\udc00\\ud800\"}",
    "{\"\\ud800\":1}",
    "[\"\\udfff\"]",
    "{\"did\":\"\\u0000\"}",
    // Members of the wrong kind.
    "{\"did\":1}",
    "{\"did\":null}",
    "{\"did\":[\"x\"]}",
    "{\"did\":{\"a\":true}}",
    "{\"aip\":1}",
    "{\"aip\":\"2\"}",
    "{\"epoch\":1,\"upto\":\"x\"}",
    "{\"epoch\":\"x\",\"upto\":-1}",
    "{\"epoch\":\"x\",\"upto\":9007199254740992}",
    "{\"epoch\":\"x\",\"upto\":1,\"also\":{}}",
    "{\"epoch\":\"x\",\"upto\":1,\"also\":[-1]}",
    "{\"__proto__\":{}}",
    "{\"did\":\"did:aip:al😀ice:é\"}",
    "{\"did\":\"../../etc/passwd\"}",
    "{\"did\":\"' OR 1=1 --\"}",
];

/// Bodies that are nowhere what is asked for. All are far smaller than any limit but the nested ones.
fn bodies() -> Vec<Vec<u8>> {
    let mut bodies: Vec<Vec<u8>> = TEXTS.iter().map(|text| text.as_bytes().to_vec()).collect();
    bodies.extend([
        b"\xff\xfe{\0}\0".to_vec(),
        b"{\"a\":\"\xc0\xaf\"}".to_vec(),
        b"{\"a\":\"\xed\xa0\x80\"}".to_vec(),
        b"{\"\xff\":1}".to_vec(),
        vec![0; 64],
        vec![0xff; 64],
        format!("{{\"n\":{}}}", "9".repeat(10_000)).into_bytes(),
        format!("{{\"did\":\"{}\"}}", "a".repeat(10_000)).into_bytes(),
        format!("{{{}}}", many_members(1_000)).into_bytes(),
        "[".repeat(LEVELS).into_bytes(),
        format!("{}{}", "[".repeat(LEVELS), "]".repeat(LEVELS)).into_bytes(),
        "{\"a\":".repeat(LEVELS).into_bytes(),
        format!("{}1{}", "{\"a\":".repeat(33), "}".repeat(33)).into_bytes(),
    ]);
    bodies
}

/// `"m0":0,"m1":1,…`
fn many_members(count: usize) -> String {
    let members: Vec<String> = (0..count)
        .map(|number| format!("\"m{number}\":{number}"))
        .collect();
    members.join(",")
}

/// That nothing in an answer was taken: a refusal, or an array of refusals.
fn assert_nothing_taken(door: &Door, body: &[u8], answer: &Answer) {
    let start = String::from_utf8_lossy(body).chars().take(60).collect::<String>();
    let what = format!("{} {} with {start:?}", door.method, door.template);
    let array = body.trim_ascii_start().first() == Some(&b'[');
    if door.template == "/api/v1/search" && body == b"{}" {
        // A search for nothing is one for everything; it takes nothing in.
        return;
    }
    if answer.status == 200 && door.takes_any_object() {
        assert!(body.trim_ascii_start().first() == Some(&b'{'), "{what}");
        return;
    }
    if answer.status == 200 && door.reports_rows() {
        assert_no_row_taken(answer, &what);
        return;
    }
    if answer.status != 200 || !door.takes_envelopes() || !array {
        assert_refused(answer, &what);
        return;
    }
    assert_discreet(answer, &what);
    let json = answer.json();
    let items = json
        .as_array()
        .unwrap_or_else(|| panic!("{what}: {}", answer.text()));
    for item in items {
        assert_eq!(item["status"], "refused", "{what}: {item}");
        assert!(
            item["code"].is_string() && item["detail"].is_string(),
            "{what}: {item}"
        );
    }
}

/// A report in which every row is refused.
fn assert_no_row_taken(answer: &Answer, what: &str) {
    assert_discreet(answer, what);
    let report = answer.json();
    let taken = ["stored", "unchanged", "deleted"].map(|fate| report[fate].as_u64());
    assert_eq!(taken, [Some(0); 3], "{what}: {report}");
    for row in report["rows"].as_array().expect("rows") {
        assert_eq!(row["status"], "refused", "{what}: {row}");
        assert!(
            row["code"].is_string() && row["detail"].is_string(),
            "{what}: {row}"
        );
    }
}

#[tokio::test]
async fn no_body_does_more_than_be_refused() {
    let house = House::open().await;
    let before = Vitals::of(&house.hub).await;
    let doors: Vec<Door> = house.doors().await.into_iter().filter(|door| door.body).collect();
    assert!(doors.len() >= 7, "{doors:?}");
    for body in bodies() {
        for door in &doors {
            let answer = house.ask(&door.with_body(body.clone())).await;
            assert_nothing_taken(door, &body, &answer);
        }
    }
    Vitals::assert_unharmed(&house.hub, &before).await;
}

#[tokio::test]
async fn locked_doors_open_for_no_forged_token() {
    let house = House::open().await;
    let before = Vitals::of(&house.hub).await;
    let tokens = [
        "",
        "x",
        "null",
        "undefined",
        "Bearer",
        "é",
        "a b",
        "../..",
        "' OR 1=1 --",
    ];
    let mut tokens: Vec<String> = tokens.iter().map(ToString::to_string).collect();
    tokens.extend([
        "A".repeat(43),
        "A".repeat(4_000),
        house.token.to_uppercase(),
        format!("{}=", house.token),
    ]);
    let doors: Vec<Door> = house
        .doors()
        .await
        .into_iter()
        .filter(|door| door.key.is_some())
        .collect();
    assert!(
        doors.iter().any(|door| door.template == "/api/v1/inbox"),
        "{doors:?}"
    );
    for door in doors {
        let what = format!("{} {}", door.method, door.template);
        let bare = house.ask(&Request::new(&door.method, &door.target)).await;
        let code = assert_refused(&bare, &what);
        // Where a key opens the door as well as a token, that is what is missed.
        let market = ["invalid_api_key", "signup_closed", "media_type_unsupported"];
        let known = what.contains("/ai-market/") && market.contains(&code.as_str());
        assert!(known || code == "token_invalid", "{what}: {code}");
        for token in &tokens {
            let mut request = Request::new(&door.method, &door.target).bearer(token);
            if door.takes_any_object() {
                // What it is given is looked at before who gives it.
                request = request.field("content-type", "application/json").body("{}");
            }
            let answer = house.ask(&request).await;
            assert_eq!(assert_refused(&answer, &what), "token_invalid", "{what}");
        }
    }
    Vitals::assert_unharmed(&house.hub, &before).await;
}

#[tokio::test]
async fn a_body_in_another_wrapping_is_refused() {
    let house = House::open().await;
    let before = Vitals::of(&house.hub).await;
    let types = [
        "text/plain",
        "text/html",
        "application/xml",
        "application/x-www-form-urlencoded",
        "multipart/form-data; boundary=x",
        "application/json5",
        "application/jsonx",
        "application/problem+json",
        "///",
        ";",
        "application/",
        "text/json; application/json",
        "*/*",
    ];
    for door in house.doors().await.into_iter().filter(|door| door.body) {
        let what = format!("{} {}", door.method, door.template);
        for coding in [
            "gzip",
            "br",
            "deflate",
            "zstd",
            "gzip, gzip",
            "identity, gzip",
            "x",
            "GZIP",
        ] {
            let request = door.with_body("{}").field("content-encoding", coding);
            let code = assert_refused(&house.ask(&request).await, &what);
            assert_eq!(code, "encoding_unsupported", "{what} in {coding}");
        }
        for media_type in types {
            let request = door.request().field("content-type", media_type).body("{}");
            let code = assert_refused(&house.ask(&request).await, &what);
            assert_eq!(code, "media_type_unsupported", "{what} as {media_type}");
        }
    }
    Vitals::assert_unharmed(&house.hub, &before).await;
}

/// A body of 4 GiB is announced and does not come; the refusal does not wait for it.
#[tokio::test]
async fn an_announced_giant_is_refused() {
    let house = House::with("[http]\nbody_timeout_secs = 1\nbody_bytes_per_sec_min = 0").await;
    let before = Vitals::of(&house.hub).await;
    let doors = house.doors().await.into_iter().filter(|door| door.body);
    join_all(doors.map(|door| announce_giant(&house, door))).await;
    Vitals::assert_unharmed(&house.hub, &before).await;
}

async fn announce_giant(house: &House, door: Door) {
    let what = format!("{} {}", door.method, door.template);
    let request = door.request().field("content-type", door.media_type());
    let request = request
        .field("content-length", (1_u64 << 32).to_string())
        .unframed();
    let answer = house.ask(&request).await;
    assert_eq!(answer.status, 413, "{what}: {}", answer.text());
    let code = assert_refused(&answer, &what);
    assert!(
        matches!(code.as_str(), "body_too_large" | "envelope_too_large"),
        "{what}: {code}"
    );
    assert!(
        answer.json()["limit_bytes"].as_u64() > Some(0),
        "{}",
        answer.text()
    );
    assert_eq!(answer.header("connection"), "close", "{what}");
}

/// A body without an end: chunk after chunk, each of the size of a fair one.
#[tokio::test]
async fn an_endless_body_is_refused() {
    let house = House::open().await;
    let before = Vitals::of(&house.hub).await;
    let doors = house.doors().await.into_iter().filter(|door| door.body);
    join_all(doors.map(|door| send_without_end(&house, door))).await;
    Vitals::assert_unharmed(&house.hub, &before).await;
}

async fn send_without_end(house: &House, door: Door) {
    let what = format!("{} {}", door.method, door.template);
    let chunk = [b"100000\r\n".to_vec(), vec![b' '; 0x10_0000], b"\r\n".to_vec()].concat();
    let head = door.request().field("content-type", door.media_type());
    let head = head.field("transfer-encoding", "chunked").unframed();
    let mut wire = Wire::open(house.hub.url()).await.unwrap();
    wire.send(&head.to_bytes()).await.unwrap();
    let flood = async { while wire.send(&chunk).await.is_ok() {} };
    let ended = tokio::time::timeout(DEADLINE, flood).await;
    assert!(ended.is_ok(), "{what} takes what comes");
    if let Some(answer) = wire.answer().await {
        assert_eq!(answer.status, 413, "{what}: {}", answer.text());
        assert_refused(&answer, &what);
    }
}

/// A member of an envelope, a wrong value, and the code of its refusal.
fn wrong_members(house: &House) -> Vec<(&'static str, Value, &'static str)> {
    vec![
        ("aip", "2".into(), "version_unsupported"),
        ("aip", 1.into(), "version_unsupported"),
        (
            "id",
            "6f8f3f5e-2a52-1e0b-9a5f-6f0c6f1d7c11".into(),
            "member_invalid",
        ),
        (
            "id",
            "6F8F3F5E-2A52-4E0B-9A5F-6F0C6F1D7C11".into(),
            "member_invalid",
        ),
        ("id", Value::Null, "member_invalid"),
        ("from", "alice".into(), "did_invalid"),
        ("from", "did:web:localhost".into(), "did_method_unsupported"),
        ("to", format!("{}x", house.bob.did).into(), "member_invalid"),
        ("to", "did:aip:localhost%3a1:bob".into(), "did_invalid"),
        ("type", "message".into(), "member_invalid"),
        ("type", "a.".to_owned().into(), "member_invalid"),
        ("type", format!("a.{}", "b".repeat(127)).into(), "member_invalid"),
        ("created_at", "yesterday".into(), "member_invalid"),
        ("created_at", "2026-11-29t20:15:30z".into(), "member_invalid"),
        (
            "created_at",
            "2001-01-01T00:00:00Z".into(),
            "created_at_out_of_window",
        ),
        ("expires_at", "2001-01-01T00:00:00Z".into(), "member_invalid"),
        ("thread", "".into(), "member_invalid"),
        ("thread", "t".repeat(129).into(), "member_invalid"),
        ("reply_to", 7.into(), "member_invalid"),
        ("encrypted_body", Value::Null, "member_invalid"),
        ("encrypted_body", "secret".into(), "member_invalid"),
        ("kid", "x".into(), "member_invalid"),
    ]
}

/// Good envelopes with one member changed and signed anew: the signature holds, the member does not.
#[tokio::test]
async fn a_member_of_the_wrong_form_is_named() {
    let house = House::open().await;
    let before = Vitals::of(&house.hub).await;
    let good = house.alice.envelope(&house.bob);
    for (member, value, code) in wrong_members(&house) {
        let wire = house
            .alice
            .resigned(&good, |envelope| envelope[member] = value.clone());
        let answer = aip_tests::keyed::send(&house.hub, wire).await;
        let told = assert_refused(&answer, &format!("{member} = {value}"));
        assert_eq!(told, code, "{member} = {value}: {}", answer.text());
    }
    Vitals::assert_unharmed(&house.hub, &before).await;
}

#[tokio::test]
async fn a_member_that_is_missing_is_named() {
    let house = House::open().await;
    let before = Vitals::of(&house.hub).await;
    let good = house.alice.envelope(&house.bob);
    for member in [
        "aip",
        "id",
        "from",
        "to",
        "type",
        "created_at",
        "encrypted_body",
        "kid",
    ] {
        let wire = house.alice.resigned(&good, |envelope| {
            drop(envelope.as_object_mut().unwrap().remove(member));
        });
        let answer = aip_tests::keyed::send(&house.hub, wire).await;
        assert_eq!(assert_refused(&answer, member), "member_missing");
        assert_eq!(answer.json()["member"], member, "{}", answer.text());
    }
    Vitals::assert_unharmed(&house.hub, &before).await;
}
