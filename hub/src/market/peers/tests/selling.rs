//! What hubs that were let in sell here, and for how long.

use super::*;
use crate::market::limits::PEERS_NAMED_PENDING_MAX;

#[actix_web::test]
async fn what_an_approved_hub_sells_is_sold_here() {
    let world = World::with(|settings| settings.market_peers.routing_fee_bps = 250);
    world.hub.hub.follow_listings();
    world.serves(ONE, &key(1), &[tool("draw@v1"), tool("read@v1")]);
    world.approves(ONE).await;
    assert_eq!(world.sold().await, [pair("draw@v1", ONE), pair("read@v1", ONE)]);
    let manifest = world.hub.get("/ai-market/v2/manifest").await.json();
    assert_eq!(
        (
            &manifest["local_capabilities"],
            &manifest["federated_capabilities"]
        ),
        (&json!(0), &json!(2))
    );
    assert_eq!(manifest["by_hub"][ONE]["capabilities_count"], 2);
    assert_eq!(manifest["by_hub"][ONE]["trust_basis"], "unobserved");
    let shown = &manifest["tools"][0];
    assert_eq!(
        (&shown["price_per_call_usd"], &shown["routed_price_usd"]),
        (&json!(0.01), &json!(0.01025))
    );
    assert_eq!(
        (&shown["route_status"], &shown["source_hub_name"]),
        (&json!("live"), &json!("A hub"))
    );
    let said = world.hub.get("/.well-known/ai-market.json").await.json();
    assert_eq!(
        (&said["capabilities_count"], &said["federated_capabilities_count"]),
        (&json!(0), &json!(2))
    );
    assert_eq!(
        (&said["peers"][0]["url"], &said["peers"][0]["capabilities_count"]),
        (&json!(ONE), &json!(2))
    );
    let peers = world.hub.get("/ai-market/v2/federation/peers").await.json();
    assert_eq!(
        (&peers["count"], &peers["peers"][0]["status"]),
        (&json!(1), &json!("active"))
    );
    assert_eq!(peers["peers"][0]["public_key"], key_text(key(1).public()));
    // AIP's search finds it, too, and says whose it is.
    let found = world.hub.found("draw", 2).await;
    assert_eq!(found["results"][0]["attributes"]["source_hub"], ONE);
    assert_eq!(found["results"][0]["source_hub"], "one.example");
    for (query, count) in [
        ("intent=draw", 2),
        ("hub=any", 2),
        ("hub=local", 0),
        ("hub=https://One.example/", 2),
        ("hub=https://other.example", 0),
        ("budget=0.0102", 0),
        ("budget=0.01025", 2),
    ] {
        let answer = world
            .hub
            .get(&format!("/ai-market/v2/search?{query}"))
            .await
            .json();
        assert_eq!(answer["total"], count, "{query}: {answer}");
        assert_eq!(answer["total_hubs_searched"], 2);
    }
    let answer = world.hub.get("/ai-market/v2/search?intent=draw").await.json();
    let found = &answer["matches"][0];
    assert_eq!(
        (&found["source_hub"], &found["seller_kind"]),
        (&json!(ONE), &json!("hub"))
    );
    assert_eq!(
        (&found["routing_fee_bps"], &found["credits_eligible"]),
        (&json!(250), &json!(false))
    );
    let listing = format!("/api/v1/listings/{}", found["listing_id"].as_str().unwrap());
    assert_eq!(world.hub.get(&listing).await.json()["origin"], "peer");
}

