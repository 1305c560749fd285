//! Small files that are either whole or absent: written beside, synced, renamed.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// Replaces `path` with `bytes`: after a crash there is the old content or the new, never a part. Owner-only.
pub(crate) fn write_atomic(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let beside = beside(path)?;
    write_new(&beside, bytes)
        .and_then(|()| fs::rename(&beside, path))
        .inspect_err(|_| drop(fs::remove_file(&beside)))?;
    sync_folder_of(path)
}

/// Creates `path` with `bytes`, whole or not at all; fails with `AlreadyExists` rather than replace a file.
pub(crate) fn create_atomic(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let beside = beside(path)?;
    write_new(&beside, bytes)?;
    // A link is the one way to give a name to a finished file without taking that name from another.
    let linked = fs::hard_link(&beside, path);
    fs::remove_file(&beside)?;
    linked?;
    sync_folder_of(path)
}

/// Creates a folder, and what leads to it, that only its owner may enter.
pub(crate) fn create_private_folder(path: &Path) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(path)
}

/// A file that only its owner may read, which must not exist yet.
fn write_new(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut file = options.open(path)?;
    file.write_all(bytes)?;
    file.sync_all()
}

/// Makes the entries of the folder that holds `path` durable.
pub(crate) fn sync_folder_of(path: &Path) -> io::Result<()> {
    File::open(folder_of(path))?.sync_all()
}

fn folder_of(path: &Path) -> &Path {
    path.parent()
        .filter(|folder| !folder.as_os_str().is_empty())
        .unwrap_or_else(|| Path::new("."))
}

/// A name for the file in the making. It carries the process id and a number of its own, so that no two writers share
/// one; what a crash left behind under it is removed.
fn beside(path: &Path) -> io::Result<PathBuf> {
    static WRITTEN: AtomicU64 = AtomicU64::new(0);
    let name = path
        .file_name()
        .ok_or_else(|| io::Error::from(io::ErrorKind::InvalidInput))?;
    let mut unfinished = std::ffi::OsString::from(".");
    unfinished.push(name);
    let number = WRITTEN.fetch_add(1, Ordering::Relaxed);
    unfinished.push(format!(".{}-{number}.part", std::process::id()));
    let beside = folder_of(path).join(unfinished);
    match fs::remove_file(&beside) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(beside),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replaces_whole_and_leaves_nothing_beside() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("f");
        write_atomic(&path, b"one").unwrap();
        write_atomic(&path, b"two").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"two");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn writers_at_the_same_time_do_not_meet() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("f");
        std::thread::scope(|scope| {
            for writer in 0..8_u8 {
                let path = &path;
                scope.spawn(move || {
                    for _ in 0..50 {
                        write_atomic(path, &[writer; 100]).unwrap();
                    }
                });
            }
        });
        let written = fs::read(&path).unwrap();
        assert!(written.len() == 100 && written.windows(2).all(|pair| pair[0] == pair[1]));
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn never_creates_over_an_existing_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("f");
        create_atomic(&path, b"one").unwrap();
        let refused = create_atomic(&path, b"two").unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::AlreadyExists);
        assert_eq!(fs::read(&path).unwrap(), b"one");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[cfg(unix)]
    #[test]
    fn only_the_owner_may_read() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("f");
        write_atomic(&path, b"x").unwrap();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        let inner = folder.path().join("a/b");
        create_private_folder(&inner).unwrap();
        assert_eq!(fs::metadata(&inner).unwrap().permissions().mode() & 0o777, 0o700);
    }
}
