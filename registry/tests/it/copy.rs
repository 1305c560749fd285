//! A registry that moves: copied from one database to another, broken off, made whole, compared.

use aip_engines::Postgres;
use aip_protocol::name::Domain;
use aip_registry::directory::AgentChange;
use aip_registry::listings::NewProvider;
use aip_registry::secret::SecretHash;
use aip_registry::testsuite::fixtures::{at, genesis, invite, name, newcomer, next, successor, token};
use aip_registry::testsuite::listings::{deletion, did, version};
use aip_registry::{Directory, Grants, Listings, QuotaOverride, SqlStore, Standing, StoreError};
use futures_util::future::join_all;

use crate::place::{Place, on_both_engines};

on_both_engines!(
    on two threads:
    a_copy_is_equal_and_copying_again_changes_nothing,
    a_copy_follows_the_original,
    a_copy_takes_nothing_from_a_registry_that_is_ahead,
    another_domains_registry_is_not_copied_over,
);

/// A bit of everything, and more agents and operations than a page holds.
async fn fill(store: &SqlStore) {
    store.create_invite(invite("code", 10)).await.expect("an invite");
    let created = join_all((0..450).map(|n| {
        let mut agent = newcomer(&format!("agent-{n:03}"));
        agent.invite = (n < 5).then(|| SecretHash::of("code"));
        store.create(agent)
    }));
    assert!(created.await.iter().all(Result::is_ok));
    for n in 0..20 {
        let agent = format!("agent-{n:03}");
        let operation = successor(&genesis(&agent, "first"), "a");
        store.append(next(&agent, operation)).await.expect("an operation");
        let grant = token(&agent, &format!("challenge {n}"), &format!("token {n}"), n);
        store.issue_token(grant).await.expect("a token");
    }
    let quota = QuotaOverride {
        mailbox_bytes: Some(7),
        ..QuotaOverride::default()
    };
    store
        .update(&name("agent-001"), AgentChange::Quota(quota))
        .await
        .expect("a quota");
    let suspend = AgentChange::Standing(Standing::Suspended);
    store
        .update(&name("agent-002"), suspend)
        .await
        .expect("suspended");
    let provider = NewProvider {
        name: "a feed".to_owned(),
        agent: did("agent-000"),
        hash: SecretHash::of("key"),
    };
    store.add_provider(&provider, at(0)).await.expect("a provider");
    let new = [
        version("agent-000", "a", 1, "x"),
        version("agent-001", "a", 1, "x"),
        deletion("b", "b", 1),
    ];
    store.put_many(&new, 10, at(0)).await.expect("listings");
}

/// A full registry in a file, and an empty one in `place`.
async fn pair(place: &Place) -> (Place, SqlStore, SqlStore) {
    let from = Place::sqlite();
    let (original, copy) = (from.open().await, place.open().await);
    fill(&original).await;
    (from, original, copy)
}

async fn a_copy_is_equal_and_copying_again_changes_nothing(place: Place) {
    let (_from, original, copy) = pair(&place).await;
    let digest = original.digest().await.expect("a digest");
    assert_eq!(
        digest.rows,
        [
            ("invites", 1),
            ("agents", 450),
            ("operations", 470),
            ("tokens", 20),
            ("spent_challenges", 20),
            ("providers", 1),
            ("listing_log", 1),
            ("listings", 3),
            ("peers", 0),
            ("peer_windows", 0),
            ("peer_refusals", 0),
            ("peer_nonces", 0),
            ("remote_histories", 0),
            ("peer_log", 1),
            ("peer_evidence", 0),
            ("peer_audit", 0),
            ("market_money", 1),
            ("market_accounts", 0),
            ("market_lines", 0),
            ("market_keys", 0),
            ("market_references", 0),
            ("market_channels", 0),
            ("market_invocations", 0),
            ("market_repeats", 0),
            ("market_trials", 0),
            ("market_payments", 0),
            ("market_receipts", 0),
            ("market_earnings", 0),
            ("market_peers", 0),
            ("market_peer_lines", 0)
        ]
    );
    let empty = copy.digest().await.expect("a digest");
    assert_ne!(empty.sha256, digest.sha256);
    for _ in 0..2 {
        assert_eq!(original.copy_to(&copy).await.expect("copied"), 968);
        assert_eq!(copy.digest().await.expect("a digest"), digest);
    }
    // And back into a third one.
    let third = place.another();
    let third = third.open().await;
    copy.copy_to(&third).await.expect("copied");
    assert_eq!(third.digest().await.expect("a digest"), digest);
    for agent in ["agent-001", "agent-002", "agent-449"] {
        let record = Directory::get(&original, &name(agent)).await.expect("read");
        assert_eq!(Directory::get(&third, &name(agent)).await.expect("read"), record);
    }
    assert_eq!(
        third.check_integrity().await.expect("checked"),
        Vec::<String>::new()
    );
}

