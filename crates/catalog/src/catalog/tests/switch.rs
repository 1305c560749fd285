//! Another model, another store, an index that begins anew.

use std::fs;
use std::sync::atomic::Ordering::SeqCst;

use crate::testing::{Rig, Words, entry, numbers, query};

fn rig(count: u64) -> Rig {
    let rig = Rig::on_disk();
    (1..=count).for_each(|number| rig.store.put(entry(number, &format!("lamp {number}"))));
    rig
}

#[tokio::test]
async fn the_old_vectors_serve_until_the_new_ones_are_whole() {
    let mut rig = rig(30);
    rig.ready().await.kill().await;
    rig.former = std::mem::replace(&mut rig.embedders, vec![Words::new("words-2")]);
    rig.embedders[0].is_down.store(true, SeqCst);
    let running = rig.run().await;
    running
        .until(|stats| stats.is_caught_up && stats.pending_embeddings == 30)
        .await;
    let serving = |running: &crate::testing::Running| {
        let spaces = running
            .catalog
            .stats()
            .spaces
            .into_iter()
            .filter(|space| space.is_serving);
        spaces.map(|space| space.embedder).collect::<Vec<_>>()
    };
    assert_eq!(serving(&running), ["words-1"]);
    let found = running.find(&query("лампа")).await;
    assert_eq!((found.items.len(), found.degraded.len()), (20, 0));
    // What is deleted meanwhile is not found by them.
    rig.store.delete(7);
    running
        .until(|stats| stats.behind_changes == 0 && stats.documents == 29)
        .await;

    rig.embedders[0].is_down.store(false, SeqCst);
    running
        .until(|stats| stats.spaces.len() == 1 && stats.spaces[0].is_whole)
        .await;
    assert_eq!(serving(&running), ["words-2"]);
    assert_eq!(rig.embedders[0].passages(), 29);
    crate::testing::eventually("the old file", || !rig.dir().join("vectors/words-1.vec").exists()).await;
    assert!(running.find(&query("лампа")).await.degraded.is_empty());
    running.kill().await;
    rig.ready().await;
    assert_eq!(rig.embedders[0].passages(), 29);
}

#[tokio::test]
async fn without_the_old_model_the_new_one_serves_what_it_has() {
    let mut rig = rig(5);
    rig.ready().await.kill().await;
    rig.embedders = vec![Words::new("words-2")];
    let running = rig.ready().await;
    assert_eq!(running.find(&query("лампа")).await.items.len(), 5);
    assert_eq!(rig.embedders[0].passages(), 5);
}

#[tokio::test]
async fn an_index_that_was_deleted_is_built_anew_without_embedding_again() {
    let rig = rig(50);
    let running = rig.ready().await;
    let before = running.find(&query("lamp 7")).await;
    running.kill().await;
    crate::testing::eventually("the lock", || fs::remove_dir_all(rig.dir().join("text")).is_ok()).await;
    let running = rig.ready().await;
    assert_eq!(running.find(&query("lamp 7")).await, before);
    assert_eq!(rig.embedders[0].passages(), 50);
}

#[tokio::test]
async fn an_index_that_missed_deletions_begins_anew() {
    let rig = rig(20);
    rig.ready().await.kill().await;
    rig.store.delete(3);
    rig.store.delete(4);
    rig.store.put(entry(21, "lamp 21"));
    rig.store.forget();
    let running = rig.ready().await;
    running.until(|stats| stats.spaces[0].vectors == 19).await;
    assert_eq!(running.catalog.stats().documents, 19);
    let found = numbers(&running.find(&query("лампа")).await);
    assert!(found.len() == 19 && !found.contains(&3) && !found.contains(&4));
    assert_eq!(rig.embedders[0].passages(), 21);
}

#[tokio::test]
async fn deletions_that_are_forgotten_while_it_reads_are_not_missed() {
    let rig = rig(20);
    rig.ready().await.kill().await;
    rig.store.delete(3);
    rig.store.put(entry(21, "lamp 21"));
    rig.store.forgets.store(true, SeqCst);
    let running = rig.ready().await;
    assert_eq!(running.catalog.stats().documents, 20);
    let found = running.find(&query("lamp")).await;
    assert!(!numbers(&found).contains(&3));
    running.until(|stats| stats.spaces[0].vectors == 20).await;
}

#[tokio::test]
async fn an_index_that_is_ahead_of_a_restored_store_begins_anew() {
    let rig = rig(20);
    let running = rig.ready().await;
    rig.store.go_back_to(12);
    running.settled(&rig.store).await;
    running
        .until(|stats| stats.documents == 12 && stats.spaces[0].vectors == 12)
        .await;
    // Numbers that are given again are other listings.
    rig.store.put(entry(13, "red car"));
    running.settled(&rig.store).await;
    assert_eq!(numbers(&running.find(&query("voiture")).await)[0], 13);
    assert_eq!(running.catalog.stats().documents, 13);
}
