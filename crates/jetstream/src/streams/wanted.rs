//! The settings that each stream shall have.

use std::time::Duration;

use async_nats::jetstream::stream::{Config, DiscardPolicy, Republish, RetentionPolicy, StorageType};

use super::Names;
use crate::config::Options;
use crate::limits;

/// All streams: those of mailboxes with the shards that `shards` gives them, and the others.
pub(crate) fn all(names: &Names, options: &Options, shards: &[u16]) -> Vec<Config> {
    let mut numbers = shards.to_vec();
    numbers.sort_unstable();
    numbers.dedup();
    let mut streams: Vec<Config> = numbers
        .into_iter()
        .map(|number| mailboxes(names, options, number, shards))
        .collect();
    streams.extend([
        cursors(names, options),
        dead(names, options),
        statuses(names, options),
        expiries(names, options),
        meta(names, options),
    ]);
    streams
}

/// What all streams have in common.
fn base(name: String, subjects: Vec<String>, options: &Options) -> Config {
    Config {
        name,
        subjects,
        retention: RetentionPolicy::Limits,
        storage: StorageType::File,
        num_replicas: usize::from(options.replicas),
        max_messages: -1,
        max_bytes: -1,
        max_messages_per_subject: -1,
        max_message_size: message_bytes_max(options),
        max_consumers: limits::STREAM_CONSUMERS_MAX,
        duplicate_window: limits::DUPLICATE_WINDOW,
        allow_direct: true,
        ..Config::default()
    }
}

fn message_bytes_max(options: &Options) -> i32 {
    i32::try_from(
        options
            .envelope_bytes_max
            .saturating_add(limits::RECORD_OVERHEAD_BYTES_MAX),
    )
    .unwrap_or(i32::MAX)
}

/// The stream of mailboxes number `number`, with the shards that `shards` gives it.
pub(crate) fn mailboxes(names: &Names, options: &Options, number: u16, shards: &[u16]) -> Config {
    let prefix = names.prefix();
    let subjects = (0_u8..=u8::MAX)
        .zip(shards)
        .filter(|(_, stream)| **stream == number)
        .map(|(shard, _)| names.shard_subject(shard))
        .collect();
    Config {
        discard: DiscardPolicy::New,
        discard_new_per_subject: true,
        max_messages_per_subject: limits::SUBJECT_MESSAGES_MAX,
        max_age: Duration::from_secs(options.retention_secs).saturating_add(limits::RETENTION_SLACK),
        republish: Some(Republish {
            source: format!("{prefix}.mb.*.*"),
            destination: format!("{prefix}.live.{{{{wildcard(1)}}}}.{{{{wildcard(2)}}}}"),
            headers_only: true,
        }),
        ..base(names.mailboxes(number), subjects, options)
    }
}

fn cursors(names: &Names, options: &Options) -> Config {
    Config {
        max_messages_per_subject: 1,
        ..base(
            names.cursors(),
            vec![format!("{}.cur.*.*", names.prefix())],
            options,
        )
    }
}

fn dead(names: &Names, options: &Options) -> Config {
    Config {
        max_age: limits::RECORDS_AGE_MAX,
        ..base(names.dead(), vec![format!("{}.dlq.*.*", names.prefix())], options)
    }
}

fn statuses(names: &Names, options: &Options) -> Config {
    Config {
        max_age: limits::RECORDS_AGE_MAX,
        ..base(
            names.statuses(),
            vec![format!("{}.st.*.*", names.prefix())],
            options,
        )
    }
}

fn expiries(names: &Names, options: &Options) -> Config {
    Config {
        max_age: Duration::from_secs(options.retention_secs).saturating_add(limits::RETENTION_SLACK),
        ..base(
            names.expiries(),
            vec![format!("{}.ex.*", names.prefix())],
            options,
        )
    }
}

/// The stream of the store's own records: it must be there before all others.
pub(crate) fn meta(names: &Names, options: &Options) -> Config {
    Config {
        max_messages_per_subject: 1,
        ..base(names.meta(), vec![format!("{}.meta.>", names.prefix())], options)
    }
}
