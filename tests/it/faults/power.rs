//! The power is cut: what was not synced is gone, on a real file system.

use std::time::Duration;

use aip_tests::history::{Event, Outcome};
use aip_tests::{HubOptions, Mount, TestHub, chance, rounds, seed};
use anyhow::Result;
use rand::RngExt as _;

use super::load::Load;
use super::{assert_good, restart, roomy};

/// Room for what a round writes, and for the journal.
const MEBIBYTES: u32 = 512;

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn row_44_nothing_acknowledged_is_lost_when_the_power_is_cut() -> Result<()> {
    let mut mount = match Mount::ext4(MEBIBYTES) {
        Ok(mount) => mount,
        Err(skip) => {
            skip.print("power");
            return Ok(());
        }
    };
    let seed = seed("power");
    let mut chance = chance(seed);
    let mut hub = TestHub::start_with(HubOptions {
        data: Some(mount.path().join("data")),
        ..roomy("")
    });
    let load = Load::start(&hub, seed).await?;
    for _ in 0..rounds() {
        load.progress(chance.random_range(20..600)).await;
        tokio::time::sleep(Duration::from_micros(chance.random_range(0..20_000))).await;
        // Between two calls to the system: Linux answers a sync that the cut overtakes as if it had been done.
        tokio::task::block_in_place(|| hub.pause());
        if let Err(skip) = mount.cut_power() {
            skip.print("power");
            return Ok(());
        }
        hub.resume();
        // The hub goes on for a moment without its disk: nothing that it says now may be a yes.
        tokio::time::sleep(Duration::from_micros(chance.random_range(0..50_000))).await;
        tokio::task::block_in_place(|| {
            hub.kill();
            mount.restore_power()
        })
        .map_err(|skip| anyhow::anyhow!("the power does not come back: {skip:?}"))?;
        load.history.push(Event::Crash);
        restart(&mut hub);
    }
    let history = load.finish().await?;
    assert_good("power", seed, &history);
    assert!(history.count(Outcome::Ok) > 0 && history.count(Outcome::Unknown) > 0);
    hub.kill();
    Ok(())
}
