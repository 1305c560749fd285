//! The pages: all there, all safe.

use aip_protocol::error::ErrorCode;

use crate::testing::TestHub;

#[actix_web::test]
async fn pages_load_nothing_and_run_nothing() {
    let hub = TestHub::new();
    for path in ["/", "/docs", "/docs/errors", "/docs/errors/internal"] {
        let answer = hub.get(path).await;
        assert_eq!(
            (answer.status.as_u16(), answer.header("content-type")),
            (200, "text/html; charset=utf-8"),
            "{path}"
        );
        assert!(
            answer
                .header("content-security-policy")
                .contains("style-src 'self'")
        );
        let page = String::from_utf8(answer.body.to_vec()).unwrap();
        assert!(!page.contains("<script") && !page.contains("src="), "{path}");
    }
    assert_eq!(
        hub.get("/docs/style.css").await.header("content-type"),
        "text/css; charset=utf-8"
    );
}

#[actix_web::test]
async fn every_code_has_a_page() {
    let hub = TestHub::new();
    for code in ErrorCode::ALL {
        let page = hub.get(&format!("/docs/errors/{code}")).await;
        assert_eq!(page.status, 200, "{code}");
        assert!(
            String::from_utf8(page.body.to_vec())
                .unwrap()
                .contains(code.as_str())
        );
    }
    assert_eq!(hub.get("/docs/errors/no_such_code").await.code(), "not_found");
}

#[actix_web::test]
async fn the_document_for_tools_is_the_one_in_git() {
    let answer = TestHub::new().get("/openapi.json").await;
    assert_eq!(answer.body, crate::openapi::json().unwrap());
}
