//! An inbox on disk: a snapshot and a log of what came after it.
//!
//! One record is one line, `checksum json`, appended and synced before [`Inbox::record`] returns. A line that a crash
//! cut short was never acknowledged; it is cut off when the inbox is opened again. After
//! [`crate::limits::INBOX_LOG_RECORDS_MAX`] lines the log is folded into a new snapshot. The snapshot names the
//! generation of its log, so there is no moment at which an old log could be read on top of a new snapshot.
//!
//! A lock file keeps a second process out: two that acknowledge the same mailbox would each see half of it.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use aip_protocol::time::Timestamp;
use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::state::IdText;
use super::{Cursor, Inbox, InboxError, InboxState, MessageKey};
use crate::files;
use crate::limits::INBOX_LOG_RECORDS_MAX;

/// An inbox in a folder of its own.
#[derive(Debug, Clone)]
pub struct FileInbox(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    /// What readers see: only what is durable.
    state: Mutex<InboxState>,
    /// Taken first, and held while the disk works; never by a reader.
    log: Mutex<Log>,
}

#[derive(Debug)]
struct Log {
    folder: PathBuf,
    generation: u64,
    file: File,
    /// Bytes that hold whole lines.
    length: u64,
    records: u64,
    records_max: u64,
    /// After a failed sync nobody knows what is on disk: only opening the inbox again tells.
    broken: bool,
    _lock: File,
}

#[derive(Serialize, Deserialize)]
struct Snapshot {
    format: u32,
    generation: u64,
    state: InboxState,
}

const FORMAT: u32 = 1;

/// A line of the log.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Entry {
    /// Epoch and floor.
    Enter(String, u64),
    /// When (milliseconds since 1970), and what: epoch, sequence number, id.
    Record(i64, Vec<(String, u64, IdText)>),
}

impl Entry {
    fn apply(&self, state: &mut InboxState) {
        match self {
            Self::Enter(epoch, floor) => drop(state.enter(epoch, *floor)),
            Self::Record(at, keys) => {
                for (epoch, seq, id) in keys {
                    let key = MessageKey {
                        cursor: Cursor {
                            epoch: epoch.clone(),
                            seq: *seq,
                        },
                        id: id.0,
                    };
                    state.record(&key, Timestamp::from_unix_millis(*at));
                }
            }
        }
    }
}

impl FileInbox {
    /// Opens the inbox in this folder, or makes it.
    ///
    /// # Errors
    /// [`InboxError::InUse`] when another process has it open; [`InboxError::Corrupt`] when a line other than the last
    /// cannot be read.
    pub fn open(folder: impl AsRef<Path>) -> Result<Self, InboxError> {
        Self::open_with(folder.as_ref(), INBOX_LOG_RECORDS_MAX)
    }

    pub(super) fn open_with(folder: &Path, records_max: u64) -> Result<Self, InboxError> {
        let (log, state) = Log::open(folder, records_max)?;
        Ok(Self(Arc::new(Shared {
            state: Mutex::new(state),
            log: Mutex::new(log),
        })))
    }

    fn state(&self) -> MutexGuard<'_, InboxState> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Appends off the async threads, and shows the change to readers once it is written.
    async fn append(&self, entry: Entry, durable: bool) -> Result<(), InboxError> {
        let shared = Arc::clone(&self.0);
        let written = tokio::task::spawn_blocking(move || {
            let mut log = shared.log.lock().unwrap_or_else(PoisonError::into_inner);
            log.append(&entry, durable)?;
            let snapshot = {
                let mut state = shared.state.lock().unwrap_or_else(PoisonError::into_inner);
                entry.apply(&mut state);
                (log.records >= log.records_max).then(|| state.clone())
            };
            snapshot.map_or(Ok(()), |state| log.fold(state))
        });
        written
            .await
            .map_err(|error| InboxError::Store(Box::new(error)))?
    }
}

#[async_trait]
impl Inbox for FileInbox {
    async fn cursor(&self) -> Result<Option<Cursor>, InboxError> {
        Ok(self.state().cursor())
    }

