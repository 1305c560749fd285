//! The contract on every implementation, the file inbox under crashes, and the promise itself as a property.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use proptest::prelude::*;

use super::suite::{key, now};
use super::*;

#[tokio::test]
async fn memory_keeps_the_contract() {
    suite::run(MemoryInbox::new).await;
}

#[tokio::test]
async fn file_keeps_the_contract() {
    let folder = tempfile::tempdir().unwrap();
    let count = std::cell::Cell::new(0);
    suite::run(|| {
        count.set(count.get() + 1);
        FileInbox::open(folder.path().join(count.get().to_string())).unwrap()
    })
    .await;
}

#[tokio::test]
async fn file_keeps_the_contract_when_it_folds_at_every_record() {
    let folder = tempfile::tempdir().unwrap();
    let count = std::cell::Cell::new(0);
    suite::run(|| {
        count.set(count.get() + 1);
        FileInbox::open_with(&folder.path().join(count.get().to_string()), 1).unwrap()
    })
    .await;
}

#[tokio::test]
async fn file_survives_being_opened_again() {
    for records_max in [1, 2, 1000] {
        let folder = tempfile::tempdir().unwrap();
        for seq in 1..=5 {
            let inbox = FileInbox::open_with(folder.path(), records_max).unwrap();
            inbox.enter("a", 0).await.unwrap();
            inbox
                .record(&[key("a", seq, u8::try_from(seq).unwrap())], now())
                .await
                .unwrap();
        }
        let inbox = FileInbox::open_with(folder.path(), records_max).unwrap();
        assert_eq!(
            inbox.cursor().await.unwrap(),
            Some(Cursor {
                epoch: "a".into(),
                seq: 5
            })
        );
        assert!(inbox.seen(&key("b", 1, 3)).await.unwrap(), "ids are kept too");
    }
}

#[tokio::test]
async fn a_second_opener_is_kept_out() {
    let folder = tempfile::tempdir().unwrap();
    let first = FileInbox::open(folder.path()).unwrap();
    assert!(matches!(
        FileInbox::open(folder.path()),
        Err(InboxError::InUse(_))
    ));
    drop(first);
    FileInbox::open(folder.path()).unwrap();
}

fn only_log(folder: &Path) -> std::path::PathBuf {
    folder.join("log.0")
}

#[tokio::test]
async fn a_torn_last_line_is_cut_off_wherever_it_was_torn() {
    let folder = tempfile::tempdir().unwrap();
    let inbox = FileInbox::open(folder.path()).unwrap();
    inbox.enter("a", 0).await.unwrap();
    inbox.record(&[key("a", 1, 1)], now()).await.unwrap();
    let whole = fs::read(only_log(folder.path())).unwrap();
    inbox.record(&[key("a", 2, 2)], now()).await.unwrap();
    drop(inbox);
    let full = fs::read(only_log(folder.path())).unwrap();
    for cut in whole.len()..full.len() {
        let mut torn = full[..cut].to_vec();
        if cut % 2 == 0 {
            torn.resize(cut + 100, 0); // a file system may leave a hole of zeros
        }
        fs::write(only_log(folder.path()), torn).unwrap();
        let inbox = FileInbox::open(folder.path()).unwrap();
        assert_eq!(inbox.cursor().await.unwrap().unwrap().seq, 1, "cut at {cut}");
        inbox.record(&[key("a", 2, 2)], now()).await.unwrap();
        assert_eq!(inbox.cursor().await.unwrap().unwrap().seq, 2);
    }
}

#[tokio::test]
async fn damage_in_the_middle_is_reported_not_skipped() {
    let folder = tempfile::tempdir().unwrap();
    let inbox = FileInbox::open(folder.path()).unwrap();
    inbox.enter("a", 0).await.unwrap();
    for seq in 1..4 {
        inbox
            .record(&[key("a", seq, u8::try_from(seq).unwrap())], now())
            .await
            .unwrap();
    }
    drop(inbox);
    let mut bytes = fs::read(only_log(folder.path())).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(only_log(folder.path()), bytes).unwrap();
    assert!(matches!(
        FileInbox::open(folder.path()),
        Err(InboxError::Corrupt { .. })
    ));
}

#[tokio::test]
async fn a_log_that_a_crashed_fold_left_behind_does_not_count() {
    let folder = tempfile::tempdir().unwrap();
    let inbox = FileInbox::open_with(folder.path(), 2).unwrap();
    inbox.enter("a", 0).await.unwrap();
    let stale = fs::read(folder.path().join("log.0")).unwrap();
    inbox.record(&[key("a", 1, 1)], now()).await.unwrap();
    inbox.enter("b", 4).await.unwrap();
    drop(inbox);
    fs::write(folder.path().join("log.0"), stale).unwrap();
    let inbox = FileInbox::open_with(folder.path(), 2).unwrap();
    assert_eq!(
        inbox.cursor().await.unwrap(),
        Some(Cursor {
            epoch: "b".into(),
            seq: 4
        })
    );
    assert!(!folder.path().join("log.0").exists());
}

