//! Pages: nothing twice, nothing skipped, whatever happens in between; and cursors that are not the hub's.

use std::collections::BTreeSet;

use aip_protocol::error::ErrorCode;
use proptest::prelude::*;

use super::refused;
use crate::catalog::Found;
use crate::query::{Filter, Query};
use crate::testing::{Rig, Running, did, entry, numbers, query};

fn all(pages: &[Found]) -> Vec<u64> {
    pages.iter().flat_map(numbers).collect()
}

fn limited(limit: u32) -> Query {
    Query {
        limit,
        ..query("lamp")
    }
}

#[tokio::test]
async fn small_pages_are_the_large_page() {
    let rig = Rig::with((1..=90).map(|number| entry(number, &format!("lamp {}", number % 7))));
    rig.trust.set(&did("agent3"), 0.4);
    let running = rig.ready().await;
    let large = running.find(&limited(50)).await;
    let pages = running.pages(&limited(7)).await;
    assert_eq!(all(&pages)[..50], numbers(&large)[..]);
    assert_eq!(all(&pages).len(), 90);
    assert_eq!(all(&running.pages(&limited(50)).await), all(&pages));
    // The list being gone, as in another process, it is made again.
    let mut found = Vec::new();
    let mut asked = limited(7);
    loop {
        let page = running.find(&asked).await;
        found.extend(numbers(&page));
        running.catalog.finder.kept.forget();
        asked.cursor.clone_from(&page.next_cursor);
        if asked.cursor.is_none() {
            break;
        }
    }
    assert_eq!(found, all(&pages));
}

#[tokio::test]
async fn pages_go_on_as_deep_as_there_is_something() {
    let rig = Rig::with((1..=950).map(|number| entry(number, &format!("lamp {}", number % 11))));
    let running = rig.ready().await;
    let pages = running.pages(&limited(100)).await;
    let found = all(&pages);
    let different: BTreeSet<u64> = found.iter().copied().collect();
    assert_eq!((found.len(), different.len()), (950, 950));
    assert!(pages[..9].iter().all(|page| page.items.len() == 100));
}

#[tokio::test]
async fn what_went_is_left_out_and_what_changed_shows_as_it_is() {
    let rig = Rig::with((1..=40).map(|number| entry(number, "lamp")));
    let running = rig.ready().await;
    let first = running.find(&limited(10)).await;
    let rest: Vec<u64> = all(&running.pages(&limited(40)).await)[10..].to_vec();
    rig.store.delete(rest[0]);
    let mut dearer = entry(rest[1], "lamp");
    dearer.price_text = Some("5".to_owned());
    rig.store.put(dearer);
    rig.store.put(entry(99, "lamp"));
    running.settled(&rig.store).await;
    let second = running
        .find(&Query {
            cursor: first.next_cursor,
            ..limited(10)
        })
        .await;
    assert_eq!(numbers(&second), rest[1..11]);
    assert_eq!(second.items[0].entry.price_text.as_deref(), Some("5"));
}

#[tokio::test]
async fn what_no_longer_passes_is_left_out() {
    let goods = |number: u64, category: &str| {
        let mut entry = entry(number, "lamp");
        entry.category = Some(category.to_owned());
        entry
    };
    let rig = Rig::with((1..=20).map(|number| goods(number, "light")));
    let running = rig.ready().await;
    let filter = Filter {
        category: Some("Light".to_owned()),
        ..Filter::default()
    };
    let asked = Query {
        filter,
        ..limited(10)
    };
    let first = running.find(&asked).await;
    let shown = numbers(&first);
    (1..=20)
        .filter(|number| !shown.contains(number))
        .take(4)
        .for_each(|number| rig.store.put(goods(number, "dark")));
    running.settled(&rig.store).await;
    let second = running
        .find(&Query {
            cursor: first.next_cursor,
            ..asked
        })
        .await;
    assert_eq!((second.items.len(), second.next_cursor), (6, None));
}

