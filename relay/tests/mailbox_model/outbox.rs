//! Random histories of letters, retries, fates, news, waits, sweeps and restarts, on each backend, against a model that
//! is too simple to be wrong: an outbox neither loses a letter nor hands one out after it has left.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::time::Duration;

use aip_protocol::name::{Did, Domain};
use aip_protocol::time::Timestamp;
use aip_relay::mailbox::suite::letter;
use aip_relay::mailbox::{Append, AppendOutcome, Fate, Fetch, Full, MailboxId, Quota, Route, Select, Status};
use proptest::prelude::*;

use super::backend::{Backend, config, run_to_the_end};

const SENDERS: [&str; 2] = ["alice", "carol"];
const PEERS: [&str; 2] = ["one.example", "two.example"];
const RECIPIENTS: [&str; 2] = ["erin", "frank"];
/// Small, so that histories meet them.
const QUOTA: Quota = Quota {
    mailbox_messages: 5,
    mailbox_bytes: 500,
    sender_messages: 3,
};
const LIFE_SECS: u64 = 2_000;
const REMEMBER_SECS: u64 = 900;

/// Who writes to whom of which peer under which id.
type Slot = (usize, usize, usize, u64);

#[derive(Debug, Clone)]
enum Step {
    /// A new envelope under the id.
    Send(Slot),
    /// The same bytes again.
    Retry(Slot),
    /// Letters of a peer leave, known ones or not.
    Settle(usize, Vec<(u64, Fate)>),
    /// The peer tells of an ack.
    Advance(Slot),
    Wait(u64),
    Sweep,
    Reopen,
}

fn slot() -> impl Strategy<Value = Slot> {
    (0..SENDERS.len(), 0..PEERS.len(), 0..RECIPIENTS.len(), 1..5_u64)
}

fn fate() -> impl Strategy<Value = Fate> {
    prop_oneof![
        3 => Just(Fate::Delivered),
        1 => Just(Fate::Refused("recipient_unknown".to_owned())),
        1 => Just(Fate::Dead("unavailable".to_owned())),
        1 => Just(Fate::Expired),
    ]
}

fn step() -> impl Strategy<Value = Step> {
    let fates = prop::collection::vec((0..16_u64, fate()), 0..6);
    let wait = prop_oneof![0..400_u64, Just(REMEMBER_SECS), Just(LIFE_SECS)];
    prop_oneof![
        8 => slot().prop_map(Step::Send),
        5 => slot().prop_map(Step::Retry),
        6 => (0..PEERS.len(), fates).prop_map(|(peer, fates)| Step::Settle(peer, fates)),
        4 => slot().prop_map(Step::Advance),
        4 => wait.prop_map(Step::Wait),
        2 => Just(Step::Sweep),
        1 => Just(Step::Reopen),
    ]
}

/// What waits for a peer.
#[derive(Debug, Default)]
struct Outbox {
    given: u64,
    waiting: BTreeMap<u64, (Slot, Append)>,
}

impl Outbox {
    fn full(&self, append: &Append) -> Option<Full> {
        let letters = || self.waiting.values().map(|(_, letter)| letter);
        let bytes: usize = letters().map(|letter| letter.wire.len()).sum();
        let same = letters().filter(|letter| letter.sender == append.sender);
        if self.waiting.len() >= QUOTA.mailbox_messages as usize {
            Some(Full::MailboxMessages)
        } else if (bytes + append.wire.len()) as u64 > QUOTA.mailbox_bytes {
            Some(Full::MailboxBytes)
        } else if same.count() >= QUOTA.sender_messages as usize {
            Some(Full::Sender)
        } else {
            None
        }
    }

    fn floor(&self) -> u64 {
        self.waiting.keys().next().map_or(self.given, |lowest| lowest - 1)
    }
}

