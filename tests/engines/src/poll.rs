//! Waiting without a clock: look, pause, look again, until the pauses add up.

use std::time::Duration;

/// Between two looks.
const PAUSE: Duration = Duration::from_millis(10);

/// What `look` found, or nothing when it has not found anything by then.
pub(crate) fn poll<T>(within: Duration, mut look: impl FnMut() -> Option<T>) -> Option<T> {
    let mut waited = Duration::ZERO;
    loop {
        if let Some(found) = look() {
            return Some(found);
        }
        if waited >= within {
            return None;
        }
        std::thread::sleep(PAUSE);
        waited += PAUSE;
    }
}
