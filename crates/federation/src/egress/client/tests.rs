//! The guarded client against real sockets on this machine, with an injected resolver.

mod exchange;

use std::collections::VecDeque;
use std::io::{self, Read as _};
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use rustls::crypto::ring;
use rustls::pki_types::{CertificateDer, PrivatePkcs8KeyDer};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use super::super::{Answer, EgressError, Limits, Outbound, Policy, Resolve, SystemResolver};
use super::GuardedClient;

const JSON: &str = "application/aip+json";

/// Answers look-ups from a script, the last entry for ever.
#[derive(Debug)]
struct Scripted {
    answers: Mutex<VecDeque<Vec<IpAddr>>>,
    lookups: AtomicUsize,
}

impl Scripted {
    fn new(answers: &[&[&str]]) -> Arc<Self> {
        let parse = |texts: &&[&str]| texts.iter().map(|text| text.parse().unwrap()).collect();
        Arc::new(Self {
            answers: Mutex::new(answers.iter().map(parse).collect()),
            lookups: AtomicUsize::new(0),
        })
    }
}

#[async_trait]
impl Resolve for Scripted {
    async fn addresses(&self, _host: &str) -> io::Result<Vec<IpAddr>> {
        self.lookups.fetch_add(1, Ordering::SeqCst);
        let mut answers = self.answers.lock().unwrap();
        match answers.len() {
            0 => Err(io::Error::other("no such name")),
            1 => Ok(answers[0].clone()),
            _ => Ok(answers.pop_front().unwrap()),
        }
    }
}

/// A server that gives every connection the same bytes, and keeps what it was sent.
struct Server {
    address: SocketAddr,
    requests: Arc<Mutex<Vec<String>>>,
}

impl Server {
    async fn answering(answer: impl Into<Vec<u8>>) -> Self {
        let answer = Arc::new(answer.into());
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let requests = Arc::new(Mutex::new(Vec::new()));
        let seen = Arc::clone(&requests);
        tokio::spawn(async move {
            while let Ok((mut socket, _)) = listener.accept().await {
                let (answer, seen) = (Arc::clone(&answer), Arc::clone(&seen));
                tokio::spawn(async move {
                    let mut request = Vec::new();
                    let mut buffer = [0; 4096];
                    while !request.ends_with(b"END") {
                        match socket.read(&mut buffer).await {
                            Ok(0) | Err(_) => break,
                            Ok(count) => request.extend_from_slice(&buffer[..count]),
                        }
                    }
                    seen.lock()
                        .unwrap()
                        .push(String::from_utf8_lossy(&request).into_owned());
                    let written = socket.write_all(&answer).await;
                    // Held open: an answer without a length must not end by a closed connection.
                    if written.is_ok() {
                        let _ended = socket.read(&mut buffer).await;
                    }
                });
            }
        });
        Self { address, requests }
    }

    fn url(&self) -> String {
        format!("http://{}/in?key=secret", self.address)
    }

    fn requests(&self) -> Vec<String> {
        self.requests.lock().unwrap().clone()
    }
}

fn client(policy: Policy, resolver: Arc<dyn Resolve>) -> GuardedClient {
    GuardedClient::new(policy, resolver).unwrap()
}

fn local() -> GuardedClient {
    client(Policy::development(), Arc::new(SystemResolver::default()))
}

async fn post(client: &GuardedClient, url: &str) -> Result<Answer, EgressError> {
    post_within(client, url, Limits::default()).await
}

async fn post_within(c: &GuardedClient, url: &str, l: Limits) -> Result<Answer, EgressError> {
    c.post(url, JSON, Bytes::from_static(b"{\"a\":1}END"), l).await
}

fn answer(status: &str, headers: &str, body: &str) -> Vec<u8> {
    let length = body.len();
    format!("HTTP/1.1 {status}\r\ncontent-length: {length}\r\n{headers}\r\n{body}").into_bytes()
}

