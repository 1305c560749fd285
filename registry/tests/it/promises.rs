//! What every database keeps, whichever engine it is: through batches and restarts.

use aip_protocol::error::ErrorCode;
use aip_protocol::name::Domain;
use aip_registry::directory::CreateOutcome::{self, Created, Exists, InviteRefused};
use aip_registry::testsuite::fixtures::{genesis, invite, name, newcomer, next, successor, token};
use aip_registry::{Directory, Grants, StoreError};
use futures_util::future::join_all;

use crate::kit;
use crate::place::{Place, on_both_engines};

on_both_engines!(
    on one thread:
    everything_is_there_after_reopening,
    a_closed_store_says_so,
    registrations_that_wait_together_share_a_commit,
    a_refusal_in_a_batch_harms_nobody_else,
    a_broken_change_fails_alone,
    a_broken_registration_fails_alone,
    changes_of_one_batch_run_in_their_order,
    of_a_crowd_each_hears_its_own_outcome,
    a_newer_schema_is_refused_with_a_sentence,
    an_older_schema_is_migrated_on_opening,
    another_domains_database_is_refused,
);

async fn everything_is_there_after_reopening(place: Place) {
    let store = place.open().await;
    store.create_invite(invite("code", 3)).await.expect("an invite");
    store.create(newcomer("alice")).await.expect("alice");
    let operation = successor(&genesis("alice", "first"), "a");
    store
        .append(next("alice", operation.clone()))
        .await
        .expect("an operation");
    store
        .issue_token(token("alice", "challenge", "token", 0))
        .await
        .expect("a token");
    let (alice, counts) = (
        store.get(&name("alice")).await.expect("read"),
        store.counts().await.expect("read"),
    );
    store.close().await;

    let store = place.open().await;
    assert_eq!(store.get(&name("alice")).await.expect("read"), alice);
    assert_eq!(
        alice.expect("alice").operations,
        [genesis("alice", "first").json, operation.json]
    );
    assert_eq!(store.counts().await.expect("read"), counts);
    assert_eq!(
        store.check_integrity().await.expect("checked"),
        Vec::<String>::new()
    );
}

async fn a_closed_store_says_so(place: Place) {
    let store = place.open().await;
    store.close().await;
    store.close().await;
    let refused = store.create(newcomer("alice")).await.expect_err("closed");
    assert_eq!(refused.code(), ErrorCode::Unavailable);
    assert_eq!(
        store.get(&name("alice")).await.expect_err("closed").code(),
        ErrorCode::Unavailable
    );
}

async fn registrations_that_wait_together_share_a_commit(place: Place) {
    let store = place.open().await;
    let agents: Vec<_> = (0..640).map(|n| newcomer(&format!("agent-{n}"))).collect();
    let outcomes = join_all(agents.into_iter().map(|agent| store.create(agent))).await;
    assert!(
        outcomes
            .iter()
            .all(|outcome| matches!(outcome, Ok(CreateOutcome::Created)))
    );
    assert_eq!(store.counts().await.expect("read").agents, 640);
    // Autocommit would have synced 640 times; five times fewer is the least we promise.
    assert!(store.commits() <= 640 / 5, "{} commits", store.commits());
}

async fn a_refusal_in_a_batch_harms_nobody_else(place: Place) {
    let store = place.open().await;
    store.create_invite(invite("code", 1)).await.expect("an invite");
    let invited = |agent: &str, code: &str| {
        let invite = Some(aip_registry::secret::SecretHash::of(code));
        aip_registry::directory::NewAgent {
            invite,
            ..newcomer(agent)
        }
    };
    let before = store.commits();
    let outcomes = join_all([
        store.create(newcomer("alice")),
        store.create(newcomer("alice")),
        store.create(invited("bob", "bad")),
        store.create(invited("carol", "code")),
        store.create(invited("dora", "code")),
        store.create(newcomer("erin")),
    ])
    .await;
    let outcomes: Vec<_> = outcomes
        .into_iter()
        .map(|outcome| outcome.expect("no failure"))
        .collect();
    assert_eq!(
        outcomes,
        [Created, Exists, InviteRefused, Created, InviteRefused, Created]
    );
    assert_eq!(store.commits() - before, 1, "they were one batch");
    assert_eq!(store.counts().await.expect("read").agents, 3);
}

async fn a_broken_change_fails_alone(place: Place) {
    let store = place.open().await;
    store.create_invite(invite("code", 1)).await.expect("an invite");
    // An invite whose id exists already breaks a constraint: a bug of the caller, not a refusal.
    let (first, broken, last) = tokio::join!(
        store.create(newcomer("alice")),
        store.create_invite(invite("code", 1)),
        store.create(newcomer("bob"))
    );
    assert_eq!(first.expect("alice"), CreateOutcome::Created);
    assert!(matches!(broken, Err(StoreError::Unavailable(_))));
    assert_eq!(last.expect("bob"), CreateOutcome::Created);
    assert_eq!(store.counts().await.expect("read").agents, 2);
    assert_eq!(
        store.create(newcomer("carol")).await.expect("goes on"),
        CreateOutcome::Created
    );
}

