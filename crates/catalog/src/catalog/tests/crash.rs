//! A catalog that ends at any moment, with any of its files cut short, holds in the end what the store holds.

use std::fs::{self, OpenOptions};

use crate::query::Query;
use crate::testing::{Rig, entry, numbers, query};

/// A small generator of numbers that look random and are the same every time.
fn roll(state: &mut u64) -> u64 {
    *state = state
        .wrapping_mul(6_364_136_223_846_793_005)
        .wrapping_add(1_442_695_040_888_963_407);
    *state >> 33
}

fn change(rig: &Rig, state: &mut u64) {
    for _ in 0..roll(state) % 30 {
        let number = roll(state) % 60 + 1;
        match roll(state) % 4 {
            0 => rig.store.delete(number),
            _ => rig.store.put(entry(
                number,
                &format!("lamp {} {}", roll(state) % 9, roll(state) % 5),
            )),
        }
    }
    if roll(state).is_multiple_of(4) {
        rig.store.forget();
    }
}

/// Cuts the vectors' file short, as a machine that lost its power may.
fn tear(rig: &Rig, state: &mut u64) {
    let path = rig.dir().join("vectors/words-1.vec");
    if let Ok(meta) = fs::metadata(&path) {
        let file = OpenOptions::new().write(true).open(&path).unwrap();
        file.set_len(meta.len() * (roll(state) % 100) / 100).unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_lost_whenever_it_ends() {
    let rig = Rig::on_disk();
    let mut state = 11;
    for round in 0..12 {
        change(&rig, &mut state);
        let running = rig.run().await;
        running.catalog.nudge();
        // It ends after so many steps, wherever it is then.
        for _ in 0..roll(&mut state) % 40 {
            tokio::task::yield_now().await;
        }
        if round % 3 == 2 {
            running.settled(&rig.store).await;
        }
        running.kill().await;
        if round % 2 == 0 {
            drop(rig.open().await);
            tear(&rig, &mut state);
        }
    }
    let running = rig.ready().await;
    let live = rig.store.live();
    let documents = u64::try_from(live.len()).unwrap();
    running
        .until(|stats| stats.documents == documents && stats.spaces[0].vectors == documents)
        .await;

    let fresh = Rig::with(live.into_values());
    let fresh = fresh.ready().await;
    for text in ["lamp 3", "лампа", "lamp", ""] {
        let asked = Query {
            limit: 100,
            ..query(text)
        };
        let mut found = numbers(&running.find(&asked).await);
        let mut expected = numbers(&fresh.find(&asked).await);
        found.sort_unstable();
        expected.sort_unstable();
        assert_eq!(found, expected, "{text}");
    }
    let asked = Query {
        limit: 100,
        ..query("lamp 3")
    };
    super::order::check(&running.find(&asked).await, 2.0);
}
