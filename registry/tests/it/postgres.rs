//! What only a server can do: be migrated by many at once, sort otherwise, give way, fall silent, die.

mod conflicts;
mod faults;
mod schema;

use std::time::Duration;

/// Longer than everything that is bounded takes.
const LONG: Duration = Duration::from_mins(2);

/// Asks again and again until the answer is yes.
async fn eventually(what: &str, mut is_so: impl AsyncFnMut() -> bool) {
    let poll = async {
        while !is_so().await {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(LONG, poll).await.expect(what);
}
