//! What every database keeps, whichever engine it is: through batches, restarts and other processes.

use std::sync::Arc;

use aip_protocol::error::ErrorCode;
use aip_protocol::name::Domain;
use aip_registry::directory::AgentChange;
use aip_registry::directory::CreateOutcome::{self, Created, Exists, InviteRefused};
use aip_registry::testsuite::fixtures::{genesis, invite, name, newcomer, next, successor, token};
use aip_registry::{Directory, Grants, QuotaOverride, Standing, StoreError};
use futures_util::future::join_all;
use tokio::task::JoinSet;

use crate::kit;
use crate::place::{Place, on_both_engines};

on_both_engines!(
    everything_is_there_after_reopening,
    a_closed_store_says_so,
    registrations_that_wait_together_share_a_commit,
    a_refusal_in_a_batch_harms_nobody_else,
    a_broken_change_fails_alone,
    a_broken_registration_fails_alone,
    changes_of_one_batch_run_in_their_order,
    of_a_crowd_each_hears_its_own_outcome,
    row_46_thirty_two_writers_at_start_up_all_succeed,
    two_stores_on_one_database_are_one_registry,
    batches_that_want_the_same_names_in_other_orders_all_end,
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

async fn row_46_thirty_two_writers_at_start_up_all_succeed(place: Place) {
    let place = Arc::new(place);
    let mut writers = JoinSet::new();
    for n in 0..32 {
        let place = Arc::clone(&place);
        writers.spawn(async move {
            let store = place.open().await;
            let outcome = store.create(newcomer(&format!("agent-{n}"))).await;
            store.close().await;
            outcome
        });
    }
    for outcome in writers.join_all().await {
        assert_eq!(outcome.expect("written"), CreateOutcome::Created);
    }
    let store = place.open().await;
    assert_eq!(store.counts().await.expect("read").agents, 32);
}

/// Of forty callers of two processes one gets the name, and each process sees what the other did.
async fn two_stores_on_one_database_are_one_registry(place: Place) {
    let stores = [Arc::new(place.open().await), Arc::new(place.open().await)];
    let mut callers = JoinSet::new();
    for n in 0..40 {
        let store = Arc::clone(&stores[n % 2]);
        let mut agent = newcomer("alice");
        agent.operation = genesis("alice", &n.to_string());
        callers.spawn(async move { store.create(agent).await.expect("answered") });
    }
    let outcomes = callers.join_all().await;
    assert_eq!(outcomes.iter().filter(|outcome| **outcome == Created).count(), 1);
    assert_eq!(outcomes.iter().filter(|outcome| **outcome == Exists).count(), 39);

    let [one, other] = &stores;
    assert_eq!(
        one.get(&name("alice")).await.expect("read"),
        other.get(&name("alice")).await.expect("read")
    );
    one.create(newcomer("bob")).await.expect("written");
    let operation = successor(&genesis("bob", "first"), "a");
    other
        .append(next("bob", operation.clone()))
        .await
        .expect("written");
    let bob = one.get(&name("bob")).await.expect("read").expect("bob");
    assert_eq!(bob.head, operation.hash);
    let suspend = AgentChange::Standing(Standing::Suspended);
    one.update(&name("bob"), suspend).await.expect("written");
    let bob = other.get(&name("bob")).await.expect("read").expect("bob");
    assert_eq!(bob.standing, Standing::Suspended);
}

/// Batches of two processes, full of the same names in opposite orders, with other changes in between.
async fn batches_that_want_the_same_names_in_other_orders_all_end(place: Place) {
    let stores = [Arc::new(place.open().await), Arc::new(place.open().await)];
    stores[0]
        .create_invite(invite("code", 1_000))
        .await
        .expect("an invite");
    let mut callers = JoinSet::new();
    for round in 0..4 {
        for n in 0..100 {
            for (side, n) in [(0, n), (1, 99 - n)] {
                let store = Arc::clone(&stores[side]);
                let agent = format!("agent-{round}-{n}");
                callers.spawn(async move {
                    let mut newcomer = newcomer(&agent);
                    newcomer.invite = (n % 3 == 0).then(|| aip_registry::secret::SecretHash::of("code"));
                    let outcome = store.create(newcomer).await.expect("answered");
                    let quota = AgentChange::Quota(QuotaOverride::default());
                    assert!(store.update(&name(&agent), quota).await.expect("answered"));
                    outcome
                });
            }
        }
    }
    let outcomes = callers.join_all().await;
    assert_eq!(
        outcomes.iter().filter(|outcome| **outcome == Created).count(),
        400
    );
    assert_eq!(stores[1].counts().await.expect("read").agents, 400);
    let left = stores[1].list_invites(None, 1).await.expect("read");
    assert_eq!(left[0].uses_left, 1_000 - 4 * 34);
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
