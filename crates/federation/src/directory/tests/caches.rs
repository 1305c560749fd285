//! Who asks how often, and what is said meanwhile.

use super::super::discovery::fresh_for;
use super::*;
use crate::limits::{FLIGHTS_MAX, STRANGER_FLIGHTS_MAX};

#[tokio::test]
async fn a_good_document_is_asked_for_again_when_its_time_is_over() {
    let world = World::new();
    for _ in 0..3 {
        world.cached().await.unwrap();
    }
    assert_eq!(
        (world.asked(), world.store.reads()),
        (1, 1),
        "memory needs no store"
    );
    world.pass(599);
    world.cached().await.unwrap();
    assert_eq!(
        (world.asked(), world.store.reads()),
        (1, 2),
        "the store needs no network"
    );
    world
        .sibling()
        .peer(&world.hub.domain, Freshness::Cached)
        .await
        .unwrap();
    assert_eq!(world.asked(), 1, "nor does a restart");
    world.pass(5);
    world.cached().await.unwrap();
    assert_eq!(world.asked(), 2);
    let looks = world.directory.looks().words();
    assert_eq!(looks, [("memory", 2), ("store", 1), ("hub", 2)]);
    assert_eq!(
        world.record().await.fresh_until,
        Some(world.now() + Duration::from_mins(10))
    );
}

#[test]
fn cache_control_is_read_within_bounds() {
    let (minute, hour, day) = (60, 3_600, 86_400);
    for (header, secs) in [
        (None, hour),
        (Some(""), hour),
        (Some("public"), hour),
        (Some("max-age=600"), 600),
        (Some("public, max-age=600, must-revalidate"), 600),
        (Some("Public,MAX-AGE=600"), 600),
        (Some("max-age=\"600\""), 600),
        (Some("max-age=0"), minute),
        (Some("max-age=1"), minute),
        (Some("max-age=99999999"), day - hour),
        (Some("max-age=-1"), minute),
        (Some("max-age=99999999999999999999999"), minute),
        (Some("no-store"), minute),
        (Some("no-cache, max-age=600"), minute),
        (Some("max-age=600, no-store"), minute),
        (Some("s-maxage=5"), hour),
    ] {
        assert_eq!(fresh_for(header), Duration::from_secs(secs), "{header:?}");
    }
}

#[tokio::test]
async fn a_domain_without_a_hub_is_left_alone_for_a_minute() {
    let world = World::new();
    world.tell(Told::text(404, "text/html", "no"));
    world.cached().await.unwrap_err();
    world.pass(59);
    world.cached().await.unwrap_err();
    assert_eq!(world.asked(), 1);
    world.publish();
    world.pass(1);
    world.cached().await.unwrap();
    assert_eq!(world.asked(), 2);
}

#[tokio::test]
async fn a_domain_that_cannot_be_reached_is_tried_again_in_seconds_not_all_at_once() {
    let mut pauses = Vec::new();
    for seed in 0..20 {
        let world = World::new();
        let seams = world.directory.seams.clone();
        let rng = Box::new(StdRng::seed_from_u64(seed));
        let directory = Directory::new(world.directory.settings.clone(), seams, rng);
        world.tell(Told::NoConnection);
        directory
            .peer(&world.hub.domain, Freshness::Cached)
            .await
            .unwrap_err();
        world.publish();
        let mut millis = 0;
        while directory
            .peer(&world.hub.domain, Freshness::Cached)
            .await
            .is_err()
        {
            world.clock.advance(Duration::from_millis(10));
            millis += 10;
        }
        pauses.push(millis);
    }
    assert!(
        pauses.iter().all(|millis| (2_000..=4_010).contains(millis)),
        "{pauses:?}"
    );
    pauses.sort_unstable();
    pauses.dedup();
    assert!(pauses.len() > 10, "{pauses:?}");
}

#[tokio::test]
async fn retry_after_is_honoured_up_to_a_minute() {
    for (says, waits) in [("30", 30), ("3600", 60)] {
        let world = World::new();
        world.tell(Told::problem(503, "unavailable").retry_after(says));
        let error = world.cached().await.unwrap_err();
        assert_eq!(error.refusal().retry_after_secs, Some(waits));
        world.publish();
        world.pass(waits - 1);
        world.cached().await.unwrap_err();
        world.pass(1);
        world.cached().await.unwrap();
    }
}

#[tokio::test]
async fn a_known_hub_stays_known_for_an_hour_while_its_domain_is_silent() {
    let world = World::new();
    world.cached().await.unwrap();
    world.tell(Told::TimedOut);
    world.pass(601);
    world.cached().await.unwrap();
    assert_eq!(world.asked(), 2);
    // It is tried again all the while, but not by everybody.
    world.cached().await.unwrap();
    assert_eq!(world.asked(), 2);
    world.pass(5);
    world.cached().await.unwrap();
    assert_eq!(world.asked(), 3);
    world.pass(3600);
    assert_eq!(code(&world.cached().await), ErrorCode::PeerFailed);
    // A domain that says that it has no hub is not silent.
    let world = World::new();
    world.cached().await.unwrap();
    world.tell(Told::text(404, "text/html", ""));
    world.pass(601);
    assert_eq!(code(&world.cached().await), ErrorCode::PeerFailed);
}

