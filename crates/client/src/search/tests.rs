//! What goes out, and what is read.

use super::*;

#[test]
fn a_query_says_only_what_is_set() {
    assert_eq!(Query::text("a\"b").to_json().to_string(), r#"{"q":"a\"b"}"#);
    let query = Query {
        text: "x".to_owned(),
        kinds: vec![ListingKind::Product, ListingKind::Concept],
        price_min: Some("1".to_owned()),
        price_max: Some("12.50".to_owned()),
        currency: Some("EUR".to_owned()),
        available: Some(true),
        trust_min: Some("0.5".to_owned()),
        domain: Some("example.org".to_owned()),
        category: Some("c".to_owned()),
        brand: Some("b".to_owned()),
        lang: Some("fr".to_owned()),
        attributes: [("color".to_owned(), "red".to_owned())].into(),
        updated_after: Some(Timestamp::UNIX_EPOCH),
        limit: Some(5),
        cursor: Some("n".to_owned()),
        explain: true,
        facets: true,
    };
    assert_eq!(
        query.to_json().to_string(),
        r#"{"attributes":{"color":"red"},"available":true,"brand":"b","category":"c","currency":"EUR","cursor":"n","domain":"example.org","explain":true,"facets":true,"kind":"product,concept","lang":"fr","limit":5,"price_max":"12.50","price_min":"1","q":"x","trust_min":"0.5","updated_after":"1970-01-01T00:00:00.000Z"}"#
    );
}

#[test]
fn the_answer_of_the_specification_is_read() {
    let text = r#"{"query":"iPhone 15 Pro Max 256GB","results":[{
        "id":"doc_123","kind":"product","name":"…","description":"…",
        "price":79000.10000000000000001,"currency":"RUB","available":true,
        "relevance_score":0.9766,"trust_score":0.94,"final_score":0.0411,"ranks":{"fts":1,"semantic":4},
        "agent":{"handle":"etagi%23aigentix.org","did":"did:aip:aigentix.org:etagi","name":"Etaji",
          "endpoint":"https://api.etagi.ru/aip"},"source_hub":"aigentix.org","later":[1]}],
        "facets":{"kind":[{"value":"product","count":7}]},
        "next_cursor":null,"took_ms":3,"degraded":["semantic"],"later":{}}"#;
    let answer: Answer = serde_json::from_str(text).unwrap();
    let [hit] = answer.results.as_slice() else {
        panic!()
    };
    assert_eq!(
        hit.price.as_deref(),
        Some("79000.10000000000000001"),
        "no float was made of it"
    );
    assert_eq!(
        (hit.agent.handle.as_str(), hit.agent.did.as_str()),
        ("etagi#aigentix.org", "did:aip:aigentix.org:etagi")
    );
    assert_eq!(
        hit.ranks(),
        Ranks {
            fts: Some(1),
            semantic: Some(4)
        }
    );
    assert_eq!(
        (answer.took_ms, answer.degraded, answer.next_cursor),
        (3, vec!["semantic".to_owned()], None)
    );
}

#[test]
fn the_exact_price_wins_and_raw_handles_are_read_too() {
    let text = r#"{"results":[{"id":"a","kind":"concept","name":"n","price":1e3,"price_text":"1000.00",
        "relevance_score":null,"final_score":null,"ranks":{},"agent":{"handle":"a#localhost:8080"}}]}"#;
    let answer: Answer = serde_json::from_str(text).unwrap();
    let hit = &answer.results[0];
    assert_eq!(
        (hit.price.as_deref(), hit.agent.did.as_str()),
        (Some("1000.00"), "did:aip:localhost%3A8080:a")
    );
    assert_eq!(hit.ranks(), Ranks::default());
    let bad = r#"{"results":[{"id":"a","kind":"concept","name":"n","agent":{"handle":"nobody"}}]}"#;
    assert!(serde_json::from_str::<Answer>(bad).is_err());
}
