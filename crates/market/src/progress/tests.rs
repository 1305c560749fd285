//! Words, windows and readers of every pace.

use serde_json::json;

use super::*;

fn track() -> Arc<Track> {
    let track = Track::new(Uuid::from_u128(7), true);
    track.begin();
    track
}

fn ended(body: &str) -> Invoked {
    Invoked {
        status: 200,
        body: Bytes::from(body.to_owned()),
        replayed: false,
        headers: Vec::new(),
        routed: None,
    }
}

fn tell(track: &Arc<Track>, data: &Value) -> bool {
    ProgressSink(Arc::clone(track)).tell(WordKind::Progress, data)
}

#[tokio::test]
async fn words_come_in_order_and_before_the_end() {
    let track = track();
    let mut follower = track.follow(0);
    assert!(tell(&track, &json!({ "done": 1 })));
    assert!(ProgressSink(Arc::clone(&track)).tell(WordKind::Chunk, &json!("a\nb")));
    track.end(ended("{}"));
    let word = |number, kind, data: &'static str| {
        Next::Word(Word {
            number,
            kind,
            data: Bytes::from_static(data.as_bytes()),
        })
    };
    assert_eq!(
        follower.next().await,
        word(1, WordKind::Progress, r#"{"done":1}"#)
    );
    assert_eq!(follower.next().await, word(2, WordKind::Chunk, r#""a\nb""#));
    assert_eq!(follower.next().await, Next::Ended(ended("{}")));
    // Who comes later, from behind the first.
    assert_eq!(
        track.follow(1).next().await,
        word(2, WordKind::Chunk, r#""a\nb""#)
    );
    assert_eq!(track.follow(9).end().await, Some(ended("{}")));
}

#[tokio::test]
async fn the_first_end_counts_and_a_lost_call_is_told() {
    let track = track();
    track.end(ended("1"));
    track.end(ended("2"));
    track.lose();
    assert_eq!(track.ended(), Some(ended("1")));
    let lost = Track::new(Uuid::from_u128(8), false);
    let mut follower = lost.follow(0);
    lost.lose();
    lost.begun().await;
    assert_eq!((follower.next().await, lost.ended()), (Next::Lost, None));
}

/// An endless provider, and a reader that does not read: the window is all that there is of it.
#[tokio::test]
async fn a_window_is_all_that_is_kept_and_a_gap_shows_what_was_missed() {
    let track = track();
    let mut slow = track.follow(0);
    let long = json!("x".repeat(1_000));
    let most = PROGRESS_WINDOW_BYTES + PROGRESS_WINDOW_WORDS * TOLD_WORD_BYTES + ENDED_CALL_BYTES;
    let mut told: u64 = 0;
    while tell(&track, &long) {
        told += 1;
        assert!(track.weight() <= most);
        assert!(told <= PROGRESS_WORDS_MAX);
    }
    assert!(!ProgressSink(Arc::clone(&track)).has_room());
    let Next::Word(first) = slow.next().await else {
        panic!("words before the end");
    };
    assert!(first.number > 1 && first.number <= told, "{}", first.number);
    track.end(ended("{}"));
    assert_eq!(slow.end().await, Some(ended("{}")));
}

#[test]
fn a_word_of_many_bytes_is_none_and_many_words_are_too_many() {
    let track = track();
    assert!(!tell(&track, &json!("x".repeat(WORD_BYTES_MAX))));
    assert!(tell(&track, &json!("x".repeat(WORD_BYTES_MAX - 2))));
    let mut told = 1;
    while tell(&track, &Value::Null) {
        told += 1;
    }
    assert_eq!(told, PROGRESS_WORDS_MAX);
}

#[tokio::test]
async fn who_waits_for_the_beginning_hears_of_it() {
    let track = Track::new(Uuid::from_u128(7), true);
    let waiting = tokio::spawn({
        let track = Arc::clone(&track);
        async move { track.begun().await }
    });
    tokio::task::yield_now().await;
    track.begin();
    waiting.await.unwrap();
    assert_eq!(track.latest(), None);
}
