//! Every refusal of spec §5, in its order: an envelope with several faults is refused for the first of them, and
//! what comes later has not happened.

use super::store::Failure;
use super::*;
use crate::admission::Blocklist;
use crate::mailbox::StoreError;

/// Checks the code, and that nothing was looked up more than `lookups` times, stored, or sent anywhere.
async fn check(bench: &Bench, wire: Vec<u8>, door: &Door, code: &str, lookups: usize) {
    bench.lookups();
    let appends = bench.store.appends();
    assert_eq!(bench.code(wire, door).await, code);
    assert_eq!(bench.lookups(), lookups, "look-ups before {code}");
    assert_eq!(bench.store.appends(), appends, "{code} reached the store");
    assert!(bench.outbound.posted().is_empty(), "{code} reached the network");
}

#[tokio::test]
async fn row_25_cheap_checks_come_first_and_look_nothing_up() {
    let bench = Bench::with(|config| config.envelope_bytes_max = 4096);
    let (alice, bob) = (bench.agent("alice"), bench.direct_agent("bob"));
    let nobody = bench.stranger("nobody");
    let good = bench.envelope(&alice, &bob);
    let relay = |name: &str| Door::Relay(Name::parse(name).unwrap());
    let home = Door::Home;

    // Each row has the faults of the rows below it, too.
    let old = |object: &mut Object| {
        object.insert("created_at", at(-901_000).to_string());
        object.insert("expires_at", at(-900_000).to_string());
        object.insert("from", nobody.did.as_str());
        object.insert("kid", format!("{}#{}", nobody.did, nobody.signing.public()));
    };
    let big = [b"nonsense".to_vec(), vec![b' '; 4096]].concat();
    check(&bench, big, &home, "envelope_too_large", 0).await;
    check(&bench, b"{\"id\":7,}".to_vec(), &home, "json_invalid", 0).await;
    let form = |object: &mut Object| {
        old(object);
        object.insert("id", "x");
    };
    check(&bench, forged(&good, form), &home, "member_invalid", 0).await;
    let version = |object: &mut Object| {
        form(object);
        object.insert("aip", "2");
    };
    check(&bench, forged(&good, version), &home, "version_unsupported", 0).await;
    check(
        &bench,
        forged(&good, old),
        &relay("carol"),
        "created_at_out_of_window",
        0,
    )
    .await;
    let expired = |object: &mut Object| {
        old(object);
        object.insert("created_at", at(-2_000).to_string());
        object.insert("expires_at", at(-1_000).to_string());
    };
    check(&bench, forged(&good, expired), &relay("carol"), "expired", 0).await;
    let foreign = |object: &mut Object| {
        object.insert("from", "did:aip:far.example:eve");
        object.insert(
            "kid",
            format!("did:aip:far.example:eve#{}", nobody.signing.public()),
        );
    };
    check(&bench, forged(&good, foreign), &home, "sender_not_local", 0).await;
    check(
        &bench,
        forged(&good, foreign),
        &relay("carol"),
        "recipient_mismatch",
        0,
    )
    .await;
    check(&bench, forged(&good, foreign), &relay("bob"), "sender_unknown", 0).await;
}

#[tokio::test]
async fn the_sender_comes_before_the_signature_and_that_before_the_recipient() {
    let bench = Bench::new();
    let (alice, nobody) = (bench.agent("alice"), bench.stranger("nobody"));
    let home = Door::Home;
    // To nobody, and with a signature that does not match.
    let tampered = |object: &mut Object| {
        object.insert("x-hop", 1);
    };
    let bad = || forged(&bench.envelope(&alice, &nobody), tampered);

    check(
        &bench,
        forged(&bench.envelope(&nobody, &nobody), tampered),
        &home,
        "sender_unknown",
        1,
    )
    .await;
    bench.change(&alice, |known| known.suspended = true);
    check(&bench, bad(), &home, "sender_blocked", 1).await;
    bench.change(&alice, |known| known.suspended = false);
    let other_key = Agent {
        signing: SigningKey::from_seed([5; 32]),
        ..bench.stranger("alice")
    };
    check(
        &bench,
        forged(&bench.envelope(&other_key, &nobody), tampered),
        &home,
        "key_unknown",
        1,
    )
    .await;
    check(&bench, bad(), &home, "signature_invalid", 1).await;
    check(
        &bench,
        bench.envelope(&alice, &nobody).to_wire(),
        &home,
        "recipient_unknown",
        2,
    )
    .await;
    bench.deactivate(&alice);
    check(&bench, bad(), &home, "sender_deactivated", 1).await;
}

