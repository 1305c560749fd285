//! Registering, rotating, resolving: no crash and no lost answer leaves an agent without its keys.

use aip_client::protocol::error::ErrorCode;
use aip_client::{Draft, Error, KeyFile, Registration, Rotation, SentStatus};
use serde_json::json;

use crate::fake::{FakeHub, Fault};
use crate::support::{agent, builder};

const AGENTS: &str = "/api/v1/agents";

#[tokio::test]
async fn a_registration_whose_answer_was_lost_is_finished_by_the_next_attempt() {
    let hub = FakeHub::start().await;
    let folder = tempfile::tempdir().unwrap();
    let file = KeyFile::at(folder.path().join("k"));
    let open = || builder(&hub).key_file(file.clone()).unwrap().build().unwrap();
    hub.fail(AGENTS, [Fault::LoseAnswer]);
    assert!(
        open()
            .register("alice", Registration::default())
            .await
            .unwrap_err()
            .is_transient()
    );
    let resolved = open().register("alice", Registration::default()).await.unwrap();
    assert_eq!(resolved.identity.seq(), 0);
    let bodies = hub.bodies(AGENTS);
    assert_eq!(bodies[0], bodies[1], "the same operation again");
    assert!(!file.load().unwrap().has_unfinished_change());
}

#[tokio::test]
async fn registering_twice_is_registering_once() {
    let hub = FakeHub::start().await;
    let alice = agent(&hub, "alice").await;
    alice.rotate(Rotation::default()).await.unwrap();
    let resolved = alice.register("alice", Registration::default()).await.unwrap();
    assert_eq!(resolved.identity.seq(), 1);
    assert_eq!(hub.bodies(AGENTS).len(), 1);
}

/// Two processes with one key file: the second rotation keeps what the first one wrote, which mail is sealed for.
#[tokio::test]
async fn a_rotation_keeps_the_keys_that_another_process_wrote() {
    let hub = FakeHub::start().await;
    let folder = tempfile::tempdir().unwrap();
    let file = KeyFile::at(folder.path().join("k"));
    let open = || builder(&hub).key_file(file.clone()).unwrap().build().unwrap();
    open().register("alice", Registration::default()).await.unwrap();
    let (here, there) = (open(), open());
    there.rotate(Rotation::default()).await.unwrap();
    let theirs = file.load().unwrap().opening().next().unwrap().public().clone();
    let identity = here.rotate(Rotation::default()).await.unwrap();
    let kept = file.load().unwrap();
    assert!(kept.opening().any(|key| *key.public() == theirs));
    assert_eq!(
        identity.head().keys.sealing.len(),
        1,
        "the hub lists the newest only"
    );
}

#[tokio::test]
async fn a_name_that_is_taken_leaves_no_key_file_behind() {
    let hub = FakeHub::start().await;
    let _other = agent(&hub, "alice").await;
    let folder = tempfile::tempdir().unwrap();
    let file = KeyFile::at(folder.path().join("k"));
    let client = builder(&hub).key_file(file.clone()).unwrap().build().unwrap();
    let refused = client
        .register("alice", Registration::default())
        .await
        .unwrap_err();
    assert!(refused.is_code(ErrorCode::HandleTaken), "{refused}");
    assert_eq!(refused.problem().unwrap().request_id.as_deref(), Some("r-1"));
    assert!(!file.exists());
    client.register("alice2", Registration::default()).await.unwrap();
    assert_eq!(file.load().unwrap().did().name(), "alice2");
}

#[tokio::test]
async fn keys_of_one_agent_do_not_register_another() {
    let hub = FakeHub::start().await;
    let alice = agent(&hub, "alice").await;
    assert!(matches!(
        alice.register("bob", Registration::default()).await,
        Err(Error::KeysOfAnother(did)) if Some(&did) == alice.did().as_ref()
    ));
}

#[tokio::test]
async fn a_rotation_whose_answer_was_lost_is_finished_and_nothing_is_lost() {
    let hub = FakeHub::start().await;
    let (folder, _bob) = (tempfile::tempdir().unwrap(), agent(&hub, "bob").await);
    let file = KeyFile::at(folder.path().join("k"));
    let open = || builder(&hub).key_file(file.clone()).unwrap().build().unwrap();
    open().register("alice", Registration::default()).await.unwrap();
    let old = file.load().unwrap().kid();
    hub.fail("/api/v1/agents/alice/operations", [Fault::LoseAnswer]);
    assert!(
        open()
            .rotate(Rotation {
                rotation_key: true,
                ..Rotation::default()
            })
            .await
            .is_err()
    );
    assert!(file.load().unwrap().has_unfinished_change());
    // The process dies here; the next one finds what was begun.
    assert!(open().finish_change().await.unwrap());
    let keys = file.load().unwrap();
    assert_ne!(keys.kid(), old);
    assert_eq!(keys.opening().count(), 2);
    assert_eq!(
        open().rotate(Rotation::default()).await.unwrap().seq(),
        2,
        "the new rotation key is the one that counts"
    );
    let sent = open()
        .send(&Draft::text(format!("bob#{}", hub.domain), "x"))
        .await
        .unwrap();
    assert_eq!(sent.status, SentStatus::Stored);
}

