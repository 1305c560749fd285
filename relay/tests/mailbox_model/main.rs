//! Random histories of sends, retries, acks, burials, redrives, waits, sweeps and restarts, on each backend,
//! against a model that is too simple to be wrong.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test is to panic"
)]

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::time::Duration;

use aip_protocol::time::Timestamp;
use aip_relay::mailbox::suite::{did, envelope};
use aip_relay::mailbox::{
    AckOutcome, Append, Fetch, MailboxId, Redrive, RedriveOutcome, Route, Select, Status,
};
use proptest::prelude::*;

use self::backend::{Backend, config, run_to_the_end};
use self::model::{LIFE_SECS, Message, Model, QUOTA, RECIPIENTS, SENDERS, Slot};

mod backend;
mod model;
mod outbox;

#[derive(Debug, Clone)]
enum Step {
    /// A new envelope under the id, created so many seconds before the hub's clock.
    Send {
        slot: Slot,
        age_secs: i64,
        route: Route,
    },
    /// The same bytes again, if that is legal by now.
    Retry {
        slot: Slot,
    },
    Ack {
        to: usize,
        upto: u64,
        also: Vec<u64>,
    },
    Bury {
        to: usize,
        seq: u64,
    },
    Redrive {
        to: usize,
        seq: u64,
    },
    Offer {
        to: usize,
    },
    Wait {
        secs: u64,
    },
    Sweep,
    Reopen,
}

fn slot() -> impl Strategy<Value = Slot> {
    (0..SENDERS.len(), 0..RECIPIENTS.len(), 1..6_u64)
}

fn step() -> impl Strategy<Value = Step> {
    let (to, seq) = (0..RECIPIENTS.len(), 0..14_u64);
    let age = prop_oneof![-300..=900_i64, Just(-300), Just(0), Just(300), Just(900)];
    let route = prop_oneof![5 => Just(Route::Mailbox), 1 => Just(Route::Direct)];
    let wait = prop_oneof![
        0..400_u64,
        Just(1),
        Just(299),
        Just(300),
        Just(900),
        Just(1_200),
        Just(LIFE_SECS)
    ];
    prop_oneof![
        8 => (slot(), age, route).prop_map(|(slot, age_secs, route)| Step::Send { slot, age_secs, route }),
        5 => slot().prop_map(|slot| Step::Retry { slot }),
        4 => (to.clone(), seq.clone(), prop::collection::vec(0..14_u64, 0..4))
            .prop_map(|(to, upto, also)| Step::Ack { to, upto, also }),
        2 => (to.clone(), seq.clone()).prop_map(|(to, seq)| Step::Bury { to, seq }),
        2 => (to.clone(), seq).prop_map(|(to, seq)| Step::Redrive { to, seq }),
        1 => to.prop_map(|to| Step::Offer { to }),
        4 => wait.prop_map(|secs| Step::Wait { secs }),
        2 => Just(Step::Sweep),
        1 => Just(Step::Reopen),
    ]
}

struct Run {
    model: Model,
    backend: Backend,
}

impl Run {
    fn new(backend: Backend) -> Self {
        let now = Timestamp::parse("2026-11-29T20:15:30Z").unwrap();
        let (window, status, last) = (HashMap::new(), BTreeMap::new(), HashMap::new());
        Self {
            model: Model {
                now,
                mailboxes: Default::default(),
                window,
                status,
                last,
            },
            backend,
        }
    }

    async fn step(&mut self, step: Step) {
        let now = self.model.now;
        match step {
            Step::Send {
                slot,
                age_secs,
                route,
            } => {
                let append = self.new_envelope(slot, age_secs, route);
                self.model.last.insert(slot, append.clone());
                self.append(slot, append).await;
            }
            Step::Retry { slot } => {
                if let Some(mut again) = self.model.last.get(&slot).cloned()
                    && now <= again.remember_until
                {
                    again.accepted_at = now;
                    self.append(slot, again).await;
                }
            }
            Step::Ack { to, upto, also } => self.ack(to, upto, &also).await,
            Step::Bury { to, seq } => self.bury(to, seq).await,
            Step::Redrive { to, seq } => self.redrive(to, seq).await,
            Step::Offer { to } => self.offer(to).await,
            Step::Wait { secs } => self.model.now = now + Duration::from_secs(secs),
            Step::Sweep => self.sweep().await,
            Step::Reopen => self.backend.reopen(),
        }
        self.compare().await;
    }

