//! The folder of an embedded store: locked, created whole, opened with care, restored whole.
//!
//! Inside the folder lie `lock` (held while the store is open), `commits` (see [`Watermark`]) and `db`. A new
//! or restored store is made beside `db` and renamed when it is complete, so that whatever interrupts it,
//! `db` is never half a store.

use std::fs::{self, File};
use std::io;
use std::path::Path;

use bytes::Bytes;
use rustix::fs::{FlockOperation, flock};

use super::super::error::StoreError;
use super::super::keys::meta;
use super::super::records;
use super::super::types::Epoch;
use super::super::view::{Family, View, Writes};
use super::open_error::{OpenError, io};
use super::watermark::Watermark;
use crate::rocks::{Engine, EngineError};

/// The layout that this version writes. A change of keys or records raises it and brings its own conversion.
const SCHEMA: u32 = 1;

/// The lock on a folder; gone with the process, however it ends.
#[derive(Debug)]
pub(super) struct FolderLock {
    _file: File,
}

impl FolderLock {
    fn take(dir: &Path) -> Result<Self, OpenError> {
        fs::create_dir_all(dir).map_err(io("create", dir))?;
        let path = dir.join("lock");
        let file = File::options()
            .create(true)
            .truncate(false)
            .write(true)
            .open(&path);
        let file = file.map_err(io("open", &path))?;
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(Self { _file: file }),
            Err(rustix::io::Errno::WOULDBLOCK) => Err(OpenError::Locked { dir: dir.to_owned() }),
            Err(errno) => Err(io("lock", &path)(errno.into())),
        }
    }
}

/// An open folder.
#[derive(Debug)]
pub(super) struct Opened {
    /// Batches in the database.
    pub(super) commits: u64,
    /// Batches that were noted and are missing.
    pub(super) lost: u64,
    pub(super) watermark: Watermark,
    pub(super) engine: Engine,
    pub(super) epoch: Epoch,
    pub(super) lock: FolderLock,
}

/// Opens the store in `dir`, or makes one with `fresh` as its epoch.
pub(super) fn open(dir: &Path, fresh: &Epoch) -> Result<Opened, OpenError> {
    let lock = FolderLock::take(dir)?;
    let db = dir.join("db");
    if is_absent(&db)? {
        if dir.join("db.restoring").exists() {
            return Err(OpenError::RestoreInterrupted { dir: dir.to_owned() });
        }
        let making = dir.join("db.creating");
        remove(&making)?;
        let engine = Engine::create(&making).map_err(|error| explain(dir, error))?;
        let schema = (
            (Family::Meta, meta::schema()),
            Some(Bytes::copy_from_slice(&SCHEMA.to_be_bytes())),
        );
        write(dir, &engine, &Writes::from([schema, epoch_write(fresh)]))?;
        // Closed before its folder moves.
        drop(engine);
        put_in_place(dir, &making)?;
    }
    let engine = Engine::open(&db).map_err(|error| explain(dir, error))?;
    check_schema(dir, &engine)?;
    let mut epoch = read_epoch(dir, &engine)?;
    let commits = engine
        .get(Family::Meta, &meta::commits())
        .and_then(records::meta_number)
        .map_err(|error| unreadable(dir, &error))?;
    let watermark = Watermark::open(dir)?;
    let lost = watermark.noted().saturating_sub(commits);
    if lost > 0 {
        // Sequence numbers that were given out will be given out again: to clients this is another store.
        tracing::error!(dir = %dir.display(), lost, "synced writes are missing; the mailboxes get a new epoch");
        epoch = fresh.clone();
        write(dir, &engine, &Writes::from([epoch_write(fresh)]))?;
        watermark
            .note(commits)
            .map_err(io("write", &dir.join("commits")))?;
    }
    Ok(Opened {
        commits,
        lost,
        watermark,
        engine,
        epoch,
        lock,
    })
}

/// Opens the database of the store in `dir` as it is; one that is not there is not made.
pub(super) fn open_existing(dir: &Path) -> Result<(Engine, FolderLock), OpenError> {
    let db = dir.join("db");
    if !db.exists() {
        let error = io::Error::new(io::ErrorKind::NotFound, "there is none");
        return Err(io("open the mailbox store in", dir)(error));
    }
    let lock = FolderLock::take(dir)?;
    let engine = Engine::open(&db).map_err(|error| explain(dir, error))?;
    check_schema(dir, &engine)?;
    Ok((engine, lock))
}

/// Makes a store in `dir` from a checkpoint, with a new epoch: cursors into the old one no longer hold.
pub(super) fn restore(checkpoint: &Path, dir: &Path, epoch: &Epoch) -> Result<(), OpenError> {
    let _lock = FolderLock::take(dir)?;
    if dir.join("db").exists() {
        return Err(OpenError::Occupied { dir: dir.to_owned() });
    }
    let making = dir.join("db.restoring");
    remove(&making)?;
    // What it says is of another store.
    Watermark::open(dir)?
        .note(0)
        .map_err(io("write", &dir.join("commits")))?;
    copy_files(checkpoint, &making)?;
    let engine = Engine::open(&making).map_err(|error| explain(checkpoint, error))?;
    check_schema(checkpoint, &engine)?;
    write(dir, &engine, &Writes::from([epoch_write(epoch)]))?;
    drop(engine);
    put_in_place(dir, &making)
}

