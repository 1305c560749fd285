//! The index of listings: whether it can be written, and whether it has caught up with the registry.

use std::fs;
use std::io::ErrorKind;
use std::path::Path;

use serde_json::Value;

use super::super::operator::Operator;
use super::Finding;
use crate::config::Settings;
use crate::datadir::DataDir;
use crate::routes::admin::CATALOG_PATH;
use crate::wiring::index_dir;

const MIB: u64 = 1024 * 1024;

/// The folder, whether or not a hub runs.
pub(super) fn folder(settings: &Settings, folder: &DataDir) -> Finding {
    let dir = index_dir(settings, folder);
    let shown = dir.display();
    match fs::metadata(&dir) {
        Err(error) if error.kind() == ErrorKind::NotFound => Finding::Good(format!(
            "there is no index of listings in {shown} yet; the next start makes it from the registry"
        )),
        Err(error) => Finding::Bad(format!(
            "the index of listings in {shown} cannot be reached: {error}"
        )),
        Ok(found) if !found.is_dir() => Finding::Bad(format!(
            "{shown} is no folder: move it away, or name another in search.index_dir"
        )),
        Ok(found) if found.permissions().readonly() => Finding::Bad(format!(
            "the index of listings in {shown} cannot be written: run `chmod u+w {shown}`"
        )),
        Ok(_) => Finding::Good(format!("the index of listings takes {} MiB", size(&dir) / MIB)),
    }
}

/// The bytes of the files in a folder and in the folders in it.
fn size(dir: &Path) -> u64 {
    let entries = |dir: &Path| fs::read_dir(dir).into_iter().flatten().flatten();
    let bytes = |entry: &fs::DirEntry| entry.metadata().map_or(0, |found| found.len());
    entries(dir)
        .map(|entry| {
            let inside: u64 = entries(&entry.path()).map(|inner| bytes(&inner)).sum();
            bytes(&entry) + inside
        })
        .sum()
}

/// What the running hub says of its catalog.
pub(super) async fn running(settings: &Settings, folder: &DataDir) -> Finding {
    let asked = match Operator::running(settings, folder) {
        Ok(operator) => operator.get(CATALOG_PATH).await,
        Err(error) => Err(error),
    };
    match asked {
        Ok(catalog) => finding(&catalog),
        Err(error) => Finding::Doubtful(format!("how the catalog stands is not known: {error:#}")),
    }
}

fn finding(catalog: &Value) -> Finding {
    let count = |member: &str| catalog.get(member).and_then(Value::as_u64).unwrap_or_default();
    let text = format!(
        "the catalog holds {} listings, {} changes behind the registry, {} waiting for their meaning",
        count("documents"),
        count("behind_changes"),
        count("pending_embeddings")
    );
    match catalog.get("is_caught_up").and_then(Value::as_bool) {
        Some(true) => Finding::Good(text),
        _ => Finding::Doubtful(format!(
            "{text}: it is being made, and searches do not find everything yet"
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_folder_is_told_as_it_is() {
        let outside = tempfile::tempdir().unwrap();
        let data = DataDir::create(outside.path().join("data")).unwrap();
        let settings = Settings::default();
        assert!(matches!(folder(&settings, &data), Finding::Good(text) if text.contains("no index")));
        fs::create_dir(data.index()).unwrap();
        fs::write(data.index().join("segment"), vec![0; 3 * 1024 * 1024]).unwrap();
        assert!(matches!(folder(&settings, &data), Finding::Good(text) if text.contains("3 MiB")));
        fs::remove_dir_all(data.index()).unwrap();
        fs::write(data.index(), "").unwrap();
        assert!(matches!(folder(&settings, &data), Finding::Bad(text) if text.contains("search.index_dir")));
    }

    #[test]
    fn a_catalog_that_is_behind_is_told() {
        let good =
            json!({ "documents": 3, "is_caught_up": true, "behind_changes": 0, "pending_embeddings": 1 });
        assert!(matches!(finding(&good), Finding::Good(text) if text.contains("3 listings")));
        let behind = json!({ "documents": 3, "is_caught_up": false, "behind_changes": 7 });
        assert!(matches!(finding(&behind), Finding::Doubtful(text) if text.contains("7 changes behind")));
    }
}
