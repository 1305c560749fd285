//! Where the engines' programs are. `scripts/setup test` puts them there.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// The oldest release of NATS that the hub works with.
const NATS_OLDEST: (u32, u32) = (2, 14);

/// Beside the build, where `scripts/setup test` puts what Debian has only in an older release.
const NATS_INSTALLED: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../../target/engines/venv/bin/nats-server"
);

/// `nats-server`: what `AIP_NATS_SERVER` names, else what `scripts/setup test` installed, else the first in `PATH`.
pub(crate) fn nats_server() -> Result<PathBuf, String> {
    static FOUND: OnceLock<Result<PathBuf, String>> = OnceLock::new();
    FOUND.get_or_init(find_nats_server).clone()
}

fn find_nats_server() -> Result<PathBuf, String> {
    let named = std::env::var_os("AIP_NATS_SERVER").map(PathBuf::from);
    let installed = Path::new(NATS_INSTALLED).canonicalize().ok();
    let program = named.or(installed).or_else(|| in_path("nats-server"));
    let program = program.ok_or("there is no nats-server: run `scripts/setup test`")?;
    let version =
        nats_version(&program).ok_or_else(|| format!("{} does not tell its version", program.display()))?;
    let (major, minor) = NATS_OLDEST;
    if version < NATS_OLDEST {
        let found = format!("{} is {}.{}", program.display(), version.0, version.1);
        return Err(format!(
            "{found}, but {major}.{minor} is needed: run `scripts/setup test`, or name a newer one in AIP_NATS_SERVER"
        ));
    }
    Ok(program)
}

/// From `nats-server: v2.15.1`.
fn nats_version(program: &Path) -> Option<(u32, u32)> {
    let output = Command::new(program).arg("--version").output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    let mut numbers = text.rsplit('v').next()?.trim().split('.');
    Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
}

/// `redis-server`, the first in `PATH`.
pub(crate) fn redis_server() -> Result<PathBuf, String> {
    in_path("redis-server").ok_or_else(|| "there is no redis-server: run `scripts/setup test`".to_owned())
}

/// The folder of PostgreSQL's programs: the newest release of Debian's packages, else that of `initdb` in `PATH`.
pub(crate) fn postgres_programs() -> Result<PathBuf, String> {
    let releases = std::fs::read_dir("/usr/lib/postgresql").into_iter().flatten();
    let newest = releases
        .flatten()
        .filter_map(|release| {
            Some((
                release.file_name().to_str()?.parse::<u32>().ok()?,
                release.path().join("bin"),
            ))
        })
        .filter(|(_, programs)| programs.join("initdb").exists())
        .max();
    let in_path = || in_path("initdb").and_then(|initdb| initdb.parent().map(Path::to_owned));
    newest
        .map(|(_, programs)| programs)
        .or_else(in_path)
        .ok_or_else(|| "there is no PostgreSQL: run `scripts/setup test`".to_owned())
}

fn in_path(name: &str) -> Option<PathBuf> {
    let folders = std::env::var_os("PATH")?;
    std::env::split_paths(&folders)
        .map(|folder| folder.join(name))
        .find(|program| program.is_file())
}
