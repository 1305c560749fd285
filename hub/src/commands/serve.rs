//! `aip-hub serve`: runs the hub until a signal ends it.

use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context as _;
use tokio::runtime::{Builder, Runtime};

use super::output;
use super::source::Source;
use crate::catalog::Models;
use crate::config::{Overrides, Settings};
use crate::datadir::{DataDir, check_private};
use crate::lifecycle::Signals;
use crate::server::Servers;
use crate::wiring::{self, Hub};
use crate::{logging, process};

/// Threads for what is neither a request nor a store: sweeps, deliveries, signals. Requests have their own.
const RUNTIME_THREADS: usize = 2;
/// Threads that may wait for the disk at the same time.
const BLOCKING_THREADS_MAX: usize = 64;
/// Part of the shutdown time that is kept for closing the stores.
const CLOSING_RESERVE: Duration = Duration::from_secs(3);

const BANNER: &str = "\
----------------------------------------------------------------------------
  DEVELOPMENT HUB. Anyone can register, http and loopback addresses are
  allowed, there are no rate limits by address. Only for trying out on this
  machine: never put it on a network.
----------------------------------------------------------------------------";

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(flatten)]
    source: Source,
    /// A hub for trying out on this machine: open registration, http and loopback allowed
    #[arg(long)]
    dev: bool,
    /// Address and port of the public listener
    #[arg(long, value_name = "ADDR")]
    listen: Option<SocketAddr>,
    /// Address and port of the operator's listener
    #[arg(long, value_name = "ADDR")]
    operator_listen: Option<SocketAddr>,
}

pub(super) fn run(args: &Args, models: Models) -> anyhow::Result<ExitCode> {
    let overrides = Overrides {
        dev: args.dev,
        listen: args.listen,
        operator_listen: args.operator_listen,
        ..Overrides::default()
    };
    let settings = with_local_domain(args.source.settings(&overrides)?)?;
    settings.check().context("the settings cannot be used")?;
    logging::init(&settings.log)?;
    prepare_process(&settings);
    let runtime = runtime()?;
    let result = runtime.block_on(serve(settings, models));
    // Whatever is still waiting for a disk or a name server has had its time.
    runtime.shutdown_timeout(Duration::from_secs(1));
    result.map(|()| ExitCode::SUCCESS)
}

/// In development an empty domain means this machine, at the port that the hub listens on.
fn with_local_domain(mut settings: Settings) -> anyhow::Result<Settings> {
    if settings.hub.development && settings.hub.domain.is_empty() {
        if settings.http.listen.port() == 0 {
            let free = TcpListener::bind(settings.http.listen).and_then(|listener| listener.local_addr());
            settings.http.listen =
                free.with_context(|| format!("cannot listen on {}", settings.http.listen))?;
        }
        settings.hub.domain = format!("localhost:{}", settings.http.listen.port());
    }
    Ok(settings)
}

fn prepare_process(settings: &Settings) {
    if settings.hub.development {
        output::note(BANNER);
    } else {
        process::forbid_dumps();
    }
    let files = process::raise_open_files();
    if !process::enough_files(files, settings.http.connections_max) {
        tracing::warn!(
            open_files_max = files,
            connections_max = settings.http.connections_max,
            "The limit of open files is too low for http.connections_max; `aip-hub doctor` says how to raise it"
        );
    }
}

fn runtime() -> anyhow::Result<Runtime> {
    Builder::new_multi_thread()
        .worker_threads(RUNTIME_THREADS)
        .max_blocking_threads(BLOCKING_THREADS_MAX)
        .thread_name("aip-hub")
        .enable_all()
        .build()
        .context("the runtime cannot be set up")
}

