//! Everything that names RocksDB: opening, the column families with their tuning, batch, get, scan,
//! checkpoint.
//!
//! The crate is tied to the library it was written for (Debian's 7.8, see `docs/decisions`); another pair of
//! the two is a change of this file alone.
//!
//! Durability: every synced batch is in the write-ahead log and on the disk before [`Engine::write`] returns;
//! the log is replayed up to its first torn record and not beyond (point in time). There is no
//! `manual_wal_flush`, no unordered write and no recycling of logs. Idle families would pin old logs for
//! ever: `max_total_wal_size` flushes them. RocksDB's own check for missing logs
//! (`track_and_verify_wals_in_manifest`) is not in this pair's C interface; the store keeps a count of its
//! own instead.

use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use rocksdb::checkpoint::Checkpoint;
use rocksdb::perf::{PerfStatsLevel, set_perf_stats};
use rocksdb::{
    BlockBasedOptions, BoundColumnFamily, Cache, ColumnFamilyDescriptor, DB, DBCompressionType,
    DBRecoveryMode, ErrorKind, LogLevel, Options, ReadOptions, SliceTransform, WriteBatch, WriteOptions,
};

use crate::mailbox::StoreError;
use crate::mailbox::keys;
use crate::mailbox::view::{Family, Key, Span, View, Visit, Writes};

const MIB: usize = 1024 * 1024;

/// How one column family is kept.
struct Tuning {
    family: Family,
    name: &'static str,
    /// What is written before it goes to a file.
    write_buffer: usize,
    /// Leading bytes that scans stay within; they get a bloom filter of their own.
    prefix: Option<usize>,
    /// Values of 4 KiB and more go to blob files, which compaction does not rewrite.
    blobs: bool,
}

/// All column families. Nothing is compressed: envelopes are ciphertext, and the rest is hashes.
const CATALOGUE: [Tuning; 9] = [
    Tuning {
        family: Family::Meta,
        name: "meta",
        write_buffer: MIB,
        prefix: None,
        blobs: false,
    },
    Tuning {
        family: Family::Message,
        name: "message",
        write_buffer: 32 * MIB,
        prefix: Some(16),
        blobs: true,
    },
    Tuning {
        family: Family::Mailbox,
        name: "mailbox",
        write_buffer: 8 * MIB,
        prefix: None,
        blobs: false,
    },
    Tuning {
        family: Family::Sender,
        name: "sender",
        write_buffer: 8 * MIB,
        prefix: None,
        blobs: false,
    },
    Tuning {
        family: Family::Attempt,
        name: "attempt",
        write_buffer: 8 * MIB,
        prefix: None,
        blobs: false,
    },
    Tuning {
        family: Family::Expiry,
        name: "expiry",
        write_buffer: 8 * MIB,
        prefix: None,
        blobs: false,
    },
    Tuning {
        family: Family::Dedup,
        name: "dedup",
        write_buffer: 16 * MIB,
        prefix: None,
        blobs: false,
    },
    Tuning {
        family: Family::Dead,
        name: "dead",
        write_buffer: 8 * MIB,
        prefix: Some(16),
        blobs: true,
    },
    Tuning {
        family: Family::Status,
        name: "status",
        write_buffer: 16 * MIB,
        prefix: Some(36),
        blobs: false,
    },
];

/// RocksDB insists on this one; it stays empty.
const DEFAULT_FAMILY: &str = "default";

/// Blocks of files kept in memory, for all families together.
const BLOCK_CACHE_BYTES: usize = 32 * MIB;
/// Unflushed writes in memory, for all families together.
const WRITE_BUFFERS_BYTES: usize = 96 * MIB;
/// Logs beyond this make the families flush that hold them back. It is also what a start after a crash has to
/// replay, at about 60 MB/s on a small machine.
const WAL_BYTES_MAX: u64 = 64 * 1024 * 1024;
/// Open files; the rest of the process has its own.
const OPEN_FILES_MAX: i32 = 512;
/// Values from this size on are blobs.
const BLOB_BYTES_MIN: u64 = 4 * 1024;
/// Bits of bloom filter per key: one false hit in a hundred.
const BLOOM_BITS: f64 = 10.0;
/// Part of a write buffer that holds its bloom filter.
const MEMTABLE_BLOOM_RATIO: f64 = 0.02;

