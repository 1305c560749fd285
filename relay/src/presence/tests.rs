//! What is heard of other processes, in whatever order.

use std::sync::Mutex;
use std::time::Duration;

use async_trait::async_trait;

use super::*;
use crate::mailbox::Epoch;
use crate::neighbours::{Claim, Ears, Entry, Taken};
use crate::session::Position;

/// Neighbours that number sessions as they are told to, and remember what they are told.
#[derive(Debug, Default)]
struct Notes {
    told: Mutex<Vec<Signal>>,
    joined: Mutex<Vec<(bool, u64)>>,
    entries: Mutex<Vec<Entry>>,
    calls: Mutex<Vec<&'static str>>,
}

#[async_trait]
impl Neighbours for Notes {
    fn tell(&self, _mailbox: &MailboxId, signal: Signal) {
        self.told.lock().unwrap().push(signal);
    }

    async fn arrive(&self, _mailbox: &MailboxId) {
        self.calls.lock().unwrap().push("arrive");
        tokio::task::yield_now().await;
    }

    fn leave(&self, _mailbox: &MailboxId) {
        self.calls.lock().unwrap().push("leave");
    }

    async fn join(&self, _mailbox: &MailboxId, share: bool, generation: u64) -> Entry {
        self.joined.lock().unwrap().push((share, generation));
        let next = self.entries.lock().unwrap().pop();
        next.unwrap_or(Entry::In { generation })
    }

    async fn claim(&self, _mailbox: &MailboxId, _claims: &[Claim]) -> Vec<Taken> {
        Vec::new()
    }

    fn release(&self, _mailbox: &MailboxId, _seqs: &[u64], _after: Duration) {}
}

struct Desk {
    presence: Arc<Presence>,
    notes: Arc<Notes>,
}

fn bob() -> MailboxId {
    MailboxId::from_bytes([1; 16])
}

fn now() -> Timestamp {
    Timestamp::from_unix_millis(1_900_000_000_000)
}

impl Desk {
    fn new() -> Self {
        let notes = Arc::<Notes>::default();
        let presence = Presence::among(Arc::<Notes>::clone(&notes), Arc::new(Alone));
        Self { presence, notes }
    }

    async fn attach(&self) -> Attached {
        self.presence.attach(bob()).await
    }

    fn hear(&self, generation: u64, share: bool) {
        let joined = Signal::Joined { generation, share };
        self.presence.hear(&bob(), joined, now());
    }

    fn told(&self) -> Vec<Signal> {
        std::mem::take(&mut *self.notes.told.lock().unwrap())
    }
}

/// Begins a session; whether it lets be.
fn join(attached: &Attached, session: u64, generation: u64, share: bool) -> bool {
    let joining = Joining {
        session: SessionId::from_random(session),
        share,
        credit: 10,
        position: Position {
            epoch: Epoch::from_random(1),
            floor: 0,
            next_seq: 1,
        },
        generation,
    };
    let (bell, _effects) = attached.join(now(), joining);
    !bell.is_closing()
}

fn is_open(attached: &Attached, session: u64) -> bool {
    attached.close_reason(SessionId::from_random(session)).is_none()
}

#[tokio::test]
async fn who_comes_later_than_a_newer_one_is_replaced_at_once() {
    let desk = Desk::new();
    let attached = desk.attach().await;
    desk.hear(7, false);
    assert!(!join(&attached, 1, 5, false));
    assert_eq!(desk.presence.counts().takeovers, 1);
    assert!(join(&attached, 2, 8, false));
    assert!(!join(&attached, 3, 6, true));
    assert!(is_open(&attached, 2), "it lets the newer one be");
}

#[tokio::test]
async fn in_one_process_too_the_newer_one_stays() {
    let desk = Desk::new();
    let (first, second) = (desk.attach().await, desk.attach().await);
    assert!(join(&second, 2, 6, false));
    assert!(!join(&first, 1, 5, false));
    assert!(is_open(&second, 2));
}

#[tokio::test]
async fn who_could_not_ask_begins_and_gives_way_to_anybody() {
    let desk = Desk::new();
    let attached = desk.attach().await;
    desk.hear(7, false);
    assert!(join(&attached, 1, 0, false));
    desk.hear(3, false);
    assert!(!is_open(&attached, 1));
}

