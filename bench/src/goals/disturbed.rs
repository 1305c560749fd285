//! What agents notice while one peer of their hub is cut off, or hostile: the p99 of their own sending, and of mail to another
//! peer on its way, against the same hub in the same round when it is left alone.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use aip_engines::Proxy;
use aip_protocol::http_signature::{Body, Stamp, Target, sign_request};
use aip_protocol::multikey::SigningKey;
use aip_protocol::name::Domain;
use anyhow::{Context, bail};
use bytes::Bytes;
use hdrhistogram::Histogram;
use rand::RngExt;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::task::JoinSet;
use tokio::time::{sleep, sleep_until};

use super::peers::{SETTINGS, stored};
use super::{KEY, Options};
use crate::agents::{Crowd, now, posts, seeded};
use crate::hub::Hub;
use crate::load::{self, Connection, Pace, Requests};
use crate::process::free_port;
use crate::report::{Bound, Row};
use crate::socket::Socket;

/// Messages of the hub's agents to each other, per second: far below what it accepts.
const OWN_PER_SEC: u32 = 400;
/// Messages to an agent of another hub, per second.
const PASSING_PER_SEC: u32 = 50;
/// How long the hub is watched each time.
const WATCHED_SECS: u32 = 5;
const AGENTS: usize = 100;
const WIDTH: usize = 8;
/// Messages that wait for the peer that is cut off.
const WAITING: usize = 2_000;
/// Requests of the hostile peer per second, and the connections that they come over.
const HOSTILE_PER_SEC: u32 = 1_000;
const HOSTILE_WIDTH: u32 = 8;
/// Bytes of the body of each.
const HOSTILE_BYTES: usize = 4_096;
/// Connections that hold half a body each.
const HELD: usize = 32;
/// Ends what would hang.
const DEADLINE: Duration = Duration::from_mins(5);
/// The domain of a hub that is not for trying out.
const DOMAIN: &str = "alpha.example";
/// Its settings. Agents come from this machine and are not held up; the stranger comes through a proxy that names his address.
const PUBLIC: &str = "[hub]\nregistration = \"open\"\n\
                      [http]\nrequests_per_sec = 10000\nrequest_burst = 10000\ntrusted_proxies = [\"127.0.0.0/8\"]\n\
                      [registry]\nregistrations_per_minute = 10000\nregistration_burst = 10000\n\
                      [egress]\nallow_http = true\nallowed_private_ranges = [\"127.0.0.0/8\"]\n";
const STRANGER: &str = "X-Forwarded-For: 203.0.113.7\r\n";
const PATH: &str = "/federation/v1/messages";

/// Measures the goals.
pub(crate) async fn measure(options: &Options) -> anyhow::Result<Vec<Row>> {
    let mut rows = Vec::new();
    if options.wants(&["peers-cut"]) {
        rows.extend(Box::pin(cut(options)).await?);
    }
    if options.wants(&["peers-hostile"]) {
        rows.extend(Box::pin(hostile(options)).await?);
    }
    Ok(rows)
}

/// Percentiles of one watch, in microseconds.
#[derive(Debug, Clone, Copy)]
struct Seen {
    own_us: f64,
    passing_us: f64,
}

/// Three hubs: the one that is watched, one that is troubled, one that has nothing to do with it.
struct Scene {
    alpha: Hub,
    here: PathBuf,
    beta: Hub,
    there: PathBuf,
    /// The way to beta.
    way: Proxy,
    gamma: Hub,
    own: Crowd,
    far: Crowd,
    reader: Crowd,
    _scratch: TempDir,
}

