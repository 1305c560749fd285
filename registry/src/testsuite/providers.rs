//! The contract of [`crate::Listings`] about providers.

use std::sync::Arc;

use super::fixtures::at;
use super::listings::did;
use crate::Listings;
use crate::limits::PROVIDER_USE_SECS;
use crate::listings::{NewProvider, Provider};
use crate::secret::SecretHash;

fn provider(key: &str) -> NewProvider {
    NewProvider {
        name: format!("a feed with {key}"),
        agent: did("shop"),
        hash: SecretHash::of(key),
    }
}

/// By the hash of its key and nothing else.
pub async fn a_provider_is_found_by_its_key<S: Listings>(store: Arc<S>) {
    let hash = SecretHash::of("key");
    assert_eq!(store.provider_by_secret_hash(&hash, at(0)).await.unwrap(), None);
    let made = store.add_provider(&provider("key"), at(3)).await.unwrap();
    let expected = Provider {
        id: hash.to_hex().chars().take(16).collect(),
        name: "a feed with key".to_owned(),
        agent: did("shop"),
        created_at: at(3),
        revoked_at: None,
        last_used_at: None,
    };
    assert_eq!(made, expected);
    assert_eq!(
        store.provider_by_secret_hash(&hash, at(4)).await.unwrap(),
        Some(expected)
    );
    let other = SecretHash::of("Key");
    assert_eq!(store.provider_by_secret_hash(&other, at(4)).await.unwrap(), None);
    assert_eq!(store.count_listings().await.unwrap().providers, 1);
}

/// Once a minute.
pub async fn the_use_of_a_key_is_noted<S: Listings>(store: Arc<S>) {
    let hash = SecretHash::of("key");
    store.add_provider(&provider("key"), at(0)).await.unwrap();
    let pause = i64::try_from(PROVIDER_USE_SECS).unwrap();
    for (secs, noted) in [
        (10, 10),
        (11, 10),
        (9 + pause, 10),
        (10 + pause, 10 + pause),
        (5, 10 + pause),
    ] {
        store
            .provider_by_secret_hash(&hash, at(secs))
            .await
            .unwrap()
            .unwrap();
        let listed = store.list_providers(None, 10).await.unwrap();
        assert_eq!(listed[0].last_used_at, Some(at(noted)), "at {secs}");
    }
}

/// In the order of ids, in pages; a second revocation says so.
pub async fn providers_are_listed_and_revoked_once<S: Listings>(store: Arc<S>) {
    assert_eq!(store.list_providers(None, 10).await.unwrap(), []);
    for n in 0..5 {
        store
            .add_provider(&provider(&n.to_string()), at(n))
            .await
            .unwrap();
    }
    let all = store.list_providers(None, 10).await.unwrap();
    assert_eq!(all.len(), 5);
    assert!(all.is_sorted_by(|a, b| a.id < b.id));
    assert_eq!(
        store.list_providers(Some(&all[1].id), 2).await.unwrap(),
        all[2..4]
    );
    assert_eq!(store.list_providers(Some("\0"), 9).await.unwrap(), all);

    let id = Provider::id_of(SecretHash::of("2"));
    assert!(store.revoke_provider(&id, at(7)).await.unwrap());
    assert!(!store.revoke_provider(&id, at(8)).await.unwrap(), "again");
    for unknown in ["0123456789abcdef", "", "a\0b", "'"] {
        assert!(
            !store.revoke_provider(unknown, at(8)).await.unwrap(),
            "{unknown:?}"
        );
    }
    let revoked = store.list_providers(None, 10).await.unwrap();
    let ends: Vec<_> = revoked
        .iter()
        .filter_map(|provider| provider.revoked_at)
        .collect();
    assert_eq!(ends, [at(7)]);
    assert_eq!(
        store
            .provider_by_secret_hash(&SecretHash::of("2"), at(9))
            .await
            .unwrap(),
        None
    );
    assert!(
        store
            .provider_by_secret_hash(&SecretHash::of("3"), at(9))
            .await
            .unwrap()
            .is_some()
    );
    assert_eq!(store.count_listings().await.unwrap().providers, 5);
}