#[tokio::test]
async fn the_body_arrives_as_it_is_and_the_answer_comes_back() {
    let server = Server::answering(answer("201 Created", "", "thanks")).await;
    let got = post(&local(), &server.url()).await.unwrap();
    assert_eq!((got.status, got.body.as_ref()), (201, b"thanks".as_slice()));
    assert!(got.is_success());
    let request = server.requests().remove(0);
    assert!(
        request.starts_with("POST /in?key=secret HTTP/1.1\r\n"),
        "{request}"
    );
    assert!(
        request.contains("Content-Type: application/aip+json\r\n"),
        "{request}"
    );
    assert!(request.ends_with("\r\n\r\n{\"a\":1}END"), "{request}");
    assert!(!request.to_lowercase().contains("accept-encoding"), "{request}");
    assert!(!request.to_lowercase().contains("cookie"), "{request}");
}

#[tokio::test]
async fn a_redirect_is_an_answer_and_is_not_followed() {
    let elsewhere = Server::answering(answer("200 OK", "", "")).await;
    for status in ["301 Moved", "302 Found", "307 Temporary", "308 Permanent"] {
        let location = format!("location: {}\r\n", elsewhere.url());
        let server = Server::answering(answer(status, &location, "")).await;
        let got = post(&local(), &server.url()).await.unwrap();
        assert!(status.starts_with(&got.status.to_string()), "{status}");
        assert!(!got.is_success());
    }
    assert!(elsewhere.requests().is_empty());
}

#[tokio::test]
async fn every_status_is_an_answer() {
    for status in [
        "200 OK",
        "204 No Content",
        "404 Not Found",
        "500 Oops",
        "502 Bad Gateway",
    ] {
        let server = Server::answering(answer(status, "", "")).await;
        let got = post(&local(), &server.url()).await.unwrap();
        assert!(status.starts_with(&got.status.to_string()), "{status}");
    }
}

#[tokio::test]
async fn nothing_is_tried_again_on_a_connection_that_breaks_off() {
    let server = Server::answering("HTTP/1.1 500 Oops\r\ncontent-length: 10\r\n\r\nabc").await;
    let limits = Limits {
        timeout: Duration::from_millis(300),
        ..Limits::default()
    };
    let error = post_within(&local(), &server.url(), limits).await.unwrap_err();
    assert_eq!(error.kind(), "timed_out");
    let server = Server::answering("garbage\r\n\r\n").await;
    let error = post(&local(), &server.url()).await.unwrap_err();
    assert_eq!(error.kind(), "broken");
    assert_eq!(server.requests().len(), 1);
}

#[tokio::test]
async fn a_silent_endpoint_times_out() {
    let server = Server::answering("").await;
    let limits = Limits {
        timeout: Duration::from_millis(200),
        ..Limits::default()
    };
    let error = post_within(&local(), &server.url(), limits).await.unwrap_err();
    assert_eq!(error.kind(), "timed_out");
    assert!(!error.is_refusal());
}

#[tokio::test]
async fn an_answer_above_the_limit_is_refused_announced_or_not() {
    let limits = Limits {
        answer_bytes_max: 1000,
        ..Limits::default()
    };
    let exact = Server::answering(answer("200 OK", "", &"x".repeat(1000))).await;
    let got = post_within(&local(), &exact.url(), limits).await.unwrap();
    assert_eq!(got.body.len(), 1000);

    let announced = Server::answering(answer("404 Not Found", "", &"x".repeat(1001))).await;
    let chunk = format!("{:x}\r\n{}\r\n", 501, "x".repeat(501));
    let chunked = format!("HTTP/1.1 404 Not Found\r\ntransfer-encoding: chunked\r\n\r\n{chunk}{chunk}");
    let endless = Server::answering(chunked).await;
    for server in [announced, endless] {
        let error = post_within(&local(), &server.url(), limits).await.unwrap_err();
        assert!(
            matches!(error, EgressError::AnswerTooLarge { bytes_max: 1000 }),
            "{error:?}"
        );
    }
}

