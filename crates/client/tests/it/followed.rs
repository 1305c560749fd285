//! Calls that are followed: what is heard, what becomes of a line that breaks, and jobs.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use aip_client::market::{ApiKey, Call, CallEvent, JobKey, Purse, Started};
use aip_client::{Client, Error};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

const EVENTS: &str = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";

/// A hub that gives these answers in order, one on each connection, and remembers what it was asked.
struct Script {
    url: String,
    asked: Arc<Mutex<Vec<String>>>,
}

impl Script {
    async fn answering(answers: Vec<String>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let asked = Arc::new(Mutex::new(Vec::new()));
        let seen = Arc::clone(&asked);
        tokio::spawn(async move {
            for answer in answers {
                let (mut socket, _) = listener.accept().await.unwrap();
                let request = read(&mut socket).await;
                seen.lock().unwrap().push(request);
                socket.write_all(answer.as_bytes()).await.unwrap();
            }
        });
        Self { url, asked }
    }

    fn client(&self) -> Client {
        Client::builder(&self.url).build().unwrap()
    }

    fn asked(&self) -> Vec<String> {
        self.asked.lock().unwrap().clone()
    }
}

/// Head and body of a request, the head in lower case.
async fn read(socket: &mut TcpStream) -> String {
    let (mut bytes, mut buffer) = (Vec::new(), [0; 4096]);
    loop {
        let count = socket.read(&mut buffer).await.unwrap();
        bytes.extend_from_slice(&buffer[..count]);
        let text = String::from_utf8_lossy(&bytes).to_lowercase();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head
                .lines()
                .find_map(|line| line.strip_prefix("content-length: "));
            let length: usize = length.map_or(0, |length| length.parse().unwrap());
            if body.len() >= length {
                return text;
            }
        }
        assert!(count > 0, "{text}");
    }
}

fn whole(status: &str, body: &Value) -> String {
    let body = body.to_string();
    format!(
        "HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
        body.len()
    )
}

fn call() -> Call {
    let input = json!({"frames": 100});
    Call::new("shop", "render@v1", input.as_object().cloned().unwrap())
        .timeout(Duration::from_mins(1))
        .idempotency_key("order-0001")
}

fn account() -> Purse {
    Purse::Account(ApiKey::new("aimk_x").unwrap())
}

const JOB: &str = r#"{"job_id":"j1","status":"running","job_secret":"aimj_s"}"#;
const RESULT: &str = r#"{"success":true,"result":{"film":1},"receipt":null,"price_usd":0.01}"#;

#[tokio::test]
async fn a_call_is_found_again_when_its_line_breaks() {
    let hub = Script::answering(vec![
        format!("{EVENTS}event: job\ndata: {JOB}\n\n: still here\n\nid: 1\nevent: progress\ndata: {{\"done\":0.5}}\n\nid: 2\nevent: chu"),
        format!("{EVENTS}event: job\ndata: {{\"job_id\":\"j1\",\"status\":\"running\"}}\n\n"),
        format!("{EVENTS}id: 2\nevent: chunk\ndata: \"half\"\n\nevent: result\ndata: {RESULT}\n\n"),
    ])
    .await;
    let mut heard = Vec::new();
    let invoked = hub
        .client()
        .invoke_streamed(&call(), &account(), |event| heard.push(event))
        .await
        .unwrap();
    assert_eq!(
        (invoked.result, invoked.idempotency_key.as_str()),
        (json!({"film": 1}), "order-0001")
    );
    assert_eq!(
        heard,
        [
            CallEvent::Began(JobKey::new("j1", "aimj_s").unwrap()),
            CallEvent::Progress {
                number: 1,
                data: json!({"done": 0.5})
            },
            CallEvent::Chunk {
                number: 2,
                data: json!("half")
            },
        ]
    );
    let asked = hub.asked();
    assert!(
        asked[0].starts_with("post /ai-market/v2/invoke ") && asked[0].contains("accept: text/event-stream")
    );
    assert!(asked[0].contains("x-api-key: aimk_x") && asked[0].contains("idempotency-key: order-0001"));
    for again in &asked[1..] {
        assert!(again.starts_with("get /ai-market/v2/jobs/j1/events "), "{again}");
        assert!(again.contains("last-event-id: 1") && again.contains("x-aimarket-job-secret: aimj_s"));
        assert!(!again.contains("aimk_x"), "what pays is shown once");
    }
}