#[actix_web::test]
async fn pitfall_51_what_a_hub_that_is_away_sold_ends_after_six_hours_and_nobody_elses() {
    let world = World::new();
    world.serves(ONE, &key(1), &[tool("draw@v1"), tool("read@v1")]);
    world.serves(TWO, &key(2), &[tool("draw@v1")]);
    world.approves(ONE).await;
    world.approves(TWO).await;
    // It takes one thing away.
    world.serves(ONE, &key(1), &[tool("draw@v1")]);
    world.crawls_in(Duration::from_hours(1)).await;
    assert_eq!(world.sold().await, [pair("draw@v1", ONE), pair("draw@v1", TWO)]);
    // One is away, whatever it answers; the other one is not.
    let pages = [
        (500, "application/json", "{}"),
        (200, "text/html", "<html>"),
        (200, "application/json", "{"),
    ];
    for hour in 1..=8 {
        let (status, media, body) = pages[hour % 3];
        world
            .web
            .puts(&format!("{ONE}/.well-known/ai-market.json"), status, media, body);
        world.serves(TWO, &key(2), &[tool("draw@v1")]);
        world.crawls_in(Duration::from_hours(1)).await;
        let sold = world.sold().await;
        assert!(sold.contains(&pair("draw@v1", TWO)));
        assert_eq!(sold.contains(&pair("draw@v1", ONE)), hour < 5, "hour {hour}");
    }
    assert!(world.peer(ONE).await["failures"].as_u64().unwrap() >= 8);
    assert!(world.room().stalest_secs().unwrap() >= 8 * 3_600);
    world.serves(ONE, &key(1), &[tool("draw@v1")]);
    world.crawls_in(Duration::from_hours(1)).await;
    assert_eq!(world.sold().await.len(), 2);
}

#[actix_web::test]
async fn pitfall_48_an_answer_that_does_not_end_is_cut_off() {
    let world = World::new();
    world.serves(ONE, &key(1), &[tool("draw@v1")]);
    let large = "x".repeat(3 * 1_024 * 1_024);
    world.web.puts(
        &format!("{ONE}/ai-market/v2/manifest"),
        200,
        "application/json",
        large,
    );
    world.approves(ONE).await;
    assert_eq!(world.sold().await, []);
    let error = world.peer(ONE).await["last_error"].as_str().unwrap().to_owned();
    assert!(error.contains("manifest"), "{error}");
}

#[actix_web::test]
async fn pitfall_45_a_hub_is_asked_for_what_it_sells_itself() {
    let world = World::new();
    let mut resold = tool("other@v1");
    resold["source_hub"] = json!("https://other.example");
    let mut ours = tool("ours@v1");
    ours["source_hub"] = json!("https://hub.example");
    world.serves(ONE, &key(1), &[tool("draw@v1"), resold, ours]);
    world.approves(ONE).await;
    assert_eq!(world.sold().await, [pair("draw@v1", ONE)]);
    let asked = world.web.asked.lock().unwrap().clone();
    assert!(asked.iter().all(|request| request.method == Method::Get));
    let crawler = ("x-aimarket-crawler", "https://hub.example".to_owned());
    assert!(asked.iter().all(|request| request.headers.contains(&crawler)));
}

#[actix_web::test]
async fn a_hub_that_sells_here_says_that_it_has_changed() {
    let world = World::new();
    world.serves(ONE, &key(1), &[tool("draw@v1")]);
    world.approves(ONE).await;
    world.hub.clock.advance(Duration::from_mins(5));
    let draft = aip_protocol::market::announce::AnnounceDraft {
        hub_url: ONE,
        well_known_url: &format!("{ONE}/.well-known/ai-market.json"),
        capabilities_count: 2,
        hub_name: "A hub",
    };
    let announcement: Value = serde_json::from_slice(&draft.sign(&key(1)).unwrap().to_bytes()).unwrap();
    let forged: Value = serde_json::from_slice(&draft.sign(&key(2)).unwrap().to_bytes()).unwrap();
    assert_eq!(world.announces(forged).await.json()["crawl_scheduled"], false);
    world.serves(ONE, &key(1), &[tool("draw@v1"), tool("read@v1")]);
    world.crawls().await;
    assert_eq!(world.sold().await.len(), 1);
    assert_eq!(
        world.announces(announcement.clone()).await.json()["crawl_scheduled"],
        true
    );
    world.crawls().await;
    assert_eq!(world.sold().await.len(), 2);
    // Again and again it is not asked at once.
    let asked = world.web.asked(ONE);
    for _ in 0..3 {
        world.announces(announcement.clone()).await;
        world.crawls().await;
    }
    assert_eq!(world.web.asked(ONE), asked);
    world.crawls_in(Duration::from_mins(1)).await;
    assert_eq!(world.web.asked(ONE), asked + 2);
}

