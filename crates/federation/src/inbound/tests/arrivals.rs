//! Budgets and the ramp, as a peer meets them.

use super::*;
use crate::limits::{
    ITEMS_BURST_MIN, PER_PEER_AT_ONCE, RAMP_GOOD_ITEMS, RAMP_ITEMS_PER_SEC, RAMP_SENDERS, RAMP_STAGE_SECS,
    REQUESTS, SENDERS_WINDOW_SECS,
};
use crate::peers::{PeerChange, PeerLimits, PeerStore as _, Stance};

fn with_ramp() -> World {
    World::with(Policy {
        ramp: true,
        ..policy()
    })
}

/// Items that cost little: they are new, and refused for their form.
fn cheap(world: &World, seqs: std::ops::Range<u64>) -> Vec<String> {
    seqs.map(|seq| world.item(seq, "{}")).collect()
}

fn tally(answer: &PushAnswer) -> (u64, u64) {
    let tally = answer.tally();
    (tally.refused, tally.retry)
}

#[tokio::test]
async fn a_new_peer_hands_in_a_burst_and_then_a_few_items_a_second() {
    let world = with_ramp();
    for batch in 0..ITEMS_BURST_MIN / 64 {
        let answer = world
            .push(&cheap(&world, batch * 64 + 1..batch * 64 + 65))
            .await
            .unwrap();
        assert_eq!(tally(&answer), (64, 0));
    }
    let items = cheap(&world, ITEMS_BURST_MIN + 1..ITEMS_BURST_MIN + 31);
    let answer = world.push(&items).await.unwrap();
    assert_eq!(tally(&answer), (0, 30));
    let Reception::Retry { code, after_secs } = answer.results[0].reception else {
        panic!("{answer:?}");
    };
    assert_eq!(
        (code, after_secs),
        (ErrorCode::RateLimited, 30 / RAMP_ITEMS_PER_SEC)
    );
    assert_eq!(answer.acked_through, ITEMS_BURST_MIN);
    world.clock.advance(Duration::from_secs(2));
    let answer = world.push(&items).await.unwrap();
    assert_eq!(
        tally(&answer),
        (2 * RAMP_ITEMS_PER_SEC, 30 - 2 * RAMP_ITEMS_PER_SEC)
    );
    assert_eq!(
        answer.acked_through,
        ITEMS_BURST_MIN + 2 * RAMP_ITEMS_PER_SEC,
        "the first of them"
    );
    // Repeats cost nothing.
    assert_eq!(
        world.push(&cheap(&world, 1..65)).await.unwrap().tally().refused,
        64
    );
}

#[tokio::test]
async fn a_peer_grows_by_what_is_stored_and_by_age() {
    let world = with_ramp();
    let domain = &world.peer.domain;
    assert_eq!(world.results(&[world.mail(1).1, world.mail(2).1]).await.len(), 2);
    let record = world.store.peer(domain).await.unwrap().unwrap();
    assert_eq!(record.good_items, 2, "noted at once while it grows");
    let good_items = 63 * RAMP_GOOD_ITEMS;
    let change = PeerChange::CameIn { good_items };
    world
        .store
        .change(domain, change, world.clock.now())
        .await
        .unwrap();
    let stages = Duration::from_secs(RAMP_STAGE_SECS.unsigned_abs() * 6);
    world.clock.advance(stages);
    let mut answer = world.push(&cheap(&world, 3..67)).await.unwrap();
    for batch in 1..10 {
        answer = world
            .push(&cheap(&world, batch * 64 + 3..batch * 64 + 67))
            .await
            .unwrap();
    }
    assert_eq!(tally(&answer), (64, 0), "640 items at once");
}

#[tokio::test]
async fn a_new_peer_has_so_many_senders() {
    let world = with_ramp();
    let mut seq = 0;
    let mut last = Vec::new();
    for name in 0..=RAMP_SENDERS {
        seq += 1;
        let seed = u8::try_from(name).unwrap();
        let agent = world
            .peer
            .agent(&format!("agent-{name}"), seed, world.clock.now());
        world.peer.serve(&world.net, &agent);
        last = vec![world.item(seq, &world.envelope(&agent, &world.bob).1)];
        let results = world.results(&last).await;
        let is_stored = results == [Reception::Stored];
        assert_eq!(is_stored, name < RAMP_SENDERS, "{name}: {results:?}");
        world.clock.advance(Duration::from_millis(200));
    }
    let asked = world.net.asked().len();
    assert!(matches!(
        world.results(&last).await[..],
        [Reception::Retry { .. }]
    ));
    assert_eq!(world.net.asked().len(), asked, "nothing was fetched for it");
    world
        .clock
        .advance(Duration::from_secs(SENDERS_WINDOW_SECS.unsigned_abs()));
    assert_eq!(world.results(&last).await, [Reception::Stored]);
}

