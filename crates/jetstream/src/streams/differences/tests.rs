//! Which settings of a stream may differ, and which are mended.

use std::time::Duration;

use async_nats::jetstream::stream::{DiscardPolicy, StorageType};

use super::*;
use crate::config::Options;
use crate::streams::{Names, wanted};

fn mailboxes() -> Config {
    let shards = [0; 256];
    wanted::all(&Names::new("aip"), &Options::default(), &shards)
        .into_iter()
        .next()
        .expect("a stream")
}

fn with(change: impl FnOnce(&mut Config)) -> Vec<(&'static str, bool)> {
    let mut found = mailboxes();
    change(&mut found);
    differences(&found, &mailboxes())
        .iter()
        .map(|difference| (difference.setting, difference.safe))
        .collect()
}

#[test]
fn what_is_wanted_does_not_differ() {
    assert_eq!(with(|_| {}), []);
}

#[test]
fn what_an_operator_may_choose_does_not_differ() {
    let found = with(|config| {
        config.num_replicas = 5;
        config.max_age = Duration::ZERO;
        config.duplicate_window *= 2;
        config.max_messages_per_subject = -1;
        config.max_message_size = -1;
        config.description = Some("ours".to_owned());
    });
    assert_eq!(found, []);
}

#[test]
fn what_loses_nothing_can_be_mended() {
    let change = |config: &mut Config| {
        config.allow_direct = false;
        config.discard = DiscardPolicy::Old;
        config.duplicate_window = Duration::from_mins(2);
        config.max_age = Duration::from_mins(1);
        config.max_message_size = 1_000;
        config.max_messages_per_subject = 10;
        config.republish = None;
        config.description = Some("ours".to_owned());
    };
    let found = with(change);
    assert_eq!(found.len(), 7, "{found:?}");
    assert!(found.iter().all(|(_, safe)| *safe), "{found:?}");
    let mut stream = mailboxes();
    change(&mut stream);
    let mended = mended(&stream, &mailboxes());
    assert_eq!(differences(&mended, &mailboxes()), []);
    assert_eq!(mended.description.as_deref(), Some("ours"));
}

#[test]
fn what_may_lose_messages_is_no_safe_change() {
    for change in [
        (|config| config.subjects = vec!["other.>".to_owned()]) as fn(&mut Config),
        |config| config.storage = StorageType::Memory,
        |config| config.max_bytes = 1_000_000,
        |config| config.max_messages = 1_000,
        |config| config.deny_purge = true,
        |config| config.persist_mode = Some(PersistenceMode::Async),
    ] {
        let found = with(change);
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(!found[0].1, "{found:?}");
    }
}

#[test]
fn a_difference_is_a_sentence() {
    let mut found = mailboxes();
    found.allow_direct = false;
    let differences = differences(&found, &mailboxes());
    assert_eq!(
        differences[0].to_string(),
        "allow_direct is false, and must be true"
    );
    let mut found = mailboxes();
    found.subjects.pop();
    assert_eq!(
        super::differences(&found, &mailboxes())[0].to_string(),
        "subjects is 255 without aip.mb.ff.*, and must be 256 with aip.mb.ff.*"
    );
}