#[actix_web::test]
async fn hubs_that_a_hub_names_wait_for_the_operator() {
    let world = World::with(|settings| settings.market_peers.seeds = vec![ONE.to_owned()]);
    let named = |said: &mut Value| {
        said["peers"] =
            json!([{ "url": TWO, "name": "Two" }, { "url": "https://hub.example", "name": "us" }]);
    };
    world.serves_with(ONE, &key(1), &[tool("draw@v1")], named);
    world.room().prepare().await;
    world.crawls().await;
    assert_eq!(
        world.sold().await,
        [pair("draw@v1", ONE)],
        "the settings let it in"
    );
    let peer = world.peer(TWO).await;
    assert_eq!(
        (&peer["status"], &peer["found"], &peer["depth"]),
        (&json!("pending"), &json!(ONE), &json!(1))
    );
    let urls: Vec<_> = world
        .room()
        .book
        .all()
        .iter()
        .map(|peer| peer.url.clone())
        .collect();
    assert_eq!(urls, [ONE, TWO]);
}

/// However many it names, others can be named, too.
#[actix_web::test]
async fn one_hub_does_not_take_the_places_of_all_that_wait() {
    let world = World::new();
    for round in 0..6 {
        let names = |said: &mut Value| {
            let hubs = (0..50).map(|number| json!({ "url": format!("https://h{round}-{number}.example") }));
            said["peers"] = hubs.collect();
        };
        world.serves_with(ONE, &key(1), &[tool("draw@v1")], names);
        world.approves(ONE).await;
    }
    let book = &world.room().book;
    assert_eq!(book.pending_named_by(ONE), PEERS_NAMED_PENDING_MAX);
    assert_eq!(book.all().len(), 1 + PEERS_NAMED_PENDING_MAX);
    // Who is decided about waits no more.
    let decided = json!({ "url": "https://h0-0.example" });
    assert_eq!(
        world.decides("/admin/market/peer/block", decided).await.status,
        200
    );
    world.approves(ONE).await;
    assert_eq!(book.pending_named_by(ONE), PEERS_NAMED_PENDING_MAX);
    assert_eq!(book.all().len(), 2 + PEERS_NAMED_PENDING_MAX);
    let announced = world.announces(json!({ "hub_url": TWO })).await.json();
    assert_eq!(announced["status"], "pending");
}

#[actix_web::test]
async fn those_that_sell_here_are_told_when_something_has_changed() {
    let world = World::new();
    world.serves(ONE, &key(1), &[tool("draw@v1")]);
    world.approves(ONE).await;
    // Neither a bare provider nor a stranger takes announcements.
    let bare = |said: &mut Value| drop(said.as_object_mut().unwrap().remove("hub_version"));
    world.serves_with(TWO, &key(2), &[tool("draw@v1")], bare);
    world.approves(TWO).await;
    world
        .announces(json!({ "hub_url": "https://three.example" }))
        .await;
    let announcer = world.room().announcer.as_ref().unwrap();
    assert_eq!(announcer.tell(3).await, 1);
    let asked = world.web.asked.lock().unwrap().clone();
    let told: Vec<_> = asked
        .iter()
        .filter(|request| request.method == Method::Post)
        .collect();
    assert_eq!(told.len(), 1);
    assert_eq!(told[0].url, format!("{ONE}/ai-market/v2/federation/announce"));
    let announcement = Exact::parse(&told[0].body).unwrap();
    let own_key = world.hub.hub.app.hub_key.public().clone();
    let check = aip_protocol::market::announce::verify(&announcement, &[own_key]);
    assert!(check.verdict.is_true(), "{check:?}");
    let said: Value = announcement.into();
    assert_eq!(
        (&said["hub_url"], &said["capabilities_count"]),
        (&json!("https://hub.example"), &json!(3))
    );
}
