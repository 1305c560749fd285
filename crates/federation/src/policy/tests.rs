//! Who may, and how much.

use std::time::Duration;

use aip_protocol::time::Timestamp;

use super::*;
use crate::limits::{RAMP_BYTES_PER_SEC, RAMP_GOOD_ITEMS, RAMP_ITEMS_PER_SEC, RAMP_SENDERS, RAMP_STAGE_SECS};
use crate::peers::{Frozen, PeerLimits};

fn domain(text: &str) -> Domain {
    Domain::parse(text).unwrap()
}

fn now() -> Timestamp {
    Timestamp::from_unix_secs(1_796_000_000)
}

fn policy(mode: Mode) -> Policy {
    Policy {
        own: domain("own.example"),
        mode,
        allowed: BTreeSet::from([domain("listed.example")]),
        blocked: BTreeSet::from([domain("banned.example")]),
        ramp: true,
        items_per_sec: 500,
        bytes_per_sec: 16 * 1024 * 1024,
        queue: QueueCaps::default(),
    }
}

fn record(stance: Stance) -> PeerRecord {
    PeerRecord {
        domain: domain("peer.example"),
        pinned: Vec::new(),
        document: None,
        fresh_until: None,
        frozen: None,
        stance,
        limits: PeerLimits::default(),
        first_seen: now(),
        last_in: None,
        last_out: None,
        good_items: 0,
    }
}

fn aged(stages: u64, good_items: u64) -> PeerRecord {
    let age = Duration::from_secs(RAMP_STAGE_SECS.unsigned_abs() * stages);
    PeerRecord {
        first_seen: now() - age,
        good_items,
        ..record(Stance::Undecided)
    }
}

#[test]
fn mode_lists_and_decisions() {
    let peer = domain("peer.example");
    for (mode, undecided) in [
        (Mode::Open, ALL),
        (Mode::Allowlist, NOTHING),
        (Mode::Blocklist, ALL),
        (Mode::Limited, MAIL),
    ] {
        let policy = policy(mode);
        assert_eq!(policy.permits(&peer, None), undecided, "{mode:?}");
        for (stance, permits) in [
            (Stance::Undecided, undecided),
            (Stance::Allowed, ALL),
            (Stance::Blocked, NOTHING),
            (Stance::Limited, MAIL),
        ] {
            assert_eq!(
                policy.permits(&peer, Some(&record(stance))),
                permits,
                "{mode:?} {stance:?}"
            );
        }
        assert_eq!(policy.permits(&domain("listed.example"), None), ALL);
        assert_eq!(policy.permits(&domain("banned.example"), None), NOTHING);
        let pardoned = record(Stance::Allowed);
        assert_eq!(policy.permits(&domain("banned.example"), Some(&pardoned)), ALL);
    }
}

#[test]
fn own_agents_need_no_entry_and_nobody_speaks_as_this_hub() {
    let policy = policy(Mode::Allowlist);
    assert_eq!(policy.outgoing(&domain("own.example"), None), Ok(()));
    let refusal = policy.incoming(&domain("own.example"), None).unwrap_err();
    assert_eq!(refusal.code, ErrorCode::PeerBlocked);
    let stranger = domain("stranger.example");
    assert_eq!(
        policy.outgoing(&stranger, None).unwrap_err().code,
        ErrorCode::PeerBlocked
    );
    assert_eq!(policy.outgoing(&domain("listed.example"), None), Ok(()));
}

#[test]
fn nothing_comes_from_a_frozen_peer_and_mail_for_it_waits() {
    let policy = policy(Mode::Open);
    let frozen = PeerRecord {
        frozen: Some(Frozen {
            code: "key_mismatch".to_owned(),
            kid: "peer.example#z6Mk".to_owned(),
            since: now(),
        }),
        ..record(Stance::Allowed)
    };
    let peer = domain("peer.example");
    assert_eq!(
        policy.incoming(&peer, Some(&frozen)).unwrap_err().code,
        ErrorCode::PeerBlocked
    );
    assert_eq!(policy.outgoing(&peer, Some(&frozen)), Ok(()));
}

#[test]
fn a_new_peer_starts_small_and_grows_by_age_and_good_items() {
    let policy = policy(Mode::Open);
    let peer = domain("peer.example");
    let allowance = |record: Option<&PeerRecord>| policy.allowance(&peer, record, now());
    let first = allowance(None);
    assert_eq!(first.items.tokens_per_sec(), RAMP_ITEMS_PER_SEC);
    assert_eq!(first.bytes.tokens_per_sec(), RAMP_BYTES_PER_SEC);
    assert_eq!(first.senders_max, Some(RAMP_SENDERS));
    assert_eq!(allowance(Some(&record(Stance::Undecided))), first);
    assert_eq!(allowance(Some(&aged(50, 0))), first, "age alone is not enough");
    assert_eq!(allowance(Some(&aged(0, 1_000_000))), first, "nor are items");
    let second = allowance(Some(&aged(1, RAMP_GOOD_ITEMS)));
    assert_eq!(second.items.tokens_per_sec(), 2 * RAMP_ITEMS_PER_SEC);
    assert_eq!(second.senders_max, Some(2 * RAMP_SENDERS));
    let third = allowance(Some(&aged(9, 3 * RAMP_GOOD_ITEMS)));
    assert_eq!(third.items.tokens_per_sec(), 4 * RAMP_ITEMS_PER_SEC);
    let grown = allowance(Some(&aged(6, 63 * RAMP_GOOD_ITEMS)));
    assert_eq!(grown.items.tokens_per_sec(), 500);
    assert_eq!(grown.bytes.tokens_per_sec(), 16 * 1024 * 1024);
    assert_eq!(grown.senders_max, None);
}

#[test]
fn what_the_operator_says_holds_at_once() {
    let peer = domain("peer.example");
    let mut record = record(Stance::Allowed);
    let allowance = policy(Mode::Open).allowance(&peer, Some(&record), now());
    assert_eq!(
        (allowance.items.tokens_per_sec(), allowance.senders_max),
        (500, None)
    );
    record.stance = Stance::Undecided;
    record.limits = PeerLimits {
        items_per_sec: Some(3),
        bytes_per_sec: Some(70_000),
        queue_items: Some(7),
    };
    let allowance = policy(Mode::Open).allowance(&peer, Some(&record), now());
    assert_eq!(allowance.items.tokens_per_sec(), 3);
    assert_eq!(
        allowance.items.burst(),
        ITEMS_BURST_MIN,
        "whole batches still fit"
    );
    assert_eq!(allowance.bytes.tokens_per_sec(), 70_000);
    assert_eq!(policy(Mode::Open).queue(Some(&record)).items, 7);
    assert_eq!(policy(Mode::Open).queue(None), QueueCaps::default());
    let steep = Policy {
        ramp: false,
        ..policy(Mode::Open)
    };
    assert_eq!(steep.allowance(&peer, None, now()).items.tokens_per_sec(), 500);
}