impl Scene {
    async fn start(options: &Options, alpha: fn(&Path, u16) -> anyhow::Result<Hub>) -> anyhow::Result<Self> {
        let scratch = options.scratch()?;
        let [here, there, elsewhere] = ["alpha", "beta", "gamma"].map(|name| scratch.path().join(name));
        let port = free_port()?;
        let way = Proxy::to(std::net::SocketAddr::from(([127, 0, 0, 1], port)));
        let alpha = alpha(&here, free_port()?)?;
        let known = format!("static_peers = [\"{DOMAIN}=http://127.0.0.1:{}\"]\n", alpha.port);
        let others = format!("{SETTINGS}{known}");
        let public = format!("{others}[hub]\npublic_url = \"http://{}\"\n", way.addr());
        let beta = Hub::start_with(&there, port, &public)?;
        let gamma = Hub::start_with(&elsewhere, free_port()?, &others)?;
        let own = Crowd::register(alpha.port, &alpha.domain, "own", AGENTS, &KEY).await?;
        let far = Crowd::register(beta.port, &beta.domain, "far", AGENTS, &KEY).await?;
        let reader = Crowd::register(gamma.port, &gamma.domain, "reader", 1, &KEY).await?;
        let mut scene = Self {
            alpha,
            here,
            beta,
            there,
            way,
            gamma,
            own,
            far,
            reader,
            _scratch: scratch,
        };
        // All three meet, and every cache is warm.
        scene.fill(AGENTS).await?;
        scene.watch().await?;
        Ok(scene)
    }

    /// Mail to beta's agents is handed in; waits until it is there.
    async fn fill(&mut self, count: usize) -> anyhow::Result<()> {
        let wanted = self.hand_in(count).await?;
        self.arrived(wanted).await
    }

    /// How many messages beta has stored once all of these are there.
    async fn hand_in(&mut self, count: usize) -> anyhow::Result<u64> {
        let wanted = stored(&self.beta, &self.there).await? + u64::try_from(count)?;
        let wire = self.own.envelopes_between(&self.far, count);
        let requests = Requests::once(posts("/api/v1/messages", &wire));
        load::run(self.alpha.port, WIDTH, DEADLINE, Pace::Closed, &requests).await?;
        Ok(wanted)
    }

    async fn arrived(&self, wanted: u64) -> anyhow::Result<()> {
        let begun = Instant::now();
        while stored(&self.beta, &self.there).await? < wanted {
            if begun.elapsed() > DEADLINE {
                bail!("what waited does not come");
            }
            sleep(Duration::from_millis(100)).await;
        }
        Ok(())
    }

    /// Lets agents work for a while, at a pace that the hub can easily keep.
    async fn watch(&mut self) -> anyhow::Result<Seen> {
        let wire = self.own.envelopes(usize::try_from(OWN_PER_SEC * WATCHED_SECS)?);
        let requests = Requests::once(posts("/api/v1/messages", &wire));
        let pace = Pace::PerSec(f64::from(OWN_PER_SEC));
        let own = load::run(self.alpha.port, WIDTH, DEADLINE, pace, &requests);
        let (own, passing) = tokio::try_join!(own, self.passage())?;
        #[expect(clippy::cast_precision_loss, reason = "microseconds fit a double")]
        let passing_us = passing.value_at_percentile(99.0) as f64;
        Ok(Seen {
            own_us: own.percentile_us(99.0),
            passing_us,
        })
    }

    /// How long messages are on their way to a recipient of another hub that is there, each from its planned moment.
    async fn passage(&self) -> anyhow::Result<Histogram<u64>> {
        let (from, to) = (self.own.agents.first(), self.reader.agents.first());
        let (from, to) = from.zip(to).context("agents")?;
        let (mut socket, ready) = Socket::agent(self.gamma.port, &self.gamma.domain, to, 64).await?;
        let epoch = ready.get("epoch").cloned().unwrap_or_default();
        let count = PASSING_PER_SEC * WATCHED_SECS;
        let mut rng = seeded("passing");
        let wire: Vec<_> = (0..count).map(|_| from.envelope(to, now(), &mut rng)).collect();
        let started = Instant::now() + Duration::from_millis(100);
        let planned = |number: u32| started + Duration::from_secs(1) * number / PASSING_PER_SEC;
        let sending = async {
            let mut connection = Connection::open(self.alpha.port).await?;
            for (number, request) in (0..).zip(posts("/api/v1/messages", &wire)) {
                sleep_until(planned(number).into()).await;
                connection.call(&request).await?;
            }
            anyhow::Ok(())
        };
        // Mail of one sender to one recipient keeps its order.
        let reading = async {
            let mut latency = Histogram::new_with_bounds(1, 60_000_000, 3)?;
            let mut last = 0;
            for number in 0..count {
                let frame = socket.frame("msg").await?;
                let micros = planned(number).elapsed().as_micros();
                latency.saturating_record(u64::try_from(micros).unwrap_or(u64::MAX));
                last = number_of(&frame, "seq");
                socket
                    .send(&json!({"t": "ack", "epoch": epoch, "upto": last, "also": []}))
                    .await?;
            }
            // The next watch begins with an empty mailbox.
            while number_of(&socket.frame("acked").await?, "floor") < last {}
            anyhow::Ok(latency)
        };
        let both = async { tokio::try_join!(sending, reading) };
        let ((), latency) = tokio::time::timeout(DEADLINE, both)
            .await
            .context("mail to the other peer")??;
        Ok(latency)
    }
}