#[tokio::test]
async fn what_the_operator_decides_counts_from_the_next_request_on() {
    let world = with_ramp();
    let domain = &world.peer.domain;
    world.push(&[]).await.unwrap();
    let now = world.clock.now();
    let change = PeerChange::Stance(Stance::Allowed);
    world.store.change(domain, change, now).await.unwrap();
    for batch in 0..10 {
        let answer = world
            .push(&cheap(&world, batch * 64 + 1..batch * 64 + 65))
            .await
            .unwrap();
        assert_eq!(tally(&answer), (64, 0), "an allowed peer is not new");
    }
    let limits = PeerLimits {
        items_per_sec: Some(1),
        ..PeerLimits::default()
    };
    world
        .store
        .change(domain, PeerChange::Limits(limits), now)
        .await
        .unwrap();
    let answer = world.push(&cheap(&world, 641..705)).await.unwrap();
    assert_eq!(tally(&answer), (0, 64));
}

#[tokio::test]
async fn a_peer_that_asks_too_often_is_slowed_before_its_signature_is_checked() {
    let world = World::new();
    for _ in 0..REQUESTS.burst() {
        world.push(&[]).await.unwrap();
    }
    let signatures = world.counts().signatures;
    for _ in 0..50 {
        let refusal = world.push(&[]).await.unwrap_err();
        assert_eq!(
            (refusal.code, refusal.retry_after_secs),
            (ErrorCode::RateLimited, Some(1))
        );
    }
    assert_eq!(world.counts().signatures, signatures);
    assert_eq!(world.inbound.load(&world.peer.domain).unwrap().slowed, 50);
    world.clock.advance(Duration::from_secs(1));
    assert!(world.push(&[]).await.is_ok());
}

#[tokio::test]
async fn bytes_are_paid_for_too() {
    let world = World::with(Policy {
        bytes_per_sec: 1_000,
        ..policy()
    });
    let filler = format!(r#"{{"peer_seq":1,"filler":"{}"}}"#, "x".repeat(1_000_000));
    let mut pushes = 0;
    let refusal = loop {
        match world.push(std::slice::from_ref(&filler)).await {
            Ok(_) => pushes += 1,
            Err(refusal) => break refusal,
        }
    };
    assert_eq!(refusal.code, ErrorCode::RateLimited);
    assert_eq!(pushes, 5, "four batches at once, and one on credit");
    assert!(refusal.retry_after_secs.is_some_and(|secs| secs > 60));
}

#[tokio::test]
async fn one_peer_has_so_many_requests_at_once() {
    let world = World::new();
    world.push(&[]).await.unwrap();
    let knock = || {
        let incoming = world.sign_push(b"");
        world.inbound.knock(Call::Push, incoming, None)
    };
    let mut held: Vec<Ticket> = (0..PER_PEER_AT_ONCE).map(|_| knock().unwrap()).collect();
    assert_eq!(code(knock()), ErrorCode::Unavailable);
    held.pop();
    assert!(knock().is_ok());
}

#[tokio::test]
async fn views_say_who_hands_in_how_much() {
    let world = World::new();
    let quiet = FakeHub::new("quiet.example", 70);
    quiet.publish(&world.net, world.clock.now());
    let body = batch_of(&quiet.domain, "1", &[]);
    let signing = Signing {
        later_secs: -90,
        ..Signing::of(&quiet)
    };
    world
        .send(signing.push(&world, &body), body.clone())
        .await
        .unwrap();
    world.results(&[world.mail(1).1, world.mail(2).1]).await;
    let loads = world.inbound.loads(10);
    let domains: Vec<&str> = loads.iter().map(|load| load.domain.as_str()).collect();
    assert_eq!(domains, [PEER, "quiet.example"]);
    assert_eq!((loads[0].items.stored, loads[0].requests), (2, 1));
    assert_eq!((loads[0].skew_ms, loads[1].skew_ms), (Some(0), Some(90_000)));
    assert_eq!(world.inbound.loads(1).len(), 1);
}

#[tokio::test]
async fn that_a_grown_peer_came_in_is_noted_seldom_and_nothing_is_lost() {
    let world = World::new();
    let domain = &world.peer.domain;
    let good = async || world.store.peer(domain).await.unwrap().unwrap().good_items;
    for seq in 1..=5 {
        world.results(&[world.mail(seq).1]).await;
        assert_eq!(good().await, 1);
    }
    world.clock.advance(Duration::from_mins(1));
    world.results(&[world.mail(6).1]).await;
    assert_eq!(good().await, 6);
}
