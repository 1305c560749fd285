//! The client against a server that behaves, and against one that does not.

mod server;

use std::time::Duration;

use aip_catalog::{EmbedError, Embedder, Purpose};
use serde_json::json;

use super::{ApiKey, HttpEmbedder, HttpOptions, OptionsError};
use server::{Reply, Seen, Server};

/// The vector that the server makes of a text.
fn raw(text: &str) -> Vec<f64> {
    vec![f64::from(u32::try_from(text.len()).unwrap()), 1.0, -2.0]
}

/// As it must arrive.
fn vector(text: &str) -> Vec<f32> {
    let raw = raw(text);
    let length = raw.iter().map(|x| x * x).sum::<f64>().sqrt();
    #[expect(clippy::cast_possible_truncation, reason = "a test's numbers")]
    raw.iter().map(|x| (x / length) as f32).collect()
}

fn assert_vectors(found: &[Vec<f32>], texts: &[&str]) {
    assert_eq!(found.len(), texts.len());
    for (found, text) in found.iter().zip(texts) {
        let expected = vector(text);
        assert_eq!(found.len(), expected.len());
        for (found, expected) in found.iter().zip(expected) {
            assert!(
                (found - expected).abs() < 1e-6,
                "{text}: {found} is not {expected}"
            );
        }
    }
}

/// A right answer, its vectors in reverse order.
fn right(seen: &Seen) -> Reply {
    let texts = seen.texts();
    let data = texts
        .iter()
        .enumerate()
        .rev()
        .map(|(index, text)| json!({"object": "embedding", "index": index, "embedding": raw(text)}));
    let body = json!({"object": "list", "data": data.collect::<Vec<_>>(), "model": "m", "usage": {}});
    Reply::Now(200, "content-type: application/json\r\n", body.to_string())
}

fn options(server: &Server) -> HttpOptions {
    HttpOptions {
        timeout: Duration::from_secs(20),
        ..HttpOptions::new(server.base(), "m", 3)
    }
}

fn strings(texts: &[&str]) -> Vec<String> {
    texts.iter().map(|text| (*text).to_owned()).collect()
}

async fn embed(
    embedder: &HttpEmbedder,
    purpose: Purpose,
    texts: &[&str],
) -> Result<Vec<Vec<f32>>, EmbedError> {
    embedder.embed(purpose, &strings(texts)).await
}

/// What comes of a query when the server always answers so.
async fn query(timeout: Duration, reply: impl Fn() -> Reply + Send + Sync + 'static) -> (EmbedError, usize) {
    let server = Server::start(move |_, _| reply()).await;
    let options = HttpOptions {
        timeout,
        ..options(&server)
    };
    let embedder = HttpEmbedder::new(options).unwrap();
    let error = embed(&embedder, Purpose::Query, &["a", "bb"]).await.unwrap_err();
    (error, server.seen().len())
}

fn ok(body: &'static str) -> impl Fn() -> Reply + Send + Sync {
    move || Reply::Now(200, "", body.to_owned())
}

#[tokio::test]
async fn vectors_come_in_the_order_of_the_texts() {
    let server = Server::start(|_, seen| right(seen)).await;
    let options = HttpOptions {
        key: Some(ApiKey::new("sesame")),
        query_prefix: "query: ".to_owned(),
        ask_dimensions: true,
        ..options(&server)
    };
    assert!(!format!("{options:?}").contains("sesame"));
    let embedder = HttpEmbedder::new(options).unwrap();
    assert!(!format!("{embedder:?}").contains("sesame"));
    let found = embed(&embedder, Purpose::Query, &["a", "bbbb", " \n"])
        .await
        .unwrap();
    assert_vectors(&found[..2], &["query: a", "query: bbbb"]);
    assert_eq!(found[2], [0.0; 3], "a blank text is not sent");
    let seen = server.seen();
    assert_eq!(seen.len(), 1);
    assert!(
        seen[0].head.starts_with("post /v1/embeddings http/1.1"),
        "{}",
        seen[0].head
    );
    assert!(seen[0].head.contains("authorization: bearer sesame"));
    assert!(seen[0].head.contains("content-type: application/json"));
    let expected = json!({
        "model": "m", "input": ["query: a", "query: bbbb"], "encoding_format": "float", "dimensions": 3,
    });
    assert_eq!(seen[0].body, expected);
}

