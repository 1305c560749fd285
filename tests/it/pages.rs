//! The pages for people, in a real browser: what is written is rendered, and nothing is loaded or run besides.

use std::path::Path;
use std::process::Command;

use aip_client::protocol::error::ErrorCode;
use aip_tests::raw::{Request, ask};
use aip_tests::{BROWSER_OPTIONS, TestAgent, TestHub, Vitals, installed_browser};
use serde_json::Value;

/// The page as the browser understood it on its standard output, what it complains of on the other.
const OPTIONS: &[&str] = &["--enable-logging=stderr", "--v=0", "--dump-dom"];

/// A browser with an empty profile.
struct Browser {
    program: &'static str,
    profile: tempfile::TempDir,
}

impl Browser {
    /// `None` where there is none; then the reason is printed.
    fn find() -> Option<Self> {
        Some(Self {
            program: installed_browser()?,
            profile: tempfile::tempdir().unwrap(),
        })
    }

    /// The page as the browser understood it.
    fn show(&self, url: &str, profile: &Path) -> String {
        let mut command = Command::new(self.program);
        command
            .args(BROWSER_OPTIONS)
            .args(OPTIONS)
            .arg(format!("--user-data-dir={}", profile.display()))
            .arg(url);
        let output = command.output().unwrap();
        let (page, said) = (
            String::from_utf8_lossy(&output.stdout),
            String::from_utf8_lossy(&output.stderr),
        );
        assert!(
            output.status.success() && page.contains("</html>"),
            "{url}: {page}\n{said}"
        );
        // Violations of the policy, failed loads and errors of scripts are all written to the console.
        assert!(!said.contains("CONSOLE"), "{url}: {said}");
        page.into_owned()
    }

    fn open(&self, hub: &TestHub, path: &str) -> String {
        self.show(&format!("{}{path}", hub.url()), self.profile.path())
    }
}

/// Text as it stands in a page.
fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}

#[tokio::test]
async fn the_pages_are_rendered_and_nothing_is_run() {
    let Some(browser) = Browser::find() else { return };
    let hub = TestHub::start();
    let before = Vitals::of(&hub).await;
    let start = browser.open(&hub, "/");
    assert!(
        start.contains(&format!("<h1>AIP hub of {}</h1>", hub.domain())),
        "{start}"
    );
    for link in ["/docs", "/docs/errors", "/openapi.json", "/.well-known/aip"] {
        assert!(start.contains(&format!("href=\"{link}\"")), "no link to {link}");
    }
    let errors = browser.open(&hub, "/docs/errors");
    for code in ErrorCode::ALL {
        assert!(
            errors.contains(&format!("href=\"/docs/errors/{code}\"")),
            "no link to {code}"
        );
    }
    let one = browser.open(&hub, "/docs/errors/handle_domain_missing");
    assert!(
        one.contains("handle_domain_missing") && one.contains("400"),
        "{one}"
    );
    let code = ErrorCode::HandleDomainMissing;
    let plain = |text: &str| escaped(text.split('`').next().unwrap_or_default());
    assert!(
        one.contains(&plain(code.meaning())) && one.contains(&plain(code.action())),
        "{one}"
    );
    // The sheet was loaded, so the policy allows it; nothing else was.
    let after = Vitals::assert_well(&hub, &before).await;
    let sheets = after.count_labelled("aip_http_requests_total", "route=\"/docs/style.css\"");
    assert!(sheets >= 1.0, "no style sheet was loaded");
}

#[tokio::test]
async fn the_api_page_names_every_door() {
    let Some(browser) = Browser::find() else { return };
    let hub = TestHub::start();
    let page = browser.open(&hub, "/docs");
    let document = ask(hub.url(), &Request::get("/openapi.json")).await.json();
    let members = |value: &Value| value.as_object().cloned().unwrap_or_default();
    let mut doors = 0;
    for (path, item) in members(&document["paths"]) {
        for (method, operation) in members(&item) {
            let heading = format!("<code>{} {path}</code></h3>", method.to_uppercase());
            assert!(page.contains(&heading), "no heading {heading}");
            let summary = escaped(operation["summary"].as_str().unwrap());
            assert!(page.contains(&summary), "{method} {path}: no {summary}");
            doors += 1;
        }
    }
    assert!(doors > 30, "{doors} doors");
    for target in page
        .split("href=\"#")
        .skip(1)
        .filter_map(|rest| rest.split('"').next())
    {
        assert!(
            page.contains(&format!("id=\"{target}\"")),
            "a link leads to #{target}, which is nowhere"
        );
    }
}

/// What an agent says of itself is never markup here.
#[tokio::test]
async fn the_page_of_an_agent_shows_who_it_is() {
    let Some(browser) = Browser::find() else { return };
    let hub = TestHub::start();
    let alice = TestAgent::draft(&hub, "alice", |draft| {
        let name = "<img src=x onerror=alert(1)><script>alert(2)</script>";
        draft.profile = aip_client::protocol::json::Json::from([("name", name.into())]);
    });
    let mut alice = alice.register(&hub).await;
    let page = browser.open(&hub, "/agents/alice");
    assert!(
        page.contains(&format!("<h1>alice#{}</h1>", hub.domain())),
        "{page}"
    );
    assert!(
        page.contains(alice.did.as_str()) && page.contains(alice.signing.public().as_str()),
        "{page}"
    );
    assert!(!page.contains("<img") && !page.contains("<script"), "{page}");
    alice.change(&hub, |draft| draft.deactivated = true).await;
    // With another profile, since a page may be kept for a while.
    let fresh = tempfile::tempdir().unwrap();
    let ended = browser.show(&format!("{}/agents/alice", hub.url()), fresh.path());
    assert!(
        ended.contains("ended") && !ended.contains(alice.signing.public().as_str()),
        "{ended}"
    );
}