    fn new_envelope(&self, (from, to, n): Slot, age_secs: i64, route: Route) -> Append {
        let now = self.model.now;
        let mut append = envelope(now, SENDERS[from], RECIPIENTS[to], n);
        let created_at = if age_secs < 0 {
            now + Duration::from_secs(age_secs.unsigned_abs())
        } else {
            now - Duration::from_secs(age_secs.unsigned_abs())
        };
        append.remember_until = created_at + Duration::from_mins(15);
        append.expires_at = now + Duration::from_secs(LIFE_SECS);
        append.digest[..16].copy_from_slice(&created_at.unix_nanos().to_be_bytes());
        (append.quota, append.route) = (QUOTA, route);
        append
    }

    async fn append(&mut self, slot: Slot, append: Append) {
        let expected = self.model.append(slot, &append);
        assert_eq!(self.backend.store().append(append).await.unwrap(), expected);
    }

    async fn ack(&mut self, to: usize, upto: u64, also: &[u64]) {
        let outcome = self
            .backend
            .store()
            .ack(&mailbox(to), upto, also, self.model.now)
            .await
            .unwrap();
        let given = self.model.mailboxes[to].given;
        if also.iter().chain([&upto]).any(|seq| *seq > given) {
            assert_eq!(outcome, AckOutcome::BeyondEnd);
            return;
        }
        let seqs: BTreeSet<u64> = (1..=upto).chain(also.iter().copied()).collect();
        let settled: Vec<u64> = seqs
            .into_iter()
            .filter(|seq| self.model.settle(to, *seq, Status::Acked).is_some())
            .collect();
        let AckOutcome::Acked(acked) = outcome else {
            panic!("{outcome:?}")
        };
        assert_eq!(
            acked
                .messages
                .iter()
                .map(|message| message.seq)
                .collect::<Vec<_>>(),
            settled
        );
        assert_eq!(acked.floor, self.model.mailboxes[to].floor());
    }

    async fn bury(&mut self, to: usize, seq: u64) {
        let buried = self
            .backend
            .store()
            .bury(&mailbox(to), seq, "x", self.model.now)
            .await
            .unwrap();
        let message = self.model.settle(to, seq, Status::Dead);
        assert_eq!(
            buried.map(|settled| settled.id),
            message.as_ref().map(|message| message.sent.id)
        );
        self.model.mailboxes[to]
            .dead
            .extend(message.map(|message| (seq, message)));
    }

    async fn redrive(&mut self, to: usize, seq: u64) {
        let (now, expires_at) = (self.model.now, self.model.now + Duration::from_secs(LIFE_SECS));
        let redrive = Redrive {
            seq,
            expires_at,
            now,
            quota: QUOTA,
        };
        let outcome = self.backend.store().redrive(&mailbox(to), redrive).await.unwrap();
        let mailbox = &mut self.model.mailboxes[to];
        let Some(message) = mailbox.dead.get(&seq) else {
            return assert_eq!(outcome, RedriveOutcome::NotFound);
        };
        if let Some(full) = mailbox.full(message.sent.wire.len()) {
            return assert_eq!(outcome, RedriveOutcome::Full(full));
        }
        let message = Message {
            expires_at,
            attempts: 0,
            ..mailbox.dead.remove(&seq).unwrap()
        };
        self.model
            .status
            .insert(Model::day_of(&message.sent), Status::Stored);
        let seq = self.model.mailboxes[to].put(message);
        assert_eq!(outcome, RedriveOutcome::Redriven { seq });
    }

