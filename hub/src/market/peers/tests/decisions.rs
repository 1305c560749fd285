//! What the operator decides.

use super::*;

#[actix_web::test]
async fn pitfall_50_a_hub_that_shows_another_key_sells_nothing_until_the_operator_decides() {
    let world = World::new();
    world.serves(ONE, &key(1), &[tool("draw@v1")]);
    world.approves(ONE).await;
    world.serves(ONE, &key(2), &[tool("draw@v1")]);
    world.crawls_in(Duration::from_hours(1)).await;
    assert_eq!(world.sold().await, []);
    let peers = world.hub.get("/ai-market/v2/federation/peers").await.json();
    let shown = &peers["peers"][0];
    assert_eq!(
        (&shown["status"], &shown["trusted"]),
        (&json!("key_mismatch"), &json!(false))
    );
    assert_eq!(shown["public_key"], key_text(key(1).public()));
    assert_eq!(shown["advertised_public_key"], key_text(key(2).public()));
    world.approves(ONE).await;
    assert_eq!(world.sold().await, [], "approving it again is no answer");
    let answer = world
        .decides("/admin/market/peer/repin", json!({ "url": ONE }))
        .await;
    assert_eq!(answer.json()["status"], "active");
    world.crawls().await;
    assert_eq!(world.sold().await, [pair("draw@v1", ONE)]);
    let log = world
        .operator(TestRequest::get().uri("/admin/market/peers/log"))
        .await
        .json();
    let actions: Vec<_> = log["items"]
        .as_array()
        .unwrap()
        .iter()
        .rev()
        .map(|line| line["action"].clone())
        .collect();
    assert_eq!(actions, ["approve", "pin", "freeze", "approve", "repin"]);
}

#[actix_web::test]
async fn a_hub_that_is_blocked_or_removed_sells_nothing() {
    let world = World::new();
    world.serves(ONE, &key(1), &[tool("draw@v1")]);
    world.approves(ONE).await;
    let blocked = world
        .decides("/admin/market/peer/block", json!({ "url": ONE }))
        .await;
    assert_eq!(blocked.json()["status"], "blocked");
    let asked = world.web.asked(ONE);
    world.crawls_in(Duration::from_hours(2)).await;
    assert_eq!((world.sold().await, world.web.asked(ONE)), (vec![], asked));
    let peers = world.hub.get("/ai-market/v2/federation/peers").await.json();
    assert_eq!((&peers["count"], &peers["pending_count"]), (&json!(0), &json!(0)));
    assert_eq!(
        world.announces(json!({ "hub_url": ONE })).await.json()["status"],
        "known"
    );
    world.approves(ONE).await;
    assert_eq!(world.sold().await.len(), 1);
    let remove = TestRequest::delete().uri("/admin/market/peer?url=https%3A%2F%2Fone.example");
    assert_eq!(world.operator(remove).await.status, 204);
    world.crawls().await;
    assert_eq!(world.sold().await, []);
    let again = TestRequest::delete().uri("/admin/market/peer?url=https%3A%2F%2Fone.example");
    assert_eq!(world.operator(again).await.status, 404);
}

#[actix_web::test]
async fn only_the_operator_decides() {
    let world = World::new();
    let paths = [
        "/admin/market/peers",
        "/admin/market/peer/block",
        "/admin/market/peer/repin",
        "/admin/market/peer/crawl",
    ];
    for path in paths {
        let request = TestRequest::post().uri(path).set_json(json!({ "url": ONE }));
        assert_eq!(world.hub.ask_operator(request).await.status, 401, "{path}");
        let request = TestRequest::post().uri(path).set_json(json!({ "url": ONE }));
        assert_eq!(
            world.hub.ask(request).await.status,
            404,
            "{path} is not at the public door"
        );
    }
    assert_eq!(
        world
            .decides("/admin/market/peer/crawl", json!({ "url": ONE }))
            .await
            .status,
        404
    );
    assert_eq!(
        world
            .decides("/admin/market/peer/block", json!({ "url": "x" }))
            .await
            .status,
        400
    );
    world.approves(ONE).await;
    for (mode, status) in [
        ("reseller", 200),
        ("sells_for", 200),
        ("broker", 200),
        ("", 400),
        ("Broker", 400),
    ] {
        let body = json!({ "url": ONE, "mode": mode });
        let request = TestRequest::put().uri("/admin/market/peer/mode").set_json(body);
        assert_eq!(world.operator(request).await.status.as_u16(), status, "{mode}");
    }
    assert_eq!(world.peer(ONE).await["mode"], "broker");
    let page = world
        .operator(TestRequest::get().uri("/admin/market/peers?limit=1"))
        .await
        .json();
    assert_eq!(
        (&page["items"][0]["url"], &page["next_cursor"]),
        (&json!(ONE), &json!("https%3A%2F%2Fone%2Eexample"))
    );
    let next = world
        .operator(TestRequest::get().uri("/admin/market/peers?after=https%3A%2F%2Fone%2Eexample"))
        .await;
    assert_eq!(next.json()["items"], json!([]));
}