#[tokio::test]
async fn batches_are_bounded_and_what_is_known_is_not_asked_again() {
    let server = Server::start(|_, seen| right(seen)).await;
    let options = HttpOptions {
        batch_texts: 2,
        passage_prefix: "p: ".to_owned(),
        ..options(&server)
    };
    let embedder = HttpEmbedder::new(options).unwrap();
    let texts = ["a", "bb", "a", "ccc", "dddd", "bb", "eeeee"];
    let prefixed = texts.map(|text| format!("p: {text}"));
    let expected = prefixed.each_ref().map(String::as_str);
    for _ in 0..3 {
        let found = embed(&embedder, Purpose::Passage, &texts).await.unwrap();
        assert_vectors(&found, &expected);
    }
    let asked: Vec<Vec<String>> = server.seen().iter().map(Seen::texts).collect();
    assert_eq!(
        asked,
        [vec!["p: a", "p: bb"], vec!["p: ccc", "p: dddd"], vec!["p: eeeee"]]
    );
    let found = embed(&embedder, Purpose::Query, &["a"]).await.unwrap();
    assert_vectors(&found, &["a"]);
    assert_eq!(server.seen().len(), 4, "a query has another text than a passage");
    assert_eq!(
        embed(&embedder, Purpose::Query, &[]).await.unwrap(),
        Vec::<Vec<f32>>::new()
    );
}

#[tokio::test]
async fn passages_wait_for_a_server_that_is_busy() {
    let server = Server::start(|number, seen| match number {
        0 => Reply::Now(503, "retry-after: 0\r\n", String::new()),
        1 => Reply::Now(
            429,
            "retry-after: 0\r\n",
            json!({"error": {"message": "slow down"}}).to_string(),
        ),
        2 => Reply::Close,
        _ => right(seen),
    })
    .await;
    let embedder = HttpEmbedder::new(options(&server)).unwrap();
    let found = embed(&embedder, Purpose::Passage, &["a"]).await.unwrap();
    assert_vectors(&found, &["a"]);
    assert_eq!(server.seen().len(), 4);
}

#[tokio::test]
async fn queries_do_not_wait_long() {
    let long = Duration::from_secs(20);
    let busy = || {
        Reply::Now(
            429,
            "retry-after: 3600\r\n",
            json!({"error": "later"}).to_string(),
        )
    };
    let (error, requests) = query(long, busy).await;
    assert!(
        matches!(&error, EmbedError::Unavailable(reason) if reason.contains("429") && reason.contains("later"))
    );
    assert_eq!(requests, 1, "the server said when");
    let (error, requests) = query(long, || Reply::Now(500, "", "<html>".to_owned())).await;
    assert!(matches!(error, EmbedError::Unavailable(_)));
    assert_eq!(requests, 2);
}

#[tokio::test]
async fn a_server_that_takes_less_is_given_less() {
    let server = Server::start(|_, seen| {
        let texts = seen.texts();
        if texts.len() > 2 || texts.iter().any(|text| text.len() > 40) {
            return Reply::Now(413, "", json!({"error": "too long"}).to_string());
        }
        right(seen)
    })
    .await;
    let embedder = HttpEmbedder::new(options(&server)).unwrap();
    let long = "é".repeat(60);
    let found = embed(&embedder, Purpose::Passage, &["a", "bb", &long, "ccc", "dddd"])
        .await
        .unwrap();
    let short = "é".repeat(15);
    assert_vectors(&found, &["a", "bb", &short, "ccc", "dddd"]);

    let (error, requests) = query(Duration::from_secs(20), || {
        Reply::Now(
            400,
            "",
            json!({"error": {"message": "no such\nmodel"}}).to_string(),
        )
    })
    .await;
    assert!(
        matches!(&error, EmbedError::Broken(reason) if reason.contains("no such model")),
        "{error}"
    );
    assert!(requests < 10);
}

