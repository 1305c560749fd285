//! What the process asks of the system at its start: enough open files, and no dump of its memory.

use rand_core::Rng;
use rustix::process::{DumpableBehavior, Resource, Rlimit, getrlimit, set_dumpable_behavior, setrlimit};

/// Open files beside the connections: stores, log, listeners.
const FILES_BESIDE_CONNECTIONS: u64 = 1_024;

/// Raises the limit of open files as far as the system lets this user, and returns it; `None` means no limit.
pub fn raise_open_files() -> Option<u64> {
    let limit = getrlimit(Resource::Nofile);
    if limit.current == limit.maximum {
        return limit.current;
    }
    match setrlimit(
        Resource::Nofile,
        Rlimit {
            current: limit.maximum,
            maximum: limit.maximum,
        },
    ) {
        Ok(()) => limit.maximum,
        Err(error) => {
            tracing::debug!(%error, "The limit of open files cannot be raised");
            limit.current
        }
    }
}

/// Whether `limit` open files are enough for `connections_max` connections.
pub fn enough_files(limit: Option<u64>, connections_max: usize) -> bool {
    let wanted = u64::try_from(connections_max)
        .unwrap_or(u64::MAX)
        .saturating_add(FILES_BESIDE_CONNECTIONS);
    limit.is_none_or(|limit| limit >= wanted)
}

/// Characters of a machine's name that a process is called by.
const MACHINE_CHARS_MAX: usize = 40;

/// What this process is called among those of its hub: as the operator chose, or the machine's name and a lot.
pub fn name(chosen: &str, rng: &mut impl Rng) -> String {
    if !chosen.is_empty() {
        return chosen.to_owned();
    }
    let system = rustix::system::uname();
    let machine = system.nodename().to_string_lossy();
    let plain = |c: &char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    let machine: String = machine.chars().filter(plain).take(MACHINE_CHARS_MAX).collect();
    format!("{machine}-{:08x}", rng.next_u32())
}

/// Keeps the memory of this process, which holds keys, out of core dumps and other users' debuggers.
pub fn forbid_dumps() {
    if let Err(error) = set_dumpable_behavior(DumpableBehavior::NotDumpable) {
        tracing::warn!(%error, "The system does not let this process forbid memory dumps");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_soft_limit_becomes_the_hard_one() {
        let raised = raise_open_files();
        assert_eq!(raised, getrlimit(Resource::Nofile).maximum);
    }

    #[test]
    fn a_process_has_the_name_it_was_given_or_one_of_its_own() {
        let mut rng = rand_core::UnwrapErr(rand::rngs::SysRng);
        assert_eq!(name("hub-1", &mut rng), "hub-1");
        let (one, other) = (name("", &mut rng), name("", &mut rng));
        assert_ne!(one, other);
        assert!(one.len() <= 64, "{one}");
    }

    #[test]
    fn connections_need_files_and_the_stores_need_some_more() {
        assert!(enough_files(None, usize::MAX));
        assert!(enough_files(Some(21_024), 20_000));
        assert!(!enough_files(Some(20_000), 20_000));
    }
}