async fn serve(settings: Settings, models: Models) -> anyhow::Result<()> {
    let mut signals = Signals::listen().context("the system gives no signals")?;
    let folder = DataDir::create(&settings.hub.data_dir)?;
    let _lock = folder.lock()?;
    if let Err(error) = check_private(folder.root(), 0o700) {
        tracing::warn!("{error}");
    }
    let shutdown_timeout = Duration::from_secs(settings.http.shutdown_timeout_secs);
    // Its stores and rooms are many: the future that makes them lies elsewhere.
    let hub = Box::pin(wiring::open(settings, &folder, models)).await?;
    let bound = Servers::bind(&hub.app);
    let is_bound = bound.is_ok();
    let served = match bound {
        Ok(servers) => run_until_closed(servers, &hub, &folder, &mut signals, shutdown_timeout).await,
        Err(error) => Err(error.into()),
    };
    hub.life.hurry_after(CLOSING_RESERVE.min(shutdown_timeout / 2));
    hub.close().await;
    // A missing file tells the same as one that is removed.
    std::fs::remove_file(folder.operator_url_file()).unwrap_or_default();
    if is_bound {
        tracing::info!("The hub has stopped");
    }
    served
}

async fn run_until_closed(
    servers: Servers,
    hub: &Hub,
    folder: &DataDir,
    signals: &mut Signals,
    shutdown_timeout: Duration,
) -> anyhow::Result<()> {
    hub.start_agent().await;
    if let Some(room) = &hub.app.market {
        room.prepare().await;
    }
    announce(&servers, hub, folder)?;
    let grace = shutdown_timeout.saturating_sub(CLOSING_RESERVE.min(shutdown_timeout / 2));
    tokio::select! {
        served = servers.run(&hub.life) => served.context("a listener broke"),
        never = obey(signals, hub, grace) => match never {},
    }
}

/// Says that the hub is ready: one line for programs on standard output, and the operator's address in the folder.
fn announce(servers: &Servers, hub: &Hub, folder: &DataDir) -> anyhow::Result<()> {
    let (public, operator) = (local_url(servers.public_addr), local_url(servers.operator_addr));
    folder.publish_operator_url(&operator)?;
    hub.sweep_regularly();
    hub.follow_listings();
    hub.keep_market();
    hub.federate();
    tracing::info!(
        hub.domain = %hub.app.domain,
        http.public = %servers.public_addr,
        http.operator = %servers.operator_addr,
        "The hub of {} listens on {}", hub.app.domain, servers.public_addr
    );
    output::line(&format!("aip-hub ready public={public} operator={operator}"))?;
    Ok(())
}

/// Where a listener is reached from this machine.
fn local_url(address: SocketAddr) -> String {
    let mut address = address;
    if address.ip().is_unspecified() {
        address.set_ip(IpAddr::V4(Ipv4Addr::LOCALHOST));
    }
    format!("http://{address}")
}

/// The first signal closes the hub; a second one, or the end of `grace`, leaves no more time.
async fn obey(signals: &mut Signals, hub: &Hub, grace: Duration) -> std::convert::Infallible {
    let life = &hub.life;
    tokio::select! {
        signal = signals.next() => tracing::info!(signal, "{signal}: the hub closes; a second signal hurries it"),
        () = life.closing() => {}
    }
    hub.begin_to_close();
    tokio::select! {
        signal = signals.next() => tracing::warn!(signal, "{signal} again: what still runs is dropped"),
        () = tokio::time::sleep(grace) => tracing::warn!(
            tasks = life.tasks(),
            "The shutdown time is over: what still runs is dropped"
        ),
    }
    life.hurry();
    std::future::pending().await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_development_hub_without_a_domain_is_this_machine() {
        let mut settings = Settings::development();
        settings.http.listen.set_port(8123);
        assert_eq!(with_local_domain(settings).unwrap().hub.domain, "localhost:8123");
    }

    #[test]
    fn any_free_port_is_in_the_domain() {
        let mut settings = Settings::development();
        settings.http.listen.set_port(0);
        let settings = with_local_domain(settings).unwrap();
        assert_ne!(settings.http.listen.port(), 0);
        assert_eq!(
            settings.hub.domain,
            format!("localhost:{}", settings.http.listen.port())
        );
        settings.check().unwrap();
    }

    #[test]
    fn a_listener_on_all_addresses_is_reached_on_loopback() {
        assert_eq!(
            local_url("0.0.0.0:9090".parse().unwrap()),
            "http://127.0.0.1:9090"
        );
        assert_eq!(local_url("[::]:9090".parse().unwrap()), "http://127.0.0.1:9090");
        assert_eq!(local_url("10.0.0.1:80".parse().unwrap()), "http://10.0.0.1:80");
    }
}
