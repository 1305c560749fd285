//! Who asks how often, and what is said meanwhile.

use super::*;
use crate::limits::FLIGHTS_PER_DOMAIN_MAX;

#[tokio::test]
async fn an_identity_is_asked_for_again_after_a_minute() {
    let world = World::new();
    for _ in 0..3 {
        world.cached().await.unwrap();
    }
    world.pass(59);
    world.cached().await.unwrap();
    world
        .sibling()
        .identity(&world.agent.did, Freshness::Cached)
        .await
        .unwrap();
    assert_eq!(world.asked(), 1, "neither memory nor store needs the network");
    world.pass(1);
    let resolved = world.cached().await.unwrap();
    assert_eq!((world.asked(), resolved.asked_at), (2, world.now()));
    assert_eq!(world.identities.looks().words(), [("memory", 3), ("hub", 2)]);
}

#[tokio::test]
async fn a_history_that_did_not_change_is_seldom_written() {
    let world = World::new();
    world.cached().await.unwrap();
    let first = world.known().await.unwrap().fetched_at;
    for _ in 0..9 {
        world.pass(60);
        world.cached().await.unwrap();
    }
    assert_eq!(
        (world.asked(), world.known().await.unwrap().fetched_at),
        (10, first)
    );
    world.pass(60);
    world.cached().await.unwrap();
    assert_eq!(world.known().await.unwrap().fetched_at, world.now());
}

#[tokio::test]
async fn only_the_hubs_own_word_says_that_there_is_no_such_agent() {
    let world = World::new();
    world.hub.deny(&world.net, "bob");
    let found = world.cached().await;
    assert_eq!(code(&found), ErrorCode::NotFound);
    assert!(!found.unwrap_err().is_transient());
    world.serve();
    world.pass(29);
    assert_eq!(code(&world.cached().await), ErrorCode::NotFound);
    assert_eq!(world.asked(), 1);
    world.pass(1);
    world.cached().await.unwrap();

    let not_found = r#"{"code":"not_found"}"#;
    for told in [
        Told::text(404, "text/html", "<html>"),
        Told::text(404, "application/json", not_found),
        Told::text(404, "application/problem+json", "<html>"),
        Told::problem(404, "did_foreign"),
        Told::problem(410, "not_found"),
        Told::problem(500, "not_found"),
        Told::text(200, "text/html", "<html>"),
        Told::text(200, "application/problem+json", not_found),
        Told::text(301, "text/html", ""),
        Told::text(429, "application/problem+json", "{}"),
        Told::text(502, "text/html", "<html>"),
        Told::TimedOut,
        Told::NoConnection,
        Told::Broken,
    ] {
        let world = World::new();
        world.tell(told.clone());
        let error = world.cached().await.unwrap_err();
        assert_eq!(error.code(), ErrorCode::PeerFailed, "{told:?}");
        assert!(error.is_transient(), "{told:?}");
        // It is not remembered beyond a second.
        world.serve();
        assert!(world.cached().await.is_err(), "{told:?}");
        assert_eq!(world.asked(), 1, "{told:?}");
        world.pass(1);
        assert!(world.cached().await.is_ok(), "{told:?}");
    }
}

#[tokio::test]
async fn a_fresh_look_passes_every_cache_once_in_five_seconds() {
    let mut world = World::new();
    world.cached().await.unwrap();
    world.agent.rotate(31, world.now());
    world.serve();
    let resolved = world.fresh().await.unwrap();
    assert_eq!(resolved.identity.seq(), 1, "row 11: the new key is seen at once");
    let documents = world.net.count(&world.hub.document_url());
    assert_eq!((world.asked(), documents), (2, 2), "the hub may have moved, too");
    world.pass(3);
    let error = world.fresh().await.unwrap_err();
    let IdentityError::Peer(PeerError::TooSoon { retry_after_secs }) = error else {
        panic!("{error:?}");
    };
    assert_eq!(retry_after_secs, 2);
    assert_eq!(world.asked(), 2);
    // Another agent of the same hub has a limit of its own; its hub's document is not asked for again so soon.
    let eve = world.hub.agent("eve", 60, world.now());
    world.hub.serve(&world.net, &eve);
    world
        .identities
        .identity(&eve.did, Freshness::Fresh)
        .await
        .unwrap();
    assert_eq!(world.net.count(&world.hub.document_url()), 2);
    world.pass(2);
    world.fresh().await.unwrap();
    assert_eq!(world.asked(), 3);
}

#[tokio::test]
async fn a_fresh_look_follows_a_hub_that_moved() {
    let mut world = World::new();
    world.cached().await.unwrap();
    world.pass(10);
    world.hub.url = url::Url::parse("https://new.two.example").unwrap();
    world.hub.publish(&world.net, world.now());
    world.agent.rotate(31, world.now());
    world.serve();
    assert_eq!(world.fresh().await.unwrap().identity.seq(), 1);
}