/// What RocksDB said.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum EngineError {
    /// Another process (or another store of this one) has the folder open.
    #[error("the folder is in use: {0}")]
    Locked(String),
    /// The folder holds column families that this version does not know.
    #[error("unknown column families: {0}")]
    Unknown(String),
    /// A checksum or a structure is wrong.
    #[error("{0}")]
    Corrupt(String),
    /// Anything else, mostly I/O.
    #[error("{0}")]
    Failed(String),
}

impl EngineError {
    /// Sorts what RocksDB said. It has no kind of its own for a folder in use, which it tells by the name of its lock.
    fn of(kind: &ErrorKind, text: String) -> Self {
        match kind {
            ErrorKind::Corruption => Self::Corrupt(text),
            ErrorKind::IOError if text.contains("/LOCK:") => Self::Locked(text),
            _ => Self::Failed(text),
        }
    }
}

impl From<rocksdb::Error> for EngineError {
    fn from(error: rocksdb::Error) -> Self {
        let kind = error.kind();
        Self::of(&kind, error.into_string())
    }
}

impl From<EngineError> for StoreError {
    fn from(error: EngineError) -> Self {
        match error {
            EngineError::Corrupt(text) => Self::Corrupt(text.into()),
            other => Self::Unavailable(other.to_string().into()),
        }
    }
}

/// Has RocksDB count nothing on this thread: it counts every comparison of two keys, and nobody asks.
pub(crate) fn count_nothing() {
    set_perf_stats(PerfStatsLevel::Disable);
}

/// An open database.
pub(crate) struct Engine {
    db: DB,
}

impl std::fmt::Debug for Engine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Engine").field("path", &self.db.path()).finish()
    }
}

impl Engine {
    /// Makes a new database in `dir`, which must not hold one.
    pub(crate) fn create(dir: &Path) -> Result<Self, EngineError> {
        let mut options = database_options();
        options.create_if_missing(true);
        options.create_missing_column_families(true);
        options.set_error_if_exists(true);
        Self::with_options(&options, dir)
    }

    /// Opens the database in `dir`; never makes one.
    pub(crate) fn open(dir: &Path) -> Result<Self, EngineError> {
        let mut options = database_options();
        let there = DB::list_cf(&options, dir)?;
        let known =
            |name: &String| name == DEFAULT_FAMILY || CATALOGUE.iter().any(|tuning| tuning.name == name);
        let unknown: Vec<String> = there.into_iter().filter(|name| !known(name)).collect();
        if !unknown.is_empty() {
            return Err(EngineError::Unknown(unknown.join(", ")));
        }
        options.create_missing_column_families(true);
        Self::with_options(&options, dir)
    }

    fn with_options(options: &Options, dir: &Path) -> Result<Self, EngineError> {
        let cache = Cache::new_lru_cache(BLOCK_CACHE_BYTES)?;
        let families = CATALOGUE
            .iter()
            .map(|tuning| ColumnFamilyDescriptor::new(tuning.name, family_options(tuning, &cache)));
        Ok(Self {
            db: DB::open_cf_descriptors(options, dir, families)?,
        })
    }