fn number_of(frame: &Value, member: &str) -> u64 {
    frame.get(member).and_then(Value::as_u64).unwrap_or_default()
}

/// Beta is away, with mail that waits for it.
async fn cut(options: &Options) -> anyhow::Result<Vec<Row>> {
    let start = |folder: &Path, port| Hub::start_with(folder, port, SETTINGS);
    let mut scene = Scene::start(options, start).await?;
    let mut pairs = Vec::new();
    for _ in 0..options.rounds() {
        let quiet = scene.watch().await?;
        scene.way.cut();
        let wanted = scene.hand_in(WAITING).await?;
        let troubled = scene.watch().await?;
        scene.way.heal();
        let retry = format!("POST /admin/peers/{}/retry", scene.beta.domain);
        scene.alpha.operate(&scene.here, &retry, &json!({})).await?;
        scene.arrived(wanted).await?;
        pairs.push((quiet, troubled));
    }
    Ok(rows("peers-cut", &pairs, ""))
}

/// A stranger floods the door for peers, from an address of his own.
async fn hostile(options: &Options) -> anyhow::Result<Vec<Row>> {
    let start = |folder: &Path, port| Hub::start_public(folder, port, DOMAIN, &format!("{SETTINGS}{PUBLIC}"));
    let mut scene = Scene::start(options, start).await?;
    let mut pairs = Vec::new();
    let mut answers = 0;
    for _ in 0..options.rounds() {
        let quiet = scene.watch().await?;
        let flood = Flood::begin(&scene.alpha, &scene.gamma.domain).await?;
        let troubled = scene.watch().await?;
        answers = flood.end().await?;
        pairs.push((quiet, troubled));
    }
    let figures = format!(", {answers} hostile requests answered");
    Ok(rows("peers-hostile", &pairs, &figures))
}

fn rows(id: &'static str, pairs: &[(Seen, Seen)], more: &str) -> Vec<Row> {
    let row = |what, of: fn(&Seen) -> f64| Row {
        id,
        what,
        bound: Bound::AtMost(2.0),
        rounds: pairs
            .iter()
            .map(|(quiet, troubled)| of(troubled) / of(quiet))
            .collect(),
        figures: pairs.last().map_or_else(String::new, |(quiet, troubled)| {
            let (quiet, troubled) = (of(quiet) / 1_000.0, of(troubled) / 1_000.0);
            format!("{troubled:.1} ms, {quiet:.1} ms in quiet{more}")
        }),
    };
    vec![
        row("p99 of sending among own agents / the same in quiet", |seen| {
            seen.own_us
        }),
        row(
            "p99 of mail on its way to another peer / the same in quiet",
            |seen| seen.passing_us,
        ),
    ]
}

/// Requests of a stranger, at their pace.
struct Flood {
    pouring: JoinSet<anyhow::Result<u64>>,
    stop: tokio::sync::watch::Sender<bool>,
    held: Vec<tokio::net::TcpStream>,
}

