//! Random histories of what two processes do to two mailboxes, in turns, against the model of the embedded stores.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::time::Duration;

use aip_relay::mailbox::suite::{did, envelope};
use aip_relay::mailbox::{
    AckOutcome, Append, AppendOutcome, DeadLetters, Fetch, MailboxId, Mailboxes, Redrive, RedriveOutcome,
    Route, Select, Status, Statuses, Upkeep,
};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

use crate::kit::shared;
use crate::model::{LIFE_SECS, Message, Model, QUOTA, RECIPIENTS, SENDERS, Slot};
use crate::pair::Pair;
use crate::stores;

#[derive(Debug, Clone)]
enum Step {
    Send { slot: Slot, age_secs: u64, route: Route },
    Retry { slot: Slot },
    Ack { to: usize, upto: u64, also: Vec<u64> },
    Bury { to: usize, seq: u64 },
    Redrive { to: usize, seq: u64 },
    Offer { to: usize },
    Wait { secs: u64 },
    Sweep,
    Reopen,
}

fn slot() -> impl Strategy<Value = Slot> {
    (0..SENDERS.len(), 0..RECIPIENTS.len(), 1..6_u64)
}

fn step() -> impl Strategy<Value = Step> {
    let (to, seq) = (0..RECIPIENTS.len(), 0..14_u64);
    let age_secs = prop_oneof![0..=900_u64, Just(0), Just(900)];
    let route = prop_oneof![5 => Just(Route::Mailbox), 1 => Just(Route::Direct)];
    let wait = prop_oneof![
        0..400_u64,
        Just(1),
        Just(299),
        Just(900),
        Just(1_200),
        Just(LIFE_SECS)
    ];
    prop_oneof![
        8 => (slot(), age_secs, route).prop_map(|(slot, age_secs, route)| Step::Send { slot, age_secs, route }),
        5 => slot().prop_map(|slot| Step::Retry { slot }),
        4 => (to.clone(), seq.clone(), prop::collection::vec(0..14_u64, 0..4))
            .prop_map(|(to, upto, also)| Step::Ack { to, upto, also }),
        2 => (to.clone(), seq.clone()).prop_map(|(to, seq)| Step::Bury { to, seq }),
        2 => (to.clone(), seq).prop_map(|(to, seq)| Step::Redrive { to, seq }),
        2 => to.prop_map(|to| Step::Offer { to }),
        4 => wait.prop_map(|secs| Step::Wait { secs }),
        2 => Just(Step::Sweep),
        1 => Just(Step::Reopen),
    ]
}

struct Run {
    model: Model,
    /// Ids that two messages have had: whose status such an id shows is nobody's concern.
    used_again: BTreeSet<Slot>,
    store: Pair,
    options: aip_jetstream::Options,
}

async fn pair(options: &aip_jetstream::Options) -> Pair {
    Pair::new(
        stores::open_forgetful(options.clone()).await,
        stores::open_forgetful(options.clone()).await,
    )
}

impl Run {
    async fn new() -> Self {
        let options = shared("history");
        Self {
            model: Model {
                now: stores::start(),
                mailboxes: Default::default(),
                window: HashMap::new(),
                status: BTreeMap::new(),
                last: HashMap::new(),
            },
            used_again: BTreeSet::new(),
            store: pair(&options).await,
            options,
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
            Step::Reopen => {
                self.close().await;
                self.store = pair(&self.options).await;
            }
        }
        self.compare().await;
    }

    async fn close(&self) {
        for store in &self.store.stores {
            store.close().await;
        }
    }

    fn new_envelope(&self, (from, to, n): Slot, age_secs: u64, route: Route) -> Append {
        let now = self.model.now;
        let mut append = envelope(now, SENDERS[from], RECIPIENTS[to], n);
        let created_at = now - Duration::from_secs(age_secs);
        append.remember_until = created_at + Duration::from_mins(15);
        append.expires_at = now + Duration::from_secs(LIFE_SECS);
        append.digest[..16].copy_from_slice(&created_at.unix_nanos().to_be_bytes());
        (append.quota, append.route) = (QUOTA, route);
        append
    }

    async fn append(&mut self, slot: Slot, append: Append) {
        let known = self.model.window.contains_key(&slot);
        let expected = self.model.append(slot, &append);
        if known && matches!(expected, AppendOutcome::Stored { .. }) {
            self.used_again.insert(slot);
        }
        assert_eq!(self.store.append(append).await.unwrap(), expected);
    }

