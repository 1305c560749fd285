//! The changes of streams that a move makes. Each is one change of one stream, and does nothing when it was made.

use async_nats::HeaderMap;
use async_nats::header::NATS_EXPECTED_STREAM;
use async_nats::jetstream::ErrorCode;
use async_nats::jetstream::context::UpdateStreamErrorKind;
use async_nats::jetstream::stream::{Config, Source};
use bytes::Bytes;
use tokio::time::{sleep, timeout};

use super::MoveError;
use super::moves::Moving;
use crate::limits;
use crate::nats::{Nats, Published, named};
use crate::streams::{Names, StreamError, info};

/// The streams and the subject of one move.
#[derive(Debug)]
pub(super) struct Bindings<'a> {
    nats: &'a Nats,
    pub(super) old: String,
    pub(super) new: String,
    /// Matches all messages of the shard.
    pub(super) subject: String,
    fence: String,
    fences: String,
}

impl<'a> Bindings<'a> {
    pub(super) fn of(nats: &'a Nats, names: &Names, moving: &Moving) -> Self {
        Self {
            nats,
            old: names.mailboxes(moving.from),
            new: names.mailboxes(moving.to),
            subject: names.shard_subject(moving.shard),
            fence: names.fence_subject(moving.from),
            fences: names.fence_prefix(),
        }
    }

    /// The new stream copies from the old one.
    pub(super) async fn attach(&self) -> Result<(), MoveError> {
        let source = Source {
            name: self.old.clone(),
            filter_subject: Some(self.subject.clone()),
            ..Source::default()
        };
        self.change(&self.new, |config| {
            if !config.subjects.contains(&self.subject) && !self.copies(config) {
                config.sources.get_or_insert_default().push(source);
            }
        })
        .await
        .map(drop)
    }

    /// The new stream stops to copy.
    pub(super) async fn detach(&self) -> Result<(), MoveError> {
        self.change(&self.new, |config| self.without_source(config))
            .await
            .map(drop)
    }

    /// The old stream does not take the shard's messages any more.
    pub(super) async fn close(&self) -> Result<(), MoveError> {
        self.change(&self.old, |config| {
            config.subjects.retain(|subject| *subject != self.subject);
            if !config.subjects.contains(&self.fence) {
                config.subjects.push(self.fence.clone());
            }
        })
        .await
        .map(drop)
    }

    /// The old stream takes them again.
    pub(super) async fn reopen(&self) -> Result<(), MoveError> {
        self.change(&self.old, |config| self.with_subject(config))
            .await
            .map(drop)
    }

    /// In one change the new stream stops to copy and takes the shard's messages; `false`: another stream takes them.
    pub(super) async fn open(&self) -> Result<bool, MoveError> {
        let opened = self.change(&self.new, |config| {
            self.without_source(config);
            self.with_subject(config);
        });
        opened.await
    }

    /// Returns when everything that was on its way into the old stream is stored: a message that was sent later is.
    pub(super) async fn fence(&self, id: &str) -> Result<(), MoveError> {
        let mut headers = named(HeaderMap::new(), id);
        headers.insert(NATS_EXPECTED_STREAM, self.old.as_str());
        let through = async {
            loop {
                match self
                    .nats
                    .publish(&self.fence, headers.clone(), Bytes::new())
                    .await
                {
                    Ok(Published::Stored { .. } | Published::Duplicate { .. }) => return,
                    // The servers may not all have heard of the subject yet.
                    other => tracing::debug!(?other, "a stream does not take its fence yet"),
                }
                sleep(limits::MOVE_POLL).await;
            }
        };
        timeout(limits::ADMIN_TIMEOUT, through)
            .await
            .map_err(|_late| MoveError::Stalled {
                stream: self.old.clone(),
            })
    }

    /// Takes the fence away from the old stream, unless it has no other subject: it must have one.
    pub(super) async fn tidy(&self) -> Result<(), MoveError> {
        if let Some(last) = self.nats.last_of(&self.old, &self.fence).await? {
            let below = last.stream_seq.saturating_add(1);
            self.nats.purge(&self.old, &self.fence, below).await?;
        }
        self.change(&self.old, |config| {
            if config.subjects.iter().any(|subject| *subject != self.fence) {
                config.subjects.retain(|subject| *subject != self.fence);
            }
        })
        .await
        .map(drop)
    }

    /// The place of the shard's last message in `stream`; 0: there is none.
    pub(super) async fn last_in(&self, stream: &str) -> Result<u64, MoveError> {
        let last = self.nats.last_of(stream, &self.subject).await?;
        Ok(last.map_or(0, |last| last.stream_seq))
    }

    fn copies(&self, config: &Config) -> bool {
        let ours = |source: &Source| self.is_source(source);
        config
            .sources
            .as_ref()
            .is_some_and(|sources| sources.iter().any(ours))
    }

    fn is_source(&self, source: &Source) -> bool {
        source.name == self.old && source.filter_subject.as_deref() == Some(self.subject.as_str())
    }

    fn without_source(&self, config: &mut Config) {
        let mut sources = config.sources.take().unwrap_or_default();
        sources.retain(|source| !self.is_source(source));
        config.sources = Some(sources).filter(|sources| !sources.is_empty());
    }

    /// And without what a stream has that has no subject of its own.
    fn with_subject(&self, config: &mut Config) {
        let name = config.name.clone();
        config
            .subjects
            .retain(|subject| *subject != name && !subject.starts_with(&self.fences));
        if !config.subjects.contains(&self.subject) {
            config.subjects.push(self.subject.clone());
        }
    }

    /// Changes a stream if `edit` changes its settings; `false`: another one has a subject that it would have.
    async fn change(&self, stream: &str, edit: impl FnOnce(&mut Config)) -> Result<bool, MoveError> {
        let Some(found) = info(self.nats, stream).await? else {
            return Err(StreamError::Lost(stream.to_owned()).into());
        };
        let mut config = found.config.clone();
        edit(&mut config);
        if config.subjects == found.config.subjects && config.sources == found.config.sources {
            return Ok(true);
        }
        let Err(refused) = self.nats.jetstream().update_stream(&config).await else {
            return Ok(true);
        };
        if let UpdateStreamErrorKind::JetStream(cause) = refused.kind()
            && cause.error_code() == ErrorCode::STREAM_SUBJECT_OVERLAP
        {
            return Ok(false);
        }
        Err(StreamError::Refused {
            stream: stream.to_owned(),
            cause: refused.to_string(),
        }
        .into())
    }
}
