//! What the store stands on: the space of its disk, and the act of committing. A seam, so that a full disk
//! and a failed write can be had without one.

use std::fmt::Debug;
use std::io;
use std::path::Path;

use crate::limits;

/// Space of a file system.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Space {
    /// Used and free together, as far as we may use it.
    pub total_bytes: u64,
    /// Free for us.
    pub free_bytes: u64,
}

/// The disk under a store.
pub trait Disk: Debug + Send + Sync {
    /// The space of the file system that holds `dir`.
    fn space(&self, dir: &Path) -> io::Result<Space>;

    /// Runs the write of one batch. Tests let it fail, before or after.
    fn commit(&self, write: &mut dyn FnMut() -> Result<(), String>) -> Result<(), String> {
        write()
    }
}

/// The real disk.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemDisk;

impl Disk for SystemDisk {
    fn space(&self, dir: &Path) -> io::Result<Space> {
        let stat = rustix::fs::statvfs(dir)?;
        let used = stat.f_blocks.saturating_sub(stat.f_bfree);
        Ok(Space {
            total_bytes: used.saturating_add(stat.f_bavail).saturating_mul(stat.f_frsize),
            free_bytes: stat.f_bavail.saturating_mul(stat.f_frsize),
        })
    }
}

/// When a disk counts as full: appends are refused, reads and acks go on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DiskGuard {
    /// Full when so many hundredths are used; 0 switches it off.
    pub used_percent_max: u8,
    /// Full when fewer bytes are free; 0 switches it off.
    pub free_bytes_min: u64,
}

impl Default for DiskGuard {
    fn default() -> Self {
        Self {
            used_percent_max: limits::DISK_USED_PERCENT_MAX,
            free_bytes_min: limits::DISK_FREE_BYTES_MIN,
        }
    }
}

impl DiskGuard {
    /// Lets everything pass.
    pub const OFF: Self = Self {
        used_percent_max: 0,
        free_bytes_min: 0,
    };

    /// Whether a disk with this space counts as full.
    pub fn is_full(&self, space: Space) -> bool {
        let used = u128::from(space.total_bytes.saturating_sub(space.free_bytes));
        let allowed = u128::from(space.total_bytes) * u128::from(self.used_percent_max);
        (self.used_percent_max > 0 && used * 100 >= allowed) || space.free_bytes < self.free_bytes_min
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn space(total_bytes: u64, free_bytes: u64) -> Space {
        Space {
            total_bytes,
            free_bytes,
        }
    }

    #[test]
    fn full_from_the_percentage_or_below_the_free_bytes() {
        let guard = DiskGuard {
            used_percent_max: 90,
            free_bytes_min: 100,
        };
        assert!(!guard.is_full(space(10_000, 1_001)));
        assert!(guard.is_full(space(10_000, 1_000)));
        assert!(guard.is_full(space(500, 99)));
        assert!(!guard.is_full(space(500, 100)));
    }

    #[test]
    fn zero_switches_a_check_off() {
        assert!(!DiskGuard::OFF.is_full(space(10_000, 0)));
        assert!(
            !DiskGuard {
                used_percent_max: 0,
                free_bytes_min: 10
            }
            .is_full(space(10_000, 10))
        );
        assert!(
            DiskGuard {
                used_percent_max: 90,
                free_bytes_min: 0
            }
            .is_full(space(10_000, 0))
        );
    }

    #[test]
    fn the_real_disk_has_some_space() {
        let space = SystemDisk.space(Path::new("/")).unwrap();
        assert!(space.total_bytes > 0 && space.free_bytes <= space.total_bytes);
    }
}
