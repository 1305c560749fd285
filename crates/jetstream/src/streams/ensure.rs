//! Making a stream, or making sure that it is what it should be.

use async_nats::jetstream::ErrorCode;
use async_nats::jetstream::context::{CreateStreamError, CreateStreamErrorKind, GetStreamErrorKind};
use async_nats::jetstream::stream::{Config, Info};

use tokio::time::timeout;

use super::differences::{Difference, differences, mended};
use crate::nats::Nats;
use crate::shards::Spare;

/// What to do with a stream that is not there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Missing {
    /// Make it.
    Make,
    /// It was not to be made: the operator makes the streams.
    NotOurs,
    /// It was there, with messages.
    Lost,
}

/// How to treat the streams of a store.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Policy {
    pub(crate) missing: Missing,
    /// Change what differs where that loses nothing.
    pub(crate) update: bool,
}

/// A stream cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum StreamError {
    /// It is not there, and the options do not let us make it.
    #[error("the stream {0} does not exist, and `create_streams` is off")]
    Missing(String),
    /// An existing store has lost it.
    #[error(
        "the stream {0} of this store is gone, and its messages with it: restore it, or set `replace_lost_streams` \
         to go on with an empty one"
    )]
    Lost(String),
    /// Its settings are others.
    #[error("the stream {stream} cannot be used as it is: {differences}")]
    Differs {
        /// Which stream.
        stream: String,
        /// A sentence for each difference.
        differences: String,
    },
    /// The servers say nothing: the stream has no leader, or they do not find one for it yet.
    #[error("the NATS servers do not answer for the stream {0}")]
    Silent(String),
    /// The servers cannot do it now: not all of them are there, or they have not found each other yet.
    #[error("the stream {stream} cannot be made or read: {cause}")]
    NotYet {
        /// Which stream.
        stream: String,
        /// What they say.
        cause: String,
    },
    /// The servers refuse.
    #[error("the stream {stream} cannot be made or read: {cause}")]
    Refused {
        /// Which stream.
        stream: String,
        /// What they say.
        cause: String,
    },
}

/// What a stream is, if it is there.
pub(crate) async fn info(nats: &Nats, name: &str) -> Result<Option<Info>, StreamError> {
    let asked = timeout(nats.options().read_timeout, nats.jetstream().get_stream(name)).await;
    match asked.map_err(|_late| StreamError::Silent(name.to_owned()))? {
        Ok(stream) => Ok(Some(stream.cached_info().clone())),
        Err(error) => match error.kind() {
            GetStreamErrorKind::JetStream(error) if error.error_code() == ErrorCode::STREAM_NOT_FOUND => {
                Ok(None)
            }
            GetStreamErrorKind::JetStream(cause) if is_of_the_moment(cause.error_code()) => {
                Err(not_yet(name, &error))
            }
            GetStreamErrorKind::Request => Err(StreamError::Silent(name.to_owned())),
            _ => Err(refused(name, &error)),
        },
    }
}

/// Makes the stream `wanted`, or checks it but for what is `spare`. Many processes may do so at the same time.
pub(crate) async fn ensure(
    nats: &Nats,
    wanted: &Config,
    spare: &Spare,
    policy: Policy,
) -> Result<(), StreamError> {
    let name = wanted.name.as_str();
    let found = match (info(nats, name).await?, policy.missing) {
        (Some(found), _) => found,
        (None, Missing::NotOurs) => return Err(StreamError::Missing(name.to_owned())),
        (None, Missing::Lost) => return Err(StreamError::Lost(name.to_owned())),
        (None, Missing::Make) => match nats.jetstream().create_stream(wanted).await {
            Ok(_) => return Ok(()),
            // Another process may have been faster, with settings of its own.
            Err(error) => match info(nats, name).await? {
                Some(found) => found,
                None => return Err(not_made(name, &error)),
            },
        },
    };
    let differences = differences(&spare.apart_from(&found.config), &spare.apart_from(wanted));
    if differences.is_empty() {
        return Ok(());
    }
    if !policy.update || differences.iter().any(|difference| !difference.safe) {
        return Err(differs(name, &differences));
    }
    for difference in &differences {
        tracing::info!(stream = name, %difference, "changing a stream");
    }
    nats.jetstream()
        .update_stream(mended(&found.config, wanted))
        .await
        .map_err(|error| refused(name, &error))?;
    Ok(())
}

/// Why a stream was not made.
fn not_made(name: &str, error: &CreateStreamError) -> StreamError {
    match error.kind() {
        CreateStreamErrorKind::TimedOut => StreamError::Silent(name.to_owned()),
        CreateStreamErrorKind::JetStream(cause) if is_of_the_moment(cause.error_code()) => {
            not_yet(name, error)
        }
        _ => refused(name, error),
    }
}

/// Whether a cluster says so that is just coming up, or of which a server is away.
fn is_of_the_moment(code: ErrorCode) -> bool {
    [
        ErrorCode::CLUSTER_NO_PEERS,
        ErrorCode::CLUSTER_NOT_AVAILABLE,
        ErrorCode::CLUSTER_INCOMPLETE,
        ErrorCode::CLUSTER_NOT_LEADER,
    ]
    .contains(&code)
}

fn not_yet(stream: &str, cause: &dyn std::fmt::Display) -> StreamError {
    StreamError::NotYet {
        stream: stream.to_owned(),
        cause: cause.to_string(),
    }
}

fn differs(stream: &str, differences: &[Difference]) -> StreamError {
    StreamError::Differs {
        stream: stream.to_owned(),
        differences: differences
            .iter()
            .map(ToString::to_string)
            .collect::<Vec<_>>()
            .join("; "),
    }
}

fn refused(stream: &str, cause: &dyn std::fmt::Display) -> StreamError {
    StreamError::Refused {
        stream: stream.to_owned(),
        cause: cause.to_string(),
    }
}