/// A store of letters, too simple to be wrong.
struct Model {
    now: Timestamp,
    outboxes: [Outbox; 2],
    window: HashMap<Slot, (Append, u64)>,
    /// By the day of acceptance: the newest one is told.
    status: BTreeMap<(Slot, i64), Status>,
    last: HashMap<Slot, Append>,
}

fn day_of(append: &Append) -> i64 {
    append.accepted_at.unix_millis() / 86_400_000
}

impl Model {
    fn append(&mut self, slot: Slot, append: &Append) -> AppendOutcome {
        if let Some((known, seq)) = self.window.get(&slot)
            && known.remember_until >= self.now
        {
            if known.digest != append.digest {
                return AppendOutcome::Reused;
            }
            let (seq, route) = (Some(*seq), Route::Peer);
            return AppendOutcome::Duplicate { seq, route };
        }
        let outbox = &mut self.outboxes[slot.1];
        if let Some(full) = outbox.full(append) {
            return AppendOutcome::Full(full);
        }
        outbox.given += 1;
        let seq = outbox.given;
        outbox.waiting.insert(seq, (slot, append.clone()));
        self.window.insert(slot, (append.clone(), seq));
        self.status.insert((slot, day_of(append)), Status::Queued);
        AppendOutcome::Stored { seq: Some(seq) }
    }

    fn settle(&mut self, peer: usize, seq: u64, status: Status) -> bool {
        let Some((slot, letter)) = self.outboxes[peer].waiting.remove(&seq) else {
            return false;
        };
        self.status.insert((slot, day_of(&letter)), status);
        true
    }

    fn newest(&mut self, slot: Slot) -> Option<&mut Status> {
        let mut days = self.status.range_mut((slot, i64::MIN)..=(slot, i64::MAX));
        days.next_back().map(|(_, status)| status)
    }
}

struct Run {
    model: Model,
    backend: Backend,
}

impl Run {
    fn new(backend: Backend) -> Self {
        let model = Model {
            now: Timestamp::parse("2026-11-29T20:15:30Z").unwrap(),
            outboxes: Default::default(),
            window: HashMap::new(),
            status: BTreeMap::new(),
            last: HashMap::new(),
        };
        Self { model, backend }
    }

    async fn step(&mut self, step: Step) {
        let now = self.model.now;
        match step {
            Step::Send(slot) => {
                let append = new_letter(now, slot);
                self.model.last.insert(slot, append.clone());
                self.append(slot, append).await;
            }
            Step::Retry(slot) => {
                if let Some(mut again) = self.model.last.get(&slot).cloned()
                    && now <= again.remember_until
                {
                    again.accepted_at = now;
                    self.append(slot, again).await;
                }
            }
            Step::Settle(peer, fates) => self.settle(peer, &fates).await,
            Step::Advance(slot) => self.advance(slot).await,
            Step::Wait(secs) => self.model.now = now + Duration::from_secs(secs),
            Step::Sweep => self.sweep().await,
            Step::Reopen => self.backend.reopen(),
        }
        self.compare().await;
    }

    async fn append(&mut self, slot: Slot, append: Append) {
        let expected = self.model.append(slot, &append);
        assert_eq!(self.backend.store().append(append).await.unwrap(), expected);
    }

    async fn settle(&mut self, peer: usize, fates: &[(u64, Fate)]) {
        let settled = self
            .backend
            .store()
            .settle_outbox(&outbox(peer), fates, self.model.now)
            .await;
        let told: BTreeSet<_> = settled
            .unwrap()
            .into_iter()
            .map(|settled| (settled.seq, settled.id))
            .collect();
        let mut expected = BTreeSet::new();
        for (seq, fate) in fates {
            let id = self.model.outboxes[peer]
                .waiting
                .get(seq)
                .map(|(_, letter)| letter.id);
            if self.model.settle(peer, *seq, Status::of_fate(fate).0) {
                expected.extend(id.map(|id| (*seq, id)));
            }
        }
        assert_eq!(told, expected);
    }