/// The original is in use while it is copied; the last copy is made when it rests.
async fn a_copy_follows_the_original(place: Place) {
    let (_from, original, copy) = pair(&place).await;
    original.copy_to(&copy).await.expect("copied");
    let operation = successor(&successor(&genesis("agent-003", "first"), "a"), "b");
    original
        .append(next("agent-003", operation))
        .await
        .expect("an operation");
    original.create(newcomer("zoe")).await.expect("zoe");
    let activate = AgentChange::Standing(Standing::Active);
    original
        .update(&name("agent-002"), activate)
        .await
        .expect("active");
    let gone = original.sweep(at(3_610), 1_000).await.expect("swept");
    assert_eq!(gone, 11 + 20, "tokens up to second 10, and every challenge");
    let code = aip_registry::grants::InviteId::of(SecretHash::of("code"));
    assert!(original.revoke_invite(&code, at(5)).await.expect("revoked"));
    assert_ne!(
        original.digest().await.expect("a digest"),
        copy.digest().await.expect("a digest")
    );
    original.copy_to(&copy).await.expect("copied");
    assert_eq!(
        original.digest().await.expect("a digest"),
        copy.digest().await.expect("a digest")
    );
}

/// Somebody registered at the new place already, and somebody rotated a key there: both stay.
async fn a_copy_takes_nothing_from_a_registry_that_is_ahead(place: Place) {
    let (_from, original, copy) = pair(&place).await;
    original.copy_to(&copy).await.expect("copied");
    copy.create(newcomer("zoe")).await.expect("zoe");
    let operation = successor(&successor(&genesis("agent-003", "first"), "a"), "b");
    copy.append(next("agent-003", operation.clone()))
        .await
        .expect("an operation");
    original.copy_to(&copy).await.expect("copied");
    assert!(Directory::get(&copy, &name("zoe")).await.expect("read").is_some());
    let ahead = Directory::get(&copy, &name("agent-003"))
        .await
        .expect("read")
        .expect("an agent");
    assert_eq!((ahead.head, ahead.operations.len()), (operation.hash, 3));
    assert_ne!(
        original.digest().await.expect("a digest"),
        copy.digest().await.expect("a digest")
    );
}

async fn another_domains_registry_is_not_copied_over(place: Place) {
    let from = Place::sqlite();
    let original = from.open().await;
    let other = Domain::parse("other.example").expect("a domain");
    let copy = place.try_open(&other).await.expect("opened");
    let refused = original.copy_to(&copy).await.expect_err("refused");
    assert!(matches!(refused, StoreError::OtherDomain { .. }), "{refused:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_copy_that_broke_off_is_made_whole() {
    let url = Postgres::shared().database("registry");
    let place = Place::Postgres(url.clone());
    let (_from, original, copy) = pair(&place).await;
    Postgres::shared().sql(
        &url,
        "CREATE FUNCTION stop() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'no further'; END $$; \
         CREATE TRIGGER stop BEFORE INSERT ON agents FOR EACH ROW WHEN (NEW.name = 'agent-300') \
         EXECUTE FUNCTION stop()",
    );
    let broken = original.copy_to(&copy).await.expect_err("broken off");
    assert!(matches!(broken, StoreError::Unavailable(_)), "{broken:?}");
    let half = copy.counts().await.expect("read").agents;
    assert_eq!(half, 200, "whole pages only");
    Postgres::shared().sql(&url, "DROP TRIGGER stop ON agents");
    original.copy_to(&copy).await.expect("copied");
    assert_eq!(
        original.digest().await.expect("a digest"),
        copy.digest().await.expect("a digest")
    );
}
