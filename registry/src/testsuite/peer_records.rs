//! The contract of histories, evidence and the audit log of peers.

use std::sync::Arc;

use aip_federation::peers::{AuditEntry, Evidence, HistoryCaps, KnownHistory};
use aip_protocol::name::Did;
use tokio::task::JoinSet;

use super::fixtures::at;
use super::peers::{Store, domain, object};

/// A history of so many operations, of a flavour.
pub fn history(agent: &str, operations: usize, flavour: &str, secs: i64) -> KnownHistory {
    KnownHistory {
        did: Did::parse(&format!("did:aip:peer.example:{agent}")).unwrap(),
        operations: (0..operations)
            .map(|n| object(&format!("{flavour} {n}")))
            .collect(),
        fetched_at: at(secs),
    }
}

async fn keep<S: Store>(store: &S, history: &KnownHistory) {
    store.keep_history(history, HistoryCaps::default()).await.unwrap();
}

/// Whole, and until it is forgotten.
pub async fn a_history_is_kept<S: Store>(store: Arc<S>) {
    let first = history("bob", 1, "a", 0);
    assert_eq!(store.history(&first.did).await.unwrap(), None);
    keep(&*store, &first).await;
    assert_eq!(store.history(&first.did).await.unwrap(), Some(first.clone()));
    let other = history("zoe", 2, "z", 0);
    keep(&*store, &other).await;
    let longer = history("bob", 3, "a", 5);
    keep(&*store, &longer).await;
    assert_eq!(store.history(&first.did).await.unwrap(), Some(longer));
    assert!(store.forget_history(&first.did).await.unwrap());
    assert!(!store.forget_history(&first.did).await.unwrap());
    assert_eq!(store.history(&first.did).await.unwrap(), None);
    assert_eq!(store.history(&other.did).await.unwrap(), Some(other));
    keep(&*store, &first).await;
    assert_eq!(store.history(&first.did).await.unwrap(), Some(first));
}

/// Of two that were fetched at once the longer one stays, and of two that are as long the later one.
pub async fn a_history_does_not_get_shorter<S: Store>(store: Arc<S>) {
    let long = history("bob", 3, "a", 10);
    keep(&*store, &long).await;
    for older in [history("bob", 2, "a", 20), history("bob", 3, "a", 9)] {
        keep(&*store, &older).await;
        assert_eq!(store.history(&long.did).await.unwrap(), Some(long.clone()));
    }
    let later = history("bob", 3, "a", 30);
    keep(&*store, &later).await;
    assert_eq!(store.history(&long.did).await.unwrap(), Some(later));
}

/// Whole, in order, and once.
pub async fn evidence_is_kept_once<S: Store>(store: Arc<S>) {
    let (peer, other) = (domain("peer.example"), domain("other.example"));
    let objects = [object("known"), object("shown")];
    for (peer, code, subject, objects, secs) in [
        (
            &peer,
            "history_forked",
            "did:aip:peer.example:bob",
            objects.as_slice(),
            1,
        ),
        (&other, "history_forked", "did:aip:peer.example:bob", &objects, 2),
        (&peer, "history_forked", "did:aip:peer.example:bob", &objects, 3),
        (
            &peer,
            "hub_key_not_pinned",
            "did:aip:peer.example:bob",
            &objects,
            4,
        ),
        (&peer, "history_forked", "did:aip:peer.example:zoe", &objects, 5),
        (
            &peer,
            "history_forked",
            "did:aip:peer.example:bob",
            &objects[..1],
            6,
        ),
        (&peer, "history_forked", "did:aip:peer.example:bob", &[], 7),
    ] {
        store
            .add_evidence(peer, code, subject, objects, at(secs))
            .await
            .unwrap();
    }
    let all = store.evidence(None, 0, 100).await.unwrap();
    assert_eq!(
        all.iter().map(|one| one.number).collect::<Vec<_>>(),
        [1, 2, 3, 4, 5, 6]
    );
    let first = Evidence {
        number: 1,
        peer: peer.clone(),
        code: "history_forked".to_owned(),
        subject: "did:aip:peer.example:bob".to_owned(),
        objects: objects.to_vec(),
        at: at(1),
    };
    assert_eq!(all[0], first);
    assert_eq!(store.evidence(Some(&other), 0, 100).await.unwrap(), all[1..2]);
    assert_eq!(store.evidence(Some(&peer), 1, 2).await.unwrap(), all[2..4]);
    assert_eq!(store.evidence(None, 4, u32::MAX).await.unwrap(), all[4..]);
    assert_eq!(
        store.evidence(Some(&domain("no.example")), 0, 9).await.unwrap(),
        []
    );
}

