//! A look at a store from outside, for an operator: nothing is changed.

use async_nats::jetstream::stream::{Config, Info};

use crate::config::Options;
use crate::limits;
use crate::meta;
use crate::nats::Nats;
use crate::server::{self, Report};
use crate::shards::{Moves, Spare};
use crate::start::StartError;
use crate::streams::{Names, differences, info, wanted};

/// What was found.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Examination {
    /// The servers.
    pub report: Report,
    /// The streams that are there.
    pub streams: Vec<StreamState>,
    /// What is wrong, a sentence each; empty when all is well.
    pub complaints: Vec<String>,
}

/// One stream.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct StreamState {
    /// Its name.
    pub name: String,
    /// Messages in it.
    pub messages: u64,
    /// Bytes of them.
    pub bytes: u64,
    /// Subjects that hold something: mailboxes, for a stream of mailboxes.
    pub subjects: u64,
    /// Copies that are up to date.
    pub copies_current: usize,
    /// Copies there should be.
    pub copies: usize,
    /// The server that leads it; none means that it takes nothing.
    pub leader: Option<String>,
}

/// Looks at the store that `options` describe. An error means that there is nothing to look at, or no way to it.
pub async fn examine(options: Options) -> Result<Examination, StartError> {
    let nats = Nats::connect(options).await?;
    let report = server::check(&nats).await?;
    let names = Names::new(&nats.options().prefix);
    let mut found = Examination {
        report,
        streams: Vec::new(),
        complaints: Vec::new(),
    };
    let has_records = info(&nats, &names.meta()).await?.is_some();
    let record = if has_records {
        meta::find(&nats, &names).await?
    } else {
        None
    };
    if record.is_none() {
        let sentence = "there is no store yet: the first start makes it";
        found.complaints.push(sentence.to_owned());
    }
    let (shards, moves) = record.map_or_else(
        || (meta::spread(nats.options().streams), Moves::default()),
        |record| (record.shards, record.moves),
    );
    if let Some(moving) = &moves.moving {
        found.complaints.push(format!(
            "shard {:02x} is on its way from stream {} to {}; if nobody moves it, finish or undo the move",
            moving.shard, moving.from, moving.to
        ));
    }
    for wanted in wanted::all(&names, nats.options(), &shards) {
        let spare = Spare::of(&names, &moves, &wanted.name);
        match info(&nats, &wanted.name).await? {
            Some(info) => found.add(&info, &wanted, &spare),
            None => found
                .complaints
                .push(format!("the stream {} is missing", wanted.name)),
        }
    }
    Ok(found)
}

impl Examination {
    fn add(&mut self, info: &Info, wanted: &Config, spare: &Spare) {
        for difference in differences(&spare.apart_from(&info.config), &spare.apart_from(wanted)) {
            let mend = if difference.safe {
                ""
            } else {
                " (not to be changed in place)"
            };
            self.complaints
                .push(format!("of the stream {} {difference}{mend}", wanted.name));
        }
        let stream = StreamState::of(info);
        self.complaints.extend(stream.complaints());
        self.streams.push(stream);
    }
}

impl StreamState {
    fn of(info: &Info) -> Self {
        let (leader, current) = match &info.cluster {
            // A single server leads everything.
            None => (Some(String::new()), 1),
            Some(cluster) => {
                let current = |peer: &&async_nats::jetstream::stream::PeerInfo| peer.current && !peer.offline;
                let followers = cluster.replicas.iter().filter(current).count();
                (
                    cluster.leader.clone(),
                    followers + usize::from(cluster.leader.is_some()),
                )
            }
        };
        Self {
            name: info.config.name.clone(),
            messages: info.state.messages,
            bytes: info.state.bytes,
            subjects: info.state.subjects_count,
            copies_current: current,
            copies: info.config.num_replicas,
            leader,
        }
    }

    fn complaints(&self) -> Vec<String> {
        let name = &self.name;
        let mut complaints = Vec::new();
        if self.leader.is_none() {
            complaints.push(format!("the stream {name} has no leader: it takes nothing"));
        }
        if self.copies_current < self.copies {
            complaints.push(format!(
                "of the {} copies of the stream {name} only {} are up to date",
                self.copies, self.copies_current
            ));
        }
        if self.subjects > limits::STREAM_SUBJECTS_HIGH {
            complaints.push(format!(
                "the stream {name} holds {} subjects, which cost the servers memory: spread over more streams",
                self.subjects
            ));
        }
        if self.bytes > limits::STREAM_BYTES_HIGH {
            complaints.push(format!(
                "the stream {name} holds {} bytes: a server that lost it needs long to recover",
                self.bytes
            ));
        }
        complaints
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing;

    #[tokio::test]
    async fn a_healthy_store_gives_no_cause_for_complaint() {
        let store = testing::started("doctor-well").await;
        let found = examine(store.nats.options().clone()).await.expect("looked at");
        assert_eq!(found.complaints, Vec::<String>::new());
        // Two of mailboxes, and cursors, dead letters, statuses, expiries, records.
        assert_eq!(found.streams.len(), 7);
        assert!(found.streams.iter().all(|stream| stream.copies_current == 1));
    }

    #[tokio::test]
    async fn what_is_wrong_is_told_and_left_as_it_is() {
        let store = testing::started("doctor-ill").await;
        let names = &store.layout.names;
        let jetstream = store.nats.jetstream();
        jetstream.delete_stream(names.dead()).await.expect("deleted");
        let mut config = info(&store.nats, &names.cursors())
            .await
            .expect("read")
            .expect("there")
            .config;
        config.allow_direct = false;
        jetstream.update_stream(&config).await.expect("changed");
        for _ in 0..2 {
            let found = examine(store.nats.options().clone()).await.expect("looked at");
            assert_eq!(
                found.complaints,
                [
                    "of the stream DOCTOR-ILL_CUR allow_direct is false, and must be true",
                    "the stream DOCTOR-ILL_DLQ is missing"
                ]
            );
        }
        let none = examine(testing::options(
            &aip_engines::Nats::shared().url(),
            "doctor-none",
        ))
        .await;
        let complaints = none.expect("looked at").complaints;
        assert_eq!(complaints.len(), 8);
        assert!(complaints[0].contains("no store yet"));
    }
}
