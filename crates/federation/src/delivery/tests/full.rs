//! Mailboxes at a peer that are full: their mail waits, and nobody else's.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use tokio::time::sleep;

use super::world::{Running, World, domain};
use crate::outbox::Fate;

const BETA: &str = "beta.example";
const HOUR: Duration = Duration::from_hours(1);
const DAY: Duration = Duration::from_hours(24);

/// A world with mail for full mailboxes in front of everything else.
struct Full {
    world: World,
    /// The sender and the recipient of each message, by its number.
    pairs: HashMap<u64, (usize, usize)>,
}

impl Full {
    /// So many senders with `each` messages, taking turns; `recipient` says whom each of them goes to.
    fn new(senders: usize, each: usize, recipient: impl Fn(usize, usize) -> usize) -> Self {
        let world = World::new();
        let mut pairs = HashMap::new();
        for number in 0..each {
            for sender in 0..senders {
                let to = recipient(sender, number);
                let seq = world.put(&format!("agent-{sender}"), &format!("full-{to}"), BETA);
                pairs.insert(seq, (sender, to));
            }
        }
        world.hub(BETA, |hub| {
            hub.full.extend(pairs.keys());
            hub.delay = Duration::from_millis(20);
        });
        Self { world, pairs }
    }

    /// Mail of others, and of the same senders to others, goes out soon: also after hours.
    async fn others_flow(&self, within: Duration) {
        let delivery = self.world.delivery("here");
        let _running = Running::start(&delivery);
        delivery.wake(&domain(BETA));
        for (pause, within) in [(Duration::ZERO, within), (HOUR, Duration::from_secs(1))] {
            sleep(pause).await;
            let mut others = Vec::new();
            for number in 0..200 {
                let from = format!("agent-{}", number % 40 * 5);
                others.push(self.world.send(&delivery, &from, "bob", BETA));
            }
            self.delivered(&others, within).await;
        }
        self.is_asked_seldom().await;
        self.mailboxes_have_room_again().await;
    }

    async fn delivered(&self, seqs: &[u64], within: Duration) {
        let deadline = self.world.now() + within;
        loop {
            let fates = self.world.fates(BETA);
            if seqs.iter().all(|seq| fates.get(seq) == Some(&Fate::Delivered)) {
                return;
            }
            let count = fates.len();
            assert!(self.world.now() < deadline, "others wait; {count} have left");
            sleep(Duration::from_millis(100)).await;
        }
    }

    /// What waits is not read again and again: in an hour a pair is tried a few times, each time a message or two.
    async fn is_asked_seldom(&self) {
        let (reads, loaded) = (self.world.outbox.reads(), self.world.outbox.loaded());
        sleep(HOUR).await;
        let reads = self.world.outbox.reads() - reads;
        let loaded = self.world.outbox.loaded() - loaded;
        let pairs: HashSet<_> = self.pairs.values().collect();
        assert!(loaded <= pairs.len() * 8, "{loaded} of {} pairs", pairs.len());
        // The looks through all outboxes, and a few for each attempt.
        assert!(reads <= 240 + pairs.len() * 3 * 8, "{reads} reads");
    }

    /// All of it arrives, each pair in order.
    async fn mailboxes_have_room_again(&self) {
        self.world.hub(BETA, |hub| hub.full.clear());
        self.world.drained(BETA, HOUR * 2).await;
        let mut last: HashMap<(usize, usize), u64> = HashMap::new();
        let stored = self.world.hub(BETA, |hub| hub.stored.clone());
        for seq in &stored {
            if let Some(pair) = self.pairs.get(seq) {
                let before = last.insert(*pair, *seq);
                assert!(
                    before.is_none_or(|before| before < *seq),
                    "{seq} after {before:?}"
                );
            }
        }
        assert_eq!(stored.len(), self.pairs.len() + 400);
        let fates = self.world.fates(BETA);
        assert!(fates.values().all(|fate| *fate == Fate::Delivered));
    }
}

#[tokio::test(start_paused = true)]
async fn five_senders_with_a_thousand_messages_each_hold_up_nobody() {
    let full = Full::new(5, 1_000, |_, _| 0);
    full.others_flow(Duration::from_secs(2)).await;
}

#[tokio::test(start_paused = true)]
async fn an_outbox_full_of_mail_for_full_mailboxes_holds_up_nobody() {
    let full = Full::new(100, 1_000, |sender, _| sender);
    full.others_flow(Duration::from_secs(2)).await;
}

#[tokio::test(start_paused = true)]
async fn six_thousand_pairs_of_one_message_hold_up_nobody() {
    let full = Full::new(100, 60, |sender, number| sender * 60 + number);
    full.others_flow(Duration::from_secs(2)).await;
}

#[tokio::test(start_paused = true)]
async fn a_peer_that_settles_so_many_at_a_time_is_told_first_of_what_is_in_the_way() {
    let full = Full::new(20, 500, |sender, _| sender);
    full.world.hub(BETA, |hub| hub.has_window = true);
    let delivery = full.world.delivery("here");
    let _running = Running::start(&delivery);
    delivery.wake(&domain(BETA));
    sleep(HOUR * 5).await;
    full.world.hub(BETA, |hub| {
        assert!(hub.stored.is_empty() && hub.refuses.is_empty());
    });
    let others = 0..8_000_u64;
    let others = others.map(|number| full.world.put(&format!("other-{}", number % 40), "bob", BETA));
    let others: Vec<u64> = others.collect();
    delivery.wake(&domain(BETA));
    full.delivered(&others, Duration::from_mins(2)).await;
    let refused = full.world.hub(BETA, |hub| hub.refuses.clone());
    assert!(!refused.is_empty() && refused.keys().all(|seq| full.pairs.contains_key(seq)));
}

#[tokio::test(start_paused = true)]
async fn mail_for_a_full_mailbox_dies_of_that_one_message_after_the_other() {
    let full = Full::new(3, 100, |_, _| 0);
    let delivery = full.world.delivery("here");
    let _running = Running::start(&delivery);
    delivery.wake(&domain(BETA));
    sleep(DAY * 2).await;
    full.world.hub(BETA, |hub| {
        assert!(hub.pushes.len() < 400, "{}", hub.pushes.len());
    });
    full.world.drained(BETA, DAY * 4).await;
    let fates = full.world.fates(BETA);
    assert!(
        fates
            .values()
            .all(|fate| *fate == Fate::Dead("mailbox_full".to_owned()))
    );
    assert_eq!(full.world.told.bounces.lock().unwrap().len(), 300);
}
