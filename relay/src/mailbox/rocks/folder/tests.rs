//! Stores of other versions.

use super::*;

fn set_schema(db: &Path, schema: u32) {
    let engine = Engine::open(db).unwrap();
    let value = Bytes::copy_from_slice(&schema.to_be_bytes());
    let writes = Writes::from([((Family::Meta, meta::schema()), Some(value))]);
    engine.write(&writes, &[], true).unwrap();
}

#[test]
fn row_79_a_store_of_a_newer_version_is_refused_and_left_alone() {
    let dir = tempfile::tempdir().unwrap();
    drop(open(dir.path(), &Epoch::from_random(1)).unwrap());
    set_schema(&dir.path().join("db"), SCHEMA + 1);
    let refused = open(dir.path(), &Epoch::from_random(2)).unwrap_err();
    assert!(matches!(refused, OpenError::TooNew { known: SCHEMA, .. }));
    assert!(refused.to_string().contains("newer version"), "{refused}");
    set_schema(&dir.path().join("db"), SCHEMA);
    let opened = open(dir.path(), &Epoch::from_random(3)).unwrap();
    assert_eq!(opened.epoch, Epoch::from_random(1), "readable as before");
}

#[test]
fn a_store_that_does_not_say_its_layout_is_damaged() {
    let dir = tempfile::tempdir().unwrap();
    drop(open(dir.path(), &Epoch::from_random(1)).unwrap());
    let engine = Engine::open(&dir.path().join("db")).unwrap();
    let writes = Writes::from([((Family::Meta, meta::schema()), None)]);
    engine.write(&writes, &[], true).unwrap();
    drop(engine);
    let refused = open(dir.path(), &Epoch::from_random(2));
    assert!(matches!(refused, Err(OpenError::Damaged { .. })));
}
