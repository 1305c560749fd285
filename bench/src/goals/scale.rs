//! Very many mailboxes on NATS: what one costs the server, and how soon an agent has its first message.
//!
//! The same is measured with a thousand, ten thousand and a hundred thousand mailboxes, each on a server of its own, in
//! alternating rounds; and once with a thousand large ones, to tell the cost of a mailbox from that of a message.

use std::time::{Duration, Instant};

use aip_engines::{Nats, NatsOptions};
use aip_protocol::name::Domain;
use anyhow::{Context, anyhow};
use tempfile::TempDir;

use super::{KEY, Options};
use crate::agents::Crowd;
use crate::hub::{Engines, Hub};
use crate::mail;
use crate::monitor;
use crate::process::free_port;
use crate::report::{Bound, Row, median};
use crate::socket::Socket;

/// Mailboxes and messages in each.
const SIZES: [(usize, usize); 4] = [(1_000, 10), (10_000, 10), (100_000, 10), (1_000, 100)];
const QUICK_SIZES: [(usize, usize); 4] = [(100, 10), (1_000, 10), (10_000, 10), (100, 100)];

/// Agents that connect, one after the other, in a round; each mailbox is met for the first time.
const CONNECTS: usize = 200;

/// How long the servers are left alone before their memory is looked at: they keep what was just written in caches, ten
/// seconds the messages, two minutes the subjects of a block.
const CACHES_EXPIRE: Duration = Duration::from_secs(150);
const QUICK_CACHES_EXPIRE: Duration = Duration::from_secs(15);

/// Growth with the number of mailboxes, from the smallest to the largest: that of the logarithm, ln 100,000 / ln 1,000.
const LOGARITHMIC: f64 = 5.0 / 3.0;

/// The most consumers of any stream.
const CONSUMERS_MAX: f64 = 16.0;

/// A server, a hub on it, and its mailboxes.
struct Site {
    mailboxes: usize,
    messages_each: usize,
    server: Nats,
    hub: Hub,
    crowd: Crowd,
    profile: u16,
    empty: Memory,
    /// What the server holds in memory for all mailboxes.
    memory: Memory,
    stored_bytes: u64,
    filled_per_sec: f64,
    _scratch: TempDir,
}

/// Memory of a server, in bytes: of its heap what is in use, after a collection; and resident.
#[derive(Clone, Copy)]
struct Memory {
    live: f64,
    resident: f64,
}

impl Memory {
    #[expect(clippy::cast_precision_loss, reason = "bytes fit a double")]
    fn of(server: &Nats, profile: u16) -> anyhow::Result<Self> {
        let resident = server.resident_bytes().context("the server is gone")? as f64;
        let live = monitor::live_heap_bytes(profile)?;
        Ok(Self { live, resident })
    }
}

/// Latencies of one round in milliseconds.
struct Firsts {
    p50: f64,
    p99: f64,
}

/// Measures the goals of this file.
pub(crate) async fn measure(options: &Options) -> anyhow::Result<Vec<Row>> {
    let sizes = if options.quick { QUICK_SIZES } else { SIZES };
    let mut sites = Vec::new();
    for (mailboxes, messages_each) in sizes {
        sites.push(Site::start(options, mailboxes, messages_each).await?);
    }
    tokio::time::sleep(if options.quick {
        QUICK_CACHES_EXPIRE
    } else {
        CACHES_EXPIRE
    })
    .await;
    for site in &mut sites {
        site.weigh()?;
    }
    let mut rounds = Vec::new();
    for round in 0..options.rounds() {
        let mut firsts = Vec::new();
        for site in &sites {
            firsts.push(site.firsts(round).await?);
        }
        rounds.push(firsts);
    }
    rows(&sites, &rounds).context("a size is missing")
}

impl Site {
    #[expect(clippy::cast_precision_loss, reason = "bytes and counts fit a double")]
    async fn start(options: &Options, mailboxes: usize, messages_each: usize) -> anyhow::Result<Self> {
        let scratch = options.scratch()?;
        let profile = free_port()?;
        let server = Nats::try_start(&NatsOptions {
            config: format!("prof_port: {profile}\n"),
            ..NatsOptions::default()
        })?;
        let engines = Engines {
            mailboxes: server.url(),
            ..Engines::default()
        };
        let port = free_port()?;
        let hub = Hub::start_on(&scratch.path().join("hub"), port, &engines)?;
        let empty = Memory::of(&server, profile)?;

        let domain = Domain::parse(&format!("localhost:{port}")).map_err(|refusal| anyhow!("{refusal}"))?;
        let owners = mail::owners(&domain, "owner", mailboxes)?;
        let store = mail::open(&server.url()).await?;
        let started = Instant::now();
        mail::fill(&store, &owners, messages_each).await?;
        let filled_per_sec = (mailboxes * messages_each) as f64 / started.elapsed().as_secs_f64();
        store.close().await;
        drop(store);
        monitor::quiet(&server.monitor_url()).await?;
        Ok(Self {
            mailboxes,
            messages_each,
            profile,
            empty,
            memory: empty,
            stored_bytes: monitor::stored_bytes(&server.monitor_url())?,
            filled_per_sec,
            // Those who connect are the first ones; nobody else needs a name.
            crowd: Crowd::register(
                hub.port,
                &hub.domain,
                "owner",
                mailboxes.min(options.rounds() * CONNECTS),
                &KEY,
            )
            .await?,
            server,
            hub,
            _scratch: scratch,
        })
    }

