//! Where the built programs are.

use std::path::PathBuf;

/// The path of a built program of this workspace, in the profile that the caller runs in.
///
/// # Panics
/// When it was not built; `make test` builds it before the tests.
#[must_use]
pub fn binary(name: &str) -> PathBuf {
    let mut folder = std::env::current_exe().unwrap_or_default();
    folder.pop();
    if folder.ends_with("deps") {
        folder.pop();
    }
    let path = folder.join(name);
    assert!(
        path.exists(),
        "{} is not built: run `cargo build --workspace --bins` first",
        path.display()
    );
    path
}
