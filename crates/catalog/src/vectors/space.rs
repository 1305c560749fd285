//! The vectors of one embedder: in memory, and in a file that outlives the process.

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard};

use super::code::{Code, QueryCode, weighed};
use super::log::{Held, Log, Records};
use super::rows::Rows;
use super::{Near, TextHash, scan};
use crate::error::CatalogError;
use crate::limits::{EMBEDDER_ID_BYTES_MAX, VECTOR_DIMENSIONS_MAX};
use crate::numbers::NumberSet;

/// A listing's vector.
#[derive(Debug, Clone, PartialEq)]
pub struct NewVector {
    /// The listing's number.
    pub number: u64,
    /// Of the text that was embedded.
    pub hash: TextHash,
    /// Of length 1, or all zero for a text without content: it is kept, and near to nothing.
    pub vector: Vec<f32>,
}

/// All vectors of one embedder.
///
/// Readers go on while the file is written; writing waits for readers that have begun.
#[derive(Debug)]
pub struct Space {
    id: String,
    dimensions: usize,
    rows: RwLock<Rows>,
    // Locked by whoever changes anything, before `rows`.
    writer: Mutex<Writer>,
    // What the writer has come to, for those who must not wait for it: writing the file anew takes seconds.
    settled: AtomicU64,
    bytes: AtomicU64,
}

#[derive(Debug)]
struct Writer {
    log: Option<Log>,
    is_centred: bool,
    settled: u64,
}

impl Space {
    /// Opens the space of the embedder `id` in `dir`; without a folder it lives in memory only. A file of another form, or of
    /// other dimensions, is begun anew; one with a torn end loses that end.
    ///
    /// # Errors
    /// [`CatalogError::Files`]; [`CatalogError::Vectors`] for an id or a number of dimensions that cannot be.
    pub fn open(dir: Option<&Path>, id: &str, dimensions: usize) -> Result<Self, CatalogError> {
        if !is_id(id) {
            return Err(CatalogError::Vectors(format!(
                "`{id}` is no id of an embedder: short, of [a-z0-9._-]"
            )));
        }
        if dimensions == 0 || dimensions > VECTOR_DIMENSIONS_MAX {
            let sentence =
                format!("{id} gives {dimensions} dimensions; 1 to {VECTOR_DIMENSIONS_MAX} are possible");
            return Err(CatalogError::Vectors(sentence));
        }
        let opened = dir.map(|dir| Log::open(dir, id, dimensions)).transpose()?;
        let (log, held) =
            opened.map_or_else(|| (None, Held::new(dimensions)), |(log, held)| (Some(log), held));
        let Held {
            rows,
            is_centred,
            settled,
        } = held;
        Ok(Self {
            id: id.to_owned(),
            dimensions,
            rows: RwLock::new(rows),
            settled: AtomicU64::new(settled),
            bytes: AtomicU64::new(log.as_ref().map_or(0, Log::bytes)),
            writer: Mutex::new(Writer {
                log,
                is_centred,
                settled,
            }),
        })
    }

    /// The files of embedders in `dir` whose ids are not among `kept` are deleted.
    ///
    /// # Errors
    /// [`CatalogError::Files`].
    pub fn forget_others(dir: &Path, kept: &[&str]) -> Result<(), CatalogError> {
        for file in std::fs::read_dir(dir)? {
            let path = file?.path();
            let is_space = path.extension().is_some_and(|end| end == "vec" || end == "new");
            let id = path.file_stem().and_then(|id| id.to_str()).unwrap_or_default();
            if is_space && !kept.contains(&id) {
                std::fs::remove_file(&path)?;
            }
        }
        Ok(())
    }

    /// Whether there is a file of the embedder `id` in `dir`.
    pub fn is_in(dir: &Path, id: &str) -> bool {
        is_id(id) && dir.join(format!("{id}.vec")).is_file()
    }

    /// The embedder's id.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Numbers in each vector.
    pub const fn dimensions(&self) -> usize {
        self.dimensions
    }

    /// How many listings have a vector here.
    pub fn len(&self) -> usize {
        self.read().len()
    }

