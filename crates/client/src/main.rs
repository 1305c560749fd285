//! The command `aip`: reads the command line, runs one command, turns the outcome into an exit code.

mod cli;
mod commands;
mod context;
mod failure;
mod output;
mod words;

use std::io::IsTerminal as _;
use std::process::ExitCode;

use crate::cli::Cli;
use crate::output::Output;

fn main() -> ExitCode {
    let cli = Cli::read();
    start_log(cli.global.verbose);
    let output = Output::new(cli.global.json);
    let outcome = match tokio::runtime::Runtime::new() {
        Ok(runtime) => runtime.block_on(commands::run(cli, output)),
        Err(error) => Err(error.into()),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            output.failure(&failure);
            ExitCode::from(failure.exit_code())
        }
    }
}

/// What happens on the way goes to the standard error; what was asked for goes to the standard output.
fn start_log(verbose: u8) {
    let level = match verbose {
        // Whoever waits for a retry should know what for.
        0 => "error,aip_client::client::send=warn,aip_client::client::follow=warn,aip_client::session=info",
        1 => "aip_client=info,warn",
        2 => "aip_client=debug,info",
        _ => "debug",
    };
    let filter = tracing_subscriber::EnvFilter::new(level);
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_ansi(std::io::stderr().is_terminal())
        .with_writer(std::io::stderr)
        .init();
}
