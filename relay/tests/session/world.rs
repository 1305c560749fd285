//! A small world around the machine: a store, sessions with their work, and clients; every promise is checked as it runs.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use aip_protocol::time::Timestamp;
use aip_relay::limits::IN_FLIGHT_BYTES_MAX;
use aip_relay::mailbox::Epoch;
use aip_relay::session::{Delivery, Effect, Event, Found, Position, SessionId, Wanted};

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
            self.feed(None, Event::Stored { seq });
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
        self.feed(Some(session), Event::Credit { session, credit });
    }

    pub(crate) fn ack(&mut self, session: SessionId, upto: u64, also: &[u64]) {
        let offered = |seq: u64| seq <= self.first_delivered;
        if offered(upto) && also.iter().all(|seq| offered(*seq)) && !self.side_ref(session).replaced {
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
            Event::Ack {
                session,
                epoch: EPOCH.to_owned(),
                upto,
                also,
            },
        );
    }

    pub(crate) fn nak(&mut self, session: SessionId, seq: u64, retry_after: Duration) {
        self.side(session).held.remove(&seq);
        self.feed(
            Some(session),
            Event::Nak {
                session,
                epoch: EPOCH.to_owned(),
                seq,
                retry_after,
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
            Event::Reject {
                session,
                epoch: EPOCH.to_owned(),
                seq,
                code,
            },
        );
    }

    pub(crate) fn side(&mut self, session: SessionId) -> &mut Side {
        self.sides.get_mut(&session).expect("a session of this world")
    }

    pub(crate) fn side_ref(&self, session: SessionId) -> &Side {
        self.sides.get(&session).expect("a session of this world")
    }

    /// Does the next piece of work of a session, or lets it fail; whether there was one.
    pub(crate) fn work(&mut self, session: SessionId, fail: bool) -> bool {
        let Some(work) = self.side(session).work.pop_front() else {
            return false;
        };
        match work {
            Work::Fetch { .. } if fail => self.feed(Some(session), Event::FetchFailed { session }),
            Work::Deliver { seqs } if fail => self.feed(Some(session), Event::OfferFailed { session, seqs }),
            Work::Ack { upto, also } if fail => {
                // The outcome is unknown: every other failed ack did happen.
                if also.len() % 2 == 0 {
                    self.make_acked(upto, also);
                }
                self.feed(Some(session), Event::AckFailed { session });
            }
            Work::Bury { .. } if fail => {}
            Work::Fetch {
                wanted,
                max_messages,
                max_bytes,
            } => {
                let found = self.fetch(&wanted, max_messages, max_bytes);
                self.feed(Some(session), Event::Fetched { session, found });
            }
            Work::Deliver { seqs } => {
                self.deliver(session, &seqs);
                self.feed(Some(session), Event::Sent { session, seqs });
            }
            Work::Ack { upto, also } => {
                self.make_acked(upto, also);
                let floor = self.floor();
                self.feed(Some(session), Event::AckDone { session, floor });
            }
            Work::Bury { seq, code } => self.bury(seq, &code),
        }
        true
    }

    /// Another door has acked these.
    pub(crate) fn settled_elsewhere(&mut self, seqs: &[u64]) {
        seqs.iter().for_each(|seq| self.messages[*seq as usize - 1].state = State::Acked);
        let floor = self.floor();
        self.feed(None, Event::Settled { upto: 0, also: seqs.to_vec(), floor });
    }

    fn make_acked(&mut self, upto: u64, also: Vec<u64>) {
        for seq in (1..=upto).chain(also) {
            let message = &mut self.messages[seq as usize - 1];
            if message.state == State::Stored {
                assert!(message.acked_by_client, "{seq} is acked without an ack");
                message.state = State::Acked;
            }
        }
    }

    /// Does all work there is, of all sessions, and polls those that were woken.
    pub(crate) fn settle(&mut self) {
        for _ in 0..100_000 {
            let sessions: Vec<SessionId> = self.sides.keys().copied().collect();
            let mut busy = false;
            for session in sessions {
                busy |= self.work(session, false);
                if self.side(session).woken {
                    busy = true;
                    self.poll(session);
                }
            }
            if !busy {
                return;
            }
        }
        panic!("the sessions never come to rest");
    }

    fn fetch(&self, wanted: &Wanted, max_messages: usize, max_bytes: u64) -> Vec<Found> {
        let (mut found, mut bytes) = (Vec::new(), 0);
        for (message, seq) in self.messages.iter().zip(1..) {
            let is_wanted = match wanted {
                Wanted::After(after) => seq > *after,
                Wanted::Seqs(seqs) => seqs.contains(&seq),
            };
            if !is_wanted || message.state != State::Stored {
                continue;
            }
            bytes += message.bytes;
            if found.len() >= max_messages || (!found.is_empty() && bytes > max_bytes) {
                break;
            }
            let sessions = message.sessions.len() as u32;
            found.push(Found {
                seq,
                attempts: message.attempts,
                sessions,
                bytes: message.bytes,
            });
        }
        found
    }

    fn deliver(&mut self, session: SessionId, seqs: &[u64]) {
        for seq in seqs.iter().copied() {
            let message = &mut self.messages[seq as usize - 1];
            message.attempts += 1;
            message.sessions.insert(session);
            self.first_delivered = self.first_delivered.max(seq);
            let (is_first, time) = (message.attempts == 1, self.time);
            let side = self.side(session);
            if is_first {
                let in_order = seq > side.first_delivered;
                assert!(side.shared || in_order, "{seq} comes for the first time after a later one");
                side.first_delivered = seq;
            }
            side.delivered.push(seq);
            if side.replaced {
                continue;
            }
            if let Some(before) = side.held.insert(seq, time) {
                assert!(
                    time - before >= Duration::from_secs(30),
                    "{seq} is delivered again too soon"
                );
            }
        }
    }

    fn bury(&mut self, seq: u64, code: &str) {
        let message = &mut self.messages[seq as usize - 1];
        if message.state == State::Stored {
            let exhausted = message.attempts >= 8 && message.sessions.len() >= 2;
            let right = if code == "attempts_exhausted" {
                exhausted
            } else {
                message.rejected_by_client
            };
            assert!(
                right,
                "{seq} is buried with {code} after {} attempts",
                message.attempts
            );
            message.state = State::Dead;
        }
        self.feed(None, Event::Buried { seq });
    }

    pub(crate) fn feed(&mut self, own: Option<SessionId>, event: Event) {
        let now = self.now();
        for effect in self.machine.handle(now, event) {
            match effect {
                Effect::Wake(session) => {
                    if let Some(side) = self.sides.get_mut(&session) {
                        side.woken = true;
                    }
                }
                Effect::Replaced(session) => {
                    if let Some(side) = self.sides.get_mut(&session) {
                        side.replaced = true;
                        side.held.clear();
                    }
                }
                own_effect => {
                    let session = own.expect("an effect without a session");
                    self.take(session, own_effect);
                }
            }
        }
        self.check();
    }

    fn take(&mut self, session: SessionId, effect: Effect) {
        let floor = self.floor();
        let side = self.side(session);
        match effect {
            Effect::Fetch {
                wanted,
                max_messages,
                max_bytes,
            } => {
                let running = side.work.iter().any(|work| matches!(work, Work::Fetch { .. }));
                assert!(!running, "two fetches at a time");
                side.work.push_back(Work::Fetch {
                    wanted,
                    max_messages,
                    max_bytes,
                });
            }
            Effect::Deliver { seqs } => side.work.push_back(Work::Deliver { seqs }),
            Effect::Ack { upto, also } => side.work.push_back(Work::Ack { upto, also }),
            Effect::Bury { seq, code } => side.work.push_back(Work::Bury { seq, code }),
            Effect::Acked { floor: told } => {
                assert!(told <= floor, "acked {told} is told, {floor} is durable");
                side.acked.push(told);
            }
            Effect::Refused { .. } => side.refused += 1,
            Effect::Wake(_) | Effect::Replaced(_) => {}
        }
    }

    /// What holds after every event.
    fn check(&mut self) {
        let live = self.sides.keys().filter(|session| self.machine.has(**session)).count();
        self.sides.values_mut().for_each(|side| side.shared |= live > 1);
        for (session, side) in &self.sides {
            let (messages, bytes) = self.machine.in_flight(*session);
            // A window that was made smaller empties only as the client answers.
            if side.replaced {
                assert_eq!(messages, 0, "a replaced session holds messages");
            }
            assert!(
                bytes <= IN_FLIGHT_BYTES_MAX || messages == 1,
                "{bytes} bytes are in flight"
            );
        }
        let running = self
            .sides
            .values()
            .flat_map(|side| &side.work)
            .filter(|w| matches!(w, Work::Ack { .. }));
        assert!(running.count() <= 1, "two acks at a time");
    }

    /// Never more than credit in flight; not to be asked after a window was made smaller.
    pub(crate) fn check_credit(&self) {
        for (session, side) in &self.sides {
            let (messages, _) = self.machine.in_flight(*session);
            assert!(
                messages <= side.credit,
                "{messages} in flight with credit {}",
                side.credit
            );
        }
    }
}
