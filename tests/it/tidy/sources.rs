//! What every source file keeps: it introduces itself, stays small, and leaves nothing loose.

use super::{files, root, shown};

const LINES_MAX: usize = 500;
const MAIN_LINES_MAX: usize = 60;

#[test]
fn every_file_introduces_itself() {
    for path in files(&root(), "rs") {
        let text = std::fs::read_to_string(&path).expect("a source file");
        let first = text
            .lines()
            .find(|l| !l.trim().is_empty() && !l.starts_with("#!"))
            .unwrap_or_default();
        assert!(
            first.starts_with("//!") && first.len() > 8,
            "{} does not open with //!",
            shown(&path)
        );
    }
}

#[test]
fn files_stay_small() {
    for path in files(&root(), "rs") {
        let lines = std::fs::read_to_string(&path)
            .expect("a source file")
            .lines()
            .count();
        let most = if path.ends_with("src/main.rs") {
            MAIN_LINES_MAX
        } else {
            LINES_MAX
        };
        assert!(
            lines <= most,
            "{} has {lines} lines, {most} are allowed: split it",
            shown(&path)
        );
    }
}

#[test]
fn there_is_no_mod_rs() {
    for path in files(&root(), "rs") {
        assert!(
            path.file_name().is_some_and(|n| n != "mod.rs"),
            "{}: name the file after its module",
            shown(&path)
        );
    }
}

#[test]
fn nothing_is_left_loose() {
    // Written in two halves, so that this list does not find itself.
    let loose = [
        ["to", "do!("],
        ["unimple", "mented!("],
        ["db", "g!("],
        ["#[ig", "nore"],
        ["FIX", "ME"],
        ["XX", "X:"],
    ];
    for path in files(&root(), "rs") {
        let text = std::fs::read_to_string(&path).expect("a source file");
        for parts in &loose {
            let needle = parts.concat();
            assert!(!text.contains(&needle), "{} contains {needle}", shown(&path));
        }
    }
}

#[test]
fn every_table_has_an_owner() {
    let readme = std::fs::read_to_string(root().join("migrations/README.md")).expect("migrations/README.md");
    let mut tables = 0;
    for path in files(&root().join("migrations"), "sql") {
        let text = std::fs::read_to_string(&path)
            .expect("a migration")
            .to_lowercase();
        for part in text.split("create table").skip(1) {
            let name = part
                .trim_start()
                .trim_start_matches("if not exists")
                .split_whitespace()
                .next()
                .unwrap_or("");
            let name = name.trim_matches(|c: char| !c.is_alphanumeric() && c != '_');
            assert!(
                readme.contains(&format!("`{name}`")),
                "migrations/README.md does not say who owns {name}"
            );
            tables += 1;
        }
    }
    assert!(tables > 0, "no table found");
}

#[test]
fn every_room_has_a_place_on_the_map() {
    let map = std::fs::read_to_string(root().join("docs/ARCHITECTURE.md")).expect("docs/ARCHITECTURE.md");
    for path in files(&root(), "toml")
        .iter()
        .filter(|p| p.ends_with("Cargo.toml"))
    {
        let folder = shown(path.parent().expect("a folder"));
        if !folder.is_empty() && folder != "fuzz" {
            assert!(
                map.contains(&format!("`{folder}`")),
                "docs/ARCHITECTURE.md does not mention `{folder}`"
            );
        }
    }
}
