//! Moving to another hub: two histories that point at each other, mail that still arrives, and claims that do not count.

use std::path::Path;
use std::sync::Arc;

use aip_client::inbox::FileInbox;
use aip_client::protocol::envelope::Envelope;
use aip_client::protocol::name::Did;
use aip_client::{Client, Draft, Error, KIND_RECEIPT, KeyFile, Move, Registration};
use serde_json::{Value, json};

use crate::aip::Aip;
use crate::fake::{FakeHub, Fault};
use crate::support::{
    DEADLINE, agent, builder, eventually, listen, next, nothing_before_marker, options, within,
};

fn did(hub: &FakeHub, name: &str) -> Did {
    Did::parse(&format!("did:aip:{}:{name}", hub.domain.replace(':', "%3A"))).unwrap()
}

fn bob(hub: &FakeHub, folder: &Path) -> Client {
    let file = KeyFile::at(folder.join("bob.key"));
    builder(hub).key_file(file).unwrap().build().unwrap()
}

async fn registered(hub: &FakeHub, folder: &Path) -> Client {
    let client = bob(hub, folder);
    client.register("bob", Registration::default()).await.unwrap();
    client
}

async fn two_hubs() -> (FakeHub, FakeHub, tempfile::TempDir) {
    (
        FakeHub::start().await,
        FakeHub::start().await,
        tempfile::tempdir().unwrap(),
    )
}

#[tokio::test]
async fn who_moved_is_reached_under_both_names_and_mail_under_way_arrives() {
    let (one, two, folder) = two_hubs().await;
    let bob = registered(&one, folder.path()).await;
    let alice = agent(&one, "alice").await;
    let to_bob = format!("bob#{}", one.domain);
    alice.send(&Draft::text(&to_bob, "under way")).await.unwrap();
    let moved = bob.move_to(&two.url(), Move::default()).await.unwrap();
    assert_eq!((&moved.from, &moved.to), (&did(&one, "bob"), &did(&two, "bob")));
    let file = KeyFile::at(folder.path().join("bob.key"));
    assert_eq!(file.did().unwrap(), moved.to);
    assert_eq!(file.hub().unwrap(), Some(two.url()));

    let carol = agent(&one, "carol").await;
    let sealed = carol.seal(&Draft::text(&to_bob, "hello")).await.unwrap();
    assert_eq!(sealed.envelope().to, moved.to);

    let [former] = file.former().unwrap().try_into().unwrap();
    assert_eq!(former.did().unwrap(), moved.from);
    assert_eq!(former.hub().unwrap(), Some(one.url()));
    let inbox = FileInbox::open(former.state_folder().join("inbox")).unwrap();
    let former = builder(&one).key_file(former).unwrap().build().unwrap();
    let mut listener = former.listen(Arc::new(inbox), options());
    assert_eq!(next(&mut listener).await.content.as_text(), Some("under way"));

    // Again makes no sense, and neither does a hub where the agent is.
    let again = moved.client.move_to(&two.url(), Move::default()).await;
    assert!(matches!(again, Err(Error::CannotMove(_))), "{again:?}");
}

/// A program that still has the keys of before: in its hands they neither replace those in the file nor are replaced.
#[tokio::test]
async fn who_it_was_does_not_overwrite_who_it_is() {
    let (one, two, folder) = two_hubs().await;
    let old = registered(&one, folder.path()).await;
    let alice = agent(&one, "alice").await;
    let moved = old.move_to(&two.url(), Move::default()).await.unwrap();
    let ended = old.deactivate().await;
    assert!(
        matches!(&ended, Err(Error::KeysOfAnother(did)) if *did == moved.to),
        "{ended:?}"
    );
    let file = KeyFile::at(folder.path().join("bob.key"));
    assert_eq!(file.load().unwrap().kid(), moved.client.keys().unwrap().kid());
    // The hub's word makes a client look into the file once more.
    let unknown = json!({"status": 401, "code": "key_unknown", "detail": "as scripted", "request_id": "r-1"});
    one.fail("/api/v1/messages", [Fault::Answer(401, unknown)]);
    old.send(&Draft::text(alice.did().unwrap(), "x"))
        .await
        .unwrap_err();
    assert_eq!(old.did(), Some(moved.from));
}

