//! Starts engines by hand: `aip-engines nats postgres redis` prints where they listen, and keeps them until its
//! standard input ends. `nats-cluster` starts three servers.
#![expect(
    clippy::print_stdout,
    clippy::panic,
    reason = "it is made for people and tests"
)]

use std::any::Any;
use std::io::{self, Read as _};

use aip_engines::{Nats, NatsCluster, NatsOptions, Postgres, PostgresOptions, Redis, RedisOptions};

fn main() {
    let engines: Vec<_> = std::env::args().skip(1).map(|name| start(&name)).collect();
    println!("ready");
    // However it ends, it has ended.
    let _ended = io::stdin().read_to_end(&mut Vec::new());
    drop(engines);
}

/// The engine, to be kept.
fn start(name: &str) -> Box<dyn Any> {
    match name {
        "nats" => {
            let nats = Nats::start(NatsOptions::default());
            say(name, &nats.url(), nats.pid());
            Box::new(nats)
        }
        "nats-cluster" => {
            let cluster = NatsCluster::start(3, false);
            for (index, url) in cluster.urls().iter().enumerate() {
                say(name, url, cluster.pid(index));
            }
            Box::new(cluster)
        }
        "postgres" => {
            let postgres = Postgres::start(PostgresOptions::default());
            say(name, &postgres.database("aip"), postgres.pid());
            Box::new(postgres)
        }
        "redis" => {
            let redis = Redis::start(RedisOptions::default());
            say(name, &redis.url(), redis.pid());
            Box::new(redis)
        }
        _ => panic!("{name}: no such engine; there are nats, nats-cluster, postgres and redis"),
    }
}

fn say(name: &str, url: &str, pid: Option<u32>) {
    println!("{name} url={url} pid={}", pid.unwrap_or_default());
}
