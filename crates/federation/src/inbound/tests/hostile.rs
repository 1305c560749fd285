//! Hubs that mean harm.

use super::*;
use crate::limits::{
    ABOVE_FAR_MAX, ABOVE_MAX, ABOVE_NEAR_MAX, CLAIMS, FAILURES, KNOWN_AT_ONCE, KNOWN_PER_NETWORK_AT_ONCE,
    LOOKUPS_ALL, LOOKUPS_PER_NETWORK, PER_PEER_AT_ONCE, STRANGERS_AT_ONCE, STRANGERS_PER_NETWORK_AT_ONCE,
};
use crate::peers::RecordStore as _;

/// An address of the `index`th network.
fn network(index: u64) -> IpAddr {
    let [.., a, b, c] = index.to_be_bytes();
    IpAddr::from([100, b.wrapping_add(a), c, 1])
}

#[tokio::test]
async fn a_flood_in_a_peers_name_ends_before_its_signatures_and_does_not_touch_the_peer() {
    let world = World::new();
    world.push(&[]).await.unwrap();
    let body = world.batch(&[]);
    let before = world.counts().signatures;
    for index in 0..1_000 {
        let forged = Signing {
            key: SigningKey::from_seed([66; 32]),
            from: Some(network(index)),
            ..Signing::of(&world.peer)
        };
        world
            .send(forged.push(&world, &body), body.clone())
            .await
            .unwrap_err();
    }
    let checked = world.counts().signatures - before;
    assert_eq!(checked, CLAIMS.burst(), "from 1,000 networks");
    assert_eq!(world.results(&[world.mail(1).1]).await, [Reception::Stored]);
    let load = world.inbound.load(&world.peer.domain).unwrap();
    assert_eq!((load.unauthentic, load.requests), (CLAIMS.burst(), 2));
}

#[tokio::test]
async fn a_network_that_floods_is_not_listened_to_any_more_and_its_neighbours_are() {
    let world = World::new();
    world.push(&[]).await.unwrap();
    let attacker: Option<IpAddr> = Some("203.0.113.5".parse().unwrap());
    let body = world.batch(&[]);
    let mut garbage = Signing::of(&world.peer).push(&world, &body);
    garbage.fields.clear();
    garbage.address = attacker;
    let mut codes = BTreeMap::new();
    for _ in 0..500 {
        *codes
            .entry(code(world.inbound.knock(Call::Push, garbage.clone(), None)))
            .or_insert(0) += 1;
    }
    let expected = [
        (ErrorCode::RequestSignatureInvalid, FAILURES.burst()),
        (ErrorCode::RateLimited, 500 - FAILURES.burst()),
    ];
    assert_eq!(codes, BTreeMap::from(expected));
    let stranger = FakeHub::new("stranger.example", 7);
    stranger.publish(&world.net, world.clock.now());
    let body = batch_of(&stranger.domain, "1", &[]);
    let push = |from| {
        let signing = Signing {
            from,
            ..Signing::of(&stranger)
        };
        world.send(signing.push(&world, &body), body.clone())
    };
    assert_eq!(code(push(attacker).await), ErrorCode::RateLimited);
    assert!(push(Some("203.0.114.5".parse().unwrap())).await.is_ok());
    assert!(world.push(&[]).await.is_ok());
    world.clock.advance(Duration::from_secs(1));
    assert!(push(attacker).await.is_ok());
}

#[tokio::test]
async fn invented_domains_make_no_storm_of_look_ups() {
    let world = World::new();
    let push = async |index: u64, from: IpAddr| {
        let hub = FakeHub::new(&format!("invented-{index}.example"), 3);
        let body = batch_of(&hub.domain, "1", &[]);
        let signing = Signing {
            from: Some(from),
            ..Signing::of(&hub)
        };
        code(world.send(signing.push(&world, &body), body.clone()).await)
    };
    for index in 0..200 {
        push(index, network(1)).await;
    }
    let asked = u64::try_from(world.net.asked().len()).unwrap();
    // Each of them is asked with TLS only, or once more without.
    assert!(
        asked <= 2 * LOOKUPS_PER_NETWORK.burst(),
        "{asked} look-ups for one network"
    );
    for index in 200..700 {
        push(index, network(index)).await;
    }
    let asked = u64::try_from(world.net.asked().len()).unwrap();
    assert!(asked <= 2 * LOOKUPS_ALL.burst(), "{asked} look-ups for all");
    assert_eq!(world.counts().signatures, 0);
    assert!(world.inbound.loads(10).is_empty(), "nobody was met");
}

