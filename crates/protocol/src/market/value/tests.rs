//! What is read and what is refused, and the two texts.

use super::*;
use crate::error::ErrorCode;
use crate::limits::MARKET_JSON_LEVELS_MAX;
use crate::market::digest;

fn parse(text: &str) -> Value {
    Value::parse(text.as_bytes()).unwrap()
}

#[test]
fn numbers_keep_their_kind() {
    let value = parse(r#"{"a":[0,0.0,-0,-0.0,1e3,5,5.0,18446744073709551615]}"#);
    assert_eq!(
        value.to_string(),
        r#"{"a":[0,0.0,0,-0.0,1000.0,5,5.0,18446744073709551615]}"#
    );
    assert_ne!(parse("1"), parse("1.0"));
}

#[test]
fn the_two_texts_differ_in_their_spaces_only() {
    let value = parse(" { \"b\" : [ 1 , { } , [ ] ] , \"a\" : null } ");
    assert_eq!(value.to_bytes(), br#"{"a":null,"b":[1,{},[]]}"#);
    assert_eq!(digest::spaced(&value), br#"{"a": null, "b": [1, {}, []]}"#);
}

#[test]
fn names_are_in_the_order_of_code_points_and_letters_stay_raw() {
    // In UTF-16, and so in RFC 8785, the last two would be the other way round.
    let value =
        parse("{\"\u{1f600}\":1,\"\u{ff5e}\":2,\"é/\\u0000\\u001f\\u007f\\\"\\\\\\b\\t\\n\\f\\r\":3}");
    assert_eq!(
        value.to_string(),
        "{\"é/\\u0000\\u001f\u{7f}\\\"\\\\\\b\\t\\n\\f\\r\":3,\"\u{ff5e}\":2,\"\u{1f600}\":1}"
    );
}

#[test]
fn what_could_be_read_in_two_ways_is_refused() {
    for text in [
        "",
        " ",
        "{",
        "[",
        "[1,]",
        "[1 2]",
        "{\"a\"}",
        "{\"a\":}",
        "{\"a\":1,}",
        "{a:1}",
        "{\"a\":1 \"b\":2}",
        "{\"a\":1,\"a\":1}",
        "{\"a\":1,\"\\u0061\":2}",
        "tru",
        "nul",
        "NaN",
        "Infinity",
        "-",
        "01",
        "1.",
        ".5",
        "1e400",
        "18446744073709551616",
        "\"",
        "\"\\\"",
        "\"\\x\"",
        "\"\\ud800\"",
        "\"\n\"",
        "1 1",
        "{} {}",
        "\u{feff}{}",
        "'a'",
        "[1]]",
        "/**/1",
        "\u{a0}1",
        "[\u{c}1]",
    ] {
        let refusal = Value::parse(text.as_bytes()).unwrap_err();
        assert_eq!(refusal.code, ErrorCode::JsonInvalid, "{text:?}");
    }
    assert!(Value::parse(b"\"\xff\"").is_err());
}

#[test]
fn levels_end_where_they_should() {
    let nested = |levels: usize| format!("{}{}", "[".repeat(levels), "]".repeat(levels));
    assert!(Value::parse(nested(MARKET_JSON_LEVELS_MAX).as_bytes()).is_ok());
    assert!(Value::parse(nested(MARKET_JSON_LEVELS_MAX + 1).as_bytes()).is_err());
    assert!(Value::parse("[".repeat(1_000_000).as_bytes()).is_err());
    assert!(Value::parse("{\"a\":".repeat(1_000_000).as_bytes()).is_err());
}

#[test]
fn serde_json_has_the_same_value() {
    let text = r#"{"a":[0,0.0,1e-05,-3,1e+16,true,null,"ü"],"b":{"c":18446744073709551615}}"#;
    let value = parse(text);
    let theirs = serde_json::Value::from(value.clone());
    assert_eq!(theirs, serde_json::from_str::<serde_json::Value>(text).unwrap());
    assert_eq!(Value::from(theirs), value);
    let written = serde_json::to_vec(&value).unwrap();
    assert_eq!(Value::parse(&written).unwrap(), value);
}
