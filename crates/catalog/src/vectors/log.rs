//! The file of a space: a header that names the embedder, then records, each with a checksum.
//!
//! All that is in it can be made again, so nothing waits for the disk: after a crash the file is good up to a record, and what
//! follows is cut off. A position is written after the vectors that it vouches for, so it never survives them.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufReader, BufWriter, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use super::TextHash;
use super::code::Code;
use super::rows::{Row, Rows};

/// What a file begins with; its last figure is the version of the form.
const MAGIC: &[u8; 8] = b"AIPVEC\x00\x01";
const VECTOR: u8 = 1;
const GONE: u8 = 2;
const MEAN: u8 = 3;
const SETTLED: u8 = 4;
/// Bytes of a checksum.
const SUM: usize = 4;

/// An open file that ends with a whole record.
#[derive(Debug)]
pub(super) struct Log {
    path: PathBuf,
    header: Vec<u8>,
    file: File,
    len: u64,
    /// Records in the file.
    records: u64,
}

/// What a file held.
#[derive(Debug)]
pub(super) struct Held {
    pub rows: Rows,
    pub is_centred: bool,
    pub settled: u64,
}

impl Log {
    /// Opens the file of the embedder `id` in `dir`, or begins a new one where there is none of this form.
    pub(super) fn open(dir: &Path, id: &str, dimensions: usize) -> io::Result<(Self, Held)> {
        fs::create_dir_all(dir)?;
        let path = dir.join(format!("{id}.vec"));
        let header = header(id, dimensions);
        let mut file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(&path)?;
        let mut found = vec![0; header.len()];
        let is_ours = file.read_exact(&mut found).is_ok() && found == header;
        let mut log = Self {
            len: u64::try_from(header.len()).unwrap_or(u64::MAX),
            path,
            header,
            file,
            records: 0,
        };
        if !is_ours {
            log.begin()?;
        }
        let held = log.read(dimensions)?;
        log.cut()?;
        Ok((log, held))
    }

    fn begin(&mut self) -> io::Result<()> {
        self.file.set_len(0)?;
        self.file.seek(SeekFrom::Start(0))?;
        self.file.write_all(&self.header)
    }

    /// Reads records up to the end, or to the first that is not whole.
    fn read(&mut self, dimensions: usize) -> io::Result<Held> {
        let mut held = Held::new(dimensions);
        self.file.seek(SeekFrom::Start(self.len))?;
        let mut reader = BufReader::with_capacity(1 << 20, &self.file);
        let mut record = Vec::new();
        while next(&mut reader, dimensions, &mut record)? && held.take(&record).is_some() {
            self.records += 1;
            self.len += u64::try_from(record.len()).unwrap_or(u64::MAX);
        }
        Ok(held)
    }

    /// Leaves nothing behind the last whole record.
    fn cut(&mut self) -> io::Result<()> {
        self.file.set_len(self.len)?;
        self.file.seek(SeekFrom::Start(self.len)).map(drop)
    }

    /// Appends records. A failure leaves the file as it was.
    pub(super) fn append(&mut self, records: &Records) -> io::Result<()> {
        if let Err(error) = self.file.write_all(&records.bytes) {
            self.cut()?;
            return Err(error);
        }
        self.len += u64::try_from(records.bytes.len()).unwrap_or(u64::MAX);
        self.records += records.count;
        Ok(())
    }

    /// Whether more than half of the file, and more than a little, says nothing any more.
    pub(super) fn is_stale(&self, live: usize) -> bool {
        let live = u64::try_from(live).unwrap_or(u64::MAX);
        self.records > live.saturating_mul(2).saturating_add(1_024)
    }

    pub(super) const fn bytes(&self) -> u64 {
        self.len
    }

    /// Writes the file anew beside itself and takes its place.
    pub(super) fn rewrite(&mut self, rows: &Rows, is_centred: bool, settled: u64) -> io::Result<()> {
        let beside = self.path.with_extension("new");
        let mut writer = BufWriter::with_capacity(1 << 20, File::create(&beside)?);
        writer.write_all(&self.header)?;
        let mut len = u64::try_from(self.header.len()).unwrap_or(u64::MAX);
        let mut count = 0;
        let mut records = Records::default();
        if is_centred {
            records.mean(&rows.mean);
        }
        let mut write = |records: &mut Records| {
            len += u64::try_from(records.bytes.len()).unwrap_or(u64::MAX);
            count += std::mem::take(&mut records.count);
            let written = writer.write_all(&records.bytes);
            records.bytes.clear();
            written
        };
        for row in rows.iter() {
            records.row(row);
            write(&mut records)?;
        }
        records.settled(settled);
        write(&mut records)?;
        let file = writer.into_inner().map_err(io::IntoInnerError::into_error)?;
        file.sync_all()?;
        drop(file);
        fs::rename(&beside, &self.path)?;
        self.file = OpenOptions::new().read(true).write(true).open(&self.path)?;
        (self.len, self.records) = (len, count);
        self.cut()
    }
}