    fn handle(&self, family: Family) -> Result<Arc<BoundColumnFamily<'_>>, EngineError> {
        CATALOGUE
            .iter()
            .find(|tuning| tuning.family == family)
            .and_then(|tuning| self.db.cf_handle(tuning.name))
            .ok_or_else(|| EngineError::Failed(format!("column family {family:?} is not open")))
    }

    /// Commits a batch: all of it or nothing. With `sync` it is on the disk when this returns.
    pub(crate) fn write(
        &self,
        writes: &Writes,
        drops: &[(Family, Span)],
        sync: bool,
    ) -> Result<(), EngineError> {
        let mut batch = WriteBatch::default();
        for (family, span) in drops {
            batch.delete_range_cf(
                &self.handle(*family)?,
                span.from.as_slice(),
                span.until.as_slice(),
            );
        }
        let mut current = None;
        for ((family, key), value) in writes {
            let handle = match current.take() {
                Some((of, handle)) if of == *family => handle,
                _ => self.handle(*family)?,
            };
            match value {
                Some(value) => batch.put_cf(&handle, key.as_slice(), value),
                None => batch.delete_cf(&handle, key.as_slice()),
            }
            current = Some((*family, handle));
        }
        let mut options = WriteOptions::default();
        options.set_sync(sync);
        Ok(self.db.write_opt(batch, &options)?)
    }

    /// Brings all writes from the logs into files, so that the next opening has nothing to replay.
    pub(crate) fn flush(&self) -> Result<(), EngineError> {
        CATALOGUE
            .iter()
            .try_for_each(|tuning| Ok(self.db.flush_cf(&self.handle(tuning.family)?)?))
    }

    /// Rewrites all files without what was deleted. Slow, and it needs some space itself.
    pub(crate) fn compact(&self) -> Result<(), EngineError> {
        self.flush()?;
        for tuning in &CATALOGUE {
            self.db
                .compact_range_cf(&self.handle(tuning.family)?, None::<&[u8]>, None::<&[u8]>);
        }
        Ok(())
    }

    /// Gives the disk back what a dropped range held, where whole files lie in it; compaction does the rest.
    pub(crate) fn reclaim(&self, family: Family, span: &Span) -> Result<(), EngineError> {
        let handle = self.handle(family)?;
        Ok(self
            .db
            .delete_file_in_range_cf(&handle, span.from.as_slice(), span.until.as_slice())?)
    }

    /// The last key in a span.
    pub(crate) fn last(&self, family: Family, span: &Span) -> Result<Option<Vec<u8>>, EngineError> {
        let mut options = ReadOptions::default();
        options.set_total_order_seek(true);
        let mut cursor = self.db.raw_iterator_cf_opt(&self.handle(family)?, options);
        cursor.seek_for_prev(span.until.as_slice());
        if cursor.key().is_some_and(|key| key == span.until.as_slice()) {
            cursor.prev();
        }
        cursor.status()?;
        Ok(cursor
            .key()
            .filter(|key| *key >= span.from.as_slice())
            .map(<[u8]>::to_vec))
    }

    /// A consistent copy in `dir`, which must not exist; files are linked where the file system allows it.
    pub(crate) fn checkpoint(&self, dir: &Path) -> Result<(), EngineError> {
        Ok(Checkpoint::new(&self.db)?.create_checkpoint(dir)?)
    }

    /// Visits a whole family from a key on, across all prefixes.
    pub(crate) fn walk(&self, family: Family, from: &[u8], visit: Visit<'_>) -> Result<(), EngineError> {
        let mut options = ReadOptions::default();
        options.set_total_order_seek(true);
        let mut cursor = self.db.raw_iterator_cf_opt(&self.handle(family)?, options);
        cursor.seek(from);
        while let Some((key, value)) = cursor.item() {
            if visit(key, value) == ControlFlow::Break(()) {
                return Ok(());
            }
            cursor.next();
        }
        Ok(cursor.status()?)
    }

    fn scan_family(&self, family: Family, span: &Span, visit: Visit<'_>) -> Result<(), EngineError> {
        let mut options = ReadOptions::default();
        options.set_iterate_upper_bound(span.until.as_slice());
        let mut cursor = self.db.raw_iterator_cf_opt(&self.handle(family)?, options);
        cursor.seek(span.from.as_slice());
        while let Some((key, value)) = cursor.item() {
            if visit(key, value) == ControlFlow::Break(()) {
                return Ok(());
            }
            cursor.next();
        }
        Ok(cursor.status()?)
    }
}