    async fn enter(&self, epoch: &str, floor: u64) -> Result<(), InboxError> {
        let known = self
            .state()
            .cursor()
            .is_some_and(|cursor| cursor.epoch == epoch && cursor.seq >= floor);
        if known {
            return Ok(());
        }
        // Not synced: the hub says it again, and the next record's sync covers it, in order.
        self.append(Entry::Enter(epoch.to_owned(), floor), false).await
    }

    async fn seen(&self, key: &MessageKey) -> Result<bool, InboxError> {
        Ok(self.state().seen(key))
    }

    async fn record(&self, keys: &[MessageKey], now: Timestamp) -> Result<(), InboxError> {
        let fresh: Vec<_> = {
            let state = self.state();
            let fresh = keys.iter().filter(|key| !state.holds(key));
            fresh
                .map(|key| (key.cursor.epoch.clone(), key.cursor.seq, IdText(key.id)))
                .collect()
        };
        if fresh.is_empty() {
            return Ok(());
        }
        self.append(Entry::Record(now.unix_millis(), fresh), true).await
    }
}

impl Log {
    fn open(folder: &Path, records_max: u64) -> Result<(Self, InboxState), InboxError> {
        files::create_private_folder(folder).map_err(io_error(folder))?;
        let lock = lock(folder)?;
        let Snapshot {
            generation,
            mut state,
            ..
        } = read_snapshot(folder)?;
        remove_other_logs(folder, generation)?;
        let path = log_path(folder, generation);
        let mut file = open_log(&path)?;
        let (length, records) = replay(&path, &mut file, &mut state)?;
        let folder = folder.to_owned();
        Ok((
            Self {
                folder,
                generation,
                file,
                length,
                records,
                records_max,
                broken: false,
                _lock: lock,
            },
            state,
        ))
    }

    fn append(&mut self, entry: &Entry, durable: bool) -> Result<(), InboxError> {
        let path = log_path(&self.folder, self.generation);
        if self.broken {
            let source = io::Error::other("an earlier write failed; open the inbox again");
            return Err(InboxError::Io { path, source });
        }
        let line = encode(entry).map_err(io_error(&path))?;
        if let Err(error) = self.file.write_all(&line) {
            // Half a line in the middle of the log would damage it; if it cannot be cut off, nothing may follow it.
            self.broken = self.file.set_len(self.length).is_err();
            return Err(io_error(&path)(error));
        }
        if durable && let Err(error) = self.file.sync_data() {
            self.broken = true;
            return Err(io_error(&path)(error));
        }
        self.length += line.len() as u64;
        self.records += 1;
        Ok(())
    }

    /// Starts the next generation: its snapshot first, then its empty log. The old log goes last.
    fn fold(&mut self, state: InboxState) -> Result<(), InboxError> {
        let old = log_path(&self.folder, self.generation);
        let generation = self.generation + 1;
        let path = snapshot_path(&self.folder);
        let snapshot = serde_json::to_vec(&Snapshot {
            format: FORMAT,
            generation,
            state,
        });
        let snapshot = snapshot.map_err(|error| io_error(&path)(error.into()))?;
        files::write_atomic(&path, &snapshot).map_err(io_error(&path))?;
        // From here on the old log counts no more, so a failure must stop all writing to it.
        self.broken = true;
        self.file = open_log(&log_path(&self.folder, generation))?;
        (self.generation, self.length, self.records, self.broken) = (generation, 0, 0, false);
        std::fs::remove_file(&old).map_err(io_error(&old))
    }
}

fn io_error(path: &Path) -> impl FnOnce(io::Error) -> InboxError {
    let path = path.to_owned();
    move |source| InboxError::Io { path, source }
}

fn snapshot_path(folder: &Path) -> PathBuf {
    folder.join("snapshot.json")
}

fn log_path(folder: &Path, generation: u64) -> PathBuf {
    folder.join(format!("log.{generation}"))
}

