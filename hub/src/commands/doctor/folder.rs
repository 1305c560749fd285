//! The data folder: who can read it, whether its secrets are whole, how much room is left.

use std::path::Path;

use aip_relay::mailbox::rocks::{Disk as _, Space, SystemDisk};

use super::Finding;
use crate::config::Settings;
use crate::datadir::{DataDir, DataDirError, check_private, read_key};
use crate::hub_key;
use crate::stores::disk_guard;

const MIB: u64 = 1024 * 1024;

pub(super) fn examine(settings: &Settings, folder: &DataDir) -> Vec<Finding> {
    let mut found = vec![privacy(folder), disk(settings, folder.root())];
    let (key, token) = (hub_key::file(settings, folder), folder.operator_token_file());
    let is_key = |path: &Path| read_key(path).map(drop);
    found.push(secret(&key, is_key));
    found.push(secret(&token, |path| check_private(path, 0o600)));
    // A hub whose former key cannot be read does not start.
    let previous = hub_key::previous_file(&key);
    if previous.exists() {
        found.push(secret(&previous, is_key));
    }
    found
}

fn secret(path: &Path, check: impl FnOnce(&Path) -> Result<(), DataDirError>) -> Finding {
    let shown = path.display();
    if !path.exists() {
        return Finding::Doubtful(format!("{shown} is not there yet; the first start makes it"));
    }
    match check(path) {
        Ok(()) => Finding::Good(format!("{shown} is for its owner alone")),
        Err(error) => Finding::Bad(error.to_string()),
    }
}

fn privacy(folder: &DataDir) -> Finding {
    match check_private(folder.root(), 0o700) {
        Ok(()) => Finding::Good(format!("{} is for its owner alone", folder.root().display())),
        Err(error) => Finding::Doubtful(error.to_string()),
    }
}

fn disk(settings: &Settings, path: &Path) -> Finding {
    match SystemDisk.space(path) {
        Ok(space) => room(settings, space),
        Err(error) => Finding::Bad(format!(
            "the disk of {} does not say how full it is: {error}",
            path.display()
        )),
    }
}

/// Asks the same guard that the hub asks before it accepts a message.
fn room(settings: &Settings, space: Space) -> Finding {
    let used = u128::from(space.total_bytes.saturating_sub(space.free_bytes));
    let used_percent = used * 100 / u128::from(space.total_bytes.max(1));
    let text = format!(
        "the disk is {used_percent} % full, {} MiB are free",
        space.free_bytes / MIB
    );
    if disk_guard(settings).is_full(space) {
        Finding::Bad(format!(
            "{text}: the hub accepts nothing until there is more room (relay.disk_used_percent_max, \
             relay.disk_free_bytes_min)"
        ))
    } else {
        Finding::Good(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GIB: u64 = 1024 * MIB;

    fn space(free_bytes: u64, total_bytes: u64) -> Space {
        Space {
            total_bytes,
            free_bytes,
        }
    }

    #[test]
    fn a_full_disk_is_bad_and_names_its_settings() {
        let settings = Settings::default();
        assert!(matches!(
            room(&settings, space(50 * GIB, 100 * GIB)),
            Finding::Good(_)
        ));
        for (free, total) in [(9 * GIB, 100 * GIB), (GIB / 2, 2 * GIB)] {
            let Finding::Bad(text) = room(&settings, space(free, total)) else {
                panic!("{free} of {total}")
            };
            assert!(text.contains("relay.disk_free_bytes_min"), "{text}");
        }
    }

    #[test]
    fn a_guard_that_is_off_does_not_complain() {
        let mut settings = Settings::default();
        settings.relay.disk_used_percent_max = 0;
        settings.relay.disk_free_bytes_min = 0;
        assert!(matches!(room(&settings, space(0, 100 * GIB)), Finding::Good(_)));
    }
}
