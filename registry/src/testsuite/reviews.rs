//! The contract of [`crate::Listings`] about what is known of a listing beside what it says: its earlier words, and what an
//! operator decided.

use std::sync::Arc;

use super::fixtures::at;
use super::listings::{MANY, deletion, did, put, version};
use crate::Listings;
use crate::listings::{NewListing, Reviewed, StoredListing, Verdict, listing_id};

/// A listing that can be read, with a description.
fn saying(agent: &str, listing: &str, number: u64, description: &str) -> NewListing {
    let json = format!(
        r#"{{"description":"{description}","kind":"product","listing_id":"{listing}","name":"A","price":"{number}"}}"#
    );
    NewListing {
        json: json.into_bytes(),
        ..version(agent, listing, number, description)
    }
}

fn flagged(agent: &str, listing: &str, number: u64, description: &str) -> NewListing {
    NewListing {
        flags: vec!["odd".to_owned()],
        ..saying(agent, listing, number, description)
    }
}

fn verdict(listing: &StoredListing) -> Option<Verdict> {
    listing.trail.review.map(|review| review.verdict)
}

async fn done<S: Listings>(store: &S, id: &str, verdict: Option<Verdict>) -> StoredListing {
    match store.review(id, None, verdict).await.unwrap() {
        Reviewed::Done(listing) => *listing,
        other => unreachable!("{other:?}"),
    }
}

/// Over replacements, a deletion and a new beginning.
pub async fn what_was_said_before_is_remembered<S: Listings>(store: Arc<S>) {
    let first = put(&*store, &saying("shop", "a", 1, "one")).await;
    assert_eq!(first.trail.description, None);
    let second = store.put(&saying("shop", "a", 2, "two"), MANY, at(5)).await;
    let second = super::listings::stored(second);
    let reworded = second.trail.description.unwrap();
    assert_eq!(reworded.at, at(5));
    assert_eq!(store.get(&second.id).await.unwrap().unwrap(), second);
    put(&*store, &deletion("shop", "a", 3)).await;
    let back = store.put(&saying("shop", "a", 4, "three"), MANY, at(9)).await;
    let back = super::listings::stored(back);
    let again = back.trail.description.unwrap();
    assert_eq!(again.at, at(9));
    assert_ne!(again.before, reworded.before);
    assert_eq!(store.get(&back.id).await.unwrap().unwrap(), back);
}

/// Those with flags, and those that somebody decided about; in pages, and no tombstones.
pub async fn suspects_are_listed<S: Listings>(store: Arc<S>) {
    put(&*store, &saying("shop", "plain", 1, "x")).await;
    let odd = put(&*store, &flagged("shop", "odd", 1, "x")).await;
    let other = put(&*store, &flagged("other", "odd", 1, "x")).await;
    let judged = put(&*store, &saying("shop", "judged", 1, "x")).await;
    put(&*store, &flagged("shop", "gone", 1, "x")).await;
    put(&*store, &deletion("shop", "gone", 2)).await;
    done(&*store, &judged.id, Some(Verdict::Rejected)).await;
    let mut expected = [odd.id, other.id, judged.id];
    expected.sort();
    let (mut found, mut after) = (Vec::new(), None);
    while let Some(page) = store.suspects(after.as_deref(), 1).await.unwrap().pop() {
        after = Some(page.id.clone());
        found.push(page.id);
    }
    assert_eq!(found, expected);
    assert_eq!(store.suspects(Some("x\0y"), 10).await.unwrap(), []);
}

/// The listing moves to the end of the log, and keeps all else.
pub async fn a_verdict_is_seen_by_who_follows_the_log<S: Listings>(store: Arc<S>) {
    let listing = put(&*store, &flagged("shop", "a", 1, "x")).await;
    put(&*store, &saying("shop", "b", 1, "x")).await;
    let known = store.latest_change().await.unwrap();
    let released = done(&*store, &listing.id, Some(Verdict::Released)).await;
    assert_eq!(verdict(&released), Some(Verdict::Released));
    assert_eq!(
        store.changes(known, 10).await.unwrap(),
        std::slice::from_ref(&released)
    );
    let touched = done(&*store, &listing.id, None).await;
    assert_eq!(verdict(&touched), Some(Verdict::Released), "it is only looked at");
    assert!(touched.change_seq > released.change_seq);
    let expected = StoredListing {
        change_seq: touched.change_seq,
        trail: touched.trail.clone(),
        ..listing
    };
    assert_eq!(touched, expected);
    let counts = store.count_listings().await.unwrap();
    assert_eq!((counts.live, counts.deleted), (2, 0));
    // A price is no word; other words are looked at again.
    let dearer = put(&*store, &flagged("shop", "a", 2, "x")).await;
    assert_eq!(verdict(&dearer), Some(Verdict::Released));
    assert_eq!(verdict(&put(&*store, &flagged("shop", "a", 3, "y")).await), None);
}

/// What is not there, was deleted, or changed meanwhile is not judged.
pub async fn a_verdict_is_about_what_was_looked_at<S: Listings>(store: Arc<S>) {
    let listing = put(&*store, &flagged("shop", "a", 2, "x")).await;
    let other = store.review(&listing.id, Some(1), Some(Verdict::Released)).await;
    assert_eq!(other.unwrap(), Reviewed::OtherVersion { version: 2 });
    let same = store.review(&listing.id, Some(2), Some(Verdict::Rejected)).await;
    assert!(matches!(same.unwrap(), Reviewed::Done(_)));
    put(&*store, &deletion("shop", "a", 3)).await;
    for id in [&listing.id, &listing_id(&did("shop"), "none"), "x", "a\0b"] {
        let unknown = store.review(id, None, Some(Verdict::Released)).await;
        assert_eq!(unknown.unwrap(), Reviewed::Unknown, "{id:?}");
    }
    let back = put(&*store, &saying("shop", "a", 4, "clean")).await;
    assert_eq!(
        verdict(&back),
        Some(Verdict::Rejected),
        "a deletion washes nothing clean"
    );
}