/// Whether there is no store; anything but a whole one or nothing is refused.
fn is_absent(db: &Path) -> Result<bool, OpenError> {
    if db.join("CURRENT").exists() {
        return Ok(false);
    }
    let entries = match fs::read_dir(db) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(true),
        Err(error) => return Err(io("read", db)(error)),
    };
    let mut names: Vec<String> = entries
        .flatten()
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    match names.into_iter().next() {
        Some(file) => Err(OpenError::Remnants {
            dir: db.to_owned(),
            file,
        }),
        None => fs::remove_dir(db).map(|()| true).map_err(io("remove", db)),
    }
}

fn epoch_write(epoch: &Epoch) -> ((Family, super::super::view::Key), Option<Bytes>) {
    (
        (Family::Meta, meta::epoch()),
        Some(Bytes::copy_from_slice(epoch.as_str().as_bytes())),
    )
}

fn write(dir: &Path, engine: &Engine, writes: &Writes) -> Result<(), OpenError> {
    engine
        .write(writes, &[], true)
        .map_err(|error| explain(dir, error))
}

fn check_schema(dir: &Path, engine: &Engine) -> Result<(), OpenError> {
    let bytes = engine
        .get(Family::Meta, &meta::schema())
        .map_err(|error| unreadable(dir, &error))?;
    let schema = bytes
        .as_deref()
        .and_then(|bytes| bytes.try_into().ok())
        .map(u32::from_be_bytes);
    match schema {
        Some(SCHEMA) => Ok(()),
        Some(newer) if newer > SCHEMA => Err(OpenError::TooNew {
            dir: dir.to_owned(),
            found: format!("layout {newer}"),
            known: SCHEMA,
        }),
        _ => Err(OpenError::Damaged {
            dir: dir.to_owned(),
            reason: "it does not say its layout".into(),
        }),
    }
}

fn read_epoch(dir: &Path, engine: &Engine) -> Result<Epoch, OpenError> {
    let bytes = engine
        .get(Family::Meta, &meta::epoch())
        .map_err(|error| unreadable(dir, &error))?;
    let epoch = bytes
        .as_deref()
        .and_then(|bytes| Epoch::parse(std::str::from_utf8(bytes).ok()?));
    epoch.ok_or_else(|| OpenError::Damaged {
        dir: dir.to_owned(),
        reason: "it does not say its epoch".into(),
    })
}

/// Renames a finished store to its place; durable when it returns.
fn put_in_place(dir: &Path, made: &Path) -> Result<(), OpenError> {
    let db = dir.join("db");
    // The names of its files first: the rename must not be on the disk before them.
    sync_folder(made)?;
    fs::rename(made, &db).map_err(io("rename to", &db))?;
    sync_folder(dir)
}

fn sync_folder(dir: &Path) -> Result<(), OpenError> {
    File::open(dir)
        .and_then(|dir| dir.sync_all())
        .map_err(io("sync", dir))
}

fn remove(dir: &Path) -> Result<(), OpenError> {
    match fs::remove_dir_all(dir) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(io("remove", dir)(error)),
        _ => Ok(()),
    }
}

fn copy_files(from: &Path, to: &Path) -> Result<(), OpenError> {
    if !from.join("CURRENT").exists() {
        let error = io::Error::new(io::ErrorKind::NotFound, "it holds no backup of a mailbox store");
        return Err(io("restore from", from)(error));
    }
    fs::create_dir_all(to).map_err(io("create", to))?;
    for entry in fs::read_dir(from).map_err(io("read", from))? {
        let entry = entry.map_err(io("read", from))?;
        let (source, target) = (entry.path(), to.join(entry.file_name()));
        let copied = fs::copy(&source, &target).and_then(|_| File::open(&target)?.sync_all());
        copied.map_err(io("copy", &source))?;
    }
    Ok(())
}

pub(super) fn explain(dir: &Path, error: EngineError) -> OpenError {
    let dir = dir.to_owned();
    match error {
        EngineError::Locked(_) => OpenError::Locked { dir },
        EngineError::Unknown(names) => OpenError::TooNew {
            dir,
            found: format!("with column families {names}"),
            known: SCHEMA,
        },
        EngineError::Corrupt(reason) => OpenError::Damaged { dir, reason },
        EngineError::Failed(reason) => OpenError::Io {
            action: "open the mailbox store in",
            path: dir,
            source: io::Error::other(reason),
        },
    }
}

pub(super) fn unreadable(dir: &Path, error: &StoreError) -> OpenError {
    OpenError::Damaged {
        dir: dir.to_owned(),
        reason: error.to_string(),
    }
}

#[cfg(test)]
mod tests;
