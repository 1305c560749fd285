//! Whether the index can go on from where it stands, or must begin anew.

use std::fs;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};

/// Remembers, across processes, which change was the last when the index was begun: what was deleted later, the index will
/// read of, however long it takes to get there.
#[derive(Debug)]
pub(super) struct Standing {
    file: Option<PathBuf>,
    /// 0 where nothing is known.
    begun_at: AtomicU64,
}

impl Standing {
    pub(super) fn open(file: Option<PathBuf>) -> Self {
        // What cannot be read is not known: then the index may begin anew once more than it must.
        let text = file.as_ref().and_then(|file| fs::read_to_string(file).ok());
        let begun_at = text.and_then(|text| text.trim().parse().ok()).unwrap_or(0);
        Self {
            file,
            begun_at: AtomicU64::new(begun_at),
        }
    }

    /// Whether an index that holds the changes up to `applied` lacks some that the source no longer tells: deletions before
    /// `complete_from`, or a history that the source does not have.
    pub(super) fn is_lost(&self, applied: u64, latest: u64, complete_from: u64) -> bool {
        let knows_from = applied.max(self.begun_at.load(Ordering::Acquire));
        applied > 0 && (latest < applied || complete_from > knows_from)
    }

    /// The index is empty, and the source has changes up to `latest`.
    pub(super) fn begin(&self, latest: u64) -> std::io::Result<()> {
        self.begun_at.store(latest, Ordering::Release);
        match &self.file {
            Some(file) => fs::write(file, latest.to_string()),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_index_is_lost_when_it_cannot_know_what_was_deleted() {
        let standing = Standing::open(None);
        assert!(!standing.is_lost(0, 0, 0) && !standing.is_lost(0, 90, 70));
        assert!(!standing.is_lost(70, 90, 70) && standing.is_lost(69, 90, 70));
        assert!(standing.is_lost(91, 90, 0));
        standing.begin(75).unwrap();
        assert!(!standing.is_lost(5, 90, 70) && standing.is_lost(5, 90, 76));
    }

    #[test]
    fn it_is_remembered() {
        let dir = tempfile::tempdir().unwrap();
        let open = || Standing::open(Some(dir.path().join("begun")));
        open().begin(75).unwrap();
        assert!(!open().is_lost(5, 90, 70));
        fs::write(dir.path().join("begun"), "?").unwrap();
        assert!(open().is_lost(5, 90, 70));
    }
}
