//! Starts engines by hand: `aip-engines nats postgres redis` prints where they listen, and keeps them until its
//! standard input ends. `nats-cluster` starts three servers.
#![expect(clippy::print_stdout, reason = "it is what the program is for")]

use std::io::{self, Read as _};
use std::process::ExitCode;

use aip_engines::{
    Nats, NatsCluster, NatsOptions, Postgres, PostgresOptions, Redis, RedisOptions, StartFailure,
};

/// Kept alive, nothing else.
type Engine = Box<dyn std::any::Any>;

fn main() -> ExitCode {
    let engines: Result<Vec<Engine>, String> = std::env::args().skip(1).map(|name| start(&name)).collect();
    match engines {
        Ok(engines) => {
            println!("ready");
            // However it ends, it has ended.
            let _ended = io::stdin().read_to_end(&mut Vec::new());
            drop(engines);
            ExitCode::SUCCESS
        }
        Err(sentence) => {
            println!("{sentence}");
            ExitCode::FAILURE
        }
    }
}

fn start(name: &str) -> Result<Engine, String> {
    let failed = |failure: StartFailure| failure.to_string();
    Ok(match name {
        "nats" => {
            let nats = Nats::try_start(&NatsOptions::default()).map_err(failed)?;
            say(name, &nats.url(), nats.pid());
            Box::new(nats)
        }
        "nats-cluster" => {
            let cluster = NatsCluster::try_start(3, &NatsOptions::default()).map_err(failed)?;
            let urls = cluster.urls();
            urls.iter()
                .enumerate()
                .for_each(|(index, url)| say(name, url, cluster.pid(index)));
            Box::new(cluster)
        }
        "postgres" => {
            let postgres = Postgres::try_start(&PostgresOptions::default()).map_err(failed)?;
            say(name, &postgres.database("aip"), postgres.pid());
            Box::new(postgres)
        }
        "redis" => {
            let redis = Redis::try_start(&RedisOptions::default()).map_err(failed)?;
            say(name, &redis.url(), redis.pid());
            Box::new(redis)
        }
        _ => {
            return Err(format!(
                "{name}: no such engine; there are nats, nats-cluster, postgres and redis"
            ));
        }
    })
}

fn say(name: &str, url: &str, pid: Option<u32>) {
    println!("{name} url={url} pid={}", pid.unwrap_or_default());
}
