//! The contract of [`crate::Directory`].

use std::sync::Arc;

use tokio::task::JoinSet;

use super::fixtures::{Store, at, genesis, name, newcomer, next, successor};
use crate::directory::{AgentChange, AppendOutcome, Counts, CreateOutcome, NewAgent, StoredOperation};
use crate::{AgentSummary, QuotaOverride, Standing};

/// What was never put in is absent, not an error.
pub async fn missing_is_none<S: Store>(store: Arc<S>) {
    assert_eq!(store.get(&name("nobody")).await.unwrap(), None);
    assert!(store.history(&name("nobody"), 0, 10).await.unwrap().is_empty());
    assert!(store.list(None, 10).await.unwrap().is_empty());
    assert!(
        !store
            .update(&name("nobody"), AgentChange::Standing(Standing::Suspended))
            .await
            .unwrap()
    );
    let stray = next("nobody", successor(&genesis("nobody", "first"), "a"));
    assert_eq!(store.append(stray).await.unwrap(), AppendOutcome::Stale);
    assert_eq!(store.counts().await.unwrap(), Counts::default());
}

/// The second one to ask for a name changes nothing, be it with the same operation or another.
pub async fn a_name_is_given_once<S: Store>(store: Arc<S>) {
    assert_eq!(
        store.create(newcomer("alice")).await.unwrap(),
        CreateOutcome::Created
    );
    let taken = store.get(&name("alice")).await.unwrap().unwrap();
    assert_eq!(taken.operations, [genesis("alice", "first").json]);
    assert_eq!((taken.standing, taken.registered_at), (Standing::Active, at(0)));

    let other = NewAgent {
        operation: genesis("alice", "other"),
        registered_at: at(9),
        ..newcomer("alice")
    };
    assert_eq!(store.create(other).await.unwrap(), CreateOutcome::Exists);
    assert_eq!(
        store.create(newcomer("alice")).await.unwrap(),
        CreateOutcome::Exists
    );
    assert_eq!(store.get(&name("alice")).await.unwrap(), Some(taken));
}

/// Of forty different agents that want one name at the same time, one gets it.
pub async fn one_of_forty_at_once_gets_the_name<S: Store>(store: Arc<S>) {
    let mut callers = JoinSet::new();
    for n in 0..40 {
        let store = Arc::clone(&store);
        let agent = NewAgent {
            operation: genesis("alice", &n.to_string()),
            ..newcomer("alice")
        };
        callers.spawn(async move { (store.create(agent.clone()).await.unwrap(), agent.operation.json) });
    }
    let outcomes = callers.join_all().await;
    let winners: Vec<_> = outcomes
        .iter()
        .filter(|(outcome, _)| *outcome == CreateOutcome::Created)
        .collect();
    assert_eq!(winners.len(), 1);
    assert!(
        outcomes
            .iter()
            .all(|(o, _)| matches!(o, CreateOutcome::Created | CreateOutcome::Exists))
    );
    assert_eq!(
        store.get(&name("alice")).await.unwrap().unwrap().operations,
        [winners[0].1.clone()]
    );
}

/// An operation is put on the head that its `prev` names, or not at all.
pub async fn history_grows_only_at_its_head<S: Store>(store: Arc<S>) {
    store.create(newcomer("alice")).await.unwrap();
    store.create(newcomer("bob")).await.unwrap();
    let first = successor(&genesis("alice", "first"), "a");
    assert_eq!(
        store.append(next("alice", first.clone())).await.unwrap(),
        AppendOutcome::Appended
    );
    assert_eq!(
        store.append(next("alice", first.clone())).await.unwrap(),
        AppendOutcome::Stale,
        "twice"
    );
    let fork = successor(&genesis("alice", "first"), "fork");
    assert_eq!(
        store.append(next("alice", fork)).await.unwrap(),
        AppendOutcome::Stale,
        "an old head"
    );
    let ahead = successor(&successor(&first, "b"), "c");
    assert_eq!(
        store.append(next("alice", ahead)).await.unwrap(),
        AppendOutcome::Stale,
        "a head to come"
    );
    let headless = StoredOperation {
        prev: None,
        ..successor(&first, "b")
    };
    assert_eq!(
        store.append(next("alice", headless)).await.unwrap(),
        AppendOutcome::Stale,
        "no prev"
    );
    let foreign = successor(&first, "b");
    assert_eq!(
        store.append(next("bob", foreign.clone())).await.unwrap(),
        AppendOutcome::Stale,
        "another's"
    );
    assert_eq!(
        store.append(next("alice", foreign.clone())).await.unwrap(),
        AppendOutcome::Appended
    );

    let alice = store.get(&name("alice")).await.unwrap().unwrap();
    assert_eq!(
        alice.operations,
        [genesis("alice", "first").json, first.json, foreign.json]
    );
    assert_eq!(
        store.get(&name("bob")).await.unwrap().unwrap().operations.len(),
        1
    );
}

