//! A newer connection takes the mailbox over, whichever process it comes to.

use std::time::Duration;

use futures_util::future::{join_all, poll_immediate};
use tokio::time::timeout;

use super::{Town, closed, message};
use crate::inbox::{Link, Output};
use crate::limits::READERS_PER_AGENT_MAX;
use crate::presence::CloseReason;

/// The older one is closed with 4409, and the newer one gets what waits.
pub async fn a_newer_session_elsewhere_replaces_the_older(town: &Town) {
    let mut old = town.join(0, "bob", 1, false, 64).await;
    town.send(1).await;
    assert_eq!(message(&mut old).await.seq, 1);
    let mut new = town.join(1, "bob", 2, false, 64).await;
    assert_eq!(closed(&mut old).await, CloseReason::Replaced);
    let item = message(&mut new).await;
    assert_eq!((item.seq, item.attempt), (1, 2));
    drop((old, new));
    town.assert_empty();
}

/// Another agent's sessions stay.
pub async fn a_takeover_is_one_agents(town: &Town) {
    let mut carol = town.join(0, "carol", 1, false, 64).await;
    let mut bob = town.join(0, "bob", 2, false, 64).await;
    let _new = town.join(1, "bob", 3, false, 64).await;
    assert_eq!(closed(&mut bob).await, CloseReason::Replaced);
    assert!(poll_immediate(Box::pin(carol.next())).await.is_none());
}

async fn survivors(links: Vec<Link>) -> Vec<Link> {
    let mut links = links;
    let mut open = Vec::new();
    while links.len() > 1 {
        // All but one end; whichever is the last one standing has nothing to say.
        let ends = links.iter_mut().map(|link| Box::pin(link.next()));
        let (output, index, _) = timeout(super::PATIENCE, futures_util::future::select_all(ends))
            .await
            .unwrap();
        assert!(
            matches!(output, Output::Close(CloseReason::Replaced)),
            "{output:?}"
        );
        drop(links.swap_remove(index));
    }
    for mut link in links {
        let more = timeout(Duration::from_millis(50), link.next()).await;
        assert!(more.is_err(), "the last one ends too: {more:?}");
        open.push(link);
    }
    open
}

/// Of two that begin at the same time exactly one stays.
pub async fn of_two_at_once_one_survives(town: &Town) {
    for round in 0..10 {
        let name = format!("agent{round}");
        let (one, other) = tokio::join!(
            town.join(0, &name, 1, false, 64),
            town.join(1, &name, 2, false, 64)
        );
        assert_eq!(survivors(vec![one, other]).await.len(), 1, "round {round}");
    }
}

/// Of many, too; each waits for its turn.
pub async fn of_many_at_once_one_survives(town: &Town) {
    let joins = (0..6).map(|number| town.join(number % 2, "bob", number as u64 + 1, false, 64));
    let links = town.in_time(join_all(joins)).await;
    assert_eq!(survivors(links).await.len(), 1);
    town.assert_empty();
}

/// Sessions that share stay side by side; one that does not ends them all.
pub async fn all_must_share_across_processes(town: &Town) {
    let mut one = town.join(0, "bob", 1, true, 64).await;
    let mut other = town.join(1, "bob", 2, true, 64).await;
    town.send(1).await;
    let came = tokio::select! {
        came = message(&mut one) => came,
        came = message(&mut other) => came,
    };
    assert_eq!(came.seq, 1);
    let _alone = town.join(0, "bob", 3, false, 64).await;
    assert_eq!(closed(&mut one).await, CloseReason::Replaced);
    assert_eq!(closed(&mut other).await, CloseReason::Replaced);
}

/// A newcomer that gives up leaves nothing behind, whenever it does.
pub async fn who_gives_up_leaves_nothing_behind(town: &Town) {
    let join = |session| town.join(0, "bob", session, false, 64);
    for polls in 0..8 {
        let mut join = Box::pin(join(polls + 1));
        for _ in 0..polls {
            if poll_immediate(&mut join).await.is_some() {
                break;
            }
            tokio::task::yield_now().await;
        }
    }
    for polls in 0..4 {
        let mut read = Box::pin(town.read(0, polls));
        for _ in 0..polls {
            if poll_immediate(&mut read).await.is_some() {
                break;
            }
        }
    }
    town.assert_empty();
    let mut bob = join(99).await;
    town.send(1).await;
    assert_eq!(message(&mut bob).await.seq, 1);
}

/// Sessions and readers come and go; the last one ends it.
pub async fn comings_and_goings_are_balanced(town: &Town) {
    let readers = join_all((0..READERS_PER_AGENT_MAX).map(|number| town.read(0, number as u64))).await;
    let session = town.join(0, "bob", 77, false, 64).await;
    drop(readers);
    town.send(1).await;
    let mut session = session;
    assert_eq!(message(&mut session).await.seq, 1);
    let reader = town.read(0, 78).await;
    drop(session);
    assert_eq!(town.processes[0].presence.counts().agents, 1);
    drop(reader);
    town.assert_empty();
}

/// Sessions that began while the processes could not hear each other are one after `reunion`. For implementations that
/// can lose each other.
pub async fn two_that_began_apart_become_one(town: &Town, reunion: impl Future<Output = ()>) {
    let one = town.join(0, "bob", 1, false, 64).await;
    let other = town.join(1, "bob", 2, false, 64).await;
    reunion.await;
    let mut last = survivors(vec![one, other]).await;
    assert_eq!(last.len(), 1);
    town.send(1).await;
    if let Some(link) = last.first_mut() {
        assert_eq!(message(link).await.seq, 1);
    }
    drop(last);
    town.assert_empty();
}