#[tokio::test]
async fn a_fresh_look_passes_every_cache_once_in_five_seconds() {
    let world = World::new();
    world.cached().await.unwrap();
    world.fresh().await.unwrap();
    assert_eq!(world.asked(), 2);
    world.pass(3);
    let error = world.fresh().await.unwrap_err();
    assert!(
        matches!(error, PeerError::TooSoon { retry_after_secs: 2 }),
        "{error:?}"
    );
    assert!(world.cached().await.is_ok(), "the cache still answers");
    assert_eq!(world.asked(), 2);
    world.pass(2);
    world.fresh().await.unwrap();
    assert_eq!(world.asked(), 3);
    // Other domains have a limit of their own.
    let other = FakeHub::new("six.example", 6);
    other.publish(&world.net, world.now());
    world
        .directory
        .peer(&other.domain, Freshness::Fresh)
        .await
        .unwrap();
}

#[tokio::test]
async fn a_fresh_look_that_fails_takes_nothing_away() {
    let world = World::new();
    world.cached().await.unwrap();
    world.tell(Told::TimedOut);
    assert_eq!(code(&world.fresh().await), ErrorCode::PeerFailed);
    assert!(world.cached().await.is_ok());
    world.pass(60);
    assert!(world.cached().await.is_ok());
    assert_eq!(world.asked(), 2);
}

#[tokio::test]
async fn a_clock_that_goes_back_makes_nothing_last_longer() {
    let world = World::new();
    world.tell(Told::text(404, "text/html", ""));
    world.cached().await.unwrap_err();
    world
        .clock
        .set(Timestamp::from_unix_millis(START_MS - 86_400_000));
    world.publish();
    world.cached().await.unwrap();
    assert_eq!(world.asked(), 2);
}

#[tokio::test]
async fn a_thousand_callers_cost_one_request() {
    let world = World::new();
    world.net.hold();
    let ask = |freshness| {
        let (directory, domain) = (world.directory.clone(), world.hub.domain.clone());
        tokio::spawn(async move { directory.peer(&domain, freshness).await })
    };
    let callers: Vec<_> = (0..1_000).map(|_| ask(Freshness::Cached)).collect();
    while world.asked() == 0 {
        tokio::task::yield_now().await;
    }
    // The first one, and many others, go away.
    let mut callers = callers.into_iter();
    for gone in callers.by_ref().take(500) {
        gone.abort();
    }
    for _ in 0..2_000 {
        tokio::task::yield_now().await;
    }
    world.net.release();
    for caller in callers {
        caller.await.unwrap().unwrap();
    }
    assert_eq!(world.asked(), 1);
    assert_eq!(world.actions().await, ["pin"]);
}

#[tokio::test]
async fn a_look_that_everybody_left_still_ends_in_the_cache() {
    let world = World::new();
    world.net.hold();
    let (directory, domain) = (world.directory.clone(), world.hub.domain.clone());
    let caller = tokio::spawn(async move { directory.peer(&domain, Freshness::Cached).await });
    while world.asked() == 0 {
        tokio::task::yield_now().await;
    }
    caller.abort();
    world.net.release();
    while world.actions().await.is_empty() {
        tokio::task::yield_now().await;
    }
    world.cached().await.unwrap();
    assert_eq!(world.asked(), 1);
}

#[tokio::test]
async fn strangers_cannot_make_us_ask_without_end_nor_keep_us_from_who_is_known() {
    let world = World::new();
    world.cached().await.unwrap();
    world.net.hold();
    let ask = |number: usize| {
        let domain = Domain::parse(&format!("d{number}.example")).unwrap();
        let directory = world.directory.clone();
        tokio::spawn(async move { directory.peer(&domain, Freshness::Cached).await })
    };
    let callers: Vec<_> = (0..STRANGER_FLIGHTS_MAX).map(ask).collect();
    while world.net.asked().len() < 1 + STRANGER_FLIGHTS_MAX {
        tokio::task::yield_now().await;
    }
    for number in STRANGER_FLIGHTS_MAX..2 * STRANGER_FLIGHTS_MAX {
        let error = ask(number).await.unwrap().unwrap_err();
        assert!(matches!(error, PeerError::Busy), "{error:?}");
    }
    let known = world.directory.clone();
    let domain = world.hub.domain.clone();
    let known = tokio::spawn(async move { known.peer(&domain, Freshness::Fresh).await });
    while world.asked() < 2 {
        tokio::task::yield_now().await;
    }
    world.net.release();
    known.await.unwrap().unwrap();
    for caller in callers {
        caller.await.unwrap().unwrap_err();
    }
    // There is room again, and who found none was not held to be without a hub.
    let late = FakeHub::new(&format!("d{STRANGER_FLIGHTS_MAX}.example"), 9);
    late.publish(&world.net, world.now());
    world
        .directory
        .peer(&late.domain, Freshness::Cached)
        .await
        .unwrap();
}

#[tokio::test]
async fn there_is_a_bound_for_all_together() {
    let world = World::new();
    world.net.hold();
    let mut callers = Vec::new();
    for number in 0..FLIGHTS_MAX {
        let domain = Domain::parse(&format!("d{number}.example")).unwrap();
        let met = PeerChange::Stance(Stance::Allowed);
        world.store.change(&domain, met, world.now()).await.unwrap();
        let directory = world.directory.clone();
        callers.push(tokio::spawn(async move {
            directory.peer(&domain, Freshness::Cached).await
        }));
    }
    while world.net.asked().len() < FLIGHTS_MAX {
        tokio::task::yield_now().await;
    }
    let error = world.cached().await.unwrap_err();
    assert!(matches!(error, PeerError::Busy), "{error:?}");
    world.net.release();
    for caller in callers {
        caller.await.unwrap().unwrap_err();
    }
    world.cached().await.unwrap();
}
