//! A database in bad days: damage and forgery, whichever engine it is.

use std::sync::Arc;

use aip_protocol::identity::{EndpointPolicy, Operation};
use aip_protocol::json::Json;
use aip_registry::testsuite::fixtures::{name, newcomer};
use aip_registry::{Directory, RegistryConfig, RegistryError, SqlStore, StoreError};

use crate::kit;
use crate::place::{Place, on_both_engines};

on_both_engines!(
    on two threads:
    damage_is_found_by_the_integrity_check,
    a_damaged_history_is_not_believed,
    a_forged_operation_is_found_by_the_check_of_histories,
);

async fn damage_is_found_by_the_integrity_check(place: Place) {
    let store = place.open().await;
    store.create(newcomer("alice")).await.expect("written");
    let check = async || store.check_integrity().await.expect("checked");
    assert_eq!(check().await, Vec::<String>::new());
    place.damage("DELETE FROM agents").await;
    let problems = check().await;
    assert!(
        problems.len() == 1 && problems[0].starts_with("a row of operations refers to nothing"),
        "{problems:?}"
    );
}

/// An agent with three operations in a database on disk.
async fn alice_on(place: &Place) -> (Arc<SqlStore>, kit::Agent) {
    let store = Arc::new(place.open().await);
    let hub = kit::Hub::over(Arc::clone(&store), RegistryConfig::default());
    let mut alice = hub.agent("alice").await;
    for _ in 0..2 {
        alice = alice.next(hub.now(), |_| {});
        let operated = hub.registry.operate(&name("alice"), &alice.wire()).await;
        operated.expect("appended");
    }
    (store, alice)
}

async fn a_damaged_history_is_not_believed(place: Place) {
    for damage in [
        "DELETE FROM operations WHERE seq = 2",
        "DELETE FROM operations WHERE seq = 1",
        "UPDATE operations SET operation = replace(operation, 'personal', 'business') WHERE seq = 0",
        "UPDATE operations SET operation = replace(operation, 'personal', 'business') WHERE seq = 2",
        "UPDATE operations SET operation = substr(operation, 2) WHERE seq = 1",
        "UPDATE agents SET head = (SELECT 'z' || head)",
    ] {
        let place = place.another();
        let (store, alice) = alice_on(&place).await;
        assert_eq!(
            store.check_histories().await.expect("checked"),
            Vec::<String>::new()
        );
        place.damage(damage).await;
        // Another registry over the same store has nothing in memory yet.
        let cold = kit::Hub::over(Arc::clone(&store), RegistryConfig::default());
        let refused = cold.registry.resolve(&alice.did).await.expect_err(damage);
        assert!(
            matches!(refused, RegistryError::Failed(StoreError::Corrupt(_))),
            "{damage}: {refused:?}"
        );
        let problems = store.check_histories().await.expect("checked");
        assert!(
            problems.len() == 1 && problems[0].contains("alice"),
            "{problems:?}"
        );
    }
}

/// Whoever can write to the database can make its hashes fit; a signature he cannot make.
async fn a_forged_operation_is_found_by_the_check_of_histories(place: Place) {
    let (store, alice) = alice_on(&place).await;
    let Json::Object(mut forged) = alice.identity.head().json.clone() else {
        panic!("an object")
    };
    forged.insert("x-note", "forged");
    let forged = Operation::from_json(Json::Object(forged), EndpointPolicy::default()).expect("of good form");
    let (text, hash) = (forged.json.to_string().replace('\'', "''"), forged.hash());
    place
        .damage(&format!(
            "UPDATE operations SET operation = '{text}' WHERE seq = 2; UPDATE agents SET head = '{hash}'"
        ))
        .await;
    let problems = store.check_histories().await.expect("checked");
    assert!(
        problems.len() == 1 && problems[0].contains("alice does not verify"),
        "{problems:?}"
    );
}
