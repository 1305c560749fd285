//! Whoever moves shards: one at a time in the whole store.

use tokio::time::sleep;

use super::bindings::Bindings;
use super::copy::Copy;
use super::moves::{Moves, Moving, Spare};
use super::{Conduct, MoveError, Route, ShardList, Step, StreamShards};
use crate::config::Options;
use crate::lease::Lease;
use crate::limits;
use crate::meta::{self, StoreRecord};
use crate::nats::Nats;
use crate::server;
use crate::streams::{Missing, Names, Policy, ensure, info, wanted};

/// The name of the lease.
const MOVER: &str = "mover";

async fn record(nats: &Nats, names: &Names) -> Result<StoreRecord, MoveError> {
    if info(nats, &names.meta()).await?.is_none() {
        return Err(MoveError::NoStore);
    }
    meta::find(nats, names).await?.ok_or(MoveError::NoStore)
}

/// See [`super::list`].
pub(super) async fn list(options: Options) -> Result<ShardList, MoveError> {
    let nats = Nats::connect(options).await?;
    let names = Names::new(&nats.options().prefix);
    let record = record(&nats, &names).await?;
    let next_number = record.moves.next_number(&record.shards);
    let mut streams = Vec::new();
    for number in 0..next_number {
        let name = names.mailboxes(number);
        let Some(found) = info(&nats, &name).await? else {
            continue;
        };
        let here = (0..=u8::MAX)
            .zip(&record.shards)
            .filter(|(_, stream)| **stream == number);
        streams.push(StreamShards {
            number,
            name,
            shards: here.map(|(shard, _)| shard).collect(),
            messages: found.state.messages,
            bytes: found.state.bytes,
        });
    }
    Ok(ShardList {
        streams,
        next_number,
        moving: record.moves.moving.as_ref().map(Moving::route),
    })
}

/// See the module.
pub(super) struct Mover<'a> {
    nats: Nats,
    names: Names,
    lease: Lease,
    conduct: Conduct<'a>,
    /// What was written so far, to name the next one.
    written: u64,
}

impl<'a> Mover<'a> {
    pub(super) async fn new(options: Options, conduct: Conduct<'a>) -> Result<Self, MoveError> {
        let nats = Nats::connect(options).await?;
        server::check(&nats).await?;
        let names = Names::new(&nats.options().prefix);
        record(&nats, &names).await?;
        Ok(Self {
            lease: Lease::new(nats.clone(), &names, MOVER, conduct.holder),
            nats,
            names,
            conduct,
            written: 0,
        })
    }

    /// See [`super::move_shards`].
    pub(super) async fn move_all(mut self, shards: &[u8], to: u16) -> Result<u64, MoveError> {
        self.turn().await?;
        let moved = self.each(shards, to).await;
        self.lease.release().await;
        moved
    }

    async fn each(&mut self, shards: &[u8], to: u16) -> Result<u64, MoveError> {
        let (mut record, mut moved) = (record(&self.nats, &self.names).await?, 0);
        if let Some(moving) = record.moves.moving {
            record = if moving.undoing {
                self.take_back(moving).await?
            } else {
                moved += 1;
                self.carry_out(moving, &record).await?
            };
        }
        for shard in shards {
            let from = record
                .shards
                .get(usize::from(*shard))
                .copied()
                .unwrap_or_default();
            if from != to {
                let route = Route {
                    shard: *shard,
                    from,
                    to,
                };
                let moving = self.begin(route, &record).await?;
                record = self.carry_out(moving, &record).await?;
                moved += 1;
            }
        }
        Ok(moved)
    }

    /// See [`super::undo`].
    pub(super) async fn undo(mut self) -> Result<Route, MoveError> {
        self.turn().await?;
        let undone = self.undo_any().await;
        self.lease.release().await;
        undone
    }

    async fn undo_any(&mut self) -> Result<Route, MoveError> {
        let moving = record(&self.nats, &self.names).await?.moves.moving;
        let moving = moving.ok_or(MoveError::NothingToUndo)?;
        if moving.switched.is_some() {
            return Err(MoveError::TooLate(moving.shard));
        }
        let undoing = Moving {
            undoing: true,
            ..moving
        };
        self.change(moving, |_, moves| moves.moving = Some(undoing))
            .await?;
        self.take_back(undoing).await?;
        Ok(moving.route())
    }

    /// Makes sure that it is this mover's turn, and for a while.
    async fn turn(&mut self) -> Result<(), MoveError> {
        if self.lease.hold((self.conduct.clock)()).await? {
            Ok(())
        } else {
            Err(MoveError::Busy)
        }
    }

