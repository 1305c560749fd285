//! The contract of stores of peers about the room for histories, which strangers could have filled up.

use std::sync::Arc;

use aip_federation::peers::{HistoryCap, HistoryCaps, KnownHistory, PeerChange, Stance};
use aip_protocol::json::Json;
use aip_protocol::name::Did;

use super::fixtures::at;
use super::peer_records::history;
use super::peers::{Store, domain};

/// Room for so many, of however many bytes.
fn so_many(histories: u64) -> HistoryCap {
    HistoryCap {
        histories,
        bytes: u64::MAX,
    }
}

/// A history of so many operations, fetched then. The agent is its name, a dot and its domain.
fn fetched(agent: &str, operations: usize, secs: i64) -> KnownHistory {
    let (name, domain) = agent.split_once('.').unwrap();
    KnownHistory {
        did: Did::parse(&format!("did:aip:{domain}:{name}")).unwrap(),
        ..history(name, operations, "a", secs)
    }
}

async fn keep<S: Store>(store: &S, caps: HistoryCaps, histories: &[(&str, usize, i64)]) {
    for (agent, operations, secs) in histories {
        let history = fetched(agent, *operations, *secs);
        store.keep_history(&history, caps).await.unwrap();
    }
}

/// Which of these agents have a history here.
async fn kept<'a, S: Store>(store: &S, agents: &[&'a str]) -> Vec<&'a str> {
    let mut kept = Vec::new();
    for agent in agents {
        let known = store.history(&fetched(agent, 1, 0).did).await.unwrap();
        kept.extend(known.map(|_| *agent));
    }
    kept
}

/// Those of one domain make room for each other, that first which was not fetched for longest. Others have no part in it.
pub async fn histories_of_a_peer_are_bounded<S: Store>(store: Arc<S>) {
    let caps = HistoryCaps {
        per_peer: so_many(3),
        all: so_many(100),
    };
    let first = [
        ("z.other.example", 1, 0),
        ("z.peer.example.org", 1, 0),
        ("a.peer.example", 1, 1),
        ("b.peer.example", 1, 2),
        ("c.peer.example", 1, 3),
    ];
    let agents = first.map(|(agent, ..)| agent);
    keep(&*store, caps, &first).await;
    // One was fetched anew, one has grown.
    keep(
        &*store,
        caps,
        &[("a.peer.example", 1, 4), ("c.peer.example", 2, 5)],
    )
    .await;
    assert_eq!(kept(&*store, &agents).await, agents);
    keep(&*store, caps, &[("d.peer.example", 1, 6)]).await;
    let three = ["a.peer.example", "c.peer.example", "d.peer.example"];
    let others = ["z.other.example", "z.peer.example.org"];
    assert_eq!(kept(&*store, &agents).await, [&others[..], &three[..2]].concat());

    // One that is forgotten makes room; one that is older than all has none.
    assert!(store.forget_history(&fetched(three[0], 1, 0).did).await.unwrap());
    keep(
        &*store,
        caps,
        &[("e.peer.example", 1, 7), ("f.peer.example", 1, 1)],
    )
    .await;
    let now = ["c.peer.example", "d.peer.example", "e.peer.example"];
    assert_eq!(kept(&*store, &now).await, now);
    assert_eq!(kept(&*store, &["f.peer.example"]).await, [""; 0]);
}

/// Long ones take the room of several, however few they are.
pub async fn bytes_of_histories_are_bounded<S: Store>(store: Arc<S>) {
    let size = |operations| {
        let history = fetched("a.peer.example", operations, 0);
        Json::Array(history.operations).to_string().len() as u64
    };
    let full = HistoryCap {
        histories: 100,
        bytes: 2 * size(1) + size(2),
    };
    let first = [
        ("a.peer.example", 1, 1),
        ("b.peer.example", 1, 2),
        ("c.peer.example", 1, 3),
    ];
    let agents = first.map(|(agent, ..)| agent);
    let caps = HistoryCaps {
        per_peer: full,
        all: so_many(100),
    };
    keep(&*store, caps, &first).await;
    keep(&*store, caps, &[("c.peer.example", 2, 4)]).await;
    assert_eq!(kept(&*store, &agents).await, agents, "they fit, to the byte");
    keep(&*store, caps, &[("b.peer.example", 2, 5)]).await;
    assert_eq!(kept(&*store, &agents).await, agents[1..]);
}

/// Strangers, however many domains they have, take nothing from those that mail was exchanged with or the operator lets.
pub async fn strangers_make_room_for_acquaintances<S: Store>(store: Arc<S>) {
    for (peer, change) in [
        ("mail.example", PeerChange::CameIn { good_items: 1 }),
        ("answers.example", PeerChange::WentOut),
        ("let.example", PeerChange::Stance(Stance::Allowed)),
        // Two that are strangers for all that is known of them.
        ("nothing.example", PeerChange::CameIn { good_items: 0 }),
        ("blocked.example", PeerChange::Stance(Stance::Blocked)),
    ] {
        store.change(&domain(peer), change, at(0)).await.unwrap();
    }
    let caps = HistoryCaps {
        per_peer: so_many(100),
        all: so_many(4),
    };
    let strangers = ["a.blocked.example", "a.nothing.example", "a.one.example"];
    keep(&*store, caps, &[("a.mail.example", 1, 1)]).await;
    for (agent, secs) in strangers.into_iter().zip(10..) {
        keep(&*store, caps, &[(agent, 1, secs)]).await;
    }
    // The one that was not fetched for longest of all is that of an acquaintance, and so is the new one.
    keep(&*store, caps, &[("a.answers.example", 1, 2)]).await;
    assert_eq!(kept(&*store, &strangers).await, strangers[1..]);
    keep(
        &*store,
        caps,
        &[("a.two.example", 1, 13), ("a.let.example", 1, 3)],
    )
    .await;
    assert_eq!(kept(&*store, &strangers).await, [""; 0]);

    keep(
        &*store,
        caps,
        &[("b.mail.example", 1, 4), ("a.six.example", 1, 99)],
    )
    .await;
    let acquainted = [
        "a.mail.example",
        "a.answers.example",
        "a.let.example",
        "b.mail.example",
        "b.let.example",
    ];
    assert_eq!(kept(&*store, &["a.two.example", "a.six.example"]).await, [""; 0]);
    assert_eq!(kept(&*store, &acquainted).await, acquainted[..4]);
    keep(&*store, caps, &[("b.let.example", 1, 5)]).await;
    assert_eq!(
        kept(&*store, &acquainted).await,
        acquainted[1..],
        "among themselves"
    );
}
