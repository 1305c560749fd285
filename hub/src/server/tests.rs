//! What holds for every path: errors, ids, headers, slashes, methods, bodies, limits.

use actix_web::error::PayloadError;
use actix_web::test::TestRequest;
use actix_web::web::{Bytes, Payload};
use actix_web::{FromRequest as _, dev};
use futures_util::StreamExt as _;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use super::*;
use crate::extract::{BodyLimit, read_body};
use crate::testing::TestHub;

#[actix_web::test]
async fn an_unknown_path_is_a_problem() {
    let answer = TestHub::new().get("/api/v1/no-such-thing").await;
    assert_eq!(
        (answer.status.as_u16(), answer.code().as_str()),
        (404, "not_found")
    );
}

#[actix_web::test]
async fn a_wrong_method_is_a_problem_that_names_the_right_ones() {
    let hub = TestHub::new();
    for request in [TestRequest::put(), TestRequest::delete(), TestRequest::get()] {
        let answer = hub.ask(request.uri("/api/v1/agents")).await;
        assert_eq!(
            (answer.status.as_u16(), answer.code().as_str()),
            (405, "method_not_allowed")
        );
        assert_eq!(answer.header("allow"), "POST");
    }
    let answer = hub.ask(TestRequest::post().uri("/health/live")).await;
    assert_eq!(answer.header("allow"), "GET, HEAD");
}

#[actix_web::test]
async fn every_answer_has_its_own_id_and_protecting_headers() {
    let hub = TestHub::new();
    let outside = TestRequest::get()
        .uri("/health/live")
        .insert_header(("x-request-id", "chosen-by-the-caller"));
    let (first, second) = (hub.ask(outside).await, hub.get("/health/live").await);
    assert_ne!(first.header("x-request-id"), second.header("x-request-id"));
    assert_ne!(first.header("x-request-id"), "chosen-by-the-caller");
    assert_eq!(first.header("x-content-type-options"), "nosniff");
    assert_eq!(first.header("cache-control"), "no-store");
    assert!(
        first
            .header("content-security-policy")
            .starts_with("default-src 'none'")
    );
}

#[actix_web::test]
async fn a_trailing_slash_is_served_without_a_redirect() {
    let hub = TestHub::new();
    assert_eq!(hub.get("/health/live/").await.status, 200);
    assert_eq!(hub.get("/").await.status, 200);
    hub.registered("alice").await;
    assert_eq!(hub.get("/api/v1/resolve/alice%23hub.example/").await.status, 200);
    assert_eq!(
        hub.get("/api/v1/resolve/?id=alice%23hub.example").await.status,
        200
    );
}

#[actix_web::test]
async fn head_is_answered_like_get() {
    let answer = TestHub::new()
        .ask(
            TestRequest::default()
                .method(actix_web::http::Method::HEAD)
                .uri("/docs"),
        )
        .await;
    assert_eq!(answer.status, 200);
}

#[actix_web::test]
async fn only_listed_origins_are_allowed_across() {
    let hub =
        TestHub::with(|settings| settings.http.allowed_origins = vec!["https://app.example".to_owned()]);
    let preflight = |origin: &'static str| {
        let request = TestRequest::default()
            .method(actix_web::http::Method::OPTIONS)
            .uri("/api/v1/messages");
        request
            .insert_header(("origin", origin))
            .insert_header(("access-control-request-method", "POST"))
    };
    let allowed = hub.ask(preflight("https://app.example")).await;
    assert_eq!(
        (
            allowed.status.as_u16(),
            allowed.header("access-control-allow-origin")
        ),
        (204, "https://app.example")
    );
    let refused = hub.ask(preflight("https://evil.example")).await;
    assert_eq!(refused.header("access-control-allow-origin"), "");
    assert!(refused.status.is_client_error());
}

#[actix_web::test]
async fn a_body_with_content_encoding_is_refused() {
    let hub = TestHub::new();
    let request = TestRequest::post()
        .uri("/api/v1/auth/token")
        .insert_header(("content-encoding", "gzip"));
    let answer = hub.ask(request.set_payload("{}")).await;
    assert_eq!(
        (answer.status.as_u16(), answer.code().as_str()),
        (415, "encoding_unsupported")
    );
}

#[actix_web::test]
async fn a_body_of_another_kind_is_refused() {
    let hub = TestHub::new();
    let request = TestRequest::post()
        .uri("/api/v1/auth/token")
        .insert_header(("content-type", "text/plain"));
    let answer = hub.ask(request.set_payload("{}")).await;
    assert_eq!(
        (answer.status.as_u16(), answer.code().as_str()),
        (415, "media_type_unsupported")
    );
}

#[actix_web::test]
async fn row_83_a_body_one_byte_too_large_is_refused() {
    let hub = TestHub::new();
    let body = |bytes: usize| format!("{{}}{}", " ".repeat(bytes - 2));
    let limit = crate::limits::SMALL_BODY_BYTES_MAX;
    let answer = hub.post("/api/v1/auth/token", body(limit)).await;
    assert_eq!(answer.code(), "member_missing");
    let answer = hub.post("/api/v1/auth/token", body(limit + 1)).await;
    assert_eq!(
        (answer.status.as_u16(), answer.code().as_str()),
        (413, "body_too_large")
    );
    assert_eq!(answer.json()["limit_bytes"], limit);
}