/// Of twenty different operations on the same head one is taken.
pub async fn one_of_many_appends_wins<S: Store>(store: Arc<S>) {
    store.create(newcomer("alice")).await.unwrap();
    let mut callers = JoinSet::new();
    for n in 0..20 {
        let store = Arc::clone(&store);
        let operation = successor(&genesis("alice", "first"), &n.to_string());
        callers.spawn(async move { store.append(next("alice", operation)).await.unwrap() });
    }
    let outcomes = callers.join_all().await;
    assert_eq!(
        outcomes.iter().filter(|o| **o == AppendOutcome::Appended).count(),
        1
    );
    assert_eq!(
        store.get(&name("alice")).await.unwrap().unwrap().operations.len(),
        2
    );
    assert_eq!(store.list(None, 1).await.unwrap()[0].seq, 1);
}

/// What comes back is what was signed and hashed, byte for byte, long or odd as it may be.
pub async fn operations_come_back_as_admitted<S: Store>(store: Arc<S>) {
    let long = "é\u{10ffff}\\\"%$1?; ".repeat(1_000);
    let operation = StoredOperation {
        json: long.clone(),
        ..genesis("alice", "first")
    };
    store
        .create(NewAgent {
            operation,
            ..newcomer("alice")
        })
        .await
        .unwrap();
    let record = store.get(&name("alice")).await.unwrap().unwrap();
    assert_eq!(record.operations, std::slice::from_ref(&long));
    assert_eq!(store.history(&name("alice"), 0, 10).await.unwrap(), [long]);
}

/// A page begins at a number and has at most so many.
pub async fn history_is_cut_where_asked<S: Store>(store: Arc<S>) {
    store.create(newcomer("alice")).await.unwrap();
    let mut all = vec![genesis("alice", "first")];
    for n in 0..6 {
        let operation = successor(all.last().unwrap(), &n.to_string());
        store.append(next("alice", operation.clone())).await.unwrap();
        all.push(operation);
    }
    let texts: Vec<_> = all.into_iter().map(|operation| operation.json).collect();
    let page = async |from, limit| store.history(&name("alice"), from, limit).await.unwrap();
    assert_eq!(page(0, 100).await, texts);
    assert_eq!(page(0, 3).await, texts[..3]);
    assert_eq!(page(3, 3).await, texts[3..6]);
    assert_eq!(page(6, 3).await, texts[6..]);
    assert!(page(7, 3).await.is_empty() && page(u64::MAX, 3).await.is_empty());
}

/// By bytes, digits before letters and punctuation where ASCII has it, whatever the locale.
pub async fn list_is_in_the_order_of_names<S: Store>(store: Arc<S>) {
    let sorted = ["0x", "a", "a-b", "a.b", "a_b", "ab", "alice", "b"];
    for agent in ["b", "a_b", "0x", "ab", "a", "alice", "a.b", "a-b"] {
        store.create(newcomer(agent)).await.unwrap();
    }
    let names = |page: Vec<AgentSummary>| page.into_iter().map(|a| a.name.to_string()).collect::<Vec<_>>();
    assert_eq!(names(store.list(None, 100).await.unwrap()), sorted);
    assert_eq!(names(store.list(None, 3).await.unwrap()), sorted[..3]);
    assert_eq!(
        names(store.list(Some(&name("a-b")), 3).await.unwrap()),
        sorted[3..6]
    );
    assert_eq!(
        names(store.list(Some(&name("a-zzz")), 1).await.unwrap()),
        ["a.b"],
        "after a name that is not there"
    );
    assert!(store.list(Some(&name("b")), 3).await.unwrap().is_empty());
}