fn lock(folder: &Path) -> Result<File, InboxError> {
    let path = folder.join("lock");
    let file = OpenOptions::new()
        .create(true)
        .truncate(false)
        .write(true)
        .open(&path)
        .map_err(io_error(&path))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(InboxError::InUse(folder.to_owned())),
        Err(TryLockError::Error(source)) => Err(InboxError::Io { path, source }),
    }
}

fn read_snapshot(folder: &Path) -> Result<Snapshot, InboxError> {
    let path = snapshot_path(folder);
    let bytes = match std::fs::read(&path) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Ok(Snapshot {
                format: FORMAT,
                generation: 0,
                state: InboxState::default(),
            });
        }
        Err(source) => return Err(InboxError::Io { path, source }),
    };
    let corrupt = |why: String| InboxError::Corrupt {
        path: path.clone(),
        why,
    };
    let snapshot: Snapshot = serde_json::from_slice(&bytes).map_err(|error| corrupt(error.to_string()))?;
    if snapshot.format != FORMAT {
        return Err(corrupt(format!(
            "format {} was written by another version",
            snapshot.format
        )));
    }
    Ok(snapshot)
}

/// What a crash between two steps of folding left behind.
fn remove_other_logs(folder: &Path, generation: u64) -> Result<(), InboxError> {
    let keep = log_path(folder, generation);
    for entry in std::fs::read_dir(folder).map_err(io_error(folder))? {
        let path = entry.map_err(io_error(folder))?.path();
        let is_log = path
            .file_name()
            .is_some_and(|name| name.as_encoded_bytes().starts_with(b"log."));
        if is_log && path != keep {
            std::fs::remove_file(&path).map_err(io_error(&path))?;
        }
    }
    Ok(())
}

fn open_log(path: &Path) -> Result<File, InboxError> {
    let mut options = OpenOptions::new();
    options.create(true).read(true).append(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let file = options.open(path).map_err(io_error(path))?;
    files::sync_folder_of(path).map_err(io_error(path))?;
    Ok(file)
}

/// Applies every whole line and cuts off what a crash left of the last one. Returns the good length and the lines.
fn replay(path: &Path, file: &mut File, state: &mut InboxState) -> Result<(u64, u64), InboxError> {
    let mut bytes = Vec::new();
    io::Read::read_to_end(file, &mut bytes).map_err(io_error(path))?;
    let (mut length, mut records, mut torn) = (0, 0, false);
    for line in bytes.split_inclusive(|byte| *byte == b'\n') {
        match decode(line) {
            Some(_) if torn => {
                let why =
                    format!("the line after byte {length} cannot be read, and there are good ones behind it");
                return Err(InboxError::Corrupt {
                    path: path.to_owned(),
                    why,
                });
            }
            Some(entry) => {
                entry.apply(state);
                (length, records) = (length + line.len() as u64, records + 1);
            }
            None => torn = true,
        }
    }
    if torn {
        file.set_len(length)
            .and_then(|()| file.sync_all())
            .map_err(io_error(path))?;
    }
    Ok((length, records))
}

fn encode(entry: &Entry) -> io::Result<Vec<u8>> {
    let json = serde_json::to_vec(entry)?;
    let mut line = checksum(&json).into_bytes();
    line.push(b' ');
    line.extend_from_slice(&json);
    line.push(b'\n');
    Ok(line)
}

fn decode(line: &[u8]) -> Option<Entry> {
    let line = line.strip_suffix(b"\n")?;
    let (sum, json) = line.split_at_checked(8)?;
    let json = json.strip_prefix(b" ")?;
    if checksum(json).as_bytes() != sum {
        return None;
    }
    serde_json::from_slice(json).ok()
}

/// The first four bytes of SHA-256, in hexadecimal: enough to tell a torn line.
fn checksum(json: &[u8]) -> String {
    let digest = Sha256::digest(json);
    format!(
        "{:08x}",
        digest.first_chunk().map_or(0, |start| u32::from_be_bytes(*start))
    )
}
