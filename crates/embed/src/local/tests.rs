//! The order of calls, the bounds of the queue, and the end.

use std::path::PathBuf;
use std::sync::Arc;

use aip_catalog::{EmbedError, Embedder, Purpose};
use tokio::sync::{mpsc, oneshot};

use super::queue::{Job, Queue};
use super::{LocalEmbedder, LocalOptions};
use crate::limits::{LOCAL_TEXTS_MAX, PASSAGE_CALLS_MAX, QUERY_CALLS_MAX};
use crate::model::files::{ModelFiles, Part};

fn dir() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("models/use-multilingual-v3-84k")
}

fn universal() -> LocalEmbedder {
    LocalEmbedder::universal(ModelFiles::in_dir(&dir()), LocalOptions::default())
}

type Answer = oneshot::Receiver<Result<Vec<Vec<f32>>, EmbedError>>;

fn job(purpose: Purpose, text: &str) -> (Job, Answer) {
    let (reply, answer) = oneshot::channel();
    (Job::new(purpose, &[text.to_owned()], reply), answer)
}

#[test]
fn queries_go_first_and_within_a_line_whoever_came_first() {
    let queue = Queue::default();
    let mut answers = Vec::new();
    for (purpose, text) in [
        (Purpose::Passage, "p1"),
        (Purpose::Passage, "p2"),
        (Purpose::Query, "q1"),
        (Purpose::Query, "q2"),
    ] {
        let (job, answer) = job(purpose, text);
        queue.push(job).unwrap();
        answers.push(answer);
    }
    let mut served = Vec::new();
    for turn in 0..5 {
        let job = queue.next().unwrap();
        served.push(job.texts[0].clone());
        if turn == 2 {
            queue.put_back(job);
        }
    }
    assert_eq!(served, ["q1", "q2", "p1", "p1", "p2"]);
}

#[test]
fn lines_are_bounded_and_whoever_went_away_takes_no_place() {
    let queue = Queue::default();
    for (purpose, calls_max) in [
        (Purpose::Query, QUERY_CALLS_MAX),
        (Purpose::Passage, PASSAGE_CALLS_MAX),
    ] {
        let mut answers = Vec::new();
        for _ in 0..calls_max {
            let (job, answer) = job(purpose, "a");
            queue.push(job).unwrap();
            answers.push(answer);
        }
        let (full, _answer) = job(purpose, "b");
        assert!(matches!(queue.push(full), Err(EmbedError::Unavailable(_))));
        answers.pop();
        let (job, _answer) = job(purpose, "c");
        queue.push(job).unwrap();
    }
}

#[tokio::test]
async fn a_queue_that_is_closed_serves_nobody() {
    let queue = Arc::new(Queue::default());
    let (waiting, answer) = job(Purpose::Query, "a");
    queue.push(waiting).unwrap();
    let taken = queue.next().unwrap();
    let sleeper = std::thread::spawn({
        let queue = Arc::clone(&queue);
        move || queue.next().is_none()
    });
    queue.close();
    queue.put_back(taken);
    assert!(answer.await.is_err());
    assert!(sleeper.join().unwrap());
    let (late, _answer) = job(Purpose::Query, "b");
    assert!(matches!(queue.push(late), Err(EmbedError::Unavailable(_))));
}

#[tokio::test]
async fn a_query_overtakes_passages_that_are_half_done() {
    let embedder = Arc::new(universal());
    let (order, mut done) = mpsc::channel(2);
    let passages: Vec<String> = (0..LOCAL_TEXTS_MAX)
        .map(|n| format!("passage number {n}"))
        .collect();
    let long = embedder.embed(Purpose::Passage, &passages);
    let query = ["a query".to_owned()];
    let short = embedder.embed(Purpose::Query, &query);
    let (long, short) = tokio::join!(
        async {
            let vectors = long.await;
            order.send("passages").await.unwrap();
            vectors
        },
        async {
            let vectors = short.await;
            order.send("query").await.unwrap();
            vectors
        },
    );
    assert_eq!(done.recv().await, Some("query"));
    let (long, short) = (long.unwrap(), short.unwrap());
    assert_eq!((long.len(), short.len()), (LOCAL_TEXTS_MAX, 1));
    assert!(
        long.iter()
            .chain(&short)
            .all(|vector| vector.len() == embedder.dimensions())
    );
}

#[tokio::test]
async fn calls_are_bounded_and_none_is_answered_at_once() {
    let embedder = universal();
    assert!(embedder.embed(Purpose::Query, &[]).await.unwrap().is_empty());
    let many = vec![String::new(); LOCAL_TEXTS_MAX + 1];
    let error = embedder.embed(Purpose::Passage, &many).await.unwrap_err();
    assert!(matches!(error, EmbedError::Broken(_)));
}

#[tokio::test]
async fn whoever_waits_is_told_of_the_end() {
    let embedder = universal();
    let passages = vec!["a passage".to_owned(); 64];
    let mut answers = Vec::new();
    for _ in 0..8 {
        let (reply, answer) = oneshot::channel();
        embedder
            .queue
            .push(Job::new(Purpose::Passage, &passages, reply))
            .unwrap();
        answers.push(answer);
    }
    drop(embedder);
    for answer in answers {
        assert!(answer.await.is_err());
    }
}

#[tokio::test]
async fn a_model_that_cannot_be_read_is_told() {
    let good = ModelFiles::in_dir(&dir());
    let cut = |part: &Part| {
        let bytes = part.read().unwrap();
        Part::Bytes(bytes.slice(..bytes.len() / 2))
    };
    let none = Part::Path(dir().join("none"));
    let models = [
        none,
        Part::from(b"".as_slice()),
        Part::from(b"{}".as_slice()),
        cut(&good.model),
    ];
    for model in models {
        let files = ModelFiles {
            model,
            ..good.clone()
        };
        let embedder = LocalEmbedder::universal(files, LocalOptions { threads: 2 });
        for _ in 0..2 {
            let error = embedder
                .embed(Purpose::Query, &["a".to_owned()])
                .await
                .unwrap_err();
            assert!(matches!(error, EmbedError::Broken(_)), "{error}");
        }
    }
    let files = ModelFiles {
        tokenizer: cut(&good.tokenizer),
        ..good
    };
    let embedder = LocalEmbedder::e5(files, LocalOptions::default());
    let error = embedder
        .embed(Purpose::Query, &["a".to_owned()])
        .await
        .unwrap_err();
    assert!(matches!(error, EmbedError::Broken(_)), "{error}");
}
