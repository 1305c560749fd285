//! The commands, one per file: arguments, what is done, what is printed.

pub(crate) mod account;
pub(crate) mod channel;
pub(crate) mod deactivate;
pub(crate) mod dead;
pub(crate) mod export;
pub(crate) mod import;
pub(crate) mod inbox;
pub(crate) mod invoke;
pub(crate) mod job;
pub(crate) mod listen;
pub(crate) mod listing;
pub(crate) mod r#move;
pub(crate) mod offer;
pub(crate) mod receipt;
pub(crate) mod receipts;
pub(crate) mod register;
pub(crate) mod resolve;
pub(crate) mod rotate;
pub(crate) mod search;
pub(crate) mod send;
pub(crate) mod serve;
mod show;
pub(crate) mod status;
mod table;
mod whoami;

use crate::cli::{Cli, Command};
use crate::context::Context;
use crate::failure::Failure;
use crate::output::Output;
use crate::words;

/// How a command ends.
pub(crate) type Outcome = Result<(), Failure>;

/// Runs the command that was asked for.
pub(crate) async fn run(cli: Cli, output: Output) -> Outcome {
    let context = Context::new(cli.global, output);
    let outcome = carry_out(&context, cli.command).await;
    outcome.map_err(|failure| words::of_the_command(failure, context.hub_url().as_deref()))
}

async fn carry_out(context: &Context, command: Command) -> Outcome {
    match command {
        Command::Register(args) => register::run(context, args).await,
        Command::Resolve(args) => resolve::run(context, args).await,
        Command::Send(args) => send::run(context, args).await,
        Command::Search(args) => search::run(context, args).await,
        Command::Listing(args) => listing::run(context, args).await,
        Command::Offer(args) => offer::run(context, args).await,
        Command::Invoke(args) => invoke::run(context, args).await,
        Command::Job(args) => job::run(context, args).await,
        Command::Channel(args) => channel::run(context, args).await,
        Command::Account(args) => account::run(context, args).await,
        Command::Receipt(args) => receipt::run(context, args).await,
        Command::Serve(args) => serve::run(context, args).await,
        Command::Listen(args) => listen::run(context, args).await,
        Command::Inbox(args) => inbox::run(context, args).await,
        Command::Status(args) => status::run(context, args).await,
        Command::Receipts(args) => receipts::run(context, &args).await,
        Command::Rotate(args) => rotate::run(context, args).await,
        Command::Move(args) => r#move::run(context, args).await,
        Command::Whoami => whoami::run(context),
        Command::Dead(args) => dead::run(context, args).await,
        Command::Export(args) => export::run(context, &args),
        Command::Import(args) => import::run(context, &args),
        Command::Deactivate(args) => deactivate::run(context, args).await,
    }
}
