//! Sending, fetching, and waiting without guessing.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use aip_jetstream::{JetStreamMailboxes, Options};
use aip_protocol::time::Timestamp;
use aip_relay::mailbox::suite::{bob, envelope};
use aip_relay::mailbox::{
    AckOutcome, Append, AppendOutcome, DeadLetters, Fetch, MailboxState, Mailboxes, Quota, Redrive,
    RedriveOutcome, Select, Settled, StoreError, StoredMessage,
};
use tokio::task::JoinSet;
use uuid::Uuid;

use crate::stores;

/// How long a test waits for what must come.
pub(crate) const PATIENCE: Duration = Duration::from_mins(1);

/// For tests in which servers do not answer.
pub(crate) fn impatient(options: Options) -> Options {
    Options {
        publish_try: Duration::from_millis(400),
        publish_deadline: Duration::from_secs(2),
        read_timeout: Duration::from_secs(1),
        ..options
    }
}

/// Options for a store of its own on the server that all tests share.
pub(crate) fn shared(what: &str) -> Options {
    stores::options(&aip_engines::Nats::shared().url(), &stores::prefix(what))
}

/// Two processes that remember nothing of their own.
pub(crate) async fn two(options: Options) -> [Arc<JetStreamMailboxes>; 2] {
    let one = stores::open_forgetful(options.clone()).await;
    let other = stores::open_forgetful(options).await;
    [Arc::new(one), Arc::new(other)]
}

pub(crate) fn now() -> Timestamp {
    stores::start()
}

/// Envelope `n` from alice to bob, with room for many.
pub(crate) fn mail(n: u64) -> Append {
    let mut append = envelope(now(), "alice", "bob", n);
    append.quota = roomy();
    append
}

pub(crate) fn roomy() -> Quota {
    Quota {
        mailbox_messages: 50_000,
        sender_messages: 50_000,
        ..Quota::default()
    }
}

/// The same as [`mail`], of so many seconds later.
pub(crate) fn mail_at(n: u64, secs: u64) -> Append {
    let mut append = envelope(now() + Duration::from_secs(secs), "alice", "bob", n);
    append.quota = roomy();
    append
}

/// Appends again and again until the store knows; a failure must be one that may be tried again.
pub(crate) async fn append_until_known(store: &JetStreamMailboxes, append: &Append) -> AppendOutcome {
    let known = async {
        loop {
            match store.append(append.clone()).await {
                Ok(outcome) => return outcome,
                Err(StoreError::Unavailable(_) | StoreError::OutcomeUnknown(_)) => {
                    tokio::time::sleep(Duration::from_millis(20)).await;
                }
                Err(error) => panic!("{error}"),
            }
        }
    };
    tokio::time::timeout(PATIENCE, known).await.unwrap()
}

/// The sequence number in an answer, stored or duplicate.
pub(crate) fn seq_of(outcome: AppendOutcome) -> u64 {
    match outcome {
        AppendOutcome::Stored { seq } | AppendOutcome::Duplicate { seq, .. } => seq.unwrap(),
        refused => panic!("{refused:?}"),
    }
}

/// All that is pending in bob's mailbox.
pub(crate) async fn pending(store: &JetStreamMailboxes) -> Vec<StoredMessage> {
    let mut all = Vec::new();
    loop {
        let after = all.last().map_or(0, |last: &StoredMessage| last.seq);
        let page = fetch(store, Select::After(after)).await;
        if page.is_empty() {
            return all;
        }
        all.extend(page);
    }
}

pub(crate) async fn pending_seqs(store: &JetStreamMailboxes) -> Vec<u64> {
    pending(store).await.iter().map(|message| message.seq).collect()
}

pub(crate) async fn fetch(store: &JetStreamMailboxes, select: Select) -> Vec<StoredMessage> {
    let fetch = Fetch {
        select,
        max_messages: 1_000,
        max_bytes: usize::MAX,
        now: now(),
    };
    store.fetch(&bob(), fetch).await.unwrap()
}

pub(crate) async fn state(store: &JetStreamMailboxes) -> MailboxState {
    store.state(&bob()).await.unwrap()
}

