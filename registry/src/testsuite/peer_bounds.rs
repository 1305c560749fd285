//! The contract of stores of peers about what strangers could fill them with.

use std::sync::Arc;

use aip_federation::limits::{
    AUDIT_LINES_MAX, EPOCHS_PER_PEER_MAX, EVIDENCE_PER_PEER_MAX, PEERS_PAGE_MAX, REFUSALS_PER_EPOCH_MAX,
};
use aip_federation::peers::Noted;
use aip_protocol::error::ErrorCode;
use aip_protocol::peer::Known::{Duplicate, New, Refused};

use super::fixtures::at;
use super::peer_windows::{known, note, refused, stored};
use super::peers::{Store, domain};

/// The newest refusals keep their codes; an older one is a duplicate, and never new.
pub async fn refusals_are_bounded<S: Store>(store: Arc<S>) {
    let code = ErrorCode::RecipientUnknown;
    let last = REFUSALS_PER_EPOCH_MAX + 10;
    // The first one comes last.
    let all: Vec<Noted> = (2..=last).map(|seq| refused(seq, code)).collect();
    for some in all.chunks(2_000) {
        note(&*store, some).await;
    }
    assert_eq!(note(&*store, &[refused(1, code)]).await, last);
    assert_eq!(
        known(&*store, &[1, 2, 10, 11, last, last + 1]).await,
        [Duplicate, Duplicate, Duplicate, Refused(code), Refused(code), New]
    );
    note(&*store, &[refused(last + 1, code)]).await;
    assert_eq!(
        known(&*store, &[11, 12, last + 1]).await,
        [Duplicate, Refused(code), Refused(code)]
    );
}

/// The last epochs that began are remembered; others have no part in that.
pub async fn epochs_are_bounded<S: Store>(store: Arc<S>) {
    let (peer, other) = (domain("peer.example"), domain("other.example"));
    let noted = [refused(1, ErrorCode::Expired), stored([2])[0]];
    store.note(&other, "0", &noted).await.unwrap();
    for epoch in 0..=EPOCHS_PER_PEER_MAX {
        assert_eq!(store.note(&peer, &epoch.to_string(), &noted).await.unwrap(), 2);
    }
    let known = async |peer, epoch: &str| store.known(peer, epoch, &[1, 2]).await.unwrap();
    assert_eq!(known(&peer, "0").await, [New, New]);
    for epoch in 1..=EPOCHS_PER_PEER_MAX {
        assert_eq!(
            known(&peer, &epoch.to_string()).await,
            [Refused(ErrorCode::Expired), Duplicate]
        );
    }
    assert_eq!(known(&other, "0").await, [Refused(ErrorCode::Expired), Duplicate]);
    // One that was forgotten begins anew.
    assert_eq!(store.note(&peer, "0", &stored([1])).await.unwrap(), 1);
    assert_eq!(known(&peer, "0").await, [Duplicate, New]);
    assert_eq!(known(&peer, "1").await, [New, New]);
}

/// The oldest pieces stay.
pub async fn evidence_is_bounded<S: Store>(store: Arc<S>) {
    let (peer, other) = (domain("peer.example"), domain("other.example"));
    for n in 0..EVIDENCE_PER_PEER_MAX + 3 {
        let subject = n.to_string();
        store
            .add_evidence(&peer, "history_forked", &subject, &[], at(0))
            .await
            .unwrap();
    }
    store
        .add_evidence(&other, "history_forked", "x", &[], at(0))
        .await
        .unwrap();
    let all = store.evidence(None, 0, PEERS_PAGE_MAX).await.unwrap();
    let numbers: Vec<_> = all.iter().map(|one| one.number).collect();
    assert_eq!(
        numbers,
        (1..=u64::from(EVIDENCE_PER_PEER_MAX) + 1).collect::<Vec<_>>()
    );
    assert_eq!(all.last().map(|one| &one.peer), Some(&other));
    assert_eq!(
        all[all.len() - 2].subject,
        (EVIDENCE_PER_PEER_MAX - 1).to_string()
    );
}

/// What a peer made the hub write goes in time; what the operator did stays.
pub async fn the_audit_log_is_bounded<S: Store>(store: Arc<S>) {
    let (peer, other) = (domain("peer.example"), domain("other.example"));
    store.audit(&peer, "operator", "allow", "", at(0)).await.unwrap();
    store.audit(&other, "hub", "pin", "", at(0)).await.unwrap();
    for n in 0..AUDIT_LINES_MAX + 5 {
        store
            .audit(&peer, "hub", "rotate", &n.to_string(), at(0))
            .await
            .unwrap();
    }
    let first = store.audit_log(None, 0, u32::MAX).await.unwrap();
    assert_eq!(first.len(), PEERS_PAGE_MAX as usize);
    let shown: Vec<_> = first
        .iter()
        .take(3)
        .map(|line| (line.action.as_str(), line.detail.as_str()))
        .collect();
    assert_eq!(shown, [("allow", ""), ("pin", ""), ("rotate", "5")]);
    let rest = store
        .audit_log(Some(&peer), first[499].number, u32::MAX)
        .await
        .unwrap();
    let rest_of = store
        .audit_log(Some(&peer), rest[rest.len() - 1].number, 10)
        .await
        .unwrap();
    assert_eq!(
        first.len() + rest.len() + rest_of.len(),
        usize::try_from(AUDIT_LINES_MAX).unwrap() + 2
    );
}