/// Standing and quotas are set, read and replaced apart from each other.
pub async fn operators_set_standing_and_quota<S: Store>(store: Arc<S>) {
    store.create(newcomer("alice")).await.unwrap();
    store.create(newcomer("bob")).await.unwrap();
    let quota = QuotaOverride {
        mailbox_messages: Some(5),
        mailbox_bytes: None,
        sender_messages: Some(u64::from(u32::MAX)),
    };
    assert!(
        store
            .update(&name("alice"), AgentChange::Quota(quota))
            .await
            .unwrap()
    );
    assert!(
        store
            .update(&name("alice"), AgentChange::Standing(Standing::Suspended))
            .await
            .unwrap()
    );
    let alice = store.get(&name("alice")).await.unwrap().unwrap();
    assert_eq!((alice.quota, alice.standing), (quota, Standing::Suspended));
    let listed = store.list(None, 10).await.unwrap();
    assert_eq!(
        (listed[0].quota, listed[0].standing),
        (quota, Standing::Suspended)
    );
    assert_eq!(
        (listed[1].quota, listed[1].standing),
        (QuotaOverride::default(), Standing::Active),
        "bob's"
    );

    assert!(
        store
            .update(&name("alice"), AgentChange::Quota(QuotaOverride::default()))
            .await
            .unwrap()
    );
    assert!(
        store
            .update(&name("alice"), AgentChange::Standing(Standing::Active))
            .await
            .unwrap()
    );
    let alice = store.get(&name("alice")).await.unwrap().unwrap();
    assert_eq!(
        (alice.quota, alice.standing),
        (QuotaOverride::default(), Standing::Active)
    );
}

/// Suspended and deactivated agents are counted among the agents, and the list tells which.
pub async fn counts_what_there_is<S: Store>(store: Arc<S>) {
    for agent in ["alice", "bob", "carol"] {
        store.create(newcomer(agent)).await.unwrap();
    }
    store
        .update(&name("alice"), AgentChange::Standing(Standing::Suspended))
        .await
        .unwrap();
    let bob_end = StoredOperation {
        deactivates: true,
        ..successor(&genesis("bob", "first"), "end")
    };
    store.append(next("bob", bob_end.clone())).await.unwrap();
    let counts = store.counts().await.unwrap();
    assert_eq!(
        counts,
        Counts {
            agents: 3,
            suspended: 1,
            deactivated: 1,
            tokens: 0,
            invites: 0
        }
    );
    let bob = store.list(Some(&name("alice")), 1).await.unwrap().remove(0);
    let expected = AgentSummary {
        name: name("bob"),
        seq: 1,
        head: bob_end.hash.clone(),
        standing: Standing::Active,
        quota: QuotaOverride::default(),
        registered_at: at(0),
        deactivated_at: Some(at(10)),
        invite: None,
    };
    assert_eq!(bob, expected);
    let after_the_end = next("bob", successor(&bob_end, "more"));
    assert_eq!(store.append(after_the_end).await.unwrap(), AppendOutcome::Stale);
}

/// A caller that goes away in the middle leaves an agent with its history or no agent, never half of one.
pub async fn a_dropped_call_is_whole_or_nothing<S: Store>(store: Arc<S>) {
    for n in 0..20 {
        let agent = format!("agent-{n}");
        let mut call = Box::pin(store.create(newcomer(&agent)));
        let waker = std::task::Waker::noop();
        // Polled a few times, then dropped wherever it is.
        for _ in 0..n % 4 {
            if std::future::Future::poll(call.as_mut(), &mut std::task::Context::from_waker(waker)).is_ready()
            {
                break;
            }
        }
        drop(call);
    }
    // A change after them is in the queue behind them, so that they are settled when it is answered.
    store.create(newcomer("last")).await.unwrap();
    for listed in store.list(None, 100).await.unwrap() {
        let record = store.get(&listed.name).await.unwrap().unwrap();
        assert_eq!(record.operations, [genesis(listed.name.as_str(), "first").json]);
    }
}
