//! The catalog as a whole, over a store in memory and an embedder of words.

mod crash;
mod degraded;
mod order;
mod paging;
mod switch;

use std::time::Duration;

use aip_protocol::error::ErrorCode;
use aip_protocol::listing::ListingKind;

use super::SearchError;
use crate::entry::AttributeValue;
use crate::query::{Filter, Query};
use crate::testing::{Rig, Running, entry, eventually, id, numbers, query};

/// The refusal of a search.
async fn refused(running: &Running, query: &Query) -> ErrorCode {
    match running.catalog.search(query).await {
        Err(SearchError::Refused(refusal)) => refusal.code,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_listing_is_found_soon_after_it_is_stored() {
    let rig = Rig::in_memory();
    let running = rig.run().await;
    running.settled(&rig.store).await;
    rig.store.put(entry(1, "brass lamp"));
    running.catalog.nudge();
    eventually("the listing", || running.catalog.stats().documents == 1).await;
    assert_eq!(numbers(&running.find(&query("lamp")).await), [1]);
    // Without a nudge it is seen at the next look.
    rig.store.put(entry(2, "steel lamp"));
    eventually("the listing", || running.catalog.stats().documents == 2).await;
    rig.store.delete(1);
    running.settled(&rig.store).await;
    assert_eq!(numbers(&running.find(&query("lamp")).await), [2]);
    assert_eq!(running.catalog.stats().spaces[0].vectors, 1);
}

#[tokio::test]
async fn text_finds_what_is_not_embedded_yet_and_the_newest_is_embedded_first() {
    use std::sync::atomic::Ordering::SeqCst;
    let rig = Rig::with((1..=40).map(|number| entry(number, &format!("lamp {number}"))));
    rig.embedders[0].is_down.store(true, SeqCst);
    let running = rig.run().await;
    running.until(|stats| stats.documents == 40).await;
    let found = running.find(&query("lamp 7")).await;
    assert_eq!((numbers(&found)[0], found.degraded), (7, vec!["semantic"]));
    assert_eq!(running.catalog.stats().pending_embeddings, 40);
    let state = running.catalog.state(&id(7)).await;
    assert!(state.indexed && !state.embedded);

    rig.embedders[0].is_down.store(false, SeqCst);
    running.settled(&rig.store).await;
    let seen = rig.embedders[0].seen.lock().unwrap().clone();
    let passages: Vec<&String> = seen.iter().filter(|text| text.contains('\n')).collect();
    assert_eq!(passages.len(), 40);
    assert!(
        passages[0].starts_with("lamp 40\n") && passages[39].starts_with("lamp 1\n"),
        "{passages:?}"
    );
    assert!(running.catalog.state(&id(7)).await.embedded);
}

#[tokio::test]
async fn text_that_did_not_change_is_not_embedded_again() {
    let rig = Rig::with([entry(1, "lamp"), entry(2, "car")]);
    let running = rig.ready().await;
    assert_eq!(rig.embedders[0].passages(), 2);
    let mut dearer = entry(1, "lamp");
    dearer.price_text = Some("12.50".to_owned());
    dearer
        .attributes
        .insert("watts".to_owned(), AttributeValue::Int(60));
    rig.store.put(dearer);
    running.settled(&rig.store).await;
    assert_eq!(rig.embedders[0].passages(), 2);
    rig.store.put(entry(1, "green lamp"));
    running.settled(&rig.store).await;
    assert_eq!(rig.embedders[0].passages(), 3);
}

#[tokio::test]
async fn a_text_that_changes_back_while_it_is_embedded_has_its_own_vector() {
    use std::sync::atomic::Ordering::SeqCst;
    let rig = Rig::with([entry(1, "lamp")]);
    let running = rig.ready().await;
    let words = &rig.embedders[0];
    words.hangs.store(true, SeqCst);
    rig.store.put(entry(1, "car"));
    running.catalog.nudge();
    eventually("the car", || words.hung.load(SeqCst)).await;
    rig.store.put(entry(1, "lamp"));
    running.catalog.nudge();
    running.until(|stats| stats.applied_change == 3).await;
    words.hangs.store(false, SeqCst);
    running.settled(&rig.store).await;
    assert!(running.catalog.state(&id(1)).await.embedded);
}

#[expect(clippy::too_many_lines, reason = "one table of filters")]
#[tokio::test]
async fn filters_come_before_ranks_on_both_sides() {
    let goods = (1..=600).map(|number| {
        let mut entry = entry(number, &format!("lamp of brass number {number}"));
        entry.price_text = Some(if number % 50 == 3 { "9" } else { "90" }.to_owned());
        entry.currency = Some("EUR".to_owned());
        entry.kind = if number % 2 == 0 {
            ListingKind::Product
        } else {
            ListingKind::Capability
        };
        entry
    });
    let rig = Rig::with(goods);
    let running = rig.ready().await;
    let cheap: Vec<u64> = (1..=600).filter(|number| number % 50 == 3).collect();
    assert_eq!(cheap.len(), 12);
    let filter = Filter {
        price_max: Some("10".parse_price()),
        currency: Some("EUR".to_owned()),
        ..Filter::default()
    };
    // By text, by meaning alone, and by neither.
    for text in ["brass lamp", "лампа", ""] {
        let mut found = numbers(
            &running
                .find(&Query {
                    filter: filter.clone(),
                    ..query(text)
                })
                .await,
        );
        found.sort_unstable();
        assert_eq!(found, cheap, "{text}");
    }
    let found = running
        .find(&Query {
            filter: filter.clone(),
            ..query("brass lamp")
        })
        .await;
    let best = found
        .items
        .iter()
        .filter(|item| item.ranks.fts == Some(1) || item.ranks.semantic == Some(1));
    assert!(
        best.count() >= 1
            && found
                .items
                .iter()
                .all(|item| item.ranks.fts.is_none_or(|rank| rank <= 12))
    );
    let none = Filter {
        kinds: vec![ListingKind::Concept],
        ..filter
    };
    assert_eq!(
        numbers(
            &running
                .find(&Query {
                    filter: none,
                    ..query("lamp")
                })
                .await
        ),
        [0_u64; 0]
    );
}

trait ParsePrice {
    fn parse_price(&self) -> crate::price::Price;
}

impl ParsePrice for str {
    fn parse_price(&self) -> crate::price::Price {
        crate::price::Price::parse(self).unwrap()
    }
}

#[tokio::test]
async fn what_expired_is_not_found_by_its_meaning_either() {
    let mut short = entry(1, "lamp");
    let end = aip_protocol::time::Timestamp::from_unix_millis(crate::testing::start().unix_millis() + 1_000);
    short.expires_at = Some(end);
    let rig = Rig::with([short, entry(2, "lamp")]);
    let running = rig.ready().await;
    assert_eq!(numbers(&running.find(&query("лампа")).await).len(), 2);
    rig.clock.advance(Duration::from_secs(2));
    for text in ["лампа", "lamp", ""] {
        assert_eq!(numbers(&running.find(&query(text)).await), [2], "{text}");
    }
    assert!(running.catalog.state(&id(1)).await.is_expired);
}

#[tokio::test]
async fn without_text_it_is_by_trust_then_id() {
    let rig = Rig::with((1..=30).map(|number| entry(number, "thing")));
    rig.trust.set(&crate::testing::did("agent2"), 0.9);
    rig.trust.set(&crate::testing::did("agent4"), f64::NAN);
    rig.trust.set(&crate::testing::did("agent3"), 7.0);
    let running = rig.ready().await;
    let trust = |number: u64| match number % 5 {
        3 => 1.0,
        2 => 0.9,
        _ => 0.0,
    };
    let mut expected: Vec<u64> = (1..=30).collect();
    expected.sort_by(|a, b| f64::total_cmp(&trust(*b), &trust(*a)).then(id(*a).cmp(&id(*b))));
    let pages = running
        .pages(&Query {
            limit: 7,
            ..query("  ")
        })
        .await;
    assert_eq!(
        pages.iter().map(|page| page.items.len()).collect::<Vec<_>>(),
        [7, 7, 7, 7, 2]
    );
    let found: Vec<u64> = pages.iter().flat_map(numbers).collect();
    assert_eq!(found, expected);
    let first = &pages[0].items[0];
    assert_eq!(
        (first.relevance_score, first.final_score, first.trust_score),
        (None, None, 1.0)
    );
    assert!(pages[0].degraded.is_empty());
}

#[tokio::test]
async fn an_answer_explains_itself_and_counts() {
    let mut lamp = entry(1, "brass lamp");
    lamp.category = Some("Lighting".to_owned());
    let rig = Rig::with([lamp, entry(2, "red car")]);
    let running = rig.ready().await;
    let asked = Query {
        explain: true,
        facets: true,
        ..query("brass lamp")
    };
    let found = running.find(&asked).await;
    let explain = found.items[0].explain.clone().unwrap();
    assert_eq!(found.items[0].entry.number, 1);
    assert!((explain.k, explain.trust_weight) == (60.0, 0.3) && explain.rrf > 0.0);
    assert!(explain.text.unwrap().score > 0.0 && explain.cosines["words-1"] > 0.5);
    assert_eq!(explain.matched[0].field, "name");
    let facets = found.facets.unwrap();
    assert_eq!(
        (facets.category[0].value.as_str(), facets.category[0].count),
        ("lighting", 1)
    );
    assert!(running.find(&query("lamp")).await.items[0].explain.is_none());
    let browsed = running
        .find(&Query {
            explain: true,
            ..query("")
        })
        .await;
    assert_eq!(browsed.items[0].explain.as_ref().unwrap().matched, []);
}

#[tokio::test]
async fn what_cannot_be_asked_is_refused() {
    let rig = Rig::with([entry(1, "lamp")]);
    let running = rig.ready().await;
    let with = |change: fn(&mut Query)| {
        let mut query = query("lamp");
        change(&mut query);
        query
    };
    for wrong in [
        with(|query| query.limit = 0),
        with(|query| query.limit = 101),
        with(|query| query.text = "a".repeat(8 * 1024 + 1)),
        with(|query| query.filter.trust_min = Some(f64::NAN)),
        with(|query| query.filter.trust_min = Some(-0.1)),
    ] {
        assert_eq!(refused(&running, &wrong).await, ErrorCode::ParameterInvalid);
    }
    // Whatever else is text is text.
    for text in [
        "AND OR NOT ( \" : {0} [x TO y] * ~",
        "\0",
        "\u{202e}lamp\u{200b}",
        "((((",
        &"lamp ".repeat(1_600),
    ] {
        running.find(&query(text)).await;
    }
}

#[tokio::test]
async fn an_empty_catalog_finds_nothing_and_misses_nothing() {
    let rig = Rig::in_memory();
    let running = rig.ready().await;
    let found = running.find(&query("lamp")).await;
    assert_eq!(
        (found.items.len(), found.next_cursor, found.degraded),
        (0, None, Vec::new())
    );
    assert_eq!(
        running.catalog.state("lst_unknown").await,
        super::EntryState::default()
    );
}
