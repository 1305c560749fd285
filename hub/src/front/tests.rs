//! What is logged and what is not, and how failures leave the hub.

use std::io::Write;
use std::sync::{Arc, Mutex};

use actix_web::test::TestRequest;
use actix_web::web::ServiceConfig;
use tracing::subscriber::{DefaultGuard, set_default};
use tracing_subscriber::filter::LevelFilter;

use super::*;
use crate::testing::TestHub;

/// Everything that this thread logs, at every level.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Log {
    fn capture() -> (Self, DefaultGuard) {
        let log = Self::default();
        let writer = log.clone();
        let lines = tracing_subscriber::fmt()
            .with_max_level(LevelFilter::TRACE)
            .with_ansi(false);
        let guard = set_default(lines.with_writer(move || writer.clone()).finish());
        (log, guard)
    }

    fn text(&self) -> String {
        String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
    }
}

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[actix_web::test]
async fn row_85_the_log_names_the_route_and_nothing_of_the_caller() {
    let (log, _guard) = Log::capture();
    let hub = TestHub::new();
    let request = TestRequest::post().uri("/api/v1/auth/token?secret=canary-query");
    let request = request.insert_header(("authorization", "Bearer canary-token"));
    hub.ask(request.set_payload(r#"{"sig":"canary-body"}"#)).await;
    hub.post("/api/v1/auth/token", "x".repeat(100_000) + "canary-large")
        .await;
    hub.get("/api/v1/resolve/canary-name%23hub.example").await;
    let text = log.text();
    assert!(
        text.contains("/api/v1/auth/token") && text.contains("status=400"),
        "{text}"
    );
    assert!(
        text.contains("/api/v1/resolve/{id}") && text.contains("status=404"),
        "{text}"
    );
    assert!(!text.contains("canary"), "{text}");
    assert!(text.len() < 4_096, "{text}");
}

async fn fail() -> Result<&'static str, ApiError> {
    Err(ApiError::failed(ErrorCode::Internal, "the canary is dead"))
}

fn failing(config: &mut ServiceConfig) {
    config.service(crate::routes::Endpoint::at("/fail").get(fail).into_resource());
}

#[actix_web::test]
async fn the_cause_of_a_failure_is_logged_once_and_told_to_nobody() {
    let (log, _guard) = Log::capture();
    let answer = TestHub::new()
        .ask_at(failing, TestRequest::get().uri("/fail"))
        .await;
    assert_eq!(
        (answer.status.as_u16(), answer.code().as_str()),
        (500, "internal")
    );
    assert!(
        !String::from_utf8(answer.body.to_vec())
            .unwrap()
            .contains("canary")
    );
    let text = log.text();
    assert_eq!(text.matches("the canary is dead").count(), 1, "{text}");
    let line = text.lines().find(|line| line.contains("canary")).unwrap();
    assert!(line.contains(answer.header("x-request-id")), "{line}");
}

#[actix_web::test]
async fn a_flood_of_failures_does_not_flood_the_log() {
    let (log, _guard) = Log::capture();
    let hub = TestHub::new();
    let service =
        actix_web::test::init_service(crate::server::application(hub.hub.app.clone(), failing)).await;
    for _ in 0..1_000 {
        let request = TestRequest::get().uri("/fail").to_request();
        assert_eq!(
            actix_web::test::call_service(&service, request).await.status(),
            500
        );
    }
    let lines = log.text().matches("the canary is dead").count();
    assert!((1..1_000).contains(&lines), "{lines} lines");
}