#[tokio::test]
async fn a_server_that_is_slow_is_given_fewer_texts() {
    let server = Server::start(|_, seen| {
        if seen.texts().len() > 2 {
            return Reply::Silence;
        }
        right(seen)
    })
    .await;
    let options = HttpOptions {
        timeout: Duration::from_secs(1),
        ..options(&server)
    };
    let embedder = HttpEmbedder::new(options).unwrap();
    let texts = ["a", "bb", "ccc", "dddd"];
    assert_vectors(&embed(&embedder, Purpose::Passage, &texts).await.unwrap(), &texts);
}

#[tokio::test]
async fn what_will_not_work_is_told_at_once() {
    let long = Duration::from_secs(20);
    let (error, requests) = query(
        long,
        ok(r#"{"data":[{"index":0,"embedding":[1,2]},{"index":1,"embedding":[1,2]}]}"#),
    )
    .await;
    assert!(
        matches!(&error, EmbedError::Broken(reason) if reason.contains("2 numbers, not 3")),
        "{error}"
    );
    assert_eq!(requests, 1);

    let key = || {
        Reply::Now(
            401,
            "",
            json!({"error": {"message": "no such key: sesame"}}).to_string(),
        )
    };
    let (error, requests) = query(long, key).await;
    assert!(
        matches!(&error, EmbedError::Broken(reason) if reason.contains("401") && !reason.contains("sesame"))
    );
    assert_eq!(requests, 1);

    let moved = || Reply::Now(307, "location: /v1/embeddings\r\n", String::new());
    let (error, requests) = query(long, moved).await;
    assert!(matches!(error, EmbedError::Broken(_)), "{error}");
    assert_eq!(requests, 1, "a redirect is not followed");

    let (error, requests) = query(long, || Reply::Endless).await;
    assert!(
        matches!(&error, EmbedError::Broken(reason) if reason.contains("longer")),
        "{error}"
    );
    assert_eq!(requests, 1);
}

#[tokio::test]
async fn an_answer_that_makes_no_sense_gives_no_vectors() {
    let bodies = [
        "",
        "<html>",
        "[]",
        r#"{"data":[]}"#,
        r#"{"data":[{"index":0,"embedding":[1,2,3]}]}"#,
        r#"{"data":[{"index":0,"embedding":[1,2,3]},{"index":0,"embedding":[1,2,3]}]}"#,
        r#"{"data":[{"index":0,"embedding":[1,2,3]},{"index":2,"embedding":[1,2,3]}]}"#,
        r#"{"data":[{"index":0,"embedding":[1,2,3]},{"index":-1,"embedding":[1,2,3]}]}"#,
        r#"{"data":[{"index":0,"embedding":[1,2,NaN]},{"index":1,"embedding":[1,2,3]}]}"#,
        r#"{"data":[{"index":0,"embedding":[1,2,1e39]},{"index":1,"embedding":[1,2,3]}]}"#,
        r#"{"data":[{"index":0,"embedding":[1,2,1e400]},{"index":1,"embedding":[1,2,3]}]}"#,
        r#"{"data":[{"index":0,"embedding":[1,2,null]},{"index":1,"embedding":[1,2,3]}]}"#,
        r#"{"data":[{"index":0,"embedding":"AACAPw=="},{"index":1,"embedding":[1,2,3]}]}"#,
    ];
    for body in bodies {
        let (error, _) = query(Duration::from_secs(20), ok(body)).await;
        assert!(matches!(error, EmbedError::Unavailable(_)), "{body}: {error}");
    }
}

#[tokio::test]
async fn extreme_numbers_become_vectors_of_length_one() {
    let body = r#"{"data":[{"index":0,"embedding":[3e38,0,-3e38]},{"index":1,"embedding":[1e-30,0,0]},
        {"index":2,"embedding":[0,0,0]}]}"#;
    let server = Server::start(move |_, _| ok(body)()).await;
    let embedder = HttpEmbedder::new(options(&server)).unwrap();
    let found = embed(&embedder, Purpose::Query, &["a", "b", "c"]).await.unwrap();
    let half = std::f32::consts::FRAC_1_SQRT_2;
    for (found, expected) in found
        .iter()
        .zip([[half, 0.0, -half], [1.0, 0.0, 0.0], [0.0, 0.0, 0.0]])
    {
        assert!(
            found.iter().zip(expected).all(|(a, b)| (a - b).abs() < 1e-6),
            "{found:?}"
        );
    }
}

