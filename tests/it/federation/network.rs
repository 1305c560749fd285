//! Hubs that are at addresses of their own, in network namespaces, and the ways between them: cut, deaf in one direction, barred,
//! and healed; and a stranger who floods from elsewhere. Needs root, `ip` and `nft`; where they are not there each test says so,
//! and [`super::faults`] breaks what a proxy can break.

mod stranger;

use std::time::Duration;

use aip_engines::Proxy;
use aip_tests::clients::Home;
use aip_tests::history::Event;
use aip_tests::raw::Request;
use aip_tests::{HubOptions, Network, TestAgent, TestHub, chance, rounds, seed};
use anyhow::Result;
use rand::RngExt as _;
use rand::rngs::StdRng;
use serde_json::Value;

use super::faults::{drained, queued};
use super::{ROOMY, inbox, local_mail_passes, until};
use crate::faults::assert_good;
use crate::faults::load::{Load, Pace};

const PLACES: [&str; 3] = ["alpha", "beta", "gamma"];
/// Messages that wait out a partition.
const QUEUED: usize = 10_000;
/// A fault lasts no longer.
const FAULT_MAX: Duration = Duration::from_secs(4);
/// Not as fast as they can: three hubs and their agents share the machine.
const PACE: Pace = Pace {
    rest: Duration::from_millis(40),
    life: Duration::from_secs(2),
};

/// A network; `None`, and a word about it, where there can be none.
fn network(test: &str, places: &[&str]) -> Option<Network> {
    Network::of(places).map_err(|skip| skip.print(test)).ok()
}

/// A hub in a place. A push that hears nothing is given up soon.
fn hub(network: &Network, place: &str) -> TestHub {
    hub_with(network.hub(place, ROOMY))
}

fn hub_with(options: HubOptions) -> TestHub {
    let environment = [("AIP_HUB__FEDERATION__PUSH_TIMEOUT_SECS", "2")];
    let environment = environment.map(|(name, value)| (name.to_owned(), value.to_owned()));
    TestHub::start_with(HubOptions {
        environment: options.environment.into_iter().chain(environment).collect(),
        ..options
    })
}

/// The same settings with more in the section `[federation]`.
fn roomy_and(federation: &str) -> String {
    ROOMY.replace("[federation]\n", &format!("[federation]\n{federation}\n"))
}

/// A hub in each place whose agents find each other from outside, too: clients ask the hubs of other domains themselves, and
/// `localhost` with a port is the only name that they ask without TLS. It leads through a proxy to the hub's place.
fn reachable(network: &Network) -> ([TestHub; 3], [Proxy; 3]) {
    let proxies = PLACES.map(|place| Proxy::to((network.address(place), 80).into()));
    let domain = |proxy: &Proxy| format!("localhost:{}", proxy.addr().port());
    let url = |place: &str| format!("http://{}", network.address(place));
    let hubs = [0, 1, 2].map(|own: usize| {
        let others = (0..PLACES.len()).filter(|other| *other != own);
        let others = others.map(|other| format!("\"{}={}\"", domain(&proxies[other]), url(PLACES[other])));
        let others = others.collect::<Vec<_>>().join(", ");
        let settings = roomy_and(&format!("static_peers = [{others}]"));
        let settings = format!("{settings}[hub]\npublic_url = \"{}\"\n", url(PLACES[own]));
        hub_with(HubOptions {
            domain: Some(domain(&proxies[own])),
            ..network.hub(PLACES[own], &settings)
        })
    });
    (hubs, proxies)
}

/// What a hub knows of its mail for another.
async fn outbox(hub: &TestHub, peer: &TestHub) -> Value {
    let path = format!("/admin/peers/{}", peer.domain());
    hub.operate(Request::get(path)).await.json()["outbox"].clone()
}

/// The operator of each hub has every other tried now: what waits for a pause would come too, only later.
async fn hurry(hubs: &[TestHub]) {
    for hub in hubs {
        for peer in hubs.iter().filter(|peer| peer.domain() != hub.domain()) {
            let path = format!("/admin/peers/{}/retry", peer.domain());
            let answer = hub.operate(Request::post(path, "{}")).await;
            assert!(matches!(answer.status, 202 | 404), "{}", answer.text());
        }
    }
}