#[tokio::test]
async fn of_those_who_share_nobody_gives_way() {
    let desk = Desk::new();
    let attached = desk.attach().await;
    desk.hear(7, true);
    assert!(join(&attached, 1, 5, true) && join(&attached, 2, 9, true));
    desk.hear(12, true);
    desk.hear(4, true);
    assert!(is_open(&attached, 1) && is_open(&attached, 2));
    assert_eq!(desk.told(), []);
    // One in between that does not share: what is older goes, what is newer says so.
    desk.hear(6, false);
    assert!(!is_open(&attached, 1) && is_open(&attached, 2));
    let joined = Signal::Joined {
        generation: 9,
        share: true,
    };
    assert_eq!(desk.told(), [joined]);
}

#[tokio::test]
async fn a_newer_session_answers_an_older_one() {
    let desk = Desk::new();
    let attached = desk.attach().await;
    assert!(join(&attached, 1, 5, false));
    desk.hear(3, false);
    assert!(is_open(&attached, 1));
    let joined = Signal::Joined {
        generation: 5,
        share: false,
    };
    assert_eq!(desk.told(), [joined]);
    desk.hear(5, false);
    assert!(is_open(&attached, 1), "its own number");
    assert_eq!(desk.told(), []);
}

#[tokio::test]
async fn a_reunion_tells_of_every_session_and_numbers_those_without() {
    let desk = Desk::new();
    let attached = desk.attach().await;
    let reader = desk.attach().await.read().unwrap();
    desk.presence.reunite(now()).await;
    assert!(
        desk.notes.joined.lock().unwrap().is_empty(),
        "no session, nothing to tell"
    );
    assert!(join(&attached, 1, 0, false));
    desk.notes
        .entries
        .lock()
        .unwrap()
        .push(Entry::In { generation: 4 });
    desk.presence.reunite(now()).await;
    desk.presence.reunite(now()).await;
    assert_eq!(*desk.notes.joined.lock().unwrap(), [(false, 0), (false, 4)]);
    desk.hear(3, false);
    assert!(is_open(&attached, 1));
    desk.hear(5, false);
    assert!(!is_open(&attached, 1));
    drop(reader);
}

#[tokio::test]
async fn the_first_arrives_and_the_last_leaves() {
    let desk = Desk::new();
    let calls = || std::mem::take(&mut *desk.notes.calls.lock().unwrap());
    let (first, second) = tokio::join!(desk.attach(), desk.attach());
    let reader = desk.attach().await.read().unwrap();
    assert_eq!(calls(), ["arrive"]);
    drop((first, second));
    assert_eq!(calls(), [""; 0]);
    drop(reader);
    assert_eq!(calls(), ["leave"]);
    // Whoever gives up in the middle; the next one arrives for itself.
    let mut hurried = Box::pin(desk.attach());
    assert!(futures_util::future::poll_immediate(&mut hurried).await.is_none());
    let mut patient = Box::pin(desk.attach());
    assert!(futures_util::future::poll_immediate(&mut patient).await.is_none());
    drop(hurried);
    let patient = patient.await;
    assert_eq!(calls(), ["arrive", "arrive"]);
    drop(patient);
    assert_eq!(calls(), ["leave"]);
    assert_eq!(desk.presence.counts().agents, 0);
}

#[tokio::test]
async fn what_happens_here_is_told_and_what_happened_there_is_not() {
    let desk = Desk::new();
    let attached = desk.attach().await;
    assert!(join(&attached, 1, 1, false));
    let update = StatusUpdate {
        id: Uuid::from_u128(1),
        to: Did::parse("did:aip:hub.example:alice").unwrap(),
        status: Status::Stored,
        code: None,
        at: now(),
    };
    let presence = &desk.presence;
    presence.settled(&bob(), 3, &[5], 3, now());
    presence.offered(&bob(), 6, now());
    presence.buried(&bob(), 7, now());
    presence.status(&bob(), update.clone());
    presence.status(&MailboxId::from_bytes([2; 16]), update.clone());
    presence.close_agent(&bob(), CloseReason::Unauthenticated);
    let signals = [
        Signal::Settled {
            upto: 3,
            also: vec![5],
            floor: 3,
        },
        Signal::Offered { seq: 6 },
        Signal::Buried { seq: 7 },
        // Bob's only session has its own; the other sender may be elsewhere.
        Signal::Status(update),
        Signal::Close(CloseReason::Unauthenticated),
    ];
    assert_eq!(desk.told(), signals);
    for signal in signals {
        presence.hear(&bob(), signal, now());
    }
    presence.wake(&bob(), 8, now());
    presence.look_again_all(now());
    presence.close_all(CloseReason::GoingAway);
    assert_eq!(desk.told(), []);
}
