//! The house rules that no linter knows: layering, sizes, self-introduction, table ownership, licences.

mod dependencies;
mod layering;
mod sources;

use std::path::{Path, PathBuf};

/// The root of the checkout.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .expect("tests/ lies in the root")
        .to_path_buf()
}

/// Every file below `folder` with this extension; build output is left out.
pub(crate) fn files(folder: &Path, extension: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).expect("a readable folder") {
        let path = entry.expect("a readable entry").path();
        let name = path
            .file_name()
            .and_then(|n| n.to_str())
            .unwrap_or_default()
            .to_owned();
        if path.is_dir() {
            if name != "target" && !name.starts_with('.') && name != "data" {
                found.extend(files(&path, extension));
            }
        } else if path.extension().is_some_and(|e| e == extension) {
            found.push(path);
        }
    }
    found.sort();
    found
}

/// The path as a reader knows it.
fn shown(path: &Path) -> String {
    path.strip_prefix(root()).unwrap_or(path).display().to_string()
}
