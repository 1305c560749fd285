//! The contract of [`crate::Listings`] about listings: versions, tombstones, quotas.

use std::collections::BTreeSet;
use std::sync::Arc;

use aip_protocol::name::Did;
use tokio::task::JoinSet;

use super::fixtures::at;
use crate::limits::DELETED_PER_LISTING;
use crate::listings::{ListingCounts, NewListing, Origin, Put, StoredListing, Trail, listing_id};
use crate::{Listings, StoreError};

/// More than any of these agents has.
pub(super) const MANY: u32 = 10_000;

/// An agent's DID.
pub fn did(agent: &str) -> Did {
    Did::parse(&format!("did:aip:hub.example:{agent}")).unwrap()
}

/// A version of a listing, of a flavour, so that two can differ.
pub fn version(agent: &str, listing: &str, version: u64, flavour: &str) -> NewListing {
    let mut digest = [0; 32];
    let text = format!("{version} {flavour}");
    digest
        .iter_mut()
        .zip(text.bytes())
        .for_each(|(to, from)| *to = from);
    NewListing {
        agent: did(agent),
        listing_id: listing.to_owned(),
        version,
        deleted: false,
        json: format!(r#"{{"flavour":"{flavour}","text":"ü 😀 \u0000 '; DROP TABLE listings; --"}}"#)
            .into_bytes(),
        digest,
        origin: Origin::Signed,
        flags: Vec::new(),
        expires_at: None,
    }
}

/// Its deletion.
pub fn deletion(agent: &str, listing: &str, number: u64) -> NewListing {
    NewListing {
        deleted: true,
        ..version(agent, listing, number, "deleted")
    }
}

/// What is stored by this, which must be.
pub fn stored(put: Result<Put, StoreError>) -> StoredListing {
    match put.unwrap() {
        Put::Stored { listing, .. } => listing,
        other => unreachable!("{other:?}"),
    }
}

pub(super) async fn put<S: Listings>(store: &S, new: &NewListing) -> StoredListing {
    stored(store.put(new, MANY, at(0)).await)
}

pub(super) fn ids(listings: &[StoredListing]) -> Vec<&str> {
    listings
        .iter()
        .map(|listing| listing.listing_id.as_str())
        .collect()
}

/// What was never put in is absent, not an error, however it is called.
pub async fn nothing_is_there_before<S: Listings>(store: Arc<S>) {
    let long = "a".repeat(10_000);
    for id in [
        &listing_id(&did("shop"), "a"),
        "",
        "lst_",
        "'",
        "a\0b",
        "lst_\0aaaaaaaaaaaaaaaaaaaaaaaaa",
        &long,
    ] {
        assert_eq!(store.get(id).await.unwrap(), None, "{id:?}");
        assert_eq!(store.get_many(&[id.to_owned()]).await.unwrap(), [], "{id:?}");
        assert_eq!(
            store.of_agent(&did("shop"), Some(id), 10).await.unwrap(),
            [],
            "{id:?}"
        );
    }
    assert_eq!(store.changes(0, 10).await.unwrap(), []);
    assert_eq!(store.changes(u64::MAX, 10).await.unwrap(), []);
    assert_eq!(store.latest_change().await.unwrap(), 0);
    assert_eq!(store.complete_from().await.unwrap(), 0);
    assert_eq!(store.forget_deleted(at(1_000), 10).await.unwrap(), 0);
    assert_eq!(store.remove_of(&did("shop"), at(0)).await.unwrap(), 0);
    assert_eq!(store.touch_of(&did("shop")).await.unwrap(), 0);
    assert_eq!(store.put_many(&[], MANY, at(0)).await.unwrap(), []);
    assert_eq!(store.count_listings().await.unwrap(), ListingCounts::default());
}

/// What another hub sells says so, and what was said otherwise before is replaced whole.
pub async fn a_listing_of_another_hub_says_so<S: Listings>(store: Arc<S>) {
    let of = |hub: &str, number: u64| NewListing {
        origin: Origin::Peer { hub: hub.to_owned() },
        ..version("hub", "x", number, hub)
    };
    put(&*store, &of("https://one.example/a", 1)).await;
    let listing = put(&*store, &of("https://two.example", 2)).await;
    let origin = Origin::Peer {
        hub: "https://two.example".to_owned(),
    };
    assert_eq!(listing.origin, origin);
    assert_eq!(
        store.get(&listing.id).await.unwrap().map(|kept| kept.origin),
        Some(origin)
    );
}

/// All that was said about it, byte for byte.
pub async fn a_listing_comes_back_as_it_was_put<S: Listings>(store: Arc<S>) {
    let new = NewListing {
        origin: Origin::Ingested {
            provider: "a feed, \"ours\"".to_owned(),
        },
        flags: vec!["bidi".to_owned(), "a \"b\", ü\n".to_owned()],
        expires_at: Some(at(500)),
        ..version("shop", "shoes/42 ü", 7, "red")
    };
    let Put::Stored { listing, is_new } = store.put(&new, MANY, at(3)).await.unwrap() else {
        unreachable!("the first")
    };
    let expected = StoredListing {
        id: listing_id(&did("shop"), "shoes/42 ü"),
        number: 1,
        agent: new.agent.clone(),
        listing_id: new.listing_id.clone(),
        version: 7,
        deleted: false,
        json: new.json.clone(),
        digest: new.digest,
        origin: new.origin.clone(),
        flags: new.flags.clone(),
        change_seq: 1,
        stored_at: at(3),
        expires_at: Some(at(500)),
        trail: Trail::default(),
    };
    assert!(is_new);
    assert_eq!(listing, expected);
    assert_eq!(store.get(&expected.id).await.unwrap(), Some(expected.clone()));
    assert_eq!(
        store.get_many(std::slice::from_ref(&expected.id)).await.unwrap(),
        std::slice::from_ref(&expected)
    );
    assert_eq!(
        store.of_agent(&did("shop"), None, 10).await.unwrap(),
        std::slice::from_ref(&expected)
    );
    assert_eq!(store.changes(0, 10).await.unwrap(), [expected]);
    assert_eq!(store.latest_change().await.unwrap(), 1);
    let other = put(&*store, &version("other", "shoes/42 ü", 7, "red")).await;
    assert_eq!(
        (other.number, other.change_seq),
        (2, 2),
        "an id is an agent's own"
    );
}

/// It keeps its id and number, and has a new place in the log.
pub async fn a_higher_version_replaces_a_lower_one<S: Listings>(store: Arc<S>) {
    put(&*store, &version("shop", "a", 1, "red")).await;
    put(&*store, &version("shop", "b", 1, "red")).await;
    let new = version("shop", "a", 5, "blue");
    let Put::Stored { listing, is_new } = store.put(&new, MANY, at(9)).await.unwrap() else {
        unreachable!("a higher one")
    };
    assert!(!is_new);
    assert_eq!((listing.number, listing.change_seq, listing.version), (1, 3, 5));
    assert_eq!((&listing.json, listing.stored_at), (&new.json, at(9)));
    assert_eq!(store.get(&listing.id).await.unwrap(), Some(listing.clone()));
    let changes = store.changes(0, 10).await.unwrap();
    assert_eq!(ids(&changes), ["b", "a"], "each once, at its last change");
    assert_eq!(changes[1], listing);
}

/// A retry, or the same feed again, costs nothing.
pub async fn the_same_again_changes_nothing<S: Listings>(store: Arc<S>) {
    let first = put(&*store, &version("shop", "a", 3, "red")).await;
    let again = store
        .put(&version("shop", "a", 3, "red"), MANY, at(9))
        .await
        .unwrap();
    assert_eq!(again, Put::Unchanged(first.clone()));
    let counted_on = NewListing {
        version: 4,
        ..version("shop", "a", 3, "red")
    };
    let again = store.put(&counted_on, MANY, at(9)).await.unwrap();
    assert_eq!(again, Put::Unchanged(first), "what it says is the same");
    assert_eq!(store.latest_change().await.unwrap(), 1);
}

/// With other bytes.
pub async fn a_version_is_not_replaced_by_a_lower_or_equal_one<S: Listings>(store: Arc<S>) {
    let first = put(&*store, &version("shop", "a", 3, "red")).await;
    for other in [
        version("shop", "a", 3, "blue"),
        version("shop", "a", 2, "red"),
        deletion("shop", "a", 3),
    ] {
        let put = store.put(&other, MANY, at(9)).await.unwrap();
        assert_eq!(put, Put::Conflict { version: 3 }, "{other:?}");
    }
    assert_eq!(store.get(&first.id).await.unwrap(), Some(first));
    assert_eq!(store.latest_change().await.unwrap(), 1);
    let highest = version("shop", "a", i64::MAX.unsigned_abs(), "last");
    assert_eq!(put(&*store, &highest).await.version, highest.version);
}

/// Who kept an old version cannot bring it back; the agent can publish a higher one.
pub async fn a_deleted_listing_leaves_its_version<S: Listings>(store: Arc<S>) {
    let first = NewListing {
        flags: vec!["bidi".to_owned()],
        expires_at: Some(at(500)),
        ..version("shop", "a", 3, "red")
    };
    put(&*store, &first).await;
    let Put::Stored {
        listing: gone,
        is_new,
    } = store.put(&deletion("shop", "a", 4), MANY, at(7)).await.unwrap()
    else {
        unreachable!("a higher one")
    };
    assert!(!is_new);
    assert!(gone.deleted && gone.json.is_empty() && gone.flags.is_empty());
    assert_eq!((gone.expires_at, gone.stored_at), (None, at(7)));
    assert_eq!((gone.number, gone.version, gone.change_seq), (1, 4, 2));
    assert_eq!(store.get(&gone.id).await.unwrap(), Some(gone.clone()));
    assert_eq!(store.changes(0, 10).await.unwrap(), std::slice::from_ref(&gone));
    assert_eq!(store.of_agent(&did("shop"), None, 10).await.unwrap(), []);

    assert_eq!(
        store.put(&first, MANY, at(8)).await.unwrap(),
        Put::Conflict { version: 4 }
    );
    let again = store.put(&deletion("shop", "a", 4), MANY, at(8)).await.unwrap();
    assert_eq!(again, Put::Unchanged(gone));
    let back = store
        .put(&version("shop", "a", 5, "red"), MANY, at(9))
        .await
        .unwrap();
    let Put::Stored { listing, is_new } = back else {
        unreachable!("a higher one")
    };
    assert!(is_new && !listing.deleted);
    assert_eq!((listing.number, listing.change_seq), (1, 3));
    assert_eq!(store.of_agent(&did("shop"), None, 10).await.unwrap(), [listing]);
}

/// In pages, in the order of the hub's ids, and nobody else's.
pub async fn an_agents_listings_are_listed<S: Listings>(store: Arc<S>) {
    for n in 0..7 {
        put(&*store, &version("shop", &n.to_string(), 1, "red")).await;
        put(&*store, &version("shopping", &n.to_string(), 1, "red")).await;
    }
    put(&*store, &deletion("shop", "3", 2)).await;
    let all = store.of_agent(&did("shop"), None, 100).await.unwrap();
    assert!(all.is_sorted_by(|a, b| a.id < b.id));
    let named: BTreeSet<_> = ids(&all).into_iter().collect();
    assert_eq!(named, BTreeSet::from(["0", "1", "2", "4", "5", "6"]));
    assert!(all.iter().all(|listing| listing.agent == did("shop")));
    assert_eq!(store.of_agent(&did("shop"), None, 2).await.unwrap(), all[..2]);
    assert_eq!(
        store.of_agent(&did("shop"), Some(&all[1].id), 3).await.unwrap(),
        all[2..5]
    );
    assert_eq!(
        store.of_agent(&did("shop"), Some(&all[5].id), 3).await.unwrap(),
        []
    );
    let some = [
        all[4].id.clone(),
        all[0].id.clone(),
        all[4].id.clone(),
        listing_id(&did("shop"), "none"),
    ];
    assert_eq!(
        store.get_many(&some).await.unwrap(),
        [all[0].clone(), all[4].clone()]
    );
    let every: Vec<_> = (0..70)
        .map(|n| listing_id(&did("shop"), &n.to_string()))
        .collect();
    assert_eq!(store.get_many(&every).await.unwrap().len(), 7, "a tombstone, too");
}

/// Replacing and deleting always works; another agent has its own measure.
pub async fn an_agent_has_no_more_than_it_may<S: Listings>(store: Arc<S>) {
    let try_put = async |new: NewListing| store.put(&new, 2, at(0)).await.unwrap();
    let is_stored = |put: &Put| matches!(put, Put::Stored { .. });
    for listing in ["a", "b"] {
        assert!(is_stored(&try_put(version("shop", listing, 1, "red")).await));
    }
    assert_eq!(
        try_put(version("shop", "c", 1, "red")).await,
        Put::TooMany { max: 2 }
    );
    assert!(is_stored(&try_put(version("shop", "a", 2, "blue")).await));
    assert!(is_stored(&try_put(version("other", "c", 1, "red")).await));
    assert!(is_stored(&try_put(deletion("shop", "b", 2)).await));
    assert!(is_stored(&try_put(version("shop", "c", 1, "red")).await));
    let back = try_put(version("shop", "b", 3, "red")).await;
    assert_eq!(back, Put::TooMany { max: 2 }, "the place was taken meanwhile");
    assert_eq!(
        store.put(&version("shop", "a", 3, "x"), 1, at(0)).await.unwrap(),
        {
            let listing = store.get(&listing_id(&did("shop"), "a")).await.unwrap().unwrap();
            Put::Stored {
                listing,
                is_new: false,
            }
        },
        "a lower measure takes nothing away"
    );
    assert_eq!(
        store.put(&version("new", "a", 1, "x"), 0, at(0)).await.unwrap(),
        Put::TooMany { max: 0 }
    );
}

/// What comes and goes leaves no more tombstones than a multiple of the listings.
pub async fn tombstones_are_bounded<S: Listings>(store: Arc<S>) {
    let rows = 1 + DELETED_PER_LISTING;
    for n in 0..rows {
        let listing = n.to_string();
        stored(store.put(&version("shop", &listing, 1, "red"), 1, at(0)).await);
        stored(store.put(&deletion("shop", &listing, 2), 1, at(0)).await);
    }
    for one_more in [version("shop", "more", 1, "red"), deletion("shop", "more", 1)] {
        assert_eq!(
            store.put(&one_more, 1, at(0)).await.unwrap(),
            Put::TooMany { max: 1 }
        );
    }
    stored(store.put(&version("shop", "0", 3, "red"), 1, at(0)).await);
    stored(store.put(&deletion("shop", "0", 4), 1, at(0)).await);
    assert_eq!(store.forget_deleted(at(1), 1).await.unwrap(), 1);
    stored(store.put(&version("shop", "more", 1, "red"), 1, at(0)).await);
}

/// Each row knows the rows before it; a row that is refused stops no other.
pub async fn many_are_judged_one_after_the_other<S: Listings>(store: Arc<S>) {
    put(&*store, &version("shop", "old", 5, "red")).await;
    let new = [
        version("shop", "a", 1, "red"),
        version("shop", "old", 4, "blue"),
        version("shop", "a", 2, "blue"),
        version("shop", "b", 1, "red"),
        version("shop", "c", 1, "red"),
        version("shop", "a", 2, "blue"),
        deletion("shop", "b", 2),
        version("shop", "c", 1, "red"),
        version("shop", "a", 1, "red"),
    ];
    let puts = store.put_many(&new, 3, at(1)).await.unwrap();
    let said: Vec<_> = puts
        .iter()
        .map(|put| match put {
            Put::Stored { listing, is_new } => format!("stored {} {is_new}", listing.change_seq),
            Put::Unchanged(listing) => format!("unchanged {}", listing.change_seq),
            Put::Conflict { version } => format!("conflict {version}"),
            Put::TooMany { max } => format!("too many {max}"),
        })
        .collect();
    assert_eq!(
        said,
        [
            "stored 2 true",
            "conflict 5",
            "stored 3 false",
            "stored 4 true",
            "too many 3",
            "unchanged 3",
            "stored 5 false",
            "stored 6 true",
            "conflict 2",
        ]
    );
    let changes = store.changes(0, 10).await.unwrap();
    assert_eq!(ids(&changes), ["old", "a", "b", "c"]);
    assert_eq!(
        changes.iter().map(|row| row.number).collect::<Vec<_>>(),
        [1, 2, 3, 4]
    );
    assert_eq!(store.latest_change().await.unwrap(), 6);
}

/// Of twenty different versions with one number at the same time one is stored.
pub async fn one_of_many_versions_wins<S: Listings + 'static>(store: Arc<S>) {
    let mut callers = JoinSet::new();
    for n in 0..20 {
        let store = Arc::clone(&store);
        callers.spawn(async move {
            let new = version("shop", "a", 1, &n.to_string());
            store.put(&new, MANY, at(0)).await.unwrap()
        });
    }
    let puts = callers.join_all().await;
    assert_eq!(
        puts.iter()
            .filter(|put| matches!(put, Put::Stored { .. }))
            .count(),
        1
    );
    assert_eq!(
        puts.iter()
            .filter(|put| **put == Put::Conflict { version: 1 })
            .count(),
        19
    );
    assert_eq!(store.latest_change().await.unwrap(), 1);
}

/// Of twenty new listings at the same time as many are stored as the agent may have.
pub async fn many_at_once_do_not_pass_the_measure<S: Listings + 'static>(store: Arc<S>) {
    let mut callers = JoinSet::new();
    for n in 0..20 {
        let store = Arc::clone(&store);
        callers.spawn(async move {
            let new = version("shop", &n.to_string(), 1, "red");
            store.put(&new, 5, at(0)).await.unwrap()
        });
    }
    let puts = callers.join_all().await;
    assert_eq!(
        puts.iter()
            .filter(|put| matches!(put, Put::Stored { .. }))
            .count(),
        5
    );
    assert_eq!(store.of_agent(&did("shop"), None, 100).await.unwrap().len(), 5);
}
