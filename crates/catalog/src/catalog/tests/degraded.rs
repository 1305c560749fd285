//! What a search does when its embedder does not.

use std::sync::atomic::Ordering::SeqCst;
use std::time::Duration;

use crate::testing::{Rig, entry, numbers, query};

#[tokio::test]
async fn a_search_never_fails_because_the_embedder_did() {
    let rig = Rig::with([entry(1, "lamp"), entry(2, "car")]);
    let running = rig.ready().await;
    rig.embedders[0].is_down.store(true, SeqCst);
    let found = running.find(&query("lamp")).await;
    assert_eq!((numbers(&found), found.degraded), (vec![1], vec!["semantic"]));
    assert_eq!(found.items[0].relevance_score, Some(1.0));
    // What only meaning finds is not found, and that is said.
    let found = running.find(&query("лампа")).await;
    assert_eq!((numbers(&found), found.degraded), (Vec::new(), vec!["semantic"]));
}

#[tokio::test]
async fn it_is_waited_for_only_so_long_and_then_left_alone() {
    let mut rig = Rig::with([entry(1, "lamp"), entry(2, "car")]);
    rig.embed_timeout = Duration::from_millis(50);
    let running = rig.ready().await;
    let words = &rig.embedders[0];
    words.hangs.store(true, SeqCst);
    for text in ["lamp a", "lamp b", "lamp c", "lamp d"] {
        let found = running.find(&query(text)).await;
        assert_eq!((numbers(&found)[0], found.degraded), (1, vec!["semantic"]));
    }
    words.hangs.store(false, SeqCst);
    // The fourth did not ask: three had failed.
    crate::testing::eventually("the three", || words.queries.load(SeqCst) == 3).await;
    assert_eq!(running.find(&query("lamp e")).await.degraded, ["semantic"]);
    // What was embedded late is known now.
    assert!(running.find(&query("lamp a")).await.degraded.is_empty());
    rig.clock.advance(Duration::from_secs(6));
    assert!(running.find(&query("lamp f")).await.degraded.is_empty());
    assert_eq!(words.queries.load(SeqCst), 4);
}

#[tokio::test]
async fn a_query_is_embedded_once() {
    let rig = Rig::with([entry(1, "lamp")]);
    let running = rig.ready().await;
    for _ in 0..5 {
        running.find(&query(" lamp")).await;
    }
    assert_eq!(rig.embedders[0].queries.load(SeqCst), 1);
}

#[tokio::test]
async fn one_of_two_embedders_is_enough() {
    let mut rig = Rig::with([entry(1, "lamp"), entry(2, "car")]);
    rig.embedders.push(crate::testing::Words::new("words-2"));
    let running = rig.ready().await;
    assert_eq!(
        running
            .catalog
            .stats()
            .spaces
            .iter()
            .map(|space| space.vectors)
            .collect::<Vec<_>>(),
        [2, 2]
    );
    rig.embedders[0].is_down.store(true, SeqCst);
    let found = running.find(&query("лампа")).await;
    assert_eq!((numbers(&found)[0], found.degraded.len()), (1, 0));
}

#[tokio::test]
async fn an_index_follows_on_after_the_store_was_away() {
    let rig = Rig::with([entry(1, "lamp")]);
    let running = rig.ready().await;
    rig.store.is_down.store(true, SeqCst);
    rig.store.put(entry(2, "lamp"));
    running.catalog.nudge();
    running.until(|stats| stats.behind_changes == 1).await;
    assert_eq!(numbers(&running.find(&query("lamp")).await), [1]);
    rig.store.is_down.store(false, SeqCst);
    running.settled(&rig.store).await;
    assert_eq!(numbers(&running.find(&query("lamp")).await).len(), 2);
}

#[tokio::test]
async fn a_text_that_the_embedder_refuses_holds_up_no_other() {
    let rig = Rig::with((1..=20).map(|number| entry(number, &format!("lamp {number}"))));
    rig.store.put(entry(21, "unspeakable lamp"));
    rig.store.put(entry(22, "car"));
    let running = rig.run().await;
    running
        .until(|stats| stats.spaces[0].is_whole && stats.pending_embeddings == 0)
        .await;
    // Found by meaning: all but the one, which is found by its text.
    assert_eq!(running.find(&query("voiture")).await.items[0].entry.number, 22);
    let found = running.find(&query("лампа")).await;
    assert!(found.items.len() == 20 && !numbers(&found).contains(&21));
    assert_eq!(numbers(&running.find(&query("unspeakable")).await), [21]);
    // It has another chance when it reads differently.
    rig.store.put(entry(21, "blue lamp"));
    running.settled(&rig.store).await;
    let found = running.find(&query("blue lampe")).await;
    assert_eq!(numbers(&found)[0], 21);
    assert!(found.items[0].ranks.semantic.is_some());
}

#[tokio::test]
async fn queries_that_are_refused_leave_the_embedder_to_others() {
    let rig = Rig::with([entry(1, "lamp"), entry(2, "car")]);
    let running = rig.ready().await;
    for text in ["unspeakable a", "unspeakable b", "unspeakable c"] {
        assert_eq!(running.find(&query(text)).await.degraded, ["semantic"]);
    }
    let found = running.find(&query("лампа")).await;
    assert_eq!((numbers(&found)[0], found.degraded.len()), (1, 0));
}
