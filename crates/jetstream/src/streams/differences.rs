//! Where a stream's settings differ from what this room needs.
//!
//! What an operator may choose is left alone: placement, compression, description, more copies, longer times.

use std::collections::BTreeSet;
use std::fmt;

use async_nats::jetstream::stream::{Config, PersistenceMode};

/// One difference.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Difference {
    /// Which setting, as the NATS tools call it.
    pub(crate) setting: &'static str,
    pub(crate) found: String,
    pub(crate) wanted: String,
    /// It can be changed without losing a message.
    pub(crate) safe: bool,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            setting,
            found,
            wanted,
            ..
        } = self;
        write!(f, "{setting} is {found}, and must be {wanted}")
    }
}

/// Collects differences.
struct Compare(Vec<Difference>);

impl Compare {
    fn note(
        &mut self,
        setting: &'static str,
        fits: bool,
        safe: bool,
        found: impl fmt::Debug,
        wanted: impl fmt::Debug,
    ) {
        if !fits {
            self.0.push(Difference {
                setting,
                found: format!("{found:?}"),
                wanted: format!("{wanted:?}"),
                safe,
            });
        }
    }

    fn same<T: PartialEq + fmt::Debug>(&mut self, setting: &'static str, safe: bool, found: &T, wanted: &T) {
        self.note(setting, found == wanted, safe, found, wanted);
    }
}

/// What must change in `found`.
pub(crate) fn differences(found: &Config, wanted: &Config) -> Vec<Difference> {
    let mut compare = Compare(Vec::new());
    fixed(&mut compare, found, wanted);
    adjustable(&mut compare, found, wanted);
    compare.0
}

/// What cannot be changed, or not without thought.
fn fixed(compare: &mut Compare, found: &Config, wanted: &Config) {
    let set = |config: &Config| config.subjects.iter().cloned().collect::<BTreeSet<_>>();
    let (has, needs) = (set(found), set(wanted));
    if let Some(odd) = has.symmetric_difference(&needs).next() {
        let told = |subjects: &BTreeSet<String>| {
            let with = if subjects.contains(odd) { "with" } else { "without" };
            format!("{} {with} {odd}", subjects.len())
        };
        compare.0.push(Difference {
            setting: "subjects",
            found: told(&has),
            wanted: told(&needs),
            safe: false,
        });
    }
    compare.same("retention", false, &found.retention, &wanted.retention);
    compare.same("storage", false, &found.storage, &wanted.storage);
    compare.same("sealed", false, &found.sealed, &false);
    compare.same("deny_purge", false, &found.deny_purge, &false);
    compare.same("mirror", false, &found.mirror.is_some(), &false);
    compare.same(
        "subject_transform",
        false,
        &found.subject_transform.is_some(),
        &false,
    );
    let sourced = found.sources.as_ref().is_some_and(|sources| !sources.is_empty());
    compare.same("sources", false, &sourced, &false);
    let lax = found.persist_mode == Some(PersistenceMode::Async);
    compare.note(
        "persist_mode",
        !lax,
        false,
        found.persist_mode,
        PersistenceMode::Default,
    );
    // Messages beyond such a limit would be refused, or dropped, without regard to mailboxes.
    let unlimited = |limit: i64| limit <= 0;
    compare.note(
        "max_bytes",
        unlimited(found.max_bytes),
        false,
        found.max_bytes,
        -1,
    );
    compare.note(
        "max_msgs",
        unlimited(found.max_messages),
        false,
        found.max_messages,
        -1,
    );
    let per_subject = (found.max_messages_per_subject, wanted.max_messages_per_subject);
    if let (held, 1) = per_subject {
        compare.note("max_msgs_per_subject", held == 1, false, held, 1);
    }
}

/// What can be changed at any time: only ever towards keeping more.
fn adjustable(compare: &mut Compare, found: &Config, wanted: &Config) {
    compare.same("no_ack", true, &found.no_ack, &false);
    compare.same("allow_direct", true, &found.allow_direct, &wanted.allow_direct);
    compare.same("republish", true, &found.republish, &wanted.republish);
    compare.same("discard", true, &found.discard, &wanted.discard);
    compare.same(
        "discard_new_per_subject",
        true,
        &found.discard_new_per_subject,
        &wanted.discard_new_per_subject,
    );
    compare.note(
        "num_replicas",
        found.num_replicas >= wanted.num_replicas,
        true,
        found.num_replicas,
        wanted.num_replicas,
    );
    compare.note(
        "duplicate_window",
        found.duplicate_window >= wanted.duplicate_window,
        true,
        found.duplicate_window,
        wanted.duplicate_window,
    );
    let long = found.max_age.is_zero() || (!wanted.max_age.is_zero() && found.max_age >= wanted.max_age);
    compare.note("max_age", long, true, found.max_age, wanted.max_age);
    let large = found.max_message_size <= 0 || found.max_message_size >= wanted.max_message_size;
    compare.note(
        "max_msg_size",
        large,
        true,
        found.max_message_size,
        wanted.max_message_size,
    );
    if wanted.max_messages_per_subject > 1 {
        let held = found.max_messages_per_subject;
        let many = held <= 0 || held >= wanted.max_messages_per_subject;
        compare.note(
            "max_msgs_per_subject",
            many,
            true,
            held,
            wanted.max_messages_per_subject,
        );
    } else if wanted.max_messages_per_subject < 0 {
        let held = found.max_messages_per_subject;
        compare.note("max_msgs_per_subject", held <= 0, true, held, -1);
    }
}

/// `found` with what must change, and all else as it is.
pub(crate) fn mended(found: &Config, wanted: &Config) -> Config {
    let per_subject = match (found.max_messages_per_subject, wanted.max_messages_per_subject) {
        (held, wanted) if held > 0 && wanted > 1 => held.max(wanted),
        (held, wanted) if held <= 0 && wanted > 1 => held,
        (_, wanted) => wanted,
    };
    Config {
        no_ack: false,
        allow_direct: wanted.allow_direct,
        republish: wanted.republish.clone(),
        discard: wanted.discard,
        discard_new_per_subject: wanted.discard_new_per_subject,
        num_replicas: found.num_replicas.max(wanted.num_replicas),
        duplicate_window: found.duplicate_window.max(wanted.duplicate_window),
        max_age: if found.max_age.is_zero() || wanted.max_age.is_zero() {
            std::time::Duration::ZERO
        } else {
            found.max_age.max(wanted.max_age)
        },
        max_message_size: if found.max_message_size <= 0 {
            found.max_message_size
        } else {
            found.max_message_size.max(wanted.max_message_size)
        },
        max_messages_per_subject: per_subject,
        ..found.clone()
    }
}

#[cfg(test)]
mod tests;
