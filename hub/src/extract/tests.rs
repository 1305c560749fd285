//! Queries, paces and segments without a server; bodies are tested through it in `server/tests.rs`.

use actix_web::test::TestRequest;
use futures_util::stream;

use super::*;
use crate::limits::{BODIES_BYTES_MAX, BODY_FREE_BYTES};
use crate::testing::TestHub;

fn request(uri: &str) -> HttpRequest {
    TestRequest::with_uri(uri)
        .app_data(Template("/api/v1/resolve/{id}"))
        .to_http_request()
}

fn code<T>(result: Result<T, ApiError>) -> Option<ErrorCode> {
    result.err().map(|error| error.code())
}

#[test]
fn a_known_parameter_is_read() {
    let req = request("/x?cursor=a%20b%3Dc=d&limit=7");
    let query = Query::parse(&req, &["cursor", "limit"]).unwrap();
    assert_eq!(query.text("cursor").unwrap().as_deref(), Some("a b=c=d"));
    assert_eq!(query.raw("cursor"), Some("a%20b%3Dc=d"));
    assert_eq!(query.number("limit", 1..=100, 20).unwrap(), 7);
    assert_eq!(query.number("wait_s", 0..=60, 0).unwrap(), 0);
}

#[test]
fn an_unknown_parameter_is_refused() {
    assert_eq!(
        code(Query::parse(&request("/x?colour=red"), &["limit"])),
        Some(ErrorCode::ParameterUnknown)
    );
    assert_eq!(
        code(Query::parse(&request("/x?Limit=1"), &["limit"])),
        Some(ErrorCode::ParameterUnknown)
    );
    assert_eq!(
        code(Query::parse(&request("/x?a"), &[])),
        Some(ErrorCode::ParameterUnknown)
    );
}

#[test]
fn a_doubled_parameter_is_refused() {
    assert_eq!(
        code(Query::parse(&request("/x?limit=1&limit=1"), &["limit"])),
        Some(ErrorCode::ParameterInvalid)
    );
}

#[test]
fn numbers_are_digits_within_their_range() {
    for raw in [
        "0",
        "101",
        "-1",
        "+1",
        "1.0",
        "1e1",
        "",
        "99999999999999999999",
        "%31",
    ] {
        let req = request(&format!("/x?limit={raw}"));
        let query = Query::parse(&req, &["limit"]).unwrap();
        assert_eq!(
            code(query.number("limit", 1..=100, 20)),
            Some(ErrorCode::ParameterInvalid),
            "{raw}"
        );
    }
}

#[test]
fn text_is_utf8() {
    let req = request("/x?q=%ff");
    let query = Query::parse(&req, &["q"]).unwrap();
    assert_eq!(code(query.text("q")), Some(ErrorCode::ParameterInvalid));
}

#[test]
fn a_segment_stays_as_sent() {
    assert_eq!(
        raw_segment(&request("/api/v1/resolve/alice%2523b%FF"), "id"),
        "alice%2523b%FF"
    );
    assert_eq!(raw_segment(&request("/api/v1/resolve/alice"), "other"), "");
}

#[test]
fn a_body_gets_more_time_only_while_it_comes() {
    let pace = BodyPace {
        grace: Duration::from_secs(10),
        bytes_per_sec_min: 1_024,
    };
    assert_eq!(pace.allowance(0), Duration::from_secs(10));
    assert_eq!(pace.allowance(1_023), Duration::from_secs(10));
    assert_eq!(pace.allowance(20_480), Duration::from_secs(30));
    assert_eq!(
        BodyPace {
            bytes_per_sec_min: 0,
            ..pace
        }
        .allowance(20_480),
        Duration::from_secs(10)
    );
}

#[test]
fn a_bearer_token_is_found() {
    let with = |value: &str| {
        TestRequest::default()
            .insert_header(("authorization", value))
            .to_http_request()
    };
    assert_eq!(bearer(&with("Bearer abc")), Some("abc"));
    assert_eq!(bearer(&with("bearer abc")), Some("abc"));
    assert_eq!(bearer(&with("Basic abc")), None);
    assert_eq!(bearer(&TestRequest::default().to_http_request()), None);
}

/// Reads a body of so many bytes, which comes in two pieces.
async fn read(app: &App, bytes: usize) -> Result<Bytes, ErrorCode> {
    let half = Bytes::from(vec![b' '; bytes / 2]);
    let pieces = stream::iter([half.clone(), half].map(Ok::<_, PayloadError>));
    let request = TestRequest::post().to_http_request();
    let payload = web::Payload::from_request(&request, &mut dev::Payload::from(pieces.boxed_local()));
    read_body(app, &request, payload.await.unwrap(), BodyLimit::new(bytes))
        .await
        .map_err(|error| error.code())
}

/// Thousands of connections that each hold a few MiB would be more than a machine has.
#[actix_web::test]
async fn row_83_the_bodies_of_all_requests_are_bounded_together() {
    let app = TestHub::new().hub.app;
    let body = read(&app, BODY_FREE_BYTES + 20).await.unwrap();
    assert_eq!(
        app.bodies.taken_bytes(),
        20,
        "it is held as long as its bytes are"
    );

    let mut others = app.bodies.share(None);
    assert!(others.grow_to(BODY_FREE_BYTES + BODIES_BYTES_MAX - 20));
    assert_eq!(
        read(&app, BODY_FREE_BYTES + 20).await,
        Err(ErrorCode::RateLimited)
    );
    assert_eq!(read(&app, BODY_FREE_BYTES).await.unwrap().len(), BODY_FREE_BYTES);
    drop((body, others));
    assert_eq!(app.bodies.taken_bytes(), 0);
    read(&app, BODY_FREE_BYTES + 20).await.unwrap();
}