impl View for Engine {
    fn get(&self, family: Family, key: &Key) -> Result<Option<Bytes>, StoreError> {
        let read = || Ok(self.db.get_cf(&self.handle(family)?, key.as_slice())?);
        read()
            .map(|value| value.map(Bytes::from))
            .map_err(|error: EngineError| error.into())
    }

    fn exists(&self, family: Family, key: &Key) -> Result<bool, StoreError> {
        let read = || {
            Ok(self
                .db
                .get_pinned_cf(&self.handle(family)?, key.as_slice())?
                .is_some())
        };
        read().map_err(|error: EngineError| error.into())
    }

    fn scan(&self, family: Family, span: &Span, visit: Visit<'_>) -> Result<(), StoreError> {
        // RocksDB takes an upper bound below the start amiss.
        if span.from >= span.until {
            return Ok(());
        }
        Ok(self.scan_family(family, span, visit)?)
    }
}

fn database_options() -> Options {
    let mut options = Options::default();
    options.set_paranoid_checks(true);
    options.set_wal_recovery_mode(DBRecoveryMode::PointInTime);
    options.set_max_total_wal_size(WAL_BYTES_MAX);
    options.set_db_write_buffer_size(WRITE_BUFFERS_BYTES);
    options.set_max_open_files(OPEN_FILES_MAX);
    options.set_max_background_jobs(2);
    // Files are synced as they grow: one big sync at the end of a compaction would hold up the log's.
    options.set_bytes_per_sync(MIB as u64);
    options.set_log_level(LogLevel::Warn);
    options.set_max_log_file_size(MIB);
    options.set_keep_log_file_num(4);
    options.set_stats_dump_period_sec(0);
    options
}

fn family_options(tuning: &Tuning, cache: &Cache) -> Options {
    let mut table = BlockBasedOptions::default();
    table.set_block_cache(cache);
    table.set_bloom_filter(BLOOM_BITS, false);
    table.set_format_version(5);
    table.set_cache_index_and_filter_blocks(true);
    table.set_pin_l0_filter_and_index_blocks_in_cache(true);
    let mut options = Options::default();
    options.set_block_based_table_factory(&table);
    options.set_write_buffer_size(tuning.write_buffer);
    options.set_compression_type(DBCompressionType::None);
    options.set_level_compaction_dynamic_level_bytes(true);
    options.set_memtable_prefix_bloom_ratio(MEMTABLE_BLOOM_RATIO);
    options.set_memtable_whole_key_filtering(true);
    if let Some(bytes) = tuning.prefix {
        options.set_prefix_extractor(SliceTransform::create_fixed_prefix(bytes));
    }
    if tuning.blobs {
        options.set_enable_blob_files(true);
        options.set_min_blob_size(BLOB_BYTES_MIN);
        options.set_blob_compression_type(DBCompressionType::None);
        options.set_enable_blob_gc(true);
        // Mail is short-lived: half of the oldest blobs may be moved to free the dead ones among them.
        options.set_blob_gc_age_cutoff(0.5);
        options.set_blob_gc_force_threshold(0.5);
    }
    options
}

/// The last sequence number that a mailbox's messages show, whatever its counters say.
pub(crate) fn last_seq(
    engine: &Engine,
    mailbox: &crate::mailbox::MailboxId,
) -> Result<Option<u64>, EngineError> {
    let key = engine.last(Family::Message, &keys::messages_from(mailbox, 0))?;
    Ok(key.and_then(|key| keys::seq_of(&key)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_in_use_only_where_its_lock_says_so() {
        let of = |text: &str| EngineError::of(&ErrorKind::IOError, text.to_owned());
        for text in [
            "IO error: While lock file: /data/store/db/LOCK: Resource temporarily unavailable",
            "IO error: lock hold by current process, acquire time 1 acquiring thread 2: /data/store/db/LOCK: No locks available",
        ] {
            assert_eq!(of(text), EngineError::Locked(text.to_owned()));
        }
        let full = "IO error: No space left on device: While appending to file: /mnt/block-storage/db/000012.log: No space left on device";
        assert_eq!(of(full), EngineError::Failed(full.to_owned()));
    }
}
