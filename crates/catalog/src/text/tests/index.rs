//! The index on disk: what it keeps, and what becomes of it after an end at any moment.

use std::fs;

use tantivy::{IndexWriter, Term};

use crate::entry::{AttributeValue, Entry};
use crate::numbers::NUMBER_MAX;
use crate::source::Change;
use crate::text::{Matched, TextIndex, TextOptions, document, versioned};

use super::{attribute, change, entry, found, memory, names};

fn open(dir: &std::path::Path) -> TextIndex {
    TextIndex::open(Some(dir), &TextOptions::default()).unwrap()
}

#[test]
fn a_listing_comes_back_as_it_was() {
    let mut listing = attribute(
        attribute(entry(7, "Ein Name"), "a", AttributeValue::Int(-5)),
        "b",
        AttributeValue::Bool(false),
    );
    listing = attribute(listing, "c", AttributeValue::Text("x=y\u{1f}\"".to_owned()));
    let listing = Entry {
        description: "mit \0 allem".to_owned(),
        lang: Some("de-AT".to_owned()),
        tags: vec!["eins".to_owned(), "zwei".to_owned()],
        category: Some("C".to_owned()),
        brand: Some("B".to_owned()),
        price_text: Some("12.50".to_owned()),
        currency: Some("EUR".to_owned()),
        available: Some(false),
        expires_at: Some(aip_protocol::time::Timestamp::MAX),
        ..listing
    };
    let index = super::index_of(vec![listing.clone(), entry(8, "other")]);
    let view = index.view();
    assert_eq!(view.entry(7), Some(listing.clone()));
    assert_eq!(
        (
            view.number_of(&listing.id),
            view.number_of("lst_none"),
            view.entry(9)
        ),
        (Some(7), None, None)
    );
}

#[test]
fn the_last_change_is_known_after_a_restart() {
    let dir = tempfile::tempdir().unwrap();
    let index = open(dir.path());
    assert_eq!(index.applied(), 0);
    index
        .apply(&[change(entry(1, "red apple")), change(entry(2, "green pear"))])
        .unwrap();
    index.apply(&[]).unwrap();
    index
        .apply(&[Change {
            seq: 9,
            number: 1,
            entry: None,
        }])
        .unwrap();
    drop(index);
    let index = open(dir.path());
    assert_eq!(
        (index.applied(), index.view().len(), found(&index, "pear")),
        (9, 1, vec![2])
    );
    index.clear().unwrap();
    assert_eq!((index.applied(), index.view().len()), (0, 0));
    drop(index);
    assert_eq!(open(dir.path()).applied(), 0);
}

#[test]
fn what_was_not_committed_at_the_end_is_asked_for_again() {
    let dir = tempfile::tempdir().unwrap();
    let index = open(dir.path());
    index.apply(&[change(entry(1, "red apple"))]).unwrap();
    // As if the process ended between writing the changes and committing them: files are there, the commit is not.
    let mut writer: IndexWriter = index.lock_writer().take().unwrap();
    writer.delete_term(Term::from_field_u64(index.fields.number, 1));
    writer
        .add_document(document::document(&index.fields, &entry(2, "green pear")).unwrap())
        .unwrap();
    let mut prepared = writer.prepare_commit().unwrap();
    prepared.set_payload("2");
    std::mem::forget(prepared);
    drop(writer);
    drop(index);
    let index = open(dir.path());
    assert_eq!(
        (index.applied(), found(&index, "apple"), found(&index, "pear")),
        (1, vec![1], vec![])
    );
    index
        .apply(&[
            change(entry(2, "green pear")),
            Change {
                seq: 3,
                number: 1,
                entry: None,
            },
        ])
        .unwrap();
    assert_eq!(
        (index.applied(), found(&index, "apple"), found(&index, "pear")),
        (3, vec![], vec![2])
    );
}

#[test]
fn taking_the_same_changes_up_twice_changes_nothing() {
    let index = names(&["red apple", "green pear"]);
    index
        .apply(&[change(entry(1, "red apple")), change(entry(2, "green pear"))])
        .unwrap();
    assert_eq!(
        (index.view().len(), index.applied(), found(&index, "apple")),
        (2, 2, vec![1])
    );
}