/// Reads a body that comes in `count` pieces of ten bytes, and then ends or is silent for ever.
async fn read_pieces(app: &App, count: usize, ends: bool, bytes_max: usize) -> Result<Bytes, ErrorCode> {
    let piece = || Ok::<_, PayloadError>(Bytes::from_static(b"0123456789"));
    let pieces = futures_util::stream::iter(std::iter::repeat_with(piece).take(count));
    let stream = if ends {
        pieces.boxed_local()
    } else {
        pieces.chain(futures_util::stream::pending()).boxed_local()
    };
    let request = TestRequest::post().to_http_request();
    let payload = Payload::from_request(&request, &mut dev::Payload::from(stream))
        .await
        .unwrap();
    read_body(app, &request, payload, BodyLimit::new(bytes_max))
        .await
        .map_err(|error| error.code())
}

#[actix_web::test]
async fn a_body_in_pieces_is_put_together_and_bounded() {
    let app = TestHub::new().hub.app;
    assert_eq!(read_pieces(&app, 0, true, 10).await.unwrap().len(), 0);
    assert_eq!(read_pieces(&app, 1, true, 10).await.unwrap().len(), 10);
    assert_eq!(
        read_pieces(&app, 3, true, 30).await.unwrap(),
        "012345678901234567890123456789"
    );
    assert_eq!(read_pieces(&app, 1, true, 9).await, Err(ErrorCode::BodyTooLarge));
    assert_eq!(read_pieces(&app, 4, true, 30).await, Err(ErrorCode::BodyTooLarge));
}

#[actix_web::test]
async fn a_body_that_stalls_is_given_up() {
    let hub = TestHub::with(|settings| {
        settings.http.body_timeout_secs = 0;
        settings.http.body_bytes_per_sec_min = 0;
    });
    assert_eq!(read_pieces(&hub.hub.app, 2, true, 1_000).await.unwrap().len(), 20);
    assert_eq!(
        read_pieces(&hub.hub.app, 2, false, 1_000).await,
        Err(ErrorCode::JsonInvalid)
    );
    assert_eq!(
        read_pieces(&hub.hub.app, 2, false, 10).await,
        Err(ErrorCode::BodyTooLarge)
    );
}

#[actix_web::test]
async fn metrics_are_on_the_operators_listener_only() {
    let hub = TestHub::new();
    hub.registered("alice").await;
    hub.get("/api/v1/no-such-thing").await;
    assert_eq!(hub.get("/metrics").await.status, 404);
    let answer = hub.ask_operator(TestRequest::get().uri("/metrics")).await;
    let text = String::from_utf8(answer.body.to_vec()).unwrap();
    for line in [
        "aip_http_errors_total{code=\"not_found\"} 2",
        "aip_store_health{state=\"ready\"} 1",
        "aip_registry_agents 1",
        "aip_relay_stored_total 0",
    ] {
        assert!(text.contains(line), "{line} is not in {text}");
    }
}

#[actix_web::test]
async fn a_hub_that_drains_is_alive_but_not_ready() {
    let hub = TestHub::new();
    assert_eq!(hub.get("/health/ready").await.json()["status"], "ready");
    hub.hub.begin_to_close();
    let answer = hub.get("/health/ready").await;
    assert_eq!(
        (answer.status.as_u16(), answer.code().as_str()),
        (503, "unavailable")
    );
    assert_eq!(answer.json()["reason"], "stopping");
    assert_eq!(answer.header("retry-after"), "1");
    assert_eq!(hub.get("/health/live").await.status, 200);
}

#[actix_web::test]
async fn row_86_a_taken_port_is_named() {
    let hub = TestHub::new();
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap();
    let error = listen(&hub.hub.app, public, "listen", address, 1).err().unwrap();
    assert!(error.to_string().contains(&address.to_string()), "{error}");
}

#[actix_web::test]
async fn strangers_are_slowed_per_address() {
    let hub = TestHub::with(|settings| {
        settings.hub.development = false;
        settings.http.requests_per_sec = 1;
        settings.http.request_burst = 2;
    });
    let from = |address: &str| {
        let request = TestRequest::get().uri("/api/v1/resolve/nobody%23hub.example");
        request.peer_addr(format!("{address}:9").parse().unwrap())
    };
    for _ in 0..2 {
        assert_eq!(hub.ask(from("192.0.2.1")).await.status, 404);
    }
    let slowed = hub.ask(from("192.0.2.1")).await;
    assert_eq!(
        (slowed.status.as_u16(), slowed.code().as_str()),
        (429, "rate_limited")
    );
    assert!(!slowed.header("retry-after").is_empty());
    assert_eq!(hub.ask(from("192.0.2.2")).await.status, 404);
}

#[actix_web::test]
async fn row_80_listeners_stop_although_connections_are_open() {
    let hub = TestHub::with(|settings| {
        settings.http.listen = "127.0.0.1:0".parse().unwrap();
        settings.http.operator_listen = "127.0.0.1:0".parse().unwrap();
    });
    let servers = Servers::bind(&hub.hub.app).unwrap();
    let (public, life) = (servers.public_addr, hub.hub.life.clone());
    let running = actix_web::rt::spawn(async move { servers.run(&life).await });
    let mut idle = tokio::net::TcpStream::connect(public).await.unwrap();
    idle.write_all(b"GET /health/live HTTP/1.1\r\nHost: x\r\n\r\n")
        .await
        .unwrap();
    assert!(idle.read(&mut [0; 1_024]).await.unwrap() > 0);
    hub.hub.begin_to_close();
    running.await.unwrap().unwrap();
    assert!(tokio::net::TcpStream::connect(public).await.is_err());
}
