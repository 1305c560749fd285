//! Against `aimarket-hub`: its search in its process and ours in ours, then both over HTTP.
//!
//! It is installed with pip into a temporary folder. Its search is a table of words and concepts, without a model; ours runs
//! two for a query that it has not seen, so new queries, repeated ones, and text alone are told apart.

use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use bytes::Bytes;
use serde_json::json;

use super::Options;
use super::ground::Ground;
use super::made::Made;
use super::meaning;
use super::queries::Asked;
use super::times::Times;
use crate::agents::Crowd;
use crate::hub::Hub;
use crate::load::{self, Connection};
use crate::quality::spread;
use crate::report::{Bound, Row};
use crate::yardstick::aimarket::{Package, done, skip};

/// Capabilities: as many as its own market showed, and many.
pub(super) const LISTINGS: [u64; 2] = [47, 5_000];

/// Queries of each measurement: it takes a long time for some.
const QUERIES: usize = 100;

/// Results of each answer.
const LIMIT: usize = 20;

/// How long our hub may take to embed all listings.
const PATIENCE: Duration = Duration::from_mins(15);

/// Measures at this number of capabilities. No rows where it cannot be installed; why is told.
pub(super) async fn measure(
    options: &Options,
    made: &Arc<Made>,
    asked: &[Asked],
    listings: u64,
) -> anyhow::Result<Vec<Row>> {
    let scratch = tempfile::tempdir()?;
    let theirs = match Package::install(&options.python, &scratch.path().join("theirs")) {
        Ok(package) => Sold(package),
        Err(reason) => {
            skip(&reason);
            return Ok(Vec::new());
        }
    };
    let asked: Vec<Asked> = spread(asked, QUERIES).into_iter().cloned().collect();
    theirs.write(made, listings, &asked)?;
    let in_process = theirs.ask()?;
    let embedders = meaning::recombined(options, made, &asked).await?;
    let ground = Ground::open(&scratch.path().join("catalog"), made, &embedders, listings).await?;
    let mut known = Times::default();
    for asked in &asked {
        let begun = Instant::now();
        ground.search(&asked.whole, LIMIT).await?;
        known.add(begun.elapsed());
    }
    ground.close().await;
    let http = theirs.over_http(&asked).await?;
    let ours = ours_over_http(scratch.path(), made, listings, &asked).await?;
    Ok(vec![
        row(
            "aimarket-hub p50 / ours, in process, vectors of the query known",
            &in_process,
            &known,
        ),
        row(
            "aimarket-hub p50 / ours, over HTTP, by text alone",
            &http,
            &ours.text,
        ),
        row(
            "aimarket-hub p50 / ours, over HTTP, queries seen before",
            &http,
            &ours.repeated,
        ),
        row(
            "aimarket-hub p50 / ours, over HTTP, new queries: models run",
            &http,
            &ours.new,
        ),
    ])
}

fn row(what: &'static str, theirs: &Times, ours: &Times) -> Row {
    Row {
        id: "aimarket",
        what,
        bound: Bound::AtLeast(50.0),
        rounds: vec![theirs.p50() / ours.p50()],
        figures: format!(
            "{:.2} ms (p99 {:.2}), {:.3} ms (p99 {:.3})",
            theirs.p50(),
            theirs.p99(),
            ours.p50(),
            ours.p99()
        ),
    }
}

/// What it sells here, and what it is asked.
struct Sold(Package);

impl Sold {
    fn write(&self, made: &Made, listings: u64, asked: &[Asked]) -> anyhow::Result<()> {
        let mut lines = String::new();
        for number in 1..=listings {
            let entry = made.entry(number).context("a listing of every number")?;
            let row = json!({
                "id": entry.id, "agent": entry.agent.as_str(), "name": entry.name,
                "description": entry.description,
            });
            writeln!(lines, "{row}")?;
        }
        std::fs::write(self.0.dir().join("capabilities.jsonl"), lines)?;
        let queries: Vec<String> = asked.iter().map(|asked| json!(asked.whole).to_string()).collect();
        Ok(std::fs::write(
            self.0.dir().join("queries.jsonl"),
            queries.join("\n"),
        )?)
    }

    fn script(&self, verb: &str) -> Command {
        let mut command = self.0.script(verb);
        command.arg("capabilities.jsonl");
        command
    }