    /// Whether none has.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bytes of the file.
    pub fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Acquire)
    }

    /// Every listing of a change up to this one has its vector; what came after may.
    pub fn settled(&self) -> u64 {
        self.settled.load(Ordering::Acquire)
    }

    /// The hash of the text that the listing's vector was made of.
    pub fn hash(&self, number: u64) -> Option<TextHash> {
        self.read().get(number).map(|row| row.hash)
    }

    /// The numbers of all that have a vector.
    pub fn numbers(&self) -> NumberSet {
        self.read().iter().map(|row| row.number).collect()
    }

    /// Whether codes are counted from where the embedder's vectors lie, see [`Space::centre`].
    pub fn is_centred(&self) -> bool {
        self.writer().is_centred
    }

    /// Counts codes from the mean of these vectors: those of [`PROBES`](super::PROBES), so that it is the same in every
    /// process and codes hang on nothing but embedder and text. Once there are rows, nothing changes any more.
    ///
    /// # Errors
    /// [`CatalogError::Files`].
    pub fn centre(&self, vectors: &[Vec<f32>]) -> Result<(), CatalogError> {
        let mut writer = self.writer();
        let is_sound = |vector: &&Vec<f32>| {
            vector.len() == self.dimensions && vector.iter().all(|part| part.is_finite())
        };
        let sound: Vec<&Vec<f32>> = vectors.iter().filter(is_sound).collect();
        let Ok(count) = u16::try_from(sound.len()) else {
            return Ok(());
        };
        if count == 0 || writer.is_centred || self.read().len() > 0 {
            return Ok(());
        }
        let mut mean = vec![0.0_f32; self.dimensions];
        for vector in sound {
            mean.iter_mut().zip(vector).for_each(|(sum, part)| *sum += part);
        }
        for sum in &mut mean {
            *sum /= f32::from(count);
        }
        let mut records = Records::default();
        records.mean(&mean);
        self.append(&mut writer, &records)?;
        writer.is_centred = true;
        self.write().mean = mean;
        Ok(())
    }

    /// Keeps vectors, each in place of the one with its number.
    ///
    /// # Errors
    /// [`CatalogError::Files`]: then none of them is kept.
    pub fn put(&self, vectors: &[NewVector]) -> Result<(), CatalogError> {
        let mut writer = self.writer();
        let codes: Vec<Code> = {
            let rows = self.read();
            vectors
                .iter()
                .map(|new| Code::of(&new.vector, &rows.mean))
                .collect()
        };
        let mut records = Records::default();
        for (new, code) in vectors.iter().zip(&codes) {
            records.vector(new.number, new.hash, code);
        }
        self.append(&mut writer, &records)?;
        {
            let mut rows = self.write();
            for (new, code) in vectors.iter().zip(&codes) {
                rows.put(new.number, new.hash, code);
            }
        }
        self.tidy(&mut writer)
    }

    /// Takes vectors away; numbers without one are passed over.
    ///
    /// # Errors
    /// [`CatalogError::Files`]: then all are still there.
    pub fn remove(&self, numbers: &[u64]) -> Result<(), CatalogError> {
        // Nothing to take away is nothing to wait for.
        if numbers.is_empty() {
            return Ok(());
        }
        let mut writer = self.writer();
        let mut records = Records::default();
        let gone: Vec<u64> = {
            let rows = self.read();
            let is_there = |number: &u64| rows.get(*number).is_some();
            numbers.iter().copied().filter(is_there).collect()
        };
        if gone.is_empty() {
            return Ok(());
        }
        for number in &gone {
            records.gone(*number);
        }
        self.append(&mut writer, &records)?;
        {
            let mut rows = self.write();
            for number in gone {
                rows.remove(number);
            }
        }
        self.tidy(&mut writer)
    }

    /// Notes how far the space has come, see [`Space::settled`].
    ///
    /// # Errors
    /// [`CatalogError::Files`].
    pub fn settle(&self, seq: u64) -> Result<(), CatalogError> {
        let mut writer = self.writer();
        if writer.settled == seq {
            return Ok(());
        }
        let mut records = Records::default();
        records.settled(seq);
        self.append(&mut writer, &records)?;
        writer.settled = seq;
        self.settled.store(seq, Ordering::Release);
        self.tidy(&mut writer)
    }

    /// The `depth` listings nearest to the query among those that are admitted, nearest first; equals by number.
    pub fn nearest(&self, query: &[f32], admitted: Option<&NumberSet>, depth: usize) -> Vec<Near> {
        let rows = self.read();
        let query = QueryCode::of(query, &rows.mean, rows.pivot.as_deref());
        query.map_or_else(Vec::new, |query| scan::nearest(&rows, &query, admitted, depth))
    }

    /// The cosine of the query and each of these listings; none for one without a vector.
    pub fn cosines(&self, query: &[f32], numbers: impl IntoIterator<Item = u64>) -> Vec<Option<f32>> {
        let rows = self.read();
        let query = QueryCode::of(query, &rows.mean, rows.pivot.as_deref());
        let cosine = |number| {
            let (query, row) = (query.as_ref()?, rows.get(number)?);
            let weighed = (row.scale >= 0.0).then(|| weighed(query, row.scale, row.codes))?;
            Some(query.cosine(weighed))
        };
        numbers.into_iter().map(cosine).collect()
    }

    fn read(&self) -> RwLockReadGuard<'_, Rows> {
        self.rows.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> std::sync::RwLockWriteGuard<'_, Rows> {
        self.rows.write().unwrap_or_else(PoisonError::into_inner)
    }

    fn append(&self, writer: &mut Writer, records: &Records) -> Result<(), CatalogError> {
        if let Some(log) = &mut writer.log {
            log.append(records)?;
            self.bytes.store(log.bytes(), Ordering::Release);
        }
        Ok(())
    }

    /// Writes the file anew where most of it says nothing any more.
    fn tidy(&self, writer: &mut Writer) -> Result<(), CatalogError> {
        let rows = self.read();
        if let Some(log) = writer.log.as_mut().filter(|log| log.is_stale(rows.len())) {
            log.rewrite(&rows, writer.is_centred, writer.settled)?;
            self.bytes.store(log.bytes(), Ordering::Release);
        }
        Ok(())
    }

    fn writer(&self) -> MutexGuard<'_, Writer> {
        self.writer.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Ids become names of files.
fn is_id(id: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"._-".contains(&byte);
    !id.is_empty() && id.len() <= EMBEDDER_ID_BYTES_MAX && !id.starts_with('.') && id.bytes().all(is_plain)
}
