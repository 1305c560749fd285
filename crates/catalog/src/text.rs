//! The full-text list of the catalog: which listings say what is looked for, best first.
//!
//! The index is derived from the store. It keeps, with every commit, the last change that is in it, so that after an end at
//! any moment the store's changes are taken up from there. An index made by another version of the fields or of the analysis
//! is thrown away; so is one that cannot be read.

mod analysis;
mod bits;
mod browse;
mod document;
mod expand;
mod explain;
mod facets;
mod filter;
mod named;
mod plan;
mod scan;
mod schema;
mod terms;
mod view;

use std::fs::{self, File, TryLockError};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tantivy::directory::MmapDirectory;
use tantivy::indexer::IndexWriterOptions;
use tantivy::merge_policy::LogMergePolicy;
use tantivy::{Index, IndexReader, IndexWriter, ReloadPolicy, Term};

use crate::error::CatalogError;
use crate::limits::{TEXT_SMALL_PART, TEXT_WRITER_BYTES_MIN};
use crate::numbers::NUMBER_MAX;
use crate::source::Change;

pub use self::browse::Browsed;
pub use self::explain::Matched;
pub use self::facets::{FacetCount, Facets};
pub use self::named::Named;
use self::schema::{Fields, column};
pub use self::view::{TextHit, TextHits, TextView};

/// How the index is kept.
#[derive(Debug, Clone)]
pub struct TextOptions {
    /// Bytes that changes may take in memory before they are written to files; at least [`TEXT_WRITER_BYTES_MIN`].
    pub writer_bytes: usize,
}

impl Default for TextOptions {
    fn default() -> Self {
        Self {
            writer_bytes: 2 * TEXT_WRITER_BYTES_MIN,
        }
    }
}

/// A full-text index with one writer, in a folder or in memory.
pub struct TextIndex {
    index: Index,
    reader: IndexReader,
    fields: Arc<Fields>,
    /// Made with the first change: an idle index takes no memory and no thread for it.
    writer: Mutex<Option<IndexWriter>>,
    /// No listing in the index has a higher number than this.
    highest: AtomicU64,
    applied: AtomicU64,
    writer_bytes: usize,
    /// Keeps other processes out of the folder; let go when the file is closed.
    _lock: Option<File>,
}

impl std::fmt::Debug for TextIndex {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TextIndex")
            .field("applied", &self.applied())
            .finish_non_exhaustive()
    }
}

impl TextIndex {
    /// Opens the index in this folder, which is its alone; makes it where there is none, or none of this version. Without a
    /// folder it is kept in memory.
    ///
    /// # Errors
    /// The folder is in use by another process, or cannot be read or written.
    pub fn open(dir: Option<&Path>, options: &TextOptions) -> Result<Self, CatalogError> {
        let fields = Arc::new(Fields::new());
        let lock = dir.map(lock).transpose()?;
        let index = match dir {
            Some(dir) => open_in(dir, &fields)?,
            None => Index::create_in_ram(fields.schema.clone()),
        };
        index.tokenizers().register(terms::NAME, terms::Terms);
        let applied = index
            .load_metas()?
            .payload
            .and_then(|payload| payload.parse().ok())
            .unwrap_or(0);
        let reader = index
            .reader_builder()
            .reload_policy(ReloadPolicy::Manual)
            .try_into()?;
        Ok(Self {
            highest: AtomicU64::new(highest(&reader)?),
            index,
            reader,
            fields,
            writer: Mutex::new(None),
            applied: AtomicU64::new(applied),
            writer_bytes: options.writer_bytes.max(TEXT_WRITER_BYTES_MIN),
            _lock: lock,
        })
    }

    /// The last change that is in the index for good; 0 when there is none.
    pub fn applied(&self) -> u64 {
        self.applied.load(Ordering::Acquire)
    }

    /// Takes up changes, in their order, and commits. They are in every view from then on; before, they are in none.
    ///
    /// # Errors
    /// Nothing of it is in the index then, and [`TextIndex::applied`] says so.
    pub fn apply(&self, changes: &[Change]) -> Result<(), CatalogError> {
        let Some(last) = changes.iter().map(|change| change.seq).max() else {
            return Ok(());
        };
        self.write(last.max(self.applied()), |writer, fields| {
            for change in changes {
                if change.number > NUMBER_MAX {
                    return Err(CatalogError::Text(format!(
                        "the number {} of a listing is too high",
                        change.number
                    )));
                }
                // What is new takes nobody's place. A deletion, even of nothing, opens every part of the index.
                if self.highest.fetch_max(change.number, Ordering::AcqRel) >= change.number {
                    writer.delete_term(Term::from_field_u64(fields.number, change.number));
                }
                if let Some(entry) = &change.entry {
                    let document = document::document(fields, entry);
                    writer.add_document(document.map_err(|error| CatalogError::Text(error.to_string()))?)?;
                }
            }
            Ok(())
        })
    }

    /// Takes everything out; no change is applied then.
    ///
    /// # Errors
    /// As [`TextIndex::apply`].
    pub fn clear(&self) -> Result<(), CatalogError> {
        self.write(0, |writer, _| Ok(writer.delete_all_documents().map(drop)?))
    }

    /// What is searched now: later changes do not show in it.
    pub fn view(&self) -> TextView {
        TextView::new(self.reader.searcher(), Arc::clone(&self.fields))
    }

