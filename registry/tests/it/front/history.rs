//! Histories in pages.

use aip_protocol::error::ErrorCode;
use aip_protocol::identity::{EndpointPolicy, Identity, Operation};

use super::code;
use crate::kit::{Hub, name};

#[tokio::test]
async fn pages_join_to_a_history_that_replays() {
    let hub = Hub::open();
    let mut alice = hub.agent("alice").await;
    for _ in 0..6 {
        alice = alice.rotated(hub.now(), false);
        hub.registry
            .operate(&name("alice"), &alice.wire())
            .await
            .expect("appended");
    }
    for limit in [1, 2, 3, 7, 8, 1_000] {
        let (mut operations, mut cursor, mut pages) = (Vec::new(), None, 0);
        loop {
            let page = hub
                .registry
                .history(&name("alice"), cursor.as_deref(), limit)
                .await
                .expect("a page");
            assert!(page.operations.len() <= limit as usize && !page.operations.is_empty());
            operations.extend(page.operations);
            pages += 1;
            cursor = page.next_cursor;
            if cursor.is_none() {
                break;
            }
        }
        assert_eq!(pages, 7_u32.div_ceil(limit), "no empty page at the end");
        let parse = |text: &String| {
            Operation::parse(text.as_bytes(), EndpointPolicy { allow_http: false }).expect("one")
        };
        let replayed = Identity::replay(operations.iter().map(parse)).expect("replayed");
        assert_eq!(replayed.summary(), alice.identity.summary());
    }
}

#[tokio::test]
async fn bad_cursors_and_unknown_names_are_refused() {
    let hub = Hub::open();
    hub.agent("alice").await;
    assert_eq!(
        code(hub.registry.history(&name("nobody"), None, 10).await),
        ErrorCode::NotFound
    );
    for cursor in ["", "0", "nonsense", "aGlzdG9yeTo5OQ", &"A".repeat(100_000)] {
        let answer = hub.registry.history(&name("alice"), Some(cursor), 10).await;
        assert_eq!(code(answer), ErrorCode::CursorInvalid, "{cursor:.20}");
    }
    assert_eq!(
        hub.registry
            .history(&name("alice"), None, 0)
            .await
            .expect("a page")
            .operations
            .len(),
        1
    );
}
