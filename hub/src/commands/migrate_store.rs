//! `aip-hub migrate-store`: moves what an embedded hub keeps to the engines, while it runs.
//!
//! A first pass copies while the hub works. Then the hub is paused through the operator's door, and a second pass
//! brings over what has changed since; both are taken from backups, so that nothing is read that is being written. The
//! pause is a lease: if this program dies, the hub goes on, and another run begins where this one was. Only when
//! everything was verified does the hub stand still for good.

mod copy;
mod lease;
mod target;

use std::process::ExitCode;

use aip_protocol::time::Timestamp;
use anyhow::{Context as _, bail};
use clap::ValueEnum;

use self::copy::{Copies, Hub};
use self::target::Target;
use super::operator::block_on;
use super::output;
use super::source::Source;
use crate::clock;
use crate::config::{Overrides, Settings};
use crate::datadir::{DataDir, write_private};
use crate::migrate_store::{Move, Moved};

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(flatten)]
    source: Source,
    /// Where names and mailboxes lie now: in the data folder
    #[arg(long, value_enum)]
    from: From,
    /// Where they go: to PostgreSQL and NATS, as [engines] names them
    #[arg(long, value_enum)]
    to: To,
    /// For a hub that is served with --dev
    #[arg(long)]
    dev: bool,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum From {
    /// The data folder
    Embedded,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum To {
    /// Mailboxes to NATS, names to PostgreSQL
    Nats,
}

pub(super) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let (From::Embedded, To::Nats) = (args.from, args.to);
    let settings = args.source.settings(&Overrides {
        dev: args.dev,
        ..Overrides::default()
    })?;
    settings.check().context("the settings cannot be used")?;
    let engines = &settings.engines;
    if engines.registry_url.is_empty() || engines.mailboxes_url.is_empty() {
        bail!("where to? Set engines.registry_url and engines.mailboxes_url as the hub will have them");
    }
    let folder = DataDir::open(&settings.hub.data_dir)?;
    if folder.moved_marker().exists() {
        bail!(
            "{} was moved before; its hub goes on with the engines",
            folder.root().display()
        );
    }
    block_on(carry_out(&settings, &folder))?;
    Ok(ExitCode::SUCCESS)
}

async fn carry_out(settings: &Settings, folder: &DataDir) -> anyhow::Result<()> {
    let hub = Hub::of(settings, folder)?;
    let copies = Copies::in_folder(settings, folder)?;
    let target = Target::open(settings, folder, &copies).await?;
    let moved = Box::pin(passes(&hub, &copies, &target)).await;
    target.close().await;
    let moved = moved?;
    // Only now: whoever finds it does not use what lies beside it any more.
    let note = format!("Moved to PostgreSQL and NATS on {}.\n", clock::wall());
    write_private(&folder.moved_marker(), &note)?;
    copies.remove()?;
    output::line(&format!(
        "moved and verified: {} messages in {} mailboxes ({} bytes), {} dead letters",
        moved.messages, moved.mailboxes, moved.bytes, moved.dead
    ))?;
    output::line(hub.farewell())?;
    output::line(
        "start every process with [engines] as it is here, and with this hub's key (hub.key_file); clients will look \
         twice at what they have, and lose nothing",
    )?;
    Ok(())
}

async fn passes(hub: &Hub, copies: &Copies<'_>, target: &Target) -> anyhow::Result<Moved> {
    let since = if hub.is_running() {
        output::line("first pass: what is there, while the hub works")?;
        Some(Box::pin(first_pass(hub, copies, target)).await?)
    } else {
        None
    };
    let lease = hub.pause().await?;
    output::line("second pass: the hub stands still")?;
    let second = second_pass(hub, copies, target, since);
    let moved = lease.while_held(Box::pin(second)).await?;
    target.complete().await?;
    lease.for_good().await?;
    Ok(moved)
}

/// Brings over most of it; returns since when something may have changed.
async fn first_pass(hub: &Hub, copies: &Copies<'_>, target: &Target) -> anyhow::Result<Timestamp> {
    let begun = clock::wall();
    let copy = copies.take(hub, "first").await?;
    target.claim(&copy.epoch).await?;
    let first = Move::begin(copy.mailboxes, target.mailboxes.clone(), begun).await?;
    first.statuses(None).await?;
    first.mailboxes(false, progress).await?;
    copy.registry.close().await;
    Ok(begun)
}

/// Brings over the rest, and compares.
async fn second_pass(
    hub: &Hub,
    copies: &Copies<'_>,
    target: &Target,
    since: Option<Timestamp>,
) -> anyhow::Result<Moved> {
    let copy = copies.take(hub, "second").await?;
    target.claim(&copy.epoch).await?;
    target.names(&copy.registry).await?;
    // The hub's own time may be ahead of this machine's.
    let wall = clock::wall();
    let now = copy.latest.map_or(wall, |latest| latest.max(wall));
    let second = Move::begin(copy.mailboxes, target.mailboxes.clone(), now).await?;
    second.mailboxes(true, progress).await?;
    let told = second.statuses(since).await?;
    let senders = second.senders(&copy.registry, target.domain()).await?;
    let remembered = second.remembered(&senders).await?;
    output::line(&format!(
        "{told} statuses, {remembered} messages that a sender may still repeat"
    ))?;
    let verified = second.verify().await?;
    copy.registry.close().await;
    Ok(verified)
}

fn progress(moved: Moved) {
    output::note(&format!(
        "{} mailboxes, {} messages, {} dead letters",
        moved.mailboxes, moved.messages, moved.dead
    ));
}