    fn tell(&self, moving: &Moving, step: Step) {
        (self.conduct.told)(moving.route(), step);
    }

    /// Another name for each call.
    fn name(&mut self) -> String {
        self.written += 1;
        format!("{}.{}", self.conduct.holder, self.written)
    }

    /// Changes the record, if `moving` is still what is being moved.
    async fn change(
        &mut self,
        moving: Moving,
        mut edit: impl FnMut(&mut Vec<u16>, &mut Moves),
    ) -> Result<StoreRecord, MoveError> {
        self.turn().await?;
        let name = self.name();
        meta::edit_shards(&self.nats, &self.names, &name, |shards, moves| {
            if moves.moving != Some(moving) {
                return Err(MoveError::Busy);
            }
            edit(shards, moves);
            Ok(())
        })
        .await
    }

    /// Writes down that a shard is to move, when its new stream is fit for it.
    async fn begin(&mut self, route: Route, record: &StoreRecord) -> Result<Moving, MoveError> {
        let Route { shard, from, to } = route;
        let now = (self.conduct.clock)();
        if let Some(until) = record.moves.left_until(shard, to, now) {
            return Err(MoveError::TooSoon { shard, to, until });
        }
        self.make_fit(to, record).await?;
        let moving = Moving {
            shard,
            from,
            to,
            switched: None,
            undoing: false,
        };
        let bindings = Bindings::of(&self.nats, &self.names, &moving);
        if bindings.last_in(&bindings.new).await? > 0 {
            return Err(MoveError::Occupied {
                stream: bindings.new,
                shard,
            });
        }
        self.turn().await?;
        let name = self.name();
        meta::edit_shards(&self.nats, &self.names, &name, |shards, moves| {
            if moves.moving.is_some() || shards.get(usize::from(shard)) != Some(&from) {
                return Err(MoveError::Busy);
            }
            moves.numbers = moves.next_number(shards).max(to.saturating_add(1));
            moves.moving = Some(moving);
            Ok(())
        })
        .await?;
        self.tell(&moving, Step::Begun);
        Ok(moving)
    }

    /// Makes or checks the stream number `to`.
    async fn make_fit(&self, to: u16, record: &StoreRecord) -> Result<(), MoveError> {
        let next = record.moves.next_number(&record.shards);
        let is_there = info(&self.nats, &self.names.mailboxes(to)).await?.is_some();
        if to >= limits::STREAM_NUMBERS_MAX || (to != next && !is_there) {
            return Err(MoveError::NoSuchStream { to, next });
        }
        let wanted = wanted::mailboxes(&self.names, self.nats.options(), to, &record.shards);
        let policy = Policy {
            missing: Missing::Make,
            update: false,
        };
        let spare = Spare::of(&self.names, &record.moves, &wanted.name);
        Ok(ensure(&self.nats, &wanted, &spare, policy).await?)
    }

    /// From wherever it is to the end.
    async fn carry_out(&mut self, moving: Moving, record: &StoreRecord) -> Result<StoreRecord, MoveError> {
        let (nats, names) = (self.nats.clone(), self.names.clone());
        let bindings = Bindings::of(&nats, &names, &moving);
        let (moving, last) = match moving.switched {
            Some(last) => (moving, last),
            None => self.bring(moving, &bindings, record).await?,
        };
        let (moving, last) = self.open(moving, last, &bindings, record).await?;
        self.tell(&moving, Step::Opened);
        sleep(self.conduct.linger).await;
        self.turn().await?;
        let stray = bindings.last_in(&bindings.old).await?;
        if stray > last {
            return Err(MoveError::Stray {
                stream: bindings.old,
                place: stray,
            });
        }
        nats.purge(&bindings.old, &bindings.subject, last.saturating_add(1))
            .await?;
        bindings.tidy().await?;
        let record = self.end(moving, moving.from, &bindings.old).await?;
        self.tell(&moving, Step::Done);
        Ok(record)
    }

