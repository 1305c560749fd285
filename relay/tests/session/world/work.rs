//! The work of the sessions against the store of a world, and what must hold after each event.

use std::time::Duration;

use aip_relay::limits::IN_FLIGHT_BYTES_MAX;
use aip_relay::session::{Done, Effect, Elsewhere, Event, Found, SessionId, Wanted};

use super::{State, Work, World};

impl World {
    /// Does the next piece of work of a session, or lets it fail; whether there was one.
    pub(crate) fn work(&mut self, session: SessionId, fail: bool) -> bool {
        let Some(work) = self.side(session).work.pop_front() else {
            return false;
        };
        let done = if fail {
            self.fail(work)
        } else {
            self.carry_out(session, work)
        };
        if let Some(work) = done {
            self.feed(Some(session), Event::Done { session, work });
        }
        true
    }

    fn carry_out(&mut self, session: SessionId, work: Work) -> Option<Done> {
        Some(match work {
            Work::Fetch {
                wanted,
                max_messages,
                max_bytes,
            } => Done::Fetched(self.fetch(&wanted, max_messages, max_bytes)),
            Work::Deliver { seqs } => {
                self.deliver(session, &seqs);
                Done::Sent(seqs)
            }
            Work::Ack { upto, also } => {
                self.make_acked(upto, also);
                Done::Acked(self.floor())
            }
            Work::Bury { seq, code } => {
                self.bury(seq, &code);
                return None;
            }
        })
    }

    fn fail(&mut self, work: Work) -> Option<Done> {
        match work {
            Work::Fetch { .. } => Some(Done::FetchFailed),
            Work::Deliver { seqs } => Some(Done::OfferFailed(seqs)),
            Work::Ack { upto, also } => {
                // The outcome is unknown: every other failed ack did happen.
                if also.len() % 2 == 0 {
                    self.make_acked(upto, also);
                }
                Some(Done::AckFailed)
            }
            Work::Bury { .. } => None,
        }
    }

    /// Another door has acked these.
    pub(crate) fn settled_elsewhere(&mut self, seqs: &[u64]) {
        for seq in seqs {
            self.messages[*seq as usize - 1].state = State::Acked;
        }
        let floor = self.floor();
        self.feed(
            None,
            Event::Elsewhere(Elsewhere::Settled {
                upto: 0,
                also: seqs.to_vec(),
                floor,
            }),
        );
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
                assert!(
                    side.shared || in_order,
                    "{seq} comes for the first time after a later one"
                );
                side.first_delivered = seq;
            }
            side.delivered.push(seq);
            if side.replaced {
                continue;
            }
            if let Some(before) = side.held.insert(seq, time) {
                let crossed = side.put_back.remove(&seq);
                let in_time = time >= before + Duration::from_secs(30);
                assert!(crossed || in_time, "{seq} is delivered again too soon");
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
        self.feed(None, Event::Elsewhere(Elsewhere::Buried(seq)));
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
                Effect::Release { seqs, .. } => assert!(!seqs.is_empty(), "nothing is released"),
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
                side.awaits_acked = false;
                side.acked.push(told);
            }
            Effect::Refused { .. } => side.refused += 1,
            Effect::Wake(_) | Effect::Replaced(_) | Effect::Release { .. } => {}
        }
    }

    /// What holds after every event.
    fn check(&mut self) {
        let live = self
            .sides
            .keys()
            .filter(|session| self.machine.has(**session))
            .count();
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

    /// Every ack is answered once all work is done.
    pub(crate) fn check_acks_are_told(&self) {
        for (session, side) in &self.sides {
            assert!(
                !side.awaits_acked || !self.machine.has(*session),
                "an ack was never answered"
            );
        }
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
