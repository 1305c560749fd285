//! Small file systems of a test's own. Not every machine allows them; then there is a reason to skip.

use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

/// Why a test cannot run here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Skip(pub String);

impl Skip {
    /// Prints the reason.
    #[expect(clippy::print_stderr, reason = "a test that does not run has to say so")]
    pub fn print(&self, test: &str) {
        eprintln!("{test}: skipped: {}", self.0);
    }
}

/// A mounted file system; unmounted when dropped.
#[derive(Debug)]
pub struct Mount {
    folder: TempDir,
    image: Option<PathBuf>,
    mounted: bool,
}

impl Mount {
    /// A file system in memory that holds `mebibytes`.
    ///
    /// # Errors
    /// Why it cannot be had.
    pub fn tmpfs(mebibytes: u32) -> Result<Self, Skip> {
        let mut mount = Self {
            folder: folder()?,
            image: None,
            mounted: false,
        };
        let size = format!("size={mebibytes}m,mode=0700");
        run("mount", &["-t", "tmpfs", "-o", &size, "tmpfs", &mount.shown()])?;
        mount.mounted = true;
        Ok(mount)
    }

    /// An ext4 in a file, so that its power can be cut.
    ///
    /// # Errors
    /// Why it cannot be had.
    pub fn ext4(mebibytes: u32) -> Result<Self, Skip> {
        let failed = |error: std::io::Error| Skip(error.to_string());
        let folder = folder()?;
        let image = folder.path().join("image");
        let file = std::fs::File::create(&image).map_err(failed)?;
        file.set_len(u64::from(mebibytes) * 1024 * 1024).map_err(failed)?;
        run("mkfs.ext4", &["-q", &image.display().to_string()])?;
        let mut mount = Self {
            folder,
            image: Some(image),
            mounted: false,
        };
        std::fs::create_dir(mount.path()).map_err(failed)?;
        mount.mount_image()?;
        Ok(mount)
    }

    fn mount_image(&mut self) -> Result<(), Skip> {
        let image = self
            .image
            .as_ref()
            .map(|image| image.display().to_string())
            .unwrap_or_default();
        run("mount", &["-o", "loop", &image, &self.shown()])?;
        self.mounted = true;
        Ok(())
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> PathBuf {
        match self.image {
            Some(_) => self.folder.path().join("mounted"),
            None => self.folder.path().to_owned(),
        }
    }

    fn shown(&self) -> String {
        self.path().display().to_string()
    }

    /// Cuts the power: what was not synced is gone, and every write from now on fails. `FS_IOC_SHUTDOWN` with
    /// `FS_SHUTDOWN_FLAGS_NOLOGFLUSH`; perl is on every Debian, and the call needs no C compiler.
    ///
    /// # Errors
    /// The kernel has no such call for this file system.
    pub fn cut_power(&self) -> Result<(), Skip> {
        const CALL: &str = r#"open(my $f, "<", $ARGV[0]) or die $!; my $how = pack("I", 2);
            ioctl($f, 0x8004587d, $how) or die $!;"#;
        let probe = self.path().join("data/lock");
        run("perl", &["-e", CALL, &probe.display().to_string()])
    }

    /// Brings the power back: unmounts and mounts again. Nobody may have a file open.
    ///
    /// # Errors
    /// What the system says.
    pub fn restore_power(&mut self) -> Result<(), Skip> {
        run("umount", &[&self.shown()])?;
        self.mounted = false;
        self.mount_image()
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        if self.mounted {
            // Lazily: a process that was just killed may still hold a file.
            drop(run("umount", &["-l", &self.shown()]));
        }
    }
}

/// Writes zeroes to `file` until `leave` bytes are free beside it; 0 goes on to the very end.
///
/// # Errors
/// The file cannot be made, or nobody tells how much is free.
pub fn fill(file: &Path, leave: u64) -> std::io::Result<()> {
    use std::io::Write as _;
    let step = [0; 8 * 1024];
    let mut target = std::fs::File::create(file)?;
    let free = free_bytes(file).ok_or_else(|| std::io::Error::other("df tells nothing"))?;
    for _ in 0..free.saturating_sub(leave).div_ceil(step.len() as u64) {
        if target.write_all(&step).is_err() {
            break;
        }
    }
    Ok(())
}

/// As `df` says it.
fn free_bytes(path: &Path) -> Option<u64> {
    let output = Command::new("df")
        .args(["-B1", "--output=avail"])
        .arg(path)
        .output()
        .ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    text.lines().nth(1)?.trim().parse().ok()
}

fn folder() -> Result<TempDir, Skip> {
    let made = tempfile::Builder::new().prefix("aip-mount-").tempdir();
    made.map_err(|error| Skip(error.to_string()))
}

fn run(program: &str, arguments: &[&str]) -> Result<(), Skip> {
    let output = Command::new(program)
        .args(arguments)
        .env(
            "PATH",
            "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
        )
        .output();
    let output = output.map_err(|error| Skip(format!("{program} cannot be run: {error}")))?;
    if output.status.success() {
        return Ok(());
    }
    Err(Skip(format!(
        "{program}: {}",
        String::from_utf8_lossy(&output.stderr).trim()
    )))
}
