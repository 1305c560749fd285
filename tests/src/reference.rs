//! The reference hub of the market's protocol, `aimarket-hub` from the Python package index, as a process: a peer that we did
//! not write, and an oracle for what we sign.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::io::AsyncWriteExt as _;

use crate::free_port;
use crate::market::market_python;
use crate::raw::{Answer, Request, Wire, ask};

/// Its version.
pub const REFERENCE_VERSION: &str = "3.16.0";

/// The token of its operator in tests.
const OPERATOR_TOKEN: &str = "reference-operator-0123456789";

/// How long it may take until it answers: it imports much, and the machine may be busy.
const READY_WITHIN: Duration = Duration::from_mins(2);

/// Looks in between.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// It keeps to itself: nobody is looked for, nothing is asked of the rest of the world, and only its operator starts a crawl.
const ALONE: [(&str, &str); 8] = [
    ("AIMARKET_SEED_LIST", ""),
    ("AIMARKET_SEEDS_FILE", "none.json"),
    ("AIMARKET_SKIP_SEED", "1"),
    ("AIMARKET_AUTO_CRAWL", "0"),
    ("AIMARKET_UPDATE_CHECK", "0"),
    ("AIMARKET_FEDERATION_ASSAY", "0"),
    ("AIMARKET_ORACLE_FAMILY_URL", "off"),
    ("AIMARKET_DEPOSIT_WATCH", "0"),
];

/// Every way to pay that needs no chain, and no limit of requests.
const MARKET: [(&str, &str); 6] = [
    ("AIMARKET_CREDITS_ENABLED", "1"),
    ("AIMARKET_CREDITS_FREE_GRANT_USD", "0.5"),
    ("AIFACTORY_CRYPTO_ENABLED", "1"),
    ("AIMARKET_ALLOW_DEMO_CREDIT", "1"),
    ("AIMARKET_ALLOW_LOCAL_PUBLISH", "1"),
    ("AIMARKET_INVOKE_RATE_PER_MIN", "0"),
];

/// The Python that has the reference hub; `None` where there is none, and then the reason is printed.
#[must_use]
#[expect(clippy::print_stdout, reason = "a test that is skipped says why")]
pub fn reference_python() -> Option<PathBuf> {
    let python = market_python()?;
    let asks = "from importlib.metadata import version; print(version('aimarket-hub'))";
    let output = Command::new(&python).args(["-c", asks]).output().ok()?;
    let version = String::from_utf8_lossy(&output.stdout);
    if version.trim() == REFERENCE_VERSION {
        return Some(python);
    }
    println!("skipped: aimarket-hub {REFERENCE_VERSION} is missing; scripts/setup test installs it");
    None
}

/// What it sells.
#[derive(Debug, Clone)]
pub struct Sold {
    /// Its `product_id`.
    pub product_id: String,
    /// Its `capability_id`.
    pub capability_id: String,
    /// In US dollars; 0: free.
    pub price_usd: f64,
    /// Where it is done.
    pub invoke_url: String,
    /// What its input is like.
    pub input_schema: Value,
    /// What its result is like.
    pub output_schema: Value,
}

impl Sold {
    /// A capability of the product `shop` without demands on its input, done below this address: of several at one address its
    /// search shows one.
    #[must_use]
    pub fn new(capability_id: &str, price_usd: f64, invoke_url: &str) -> Self {
        Self {
            product_id: "shop".to_owned(),
            capability_id: capability_id.to_owned(),
            price_usd,
            invoke_url: format!("{invoke_url}/{capability_id}"),
            input_schema: json!({ "type": "object" }),
            output_schema: json!({ "type": "object" }),
        }
    }

    fn row(&self) -> Value {
        json!({
            "product_id": self.product_id, "capability_id": self.capability_id, "name": self.capability_id,
            "description": format!("What {} does.", self.capability_id), "price_usd": self.price_usd,
            "invoke_url": self.invoke_url, "input_schema": self.input_schema, "output_schema": self.output_schema,
        })
    }
}

/// A running reference hub. Dropping it kills the process and removes its folder.
#[derive(Debug)]
pub struct ReferenceHub {
    folder: TempDir,
    child: Child,
    url: String,
}