/// Mail of each to the other arrives, so that both hubs know each other and both agents.
async fn meet(one: (&TestHub, &TestAgent, &str), other: (&TestHub, &TestAgent, &str)) {
    for ((from_hub, from, _), (to_hub, to, token)) in [(one, other), (other, one)] {
        let answer = from.send(from_hub, to).await;
        assert_eq!(answer.json()["status"], "queued", "{}", answer.text());
        until("the first message is there, and its hub knows that", async || {
            inbox(to_hub, token).await.len() == 1 && outbox(from_hub, to_hub).await["pending"] == 0
        })
        .await;
    }
}

/// Breaks the way between two hubs in one of the ways there are.
fn breaks(network: &Network, chance: &mut StdRng, here: &str, there: &str) {
    match chance.random_range(0..5) {
        0 => network.cut(here, there),
        1 => network.silence(here, there),
        2 => network.silence(there, here),
        3 => network.bar(here, there),
        _ => network.bar(there, here),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn whatever_breaks_between_three_hubs_nothing_is_lost_or_done_twice() -> Result<()> {
    let Some(network) = network("federation network", &PLACES) else {
        return Ok(());
    };
    let seed = seed("federation-network");
    let mut chance = chance(seed);
    let (mut hubs, _proxies) = reachable(&network);
    let homes = hubs.each_ref().map(Home::from);
    // Mail goes round: from each hub to the next.
    let mut loads = Vec::new();
    for (home, there) in homes.iter().zip(homes.iter().cycle().skip(1)) {
        loads.push(Load::between(home, there, seed, PACE).await?);
    }
    for round in 0..rounds() {
        let (here, there) = (round % 3, (round + 1) % 3);
        breaks(&network, &mut chance, PLACES[here], PLACES[there]);
        if chance.random_ratio(1, 3) {
            tokio::task::block_in_place(|| hubs[here].kill());
            for load in &loads {
                load.history.push(Event::Crash);
            }
            tokio::task::block_in_place(|| hubs[here].restart());
        }
        // The way that neither of the two has to do with, and that which the killed one has no part in, is whole.
        let whole = &loads[there].history;
        let enough = whole.delivered() + chance.random_range(20..100);
        until("mail passes between the other two", async || {
            whole.delivered() >= enough
        })
        .await;
        tokio::time::sleep(FAULT_MAX.mul_f64(chance.random())).await;
        network.heal();
    }
    hurry(&hubs).await;
    for (place, load) in PLACES.iter().zip(loads) {
        let history = load.finish().await?;
        assert!(history.delivered() > 0, "nothing of {place} arrived anywhere");
        assert_good(&format!("federation-network-{place}"), seed, &history);
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_partition_of_two_leaves_the_third_alone_and_ten_thousand_messages_come_in_order() {
    let Some(network) = network("federation partition", &PLACES) else {
        return;
    };
    let [alpha, beta, gamma] = PLACES.map(|place| hub(&network, place));
    let alice = TestAgent::registered(&alpha, "alice").await;
    let bob = TestAgent::registered(&beta, "bob").await;
    let carol = TestAgent::registered(&gamma, "carol").await;
    let (alices, bobs, carols) = (
        alice.token(&alpha).await,
        bob.token(&beta).await,
        carol.token(&gamma).await,
    );
    meet((&alpha, &alice, &alices), (&beta, &bob, &bobs)).await;

    network.cut("alpha", "beta");
    let sent = queued(&alpha, &alice, &bob, QUEUED).await;
    assert_eq!(alice.send(&alpha, &carol).await.json()["status"], "queued");
    assert_eq!(carol.send(&gamma, &bob).await.json()["status"], "queued");
    until(
        "gamma gets and gives mail while the other two are apart",
        async || inbox(&gamma, &carols).await.len() == 1 && inbox(&beta, &bobs).await.len() == 2,
    )
    .await;
    local_mail_passes(&alpha, &alice, &alice).await;
    until("alpha has tried in vain", async || {
        outbox(&alpha, &beta).await["last_error"].is_string()
    })
    .await;
    assert_eq!(outbox(&alpha, &beta).await["pending"], QUEUED);

    network.heal();
    let got = drained(&beta, &bobs, QUEUED + 2).await;
    assert_eq!(&got[2..], &sent[..], "each once, in the order of their sender");
    until("alpha knows that all of it is there", async || {
        outbox(&alpha, &beta).await["pending"] == 0
    })
    .await;
    assert!(inbox(&beta, &bobs).await.is_empty(), "something came twice");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hub_that_cannot_call_another_takes_its_mail_and_delivers_later() {
    let Some(network) = network("federation barred", &PLACES[..2]) else {
        return;
    };
    let [alpha, beta] = ["alpha", "beta"].map(|place| hub(&network, place));
    let alice = TestAgent::registered(&alpha, "alice").await;
    let bob = TestAgent::registered(&beta, "bob").await;
    let (alices, bobs) = (alice.token(&alpha).await, bob.token(&beta).await);
    meet((&alpha, &alice, &alices), (&beta, &bob, &bobs)).await;

    network.bar("alpha", "beta");
    assert_eq!(alice.send(&alpha, &bob).await.json()["status"], "queued");
    until("alpha has tried in vain", async || {
        outbox(&alpha, &beta).await["last_error"].is_string()
    })
    .await;
    // Alpha cannot ask who bob is, and has known it of late.
    assert_eq!(bob.send(&beta, &alice).await.json()["status"], "queued");
    until("beta's mail passes the other way", async || {
        inbox(&alpha, &alices).await.len() == 2
    })
    .await;
    assert_eq!(outbox(&alpha, &beta).await["pending"], 1);
    assert_eq!(inbox(&beta, &bobs).await.len(), 1, "the way is not barred");

    network.heal();
    until("what waited is there, and nothing twice", async || {
        inbox(&beta, &bobs).await.len() == 2 && outbox(&alpha, &beta).await["pending"] == 0
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_arrived_and_was_never_confirmed_is_stored_once() {
    let Some(network) = network("federation deaf", &PLACES[..2]) else {
        return;
    };
    let [alpha, beta] = ["alpha", "beta"].map(|place| hub(&network, place));
    let alice = TestAgent::registered(&alpha, "alice").await;
    let bob = TestAgent::registered(&beta, "bob").await;
    let (alices, bobs) = (alice.token(&alpha).await, bob.token(&beta).await);
    meet((&alpha, &alice, &alices), (&beta, &bob, &bobs)).await;

    // Over a connection that stayed open from the message before, alpha's next one arrives; no answer comes back.
    assert_eq!(alice.send(&alpha, &bob).await.json()["status"], "queued");
    until("one more is there", async || {
        inbox(&beta, &bobs).await.len() == 2 && outbox(&alpha, &beta).await["pending"] == 0
    })
    .await;
    network.silence("beta", "alpha");
    let last = alice.envelope(&bob);
    let answer = aip_tests::keyed::send(&alpha, last.to_wire()).await;
    assert_eq!(answer.json()["status"], "queued", "{}", answer.text());
    until("alpha hears nothing", async || {
        outbox(&alpha, &beta).await["last_error"].is_string()
    })
    .await;
    assert_eq!(outbox(&alpha, &beta).await["pending"], 1);
    let arrived = inbox(&beta, &bobs).await.len() == 3;

    network.heal();
    until("alpha hears that it is there", async || {
        outbox(&alpha, &beta).await["pending"] == 0
    })
    .await;
    let items = inbox(&beta, &bobs).await;
    assert_eq!(items.len(), 3, "it is there once: {items:?}");
    assert_eq!(items[2]["envelope"]["id"], last.id.to_string());
    // On a machine so slow that the connection had been closed it came only now.
    let known = "aip_federation_items_total{result=\"duplicate\"}";
    let again = beta.metric(known).await.unwrap_or_default();
    assert_eq!(
        arrived,
        again > 0.0,
        "it arrived: {arrived}; it came again {again} times"
    );
}
