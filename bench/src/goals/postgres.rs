//! Registering on PostgreSQL (P13), beside raw inserts into the same server.

use aip_engines::{Postgres, PostgresOptions};

use super::Options;
use super::names::register;
use crate::hub::{Engines, Hub};
use crate::process::free_port;
use crate::report::{Bound, Row};
use crate::yardstick::postgres;

/// Senders, and connections of the yardstick.
const WIDTH: u32 = 64;

/// Measures the goal of this file.
pub(crate) async fn measure(options: &Options) -> anyhow::Result<Vec<Row>> {
    let scratch = options.scratch()?;
    let server = Postgres::try_start(&PostgresOptions::default())?;
    let engines = Engines {
        registry: server.database("hub"),
        ..Engines::default()
    };
    let hub = Hub::start_on(&scratch.path().join("hub"), free_port()?, &engines)?;
    let pool = postgres::open(&server.database("raw"), WIDTH).await?;
    let mut rounds = Vec::new();
    let mut figures = String::new();
    for round in 0..options.rounds() {
        let ours = register(&hub, options, round).await?;
        let theirs = postgres::inserts(&pool, options.secs(), &format!("round{round}")).await?;
        rounds.push(ours / theirs);
        figures = format!(
            "{ours:.0}/s, {theirs:.0}/s; {} B of database an agent",
            bytes_each(&server, &engines.registry)?
        );
    }
    Ok(vec![Row {
        id: "P13",
        what: "registrations on PostgreSQL, 64 senders / 64 raw inserts",
        bound: Bound::AtLeast(0.5),
        rounds,
        figures,
    }])
}

/// Bytes of the hub's database, indexes included, for each agent that it holds.
fn bytes_each(server: &Postgres, database: &str) -> anyhow::Result<i64> {
    let each = server.sql(
        database,
        "SELECT pg_database_size(current_database()) / greatest(count(*), 1) FROM agents",
    );
    Ok(each.trim().parse()?)
}