impl ReferenceHub {
    /// Starts one that sells this, with further settings, and waits until it answers.
    ///
    /// # Errors
    /// It does not start; what it wrote to its log.
    pub async fn start(python: &Path, sold: &[Sold], more: &[(&str, &str)]) -> Result<Self> {
        let folder = tempfile::Builder::new().prefix("aip-reference-").tempdir()?;
        std::fs::create_dir_all(folder.path().join("data"))?;
        let rows: Vec<Value> = sold.iter().map(Sold::row).collect();
        std::fs::write(folder.path().join("sold.json"), Value::from(rows).to_string())?;
        let port = free_port();
        let url = format!("http://127.0.0.1:{port}");
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("python/reference_hub.py");
        let log = File::create(folder.path().join("hub.log"))?;
        let child = Command::new(python)
            .arg(script)
            .arg(port.to_string())
            .arg("sold.json")
            .current_dir(folder.path())
            .envs(ALONE)
            .envs(MARKET)
            .env("AIMARKET_HUB_URL", &url)
            .env("AIMARKET_HUB_NAME", "The reference")
            .env("AIMARKET_DB_PATH", "data/hub.db")
            .env("AIMARKET_ADMIN_TOKEN", OPERATOR_TOKEN)
            .env("NO_PROXY", "*")
            .envs(more.iter().copied())
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log)
            .spawn()?;
        let mut hub = Self { folder, child, url };
        hub.until_ready().await?;
        Ok(hub)
    }

    async fn until_ready(&mut self) -> Result<()> {
        let deadline = tokio::time::Instant::now() + READY_WITHIN;
        while Wire::open(&self.url).await.is_err() {
            let ended = self.child.try_wait()?;
            let in_time = tokio::time::Instant::now() < deadline;
            ensure!(
                ended.is_none() && in_time,
                "the reference hub does not start ({ended:?}):\n{}",
                self.log()
            );
            tokio::time::sleep(LOOK_EVERY).await;
        }
        Ok(())
    }

    /// Where it is, as it says of itself.
    #[must_use]
    pub fn url(&self) -> &str {
        &self.url
    }

    /// What it wrote to its log.
    #[must_use]
    pub fn log(&self) -> String {
        std::fs::read_to_string(self.folder.path().join("hub.log")).unwrap_or_default()
    }

    /// Asks it something.
    pub async fn ask(&self, request: &Request) -> Answer {
        ask(&self.url, request).await
    }

    /// Asks it something as its operator.
    pub async fn operate(&self, request: Request) -> Answer {
        ask(&self.url, &request.bearer(OPERATOR_TOKEN)).await
    }

    /// Its operator takes a hub for a peer, whose catalog it then reads.
    ///
    /// # Errors
    /// What it says.
    pub async fn takes(&self, hub: &str) -> Result<()> {
        let announced = self
            .ask(&Request::post(
                "/ai-market/v2/federation/announce",
                json!({ "hub_url": hub }).to_string(),
            ))
            .await;
        ensure!(announced.status == 200, "{}", announced.text());
        // It learns the key of the hub at its first visit, and reads the catalog of whom its operator approved at the next.
        for approved in [false, true] {
            if approved {
                let body = json!({ "url": hub }).to_string();
                let answer = self
                    .operate(Request::post("/ai-market/v2/federation/peers/approve", body))
                    .await;
                ensure!(answer.status == 200, "{}", answer.text());
            }
            let crawled = self
                .operate(Request::post("/ai-market/v2/federation/crawl", "{}"))
                .await;
            ensure!(crawled.status == 200, "{}\n{}", crawled.text(), self.log());
        }
        Ok(())
    }

    /// The key that it signs with, as base64, out of its own discovery document.
    ///
    /// # Errors
    /// There is none.
    pub async fn key(&self) -> Result<String> {
        let document = self
            .ask(&Request::get("/.well-known/ai-market.json"))
            .await
            .json();
        let key = document.get("signer_public_key").and_then(Value::as_str);
        Ok(key.context("no key")?.to_owned())
    }
}

impl Drop for ReferenceHub {
    fn drop(&mut self) {
        // Both fail only when it is gone already.
        let _gone = self.child.kill();
        let _reaped = self.child.wait();
    }
}

/// What the reference says of signed objects; see `tests/python/reference_oracle.py`.
///
/// # Errors
/// It breaks off; what it wrote.
pub async fn oracle(python: &Path, objects: &Value) -> Result<Value> {
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut child = tokio::process::Command::new(python)
        .arg(manifest.join("python/reference_oracle.py"))
        .env("AIMARKET_SCHEMA_DIR", manifest.join("vectors/aimarket/schemas"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()?;
    let mut stdin = child.stdin.take().context("no standard input")?;
    stdin.write_all(objects.to_string().as_bytes()).await?;
    drop(stdin);
    let output = child.wait_with_output().await?;
    ensure!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    Ok(serde_json::from_slice(&output.stdout)?)
}