    async fn offer(&mut self, to: usize) {
        let mailbox_model = &mut self.model.mailboxes[to];
        let seqs: Vec<u64> = mailbox_model.pending.keys().copied().collect();
        let attempts = self.backend.store().offer(&mailbox(to), &seqs, 1).await.unwrap();
        for (message, attempt) in mailbox_model.pending.values_mut().zip(attempts) {
            message.attempts += 1;
            assert_eq!(attempt.attempt, message.attempts);
        }
    }

    async fn sweep(&mut self) {
        let swept = self.backend.store().sweep(self.model.now).await.unwrap();
        let mut expired = BTreeSet::new();
        for (to, recipient) in RECIPIENTS.iter().enumerate() {
            let due: Vec<u64> = self.model.mailboxes[to]
                .pending
                .iter()
                .filter(|(_, message)| message.expires_at <= self.model.now)
                .map(|(seq, _)| *seq)
                .collect();
            for seq in due {
                self.model.settle(to, seq, Status::Expired);
                expired.insert((did(recipient), seq));
            }
        }
        let told: BTreeSet<_> = swept
            .expired
            .into_iter()
            .map(|settled| (settled.recipient, settled.seq))
            .collect();
        assert_eq!(told, expired);
    }

    /// Everything that can be read is as the model has it.
    async fn compare(&self) {
        let store = self.backend.store();
        for (to, model) in self.model.mailboxes.iter().enumerate() {
            let state = store.state(&mailbox(to)).await.unwrap();
            assert_eq!((state.floor, state.next_seq), (model.floor(), model.given + 1));
            assert_eq!(
                (state.pending, state.bytes),
                (model.pending.len() as u64, model.bytes())
            );
            assert_eq!(state.dead, model.dead.len() as u64);
            let fetch = Fetch {
                select: Select::After(0),
                max_messages: 100,
                max_bytes: usize::MAX,
                now: self.model.now,
            };
            let fetched = store.fetch(&mailbox(to), fetch).await.unwrap();
            let shown: Vec<_> = fetched
                .iter()
                .map(|message| (message.seq, message.id, message.wire.clone(), message.attempts))
                .collect();
            let alive = model
                .pending
                .iter()
                .filter(|(_, message)| message.expires_at > self.model.now);
            let expected: Vec<_> = alive
                .map(|(seq, message)| (*seq, message.sent.id, message.sent.wire.clone(), message.attempts))
                .collect();
            assert_eq!(shown, expected);
            let dead: Vec<u64> = store
                .dead(&mailbox(to), 0, 100)
                .await
                .unwrap()
                .iter()
                .map(|letter| letter.seq)
                .collect();
            assert_eq!(dead, model.dead.keys().copied().collect::<Vec<_>>());
        }
    }

    async fn compare_statuses(&self) {
        for (slot, append) in &self.model.last {
            let (sender, recipient) = (did(SENDERS[slot.0]), did(RECIPIENTS[slot.1]));
            let records = self
                .backend
                .store()
                .status(&sender, append.id, Some(&recipient))
                .await
                .unwrap();
            let told: Vec<Status> = records.iter().map(|record| record.status).collect();
            let mut days = self.model.status.range((*slot, i64::MIN)..=(*slot, i64::MAX));
            let newest = days.next_back().map(|(_, status)| *status);
            assert_eq!(told, newest.into_iter().collect::<Vec<_>>());
        }
    }
}

fn mailbox(to: usize) -> MailboxId {
    MailboxId::of(&did(RECIPIENTS[to]))
}

fn run(backend: Backend, steps: Vec<Step>) {
    run_to_the_end(async {
        let mut run = Run::new(backend);
        for step in steps {
            run.step(step).await;
        }
        run.compare_statuses().await;
    });
}

proptest! {
    #![proptest_config(config(1))]

    #[test]
    fn memory_is_as_the_model(steps in prop::collection::vec(step(), 1..120)) {
        run(Backend::memory(), steps);
    }
}

proptest! {
    #![proptest_config(config(16))]

    #[test]
    fn rocks_is_as_the_model_over_restarts(steps in prop::collection::vec(step(), 1..120)) {
        run(Backend::rocks(), steps);
    }
}