async fn a_broken_registration_fails_alone(place: Place) {
    let store = place.open().await;
    store.create(newcomer("zoe")).await.expect("zoe");
    // An operation of nobody stands where bob's first one belongs.
    let stray = "INSERT INTO operations (name, seq, operation, admitted_at_ms) VALUES ('bob', 0, '', 0)";
    place.damage(stray).await;
    let mut other_zoe = newcomer("zoe");
    other_zoe.operation = genesis("zoe", "second");
    let mut outcomes = join_all([
        store.create(newcomer("alice")),
        store.create(newcomer("bob")),
        store.create(other_zoe),
        store.create(newcomer("carol")),
    ])
    .await;
    let broken = outcomes.remove(1);
    assert!(matches!(broken, Err(StoreError::Unavailable(_))), "{broken:?}");
    let outcomes: Vec<_> = outcomes
        .into_iter()
        .map(|outcome| outcome.expect("no failure"))
        .collect();
    assert_eq!(outcomes, [Created, Exists, Created]);
    assert_eq!(store.counts().await.expect("read").agents, 3);
    assert_eq!(store.get(&name("bob")).await.expect("read"), None);
}

async fn changes_of_one_batch_run_in_their_order(place: Place) {
    let store = place.open().await;
    let mut uninvited = newcomer("alice");
    uninvited.invite = Some(aip_registry::secret::SecretHash::of("bad"));
    let outcomes = join_all([
        store.create(uninvited.clone()),
        store.create(newcomer("alice")),
        store.create(newcomer("bob")),
        store.create(uninvited),
    ])
    .await;
    let outcomes: Vec<_> = outcomes
        .into_iter()
        .map(|outcome| outcome.expect("no failure"))
        .collect();
    assert_eq!(outcomes, [InviteRefused, Created, Created, Exists]);
    assert_eq!(store.commits(), 1);
}

/// More than one statement takes, with names that are wanted twice within one and across two.
async fn of_a_crowd_each_hears_its_own_outcome(place: Place) {
    let store = place.open().await;
    let wanted: Vec<_> = (0..100).map(|n| (n * 7) % 61).collect();
    let create = |(at, n): (usize, &usize)| {
        let mut agent = newcomer(&format!("agent-{n}"));
        agent.operation = genesis(&format!("agent-{n}"), &format!("flavour-{at}"));
        store.create(agent)
    };
    let outcomes = join_all(wanted.iter().enumerate().map(create)).await;
    for (at, (n, outcome)) in wanted.iter().zip(outcomes).enumerate() {
        let first = wanted.iter().position(|other| other == n) == Some(at);
        let right = if first { Created } else { Exists };
        assert_eq!(outcome.expect("no failure"), right, "number {at}");
        let owner = store
            .get(&name(&format!("agent-{n}")))
            .await
            .expect("read")
            .expect("an agent");
        assert_eq!(owner.operations.len(), 1);
        let flavour = format!("\"flavour-{at}\"");
        assert_eq!(owner.operations[0].contains(&flavour), first, "number {at}");
    }
}

async fn a_newer_schema_is_refused_with_a_sentence(place: Place) {
    place.open().await.close().await;
    let newer = "INSERT INTO _sqlx_migrations (version, description, success, checksum, execution_time) \
                 SELECT 999, 'from the future', success, checksum, 0 FROM _sqlx_migrations WHERE version = 1";
    place.damage(newer).await;
    let refused = place.try_open(&kit::domain()).await.expect_err("refused");
    assert!(
        matches!(refused, StoreError::SchemaNewer { found: 999, .. }),
        "{refused:?}"
    );
    assert!(
        refused.to_string().contains("start the newer hub again"),
        "{refused}"
    );
}

/// The oldest one there can be is an empty database.
async fn an_older_schema_is_migrated_on_opening(place: Place) {
    place.damage("CREATE TABLE of_somebody_else (key TEXT)").await;
    let store = place.open().await;
    assert_eq!(
        store.create(newcomer("alice")).await.expect("written"),
        CreateOutcome::Created
    );
}

async fn another_domains_database_is_refused(place: Place) {
    place.open().await.close().await;
    let other = Domain::parse("other.example").expect("a domain");
    let refused = place.try_open(&other).await.expect_err("refused");
    assert!(matches!(refused, StoreError::OtherDomain { .. }), "{refused:?}");
    assert!(refused.to_string().contains("hub.example") && refused.to_string().contains("other.example"));
}