#[test]
fn a_refused_batch_leaves_nothing_behind() {
    let index = names(&["red apple"]);
    let number = NUMBER_MAX + 1;
    let bad = [
        change(entry(2, "green pear")),
        Change {
            seq: 3,
            number,
            entry: Some(entry(number, "plum")),
        },
    ];
    assert!(index.apply(&bad).is_err());
    assert_eq!((index.applied(), index.view().len()), (1, 1));
    index.apply(&[change(entry(4, "blue plum"))]).unwrap();
    assert_eq!((found(&index, "pear"), found(&index, "plum")), (vec![], vec![4]));
}

#[test]
fn an_index_of_another_version_is_built_anew() {
    let dir = tempfile::tempdir().unwrap();
    let index = open(dir.path());
    index.apply(&[change(entry(1, "red apple"))]).unwrap();
    drop(index);
    let current = versioned(dir.path());
    fs::rename(&current, dir.path().join("v0.9")).unwrap();
    fs::write(dir.path().join("kept.txt"), "somebody's").unwrap();
    let index = open(dir.path());
    assert_eq!((index.applied(), index.view().len()), (0, 0));
    assert!(!dir.path().join("v0.9").exists() && dir.path().join("kept.txt").exists());
}

#[test]
fn an_index_that_cannot_be_read_is_built_anew() {
    let damages: [fn(&std::path::Path); 3] = [
        |dir| fs::write(dir.join("meta.json"), "{ not json").unwrap(),
        |dir| {
            for file in fs::read_dir(dir).unwrap().map(|file| file.unwrap().path()) {
                if file
                    .extension()
                    .is_some_and(|ending| ending == "idx" || ending == "term")
                {
                    fs::remove_file(file).unwrap();
                }
            }
        },
        |dir| {
            for file in fs::read_dir(dir).unwrap().map(|file| file.unwrap().path()) {
                if file.extension().is_some_and(|ending| ending == "fast") {
                    fs::write(file, "cut").unwrap();
                }
            }
        },
    ];
    for damage in damages {
        let dir = tempfile::tempdir().unwrap();
        let index = open(dir.path());
        index.apply(&[change(entry(1, "red apple"))]).unwrap();
        drop(index);
        damage(&versioned(dir.path()));
        let index = open(dir.path());
        assert_eq!((index.applied(), index.view().len()), (0, 0));
        index.apply(&[change(entry(1, "red apple"))]).unwrap();
        assert_eq!(found(&index, "apple"), [1]);
    }
}

#[test]
fn a_folder_is_used_by_one_at_a_time() {
    let dir = tempfile::tempdir().unwrap();
    let index = open(dir.path());
    assert!(TextIndex::open(Some(dir.path()), &TextOptions::default()).is_err());
    drop(index);
    open(dir.path());
}

#[test]
fn a_view_stays_as_it_was_taken() {
    let index = names(&["red apple"]);
    let view = index.view();
    index
        .apply(&[
            Change {
                seq: 2,
                number: 1,
                entry: None,
            },
            change(entry(3, "green apple")),
        ])
        .unwrap();
    assert_eq!(
        (
            super::search(&view, "apple").hits[0].number,
            found(&index, "apple")
        ),
        (1, vec![3])
    );
}

#[test]
fn an_empty_index_answers() {
    let index = memory();
    let view = index.view();
    assert!(found(&index, "apple").is_empty() && view.is_empty() && view.entry(1).is_none());
    assert_eq!(index.view().len(), 0);
}

#[test]
fn it_is_explained_which_words_are_where() {
    let listing = Entry {
        description: "Plays records; restaurants love it".to_owned(),
        brand: Some("Sony".to_owned()),
        tags: vec!["vinyl".to_owned()],
        ..entry(1, "Turntable PS-LX350H")
    };
    let index = super::index_of(vec![listing]);
    let matched = index
        .view()
        .explain(1, "sony record player pslx350h restaur")
        .unwrap();
    let of = |field, terms: &[&str]| Matched {
        field,
        terms: terms.iter().map(ToString::to_string).collect(),
    };
    assert_eq!(
        matched,
        [
            of("name", &["pslx350h"]),
            of("description", &["record", "restaur"]),
            of("brand", &["sony"])
        ]
    );
    assert!(index.view().explain(2, "sony").is_none());
}
