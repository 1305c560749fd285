//! What becomes of items that an honest peer hands in.

use aip_protocol::peer::Known;

use super::*;
use crate::limits::{ABOVE_FAR_MAX, ABOVE_NEAR_MAX, ABOVE_PRESSURE, PAIR_RETRY_SECS, PAIR_TIME};
use crate::peers::PeerStore as _;

#[tokio::test]
async fn mail_arrives_once_byte_for_byte() {
    let world = World::new();
    let (id, envelope) = world.envelope(&world.alice, &world.bob);
    // Another spelling of the same signed content.
    let spaced = envelope.replacen(':', " : ", 1);
    let item = world.item(1, &spaced);
    let answer = world.push(std::slice::from_ref(&item)).await.unwrap();
    assert_eq!(answer.acked_through, 1);
    assert_eq!(answer.results[0].reception, Reception::Stored);
    assert_eq!(*world.local.taken.lock().unwrap(), [(id, Bytes::from(spaced))]);
    assert_eq!(world.results(&[item]).await, [Reception::Duplicate]);
    let again = world.item(2, &envelope);
    assert_eq!(
        world.results(&[again]).await,
        [Reception::Duplicate],
        "the key of §5"
    );
    assert_eq!(world.local.ids(), [id]);
    assert_eq!(world.ears.0.load(Ordering::SeqCst), 3);
}

#[tokio::test]
async fn acked_through_is_contiguous_and_passes_refused_items() {
    let world = World::new();
    let (first, fourth, third) = (world.mail(1).1, world.mail(4).1, world.mail(3).1);
    let stranger = Did::parse("did:aip:own.example:nobody").unwrap();
    let lost = world.item(2, &world.envelope(&world.alice, &stranger).1);
    assert_eq!(world.push(&[first]).await.unwrap().acked_through, 1);
    assert_eq!(world.push(&[fourth]).await.unwrap().acked_through, 1);
    let answer = world.push(&[third, lost.clone()]).await.unwrap();
    assert_eq!(answer.acked_through, 4);
    assert_eq!(answer.results[1].reception, refused(ErrorCode::RecipientUnknown));
    assert_eq!(
        world.results(&[lost]).await,
        [refused(ErrorCode::RecipientUnknown)],
        "the same item again gets the same answer"
    );
}

