//! How a listing says that it is invoked.

use std::time::Duration;

use aip_protocol::json::Json;

use super::{FreeTier, Terms, Way};
use crate::offer::is_id;

fn read(text: &str) -> Option<Terms> {
    Terms::read(&Json::parse(text.as_bytes()).expect("strict JSON")).ok()
}

#[test]
fn a_provider_is_called_in_one_of_two_ways() {
    let http = read(r#"{"url":"https://a.example/x?y=1","timeout_secs":5,"other":1}"#).expect("terms");
    assert_eq!(http.way, Way::Http("https://a.example/x?y=1".to_owned()));
    assert_eq!(http.timeout, Some(Duration::from_secs(5)));
    assert_eq!(http.free_tier, None);
    let relay = read(r#"{"relay":true}"#).expect("terms");
    assert_eq!((relay.way, relay.timeout), (Way::Relay, None));
    assert!(read(r#"{"relay":false,"url":"http://a.example"}"#).is_some());
}

#[test]
fn what_is_no_way_to_call_is_refused() {
    for text in [
        "[]",
        "{}",
        r#"{"relay":false}"#,
        r#"{"relay":true,"url":"https://a.example"}"#,
        r#"{"relay":1}"#,
        r#"{"url":"ftp://a.example"}"#,
        r#"{"url":"https://u:p@a.example"}"#,
        r#"{"url":"https://a.example/#x"}"#,
        r#"{"url":"https://a.example/\r\nX: y"}"#,
        r#"{"relay":true,"timeout_secs":0}"#,
        r#"{"relay":true,"timeout_secs":301}"#,
        r#"{"relay":true,"timeout_secs":"9"}"#,
    ] {
        assert_eq!(read(text), None, "{text}");
    }
}

#[test]
fn a_free_tier_has_a_field_and_a_largest_number() {
    let tier = |text: &str| {
        read(&format!(r#"{{"relay":true,"free_tier":{text}}}"#)).and_then(|terms| terms.free_tier)
    };
    let of = |max| {
        Some(FreeTier {
            field: "puzzle.T".to_owned(),
            max,
        })
    };
    assert_eq!(tier(r#"{"field":"puzzle.T","max":1000000}"#), of(1_000_000.0));
    assert_eq!(tier(r#"{"field":"puzzle.T","max":"0.5"}"#), of(0.5));
    for text in [
        r#"{"field":"","max":1}"#,
        r#"{"max":1}"#,
        r#"{"field":"a","max":-1}"#,
        r#"{"field":"a","max":"1e9"}"#,
        r#"{"field":"a","max":"1.2.3"}"#,
        r#"{"field":"a","max":""}"#,
        "[]",
    ] {
        assert_eq!(tier(text), None, "{text}");
    }
}

#[test]
fn ids_are_those_of_aimarket() {
    for good in ["ab", "prod-oracle", "chronos.eval@v1", "A_1", &"a".repeat(80)] {
        assert!(is_id(good), "{good}");
    }
    for bad in ["", "a", "a b", "a/b", "a..b", "é1", "a\\b", &"a".repeat(81)] {
        assert!(!is_id(bad), "{bad}");
    }
}