    async fn advance(&mut self, slot: Slot) {
        let Some(letter) = self.model.last.get(&slot).cloned() else {
            return;
        };
        let Append {
            sender,
            id,
            recipient,
            ..
        } = letter;
        let store = self.backend.store();
        let advanced = store
            .advance_status(&sender, id, &recipient, (Status::Acked, None), self.model.now)
            .await;
        let known = self.model.newest(slot);
        let news = known.filter(|status| **status == Status::Delivered);
        assert_eq!(advanced.unwrap(), news.is_some());
        if let Some(status) = news {
            *status = Status::Acked;
        }
    }

    async fn sweep(&mut self) {
        let swept = self.backend.store().sweep(self.model.now).await.unwrap();
        let mut expired = BTreeSet::new();
        for (peer, domain) in PEERS.iter().enumerate() {
            let waiting = self.model.outboxes[peer].waiting.iter();
            let due: Vec<u64> = waiting
                .filter(|(_, (_, letter))| letter.expires_at <= self.model.now)
                .map(|(seq, _)| *seq)
                .collect();
            for seq in due {
                self.model.settle(peer, seq, Status::Expired);
                expired.insert(((*domain).to_owned(), seq));
            }
        }
        let told: BTreeSet<_> = swept
            .expired
            .into_iter()
            .map(|settled| (settled.recipient.domain().as_str().to_owned(), settled.seq))
            .collect();
        assert_eq!(told, expired);
    }

    /// Everything that can be read is as the model has it.
    async fn compare(&self) {
        let store = self.backend.store();
        for (peer, model) in self.model.outboxes.iter().enumerate() {
            let state = store.state(&outbox(peer)).await.unwrap();
            assert_eq!((state.floor, state.next_seq), (model.floor(), model.given + 1));
            assert_eq!((state.pending, state.dead), (model.waiting.len() as u64, 0));
            let fetch = Fetch {
                select: Select::After(0),
                max_messages: 100,
                max_bytes: usize::MAX,
                now: self.model.now,
            };
            let shown: Vec<_> = store
                .fetch(&outbox(peer), fetch)
                .await
                .unwrap()
                .into_iter()
                .map(|message| {
                    (
                        message.seq,
                        message.id,
                        message.sender,
                        message.recipient,
                        message.wire,
                    )
                })
                .collect();
            let alive = model
                .waiting
                .iter()
                .filter(|(_, (_, letter))| letter.expires_at > self.model.now);
            let expected: Vec<_> = alive
                .map(|(seq, (_, letter))| {
                    let Append {
                        id,
                        sender,
                        recipient,
                        wire,
                        ..
                    } = letter.clone();
                    (*seq, id, sender, recipient, wire)
                })
                .collect();
            assert_eq!(shown, expected);
        }
    }

    async fn compare_statuses(&mut self) {
        for (slot, letter) in self.model.last.clone() {
            let (sender, to) = (&letter.sender, Some(&letter.recipient));
            let records = self.backend.store().status(sender, letter.id, to).await.unwrap();
            let told: Vec<Status> = records.iter().map(|record| record.status).collect();
            let newest = self.model.newest(slot).map(|status| *status);
            assert_eq!(told, newest.into_iter().collect::<Vec<_>>());
        }
    }
}

fn new_letter(now: Timestamp, (from, peer, to, n): Slot) -> Append {
    let recipient = Did::parse(&format!("did:aip:{}:{}", PEERS[peer], RECIPIENTS[to])).unwrap();
    let append = letter(now, SENDERS[from], recipient, n);
    let mut digest = append.digest;
    digest[..16].copy_from_slice(&now.unix_nanos().to_be_bytes());
    Append {
        digest,
        remember_until: now + Duration::from_secs(REMEMBER_SECS),
        expires_at: now + Duration::from_secs(LIFE_SECS),
        quota: QUOTA,
        ..append
    }
}

fn outbox(peer: usize) -> MailboxId {
    MailboxId::of_peer(&Domain::parse(PEERS[peer]).unwrap())
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