/// In the order in which it was said, the same line as often as it was.
pub async fn the_audit_log_is_in_order<S: Store>(store: Arc<S>) {
    let (peer, other) = (domain("peer.example"), domain("other.example"));
    for (peer, action, secs) in [
        (&peer, "block", 1),
        (&other, "allow", 2),
        (&peer, "block", 1),
        (&peer, "repin", 4),
    ] {
        let detail = "because of ü and '; DROP TABLE peers; --";
        store
            .audit(peer, "operator", action, detail, at(secs))
            .await
            .unwrap();
    }
    let all = store.audit_log(None, 0, 100).await.unwrap();
    let last = AuditEntry {
        number: 4,
        peer: peer.clone(),
        actor: "operator".to_owned(),
        action: "repin".to_owned(),
        detail: "because of ü and '; DROP TABLE peers; --".to_owned(),
        at: at(4),
    };
    assert_eq!((all.len(), &all[3]), (4, &last));
    assert_eq!(store.audit_log(Some(&other), 0, 100).await.unwrap(), all[1..2]);
    assert_eq!(store.audit_log(Some(&peer), 1, 1).await.unwrap(), all[2..3]);
    assert_eq!(store.audit_log(None, 2, u32::MAX).await.unwrap(), all[2..]);
}

/// While many write, who reads on after the last number that he knows misses nothing.
pub async fn who_follows_the_logs_misses_nothing<S: Store>(store: Arc<S>) {
    let mut writers = JoinSet::new();
    for n in 0..8 {
        let store = Arc::clone(&store);
        writers.spawn(async move {
            let peer = domain(&format!("peer-{n}.example"));
            for line in 0..6 {
                let text = line.to_string();
                store.audit(&peer, "hub", "pin", &text, at(0)).await.unwrap();
                store
                    .add_evidence(&peer, "history_forked", &text, &[], at(0))
                    .await
                    .unwrap();
            }
        });
    }
    let (mut lines, mut evidence) = (Vec::new(), Vec::new());
    loop {
        let is_over = writers.is_empty();
        let after = lines.last().copied().unwrap_or(0);
        lines.extend(
            store
                .audit_log(None, after, 5)
                .await
                .unwrap()
                .iter()
                .map(|line| line.number),
        );
        let after = evidence.last().copied().unwrap_or(0);
        evidence.extend(
            store
                .evidence(None, after, 5)
                .await
                .unwrap()
                .iter()
                .map(|one| one.number),
        );
        if is_over && lines.len() >= 48 && evidence.len() >= 48 {
            break;
        }
        while writers
            .try_join_next()
            .is_some_and(|ended| ended.map(|()| true).unwrap())
        {}
        tokio::task::yield_now().await;
        assert!(
            !is_over || lines.last() != Some(&48) || lines.len() == 48,
            "{lines:?}"
        );
        assert!(
            !is_over || evidence.last() != Some(&48) || evidence.len() == 48,
            "{evidence:?}"
        );
    }
    assert_eq!(lines, (1..=48).collect::<Vec<_>>());
    assert_eq!(evidence, (1..=48).collect::<Vec<_>>());
}