#[tokio::test]
async fn a_move_that_was_interrupted_anywhere_is_finished_by_the_next_call() {
    let operations = "/api/v1/agents/bob/operations";
    for (at_old, at_new) in [
        (None, Some(Fault::HangUp)),
        (None, Some(Fault::LoseAnswer)),
        (Some(Fault::HangUp), None),
        (Some(Fault::LoseAnswer), None),
    ] {
        let (one, two, folder) = two_hubs().await;
        let client = registered(&one, folder.path()).await;
        one.fail(operations, at_old);
        two.fail("/api/v1/agents", at_new);
        let first = client.move_to(&two.url(), Move::default()).await;
        assert!(first.is_err_and(|error| error.is_transient()));
        let moved = bob(&one, folder.path())
            .move_to(&two.url(), Move::default())
            .await
            .unwrap();
        assert_eq!(moved.to, did(&two, "bob"));
        let history = moved.client.history(moved.from.as_str()).await.unwrap();
        assert_eq!(history.len(), 2, "the old history points there once");
        let alice = agent(&two, "alice").await;
        let sealed = alice.seal(&Draft::text(&moved.from, "x")).await.unwrap();
        assert_eq!(sealed.envelope().to, moved.to);
    }
}

/// Whenever the new hub is away once more, the same call finishes the move.
#[tokio::test]
async fn a_new_hub_that_cannot_be_read_does_not_strand_a_move() {
    let (one, two, folder) = two_hubs().await;
    let client = registered(&one, folder.path()).await;
    two.fail("/api/v1/agents/bob/history", [Fault::HangUp]);
    let moved = match client.move_to(&two.url(), Move::default()).await {
        Err(error) => {
            assert!(error.is_transient(), "{error}");
            bob(&one, folder.path())
                .move_to(&two.url(), Move::default())
                .await
        }
        moved => moved,
    };
    assert_eq!(moved.unwrap().to, did(&two, "bob"));
}

/// Something stands in the way of the last steps, which are on this machine.
#[tokio::test]
async fn keys_that_could_not_be_exchanged_are_exchanged_by_the_next_call() {
    let (one, two, folder) = two_hubs().await;
    let client = registered(&one, folder.path()).await;
    let state = folder.path().join("bob.key.state");
    let obstacle = state.join("former");
    std::fs::create_dir_all(&state).unwrap();
    std::fs::write(&obstacle, "a file").unwrap();
    client.move_to(&two.url(), Move::default()).await.unwrap_err();
    std::fs::remove_file(&obstacle).unwrap();
    let moved = bob(&one, folder.path())
        .move_to(&two.url(), Move::default())
        .await
        .unwrap();
    assert_eq!(moved.to, did(&two, "bob"));
    assert!(!state.join("moving.key").exists());
    // The crash after the very last write but one.
    std::fs::copy(folder.path().join("bob.key"), state.join("moving.key")).unwrap();
    let again = bob(&two, folder.path())
        .move_to(&two.url(), Move::default())
        .await
        .unwrap();
    assert_eq!((again.from, again.to), (moved.from, moved.to));
    assert!(!state.join("moving.key").exists());
}

#[tokio::test]
async fn what_makes_no_sense_is_refused_and_nothing_has_happened() {
    let (one, two, folder) = two_hubs().await;
    let client = registered(&one, folder.path()).await;
    let taken = agent(&two, "bob").await;
    let refused = client.move_to(&two.url(), Move::default()).await;
    assert!(matches!(refused, Err(Error::Refused(_))), "{refused:?}");
    assert_eq!(
        client.history(did(&one, "bob").as_str()).await.unwrap().len(),
        1,
        "the old history does not point at somebody else"
    );
    let other = Some("elsewhere".to_owned());
    let other = Move {
        name: other,
        ..Move::default()
    };
    let listening = FileInbox::open(folder.path().join("bob.key.state/inbox")).unwrap();
    client.move_to(&two.url(), other).await.unwrap_err();
    drop(listening);
    assert_eq!(
        client.history(did(&one, "bob").as_str()).await.unwrap().len(),
        1,
        "a listener has the inbox"
    );
    for hub in [&one, &two] {
        let in_memory = taken.move_to(&hub.url(), Move::default()).await;
        assert!(matches!(in_memory, Err(Error::CannotMove(_))));
    }
    assert!(matches!(
        client.move_to(&one.url(), Move::default()).await,
        Err(Error::CannotMove(_))
    ));
    let name = Some("bobby".to_owned());
    let moved = client
        .move_to(
            &two.url(),
            Move {
                name,
                ..Move::default()
            },
        )
        .await
        .unwrap();
    assert_eq!(moved.to, did(&two, "bobby"));
}

