//! The hub is killed at random points, under load and while it starts.

use std::time::Duration;

use aip_tests::history::{Event, Outcome};
use aip_tests::{TestHub, chance, rounds, seed};
use anyhow::Result;
use rand::RngExt as _;

use super::load::Load;
use super::{assert_good, restart, roomy};

/// Row 28 with it: recipients are killed between delivery and ack all the time.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn row_44_nothing_acknowledged_is_lost_when_the_hub_is_killed() -> Result<()> {
    let seed = seed("kill");
    let mut chance = chance(seed);
    let mut hub = TestHub::start_with(roomy(""));
    let load = Load::start(&hub, seed).await?;
    for _ in 0..rounds() {
        load.progress(chance.random_range(20..600)).await;
        tokio::time::sleep(Duration::from_micros(chance.random_range(0..20_000))).await;
        if chance.random_ratio(1, 3) {
            let span = Duration::from_millis(chance.random_range(0..300));
            tokio::task::block_in_place(|| hub.pause());
            tokio::time::sleep(span).await;
            hub.resume();
        }
        tokio::task::block_in_place(|| hub.kill());
        load.history.push(Event::Crash);
        if chance.random_ratio(1, 3) {
            let after = Duration::from_millis(chance.random_range(0..400));
            tokio::task::block_in_place(|| hub.start_and_kill(after));
            load.history.push(Event::Crash);
        }
        restart(&mut hub);
    }
    let history = load.finish().await?;
    assert_good("kill", seed, &history);
    assert!(history.count(Outcome::Ok) > 0 && history.count(Outcome::Refused) > 0);
    assert!(
        history.redelivered() > 0,
        "no recipient died with a message in hand: the fault was none"
    );
    Ok(())
}