#[tokio::test]
async fn process_runs_the_effect_once_and_only_a_success_counts() {
    let inbox = MemoryInbox::new();
    inbox.enter("a", 0).await.unwrap();
    let key = key("a", 1, 1);
    let failed = process(&inbox, &key, now(), || async {
        Err::<(), _>(InboxError::Store("the effect failed".into()))
    })
    .await;
    assert!(failed.is_err());
    let first = process(&inbox, &key, now(), || async { Ok::<_, InboxError>(7) })
        .await
        .unwrap();
    assert_eq!(first, Processed::Done(7));
    let second = process(&inbox, &key, now(), || async { Ok::<_, InboxError>(8) })
        .await
        .unwrap();
    assert_eq!(second, Processed::Before);
}

/// What can happen between a hub and an agent whose effects and records are one transaction.
#[derive(Debug, Clone)]
enum Step {
    /// The hub offers one of its open messages, in any order.
    Offer(usize),
    /// The same, and the acknowledgement is lost.
    OfferAckLost(usize),
    /// The same, and the agent dies with effect and record uncommitted.
    OfferCrash(usize),
    /// The agent starts again from what it had written.
    Restart,
    /// The hub is restored from a backup: a new epoch, everything sent so far is open again, in another order.
    Restore(u8),
    /// The hub says where its floor is.
    HubFloor,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        6 => any::<usize>().prop_map(Step::Offer),
        3 => any::<usize>().prop_map(Step::OfferAckLost),
        2 => any::<usize>().prop_map(Step::OfferCrash),
        2 => Just(Step::Restart),
        1 => any::<u8>().prop_map(Step::Restore),
        2 => Just(Step::HubFloor),
    ];
    proptest::collection::vec(step, 0..120)
}

/// A mailbox of `sent` messages as a hub sees it.
struct Hub {
    epoch: u32,
    seq_of: BTreeMap<u64, u8>,
    open: BTreeSet<u64>,
}

impl Hub {
    fn new(sent: u8) -> Self {
        let seq_of: BTreeMap<u64, u8> = (1..=u64::from(sent)).zip(0..).collect();
        Self {
            epoch: 0,
            open: seq_of.keys().copied().collect(),
            seq_of,
        }
    }

    fn restore(&mut self, by: u8) {
        let sent = u8::try_from(self.seq_of.len()).unwrap();
        self.epoch += 1;
        self.seq_of = (1..=u64::from(sent))
            .map(|seq| (seq, (u8::try_from(seq).unwrap() + by % sent) % sent))
            .collect();
        self.open = self.seq_of.keys().copied().collect();
    }

    fn floor(&self) -> u64 {
        self.open.first().map_or(self.seq_of.len() as u64, |seq| seq - 1)
    }

    fn pick(&self, choice: usize) -> Option<MessageKey> {
        let open: Vec<u64> = self.open.iter().copied().collect();
        let seq = *open.get(choice.checked_rem(open.len())?)?;
        Some(key(&self.epoch.to_string(), seq, self.seq_of[&seq]))
    }
}

proptest! {
    /// No effect happens twice under crash, replay, reordering and restore; and every message is applied in the end.
    #[test]
    fn nothing_is_applied_twice_and_nothing_is_lost(steps in steps(), sent in 1_u8..12) {
        let mut hub = Hub::new(sent);
        let mut live = InboxState::default();
        live.enter("0", 0);
        let mut disk = serde_json::to_string(&live).unwrap();
        let mut applied: BTreeMap<u8, u32> = BTreeMap::new();
        let finish = (0..usize::from(sent)).map(Step::Offer);
        for step in steps.into_iter().chain([Step::HubFloor]).chain(finish) {
            let offered = match &step {
                Step::Offer(choice) | Step::OfferAckLost(choice) | Step::OfferCrash(choice) => hub.pick(*choice),
                _ => None,
            };
            if let Some(key) = offered {
                live.enter(&hub.epoch.to_string(), 0);
                if !live.seen(&key) {
                    if matches!(step, Step::OfferCrash(_)) {
                        live = serde_json::from_str(&disk).unwrap();
                        continue;
                    }
                    // One transaction: the effect, and the state that says so.
                    *applied.entry(key.id[0]).or_default() += 1;
                    live.record(&key, now());
                    disk = serde_json::to_string(&live).unwrap();
                }
                if !matches!(step, Step::OfferAckLost(_)) {
                    hub.open.remove(&key.cursor.seq);
                }
            }
            match step {
                Step::Restart => live = serde_json::from_str(&disk).unwrap(),
                Step::Restore(by) => hub.restore(by),
                Step::HubFloor => drop(live.enter(&hub.epoch.to_string(), hub.floor())),
                _ => {}
            }
        }
        prop_assert!(applied.values().all(|times| *times == 1), "{applied:?}");
        prop_assert_eq!(applied.len(), usize::from(sent));
    }
}