#[tokio::test]
async fn a_hub_that_its_domain_does_not_lead_to_is_not_moved_to() {
    let (one, liar, folder) = two_hubs().await;
    let other = FakeHub::start().await;
    let client = registered(&one, folder.path()).await;
    let claims = json!({"aip": "1", "domain": other.domain, "hub": liar.url()});
    liar.fail("/.well-known/aip", [Fault::Answer(200, claims)]);
    let refused = client.move_to(&liar.url(), Move::default()).await;
    assert!(matches!(refused, Err(Error::CannotMove(_))), "{refused:?}");
    assert_eq!(liar.count("/api/v1/agents"), 1, "it had said yes");
    let history = client.history(did(&one, "bob").as_str()).await.unwrap();
    assert_eq!(history.len(), 1, "the old history does not point there");
    let file = KeyFile::at(folder.path().join("bob.key"));
    assert_eq!(file.did().unwrap(), did(&one, "bob"));
}

#[tokio::test]
async fn a_claim_that_the_other_side_does_not_confirm_is_ignored() {
    let (one, two, folder) = two_hubs().await;
    let bob = registered(&one, folder.path()).await;
    let (mallory, victim) = (agent(&one, "mallory").await, agent(&two, "victim").await);
    let point = async |client: &Client, to: &Did| {
        let edit = client.edit_identity(|draft| drop(draft.extra.insert("moved_to", to.as_str())));
        edit.await.unwrap();
    };
    point(&mallory, &victim.did().unwrap()).await;
    let alice = agent(&one, "alice").await;
    let draft = Draft::text(format!("mallory#{}", one.domain), "x");
    assert_eq!(
        alice.seal(&draft).await.unwrap().envelope().to,
        mallory.did().unwrap()
    );
    // Nor is it looked at again with every message.
    let asked = two.count("/api/v1/agents/victim");
    alice.seal(&draft).await.unwrap();
    assert_eq!(two.count("/api/v1/agents/victim"), asked);
    // In circles, and to nobody.
    for (to, witness) in [(mallory.did().unwrap(), "w1"), (did(&two, "nobody"), "w2")] {
        point(&mallory, &to).await;
        let alice = agent(&two, witness).await;
        assert_eq!(
            alice.seal(&draft).await.unwrap().envelope().to,
            mallory.did().unwrap()
        );
    }
    // Says that it comes from bob, who says nothing.
    let moved = bob.move_to(&two.url(), Move::default()).await.unwrap();
    let former = KeyFile::at(folder.path().join("bob.key"))
        .former()
        .unwrap()
        .remove(0);
    let former = builder(&one).key_file(former).unwrap().build().unwrap();
    former.edit_identity(|_| {}).await.unwrap();
    let dora = agent(&two, "dora").await;
    let draft = Draft::text(&moved.from, "x");
    assert_eq!(dora.seal(&draft).await.unwrap().envelope().to, moved.from);
}