    /// Its search in its own process.
    fn ask(&self) -> anyhow::Result<Times> {
        let took = done(self.script("ask").arg("queries.jsonl"))?;
        Ok(Times::from_millis(serde_json::from_str(took.trim())?))
    }

    /// Its hub, one query after the other.
    async fn over_http(&self, asked: &[Asked]) -> anyhow::Result<Times> {
        let theirs = self.0.serve(self.script("serve"))?;
        let path = |asked: &Asked| {
            format!(
                "/ai-market/v2/search?limit={LIMIT}&intent={}",
                encoded(&asked.whole)
            )
        };
        let requests: Vec<Bytes> = asked.iter().map(|asked| load::get(&path(asked))).collect();
        // What it keeps of capabilities, it keeps from the first query on.
        one_by_one(theirs.port, requests.get(..1).unwrap_or_default()).await?;
        one_by_one(theirs.port, &requests).await
    }
}

/// What our hub takes.
struct Ours {
    new: Times,
    repeated: Times,
    text: Times,
}

async fn ours_over_http(dir: &Path, made: &Made, listings: u64, asked: &[Asked]) -> anyhow::Result<Ours> {
    let folder = dir.join("ours");
    let hub = Hub::start(&folder)?;
    let port = hub.port;
    let crowd = Crowd::register(port, &hub.domain, "market", 1, &[7; 32]).await?;
    let agent = crowd.agents.first().context("one agent")?.did.to_string();
    let key = hub.provider(&folder, &agent)?;
    Connection::open(port)
        .await?
        .call(&ingest(made, listings, &key)?)
        .await?;
    embedded(&hub, &folder, listings).await?;
    let path = |asked: &Asked| format!("/api/v1/search?limit={LIMIT}&q={}", encoded(&asked.whole));
    let requests: Vec<Bytes> = asked.iter().map(|asked| load::get(&path(asked))).collect();
    let new = one_by_one(port, &requests).await?;
    let repeated = one_by_one(port, &requests).await?;
    drop(hub);
    let hub = Hub::start_with(&folder, port, "[search]\nmodels = []\n")?;
    let warm = one_by_one(port, &requests).await?;
    let text = one_by_one(port, &requests).await?;
    drop((hub, warm));
    Ok(Ours { new, repeated, text })
}

/// All listings, as a provider hands them in.
fn ingest(made: &Made, listings: u64, key: &str) -> anyhow::Result<Bytes> {
    let mut rows = String::new();
    for number in 1..=listings {
        let entry = made.entry(number).context("a listing of every number")?;
        let row = json!({
            "listing_id": entry.id, "kind": entry.kind.as_str(), "name": entry.name,
            "description": entry.description,
        });
        writeln!(rows, "{row}")?;
    }
    let request = format!(
        "POST /api/v1/ingest/listings HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/x-ndjson\r\n\
         Authorization: Bearer {key}\r\nContent-Length: {}\r\n\r\n{rows}",
        rows.len()
    );
    Ok(request.into())
}

/// Waits until all listings are found by their meaning.
async fn embedded(hub: &Hub, folder: &Path, listings: u64) -> anyhow::Result<()> {
    let begun = Instant::now();
    loop {
        let metrics = hub.metrics(folder).await?;
        let is_whole = metric(&metrics, "aip_catalog_documents") == Some(listings)
            && metric(&metrics, "aip_catalog_pending_embeddings") == Some(0);
        if is_whole {
            return Ok(());
        }
        ensure!(begun.elapsed() < PATIENCE, "our hub does not embed the listings");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

fn metric(metrics: &str, name: &str) -> Option<u64> {
    let line = metrics.lines().find_map(|line| line.strip_prefix(name))?;
    line.trim().parse().ok()
}

async fn one_by_one(port: u16, requests: &[Bytes]) -> anyhow::Result<Times> {
    let mut connection = Connection::open(port).await?;
    let mut times = Times::default();
    for request in requests {
        let begun = Instant::now();
        connection.call(request).await?;
        times.add(begun.elapsed());
    }
    Ok(times)
}

/// A text in a query string.
fn encoded(text: &str) -> String {
    let byte = |byte: u8| {
        if byte.is_ascii_alphanumeric() {
            char::from(byte).to_string()
        } else {
            format!("%{byte:02X}")
        }
    };
    text.bytes().map(byte).collect()
}