#[tokio::test]
async fn a_refused_change_never_happened() {
    let hub = FakeHub::start().await;
    let alice = agent(&hub, "alice").await;
    let kid = alice.keys().unwrap().kid();
    let refusal = json!({"code": "created_at_out_of_window", "detail": "as scripted"});
    hub.fail("/api/v1/agents/alice/operations", [Fault::Answer(422, refusal)]);
    let refused = alice.rotate(Rotation::default()).await.unwrap_err();
    assert!(refused.is_code(ErrorCode::CreatedAtOutOfWindow));
    assert_eq!(alice.keys().unwrap().kid(), kid);
    assert!(!alice.keys().unwrap().has_unfinished_change());
    assert_eq!(alice.rotate(Rotation::default()).await.unwrap().seq(), 1);
}

#[tokio::test]
async fn revoked_keys_are_named_and_other_members_stay() {
    let hub = FakeHub::start().await;
    let alice = agent(&hub, "alice").await;
    let old = alice.keys().unwrap();
    alice
        .set_endpoint(Some("https://alice.example/aip".to_owned()))
        .await
        .unwrap();
    let identity = alice
        .rotate(Rotation {
            revoke_old: true,
            rotation_key: true,
        })
        .await
        .unwrap();
    let head = identity.head();
    assert_eq!(head.revoked.len(), 3);
    assert!(head.revoked.iter().any(|key| old.kid().ends_with(key.as_str())));
    assert_eq!(head.endpoint.as_deref(), Some("https://alice.example/aip"));
    assert!(alice.deactivate().await.unwrap().is_deactivated());
}

#[tokio::test]
async fn a_long_history_is_read_page_by_page_and_checked() {
    let hub = FakeHub::start().await;
    let alice = agent(&hub, "alice").await;
    for _ in 0..5 {
        alice
            .rotate(Rotation {
                rotation_key: true,
                ..Rotation::default()
            })
            .await
            .unwrap();
    }
    let reader = builder(&hub).build().unwrap();
    let resolved = reader.resolve(alice.did().unwrap().as_str()).await.unwrap();
    assert_eq!((resolved.identity.seq(), resolved.answer.history.seq), (5, 5));
    assert_eq!(
        reader
            .history(&format!("alice#{}", hub.domain))
            .await
            .unwrap()
            .len(),
        6
    );
}

#[tokio::test]
async fn an_answer_that_does_not_follow_from_the_history_is_not_believed() {
    let hub = FakeHub::start().await;
    let (alice, bob) = (agent(&hub, "alice").await, agent(&hub, "bob").await);
    let reader = builder(&hub).build().unwrap();
    let honest = reader
        .resolve(alice.did().unwrap().as_str())
        .await
        .unwrap()
        .answer;
    let other = reader.resolve(bob.did().unwrap().as_str()).await.unwrap().answer;
    let mut forged = serde_json::to_value(&honest).unwrap();
    forged["did_document"]["keyAgreement"] =
        serde_json::to_value(&other).unwrap()["did_document"]["keyAgreement"].clone();
    let mut moved = serde_json::to_value(&honest).unwrap();
    moved["history"]["head"] = serde_json::to_value(&other).unwrap()["history"]["head"].clone();
    for lie in [forged, moved] {
        hub.fail(
            "/api/v1/resolve/",
            [Fault::Answer(200, lie.clone()), Fault::Answer(200, lie)],
        );
        let refused = reader.resolve(alice.did().unwrap().as_str()).await.unwrap_err();
        assert!(matches!(refused, Error::Unverified { .. }), "{refused}");
    }
    assert!(reader.resolve(alice.did().unwrap().as_str()).await.is_ok());
}

/// Whoever writes to agents of a hub that is away waits for it once, not once per message.
#[tokio::test]
async fn a_hub_that_is_away_is_not_asked_for_every_message() {
    let (one, two) = (FakeHub::start().await, FakeHub::start().await);
    let _bob = agent(&two, "bob").await;
    let folder = tempfile::tempdir().unwrap();
    let open = || builder(&one).state_folder(folder.path()).build().unwrap();
    let (to_bob, history) = (format!("bob#{}", two.domain), "/api/v1/agents/bob/history");
    let pinned = open().identity(&to_bob).await.unwrap();
    let (client, before) = (open(), two.count(history));
    two.fail(history, [Fault::HangUp, Fault::HangUp, Fault::HangUp]);
    for _ in 0..3 {
        let identity = client.identity(&to_bob).await.unwrap();
        assert_eq!(identity.head_hash(), pinned.head_hash());
    }
    assert_eq!(two.count(history), before + 1);
}
