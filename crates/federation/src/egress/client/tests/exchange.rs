//! The way to other hubs: whole answers, connections that stay open for a moment, nothing sent twice.

use super::super::super::{Exchange, Method, Request, Response};
use super::*;

/// A server that goes on after each answer, and counts.
struct Patient {
    address: SocketAddr,
    connections: Arc<AtomicUsize>,
    requests: Arc<AtomicUsize>,
}

impl Patient {
    /// Answers `answers` requests on each connection, and drops it at the next one without an answer.
    async fn answering(answer: impl Into<Vec<u8>>, answers: usize) -> Self {
        let answer = Arc::new(answer.into());
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let patient = Self {
            address: listener.local_addr().unwrap(),
            connections: Arc::default(),
            requests: Arc::default(),
        };
        let (connections, requests) = (Arc::clone(&patient.connections), Arc::clone(&patient.requests));
        tokio::spawn(async move {
            while let Ok((mut socket, _)) = listener.accept().await {
                connections.fetch_add(1, Ordering::SeqCst);
                let (answer, requests) = (Arc::clone(&answer), Arc::clone(&requests));
                tokio::spawn(async move {
                    for number in 0.. {
                        if !read_request(&mut socket).await {
                            return;
                        }
                        requests.fetch_add(1, Ordering::SeqCst);
                        if number == answers || socket.write_all(&answer).await.is_err() {
                            return;
                        }
                    }
                });
            }
        });
        patient
    }

    fn counts(&self) -> (usize, usize) {
        (
            self.connections.load(Ordering::SeqCst),
            self.requests.load(Ordering::SeqCst),
        )
    }

    async fn ask(&self, client: &GuardedClient, method: Method) -> Result<Response, EgressError> {
        exchange(
            client,
            method,
            &format!("http://{}/federation/v1/messages", self.address),
        )
        .await
    }
}

/// Reads one request, whose body, if any, ends in `END`; `false` when the caller is gone.
async fn read_request(socket: &mut tokio::net::TcpStream) -> bool {
    let (mut request, mut buffer) = (Vec::new(), [0; 4096]);
    loop {
        match socket.read(&mut buffer).await {
            Ok(0) | Err(_) => return false,
            Ok(count) => request.extend_from_slice(&buffer[..count]),
        }
        let is_whole =
            request.ends_with(b"END") || request.starts_with(b"GET") && request.ends_with(b"\r\n\r\n");
        if is_whole {
            return true;
        }
    }
}

async fn exchange(client: &GuardedClient, method: Method, url: &str) -> Result<Response, EgressError> {
    exchange_within(client, method, url, Limits::default()).await
}

async fn exchange_within(
    client: &GuardedClient,
    method: Method,
    url: &str,
    limits: Limits,
) -> Result<Response, EgressError> {
    let body = match method {
        Method::Get => Bytes::new(),
        Method::Post => Bytes::from_static(b"{\"a\":1}END"),
    };
    let request = Request {
        method,
        url: url.to_owned(),
        headers: vec![
            ("content-type", JSON.to_owned()),
            ("signature", "sig=:AA==:".to_owned()),
        ],
        body,
    };
    client.exchange(request, limits).await
}

#[tokio::test]
async fn fields_that_matter_come_back_and_go_out() {
    let headers = "content-type: Application/JSON; charset=utf-8\r\ncache-control: max-age=60\r\nretry-after: 7\r\n\
        Payment-Required: e30=\r\netag: \"a\"\r\nETag: \"b\"\r\nset-cookie: a=b\r\n";
    let server = Server::answering(answer("429 Too Many", headers, "{}")).await;
    let got = exchange(&local(), Method::Post, &server.url()).await.unwrap();
    let expected = Response {
        status: 429,
        content_type: Some("application/json".to_owned()),
        cache_control: Some("max-age=60".to_owned()),
        retry_after: Some("7".to_owned()),
        fields: vec![("payment-required", "e30=".to_owned())],
        body: Bytes::from_static(b"{}"),
    };
    assert_eq!(got, expected);
    let request = server.requests().remove(0);
    assert!(request.contains("Signature: sig=:AA==:\r\n"), "{request}");
    assert!(request.ends_with("\r\n\r\n{\"a\":1}END"), "{request}");
}

#[tokio::test]
async fn a_connection_to_a_hub_is_used_again() {
    let server = Patient::answering(answer("200 OK", "", "{}"), usize::MAX).await;
    let client = local();
    for method in [Method::Get, Method::Post, Method::Post, Method::Get] {
        assert_eq!(server.ask(&client, method).await.unwrap().status, 200);
    }
    assert_eq!(server.counts(), (1, 4));
}