    /// Looks at the server's memory.
    fn weigh(&mut self) -> anyhow::Result<()> {
        let now = Memory::of(&self.server, self.profile)?;
        self.memory = Memory {
            live: now.live - self.empty.live,
            resident: now.resident - self.empty.resident,
        };
        Ok(())
    }

    /// From before the connection to the first message, one agent after the other.
    async fn firsts(&self, round: usize) -> anyhow::Result<Firsts> {
        let parts = self.crowd.agents.chunks(CONNECTS);
        let count = parts.len().max(1);
        let agents = self
            .crowd
            .agents
            .chunks(CONNECTS)
            .nth(round % count)
            .unwrap_or_default();
        let mut times = Vec::new();
        for agent in agents {
            let started = Instant::now();
            let (mut socket, _) = Socket::agent(self.hub.port, &self.hub.domain, agent, 64).await?;
            socket.frame("msg").await?;
            times.push(started.elapsed());
        }
        times.sort();
        let at = |share: usize| {
            times
                .get(times.len() * share / 100)
                .map_or(f64::NAN, Duration::as_secs_f64)
        };
        Ok(Firsts {
            p50: at(50) * 1e3,
            p99: at(99) * 1e3,
        })
    }

    #[expect(clippy::cast_precision_loss, reason = "counts fit a double")]
    fn per_mailbox(&self, bytes: f64) -> f64 {
        bytes / self.mailboxes as f64
    }

    fn consumers(&self) -> f64 {
        #[expect(clippy::cast_precision_loss, reason = "a handful")]
        monitor::consumers_max(&self.server.monitor_url()).map_or(f64::NAN, |consumers| consumers as f64)
    }
}

fn rows(sites: &[Site], rounds: &[Vec<Firsts>]) -> Option<Vec<Row>> {
    let [small, middle, large, deep] = sites else {
        return None;
    };
    let mut rows = memory_rows([small, middle, large, deep])?;
    let of = |site: usize, what: fn(&Firsts) -> f64| -> Vec<f64> {
        rounds
            .iter()
            .filter_map(|round| round.get(site).map(what))
            .collect()
    };
    let growth = |what: fn(&Firsts) -> f64| -> Vec<f64> {
        let pairs = of(2, what).into_iter().zip(of(0, what));
        pairs.map(|(large, small)| large / small).collect()
    };
    let all = |what: fn(&Firsts) -> f64| {
        let [a, b, c] = [0, 1, 2].map(|site| median(&of(site, what)));
        format!("{a:.2} ms, {b:.2} ms, {c:.2} ms")
    };
    rows.push(Row {
        id: "scale",
        what: "connect to first message, p50, 100,000 mailboxes / 1,000",
        bound: Bound::AtMost(LOGARITHMIC),
        rounds: growth(|r| r.p50),
        figures: all(|r| r.p50),
    });
    rows.push(Row {
        id: "scale",
        what: "connect to first message, p99, 100,000 mailboxes / 1,000",
        bound: Bound::AtMost(LOGARITHMIC),
        rounds: growth(|r| r.p99),
        figures: all(|r| r.p99),
    });
    Some(rows)
}

fn memory_rows([small, middle, large, deep]: [&Site; 4]) -> Option<Vec<Row>> {
    let (per_mailbox, per_message) = costs(small, large, deep)?;
    let kib = |site: &Site| site.per_mailbox(site.memory.live) / 1024.0;
    let rates = [small, middle, large].map(|site| format!("{:.0}/s", site.filled_per_sec));
    Some(vec![
        Row {
            id: "scale",
            what: "live memory of NATS, KiB per mailbox of 10, 100,000 of them",
            bound: Bound::Stated,
            rounds: vec![kib(large)],
            figures: format!(
                "with 1,000: {:.2}, with 10,000: {:.2}; of one mailbox alone {per_mailbox:.0} B, of one message \
                 {per_message:.0} B; on disk {:.0} B a mailbox",
                kib(small),
                kib(middle),
                large.per_mailbox(stored(large))
            ),
        },
        Row {
            id: "scale",
            what: "live memory per mailbox, 100,000 mailboxes / 1,000",
            bound: Bound::AtMost(LOGARITHMIC),
            rounds: vec![kib(large) / kib(small)],
            figures: String::new(),
        },
        Row {
            id: "scale",
            what: "resident memory of NATS, KiB per mailbox of 10, 100,000 of them",
            bound: Bound::Stated,
            rounds: vec![large.per_mailbox(large.memory.resident) / 1024.0],
            figures: format!("filled through the store at {}", rates.join(", ")),
        },
        Row {
            id: "scale",
            what: "consumers of any stream, 100,000 mailboxes",
            bound: Bound::AtMost(CONSUMERS_MAX),
            rounds: vec![large.consumers()],
            figures: String::new(),
        },
    ])
}

#[expect(clippy::cast_precision_loss, reason = "bytes fit a double")]
fn stored(site: &Site) -> f64 {
    site.stored_bytes as f64
}

/// Live bytes of a mailbox and of a message: the same number of mailboxes with more messages tells the latter.
#[expect(clippy::cast_precision_loss, reason = "counts fit a double")]
fn costs(small: &Site, large: &Site, deep: &Site) -> Option<(f64, f64)> {
    let messages = |site: &Site| (site.mailboxes * site.messages_each) as f64;
    let per_message = (deep.memory.live - small.memory.live) / (messages(deep) - messages(small));
    let rest = |site: &Site| site.memory.live - per_message * messages(site);
    let more = large.mailboxes.checked_sub(small.mailboxes)?;
    Some(((rest(large) - rest(small)) / more as f64, per_message))
}