#[tokio::test]
async fn cursors_of_others_are_refused() {
    let rig = Rig::with((1..=40).map(|number| entry(number, "lamp of brass")));
    let running = rig.ready().await;
    let cursor = running.find(&limited(10)).await.next_cursor.unwrap();
    let with = |cursor: &str, text: &str| Query {
        cursor: Some(cursor.to_owned()),
        ..Query {
            limit: 10,
            ..query(text)
        }
    };
    assert_eq!(numbers(&running.find(&with(&cursor, " lamp ")).await).len(), 10);
    let shorter = cursor.get(..cursor.len() - 2).unwrap();
    let doubled = cursor.repeat(2);
    let browsed = running
        .find(&Query {
            limit: 10,
            ..query("")
        })
        .await
        .next_cursor
        .unwrap();
    for wrong in [
        with("", "lamp"),
        with("AAAA", "lamp"),
        with("\0\u{202e}", "lamp"),
        with(shorter, "lamp"),
        with(&doubled, "lamp"),
        with(&cursor, "brass"),
        with(&cursor, ""),
        with(&browsed, "lamp"),
        with(&"A".repeat(100_000), "lamp"),
    ] {
        assert_eq!(
            refused(&running, &wrong).await,
            ErrorCode::CursorInvalid,
            "{:?}",
            wrong.cursor
        );
    }
    let mut filtered = with(&cursor, "lamp");
    filtered.filter.currency = Some("EUR".to_owned());
    assert_eq!(refused(&running, &filtered).await, ErrorCode::CursorInvalid);
    let mut other = Rig::with(rig.store.live().into_values());
    other.cursor_key = [8; 32];
    let other = other.ready().await;
    assert_eq!(
        refused(&other, &with(&cursor, "lamp")).await,
        ErrorCode::CursorInvalid
    );
    // Another process of the same hub takes it.
    let sibling = Rig::with(rig.store.live().into_values()).ready().await;
    let second = sibling.find(&with(&cursor, "lamp")).await;
    assert_eq!(
        numbers(&second),
        numbers(&running.find(&with(&cursor, "lamp")).await)
    );
}

#[derive(Debug, Clone)]
enum Act {
    Put(u64),
    Delete(u64),
    Forget,
}

fn act() -> impl Strategy<Value = Act> {
    prop_oneof![
        5 => (1_u64..120).prop_map(Act::Put),
        3 => (1_u64..120).prop_map(Act::Delete),
        1 => Just(Act::Forget),
    ]
}

/// Pages through while changes happen: what was there all the time and never changed comes exactly once.
async fn page_through(limit: u32, acts: &[Act], keeps_lists: bool) -> Result<(), TestCaseError> {
    let rig = Rig::with((1..=60).map(|number| entry(number, &format!("lamp {}", number % 3))));
    let running = rig.ready().await;
    let touched: BTreeSet<u64> = acts
        .iter()
        .filter_map(|act| match act {
            Act::Put(number) | Act::Delete(number) => Some(*number),
            Act::Forget => None,
        })
        .collect();
    let mut acts = acts.iter();
    let (mut asked, mut found) = (limited(limit), Vec::new());
    loop {
        let page = running.find(&asked).await;
        found.extend(numbers(&page));
        asked.cursor.clone_from(&page.next_cursor);
        if asked.cursor.is_none() {
            break;
        }
        for act in acts.by_ref().take(3) {
            apply(&rig, &running, act, keeps_lists);
        }
        running.settled(&rig.store).await;
    }
    let different: BTreeSet<u64> = found.iter().copied().collect();
    prop_assert_eq!(different.len(), found.len(), "something came twice: {:?}", found);
    for number in (1..=60).filter(|number| !touched.contains(number)) {
        prop_assert!(different.contains(&number), "{} was skipped", number);
    }
    Ok(())
}

fn apply(rig: &Rig, running: &Running, act: &Act, keeps_lists: bool) {
    match act {
        Act::Put(number) => rig
            .store
            .put(entry(*number, &format!("brass lamp {}", number % 4))),
        Act::Delete(number) => rig.store.delete(*number),
        Act::Forget if keeps_lists => {}
        Act::Forget => running.catalog.finder.kept.forget(),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    #[test]
    fn nothing_comes_twice_and_nothing_is_skipped(limit in 3_u32..20, acts in proptest::collection::vec(act(), 0..40)) {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        runtime.block_on(page_through(limit, &acts, true))?;
    }
}

#[tokio::test]
async fn every_page_explains_itself() {
    let rig = Rig::with((1..=6).map(|number| entry(number, &format!("lamp {number}"))));
    let running = rig.ready().await;
    let query = Query {
        limit: 2,
        explain: true,
        ..query("lamp")
    };
    let pages = running.pages(&query).await;
    assert_eq!(pages.len(), 3);
    for item in pages.iter().flat_map(|page| &page.items) {
        let explain = item.explain.as_ref().unwrap();
        assert!(
            explain.text.is_some() && explain.cosines.contains_key("words-1"),
            "{explain:?}"
        );
    }
}