fn header(id: &str, dimensions: usize) -> Vec<u8> {
    let mut header = MAGIC.to_vec();
    header.extend(u32::try_from(dimensions).unwrap_or(u32::MAX).to_le_bytes());
    header.extend(u32::try_from(id.len()).unwrap_or(u32::MAX).to_le_bytes());
    header.extend(id.as_bytes());
    header.extend(crc32fast::hash(&header).to_le_bytes());
    header
}

/// Bytes between kind and checksum; none for a kind that there is not.
const fn payload(kind: u8, dimensions: usize) -> Option<usize> {
    match kind {
        VECTOR => Some(8 + 16 + 4 + dimensions),
        GONE | SETTLED => Some(8),
        MEAN => Some(4 * dimensions),
        _ => None,
    }
}

/// Reads the next record whole, checksum and all. False at the end and at one that is torn.
fn next(reader: &mut impl Read, dimensions: usize, record: &mut Vec<u8>) -> io::Result<bool> {
    let mut fill = |part: &mut [u8]| match reader.read_exact(part) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(false),
        Err(error) => Err(error),
    };
    let mut kind = [0];
    if !fill(&mut kind)? {
        return Ok(false);
    }
    let [kind] = kind;
    let Some(payload) = payload(kind, dimensions) else {
        return Ok(false);
    };
    record.clear();
    record.resize(1 + payload + SUM, 0);
    let Some((first, rest)) = record.split_first_mut() else {
        return Ok(false);
    };
    *first = kind;
    if !fill(rest)? {
        return Ok(false);
    }
    let sum = record.split_last_chunk::<SUM>();
    Ok(sum.is_some_and(|(bytes, sum)| crc32fast::hash(bytes) == u32::from_le_bytes(*sum)))
}

impl Held {
    pub(super) fn new(dimensions: usize) -> Self {
        Self {
            rows: Rows::new(dimensions),
            is_centred: false,
            settled: 0,
        }
    }

    /// None for a record that makes no sense.
    fn take(&mut self, record: &[u8]) -> Option<()> {
        let (kind, rest) = record.split_first()?;
        let (payload, _) = rest.split_last_chunk::<SUM>()?;
        if *kind == MEAN {
            self.is_centred = true;
            let mean = payload.chunks_exact(4).filter_map(|part| part.first_chunk());
            self.rows.mean = mean.map(|part| f32::from_le_bytes(*part)).collect();
            return Some(());
        }
        let (number, rest) = payload.split_first_chunk::<8>()?;
        let number = u64::from_le_bytes(*number);
        match *kind {
            GONE => {
                self.rows.remove(number);
            }
            SETTLED => self.settled = number,
            _ => {
                let (hash, rest) = rest.split_first_chunk::<16>()?;
                let (scale, codes) = rest.split_first_chunk::<4>()?;
                let code = Code {
                    scale: f32::from_le_bytes(*scale),
                    codes: codes.iter().map(|byte| byte.cast_signed()).collect(),
                };
                self.rows.put(number, *hash, &code);
            }
        }
        Some(())
    }
}

/// Records to append.
#[derive(Debug, Default)]
pub(super) struct Records {
    bytes: Vec<u8>,
    count: u64,
}

impl Records {
    pub(super) fn vector(&mut self, number: u64, hash: TextHash, code: &Code) {
        self.row(Row {
            number,
            hash,
            scale: code.scale,
            codes: &code.codes,
        });
    }

    fn row(&mut self, row: Row<'_>) {
        self.record(VECTOR, |bytes| {
            bytes.extend(row.number.to_le_bytes());
            bytes.extend(row.hash);
            bytes.extend(row.scale.to_le_bytes());
            bytes.extend(row.codes.iter().map(|code| code.cast_unsigned()));
        });
    }

    pub(super) fn gone(&mut self, number: u64) {
        self.record(GONE, |bytes| bytes.extend(number.to_le_bytes()));
    }

    pub(super) fn mean(&mut self, mean: &[f32]) {
        self.record(MEAN, |bytes| {
            bytes.extend(mean.iter().flat_map(|value| value.to_le_bytes()));
        });
    }

    pub(super) fn settled(&mut self, seq: u64) {
        self.record(SETTLED, |bytes| bytes.extend(seq.to_le_bytes()));
    }

    fn record(&mut self, kind: u8, write: impl FnOnce(&mut Vec<u8>)) {
        let start = self.bytes.len();
        self.bytes.push(kind);
        write(&mut self.bytes);
        let sum = crc32fast::hash(self.bytes.get(start..).unwrap_or_default());
        self.bytes.extend(sum.to_le_bytes());
        self.count += 1;
    }
}
