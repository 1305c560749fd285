//! The contract of stores of peers about what strangers could fill them with.

use std::sync::Arc;

use aip_federation::limits::{
    AUDIT_LINES_MAX, EPOCHS_PER_PEER_MAX, EVIDENCE_PER_PEER_MAX, PEERS_PAGE_MAX, REFUSALS_PER_EPOCH_MAX,
};
use aip_federation::peers::{Frozen, Noted, PeerChange, PeerLimits, Stance};
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

/// Those last heard of stay, and acquaintances and decisions whatever there is. What strangers did goes with them.
pub async fn strangers_are_bounded<S: Store>(store: Arc<S>) {
    let limits = PeerLimits {
        queue_items: Some(1),
        ..PeerLimits::default()
    };
    let frozen = Frozen {
        code: "key_mismatch".to_owned(),
        kid: "x".to_owned(),
        since: at(0),
    };
    for (peer, change, secs) in [
        ("mail.example", PeerChange::CameIn { good_items: 1 }, 0),
        ("answers.example", PeerChange::WentOut, 0),
        ("blocked.example", PeerChange::Stance(Stance::Blocked), 0),
        ("limits.example", PeerChange::Limits(limits), 0),
        ("frozen.example", PeerChange::Frozen(frozen), 1),
        ("knocks.example", PeerChange::Met, 2),
        ("b.example", PeerChange::Met, 3),
        ("a.example", PeerChange::Met, 4),
        ("knocks.example", PeerChange::CameIn { good_items: 0 }, 5),
    ] {
        store.change(&domain(peer), change, at(secs)).await.unwrap();
    }
    for peer in ["mail.example", "frozen.example", "a.example"].map(domain) {
        let noted = [refused(1, ErrorCode::Expired)];
        store.note(&peer, "e", &noted).await.unwrap();
        store.add_evidence(&peer, "code", "x", &[], at(1)).await.unwrap();
        store.audit(&peer, "hub", "pin", "", at(1)).await.unwrap();
        store.audit(&peer, "operator", "retry", "", at(1)).await.unwrap();
    }
    let forget = async |keep, limit| store.forget_strangers(keep, limit).await.unwrap();
    assert_eq!(forget(4, 10).await, []);
    assert_eq!(forget(0, 0).await, []);
    assert_eq!(forget(2, 10).await, ["b.example", "frozen.example"].map(domain));
    assert_eq!(forget(2, 10).await, []);
    assert_eq!(store.peers(None, 10).await.unwrap().len(), 6);

    let gone = domain("frozen.example");
    assert_eq!(store.known(&gone, "e", &[1]).await.unwrap(), [New]);
    for stays in ["mail.example", "a.example"].map(domain) {
        let known = store.known(&stays, "e", &[1]).await.unwrap();
        assert_eq!(known, [Refused(ErrorCode::Expired)], "{stays}");
    }
    let evidence = store.evidence(None, 0, 10).await.unwrap();
    assert_eq!(evidence.iter().map(|one| one.number).collect::<Vec<_>>(), [1, 3]);
    let lines = store.audit_log(None, 0, 10).await.unwrap();
    assert_eq!(
        lines.iter().map(|line| line.number).collect::<Vec<_>>(),
        [1, 2, 4, 5, 6],
        "but what the operator did"
    );
    store.add_evidence(&gone, "code", "x", &[], at(6)).await.unwrap();
    assert_eq!(store.evidence(Some(&gone), 3, 10).await.unwrap()[0].number, 4);
}

/// What the hub wrote about a peer goes with it, so that it does not stay for each domain that there ever was.
pub async fn lines_about_the_dead_go_with_them<S: Store>(store: Arc<S>) {
    for peer in ["dead.example", "alive.example"].map(domain) {
        store.change(&peer, PeerChange::Met, at(0)).await.unwrap();
        store.audit(&peer, "hub", "pin", "", at(0)).await.unwrap();
        store.audit(&peer, "operator", "retry", "", at(0)).await.unwrap();
    }
    let alive = domain("alive.example");
    store.change(&alive, PeerChange::WentOut, at(9)).await.unwrap();
    assert_eq!(
        store.forget_dead(at(5), 10).await.unwrap(),
        [domain("dead.example")]
    );
    let lines = store.audit_log(None, 0, 10).await.unwrap();
    assert_eq!(
        lines.iter().map(|line| line.number).collect::<Vec<_>>(),
        [2, 3, 4]
    );
}
