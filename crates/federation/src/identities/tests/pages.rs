//! Pages, and hubs that do not stop.

use std::sync::atomic::{AtomicUsize, Ordering};

use super::*;
use crate::limits::{CURSOR_BYTES_MAX, HISTORY_OPERATIONS_MAX, HISTORY_PAGES_MAX};

/// A page with a cursor.
fn more(operations: Vec<Json>, cursor: &str) -> Told {
    let members = [
        ("operations", Json::Array(operations)),
        ("next_cursor", Json::from(cursor)),
    ];
    Told::json(200, &Json::from(members))
}

#[tokio::test]
async fn pages_are_read_to_the_end() {
    let mut world = World::new();
    for number in 0..4 {
        world.agent.rotate(30 + number, world.now());
    }
    let operations = json(&world.agent.operations);
    let (first, rest) = operations.split_at(2);
    let (second, third) = rest.split_at(2);
    let cursor = "2&limit=1 ü#";
    let url = world.url();
    world
        .net
        .tell(&format!("{url}?limit=100"), [more(first.to_vec(), cursor)]);
    let encoded = "2%26limit%3D1+%C3%BC%23";
    world.net.tell(
        &format!("{url}?limit=100&cursor={encoded}"),
        [more(second.to_vec(), "x")],
    );
    world
        .net
        .tell(&format!("{url}?limit=100&cursor=x"), [page(third.to_vec())]);
    assert_eq!(world.cached().await.unwrap().identity.seq(), 4);
    assert_eq!(world.asked(), 3);
}

#[tokio::test]
async fn endless_pages_end_at_a_bound() {
    let world = World::new();
    let operations = json(&world.agent.operations);
    let number = AtomicUsize::new(0);
    let some = operations.clone();
    world.net.compute(&world.url(), move |_| {
        more(some.clone(), &number.fetch_add(1, Ordering::SeqCst).to_string())
    });
    assert_eq!(code(&world.cached().await), ErrorCode::HistoryUnsound);
    assert_eq!(world.asked(), HISTORY_PAGES_MAX);

    let world = World::new();
    world.tell(more(Vec::new(), "again"));
    assert_eq!(code(&world.cached().await), ErrorCode::HistoryUnsound);
    assert_eq!(world.asked(), 1, "an empty page with a successor");

    let world = World::new();
    world.tell(more(operations, &"x".repeat(CURSOR_BYTES_MAX + 1)));
    assert_eq!(code(&world.cached().await), ErrorCode::HistoryUnsound);
    assert_eq!(world.asked(), 1, "a cursor without end");

    let world = World::new();
    world.tell(page(vec![Json::Null; HISTORY_OPERATIONS_MAX + 1]));
    assert_eq!(code(&world.cached().await), ErrorCode::HistoryUnsound);
}

#[tokio::test]
async fn all_pages_together_have_one_bound_in_bytes() {
    let mut limits = IdentityLimits::default();
    limits.page.answer_bytes_max = 10_000;
    let world = World::with(limits);
    let filler = Json::from("x".repeat(3_000));
    let number = AtomicUsize::new(0);
    world.net.compute(&world.url(), move |_| {
        more(
            vec![filler.clone()],
            &number.fetch_add(1, Ordering::SeqCst).to_string(),
        )
    });
    let error = world.cached().await.unwrap_err();
    assert!(matches!(error, IdentityError::Unsound(_)), "{error:?}");
    assert_eq!(world.asked(), 4, "the fourth page is above the bound");
    let granted: Vec<usize> = world
        .net
        .limits()
        .iter()
        .map(|limits| limits.answer_bytes_max)
        .collect();
    assert!(granted[1..].is_sorted_by(|one, next| one > next), "{granted:?}");
}

#[tokio::test]
async fn what_is_no_page_is_none() {
    let operation = World::new().agent.operations[0].json.to_string();
    let twice = operation.replacen("{\"aip\"", "{\"aip\":\"1\",\"aip\"", 1);
    for body in [
        String::new(),
        "[]".to_owned(),
        "{}".to_owned(),
        r#"{"operations":{}}"#.to_owned(),
        r#"{"operations":[],"next_cursor":null}"#.to_owned(),
        r#"{"operations":["x"],"next_cursor":null}"#.to_owned(),
        format!(r#"{{"operations":[{operation}],"next_cursor":7}}"#),
        format!(r#"{{"operations":[{twice}],"next_cursor":null}}"#),
        format!(r#"{{"operations":[{operation}],"next_cursor":null}} x"#),
        format!(
            r#"{{"operations":[{}{}],"next_cursor":null}}"#,
            "[".repeat(200),
            "]".repeat(200)
        ),
    ] {
        let world = World::new();
        world.tell(Told::text(200, "application/json", body.clone()));
        let error = world.cached().await.unwrap_err();
        assert!(matches!(error, IdentityError::Unsound(_)), "{body}: {error:?}");
        assert_eq!(world.known().await, None, "{body}");
    }
}

#[tokio::test]
async fn a_hub_that_hangs_is_given_up() {
    let limits = IdentityLimits {
        timeout: Duration::from_millis(50),
        ..IdentityLimits::default()
    };
    let world = World::with(limits);
    world.net.tell(
        &world.url(),
        [more(json(&world.agent.operations), "1"), Told::Hangs],
    );
    let error = world.cached().await.unwrap_err();
    assert!(error.is_transient() && error.is_unreachable(), "{error:?}");
    assert_eq!(world.asked(), 2);
}