#[tokio::test]
async fn a_2xx_stands_whatever_its_body_does() {
    let limits = Limits {
        timeout: Duration::from_millis(300),
        answer_bytes_max: 1000,
    };
    let chunk = format!("{:x}\r\n{}\r\n", 600, "x".repeat(600));
    let head = "HTTP/1.1 202 Accepted\r\n";
    for (what, answer, read) in [
        (
            "announced too large",
            format!("{head}content-length: 1001\r\n\r\n"),
            0,
        ),
        (
            "too large",
            format!("{head}transfer-encoding: chunked\r\n\r\n{chunk}{chunk}"),
            600,
        ),
        ("stalled", format!("{head}content-length: 10\r\n\r\nabc"), 3),
        (
            "broken",
            format!("{head}transfer-encoding: chunked\r\n\r\n{chunk}no chunk"),
            600,
        ),
    ] {
        let server = Server::answering(answer).await;
        let got = post_within(&local(), &server.url(), limits).await;
        let got = got.unwrap_or_else(|error| panic!("{what}: {error}"));
        assert_eq!((got.status, got.body.len()), (202, read), "{what}");
    }
}

#[tokio::test]
async fn a_compressed_answer_is_not_unpacked() {
    let body = "\u{1f}not really gzip";
    let server = Server::answering(answer("200 OK", "content-encoding: gzip\r\n", body)).await;
    let got = post(&local(), &server.url()).await.unwrap();
    assert_eq!(got.body.as_ref(), body.as_bytes());
}

#[tokio::test]
async fn a_closed_port_is_a_failure_and_names_no_secret() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let error = post(&local(), &format!("http://{address}/in?key=secret"))
        .await
        .unwrap_err();
    assert_eq!(error.kind(), "connect_failed");
    let text = super::chain(&error);
    assert!(
        !text.contains("secret") && !format!("{error:?}").contains("secret"),
        "{text}"
    );
}

#[tokio::test]
async fn what_does_not_speak_tls_is_not_connected_to() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let server = tokio::spawn(async move {
        let (mut socket, _) = listener.accept().await.unwrap();
        socket.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await.unwrap();
        let mut sent = Vec::new();
        let _broken = socket.read_to_end(&mut sent).await;
        sent
    });
    let error = post(&local(), &format!("https://{address}/")).await.unwrap_err();
    assert_eq!(error.kind(), "connect_failed");
    // A TLS hello went out, the request did not.
    let sent = server.await.unwrap();
    assert_eq!(sent.first(), Some(&0x16));
    assert!(!String::from_utf8_lossy(&sent).contains("POST"));
}

/// Accepts one TLS connection with a certificate that nobody vouches for; what came through it.
fn serve_tls_once(listener: &std::net::TcpListener) -> Vec<u8> {
    let certificate = CertificateDer::from(&include_bytes!("testdata/unknown_authority.crt.der")[..]);
    let key = PrivatePkcs8KeyDer::from(&include_bytes!("testdata/unknown_authority.key.der")[..]);
    let config = rustls::ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate], key.into())
        .unwrap();
    let (socket, _) = listener.accept().unwrap();
    let connection = rustls::ServerConnection::new(Arc::new(config)).unwrap();
    let mut sent = Vec::new();
    // Ends in an error when the caller turns the certificate down.
    let _ended = rustls::StreamOwned::new(connection, socket).read_to_end(&mut sent);
    sent
}

#[tokio::test]
async fn a_certificate_that_nobody_vouches_for_is_refused() {
    for name in ["127.0.0.1", "localhost"] {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("https://{name}:{}/", listener.local_addr().unwrap().port());
        let server = tokio::task::spawn_blocking(move || serve_tls_once(&listener));
        let guarded = client(Policy::development(), Scripted::new(&[&["127.0.0.1"]]));
        let error = post(&guarded, &url).await.unwrap_err();
        assert_eq!(error.kind(), "connect_failed");
        assert!(
            super::chain(&error).contains("certificate"),
            "{}",
            super::chain(&error)
        );
        assert!(server.await.unwrap().is_empty(), "the request did not go out");
    }
}

