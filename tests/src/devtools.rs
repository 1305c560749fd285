//! A real browser that a test drives: opens a page, types, clicks, and reads what is there. It speaks the `DevTools` protocol of
//! Chromium over the WebSocket that the browser names when it starts.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use futures_util::{SinkExt as _, StreamExt as _};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream, connect_async};

/// Names under which a browser may be installed.
const BROWSERS: &[&str] = &["chromium", "chromium-browser", "google-chrome"];
/// What a browser is told in every test.
pub const BROWSER_OPTIONS: &[&str] = &[
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
];
/// Ends a test that would hang.
const PATIENCE: Duration = Duration::from_mins(1);
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// The browser of this machine; `None` where none is installed, and then the reason is printed.
#[must_use]
pub fn installed_browser() -> Option<&'static str> {
    let is_installed = |name: &&str| {
        let version = Command::new(name).arg("--version").output();
        version.is_ok_and(|output| output.status.success())
    };
    let program = BROWSERS.iter().copied().find(is_installed);
    #[expect(clippy::print_stdout, reason = "a test that is skipped says why")]
    if program.is_none() {
        println!("skipped: no browser is installed; scripts/setup test installs chromium");
    }
    program
}

/// A browser with one page and an empty profile. Dropping it ends it.
#[derive(Debug)]
pub struct Driven {
    process: Child,
    socket: WebSocketStream<MaybeTlsStream<TcpStream>>,
    session: String,
    calls: u64,
    /// Errors of scripts, and whatever else was written to the console.
    console: Vec<Value>,
    _profile: TempDir,
}

impl Driven {
    /// Starts one; `None` where none is installed, and then the reason is printed.
    ///
    /// # Panics
    /// When the browser does not start.
    pub async fn start() -> Option<Self> {
        let program = installed_browser()?;
        let profile = match tempfile::tempdir() {
            Ok(profile) => profile,
            Err(error) => panic!("no temporary folder: {error}"),
        };
        let spawned = Command::new(program)
            .args(BROWSER_OPTIONS)
            .arg("--remote-debugging-port=0")
            .arg(format!("--user-data-dir={}", profile.path().display()))
            .arg("about:blank")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn();
        let mut process = match spawned {
            Ok(process) => process,
            Err(error) => panic!("the browser does not start: {error}"),
        };
        let Some(address) = address(&mut process) else {
            panic!("the browser names no address");
        };
        let (socket, _) = match connect_async(&address).await {
            Ok(connected) => connected,
            Err(error) => panic!("{address}: {error}"),
        };
        let mut driven = Self {
            process,
            socket,
            session: String::new(),
            calls: 0,
            console: Vec::new(),
            _profile: profile,
        };
        driven.attach().await;
        Some(driven)
    }

    async fn attach(&mut self) {
        let target = self
            .call("Target.createTarget", json!({ "url": "about:blank" }))
            .await;
        let asked = json!({ "targetId": target.get("targetId"), "flatten": true });
        let attached = self.call("Target.attachToTarget", asked).await;
        let session = attached.get("sessionId").and_then(Value::as_str);
        session.unwrap_or_default().clone_into(&mut self.session);
        for domain in ["Page.enable", "Runtime.enable", "Log.enable"] {
            self.call(domain, json!({})).await;
        }
    }

    /// Opens a page and waits until its body is there and its scripts have run.
    ///
    /// # Panics
    /// When it does not load.
    pub async fn open(&mut self, url: &str) {
        self.call("Page.navigate", json!({ "url": url })).await;
        let here = format!(
            "location.href === {} && document.readyState === 'complete'",
            json!(url)
        );
        self.until(&here).await;
    }

    /// The value of an expression.
    ///
    /// # Panics
    /// When it throws.
    pub async fn value(&mut self, expression: &str) -> Value {
        let asked = json!({ "expression": expression, "returnByValue": true, "awaitPromise": true, "userGesture": true });
        let answer = self.call("Runtime.evaluate", asked).await;
        assert!(answer.get("exceptionDetails").is_none(), "{expression}: {answer}");
        answer.pointer("/result/value").cloned().unwrap_or_default()
    }

    /// Waits until an expression is true.
    ///
    /// # Panics
    /// When it does not become true.
    pub async fn until(&mut self, expression: &str) {
        let look = async {
            while self.value(expression).await != true {
                tokio::time::sleep(LOOK_EVERY).await;
            }
        };
        if tokio::time::timeout(PATIENCE, look).await.is_err() {
            let page = self.value("document.documentElement.outerHTML").await;
            panic!("{expression} does not become true: {page}");
        }
    }

    /// Types text into the element that has the focus.
    pub async fn type_text(&mut self, text: &str) {
        self.call("Input.insertText", json!({ "text": text })).await;
    }

    /// What was written to the console: errors of scripts, refused loads, violations of the page's policy.
    #[must_use]
    pub fn console(&self) -> &[Value] {
        &self.console
    }

    async fn call(&mut self, method: &str, parameters: Value) -> Value {
        self.calls += 1;
        let mut asked = json!({ "id": self.calls, "method": method, "params": parameters });
        if let Some(members) = asked.as_object_mut().filter(|_| !self.session.is_empty()) {
            members.insert("sessionId".to_owned(), json!(self.session));
        }
        let asking = async {
            if let Err(error) = self.socket.send(Message::text(asked.to_string())).await {
                panic!("{method}: {error}");
            }
            loop {
                let said = self.hear().await;
                let member = |name: &str| said.get(name).cloned().unwrap_or_default();
                if member("id") == self.calls {
                    assert!(said.get("error").is_none(), "{method}: {said}");
                    return member("result");
                }
                let event = member("method");
                if event == "Log.entryAdded" || event == "Runtime.exceptionThrown" {
                    self.console.push(said);
                }
            }
        };
        let Ok(answer) = tokio::time::timeout(PATIENCE, asking).await else {
            panic!("the browser does not answer to {method}")
        };
        answer
    }

    async fn hear(&mut self) -> Value {
        loop {
            match self.socket.next().await {
                Some(Ok(Message::Text(text))) => return serde_json::from_str(&text).unwrap_or_default(),
                Some(Ok(_)) => {}
                other => panic!("the browser has gone: {other:?}"),
            }
        }
    }
}

impl Drop for Driven {
    fn drop(&mut self) {
        // It may have ended by itself.
        _ = self.process.kill();
        _ = self.process.wait();
    }
}

/// The address that the browser says on standard error, which is read to its end so that it never has to wait.
fn address(process: &mut Child) -> Option<String> {
    let (tell, told) = std::sync::mpsc::sync_channel(1);
    let lines = BufReader::new(process.stderr.take()?).lines();
    std::thread::spawn(move || {
        for line in lines.map_while(Result::ok) {
            if let Some(address) = line.strip_prefix("DevTools listening on ") {
                // Who asked may have gone.
                _ = tell.send(address.to_owned());
            }
        }
    });
    told.recv_timeout(PATIENCE).ok()
}
