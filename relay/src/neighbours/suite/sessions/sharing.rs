//! Sessions that share one mailbox from several processes: a message is in one pair of hands at a time.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard};
use std::time::Duration;

use futures_util::future::join_all;
use tokio::time::timeout;

use super::{PATIENCE, Town, mailbox, message, next};
use crate::inbox::{Link, Output};

/// Who has what, and what is done.
#[derive(Debug, Default)]
struct Ledger {
    held: BTreeMap<u64, u64>,
    acked: BTreeSet<u64>,
    deliveries: usize,
}

#[derive(Debug, Default)]
struct Book(Mutex<Ledger>);

impl Book {
    fn open(&self) -> MutexGuard<'_, Ledger> {
        self.0.lock().unwrap()
    }

    fn receive(&self, seq: u64, session: u64) {
        let mut ledger = self.open();
        ledger.deliveries += 1;
        let other = ledger.held.insert(seq, session);
        assert!(
            other.is_none_or(|other| other == session),
            "{seq} is in the hands of {other:?} and {session}"
        );
        assert!(!ledger.acked.contains(&seq), "{seq} comes again after its ack");
    }

    fn drop_all(&self, session: u64) {
        self.open().held.retain(|_, holder| *holder != session);
    }

    fn ack(&self, seq: u64) {
        let mut ledger = self.open();
        ledger.held.remove(&seq);
        ledger.acked.insert(seq);
    }

    fn is_done(&self, count: usize) -> bool {
        self.open().acked.len() == count
    }
}

/// Numbers that look like chance and are the same in every run.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % sides
    }
}

/// One worker: takes messages and keeps some in hand, acks most, gives some back, leaves now and then.
async fn work(town: &Town, book: &Book, process: usize, session: u64, count: usize) {
    let mut dice = Dice(session * 7_919 + 1);
    let mut life = 0;
    let join = async |life: u64| {
        let session = session * 1_000 + life;
        (town.join(process, "bob", session, true, 8).await, session)
    };
    let (mut link, mut name) = join(life).await;
    let mut mine = Vec::new();
    while !book.is_done(count) {
        match timeout(Duration::from_millis(5), link.next()).await {
            Ok(Output::Message(item)) => {
                book.receive(item.seq, name);
                mine.push(item.seq);
            }
            Ok(Output::Acked(_)) => {}
            Ok(other) => panic!("{other:?}"),
            // The others may have all that is left.
            Err(_nothing) if mine.is_empty() => continue,
            Err(_nothing) => {}
        }
        if mine.is_empty() || dice.roll(3) > 0 {
            continue;
        }
        let seq = mine.swap_remove(usize::try_from(dice.roll(mine.len() as u64)).unwrap());
        match dice.roll(12) {
            0 => {
                book.drop_all(name);
                mine.clear();
                link.settle().await;
                drop(link);
                life += 1;
                (link, name) = join(life).await;
            }
            1 | 2 => {
                book.open().held.remove(&seq);
                link.nak("e1".to_owned(), seq, Duration::ZERO);
            }
            _ => {
                book.ack(seq);
                link.ack("e1".to_owned(), 0, vec![seq]);
            }
        }
    }
    link.settle().await;
}

/// Messages are acked, given back, left behind and stored at random: none is in two hands, none comes after its ack.
pub async fn a_message_is_never_in_two_hands(town: &Town) {
    let (book, count) = (Book::default(), 200_u64);
    let sending = async {
        for n in 1..=count {
            town.send(n).await;
            if n % 10 == 0 {
                tokio::task::yield_now().await;
            }
        }
    };
    let done = usize::try_from(count).unwrap();
    let workers =
        join_all((1..=4).map(|session: u64| work(town, &book, usize::from(session > 2), session, done)));
    timeout(PATIENCE * 3, async { tokio::join!(sending, workers) })
        .await
        .unwrap_or_else(|_| panic!("{:?}", book.open()));
    let state = town.store.state(&mailbox("bob")).await.unwrap();
    assert_eq!((state.floor, state.pending), (count, 0));
}

/// Without anything given back, each message is offered once, whoever gets it.
pub async fn messages_are_shared_out(town: &Town) {
    let mut links = [
        town.join(0, "bob", 1, true, 1_024).await,
        town.join(1, "bob", 2, true, 1_024).await,
    ];
    let mut came = Vec::new();
    for n in 1..=100 {
        town.send(n).await;
    }
    let [one, other] = &mut links;
    while came.len() < 100 {
        let item = tokio::select! {
            item = message(one) => item,
            item = message(other) => item,
        };
        assert_eq!(item.attempt, 1, "{item:?}");
        came.push(item.seq);
    }
    came.sort_unstable();
    assert_eq!(came, (1..=100).collect::<Vec<_>>());
}

async fn hold_one(town: &Town) -> (Link, Link) {
    let mut one = town.join(0, "bob", 1, true, 8).await;
    town.send(1).await;
    assert_eq!(message(&mut one).await.seq, 1);
    let mut other = town.join(1, "bob", 2, true, 8).await;
    let more = timeout(Duration::from_millis(100), other.next()).await;
    assert!(more.is_err(), "{more:?}");
    (one, other)
}

/// What a session gives back goes to the other process at once.
pub async fn what_is_given_back_comes_elsewhere(town: &Town) {
    let (mut one, mut other) = hold_one(town).await;
    one.credit(0);
    one.nak("e1".to_owned(), 1, Duration::ZERO);
    let item = message(&mut other).await;
    assert_eq!((item.seq, item.attempt), (1, 2));
    other.ack("e1".to_owned(), 1, Vec::new());
    assert_eq!(next(&mut other).await, Output::Acked(1));
}

/// What a session leaves behind, too.
pub async fn what_is_left_behind_comes_elsewhere(town: &Town) {
    let (one, mut other) = hold_one(town).await;
    drop(one);
    let item = message(&mut other).await;
    assert_eq!((item.seq, item.attempt), (1, 2));
}

/// A rejected message is gone everywhere.
pub async fn what_is_rejected_comes_nowhere(town: &Town) {
    let (mut one, mut other) = hold_one(town).await;
    one.reject("e1".to_owned(), 1, "unreadable".to_owned());
    one.settle().await;
    drop(one);
    town.send(2).await;
    assert_eq!(message(&mut other).await.seq, 2);
    let state = town.store.state(&mailbox("bob")).await.unwrap();
    assert_eq!((state.pending, state.dead), (1, 1));
}
