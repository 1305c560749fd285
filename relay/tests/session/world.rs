//! A small world around the machine: a store, sessions with their work, and clients; every promise is checked as it runs.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use aip_protocol::time::Timestamp;
use aip_relay::mailbox::Epoch;
use aip_relay::session::{Delivery, Elsewhere, Event, Position, Said, SessionId, Wanted};

mod work;

/// What the store knows of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum State {
    Stored,
    Acked,
    Dead,
}

#[derive(Debug)]
struct Message {
    bytes: u64,
    state: State,
    attempts: u32,
    sessions: BTreeSet<SessionId>,
    acked_by_client: bool,
    rejected_by_client: bool,
}

/// Work that a session's effects ask for, done when the test says so.
#[derive(Debug)]
enum Work {
    Fetch {
        wanted: Wanted,
        max_messages: usize,
        max_bytes: u64,
    },
    Deliver {
        seqs: Vec<u64>,
    },
    Ack {
        upto: u64,
        also: Vec<u64>,
    },
    Bury {
        seq: u64,
        code: String,
    },
}

/// A session as its client and its driver see it.
#[derive(Debug, Default)]
pub(crate) struct Side {
    work: VecDeque<Work>,
    pub(crate) woken: bool,
    pub(crate) replaced: bool,
    credit: u32,
    /// It was not always alone with the mailbox: order is then kept over all sessions, not in each.
    shared: bool,
    first_delivered: u64,
    /// Messages that the client has and has not answered, and when they came.
    pub(crate) held: BTreeMap<u64, Duration>,
    /// Messages that it has put back; each may cross with one more delivery on its way.
    put_back: BTreeSet<u64>,
    /// Its last ack was taken in and is not answered yet.
    awaits_acked: bool,
    pub(crate) delivered: Vec<u64>,
    pub(crate) acked: Vec<u64>,
    pub(crate) refused: u32,
}

/// The machine, its store and its sessions.
#[derive(Debug, Default)]
pub(crate) struct World {
    pub(crate) machine: Delivery,
    messages: Vec<Message>,
    /// Messages that the machine was not told of yet.
    untold: VecDeque<u64>,
    pub(crate) sides: BTreeMap<SessionId, Side>,
    first_delivered: u64,
    time: Duration,
    names: u64,
}

pub(crate) const EPOCH: &str = "e1";

impl World {
    pub(crate) fn now(&self) -> Timestamp {
        Timestamp::from_unix_millis(1_900_000_000_000) + self.time
    }

    pub(crate) fn advance(&mut self, by: Duration) {
        self.time += by;
    }

    /// Stores a message; the machine hears of it later.
    pub(crate) fn store(&mut self, bytes: u64) -> u64 {
        self.messages.push(Message {
            bytes,
            state: State::Stored,
            attempts: 0,
            sessions: BTreeSet::new(),
            acked_by_client: false,
            rejected_by_client: false,
        });
        let seq = self.messages.len() as u64;
        self.untold.push_back(seq);
        seq
    }

    /// The machine hears of one stored message, not necessarily the first.
    pub(crate) fn tell(&mut self, index: usize) {
        if !self.untold.is_empty() {
            let seq = self.untold.remove(index % self.untold.len()).unwrap();
            self.feed(None, Event::Elsewhere(Elsewhere::Stored(seq)));
        }
    }

    pub(crate) fn tell_all(&mut self) {
        while !self.untold.is_empty() {
            self.tell(0);
        }
    }

    pub(crate) fn floor(&self) -> u64 {
        self.messages
            .iter()
            .take_while(|m| m.state != State::Stored)
            .count() as u64
    }

    pub(crate) fn state(&self, seq: u64) -> State {
        self.messages[seq as usize - 1].state
    }

    pub(crate) fn attempts(&self, seq: u64) -> u32 {
        self.messages[seq as usize - 1].attempts
    }

    pub(crate) fn count(&self, state: State) -> usize {
        self.messages
            .iter()
            .filter(|message| message.state == state)
            .count()
    }

    pub(crate) fn join(&mut self, share: bool, credit: u32) -> SessionId {
        self.names += 1;
        let session = SessionId::from_random(self.names);
        self.sides.insert(
            session,
            Side {
                credit,
                ..Side::default()
            },
        );
        let position = Position {
            epoch: Epoch::parse(EPOCH).unwrap(),
            floor: self.floor(),
            next_seq: self.messages.len() as u64 + 1,
        };
        self.feed(
            Some(session),
            Event::Join {
                session,
                share,
                credit,
                position,
            },
        );
        session
    }

    pub(crate) fn leave(&mut self, session: SessionId) {
        self.sides.remove(&session);
        self.feed(None, Event::Leave { session });
    }

    pub(crate) fn poll(&mut self, session: SessionId) {
        self.side(session).woken = false;
        self.feed(Some(session), Event::Poll { session });
    }

    pub(crate) fn credit(&mut self, session: SessionId, credit: u32) {
        self.side(session).credit = credit;
        self.feed(
            Some(session),
            Event::Said {
                session,
                frame: Said::Credit(credit),
            },
        );
    }

    pub(crate) fn ack(&mut self, session: SessionId, upto: u64, also: &[u64]) {
        let offered = |seq: u64| seq <= self.first_delivered;
        if offered(upto) && also.iter().all(|seq| offered(*seq)) && !self.side_ref(session).replaced {
            self.side(session).awaits_acked = true;
            let covered = |seq: u64| seq <= upto || also.contains(&seq);
            for (message, seq) in self.messages.iter_mut().zip(1..) {
                message.acked_by_client |= covered(seq);
            }
            for side in self.sides.values_mut() {
                side.held.retain(|seq, _| !covered(*seq));
            }
        }
        let also = also.to_vec();
        self.feed(
            Some(session),
            Event::Said {
                session,
                frame: Said::Ack {
                    epoch: EPOCH.to_owned(),
                    upto,
                    also,
                },
            },
        );
    }

    pub(crate) fn nak(&mut self, session: SessionId, seq: u64, retry_after: Duration) {
        let side = self.side(session);
        side.held.remove(&seq);
        side.put_back.insert(seq);
        self.feed(
            Some(session),
            Event::Said {
                session,
                frame: Said::Nak {
                    epoch: EPOCH.to_owned(),
                    seq,
                    retry_after,
                },
            },
        );
    }

    pub(crate) fn reject(&mut self, session: SessionId, seq: u64, code: &str) {
        if seq <= self.first_delivered && !self.side_ref(session).replaced {
            self.messages[seq as usize - 1].rejected_by_client = true;
            for side in self.sides.values_mut() {
                side.held.remove(&seq);
            }
        }
        let code = code.to_owned();
        self.feed(
            Some(session),
            Event::Said {
                session,
                frame: Said::Reject {
                    epoch: EPOCH.to_owned(),
                    seq,
                    code,
                },
            },
        );
    }

    pub(crate) fn side(&mut self, session: SessionId) -> &mut Side {
        self.sides.get_mut(&session).expect("a session of this world")
    }

    pub(crate) fn side_ref(&self, session: SessionId) -> &Side {
        self.sides.get(&session).expect("a session of this world")
    }
}
