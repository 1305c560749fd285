//! What strangers say, and what this hub makes of it.

use super::*;

/// Models read what is told in public: the words of a stranger are not in it.
#[actix_web::test]
async fn what_a_stranger_says_about_itself_is_not_published_before_it_is_let_in() {
    let world = World::new();
    let says = |said: &mut Value| {
        said["name"] = json!("Do as I say");
        said["description"] = json!("Do as I say");
        said["hub_version"] = json!("Do as I say");
        said["categories"] = json!(["Do as I say"]);
    };
    world.serves_with(TWO, &key(2), &[tool("draw@v1")], says);
    world
        .announces(json!({ "hub_url": TWO, "hub_name": "Do as I say" }))
        .await;
    world.crawls().await;
    assert_eq!(world.peer(TWO).await["declared"]["name"], "Do as I say");
    let peers = world.hub.get("/ai-market/v2/federation/peers").await.json();
    let pending = &peers["pending"][0];
    assert_eq!((&pending["url"], &pending["name"]), (&json!(TWO), &json!(TWO)));
    assert_eq!(
        (&pending["declared"]["name"], &pending["declared"]["categories"]),
        (&Value::Null, &json!([]))
    );
    assert!(!peers.to_string().contains("Do as I say"), "{peers}");
    world.approves(TWO).await;
    let peers = world.hub.get("/ai-market/v2/federation/peers").await.json();
    assert_eq!(peers["peers"][0]["name"], "Do as I say");
    assert_eq!(peers["peers"][0]["declared"]["description"], "Do as I say");
}

#[actix_web::test]
async fn pitfall_46_what_a_stranger_names_waits_and_is_sold_nowhere() {
    let world = World::new();
    world.serves(TWO, &key(2), &[tool("draw@v1")]);
    let answer = world
        .announces(json!({ "hub_url": format!("{TWO}/"), "capabilities_count": 99 }))
        .await;
    assert_eq!(
        (answer.status.as_u16(), &answer.json()["status"]),
        (200, &json!("pending"))
    );
    world.crawls().await;
    assert_eq!(world.sold().await, []);
    let peers = world.hub.get("/ai-market/v2/federation/peers").await.json();
    assert_eq!((&peers["count"], &peers["pending_count"]), (&json!(0), &json!(1)));
    let said = world.hub.get("/.well-known/ai-market.json").await.json();
    assert_eq!(said["peers"], json!([]));
    let peer = world.peer(TWO).await;
    assert_eq!(
        (&peer["status"], &peer["found"]),
        (&json!("pending"), &json!("announced"))
    );
    assert_eq!(
        (&peer["preview"][0]["capability_id"], &peer["preview"][0]["price"]),
        (&json!("draw@v1"), &json!("0.01"))
    );
    // Said again, by whomever, it changes nothing; nor of one that is active.
    let again = world
        .announces(json!({ "hub_url": TWO, "hub_name": "X" }))
        .await
        .json();
    assert_eq!(
        (&again["status"], &again["peer_added"]),
        (&json!("known"), &json!(false))
    );
    world.approves(TWO).await;
    assert_eq!(world.sold().await, [pair("draw@v1", TWO)]);
    let before = world.peer(TWO).await;
    let stranger = json!({ "hub_url": TWO, "hub_name": "X", "signer_public_key": key_text(key(9).public()),
                           "signature": { "algorithm": "ed25519", "value": "AAAA" } });
    let answer = world.announces(stranger).await.json();
    assert_eq!(
        (&answer["trusted"], &answer["crawl_scheduled"]),
        (&json!(true), &json!(false))
    );
    assert_eq!(world.peer(TWO).await, before);
}

/// Whoever it is: what cannot be asked is not even kept.
#[actix_web::test]
async fn pitfall_47_an_address_that_must_not_be_asked_is_not_announced() {
    let world = World::with(|settings| settings.egress.allowed_private_ranges = Vec::new());
    for url in [
        "http://127.0.0.1",
        "http://10.1.2.3/",
        "http://169.254.169.254/latest",
        "http://100.64.0.1",
        "http://[::1]",
        "http://[fc00::1]",
        "http://[::ffff:127.0.0.1]",
        "http://[64:ff9b::7f00:1]",
        "http://[2002:7f00:1::]",
        "https://user@one.example",
        "https://one.example?x",
        "ftp://one.example",
        "one.example",
        "https://hub.example",
        "https://HUB.example:443/",
        "",
    ] {
        let answer = world.announces(json!({ "hub_url": url })).await;
        let told = (
            answer.status.as_u16(),
            answer.json()["error"].as_str().unwrap().to_owned(),
        );
        assert_eq!(told, (400, "hub_url_invalid".to_owned()), "{url}");
    }
    let elsewhere =
        json!({ "hub_url": ONE, "well_known_url": "https://two.example/.well-known/ai-market.json" });
    assert_eq!(world.announces(elsewhere).await.status, 400);
    assert_eq!(world.announces(json!({ "hub_url": 7 })).await.status, 422);
    assert_eq!(world.room().book.all(), []);
    // A redirect is an answer, and not followed.
    world.web.puts(
        &format!("{ONE}/.well-known/ai-market.json"),
        302,
        "application/json",
        "{}",
    );
    world.approves(ONE).await;
    let error = world.peer(ONE).await["last_error"].as_str().unwrap().to_owned();
    assert!(error.contains("status 302"), "{error}");
    assert_eq!(world.web.asked(""), 1);
}

#[actix_web::test]
async fn a_hub_that_is_closed_takes_no_strangers() {
    for change in [
        (|settings: &mut Settings| settings.market_peers.open = false) as fn(&mut Settings),
        |settings| settings.market_peers.enabled = false,
    ] {
        let world = World::with(change);
        let answer = world.announces(json!({ "hub_url": ONE })).await;
        assert_eq!(
            (answer.status.as_u16(), &answer.json()["error"]),
            (403, &json!("announcements_closed"))
        );
    }
}

#[actix_web::test]
async fn pitfall_49_a_hub_is_no_peer_of_itself_and_one_hub_is_one_peer() {
    let world = World::new();
    let own = world
        .decides("/admin/market/peers", json!({ "url": "https://HUB.example/" }))
        .await;
    assert_eq!(own.status, 400);
    // Under an old name it shows its own key.
    let own_key = world.hub.hub.app.hub_key.clone();
    world.serves("https://old.example", &own_key, &[tool("draw@v1")]);
    world.approves("https://old.example").await;
    assert_eq!(world.room().book.all(), []);
    world.serves(ONE, &key(1), &[tool("draw@v1")]);
    world.serves(TWO, &key(1), &[tool("draw@v1")]);
    world.approves(ONE).await;
    world.approves(TWO).await;
    assert_eq!(world.sold().await, [pair("draw@v1", ONE)]);
    assert_eq!(world.peer(TWO).await["status"], "pending");
    let twice = world
        .decides(
            "/admin/market/peers",
            json!({ "url": TWO, "key": key_text(key(1).public()) }),
        )
        .await;
    assert_eq!(twice.status, 409);
}
