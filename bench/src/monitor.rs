//! What a NATS server tells of itself: its monitoring, and the profile of its memory.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use serde_json::Value;

/// A server that has much to do answers late.
const ANSWER_WITHIN: Duration = Duration::from_secs(30);

/// How long the number of messages must stay the same before the server counts as quiet.
const QUIET: Duration = Duration::from_millis(300);

/// How long a server may take to become quiet.
const QUIET_WITHIN: Duration = Duration::from_mins(2);

/// The body of an answer to a GET request of HTTP 1.0: one without chunks, after which the server closes.
fn get(address: &str, path: &str) -> anyhow::Result<String> {
    let mut connection = TcpStream::connect(address)?;
    connection.set_read_timeout(Some(ANSWER_WITHIN))?;
    connection.write_all(format!("GET {path} HTTP/1.0\r\n\r\n").as_bytes())?;
    let mut answer = String::new();
    connection.read_to_string(&mut answer)?;
    let (head, body) = answer.split_once("\r\n\r\n").context("an answer without end")?;
    ensure!(head.split_whitespace().nth(1) == Some("200"), "{path}: {head}");
    Ok(body.to_owned())
}

fn jsz(monitor_url: &str) -> anyhow::Result<Value> {
    let address = monitor_url.trim_start_matches("http://");
    Ok(serde_json::from_str(&get(address, "/jsz?streams=true")?)?)
}

/// The largest number of consumers that any stream has.
pub(crate) fn consumers_max(monitor_url: &str) -> anyhow::Result<u64> {
    let answer = jsz(monitor_url)?;
    let accounts = answer.get("account_details").and_then(Value::as_array);
    let streams = accounts
        .into_iter()
        .flatten()
        .filter_map(|account| account.get("stream_detail")?.as_array())
        .flatten();
    streams
        .filter_map(|stream| stream.pointer("/state/consumer_count")?.as_u64())
        .max()
        .context("the server has no stream")
}

/// Bytes of messages on the server's disk.
pub(crate) fn stored_bytes(monitor_url: &str) -> anyhow::Result<u64> {
    let answer = jsz(monitor_url)?;
    answer
        .get("bytes")
        .and_then(Value::as_u64)
        .context("the server does not tell")
}

/// Waits until nothing more is stored: what a hub writes in the background is written. How long that took.
pub(crate) async fn quiet(monitor_url: &str) -> anyhow::Result<Duration> {
    let messages = || anyhow::Ok(jsz(monitor_url)?.get("messages").and_then(Value::as_u64));
    let started = Instant::now();
    let (mut last, mut since) = (messages()?, Instant::now());
    while since.elapsed() < QUIET {
        ensure!(
            started.elapsed() < QUIET_WITHIN,
            "the server does not become quiet"
        );
        tokio::time::sleep(QUIET / 6).await;
        let now = messages()?;
        if now != last {
            (last, since) = (now, Instant::now());
        }
    }
    Ok(started.elapsed().saturating_sub(QUIET))
}

/// Bytes of the server's heap that are in use, counted right after a collection (its `prof_port`).
pub(crate) fn live_heap_bytes(prof_port: u16) -> anyhow::Result<f64> {
    let profile = get(
        &format!("127.0.0.1:{prof_port}"),
        "/debug/pprof/heap?gc=1&debug=1",
    )?;
    let line = profile
        .lines()
        .find_map(|line| line.strip_prefix("# HeapAlloc = "));
    Ok(line.context("the profile has no HeapAlloc")?.trim().parse()?)
}
