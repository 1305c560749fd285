//! `aip-hub clock`: the latest time that the mailboxes have seen, and a way back when the machine's clock was far ahead.
//!
//! Why the way back is safe is told in [`aip_relay::mailbox::rocks::ClosedStore`] and its file.

use std::process::ExitCode;
use std::time::Duration;

use aip_protocol::time::Timestamp;
use aip_relay::mailbox::rocks::ClosedStore;
use anyhow::bail;

use super::epoch::{closed_store, new_epoch};
use super::operator::block_on;
use super::output;
use super::source::Source;
use crate::clock;
use crate::config::Settings;
use crate::datadir::DataDir;
use crate::stores;

const DAY_SECS: u64 = 86_400;

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(flatten)]
    source: Source,
    /// Takes the mailboxes of a stopped hub back to the machine's time, with a new epoch: for a clock that was far ahead,
    /// and is right again
    #[arg(long)]
    reset: bool,
}

pub(super) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let (settings, folder) = args.source.hub()?;
    if !settings.engines.mailboxes_url.is_empty() {
        bail!(
            "the mailboxes of this hub are on NATS (engines.mailboxes_url), and their time cannot be reset"
        );
    }
    let (store, _lock) = closed_store(&folder)?;
    let (wall, mark) = (clock::wall(), store.clock_high_water()?);
    output::line(&format!("the machine's clock says            {wall}"))?;
    let latest = mark.map_or_else(|| "none yet".to_owned(), |mark| mark.to_string());
    output::line(&format!("latest time that the mailboxes saw  {latest}"))?;
    if args.reset {
        may_reset(wall, mark)?;
        reset(&settings, &folder, &store, wall)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Whether there is anything to reset, and to what.
fn may_reset(wall: Timestamp, mark: Option<Timestamp>) -> anyhow::Result<()> {
    if !clock::is_plausible(wall) {
        bail!("the machine's clock is wrong: set it first, and let a time service keep it");
    }
    if mark.and_then(|mark| clock::behind(wall, mark)).is_none() {
        bail!(
            "there is nothing to reset: the mailboxes have seen no time that is ahead of the machine's clock"
        );
    }
    Ok(())
}

fn reset(settings: &Settings, folder: &DataDir, store: &ClosedStore, wall: Timestamp) -> anyhow::Result<()> {
    // Tokens first: as long as the mailboxes are ahead, the reset can be run again.
    let tokens = block_on(drop_later_tokens(settings, folder, wall))?;
    let retention = Duration::from_secs(u64::from(settings.relay.retention_days) * DAY_SECS);
    let epoch = new_epoch();
    let retimed = store.reset_clock(wall, retention, &epoch)?;
    output::line(&format!(
        "reset to {wall}, with the epoch {}: {} messages and {} dead letters begin their time now, {tokens} tokens ended",
        epoch.as_str(),
        retimed.messages,
        retimed.dead_letters
    ))?;
    output::note("Clients will look twice at what they have, and agents sign in again.");
    Ok(())
}

async fn drop_later_tokens(settings: &Settings, folder: &DataDir, wall: Timestamp) -> anyhow::Result<u64> {
    let registry = stores::open_registry(settings, folder).await?;
    let dropped = registry.drop_tokens_after(wall).await;
    registry.close().await;
    Ok(dropped?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Timestamp {
        Timestamp::parse(text).unwrap()
    }

    #[test]
    fn only_a_mark_that_is_ahead_is_reset() {
        let wall = at("2026-11-29T12:00:00Z");
        may_reset(wall, Some(at("2036-11-29T12:00:00Z"))).unwrap();
        may_reset(wall, Some(at("2026-11-29T12:00:10Z"))).unwrap();
        for mark in [None, Some(wall), Some(at("2026-11-29T12:00:01Z"))] {
            let refused = may_reset(wall, mark).unwrap_err().to_string();
            assert!(refused.contains("nothing to reset"), "{refused}");
        }
    }

    #[test]
    fn nothing_is_reset_to_a_time_before_this_program() {
        let refused = may_reset(Timestamp::UNIX_EPOCH, Some(at("2026-11-29T12:00:00Z")));
        assert!(refused.unwrap_err().to_string().contains("set it first"));
    }
}
