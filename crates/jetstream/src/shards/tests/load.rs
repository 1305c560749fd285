//! Senders and recipients that go on while a shard moves, and what must be true afterwards.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::AtomicBool;

use aip_relay::mailbox::suite::envelope;
use aip_relay::mailbox::{AckOutcome, Append, AppendOutcome, Fetch, Mailboxes, Select};
use tokio::task::JoinSet;
use tokio::time::sleep;

use super::*;

/// What happened in one mailbox.
#[derive(Default)]
struct Told {
    /// The number that each envelope was given.
    accepted: BTreeMap<u64, u64>,
    /// Up to here the recipient has acked.
    acked: u64,
}

/// See the module.
pub(super) struct Load {
    ground: Arc<Ground>,
    stores: [Arc<JetStreamMailboxes>; 2],
    /// By recipient.
    told: Arc<BTreeMap<String, Mutex<Told>>>,
    over: Arc<AtomicBool>,
    tasks: JoinSet<()>,
}

fn letter(ground: &Ground, to: &str, n: u64) -> Append {
    let started = Timestamp::from_unix_secs(1_800_000_000);
    let mut append = envelope(started, "sender", to, n);
    append.quota.mailbox_messages = u32::MAX;
    append.quota.sender_messages = u32::MAX;
    append.remember_until = ground.now() + Duration::from_mins(15);
    append
}

impl Load {
    /// Three mailboxes in the shard and one elsewhere, two processes; everybody begins.
    pub(super) async fn start(ground: &Arc<Ground>) -> Self {
        let mut names = ground.agents(SHARD, 3);
        names.extend(ground.agents(SHARD + 1, 1));
        let told = names.into_iter().map(|name| (name, Mutex::default())).collect();
        let mut load = Self {
            ground: Arc::clone(ground),
            stores: [Arc::new(ground.process().await), Arc::new(ground.process().await)],
            told: Arc::new(told),
            over: Arc::default(),
            tasks: JoinSet::new(),
        };
        for (of, name) in load.told.clone().keys().enumerate() {
            for (process, store) in load.stores.clone().into_iter().enumerate() {
                let first = 1_000_000 * (2 * of + process) as u64;
                load.send(Arc::clone(&store), name.clone(), first);
                load.receive(store, name.clone());
            }
        }
        load
    }

    /// Sends one envelope after the other, each until it is accepted.
    fn send(&mut self, store: Arc<JetStreamMailboxes>, name: String, first: u64) {
        let (ground, told, over) = (
            Arc::clone(&self.ground),
            Arc::clone(&self.told),
            Arc::clone(&self.over),
        );
        self.tasks.spawn(async move {
            for n in first.. {
                let seq = loop {
                    match store.append(letter(&ground, &name, n)).await {
                        Ok(AppendOutcome::Stored { seq } | AppendOutcome::Duplicate { seq, .. }) => {
                            break seq.unwrap();
                        }
                        Err(StoreError::Unavailable(_) | StoreError::OutcomeUnknown(_)) => {
                            sleep(Duration::from_millis(5)).await;
                        }
                        other => panic!("{other:?}"),
                    }
                };
                told.get(&name).unwrap().lock().unwrap().accepted.insert(n, seq);
                if over.load(Ordering::Relaxed) {
                    return;
                }
                // A mover is to keep up on the slowest machine.
                sleep(Duration::from_millis(5)).await;
            }
        });
    }