    async fn ack(&mut self, to: usize, upto: u64, also: &[u64]) {
        let outcome = self.store.ack(&mailbox(to), upto, also, self.model.now).await;
        let given = self.model.mailboxes[to].given;
        if also.iter().chain([&upto]).any(|seq| *seq > given) {
            return assert_eq!(outcome.unwrap(), AckOutcome::BeyondEnd);
        }
        let seqs: BTreeSet<u64> = (1..=upto).chain(also.iter().copied()).collect();
        let settled: Vec<u64> = seqs
            .into_iter()
            .filter(|seq| self.model.settle(to, *seq, Status::Acked).is_some())
            .collect();
        let AckOutcome::Acked(acked) = outcome.unwrap() else {
            panic!("refused")
        };
        assert_eq!(crate::kit::seqs(&acked.messages), settled);
        assert_eq!(acked.floor, self.model.mailboxes[to].floor());
    }

    async fn bury(&mut self, to: usize, seq: u64) {
        let buried = self.store.bury(&mailbox(to), seq, "x", self.model.now).await;
        let message = self.model.settle(to, seq, Status::Dead);
        assert_eq!(
            buried.unwrap().map(|settled| settled.id),
            message.as_ref().map(|message| message.sent.id)
        );
        let dead = &mut self.model.mailboxes[to].dead;
        dead.extend(message.map(|message| (seq, message)));
    }

    async fn redrive(&mut self, to: usize, seq: u64) {
        let (now, expires_at) = (self.model.now, self.model.now + Duration::from_secs(LIFE_SECS));
        let redrive = Redrive {
            seq,
            expires_at,
            now,
            quota: QUOTA,
        };
        let outcome = self.store.redrive(&mailbox(to), redrive).await.unwrap();
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
        let day = Model::day_of(&message.sent);
        self.model.status.insert(day, Status::Stored);
        let seq = self.model.mailboxes[to].put(message);
        assert_eq!(outcome, RedriveOutcome::Redriven { seq });
    }

    async fn offer(&mut self, to: usize) {
        let pending = &mut self.model.mailboxes[to].pending;
        let seqs: Vec<u64> = pending.keys().copied().collect();
        let attempts = self.store.offer(&mailbox(to), &seqs, 1).await.unwrap();
        assert_eq!(attempts.len(), seqs.len());
        for (message, attempt) in pending.values_mut().zip(attempts) {
            message.attempts += 1;
            assert_eq!(attempt.attempt, message.attempts);
        }
    }

    async fn sweep(&mut self) {
        let swept = self.store.sweep(self.model.now).await.unwrap();
        let mut expired = BTreeSet::new();
        for (to, recipient) in RECIPIENTS.iter().enumerate() {
            let pending = &self.model.mailboxes[to].pending;
            let due: Vec<u64> = pending
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
        for (to, model) in self.model.mailboxes.iter().enumerate() {
            let state = self.store.state(&mailbox(to)).await.unwrap();
            assert_eq!((state.floor, state.next_seq), (model.floor(), model.given + 1));
            assert_eq!(
                (state.pending, state.bytes, state.dead),
                (model.pending.len() as u64, model.bytes(), model.dead.len() as u64)
            );
            let fetch = Fetch {
                select: Select::After(0),
                max_messages: 100,
                max_bytes: usize::MAX,
                now: self.model.now,
            };
            let fetched = self.store.fetch(&mailbox(to), fetch).await.unwrap();
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
            let dead = self.store.dead(&mailbox(to), 0, 100).await.unwrap();
            let dead: Vec<u64> = dead.iter().map(|letter| letter.seq).collect();
            assert_eq!(dead, model.dead.keys().copied().collect::<Vec<_>>());
        }
    }

    async fn compare_statuses(&self) {
        let once = |slot: &Slot| !self.used_again.contains(slot);
        for (slot, append) in self.model.last.iter().filter(|(slot, _)| once(slot)) {
            let (sender, recipient) = (did(SENDERS[slot.0]), did(RECIPIENTS[slot.1]));
            let records = self
                .store
                .status(&sender, append.id, Some(&recipient))
                .await
                .unwrap();
            let told: Vec<Status> = records.iter().map(|record| record.status).collect();
            let mut days = self.model.status.range((*slot, i64::MIN)..=(*slot, i64::MAX));
            let newest = days.next_back().map(|(_, status)| *status);
            assert_eq!(told, newest.into_iter().collect::<Vec<_>>(), "{slot:?}");
        }
    }
}

fn mailbox(to: usize) -> MailboxId {
    MailboxId::of(&did(RECIPIENTS[to]))
}

/// `PROPTEST_CASES` asks for more.
#[test]
fn two_processes_are_as_the_model() {
    let asked = Config::default();
    let config = Config {
        cases: (asked.cases / 5).max(1),
        failure_persistence: None,
        max_shrink_iters: 200,
        ..asked
    };
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap();
    let steps = prop::collection::vec(step(), 1..60);
    let outcome = TestRunner::new(config).run(&steps, |steps| {
        runtime.block_on(async {
            let mut run = Run::new().await;
            for step in steps {
                run.step(step).await;
            }
            run.compare_statuses().await;
            run.close().await;
        });
        Ok(())
    });
    outcome.unwrap();
}
