//! Many processes on one database, whichever engine it is.

use std::sync::Arc;

use aip_registry::directory::AgentChange;
use aip_registry::directory::CreateOutcome::{self, Created, Exists};
use aip_registry::testsuite::fixtures::{genesis, invite, name, newcomer, next, successor};
use aip_registry::{Directory, Grants, QuotaOverride, Standing};
use tokio::task::JoinSet;

use crate::place::{Place, on_both_engines};

on_both_engines!(
    on two threads:
    row_46_thirty_two_writers_at_start_up_all_succeed,
    two_stores_on_one_database_are_one_registry,
    batches_that_want_the_same_names_in_other_orders_all_end,
);

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