#[tokio::test]
async fn a_connection_to_an_endpoint_is_not() {
    let server = Patient::answering(answer("200 OK", "", "{}"), usize::MAX).await;
    let client = local();
    for _ in 0..3 {
        post(&client, &format!("http://{}/", server.address))
            .await
            .unwrap();
    }
    assert_eq!(server.counts(), (3, 3));
}

#[tokio::test]
async fn what_a_hub_may_have_read_is_not_sent_again() {
    let server = Patient::answering(answer("200 OK", "", "{}"), 1).await;
    let client = local();
    assert_eq!(server.ask(&client, Method::Post).await.unwrap().status, 200);
    let error = server.ask(&client, Method::Post).await.unwrap_err();
    assert_eq!(error.kind(), "broken");
    assert_eq!(server.counts(), (1, 2));
    // The next one has a connection of its own.
    assert_eq!(server.ask(&client, Method::Post).await.unwrap().status, 200);
    assert_eq!(server.counts(), (2, 3));
}

#[tokio::test]
async fn a_redirect_between_hubs_is_an_answer_and_is_not_followed() {
    let elsewhere = Server::answering(answer("200 OK", "", "")).await;
    for status in [
        "301 Moved",
        "302 Found",
        "303 See Other",
        "307 Temporary",
        "308 Permanent",
    ] {
        for method in [Method::Get, Method::Post] {
            let location = format!("location: {}\r\n", elsewhere.url());
            let server = Patient::answering(answer(status, &location, ""), usize::MAX).await;
            let got = server.ask(&local(), method).await.unwrap();
            assert!(status.starts_with(&got.status.to_string()), "{status}");
        }
    }
    assert!(elsewhere.requests().is_empty());
}

#[tokio::test]
async fn an_answer_counts_only_when_it_is_whole_and_within_its_bounds() {
    let limits = Limits {
        timeout: Duration::from_millis(300),
        answer_bytes_max: 1000,
    };
    let chunk = format!("{:x}\r\n{}\r\n", 600, "x".repeat(600));
    let head = "HTTP/1.1 200 OK\r\n";
    for (kind, answer) in [
        ("answer_too_large", format!("{head}content-length: 1001\r\n\r\n")),
        (
            "answer_too_large",
            format!("{head}transfer-encoding: chunked\r\n\r\n{chunk}{chunk}"),
        ),
        ("timed_out", format!("{head}content-length: 10\r\n\r\nabc")),
        ("timed_out", head.to_owned()),
        (
            "broken",
            format!("{head}transfer-encoding: chunked\r\n\r\n{chunk}no chunk"),
        ),
    ] {
        let server = Server::answering(answer.clone()).await;
        let error = exchange_within(&local(), Method::Post, &server.url(), limits)
            .await
            .unwrap_err();
        assert_eq!(error.kind(), kind, "{answer}");
    }
    let server = Server::answering(answer("200 OK", "", &"x".repeat(1000))).await;
    let got = exchange_within(&local(), Method::Post, &server.url(), limits)
        .await
        .unwrap();
    assert_eq!(got.body.len(), 1000);
}

/// Its head is there before its end, and what is too much is cut off in the middle.
#[tokio::test]
async fn an_answer_that_comes_bit_by_bit_is_read_bit_by_bit() {
    let endless =
        b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream; charset=utf-8\r\n\r\ndata: 1\n\n".to_vec();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    tokio::spawn(async move {
        let (mut socket, _) = listener.accept().await.unwrap();
        read_request(&mut socket).await;
        socket.write_all(&endless).await.unwrap();
        while socket.write_all(b"data: more\n\n").await.is_ok() {}
    });
    let request = Request {
        method: Method::Post,
        url,
        headers: Vec::new(),
        body: Bytes::from_static(b"END"),
    };
    let limits = Limits {
        answer_bytes_max: 100_000,
        ..Limits::default()
    };
    let mut streamed = local().open(request, limits).await.unwrap();
    assert_eq!(streamed.head.status, 200);
    assert_eq!(streamed.head.content_type.as_deref(), Some("text/event-stream"));
    let mut bytes = 0;
    let end = loop {
        match streamed.body.next().await.unwrap() {
            Ok(piece) => bytes += piece.len(),
            Err(error) => break error,
        }
    };
    assert!(
        matches!(end, EgressError::AnswerTooLarge { bytes_max: 100_000 }),
        "{end:?}"
    );
    assert!(bytes > 0 && bytes <= 100_000, "{bytes}");
    assert!(streamed.body.next().await.is_none());
}