/// A stranger's request before its body.
fn knock(world: &World, name: &str, from: IpAddr) -> Result<Ticket, Refusal> {
    let signing = Signing {
        from: Some(from),
        ..Signing::of(&FakeHub::new(name, 3))
    };
    let incoming = signing.push(world, b"");
    world.inbound.knock(Call::Push, incoming, None)
}

#[tokio::test]
async fn who_asks_for_invented_domains_has_the_budget_of_who_comes_in_their_names() {
    let world = World::new();
    for _ in 0..LOOKUPS_PER_NETWORK.burst() {
        world.inbound.look_up(network(1)).unwrap();
    }
    assert_eq!(code(world.inbound.look_up(network(1))), ErrorCode::RateLimited);
    let hub = FakeHub::new("invented.example", 3);
    let body = batch_of(&hub.domain, "1", &[]);
    let signing = Signing {
        from: Some(network(1)),
        ..Signing::of(&hub)
    };
    let push = world.send(signing.push(&world, &body), body.clone());
    assert_eq!(code(push.await), ErrorCode::RateLimited);
    assert!(world.inbound.look_up(network(2)).is_ok());
}

#[tokio::test]
async fn strangers_take_no_places_from_peers() {
    let world = World::new();
    world.push(&[]).await.unwrap();
    let mut held = Vec::new();
    let refusal = loop {
        let index = u64::try_from(held.len()).unwrap();
        match knock(&world, &format!("slow-{index}.example"), network(index)) {
            Ok(ticket) => held.push(ticket),
            Err(refusal) => break refusal,
        }
    };
    assert_eq!(
        (held.len(), refusal.code),
        (STRANGERS_AT_ONCE, ErrorCode::Unavailable)
    );
    assert!(world.push(&[]).await.is_ok());
    held.pop();
    assert!(knock(&world, "next.example", network(99)).is_ok());
}

#[tokio::test]
async fn a_network_takes_not_all_places_of_strangers() {
    let world = World::new();
    let from = |last: u8| IpAddr::from([203, 0, 113, last]);
    let mut held: Vec<Ticket> = (0..STRANGERS_PER_NETWORK_AT_ONCE)
        .map(|index| {
            let name = format!("slow-{index}.example");
            knock(&world, &name, from(u8::try_from(index).unwrap())).unwrap()
        })
        .collect();
    assert_eq!(
        code(knock(&world, "next.example", from(200))),
        ErrorCode::Unavailable
    );
    assert!(knock(&world, "next.example", network(1)).is_ok());
    held.pop();
    assert!(knock(&world, "next.example", from(200)).is_ok());
}

#[tokio::test]
async fn many_names_from_one_network_take_not_all_places_of_peers() {
    let world = World::new();
    world.push(&[]).await.unwrap();
    let from: IpAddr = "203.0.113.5".parse().unwrap();
    let mut held = Vec::new();
    for index in 0..KNOWN_AT_ONCE / PER_PEER_AT_ONCE {
        let hub = FakeHub::new(&format!("name-{index}.example"), 3);
        hub.publish(&world.net, world.clock.now());
        let body = batch_of(&hub.domain, "1", &[]);
        let signing = Signing {
            from: Some(from),
            ..Signing::of(&hub)
        };
        world.send(signing.push(&world, &body), body).await.unwrap();
        let again = (0..PER_PEER_AT_ONCE).map(|_| knock(&world, hub.domain.as_str(), from));
        held.extend(again.filter_map(Result::ok));
    }
    assert_eq!(held.len(), KNOWN_PER_NETWORK_AT_ONCE);
    assert!(world.push(&[]).await.is_ok(), "another peer has its places");
    held.pop();
    assert!(knock(&world, "name-0.example", from).is_err(), "its own eight");
    assert!(knock(&world, "name-7.example", from).is_ok());
}