    /// Takes up what was merged in the background since the last change; cheap when nothing was.
    ///
    /// # Errors
    /// The files cannot be read.
    pub fn refresh(&self) -> Result<(), CatalogError> {
        Ok(self.reader.reload()?)
    }

    /// Writes and commits; on a failure the writer and all it had are dropped.
    fn write(
        &self,
        applied: u64,
        act: impl FnOnce(&mut IndexWriter, &Fields) -> Result<(), CatalogError>,
    ) -> Result<(), CatalogError> {
        let mut guard = self.lock_writer();
        let mut writer = match guard.take() {
            Some(writer) => writer,
            None => self.new_writer()?,
        };
        act(&mut writer, &self.fields)?;
        let mut commit = writer.prepare_commit()?;
        commit.set_payload(&applied.to_string());
        commit.commit()?;
        *guard = Some(writer);
        // Who sees how far it is finds what is there by then.
        self.reader.reload()?;
        self.applied.store(applied, Ordering::Release);
        Ok(())
    }

    fn lock_writer(&self) -> MutexGuard<'_, Option<IndexWriter>> {
        self.writer.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn new_writer(&self) -> Result<IndexWriter, CatalogError> {
        let options = IndexWriterOptions::builder()
            .memory_budget_per_thread(self.writer_bytes)
            .num_worker_threads(1)
            .num_merge_threads(1)
            .build();
        let writer: IndexWriter = self.index.writer_with_options(options)?;
        let mut policy = LogMergePolicy::default();
        policy.set_min_num_segments(MERGED_AT_ONCE_MIN);
        policy.set_min_layer_size(TEXT_SMALL_PART);
        policy.set_del_docs_ratio_before_merge(DELETED_SHARE_MAX);
        writer.set_merge_policy(Box::new(policy));
        Ok(writer)
    }

    /// Merges all parts into one, and waits for it.
    #[cfg(test)]
    fn merge(&self) {
        let mut guard = self.lock_writer();
        let mut writer = guard.take().unwrap_or_else(|| self.new_writer().unwrap());
        let segments = self.index.searchable_segment_ids().unwrap();
        if segments.len() > 1
            || self
                .reader
                .searcher()
                .segment_readers()
                .iter()
                .any(tantivy::SegmentReader::has_deletes)
        {
            writer.merge(&segments).wait().unwrap();
        }
        *guard = Some(writer);
        self.reader.reload().unwrap();
    }
}

/// Parts of like size that are merged into one.
const MERGED_AT_ONCE_MIN: usize = 8;

/// The share of deleted listings from which a part is written anew.
const DELETED_SHARE_MAX: f32 = 0.3;

impl From<tantivy::TantivyError> for CatalogError {
    fn from(error: tantivy::TantivyError) -> Self {
        Self::Text(error.to_string())
    }
}

/// The highest number of a listing in the index; 0 where there is none.
fn highest(reader: &IndexReader) -> tantivy::Result<u64> {
    let mut highest = 0;
    for segment in reader.searcher().segment_readers() {
        let numbers = segment.fast_fields().column_opt::<u64>(column::NUMBER)?;
        highest = highest.max(numbers.map_or(0, |numbers| numbers.max_value()));
    }
    Ok(highest)
}

/// Keeps the folder for this process until the file is closed.
fn lock(dir: &Path) -> Result<File, CatalogError> {
    fs::create_dir_all(dir)?;
    let file = File::options()
        .create(true)
        .truncate(false)
        .write(true)
        .open(dir.join("lock"))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => {
            Err(CatalogError::Text("another process uses its folder".to_owned()))
        }
        Err(TryLockError::Error(error)) => Err(error.into()),
    }
}

/// The folder of this version in the folder of the index. The version is in its name, so that one is never taken for another.
fn versioned(dir: &Path) -> PathBuf {
    dir.join(format!("{PREFIX}{}.{}", schema::VERSION, analysis::VERSION))
}

const PREFIX: &str = "v";

fn open_in(dir: &Path, fields: &Fields) -> Result<Index, CatalogError> {
    let current = versioned(dir);
    remove_others(dir, &current)?;
    fs::create_dir_all(&current)?;
    match open_or_create(&current, fields) {
        Ok(index) => Ok(index),
        Err(error) => {
            tracing::warn!(%error, "the full-text index cannot be read and is built anew");
            fs::remove_dir_all(&current)?;
            fs::create_dir_all(&current)?;
            Ok(open_or_create(&current, fields)?)
        }
    }
}

fn open_or_create(dir: &Path, fields: &Fields) -> tantivy::Result<Index> {
    let index = Index::open_or_create(MmapDirectory::open(dir)?, fields.schema.clone())?;
    // Only reading it shows that its files are whole.
    let reader: IndexReader = index
        .reader_builder()
        .reload_policy(ReloadPolicy::Manual)
        .try_into()?;
    drop(reader);
    Ok(index)
}

/// Removes indexes of other versions.
fn remove_others(dir: &Path, current: &Path) -> std::io::Result<()> {
    for entry in fs::read_dir(dir)? {
        let path = entry?.path();
        let name = path
            .file_name()
            .and_then(|name| name.to_str())
            .unwrap_or_default();
        let is_version = name
            .strip_prefix(PREFIX)
            .is_some_and(|version| version.starts_with(|first: char| first.is_ascii_digit()));
        if is_version && path != current && path.is_dir() {
            fs::remove_dir_all(&path)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
