//! The load: many keep-alive connections that send prepared requests and wait for each answer.
//!
//! The client is as small as it can be, since it shares two cores with the server under test.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use bytes::Bytes;
use hdrhistogram::Histogram;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::JoinSet;

/// What a run of load gave.
#[derive(Debug)]
pub(crate) struct Load {
    /// Answers per second.
    pub(crate) rate: f64,
    /// How many answers.
    pub(crate) answers: u64,
    /// Latencies in microseconds.
    latency: Histogram<u64>,
}

impl Load {
    /// A percentile of the latency, in microseconds.
    #[expect(clippy::cast_precision_loss, reason = "microseconds fit a double")]
    pub(crate) fn percentile_us(&self, percent: f64) -> f64 {
        self.latency.value_at_percentile(percent) as f64
    }
}

/// Prepared requests, each used once (or over and over, for a request that may repeat).
#[derive(Debug, Clone)]
pub(crate) struct Requests {
    wire: Arc<Vec<Bytes>>,
    next: Arc<AtomicUsize>,
    repeat: bool,
}

impl Requests {
    /// Each request once; the run ends when they are used up.
    pub(crate) fn once(wire: Vec<Bytes>) -> Self {
        Self {
            wire: Arc::new(wire),
            next: Arc::default(),
            repeat: false,
        }
    }

    /// The same requests again and again.
    pub(crate) fn repeated(wire: Vec<Bytes>) -> Self {
        Self {
            wire: Arc::new(wire),
            next: Arc::default(),
            repeat: true,
        }
    }

    /// The next one; `None` when they are used up.
    pub(crate) fn take(&self) -> Option<Bytes> {
        let at = self.next.fetch_add(1, Ordering::Relaxed);
        let at = if self.repeat {
            at.checked_rem(self.wire.len())?
        } else {
            at
        };
        self.wire.get(at).cloned()
    }
}

/// A POST request as it goes over the wire.
pub(crate) fn post(path: &str, content_type: &str, body: &[u8]) -> Bytes {
    post_with(path, content_type, "", body)
}

/// The same with further header lines, each with its line break.
pub(crate) fn post_with(path: &str, content_type: &str, lines: &str, body: &[u8]) -> Bytes {
    let head = format!(
        "POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: {content_type}\r\nContent-Length: {}\r\n{lines}\r\n",
        body.len()
    );
    [head.as_bytes(), body].concat().into()
}

/// A GET request as it goes over the wire.
pub(crate) fn get(path: &str) -> Bytes {
    format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n").into()
}

/// How fast requests are sent.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Pace {
    /// Each connection sends as soon as it has its answer.
    Closed,
    /// All connections together send this many per second; latency counts from the planned moment.
    PerSec(f64),
}

/// Runs the load over `width` connections for at most `duration`. An answer with a status of 300 or more ends it.
pub(crate) async fn run(
    port: u16,
    width: usize,
    duration: Duration,
    pace: Pace,
    requests: &Requests,
) -> anyhow::Result<Load> {
    let mut connections = Vec::with_capacity(width);
    for _ in 0..width {
        connections.push(Connection::open(port).await?);
    }
    let started = Instant::now();
    let deadline = started + duration;
    let mut tasks = JoinSet::new();
    for (index, connection) in connections.into_iter().enumerate() {
        let plan = Plan::new(pace, started, index, width);
        tasks.spawn(one(connection, deadline, plan, requests.clone()));
    }
    let mut latency = histogram()?;
    while let Some(done) = tasks.join_next().await {
        latency.add(done??)?;
    }
    let answers = latency.len();
    #[expect(clippy::cast_precision_loss, reason = "counts of a short run fit a double")]
    let rate = answers as f64 / started.elapsed().as_secs_f64();
    Ok(Load {
        rate,
        answers,
        latency,
    })
}