#[tokio::test]
async fn a_server_that_says_nothing_is_given_up() {
    for reply in [|| Reply::Silence, || Reply::Half] {
        let (error, _) = query(Duration::from_millis(100), reply).await;
        assert!(matches!(error, EmbedError::Unavailable(_)), "{error}");
    }
    let (error, _) = query(Duration::from_secs(20), || Reply::Close).await;
    assert!(matches!(error, EmbedError::Unavailable(_)), "{error}");
    let gone = Server::start(|_, _| Reply::Close).await.base();
    let embedder = HttpEmbedder::new(HttpOptions::new(gone, "m", 3)).unwrap();
    let error = embed(&embedder, Purpose::Query, &["a"]).await.unwrap_err();
    assert!(matches!(error, EmbedError::Unavailable(_)), "{error}");
}

#[test]
fn options_are_judged() {
    let refused = |change: fn(&mut HttpOptions)| {
        let mut options = HttpOptions::new("http://127.0.0.1:1", "m", 3);
        change(&mut options);
        HttpEmbedder::new(options).unwrap_err()
    };
    for base in [
        "",
        "ollama",
        "ftp://a",
        "http://u:p@a",
        "http://a/?q",
        "http://a/#f",
    ] {
        let options = HttpOptions::new(base, "m", 3);
        let error = HttpEmbedder::new(options).unwrap_err();
        assert!(matches!(error, OptionsError::Base(_)), "{base}: {error}");
        assert!(!error.to_string().contains("u:p"));
    }
    assert!(matches!(
        refused(|options| options.dimensions = 0),
        OptionsError::OutOfBounds {
            option: "dimensions",
            ..
        }
    ));
    assert!(matches!(
        refused(|options| options.batch_texts = 0),
        OptionsError::OutOfBounds {
            option: "batch_texts",
            ..
        }
    ));
    assert!(matches!(
        refused(|options| options.key = Some(ApiKey::new("a\nb"))),
        OptionsError::Key
    ));
}

#[test]
fn an_address_may_end_with_the_version() {
    for base in ["http://a", "http://a/", "http://a/v1", "http://a/v1/"] {
        let url = HttpOptions::new(base, "m", 3).url().unwrap();
        assert_eq!(url.as_str(), "http://a/v1/embeddings");
    }
    let url = HttpOptions::new("https://a/proxy/v1", "m", 3).url().unwrap();
    assert_eq!(url.as_str(), "https://a/proxy/v1/embeddings");
}

#[test]
fn an_id_names_what_decides_about_the_vectors() {
    let options = HttpOptions::new("http://a", "Nomic/Embed:v1.5", 768);
    let id = options.id();
    assert!(id.starts_with("http-nomic-embed-v1.5-768-"), "{id}");
    assert!(
        id.bytes()
            .all(|c| matches!(c, b'a'..=b'z' | b'0'..=b'9' | b'.' | b'_' | b'-'))
    );
    let elsewhere = HttpOptions {
        base: "http://b".to_owned(),
        ..options.clone()
    };
    assert_eq!(elsewhere.id(), id);
    let prefixed = HttpOptions {
        query_prefix: "query: ".to_owned(),
        ..options
    };
    assert_ne!(prefixed.id(), id);
}
