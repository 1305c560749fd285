//! Epochs of a peer's outbox.

use super::*;
use crate::limits::EPOCHS;

#[tokio::test]
async fn a_new_epoch_is_another_window_and_the_document_vouches_for_it() {
    let mut world = World::new();
    assert_eq!(world.push(&[world.mail(1).1]).await.unwrap().acked_through, 1);
    let asked = world.asked(&world.peer.document_url());
    world.peer.epoch = "2".to_owned();
    assert_eq!(
        code(world.push(&[world.mail(1).1]).await),
        ErrorCode::EpochChanged,
        "the document names another one"
    );
    assert_eq!(world.asked(&world.peer.document_url()), asked + 1);
    world.peer.publish(&world.net, world.clock.now());
    for _ in 0..3 {
        let answer = world.push(&[world.mail(1).1]).await.unwrap();
        assert_eq!(answer.acked_through, 1);
    }
    assert_eq!(
        world.asked(&world.peer.document_url()),
        asked + 2,
        "asked at once, and once"
    );
    assert_eq!(world.local.ids().len(), 2);
    let old = batch_of(&world.peer.domain, "1", &[world.mail(2).1]);
    assert_eq!(
        code(world.send(world.sign_push(&old), old).await),
        ErrorCode::EpochChanged
    );
}

#[tokio::test]
async fn there_are_not_any_number_of_epochs() {
    let mut world = World::new();
    world.push(&[]).await.unwrap();
    for epoch in 0..EPOCHS.burst() {
        world.peer.epoch = format!("next-{epoch}");
        world.peer.publish(&world.net, world.clock.now());
        world.push(&[]).await.unwrap();
    }
    let asked = world.asked(&world.peer.document_url());
    world.peer.epoch = "one more".to_owned();
    world.peer.publish(&world.net, world.clock.now());
    let refusal = world.push(&[]).await.unwrap_err();
    assert_eq!(refusal.code, ErrorCode::RateLimited);
    assert!(refusal.retry_after_secs.is_some_and(|secs| secs <= 900));
    assert_eq!(world.asked(&world.peer.document_url()), asked);
}
