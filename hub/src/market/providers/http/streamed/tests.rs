//! Streams of providers, good ones and hostile ones.

use std::sync::Mutex;
use std::time::Duration;

use aip_federation::egress::Method;
use async_trait::async_trait;
use bytes::Bytes;
use futures_util::stream;
use serde_json::json;

use super::*;

/// Answers once, in these pieces.
#[derive(Debug)]
struct Far(Mutex<Option<Streamed>>);

#[async_trait]
impl Exchange for Far {
    async fn exchange(&self, _request: Request, _limits: Limits) -> Result<Response, EgressError> {
        Err(EgressError::TimedOut)
    }

    async fn open(&self, _request: Request, _limits: Limits) -> Result<Streamed, EgressError> {
        Ok(self.0.lock().unwrap().take().unwrap())
    }
}

fn limits() -> Limits {
    Limits {
        timeout: Duration::from_secs(9),
        answer_bytes_max: RESULT_BYTES_MAX + FRAME_BYTES,
    }
}

async fn answered(
    content_type: &str,
    pieces: Vec<Result<Bytes, EgressError>>,
) -> (Result<String, ProviderError>, Vec<(&'static str, Value)>) {
    let head = Response {
        status: 200,
        content_type: Some(content_type.to_owned()),
        ..Response::default()
    };
    let body = Body::of(stream::iter(pieces));
    let far = Far(Mutex::new(Some(Streamed { head, body })));
    let request = Request {
        method: Method::Post,
        url: "https://shop.example/".to_owned(),
        headers: Vec::new(),
        body: Bytes::new(),
    };
    let progress = ProgressSink::alone();
    let answer = answer(&far, request, limits(), &progress).await;
    let words = progress.told().into_iter().map(|word| {
        let data = serde_json::from_slice(&word.data).unwrap();
        (word.kind.as_str(), data)
    });
    let body = answer.map(|response| String::from_utf8(response.body.to_vec()).unwrap());
    (body, words.collect())
}

/// In pieces of so many bytes.
fn cut(text: &str, step: usize) -> Vec<Result<Bytes, EgressError>> {
    let pieces = text.as_bytes().chunks(step);
    pieces.map(|piece| Ok(Bytes::copy_from_slice(piece))).collect()
}

const EVENTS: &str = "text/event-stream";
const LINES: &str = "application/x-ndjson";

#[tokio::test]
async fn words_come_before_the_result_however_the_stream_is_cut() {
    let events = ": hello\n\nevent: progress\ndata: {\"done\": 0.5}\n\nevent: chunk\ndata: Once upon\n\n\
        event: weather\ndata: 1\n\nevent: result\ndata: {\"result\":\ndata: {\"sky\": \"blue\"}}\n\nevent: chunk\ndata: late\n\n";
    let lines = "{\"progress\": {\"done\": 0.5}}\n\n{\"chunk\": \"Once upon\"}\r\n{\"weather\": 1}\n\
        {\"result\":\t{\"sky\": \"blue\"}}\n{\"chunk\": \"late\"}\n";
    let words = vec![
        ("progress", json!({ "done": 0.5 })),
        ("chunk", json!("Once upon")),
    ];
    for step in [1, 2, 5, 10_000] {
        let (answer, told) = answered(EVENTS, cut(events, step)).await;
        assert_eq!(answer.unwrap(), "{\"result\":\n{\"sky\": \"blue\"}}", "{step}");
        assert_eq!(told, words);
        let (answer, told) = answered(LINES, cut(lines, step)).await;
        assert_eq!(answer.unwrap(), "{\"result\":\t{\"sky\": \"blue\"}}", "{step}");
        assert_eq!(told, words);
    }
}

#[tokio::test]
async fn what_is_no_stream_is_an_answer_as_ever() {
    let (answer, told) = answered("application/json", cut(r#"{"result": 1}"#, 3)).await;
    assert_eq!((answer.unwrap().as_str(), told.len()), (r#"{"result": 1}"#, 0));
    let large = "x".repeat(RESULT_BYTES_MAX + FRAME_BYTES + 1);
    let (answer, _) = answered("application/json", cut(&large, 64 * 1024)).await;
    assert!(matches!(answer, Err(ProviderError::Invalid(_))), "{answer:?}");
}

#[tokio::test]
async fn a_stream_without_a_result_is_none() {
    let ended = |why: &str| Err(ProviderError::Invalid(why.to_owned()));
    for (form, text) in [
        (EVENTS, ""),
        (EVENTS, "event: progress\ndata: 1\n\n"),
        (EVENTS, "event: result\ndata: {\"result\": 1}"),
        (LINES, ""),
        (LINES, "{\"progress\": 1}\n"),
    ] {
        let (answer, _) = answered(form, cut(text, 4)).await;
        assert_eq!(answer, ended("its stream ended without a result"), "{text}");
    }
    let (answer, _) = answered(LINES, cut("{\"progress\": 1}\n{\"result\"", 4)).await;
    assert_eq!(answer, ended("a line of its stream is no JSON object"));
    let (answer, _) = answered(LINES, cut("{\"result\": 1}", 4)).await;
    assert_eq!(answer.unwrap(), "{\"result\": 1}", "a last line needs no end");
    let broken = vec![
        Ok(Bytes::from_static(b"event: progress\ndata: 1\n\n")),
        Err(EgressError::Broken("reset".into())),
    ];
    let (answer, told) = answered(EVENTS, broken).await;
    assert!(matches!(answer, Err(ProviderError::Unreachable(_))), "{answer:?}");
    assert_eq!(told.len(), 1);
    let late = vec![Err(EgressError::TimedOut)];
    assert_eq!(answered(EVENTS, late).await.0, Err(ProviderError::TimedOut));
}

#[tokio::test]
async fn a_provider_says_in_its_stream_that_it_did_not_do_it() {
    let refused = Err(ProviderError::Refused("out of tea".to_owned()));
    for (form, text) in [
        (EVENTS, "event: error\ndata: {\"error\": \"out of tea\"}\n\n"),
        (LINES, "{\"error\": \"out of tea\"}\n"),
        (LINES, "{\"error\": {\"message\": \"out of tea\"}}"),
    ] {
        assert_eq!(answered(form, cut(text, 7)).await.0, refused, "{text}");
    }
    // This one is told as that of an answer that comes alone.
    let (answer, _) = answered(LINES, cut("{\"ok\": false, \"error\": \"no\"}\n", 7)).await;
    assert_eq!(answer.unwrap(), "{\"ok\": false, \"error\": \"no\"}");
}

#[tokio::test]
async fn a_line_or_an_event_without_an_end_is_cut_off() {
    let piece = || Ok(Bytes::from(vec![b'x'; 64 * 1024]));
    for form in [EVENTS, LINES] {
        let pieces = (0..100).map(|_| piece()).collect();
        let (answer, told) = answered(form, pieces).await;
        assert!(matches!(answer, Err(ProviderError::Invalid(_))), "{answer:?}");
        assert!(told.is_empty());
    }
}

#[tokio::test]
async fn words_that_are_too_long_are_left_out_and_the_call_goes_on() {
    let long = "y".repeat(100_000);
    let text =
        format!("event: chunk\ndata: {long}\n\nevent: chunk\ndata: ok\n\nevent: result\ndata: {{}}\n\n");
    let (answer, told) = answered(EVENTS, cut(&text, 8_192)).await;
    assert_eq!(
        (answer.unwrap().as_str(), told),
        ("{}", vec![("chunk", json!("ok"))])
    );
}
