//! Chance that can be had again: the seed is printed, and the environment sets it.

use std::time::Duration;

use rand::rngs::{StdRng, SysRng};
use rand::{Rng as _, SeedableRng};
use rand_core::UnwrapErr;

/// Sets the seed of all fault tests.
pub const SEED: &str = "AIP_FAULT_SEED";
/// Sets the rounds of the fault tests that go in rounds.
pub const ROUNDS: &str = "AIP_FAULT_ROUNDS";
/// Rounds when nobody says otherwise.
const ROUNDS_DEFAULT: usize = 5;
/// Sets how long a fault test stops a process for, in seconds.
pub const STANDSTILL: &str = "AIP_FAULT_STANDSTILL_SECS";
/// The same when nobody says otherwise.
const STANDSTILL_DEFAULT_SECS: u64 = 20;

/// A seed for this test: the one of the environment, or a fresh one. It is printed, so that a failure shows it.
#[must_use]
#[expect(clippy::print_stderr, reason = "whoever repeats a failure needs it")]
pub fn seed(test: &str) -> u64 {
    let seed = setting(SEED).unwrap_or_else(|| UnwrapErr(SysRng).next_u64());
    eprintln!("{test}: {SEED}={seed}");
    seed
}

/// Chance from a seed.
#[must_use]
pub fn chance(seed: u64) -> StdRng {
    StdRng::seed_from_u64(seed)
}

/// How many rounds.
#[must_use]
pub fn rounds() -> usize {
    setting(ROUNDS)
        .and_then(|rounds| rounds.try_into().ok())
        .unwrap_or(ROUNDS_DEFAULT)
}

/// The rounds of a test that has so many when nobody says otherwise: more or fewer by the same factor as [`rounds`].
#[must_use]
pub fn rounds_of(usual: usize) -> usize {
    (usual * rounds() / ROUNDS_DEFAULT).max(1)
}

/// How long a process is to stand still.
#[must_use]
pub fn standstill() -> Duration {
    Duration::from_secs(setting(STANDSTILL).unwrap_or(STANDSTILL_DEFAULT_SECS))
}

#[expect(
    clippy::disallowed_methods,
    reason = "the one place of the harness that reads the environment"
)]
fn setting(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}