#[tokio::test]
async fn a_refusal_is_one_whether_it_comes_before_the_stream_or_in_it() {
    let refusal = json!({"success": false, "error": "payment_required", "detail": "Pay.", "needed": 0.5});
    let failed = json!({"success": false, "error": "provider_failed", "detail": "No.", "reason": "refused", "status": 502});
    let hub = Script::answering(vec![
        whole("402 Payment Required", &refusal),
        format!("{EVENTS}event: job\ndata: {JOB}\n\nevent: error\ndata: {failed}\n\n"),
    ])
    .await;
    for (code, status) in [("payment_required", 402), ("provider_failed", 502)] {
        let refused = hub.client().invoke_streamed(&call(), &account(), |_| ()).await;
        let error = refused.unwrap_err();
        let problem = error.problem().unwrap();
        assert_eq!((problem.code.as_str(), problem.status), (code, status));
    }
}

/// Of a repetition, and of a hub that does not stream.
#[tokio::test]
async fn a_plain_answer_is_an_answer() {
    let result: Value = serde_json::from_str(RESULT).unwrap();
    let hub = Script::answering(vec![whole("200 OK", &result), whole("200 OK", &result)]).await;
    let invoked = hub
        .client()
        .invoke_streamed(&call(), &account(), |_| panic!("nothing is heard"))
        .await;
    assert_eq!(invoked.unwrap().result, json!({"film": 1}));
    let started = hub.client().start_call(&call(), &account()).await.unwrap();
    assert!(matches!(started, Started::Answered(invoked) if invoked.result == json!({"film": 1})));
}

#[tokio::test]
async fn an_event_without_an_end_is_no_answer() {
    let endless = format!("{EVENTS}event: chunk\ndata: {}", "x".repeat(5 * 1024 * 1024));
    let hub = Script::answering(vec![endless]).await;
    let refused = hub.client().invoke_streamed(&call(), &account(), |_| ()).await;
    assert!(matches!(refused, Err(Error::Answer { .. })), "{refused:?}");
}

/// The call may have been paid: the key tells.
#[tokio::test]
async fn a_line_that_breaks_before_anything_is_said_leaves_a_doubt() {
    let hub = Script::answering(vec![format!("{EVENTS}: hello\n\n")]).await;
    let lost = hub.client().invoke_streamed(&call(), &account(), |_| ()).await;
    assert!(
        matches!(&lost, Err(Error::CallUnknown { key, .. }) if key == "order-0001"),
        "{lost:?}"
    );
}

#[tokio::test]
async fn a_job_is_begun_looked_at_waited_for_and_cancelled() {
    let state = |status: &str, more: Value| {
        let mut state = json!({"success": true, "job_id": "j1", "status": status, "product_id": "shop",
            "capability_id": "render@v1", "created_at": "2026-11-30T12:00:00Z"});
        for (name, value) in more.as_object().unwrap() {
            state[name] = value.clone();
        }
        state
    };
    let cancelled = json!({"answer_status": 409, "answer": {"success": false, "error": "job_cancelled", "detail": "It was."}});
    let hub = Script::answering(vec![
        whole("202 Accepted", &state("running", json!({"job_secret": "aimj_s"}))),
        whole(
            "200 OK",
            &state(
                "running",
                json!({"progress": {"number": 4, "kind": "progress", "data": {"done": 0.4}}}),
            ),
        ),
        format!("{EVENTS}event: job\ndata: {JOB}\n\nevent: result\ndata: {RESULT}\n\n"),
        whole("200 OK", &state("cancelled", cancelled)),
    ])
    .await;
    let client = hub.client();
    let Started::Job(key) = client.start_call(&call(), &account()).await.unwrap() else {
        panic!("it is under way");
    };
    assert_eq!((key.id(), key.reveal()), ("j1", "aimj_s"));
    let now = client.job(&key).await.unwrap();
    assert!(now.is_running() && now.outcome().is_none());
    assert_eq!(now.progress.unwrap().number, 4);
    let invoked = client
        .wait_job(&key, Duration::from_mins(1), |_| ())
        .await
        .unwrap();
    assert_eq!(invoked.result, json!({"film": 1}));
    let over = client.cancel_job(&key).await.unwrap();
    assert_eq!(over.status, "cancelled");
    let why = over.outcome().unwrap().unwrap_err();
    assert_eq!(why.problem().unwrap().code, "job_cancelled");
    let asked = hub.asked();
    assert!(asked[0].contains("prefer: respond-async"), "{}", asked[0]);
    assert!(
        asked[3].starts_with("delete /ai-market/v2/jobs/j1 "),
        "{}",
        asked[3]
    );
}