fn histogram() -> anyhow::Result<Histogram<u64>> {
    Ok(Histogram::new_with_bounds(1, 60_000_000, 3)?)
}

/// When a connection sends its requests.
struct Plan {
    next: Option<Instant>,
    gap: Duration,
}

impl Plan {
    #[expect(clippy::cast_precision_loss, reason = "a few thousand connections")]
    fn new(pace: Pace, started: Instant, index: usize, width: usize) -> Self {
        match pace {
            Pace::Closed => Self {
                next: None,
                gap: Duration::ZERO,
            },
            Pace::PerSec(rate) => {
                let gap = Duration::from_secs_f64(width as f64 / rate);
                Self {
                    next: Some(started + gap.mul_f64(index as f64 / width as f64)),
                    gap,
                }
            }
        }
    }

    /// Waits for the next planned moment and returns it.
    async fn moment(&mut self) -> Instant {
        let Some(at) = self.next else {
            return Instant::now();
        };
        tokio::time::sleep_until(at.into()).await;
        self.next = Some(at + self.gap);
        at
    }
}

async fn one(
    mut connection: Connection,
    deadline: Instant,
    mut plan: Plan,
    requests: Requests,
) -> anyhow::Result<Histogram<u64>> {
    let mut latency = histogram()?;
    while Instant::now() < deadline {
        let Some(request) = requests.take() else { break };
        let sent = plan.moment().await;
        connection.call(&request).await?;
        latency.saturating_record(u64::try_from(sent.elapsed().as_micros()).unwrap_or(u64::MAX));
    }
    Ok(latency)
}

/// One HTTP/1.1 connection, just good enough for answers with a `Content-Length`.
#[derive(Debug)]
pub(crate) struct Connection {
    stream: TcpStream,
    buffer: Vec<u8>,
}

impl Connection {
    /// Connects to a port of the loopback interface.
    pub(crate) async fn open(port: u16) -> anyhow::Result<Self> {
        let stream = TcpStream::connect(("127.0.0.1", port)).await?;
        stream.set_nodelay(true)?;
        Ok(Self {
            stream,
            buffer: Vec::with_capacity(4096),
        })
    }

    /// Sends a request and returns the body of its answer, which is a good one.
    pub(crate) async fn call(&mut self, request: &[u8]) -> anyhow::Result<Vec<u8>> {
        let (status, body) = self.exchange(request).await?;
        if !(200..210).contains(&status) {
            bail!("{status}: {}", String::from_utf8_lossy(&body));
        }
        Ok(body)
    }

    /// Sends a request and returns the status and the body of its answer.
    pub(crate) async fn exchange(&mut self, request: &[u8]) -> anyhow::Result<(u16, Vec<u8>)> {
        self.stream.write_all(request).await?;
        self.buffer.clear();
        loop {
            if self.stream.read_buf(&mut self.buffer).await? == 0 {
                bail!("the server closed the connection");
            }
            let Some(head_end) = self
                .buffer
                .windows(4)
                .position(|w| w == b"\r\n\r\n")
                .map(|at| at + 4)
            else {
                continue;
            };
            let head = self
                .buffer
                .get(..head_end)
                .map(String::from_utf8_lossy)
                .unwrap_or_default();
            let length: usize = head
                .lines()
                .find_map(|line| {
                    line.to_ascii_lowercase()
                        .strip_prefix("content-length:")
                        .map(|v| v.trim().to_owned())
                })
                // No content has no length.
                .or_else(|| head.starts_with("HTTP/1.1 204").then(|| "0".to_owned()))
                .context("an answer without Content-Length")?
                .parse()?;
            let status = head.split(' ').nth(1).and_then(|status| status.parse().ok());
            if self.buffer.len() < head_end + length {
                continue;
            }
            let body = self
                .buffer
                .get(head_end..head_end + length)
                .unwrap_or_default()
                .to_vec();
            return Ok((status.context("an answer without a status")?, body));
        }
    }
}
