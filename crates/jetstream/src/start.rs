//! The start: connect, check the servers, make or check the streams, and agree with all other processes.

use std::sync::Arc;

use aip_relay::mailbox::StoreError;
use tokio::time::{sleep, timeout};

use crate::config::Options;
use crate::limits;
use crate::meta::{self, Fresh, StoreRecord};
use crate::nats::{ConnectError, Nats};
use crate::server::{self, Report};
use crate::shards::Spare;
use crate::streams::{Layout, Missing, Names, Policy, StreamError, ensure, info, wanted};

/// Why a store cannot be opened; each is a sentence for the operator.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// No connection, or impossible options.
    #[error(transparent)]
    Connect(#[from] ConnectError),
    /// The server's version.
    #[error("the NATS server has version {found}; mailboxes need 2.14 or later")]
    TooOld {
        /// What it has.
        found: String,
    },
    /// No JetStream.
    #[error("the NATS server offers no JetStream: {0}")]
    NoJetStream(String),
    /// JetStream does not say anything.
    #[error("JetStream does not answer on the NATS server")]
    Silent,
    /// The account's limits do not allow a store.
    #[error("the NATS account cannot hold mailboxes: {0}")]
    Account(String),
    /// Copies need a cluster.
    #[error("{replicas} replicas need a cluster, and the NATS server is alone")]
    NoCluster {
        /// What was asked for.
        replicas: u8,
    },
    /// The server takes no messages of the size we need.
    #[error(
        "the NATS server takes messages of {found} bytes at most, {needed} are needed: raise its `max_payload`"
    )]
    SmallPayload {
        /// What it takes.
        found: usize,
        /// What is needed.
        needed: usize,
    },
    /// A stream cannot be used.
    #[error(transparent)]
    Stream(#[from] StreamError),
    /// The store's record is gone, its mail is not.
    #[error(
        "the stream {meta} holds no record of this store, but {mailboxes} holds mail: restore {meta} from a backup"
    )]
    RecordLost {
        /// Where the record should be.
        meta: String,
        /// Where the mail is.
        mailboxes: String,
    },
    /// The store's record cannot be read or written.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl StartError {
    /// Whether the same start may succeed a moment later.
    fn may_pass(&self) -> bool {
        matches!(
            self,
            Self::Silent
                | Self::Stream(StreamError::Silent(_) | StreamError::NotYet { .. })
                | Self::Store(StoreError::Unavailable(_) | StoreError::OutcomeUnknown(_))
        )
    }
}

/// An opened store.
#[derive(Debug, Clone)]
pub(crate) struct Started {
    pub(crate) nats: Nats,
    pub(crate) record: StoreRecord,
    pub(crate) layout: Arc<Layout>,
    pub(crate) report: Report,
}

/// Opens the store that `options` describe, or makes it with the chance of `fresh`. Any number of processes may do
/// so at the same time.
pub(crate) async fn start(options: Options, fresh: &Fresh) -> Result<Started, StartError> {
    let nats = Nats::connect(options).await?;
    let names = Names::new(&nats.options().prefix);
    let (report, record) = agree_patiently(&nats, &names, fresh).await?;
    let layout = Arc::new(Layout::new(names, record.secret, &record.shards));
    layout.adopt(&record.shards, &record.moves);
    Ok(Started {
        nats,
        record,
        layout,
        report,
    })
}

/// What the server is like, and the store's record, with all streams in place. A stream that was made a moment ago, by this
/// process or by another one, may not have a leader yet, and neither has one whose servers have just been started.
async fn agree_patiently(
    nats: &Nats,
    names: &Names,
    fresh: &Fresh,
) -> Result<(Report, StoreRecord), StartError> {
    let mut last = StartError::Silent;
    let agreed = timeout(limits::START_PATIENCE, async {
        loop {
            match check_and_agree(nats, names, fresh).await {
                Err(error) if error.may_pass() => {
                    tracing::info!(%error, "the NATS servers are not ready yet");
                    last = error;
                    sleep(limits::START_PAUSE).await;
                }
                agreed => return agreed,
            }
        }
    });
    agreed.await.unwrap_or(Err(last))
}

async fn check_and_agree(
    nats: &Nats,
    names: &Names,
    fresh: &Fresh,
) -> Result<(Report, StoreRecord), StartError> {
    let report = server::check(nats).await?;
    let record = agree(nats, names, fresh).await?;
    Ok((report, record))
}

/// The store's record, with all streams in place. The record comes first, so that all processes make the same
/// streams; when they are there it says so, and one that is missing later on is lost.
async fn agree(nats: &Nats, names: &Names, fresh: &Fresh) -> Result<StoreRecord, StartError> {
    let options = nats.options();
    let make = if options.create_streams {
        Missing::Make
    } else {
        Missing::NotOurs
    };
    let meta = wanted::meta(names, options);
    if info(nats, &meta.name).await?.is_none() {
        refuse_orphans(nats, names).await?;
    }
    let policy = Policy {
        missing: make,
        update: options.update_streams,
    };
    ensure(nats, &meta, &Spare::default(), policy).await?;
    if meta::find(nats, names).await?.is_none() {
        refuse_orphans(nats, names).await?;
    }
    let record = meta::open(nats, names, fresh).await?;
    if record.complete && !options.replace_lost_streams {
        ensure_all(nats, names, &record, Missing::Lost).await?;
    } else {
        ensure_all(nats, names, &record, make).await?;
        meta::complete(nats, names).await?;
    }
    Ok(record)
}

/// A store is not made anew beside mail that an earlier record must have known.
async fn refuse_orphans(nats: &Nats, names: &Names) -> Result<(), StartError> {
    for number in 0..nats.options().streams {
        let mailboxes = names.mailboxes(number);
        let holds_mail = info(nats, &mailboxes)
            .await?
            .is_some_and(|found| found.state.messages > 0);
        // Unless another process has just made it.
        if holds_mail
            && (info(nats, &names.meta()).await?.is_none() || meta::find(nats, names).await?.is_none())
        {
            return Err(StartError::RecordLost {
                meta: names.meta(),
                mailboxes,
            });
        }
    }
    Ok(())
}

async fn ensure_all(
    nats: &Nats,
    names: &Names,
    record: &StoreRecord,
    missing: Missing,
) -> Result<(), StartError> {
    let options = nats.options();
    let policy = Policy {
        missing,
        update: options.update_streams,
    };
    for stream in wanted::all(names, options, &record.shards) {
        let spare = Spare::of(names, &record.moves, &stream.name);
        ensure(nats, &stream, &spare, policy).await?;
    }
    Ok(())
}

#[cfg(test)]
mod tests;