    /// Reads and acks now and then; leaves the last few.
    fn receive(&mut self, store: Arc<JetStreamMailboxes>, name: String) {
        let (told, over) = (Arc::clone(&self.told), Arc::clone(&self.over));
        let (mailbox, now) = (MailboxId::of(&did(&name)), self.ground.now());
        self.tasks.spawn(async move {
            while !over.load(Ordering::Relaxed) {
                sleep(Duration::from_millis(20)).await;
                let after = told.get(&name).unwrap().lock().unwrap().acked;
                let Ok(page) = store.fetch(&mailbox, all_after(after, now)).await else {
                    continue;
                };
                let seqs: Vec<u64> = page.iter().map(|message| message.seq).collect();
                // Perhaps the other process has acked meanwhile: then some are missing at the beginning.
                assert!(seqs.windows(2).all(|two| two[0] + 1 == two[1]), "{seqs:?}");
                let Some(upto) = seqs.iter().rev().nth(3) else {
                    continue;
                };
                if let Ok(AckOutcome::Acked(_)) = store.ack(&mailbox, *upto, &[], now).await {
                    let told = &mut *told.get(&name).unwrap().lock().unwrap();
                    told.acked = told.acked.max(*upto);
                }
            }
        });
    }

    /// Returns when each recipient has been sent so many envelopes more.
    pub(super) async fn goes_on(&self, more: usize) {
        let count = |told: &Mutex<Told>| told.lock().unwrap().accepted.len();
        let before: Vec<usize> = self.told.values().map(count).collect();
        for _ in 0..6_000 {
            let now = self.told.values().map(count);
            if now.zip(&before).all(|(now, before)| now >= before + more) {
                return;
            }
            sleep(Duration::from_millis(5)).await;
        }
        panic!("nothing is accepted any more: {before:?}");
    }

    /// Ends it, and looks at everything, as a process that knows nothing does.
    pub(super) async fn check(mut self) {
        self.over.store(true, Ordering::Relaxed);
        while let Some(ended) = self.tasks.join_next().await {
            ended.unwrap();
        }
        let fresh = self.ground.process().await;
        for (name, told) in &*self.told {
            let (accepted, acked) = {
                let told = told.lock().unwrap();
                (told.accepted.clone(), told.acked)
            };
            let mut seqs: Vec<u64> = accepted.values().copied().collect();
            seqs.sort_unstable();
            let dense: Vec<u64> = (1..=seqs.len() as u64).collect();
            assert_eq!(seqs, dense, "{name}");
            self.check_mailbox(&fresh, name, &accepted, acked).await;
        }
    }

    async fn check_mailbox(
        &self,
        fresh: &JetStreamMailboxes,
        name: &str,
        accepted: &BTreeMap<u64, u64>,
        acked: u64,
    ) {
        let (mailbox, now) = (MailboxId::of(&did(name)), self.ground.now());
        for store in [fresh, &*self.stores[0], &*self.stores[1]] {
            let state = store.state(&mailbox).await.unwrap();
            assert_eq!(state.next_seq, accepted.len() as u64 + 1);
            let mut found = BTreeMap::new();
            let mut after = 0;
            loop {
                let page = store.fetch(&mailbox, all_after(after, now)).await.unwrap();
                let Some(last) = page.last() else { break };
                after = last.seq;
                found.extend(
                    page.into_iter()
                        .map(|message| (message.seq, message.id.as_u64_pair().1)),
                );
            }
            // An ack whose answer was lost may have gone further than told.
            assert!(state.floor >= acked);
            let sent = accepted.iter().map(|(n, seq)| (*seq, *n));
            let waiting: BTreeMap<u64, u64> = sent.filter(|(seq, _)| *seq > state.floor).collect();
            assert_eq!(found, waiting);
            assert_eq!(state.pending, waiting.len() as u64);
        }
        for (n, seq) in accepted.iter().rev().take(40).chain(accepted.iter().take(20)) {
            let again = fresh.append(letter(&self.ground, name, *n)).await.unwrap();
            assert!(
                matches!(again, AppendOutcome::Duplicate { seq: Some(first), .. } if first == *seq),
                "{n}: {again:?} is not {seq}"
            );
        }
    }
}

pub(super) fn all_after(after: u64, now: Timestamp) -> Fetch {
    Fetch {
        select: Select::After(after),
        max_messages: 64,
        max_bytes: 1024 * 1024,
        now,
    }
}