/// The floor after an ack and what it settled.
pub(crate) async fn acked(store: &JetStreamMailboxes, upto: u64, also: &[u64]) -> (u64, Vec<u64>) {
    match store.ack(&bob(), upto, also, now()).await.unwrap() {
        AckOutcome::Acked(acked) => (acked.floor, seqs(&acked.messages)),
        refused => panic!("{refused:?}"),
    }
}

pub(crate) fn seqs(settled: &[Settled]) -> Vec<u64> {
    settled.iter().map(|settled| settled.seq).collect()
}

pub(crate) async fn redrive(store: &JetStreamMailboxes, seq: u64) -> RedriveOutcome {
    let redrive = Redrive {
        seq,
        expires_at: now() + Duration::from_hours(24),
        now: now(),
        quota: roomy(),
    };
    store.redrive(&bob(), redrive).await.unwrap()
}

/// Sends envelopes `from..from + count` through `store`, a few at a time, until each is known; tells the answers.
pub(crate) async fn pour(
    store: Arc<JetStreamMailboxes>,
    from: u64,
    count: u64,
) -> BTreeMap<u64, AppendOutcome> {
    let mut tasks = JoinSet::new();
    for lane in 0..4 {
        let store = Arc::clone(&store);
        tasks.spawn(async move {
            let mut answers = BTreeMap::new();
            for n in (from..from + count).filter(|n| n % 4 == lane) {
                answers.insert(n, append_until_known(&store, &mail(n)).await);
            }
            answers
        });
    }
    tasks.join_all().await.into_iter().flatten().collect()
}

/// What must hold after any trouble: every answered envelope is there once, where its answer said; sequence numbers
/// are dense, in order, and used once.
pub(crate) async fn all_there(store: &JetStreamMailboxes, answers: &BTreeMap<u64, AppendOutcome>) {
    let messages = pending(store).await;
    let shown: Vec<u64> = messages.iter().map(|message| message.seq).collect();
    assert_eq!(
        shown,
        (1..=shown.len() as u64).collect::<Vec<_>>(),
        "dense and in order"
    );
    let mut places: BTreeMap<Uuid, u64> = BTreeMap::new();
    for message in &messages {
        assert_eq!(
            places.insert(message.id, message.seq),
            None,
            "twice: {}",
            message.id
        );
    }
    for (n, outcome) in answers {
        let sent = mail(*n);
        let seq = places.remove(&sent.id);
        assert_eq!(seq, Some(seq_of(*outcome)), "envelope {n}");
        assert_eq!(
            messages[usize::try_from(seq.unwrap()).unwrap() - 1].wire,
            sent.wire
        );
    }
    assert!(places.is_empty(), "nobody sent {places:?}");
    let state = state(store).await;
    assert_eq!(state.next_seq, messages.len() as u64 + 1);
    assert_eq!(state.pending, messages.len() as u64);
    let bytes: usize = messages.iter().map(|message| message.wire.len()).sum();
    assert_eq!(state.bytes, bytes as u64);
}

/// Returns when `holds` does.
pub(crate) async fn eventually(what: &str, mut holds: impl AsyncFnMut() -> bool) {
    let wait = async {
        while !holds().await {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    assert!(
        tokio::time::timeout(PATIENCE, wait).await.is_ok(),
        "{what}: in vain"
    );
}

/// What an append answers to the first of its kind.
pub(crate) fn stored(seq: u64) -> AppendOutcome {
    AppendOutcome::Stored { seq: Some(seq) }
}

/// The stream of mailboxes of a store that has one.
pub(crate) async fn stream(options: &Options) -> async_nats::jetstream::stream::Stream {
    let client = async_nats::connect(options.urls.as_slice()).await.unwrap();
    let name = format!("{}_MB_0", options.prefix.to_ascii_uppercase());
    let context = async_nats::jetstream::new(client);
    context.get_stream(name).await.unwrap()
}

/// How many entries the mailboxes of a store hold.
pub(crate) async fn stream_messages(options: &Options) -> u64 {
    stream(options).await.cached_info().state.messages
}