impl Flood {
    async fn begin(hub: &Hub, victim: &Domain) -> anyhow::Result<Self> {
        let port = hub.port;
        let requests = Requests::repeated(forged(hub, victim));
        let (stop, stopped) = tokio::sync::watch::channel(false);
        let mut pouring = JoinSet::new();
        for _ in 0..HOSTILE_WIDTH {
            pouring.spawn(pour(port, requests.clone(), stopped.clone()));
        }
        let mut held = Vec::new();
        for _ in 0..HELD {
            held.push(half(hub, victim).await?);
        }
        Ok(Self { pouring, stop, held })
    }

    /// How many requests were answered.
    async fn end(mut self) -> anyhow::Result<u64> {
        self.stop.send_replace(true);
        let mut answers = 0;
        while let Some(poured) = self.pouring.join_next().await {
            answers += poured??;
        }
        drop(self.held);
        Ok(answers)
    }
}

/// Asks at its pace until it is stopped. A hub that has heard enough may hang up.
async fn pour(
    port: u16,
    requests: Requests,
    stopped: tokio::sync::watch::Receiver<bool>,
) -> anyhow::Result<u64> {
    let started = Instant::now();
    let gap = Duration::from_secs(1) * HOSTILE_WIDTH / HOSTILE_PER_SEC;
    let mut connection = Connection::open(port).await?;
    let mut answers = 0;
    for number in 0.. {
        sleep_until((started + gap * number).into()).await;
        if *stopped.borrow() {
            break;
        }
        let request = requests.take().context("requests are repeated")?;
        match connection.exchange(&request).await {
            Ok(_) => answers += 1,
            Err(_closed) => connection = Connection::open(port).await?,
        }
    }
    Ok(answers)
}

/// Requests that are not what they say: in the name of a peer, of nobody, of the hub itself, and of no one.
fn forged(hub: &Hub, victim: &Domain) -> Vec<Bytes> {
    let mut rng = seeded("hostile");
    let body =
        json!({ "aip": "1", "domain": victim.as_str(), "epoch": "e", "items": ["x".repeat(HOSTILE_BYTES)] });
    let body = body.to_string().into_bytes();
    let requests = 0..HOSTILE_PER_SEC;
    let request = requests.map(|number| {
        let nobody = format!("nobody-{number}.example");
        let lines = match number % 4 {
            0 => signed(hub, victim.as_str(), &body, rng.random()),
            1 => signed(hub, &nobody, &body, rng.random()),
            2 => signed(hub, hub.domain.as_str(), &body, rng.random()),
            _ => STRANGER.to_owned(),
        };
        load::post_with(PATH, "application/json", &lines, &body)
    });
    request.collect()
}

/// The header lines of a request that is signed with a key that nobody knows.
fn signed(hub: &Hub, domain: &str, body: &[u8], nonce: u128) -> String {
    let key = SigningKey::from_seed([99; 32]);
    let created_secs = now().unix_millis().div_euclid(1_000);
    let stamp = Stamp {
        created_secs,
        expires_secs: created_secs + 60,
        nonce: &format!("{nonce:032x}"),
    };
    let body = Body {
        content_type: "application/json",
        bytes: body,
    };
    let target = Target::new("POST", hub.domain.as_str(), PATH, None);
    let keyid = format!("{domain}#{}", key.public());
    let signed = sign_request(&key, &keyid, &target, Some(body), stamp);
    format!(
        "{STRANGER}Content-Digest: {}\r\nSignature-Input: {}\r\nSignature: {}\r\n",
        signed.content_digest.unwrap_or_default(),
        signed.signature_input,
        signed.signature
    )
}

/// A connection with half a request on it.
async fn half(hub: &Hub, victim: &Domain) -> anyhow::Result<tokio::net::TcpStream> {
    use tokio::io::AsyncWriteExt as _;
    let lines = signed(hub, victim.as_str(), b"", 0);
    let whole = load::post_with(PATH, "application/json", &lines, &vec![b' '; 1_000_000]);
    let mut stream = tokio::net::TcpStream::connect(("127.0.0.1", hub.port)).await?;
    // A hub that has heard enough may hang up.
    let _sent = stream.write_all(whole.get(..4_096).unwrap_or_default()).await;
    Ok(stream)
}