#[tokio::test]
async fn a_captured_request_is_good_once() {
    let world = World::new();
    let body = world.batch(&[world.mail(1).1]);
    let captured = world.sign_push(&body);
    world.send(captured.clone(), body.clone()).await.unwrap();
    for later_secs in [0, 299, 60, 542] {
        world.clock.advance(Duration::from_secs(later_secs));
        let again = world.send(captured.clone(), body.clone()).await;
        assert_eq!(code(again), ErrorCode::RequestSignatureInvalid);
    }
    assert_eq!(world.local.ids().len(), 1);
    assert_eq!(world.counts().items.total(), 1);
}

#[tokio::test]
async fn a_hub_speaks_for_nobody_else() {
    let world = World::new();
    let victim = FakeHub::new("victim.example", 20);
    victim.publish(&world.net, world.clock.now());
    let zoe = victim.agent("zoe", 21, world.clock.now());
    victim.serve(&world.net, &zoe);
    // The batch of another domain under the peer's own key.
    let body = batch_of(&victim.domain, "1", &[]);
    assert_eq!(
        code(world.send(world.sign_push(&body), body).await),
        ErrorCode::FromDomainMismatch
    );
    // The victim's name, the peer's key.
    let body = batch_of(
        &victim.domain,
        "1",
        &[world.item(1, &world.envelope(&zoe, &world.bob).1)],
    );
    for keyid in [
        victim.kid(),
        format!("{}#{}", victim.domain, world.peer.key.public()),
    ] {
        let signing = Signing {
            keyid,
            ..Signing::of(&world.peer)
        };
        let refusal = world
            .send(signing.push(&world, &body), body.clone())
            .await
            .unwrap_err();
        assert_eq!(refusal.code.status(), 401, "{refusal}");
    }
    // Someone else's mail, passed on as it is; and made to look like that of the peer's own agent.
    let (_, envelope) = world.envelope(&zoe, &world.bob);
    let adopted = envelope.replace(zoe.did.as_str(), world.alice.did.as_str());
    let results = world
        .results(&[world.item(1, &envelope), world.item(2, &adopted)])
        .await;
    assert_eq!(
        results,
        [
            refused(ErrorCode::FromDomainMismatch),
            refused(ErrorCode::KeyUnknown)
        ]
    );
    assert!(world.local.ids().is_empty());
}

#[tokio::test]
async fn a_forked_history_is_refused_and_recorded() {
    let world = World::new();
    assert_eq!(world.results(&[world.mail(1).1]).await, [Reception::Stored]);
    let fork = world
        .peer
        .agent("alice", 61, world.clock.now() - Duration::from_secs(100));
    world.peer.serve(&world.net, &fork);
    world.clock.advance(Duration::from_secs(30));
    let item = world.item(2, &world.envelope(&fork, &world.bob).1);
    assert_eq!(world.results(&[item]).await, [refused(ErrorCode::HistoryForked)]);
    let evidence = world
        .store
        .evidence(Some(&world.peer.domain), 0, 10)
        .await
        .unwrap();
    assert_eq!(evidence.len(), 1);
    assert_eq!(evidence[0].code, "history_forked");
}

#[tokio::test]
async fn a_hundred_thousand_numbers_out_of_order_leave_a_bounded_window() {
    let world = World::new();
    let seqs: Vec<u64> = (1..=100_000).rev().collect();
    for (index, seqs) in seqs.chunks(64).enumerate() {
        let items: Vec<String> = seqs.iter().map(|seq| world.item(*seq, "{}")).collect();
        let answer = world.push(&items).await.unwrap();
        assert!(answer.acked_through <= ABOVE_MAX + 64);
        if index % 100 == 0 {
            let (_, above) = world.store.window(&world.peer.domain, "1").await.unwrap();
            assert!(above <= ABOVE_MAX, "{above}");
        }
        world.clock.advance(Duration::from_millis(20));
    }
    let window = world.store.window(&world.peer.domain, "1").await.unwrap();
    assert_eq!(
        window,
        (ABOVE_NEAR_MAX, ABOVE_FAR_MAX),
        "the rest may come again now"
    );
    let (counts, taken) = (world.counts(), ABOVE_NEAR_MAX + ABOVE_FAR_MAX);
    assert_eq!(
        (counts.items.refused, counts.items.retry),
        (taken, 100_000 - taken)
    );
}