#[tokio::test]
async fn each_item_is_judged_on_its_own() {
    let world = World::new();
    let other = FakeHub::new("other.example", 40).agent("eve", 41, world.clock.now());
    let old = world.clock.now() - Duration::from_hours(6 * 24);
    let long_ago = format!(
        r#"{{"peer_seq":6,"accepted_at":"{old}","envelope":{}}}"#,
        world.envelope_at(&world.alice, &world.bob, old).1
    );
    let nobody = world.peer.agent("nobody", 42, world.clock.now());
    world.peer.deny(&world.net, "nobody");
    let elsewhere = Did::parse("did:aip:third.example:dora").unwrap();
    let forged = world
        .envelope(&world.alice, &world.bob)
        .1
        .replace("aip.message", "aip.receipt");
    let stale = world.envelope_at(
        &world.alice,
        &world.bob,
        world.clock.now() - Duration::from_secs(5_000),
    );
    let items = [
        world.item(1, &world.envelope(&other, &world.bob).1),
        world.item(2, &world.envelope(&world.alice, &elsewhere).1),
        world.item(3, &forged),
        world.item(4, &world.envelope(&nobody, &world.bob).1),
        world.item(5, &stale.1),
        long_ago,
        world.item(7, r#"{"aip":"2"}"#),
        world.item(8, r#"{"a":1,"a":2}"#),
        world.mail(9).1,
        r#"{"peer_seq":10}"#.to_owned(),
    ];
    assert_eq!(
        world.results(&items).await,
        [
            refused(ErrorCode::FromDomainMismatch),
            refused(ErrorCode::ToDomainMismatch),
            refused(ErrorCode::SignatureInvalid),
            refused(ErrorCode::SenderUnknown),
            refused(ErrorCode::CreatedAtOutOfWindow),
            refused(ErrorCode::TransitTooLong),
            refused(ErrorCode::VersionUnsupported),
            refused(ErrorCode::JsonInvalid),
            Reception::Stored,
            refused(ErrorCode::MemberInvalid),
        ]
    );
    assert_eq!(world.net.count("https://other.example/.well-known/aip"), 0);
    let counts = world.counts();
    assert_eq!((counts.items.stored, counts.items.refused), (1, 9));
    assert_eq!(counts.refused.iter().map(|(_, count)| count).sum::<u64>(), 9);
    assert_eq!(counts.taken[0], ("push", 1));
}

#[tokio::test]
async fn an_envelope_above_the_limit_is_refused_by_itself() {
    let world = World::new();
    let (_, envelope) = world.envelope(&world.alice, &world.bob);
    let long = envelope.replacen('{', &format!(r#"{{"filler":"{}","#, "x".repeat(256 * 1024)), 1);
    let items = [world.item(1, &long), world.mail(2).1];
    assert_eq!(
        world.results(&items).await,
        [refused(ErrorCode::EnvelopeTooLarge), Reception::Stored]
    );
}

#[tokio::test]
async fn a_rotated_sender_is_looked_up_once_more_past_the_cache() {
    let mut world = World::new();
    let history = world.peer.history_url("alice");
    assert_eq!(world.results(&[world.mail(1).1]).await, [Reception::Stored]);
    world.clock.advance(Duration::from_secs(30));
    world.alice.rotate(33, world.clock.now());
    world.peer.serve(&world.net, &world.alice);
    let asked = world.asked(&history);
    assert_eq!(
        world.results(&[world.mail(2).1, world.mail(3).1]).await,
        [Reception::Stored, Reception::Stored]
    );
    assert_eq!(world.asked(&history), asked + 1, "one look for both");
    let unlisted = FakeAgent {
        signing: SigningKey::from_seed([99; 32]),
        ..world.alice.clone()
    };
    world.clock.advance(Duration::from_secs(30));
    let item = world.item(4, &world.envelope(&unlisted, &world.bob).1);
    assert_eq!(world.results(&[item]).await, [refused(ErrorCode::KeyUnknown)]);
}

#[tokio::test]
async fn a_sender_that_was_unknown_a_moment_ago_is_looked_for_again() {
    let world = World::new();
    let dora = world.peer.agent("dora", 51, world.clock.now());
    world.peer.deny(&world.net, "dora");
    let early = world.item(1, &world.envelope(&dora, &world.bob).1);
    assert_eq!(world.results(&[early]).await, [refused(ErrorCode::SenderUnknown)]);
    world.peer.serve(&world.net, &dora);
    let item = world.item(2, &world.envelope(&dora, &world.bob).1);
    let [Reception::Retry { after_secs, .. }] = world.results(std::slice::from_ref(&item)).await[..] else {
        panic!("its hub was asked a moment ago");
    };
    world.clock.advance(Duration::from_secs(after_secs));
    assert_eq!(world.results(&[item]).await, [Reception::Stored]);
}

#[tokio::test]
async fn a_key_is_not_refused_by_what_its_hub_said_before_the_item_was_here() {
    let world = World::new();
    let history = world.peer.history_url("alice");
    let eve = world.peer.agent("eve", 70, world.clock.now());
    world.peer.serve(&world.net, &eve);
    assert_eq!(world.results(&[world.mail(1).1]).await, [Reception::Stored]);
    world.clock.advance(Duration::from_secs(30));
    // The hub's document is asked for afresh with eve, and not so soon again: alice's history is what is waited for.
    let forged = FakeAgent {
        signing: SigningKey::from_seed([99; 32]),
        ..eve
    };
    let item = world.item(2, &world.envelope(&forged, &world.bob).1);
    assert_eq!(world.results(&[item]).await, [refused(ErrorCode::KeyUnknown)]);
    let mut rotated = world.alice.clone();
    rotated.rotate(33, world.clock.now());
    let mail = |seq| world.item(seq, &world.envelope(&rotated, &world.bob).1);
    let (first, second) = ([mail(3)], [mail(4)]);
    let (looks, asked) = (world.counts().looks, world.asked(&history));
    world.net.hold();
    let later = async {
        while world.asked(&history) == asked {
            tokio::task::yield_now().await;
        }
        world.clock.advance(Duration::from_secs(1));
        world.results(&second).await
    };
    let release = async {
        while world.counts().looks < looks + 2 {
            tokio::task::yield_now().await;
        }
        world.net.release();
    };
    let (first, later, ()) = tokio::join!(world.results(&first), later, release);
    assert_eq!(
        first,
        [refused(ErrorCode::KeyUnknown)],
        "asked for it, and not there"
    );
    let [Reception::Retry { after_secs, .. }] = later[..] else {
        panic!("asked before it was here: {later:?}");
    };
    world.peer.serve(&world.net, &rotated);
    world.clock.advance(Duration::from_secs(after_secs));
    assert_eq!(world.results(&second).await, [Reception::Stored]);
}

#[tokio::test]
async fn a_sender_whose_hub_is_down_for_a_moment_waits_and_a_fork_does_not() {
    let mut world = World::new();
    let brief = world.peer.agent("brief", 50, world.clock.now());
    let item = world.item(1, &world.envelope(&brief, &world.bob).1);
    let [Reception::Retry { code, .. }] = world.results(std::slice::from_ref(&item)).await[..] else {
        panic!("nobody answers for brief's history");
    };
    assert_eq!(code, ErrorCode::PeerFailed);
    world.peer.serve(&world.net, &brief);
    world.clock.advance(Duration::from_mins(2));
    assert_eq!(world.results(&[item]).await, [Reception::Stored]);
    assert_eq!(world.results(&[world.mail(2).1]).await, [Reception::Stored]);
    let genesis = world.clock.now() - Duration::from_secs(100);
    world.alice = world.peer.agent("alice", 60, genesis);
    world.peer.serve(&world.net, &world.alice);
    world.clock.advance(Duration::from_secs(30));
    assert_eq!(
        world.results(&[world.mail(3).1]).await,
        [refused(ErrorCode::HistoryForked)]
    );
}

#[tokio::test]
async fn mail_of_an_agent_without_a_sound_history_is_refused_for_good() {
    let world = World::new();
    let mut odd = world.peer.agent("odd", 50, world.clock.now());
    odd.rotate(51, world.clock.now());
    let item = world.item(1, &world.envelope(&odd, &world.bob).1);
    let whole = odd.clone();
    odd.operations.remove(0);
    world.peer.serve(&world.net, &odd);
    let refused = [refused(ErrorCode::HistoryUnsound)];
    assert_eq!(world.results(std::slice::from_ref(&item)).await, refused);
    // It is remembered, whatever its hub shows later; what comes later is judged by that.
    world.peer.serve(&world.net, &whole);
    world.clock.advance(Duration::from_mins(2));
    assert_eq!(world.results(&[item]).await, refused);
    let next = world.item(2, &world.envelope(&whole, &world.bob).1);
    assert_eq!(world.results(&[next]).await, [Reception::Stored]);
}

#[tokio::test]
async fn what_follows_in_the_same_pair_waits_with_what_waits() {
    let world = World::new();
    let carol = Did::parse("did:aip:own.example:carol").unwrap();
    let full = Reception::Retry {
        code: ErrorCode::MailboxFull,
        after_secs: 60,
    };
    world.local.tell(&world.bob, Some(full));
    let to_carol = |seq| world.item(seq, &world.envelope(&world.alice, &carol).1);
    let items = [world.mail(1).1, to_carol(2), world.mail(3).1, to_carol(4)];
    let answer = world.push(&items).await.unwrap();
    let results: Vec<_> = answer.results.iter().map(|result| result.reception).collect();
    assert_eq!(results, [full, Reception::Stored, full, Reception::Stored]);
    assert_eq!(answer.acked_through, 0);
    world.local.tell(&world.bob, None);
    let answer = world.push(&[items[0].clone(), items[2].clone()]).await.unwrap();
    assert_eq!(answer.acked_through, 4);
    assert_eq!(world.local.ids().len(), 4);
}

#[tokio::test]
async fn a_recipient_that_takes_its_time_holds_up_its_own_mail_alone() {
    let world = World::new();
    world.local.held.send_replace(true);
    let items = [world.mail(1).1, world.mail(2).1, world.mail(3).1];
    let slow = async {
        world.local.reached.notified().await;
        world.clock.advance(PAIR_TIME);
        world.local.held.send_replace(false);
    };
    let (results, ()) = tokio::join!(world.results(&items), slow);
    let again = Reception::Retry {
        code: ErrorCode::Unavailable,
        after_secs: PAIR_RETRY_SECS,
    };
    assert_eq!(results, [Reception::Stored, again, again]);
    let answer = world.push(&items).await.unwrap();
    assert_eq!((answer.acked_through, world.local.ids().len()), (3, 3));
}

#[tokio::test]
async fn items_far_above_the_window_come_again() {
    let world = World::new();
    let far = 10 * ABOVE_NEAR_MAX;
    world.settle(far - ABOVE_FAR_MAX + 1..far).await;
    let last = world.mail(far).1;
    assert_eq!(world.results(&[last]).await, [Reception::Stored]);
    let items = [world.mail(ABOVE_NEAR_MAX).1, world.mail(ABOVE_NEAR_MAX + 1).1];
    let results = world.results(&items).await;
    assert_eq!(results[0], Reception::Stored);
    assert!(matches!(results[1], Reception::Retry { .. }), "{results:?}");
    let window = world.store.window(&world.peer.domain, "1").await.unwrap();
    assert_eq!(window, (0, ABOVE_FAR_MAX + 1));
}

#[tokio::test]
async fn mail_behind_much_that_waits_for_a_full_mailbox_is_taken() {
    let world = World::new();
    let full = Reception::Retry {
        code: ErrorCode::MailboxFull,
        after_secs: 60,
    };
    world.local.tell(&world.bob, Some(full));
    assert_eq!(world.results(&[world.mail(1).1]).await, [full]);
    world.local.tell(&world.bob, None);
    assert_eq!(world.results(&[world.mail(100_000).1]).await, [Reception::Stored]);
}

#[tokio::test]
async fn what_has_left_the_peers_outbox_is_waited_for_no_longer() {
    let world = World::new();
    assert_eq!(world.push(&[world.mail(3).1]).await.unwrap().acked_through, 0);
    let item = world.mail(10_005).1;
    let body = world.batch(std::slice::from_ref(&item));
    let text = String::from_utf8(body.to_vec()).unwrap();
    let body = Bytes::from(text.replacen("\"items\"", "\"floor\":10000,\"items\"", 1));
    let answer = world.send(world.sign_push(&body), body).await.unwrap();
    assert_eq!(answer.results[0].reception, Reception::Stored);
    assert_eq!(answer.acked_through, 10_000);
    let known = world
        .store
        .known(&world.peer.domain, "1", &[7, 10_001, 10_005])
        .await
        .unwrap();
    assert_eq!(known, [Known::Duplicate, Known::New, Known::Duplicate]);
}

#[tokio::test]
async fn one_full_mailbox_does_not_hold_up_all_mail_of_a_peer() {
    let world = World::new();
    let full = Reception::Retry {
        code: ErrorCode::MailboxFull,
        after_secs: 60,
    };
    world.local.tell(&world.bob, Some(full));
    let stuck = world.mail(1).1;
    assert_eq!(world.results(std::slice::from_ref(&stuck)).await, [full]);
    world.settle(2..=ABOVE_PRESSURE + 1).await;
    let answer = world.push(&[stuck]).await.unwrap();
    assert_eq!(answer.results[0].reception, refused(ErrorCode::MailboxFull));
    assert_eq!(answer.acked_through, ABOVE_PRESSURE + 1);
}

#[tokio::test]
async fn a_store_that_fails_makes_the_peer_come_again() {
    let world = World::new();
    world.push(&[]).await.unwrap();
    let (id, item) = world.mail(1);
    world.store.fail(true);
    let refusal = world.push(std::slice::from_ref(&item)).await.unwrap_err();
    assert_eq!(refusal.code, ErrorCode::Unavailable);
    assert!(refusal.retry_after_secs.is_some());
    world.store.fail(false);
    assert_eq!(world.results(&[item]).await, [Reception::Stored]);
    assert_eq!(world.local.ids(), [id]);
    let record = world.store.peer(&world.peer.domain).await.unwrap().unwrap();
    assert!(record.last_in.is_some());
}

#[tokio::test]
async fn a_push_is_judged_to_its_end_when_nobody_waits_for_the_answer() {
    let world = World::new();
    world.push(&[]).await.unwrap();
    let (id, item) = world.mail(1);
    let body = world.batch(&[item]);
    world.local.held.send_replace(true);
    let ticket = world
        .inbound
        .knock(Call::Push, world.sign_push(&body), None)
        .unwrap();
    let inbound = Arc::clone(&world.inbound);
    let push = tokio::spawn(async move { inbound.push(ticket, body).await });
    world.local.reached.notified().await;
    push.abort();
    assert!(push.await.unwrap_err().is_cancelled());
    world.local.held.send_replace(false);
    while world.store.window(&world.peer.domain, "1").await.unwrap().0 == 0 {
        tokio::task::yield_now().await;
    }
    assert_eq!(world.local.ids(), [id]);
}
