//! The command line: one file per command under `commands/`, this one picks among them.

mod accounts;
mod admin;
mod backup;
mod catalog;
mod clock;
mod config;
mod doctor;
mod epoch;
mod health;
mod init;
mod keygen;
mod market;
mod migrate;
mod migrate_store;
mod openapi;
mod operator;
mod output;
mod payouts;
mod peers;
mod providers;
mod restore;
mod rotate_key;
mod serve;
mod shards;
mod source;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

use crate::catalog::Models;

/// A hub for autonomous agents: names, and sealed mail for agents that are offline.
#[derive(Debug, Parser)]
#[command(name = "aip-hub", version, about, propagate_version = true)]
struct CommandLine {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Runs the hub
    Serve(serve::Args),
    /// Makes the data folder, the hub's key and a settings file
    Init(init::Args),
    /// Checks, shows or writes settings
    #[command(subcommand)]
    Config(config::Command),
    /// Makes a new signing key for a hub, or a new operator token
    Keygen(keygen::Args),
    /// Gives the stopped hub a new signing key, which the old one vouches for
    RotateKey(rotate_key::Args),
    /// Looks for what is wrong, and says how to mend it
    Doctor(doctor::Args),
    /// Copies everything the hub keeps, also while it runs
    Backup(backup::Args),
    /// Puts a backup into an empty data folder
    Restore(restore::Args),
    /// Brings the database of names up to this release; on PostgreSQL, before any process of the release starts
    Migrate(migrate::Args),
    /// Moves what a hub of one process keeps to PostgreSQL and NATS, while it runs
    MigrateStore(migrate_store::Args),
    /// Tells which NATS stream holds which mailboxes, and moves them while hubs run
    #[command(subcommand)]
    Shards(shards::Command),
    /// Tells the latest time that the mailboxes have seen, and resets it when the machine's clock was far ahead
    Clock(clock::Args),
    /// Gives the mailboxes a new epoch, after they were put back to an earlier state
    #[command(subcommand)]
    Epoch(epoch::Command),
    /// Administers the running hub
    Admin(admin::Args),
    /// Hubs of other domains, and what is decided about them, at the running hub
    Peers(peers::Args),
    /// Accounts of the market at the running hub
    Accounts(accounts::Args),
    /// What providers earned at the running hub's market, and what they were paid
    Payouts(payouts::Args),
    /// Decides about other hubs that sell at the running hub's market
    Market(market::Args),
    /// What agents offer at the running hub, and what of it waits for the operator
    Catalog(catalog::Args),
    /// Keys for programs that hand in listings at the running hub
    Providers(providers::Args),
    /// Prints the OpenAPI document
    Openapi,
    /// Tells by its exit code whether the running hub takes work
    Health(health::Args),
}

/// Runs the command line of this process, whose binary holds `models`.
pub fn main(models: Models) -> ExitCode {
    let result = match CommandLine::parse().command {
        Command::Serve(args) => serve::run(&args, models),
        Command::Init(args) => init::run(&args),
        Command::Config(command) => config::run(&command),
        Command::Keygen(args) => keygen::run(&args),
        Command::RotateKey(args) => rotate_key::run(&args),
        Command::Doctor(args) => doctor::run(&args),
        Command::Backup(args) => backup::run(&args),
        Command::Restore(args) => restore::run(&args),
        Command::Migrate(args) => migrate::run(&args),
        Command::MigrateStore(args) => migrate_store::run(&args),
        Command::Shards(command) => shards::run(&command),
        Command::Clock(args) => clock::run(&args),
        Command::Epoch(command) => epoch::run(&command),
        Command::Admin(args) => admin::run(&args),
        Command::Peers(args) => peers::run(&args),
        Command::Accounts(args) => accounts::run(&args),
        Command::Payouts(args) => payouts::run(&args),
        Command::Market(args) => market::run(&args),
        Command::Catalog(args) => catalog::run(&args),
        Command::Providers(args) => providers::run(&args),
        Command::Openapi => openapi::run(),
        Command::Health(args) => health::run(&args),
    };
    result.unwrap_or_else(|error| {
        output::error(&format!("aip-hub: {error:#}"));
        ExitCode::FAILURE
    })
}