#[tokio::test]
async fn a_fresh_look_that_fails_takes_nothing_away() {
    let world = World::new();
    world.cached().await.unwrap();
    world.tell(Told::TimedOut);
    let found = world.fresh().await;
    assert_eq!(code(&found), ErrorCode::PeerFailed);
    assert!(world.cached().await.is_ok());
}

#[tokio::test]
async fn what_was_verified_is_used_for_an_hour_while_the_hub_is_silent() {
    let world = World::new();
    world.cached().await.unwrap();
    world.tell(Told::text(502, "text/html", "<html>"));
    world.pass(60);
    let resolved = world.cached().await.unwrap();
    assert!(resolved.fresh_until <= world.now());
    assert_eq!(resolved.asked_at, world.now() - Duration::from_mins(1));
    assert_eq!(world.asked(), 2);
    // It is tried again all the while, but not by everybody.
    world.cached().await.unwrap();
    assert_eq!(world.asked(), 2);
    world.pass(1);
    world.cached().await.unwrap();
    assert_eq!(world.asked(), 3);
    // Also when its whole domain is silent, and after a restart.
    world.net.tell(&world.hub.document_url(), [Told::NoConnection]);
    world.pass(3_538);
    world
        .sibling()
        .identity(&world.agent.did, Freshness::Cached)
        .await
        .unwrap();
    world.pass(1);
    assert_eq!(code(&world.cached().await), ErrorCode::PeerFailed);
    let looks = world.identities.looks().words();
    assert_eq!(
        looks,
        [("memory", 1), ("hub", 1), ("stale", 2), ("unreachable", 1)]
    );
}

#[tokio::test]
async fn what_was_verified_is_not_used_against_the_hubs_word() {
    let world = World::new();
    world.cached().await.unwrap();
    world.pass(60);
    world.hub.deny(&world.net, "bob");
    assert_eq!(code(&world.cached().await), ErrorCode::NotFound);
    // Nor when it has to be fresh.
    world.tell(Told::TimedOut);
    assert_eq!(code(&world.fresh().await), ErrorCode::PeerFailed);
}

#[tokio::test]
async fn a_clock_that_goes_back_makes_nothing_last_longer() {
    let world = World::new();
    world.cached().await.unwrap();
    world.clock.set(world.now() - Duration::from_hours(1));
    world.hub.publish(&world.net, world.now());
    world.cached().await.unwrap();
    assert_eq!(world.asked(), 2);
}

#[tokio::test]
async fn a_thousand_callers_cost_one_request() {
    for freshness in [Freshness::Cached, Freshness::Fresh] {
        let world = World::new();
        world.net.hold();
        let ask = || {
            let (identities, did) = (world.identities.clone(), world.agent.did.clone());
            tokio::spawn(async move { identities.identity(&did, freshness).await })
        };
        let mut callers: Vec<_> = (0..1_000).map(|_| ask()).collect();
        while world.net.asked().is_empty() {
            tokio::task::yield_now().await;
        }
        // The first one, and many others, go away.
        for gone in callers.drain(..500) {
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
        assert_eq!(world.net.asked().len(), 2, "the document and the history");
    }
}

#[tokio::test]
async fn one_silent_hub_does_not_take_the_look_ups_of_others() {
    let world = World::new();
    world.cached().await.unwrap();
    let mut callers = Vec::new();
    for number in 0..FLIGHTS_PER_DOMAIN_MAX {
        let name = format!("silent{number}");
        world.net.tell(&world.hub.history_url(&name), [Told::Hangs]);
        let did = world.hub.agent(&name, 70, world.now()).did;
        let identities = world.identities.clone();
        callers.push(tokio::spawn(async move {
            identities.identity(&did, Freshness::Cached).await
        }));
    }
    while world.net.asked().len() < 2 + FLIGHTS_PER_DOMAIN_MAX {
        tokio::task::yield_now().await;
    }
    let one_more = world.hub.agent("eve", 71, world.now());
    let found = world.identities.identity(&one_more.did, Freshness::Cached).await;
    assert!(
        matches!(found, Err(IdentityError::Peer(PeerError::Busy))),
        "{found:?}"
    );
    let other = FakeHub::new("six.example", 6);
    other.publish(&world.net, world.now());
    let agent = other.agent("carol", 72, world.now());
    other.serve(&world.net, &agent);
    world
        .identities
        .identity(&agent.did, Freshness::Cached)
        .await
        .unwrap();
    callers.iter().for_each(tokio::task::JoinHandle::abort);
}