/// Whoever moved answers as who it is now.
#[tokio::test]
async fn who_moved_answers_what_its_old_name_was_asked() {
    let (one, two, folder) = two_hubs().await;
    let moved = registered(&one, folder.path())
        .await
        .move_to(&two.url(), Move::default())
        .await
        .unwrap();
    // Whoever asks the scripted hub for mail is given bob's.
    let asker = agent(&one, "asker").await;
    let draft = Draft::text(&moved.from, "who are you?").kind("com.example.who.request");
    // The answer counts, too, where it is acknowledged and the hub's word of that is lost.
    one.fail("/api/v1/inbox/ack", [Fault::LoseAnswer]);
    let answering = async {
        eventually("asked", || !one.bodies("/api/v1/messages").is_empty()).await;
        let asked = Envelope::parse(&one.bodies("/api/v1/messages")[0]).unwrap();
        let answer = Draft::text(&asked.from, "bob")
            .reply_to(asked.id.to_string())
            .thread(asked.thread.clone().unwrap());
        let sealed = moved.client.seal(&answer).await.unwrap();
        one.put("bob", sealed.wire());
    };
    let (answer, ()) = tokio::join!(asker.ask(&draft, DEADLINE), answering);
    let answer = answer.unwrap();
    assert_eq!((answer.from, answer.content.as_text()), (moved.to, Some("bob")));
}

#[tokio::test]
async fn a_receipt_that_was_asked_for_before_a_move_counts_after_it() {
    let (one, two, folder) = two_hubs().await;
    let bob = registered(&one, folder.path()).await;
    let carol = agent(&two, "carol").await;
    let draft = Draft::text(carol.did().unwrap(), "sign here").ask_receipt();
    let asked = bob.seal(&draft).await.unwrap();
    let moved = bob.move_to(&two.url(), Move::default()).await.unwrap();
    let id = asked.id().to_string();
    let body = json!({"id": id, "digest": asked.envelope().multihash(), "state": "delivered", "at": "2026-11-30T12:00:00Z"});
    let receipt = Draft::json(&moved.from, body)
        .kind(KIND_RECEIPT)
        .reply_to(id.as_str());
    carol.send(&receipt).await.unwrap();
    let mut listener = listen(&moved.client);
    nothing_before_marker(&two, &mut listener, "bob").await;
    assert!(moved.client.receipt(asked.id()).await.unwrap().is_some());
}

#[tokio::test]
async fn three_moves_are_followed_and_no_more() {
    let hubs = [
        FakeHub::start().await,
        FakeHub::start().await,
        FakeHub::start().await,
        FakeHub::start().await,
        FakeHub::start().await,
    ];
    let folder = tempfile::tempdir().unwrap();
    let mut client = registered(&hubs[0], folder.path()).await;
    for hub in &hubs[1..4] {
        client = client.move_to(&hub.url(), Move::default()).await.unwrap().client;
    }
    let asked = did(&hubs[0], "bob");
    let alice = agent(&hubs[0], "alice").await;
    let sealed = alice.seal(&Draft::text(&asked, "x")).await.unwrap();
    assert_eq!(sealed.envelope().to, did(&hubs[3], "bob"));
    client.move_to(&hubs[4].url(), Move::default()).await.unwrap();
    let carol = agent(&hubs[0], "carol").await;
    let sealed = carol.seal(&Draft::text(&asked, "x")).await.unwrap();
    assert_eq!(sealed.envelope().to, did(&hubs[3], "bob"));
    assert_eq!(
        KeyFile::at(folder.path().join("bob.key")).former().unwrap().len(),
        4
    );
}

#[tokio::test]
async fn the_command_moves_and_listens_at_both_hubs() {
    let (one, two) = (FakeHub::start().await, FakeHub::start().await);
    let bob = Aip::registered(&one, "bob").await;
    let alice = agent(&one, "alice").await;
    let to_bob = format!("bob#{}", one.domain);
    alice.send(&Draft::text(&to_bob, "before")).await.unwrap();
    let url = two.url();
    let moved = bob.succeeds(&["--json", "move", "--to", &url]).await;
    let moved: Value = serde_json::from_str(&moved).unwrap();
    assert_eq!(moved["to"], did(&two, "bob").as_str());
    let dora = agent(&two, "dora").await;
    dora.send(&Draft::text(&to_bob, "after")).await.unwrap();
    let said = within(bob.succeeds(&["--hub", &url, "listen", "--count", "2"])).await;
    assert!(said.contains("before") && said.contains("after"), "{said}");
}