#[tokio::test]
async fn every_signature_that_is_not_the_senders_own_is_refused() {
    let bench = Bench::new();
    let (alice, bob, eve) = (bench.agent("alice"), bench.agent("bob"), bench.agent("eve"));
    let envelope = bench.envelope(&alice, &bob);
    let home = Door::Home;
    check(
        &bench,
        resigned(&envelope, &eve.signing, |_| {}),
        &home,
        "signature_invalid",
        1,
    )
    .await;
    // A signature of another kind over the same object.
    let identity_tag = sign(&alice.signing, Tag::Identity, &envelope.json.without(&["sig"]));
    let other_tag = forged(&envelope, |object| {
        object.insert("sig", identity_tag.to_string());
    });
    check(&bench, other_tag, &home, "signature_invalid", 1).await;
    // The rotation key signs identities, not mail.
    let rotation = resigned(&envelope, &alice.rotation, |object| {
        object.insert("kid", format!("{}#{}", alice.did, alice.rotation.public()));
    });
    check(&bench, rotation, &home, "key_unknown", 1).await;
    // A refused message leaves no record: the good one is stored.
    assert_eq!(bench.code(envelope.to_wire(), &home).await, "stored");
}

#[tokio::test]
async fn a_recipient_that_ended_gets_no_more() {
    let bench = Bench::new();
    let (alice, bob) = (bench.agent("alice"), bench.agent("bob"));
    bench.deactivate(&bob);
    check(
        &bench,
        bench.envelope(&alice, &bob).to_wire(),
        &Door::Home,
        "recipient_deactivated",
        2,
    )
    .await;
}

#[tokio::test]
async fn row_38_an_unknown_next_hop_is_told_to_the_sender_and_stored_nowhere() {
    let bench = Bench::new();
    let alice = bench.agent("alice");
    let far = Agent {
        did: Did::parse("did:aip:far.example:bob").unwrap(),
        ..bench.stranger("bob")
    };
    check(
        &bench,
        bench.envelope(&alice, &far).to_wire(),
        &Door::Home,
        "recipient_unknown",
        1,
    )
    .await;
    let records = bench
        .relay
        .status(&alice.did, bench.envelope(&alice, &far).id, None)
        .await
        .unwrap();
    assert!(records.is_empty());
}

#[tokio::test]
async fn a_blocked_sender_is_refused_before_it_costs_rate() {
    let bench = Bench::with(|config| {
        config.blocklist = Blocklist::parse(["eve#hub.example"]).unwrap();
        config.rate = slow_rate(1);
    });
    let (alice, eve) = (bench.agent("alice"), bench.agent("eve"));
    for _ in 0..3 {
        check(
            &bench,
            bench.envelope(&eve, &alice).to_wire(),
            &Door::Home,
            "sender_blocked",
            2,
        )
        .await;
    }
    assert_eq!(
        bench
            .code(bench.envelope(&alice, &eve).to_wire(), &Door::Home)
            .await,
        "stored"
    );
}

#[tokio::test]
async fn row_83_the_rate_of_a_sender_is_limited_and_retries_count() {
    let bench = Bench::with(|config| config.rate = slow_rate(2));
    let (alice, bob) = (bench.agent("alice"), bench.agent("bob"));
    let envelope = bench.envelope(&alice, &bob);
    assert_eq!(bench.code(envelope.to_wire(), &Door::Home).await, "stored");
    assert_eq!(bench.code(envelope.to_wire(), &Door::Home).await, "duplicate");
    let Err(SendError::Refused(refusal)) = bench.send(&envelope).await else {
        panic!("not refused")
    };
    assert_eq!(
        (refusal.code, refusal.retry_after_secs),
        (ErrorCode::RateLimited, Some(1))
    );
    assert_eq!(
        bench
            .code(bench.envelope(&bob, &alice).to_wire(), &Door::Home)
            .await,
        "stored"
    );
    bench.clock.advance(secs(1));
    assert_eq!(bench.code(envelope.to_wire(), &Door::Home).await, "duplicate");
}

