//! Movers that die on their way, that are too many, or that are called back.

use super::load::Load;
use super::*;

/// Moves to `to` and dies at `step`.
async fn dies_at(ground: &Arc<Ground>, to: u16, step: Step) {
    let of = Arc::clone(ground);
    let mover = tokio::spawn(async move {
        of.move_to(to, &|_, reached| assert_ne!(reached, step, "killed"))
            .await
    });
    let ended = mover.await;
    assert!(
        ended.as_ref().is_err_and(tokio::task::JoinError::is_panic),
        "{ended:?}"
    );
    // Its lease ends.
    ground.pass(61);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_mover_may_die_at_every_step() {
    let ground = Ground::new("move-dies").await;
    let load = Load::start(&ground).await;
    load.goes_on(20).await;
    for (step, at) in [
        (Step::Begun, OLD),
        (Step::Closed, OLD),
        (Step::Switched, NEW),
        (Step::Opened, NEW),
    ] {
        dies_at(&ground, NEW, step).await;
        assert_eq!(ground.at().await, (at, true), "{step:?}");
        // A process that starts just now is not put off.
        start(ground.options.clone(), &fresh(1)).await.unwrap();
        let found = crate::doctor::examine(ground.options.clone()).await.unwrap();
        assert_eq!(found.complaints.len(), 1, "{:?}", found.complaints);
    }
    dies_at(&ground, NEW, Step::Done).await;
    assert_eq!(ground.at().await, (NEW, false));
    load.goes_on(20).await;
    load.check().await;
    assert_eq!(ground.messages(OLD).await, 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_mover_may_die_at_any_moment() {
    let ground = Ground::new("move-abort").await;
    let load = Load::start(&ground).await;
    let mut patience = Duration::from_millis(5);
    loop {
        let of = Arc::clone(&ground);
        let mover = tokio::spawn(async move { of.move_to(NEW, &|_, _| {}).await });
        // Somewhere; a little later each time.
        tokio::time::sleep(patience).await;
        patience += patience / 5;
        assert!(patience < Duration::from_mins(1));
        mover.abort();
        let ended = mover.await;
        ground.pass(61);
        if let Ok(moved) = ended {
            moved.unwrap();
            break;
        }
    }
    assert_eq!(ground.at().await, (NEW, false));
    load.goes_on(20).await;
    load.check().await;
    assert_eq!(ground.messages(OLD).await, 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_movers_do_not_meet() {
    let ground = Ground::new("move-two").await;
    let (reached, mut steps) = tokio::sync::mpsc::channel(100);
    let of = Arc::clone(&ground);
    let first = tokio::spawn(async move {
        let told = |_, step| reached.try_send(step).unwrap();
        let clock = || of.now();
        let conduct = Conduct {
            linger: Duration::from_hours(1),
            ..of.conduct(&clock, &told)
        };
        move_shards(of.options.clone(), &[SHARD], NEW, conduct).await
    });
    while steps.recv().await != Some(Step::Opened) {}
    let second = ground.move_to(OTHER, &|_, _| {}).await;
    assert!(matches!(second, Err(MoveError::Busy)), "{second:?}");
    first.abort();
    assert!(first.await.is_err());
    ground.pass(61);
    // Whoever comes next ends the move, and then makes its own.
    assert_eq!(ground.move_to(OTHER, &|_, _| {}).await.unwrap(), 2);
    assert_eq!(ground.at().await, (OTHER, false));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_move_can_be_taken_back_until_the_shard_is_there() {
    let ground = Ground::new("move-undo").await;
    let load = Load::start(&ground).await;
    load.goes_on(20).await;
    dies_at(&ground, OTHER, Step::Closed).await;
    let undone = undo(
        ground.options.clone(),
        ground.conduct(&|| ground.now(), &|_, _| {}),
    )
    .await
    .unwrap();
    assert_eq!((undone.shard, undone.from, undone.to), (SHARD, OLD, OTHER));
    load.goes_on(20).await;
    assert_eq!(
        (ground.at().await, ground.messages(OTHER).await),
        ((OLD, false), 0)
    );
    // That stream knows the ids of the copies, and would leave them out.
    let again = ground.move_to(OTHER, &|_, _| {}).await;
    assert!(
        matches!(again, Err(MoveError::TooSoon { to: OTHER, .. })),
        "{again:?}"
    );
    dies_at(&ground, NEW, Step::Switched).await;
    let late = undo(
        ground.options.clone(),
        ground.conduct(&|| ground.now(), &|_, _| {}),
    )
    .await;
    assert!(matches!(late, Err(MoveError::TooLate(SHARD))), "{late:?}");
    ground.move_to(NEW, &|_, _| {}).await.unwrap();
    load.goes_on(20).await;
    load.check().await;
}

#[tokio::test]
async fn what_makes_no_sense_is_refused() {
    let ground = Ground::new("move-odd").await;
    let odd = ground.move_to(NEW + 1, &|_, _| {}).await;
    assert!(
        matches!(odd, Err(MoveError::NoSuchStream { to: 3, next: NEW })),
        "{odd:?}"
    );
    assert_eq!(ground.move_to(OLD, &|_, _| {}).await.unwrap(), 0);
    // A number is used once: what is known of the places in its stream would be wrong for another one.
    dies_at(&ground, NEW, Step::Begun).await;
    let jetstream = ground.started.nats.jetstream();
    let new = ground.started.layout.names.mailboxes(NEW);
    jetstream.delete_stream(new).await.unwrap();
    undo(
        ground.options.clone(),
        ground.conduct(&|| ground.now(), &|_, _| {}),
    )
    .await
    .unwrap();
    ground.pass(3_600);
    let again = ground.move_to(NEW, &|_, _| {}).await;
    assert!(
        matches!(again, Err(MoveError::NoSuchStream { to: NEW, next: 3 })),
        "{again:?}"
    );
    let none = undo(
        ground.options.clone(),
        ground.conduct(&|| ground.now(), &|_, _| {}),
    )
    .await;
    assert!(matches!(none, Err(MoveError::NothingToUndo)), "{none:?}");
    let nowhere = list(options(&aip_engines::Nats::shared().url(), "move-nowhere")).await;
    assert!(matches!(nowhere, Err(MoveError::NoStore)), "{nowhere:?}");
}

#[tokio::test]
async fn a_stream_that_is_bound_again_by_a_stale_change_is_closed_again() {
    let ground = Ground::new("move-stale").await;
    let (nats, names) = (&ground.started.nats, &ground.started.layout.names);
    let old = names.mailboxes(OLD);
    let before = crate::streams::info(nats, &old).await.unwrap().unwrap().config;
    dies_at(&ground, NEW, Step::Switched).await;
    // Somebody writes back what the stream was before, and a message comes that way.
    nats.jetstream().update_stream(&before).await.unwrap();
    let headers = crate::nats::named(crate::nats::expecting_in(&old, 0), "stale");
    let subject = names.shard_subject(SHARD).replace('*', "x");
    nats.publish(&subject, headers, "stale".into()).await.unwrap();
    ground.move_to(NEW, &|_, _| {}).await.unwrap();
    assert_eq!((ground.messages(OLD).await, ground.messages(NEW).await), (0, 1));
    assert_eq!(ground.at().await, (NEW, false));
}