    /// Copies the shard, closes it, copies the rest, and writes down that it has moved. A shard that was closed in
    /// vain takes mail again.
    async fn bring(
        &mut self,
        moving: Moving,
        bindings: &Bindings<'_>,
        record: &StoreRecord,
    ) -> Result<(Moving, u64), MoveError> {
        let (nats, names) = (self.nats.clone(), self.names.clone());
        bindings.attach().await?;
        let mut copy = Copy::new(&nats, &names, bindings, record.retention_secs);
        for _ in 0..limits::MOVE_ROUNDS_MAX {
            let (before, last) = (copy.compared, bindings.last_in(&bindings.old).await?);
            self.catch_up(&moving, &mut copy, last).await?;
            if copy.compared.saturating_sub(before) <= limits::MOVE_TAIL {
                break;
            }
        }
        let switched = self.switch(moving, bindings, &mut copy).await;
        if switched.is_err() {
            let now = meta::find(&nats, &names).await?;
            if now.is_some_and(|now| now.moves.moving == Some(moving)) {
                bindings.reopen().await?;
            }
        }
        switched
    }

    async fn switch(
        &mut self,
        moving: Moving,
        bindings: &Bindings<'_>,
        copy: &mut Copy<'_>,
    ) -> Result<(Moving, u64), MoveError> {
        let last = self.close(&moving, bindings, copy).await?;
        let switched = Moving {
            switched: Some(last),
            ..moving
        };
        self.change(moving, |shards, moves| {
            if let Some(stream) = shards.get_mut(usize::from(moving.shard)) {
                *stream = moving.to;
            }
            moves.made += 1;
            moves.eras.insert(moving.shard, moves.made);
            moves.moving = Some(switched);
        })
        .await?;
        self.tell(&switched, Step::Switched);
        Ok((switched, last))
    }

    /// Closes the old stream for the shard and compares all there is; tells the place of the last message.
    async fn close(
        &mut self,
        moving: &Moving,
        bindings: &Bindings<'_>,
        copy: &mut Copy<'_>,
    ) -> Result<u64, MoveError> {
        self.turn().await?;
        bindings.close().await?;
        self.tell(moving, Step::Closed);
        let fence = format!("fence.{}", self.name());
        bindings.fence(&fence).await?;
        let last = bindings.last_in(&bindings.old).await?;
        self.catch_up(moving, copy, last).await?;
        Ok(last)
    }

    async fn catch_up(&mut self, moving: &Moving, copy: &mut Copy<'_>, last: u64) -> Result<(), MoveError> {
        while copy.go_on(last).await? {
            self.turn().await?;
            self.tell(moving, Step::Copied(copy.compared));
        }
        Ok(())
    }

    /// Opens the shard in its new stream. When the old one has its subject again, somebody has changed that stream
    /// by what it was before: then it may have taken messages, which are copied first.
    async fn open(
        &mut self,
        mut moving: Moving,
        mut last: u64,
        bindings: &Bindings<'_>,
        record: &StoreRecord,
    ) -> Result<(Moving, u64), MoveError> {
        let (nats, names) = (self.nats.clone(), self.names.clone());
        for _ in 0..limits::MOVE_OPENS_MAX {
            self.turn().await?;
            if bindings.open().await? {
                return Ok((moving, last));
            }
            let mut copy = Copy::new(&nats, &names, bindings, record.retention_secs);
            last = self.close(&moving, bindings, &mut copy).await?;
            let again = Moving {
                switched: Some(last),
                ..moving
            };
            if again != moving {
                self.change(moving, |_, moves| moves.moving = Some(again)).await?;
                moving = again;
            }
        }
        Err(MoveError::Contended(bindings.old.clone()))
    }

    /// Takes an unfinished move back.
    async fn take_back(&mut self, moving: Moving) -> Result<StoreRecord, MoveError> {
        let (nats, names) = (self.nats.clone(), self.names.clone());
        let bindings = Bindings::of(&nats, &names, &moving);
        self.turn().await?;
        // Whoever takes back a move may have deleted the new stream.
        let is_there = info(&nats, &bindings.new).await?.is_some();
        if is_there {
            bindings.detach().await?;
        }
        bindings.reopen().await?;
        if is_there {
            let below = bindings.last_in(&bindings.new).await?.saturating_add(1);
            nats.purge(&bindings.new, &bindings.subject, below).await?;
        }
        let record = self.end(moving, moving.to, &bindings.new).await?;
        self.tell(&moving, Step::Undone);
        Ok(record)
    }

    /// Writes down that the move is over, and that `left` knows what it held.
    async fn end(&mut self, moving: Moving, number: u16, left: &str) -> Result<StoreRecord, MoveError> {
        let found = info(&self.nats, left).await?;
        let window = found.map_or(limits::DUPLICATE_WINDOW, |found| found.config.duplicate_window);
        let now = (self.conduct.clock)();
        let until = now + window + limits::MOVE_BACK_SLACK;
        self.change(moving, |_, moves| moves.end(number, until, now))
            .await
    }
}