#[tokio::test]
async fn row_29_a_socket_sends_for_its_own_agent_only() {
    let bench = Bench::new();
    let (alice, bob) = (bench.agent("alice"), bench.agent("bob"));
    let envelope = bench.envelope(&alice, &bob);
    check(
        &bench,
        envelope.to_wire(),
        &Door::Socket(bob.did.clone()),
        "not_yours",
        0,
    )
    .await;
    assert_eq!(
        bench
            .code(envelope.to_wire(), &Door::Socket(alice.did.clone()))
            .await,
        "stored"
    );
}

#[tokio::test]
async fn identities_that_cannot_be_read_are_a_failure_and_no_verdict() {
    let bench = Bench::new();
    let (alice, bob) = (bench.agent("alice"), bench.agent("bob"));
    let envelope = bench.envelope(&alice, &bob);
    bench.identities.broken.store(true, Ordering::SeqCst);
    check(&bench, envelope.to_wire(), &Door::Home, "unavailable", 1).await;
    bench.identities.broken.store(false, Ordering::SeqCst);
    assert_eq!(bench.code(envelope.to_wire(), &Door::Home).await, "stored");
    assert_eq!(bench.relay.stats().failed(), 1);
}

#[tokio::test]
async fn row_27_a_store_that_is_down_acknowledges_nothing() {
    let bench = Bench::new();
    let (alice, bob) = (bench.agent("alice"), bench.agent("bob"));
    let envelope = bench.envelope(&alice, &bob);
    bench.store.fail_next(Failure::Before(StoreError::Unavailable(
        "the disk is full".into(),
    )));
    assert_eq!(bench.code(envelope.to_wire(), &Door::Home).await, "unavailable");
    assert!(bench.waiting(&bob).await.is_empty());
    assert_eq!(bench.relay.stats().stored(), 0);
    assert_eq!(bench.code(envelope.to_wire(), &Door::Home).await, "stored");
}

#[tokio::test]
async fn row_45_an_unknown_outcome_is_told_as_such_and_a_retry_tells_what_happened() {
    let bench = Bench::new();
    let (alice, bob) = (bench.agent("alice"), bench.agent("bob"));
    let envelope = bench.envelope(&alice, &bob);
    bench
        .store
        .fail_next(Failure::After(StoreError::OutcomeUnknown("no answer".into())));
    assert_eq!(
        bench.code(envelope.to_wire(), &Door::Home).await,
        "outcome_unknown"
    );
    let retry = bench.send(&envelope).await.unwrap();
    assert_eq!((retry.status, retry.seq), (Sent::Duplicate, Some(1)));
    assert_eq!(bench.waiting(&bob).await.len(), 1);
}

#[tokio::test]
async fn row_85_counters_count_what_was_committed_and_refusals_by_code() {
    let bench = Bench::new();
    let (alice, bob) = (bench.agent("alice"), bench.agent("bob"));
    let envelope = bench.envelope(&alice, &bob);
    bench.send(&envelope).await.unwrap();
    bench.send(&envelope).await.unwrap();
    for _ in 0..3 {
        assert_eq!(
            bench.code(vec![b'x'; 300_000], &Door::Home).await,
            "envelope_too_large"
        );
    }
    bench
        .store
        .fail_next(Failure::Before(StoreError::Unavailable("down".into())));
    bench.send(&bench.envelope(&alice, &bob)).await.unwrap_err();
    let stats = bench.relay.stats();
    assert_eq!((stats.stored(), stats.duplicates(), stats.failed()), (1, 1, 1));
    assert_eq!(bench.refused("envelope_too_large"), 3);
    assert_eq!(stats.refused().count(), 1);
}