#[tokio::test]
async fn row_60_a_name_that_resolves_inside_is_never_connected_to() {
    let server = Server::answering(answer("200 OK", "", "")).await;
    let url = format!("http://rebind.example:{}/", server.address.port());
    let http = Policy {
        allow_http: true,
        ..Policy::default()
    };
    for addresses in [
        &["127.0.0.1"][..],
        &["8.8.8.8", "127.0.0.1"],
        &["127.0.0.1", "8.8.8.8"],
        &["::ffff:127.0.0.1"],
        &["64:ff9b::7f00:1"],
        &["169.254.169.254"],
        &["fd00::1"],
        &["::"],
    ] {
        let error = post(&client(http.clone(), Scripted::new(&[addresses])), &url).await;
        let error = error.unwrap_err();
        assert!(
            matches!(error, EgressError::AddressRefused(_)),
            "{addresses:?}: {error:?}"
        );
    }
    assert!(server.requests().is_empty());
}

#[tokio::test]
async fn row_60_there_is_no_second_look_up_to_answer_differently() {
    let server = Server::answering(answer("200 OK", "", "")).await;
    // Allowed at the first look-up; a second one would lead somewhere that is refused.
    let resolver = Scripted::new(&[&["127.0.0.1"], &["10.0.0.1"]]);
    let guarded = client(Policy::development(), resolver.clone());
    let url = format!("http://rebind.example:{}/", server.address.port());
    assert!(post(&guarded, &url).await.unwrap().is_success());
    assert_eq!(resolver.lookups.load(Ordering::SeqCst), 1);
    // The next exchange looks up again and is checked again: no connection is kept for it.
    let error = post(&guarded, &url).await.unwrap_err();
    assert!(matches!(error, EgressError::AddressRefused(_)), "{error:?}");
    assert_eq!(server.requests().len(), 1);
}

#[tokio::test]
async fn a_refused_url_costs_no_look_up() {
    let resolver = Scripted::new(&[&["8.8.8.8"]]);
    let guarded = client(Policy::default(), resolver.clone());
    for url in [
        "http://example.org/",
        "https://u:p@example.org/",
        "https://127.1/",
        "nonsense",
    ] {
        assert!(post(&guarded, url).await.unwrap_err().is_refusal(), "{url}");
    }
    assert_eq!(resolver.lookups.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn a_name_without_addresses_or_with_too_many_is_not_called() {
    let url = "https://many.example/";
    let none = client(Policy::default(), Scripted::new(&[]));
    assert_eq!(post(&none, url).await.unwrap_err().kind(), "name_unresolved");
    let empty = client(Policy::default(), Scripted::new(&[&[]]));
    assert_eq!(post(&empty, url).await.unwrap_err().kind(), "name_unresolved");
    let many = ["8.8.8.8"; 65];
    let many = client(Policy::default(), Scripted::new(&[&many]));
    assert!(post(&many, url).await.unwrap_err().is_refusal());
}

#[tokio::test]
async fn localhost_in_every_spelling_is_refused_by_default() {
    let strict = client(Policy::default(), Arc::new(SystemResolver::default()));
    for url in ["https://localhost/", "https://LOCALHOST:1/"] {
        let error = post(&strict, url).await.unwrap_err();
        assert!(
            matches!(error, EgressError::AddressRefused(_)),
            "{url}: {error:?}"
        );
    }
    // With the root's dot it depends on the machine whether the name exists at all.
    let kind = post(&strict, "https://localhost./").await.unwrap_err().kind();
    assert!(["address_refused", "name_unresolved"].contains(&kind), "{kind}");
}
