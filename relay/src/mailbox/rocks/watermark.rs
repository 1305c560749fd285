//! How much is on the disk, told by another file than the database.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use super::open_error::{OpenError, io as io_error};

/// How many batches are known to be on the disk, kept outside of the database.
///
/// A damaged record in the middle of a log ends its replay like a torn one at the end, without an error. The
/// number in this file tells the two apart: a database with fewer batches has lost what was acknowledged.
#[derive(Debug)]
pub(super) struct Watermark {
    file: File,
    noted: AtomicU64,
}

impl Watermark {
    pub(super) fn open(dir: &Path) -> Result<Self, OpenError> {
        let path = dir.join("commits");
        let file = File::options()
            .create(true)
            .truncate(false)
            .read(true)
            .write(true)
            .open(&path);
        let file = file.map_err(io_error("open", &path))?;
        let mut bytes = [0; 16];
        // Shorter or not its own complement: never written, or torn in the writing. It tells nothing then.
        let noted = match file.read_exact_at(&mut bytes, 0) {
            Ok(()) => count_of(bytes),
            Err(_) => 0,
        };
        Ok(Self {
            file,
            noted: AtomicU64::new(noted),
        })
    }

    /// Batches known to be on the disk.
    pub(super) fn noted(&self) -> u64 {
        self.noted.load(Relaxed)
    }

    /// Notes that `count` batches are on the disk.
    pub(super) fn note(&self, count: u64) -> io::Result<()> {
        if self.noted() == count {
            return Ok(());
        }
        let [mut bytes, complement] = [count.to_be_bytes().to_vec(), (!count).to_be_bytes().to_vec()];
        bytes.extend(complement);
        self.file.write_all_at(&bytes, 0)?;
        self.file.sync_data()?;
        self.noted.store(count, Relaxed);
        Ok(())
    }
}

/// The count, if its complement follows it.
fn count_of(bytes: [u8; 16]) -> u64 {
    let (count, complement) = bytes.split_at(8);
    let number = |bytes: &[u8]| {
        bytes
            .iter()
            .fold(0, |number, byte| (number << 8) | u64::from(*byte))
    };
    let (count, complement) = (number(count), number(complement));
    if count == !complement { count } else { 0 }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn it_reads_back_and_a_torn_one_tells_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let noted = || Watermark::open(dir.path()).unwrap().noted();
        assert_eq!(noted(), 0);
        Watermark::open(dir.path()).unwrap().note(77).unwrap();
        assert_eq!(noted(), 77);
        let path = dir.path().join("commits");
        let whole = fs::read(&path).unwrap();
        let mut torn = whole.clone();
        torn[7] ^= 1;
        fs::write(&path, torn).unwrap();
        assert_eq!(noted(), 0);
        fs::write(&path, &whole[..9]).unwrap();
        assert_eq!(noted(), 0);
    }

    #[test]
    fn what_could_not_be_written_is_not_noted() {
        let dir = tempfile::tempdir().unwrap();
        drop(Watermark::open(dir.path()).unwrap());
        let watermark = Watermark {
            file: File::open(dir.path().join("commits")).unwrap(),
            noted: AtomicU64::new(0),
        };
        for _again in 0..2 {
            assert!(watermark.note(77).is_err(), "the file is open for reading only");
            assert_eq!(watermark.noted(), 0);
        }
    }
}
