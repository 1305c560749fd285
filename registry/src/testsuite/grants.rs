//! The contract of [`crate::Grants`], and of the invites that [`crate::Directory::create`] uses up.

use std::sync::Arc;

use tokio::task::JoinSet;

use super::fixtures::{Store, at, invite, name, newcomer, token};
use crate::directory::{CreateOutcome, NewAgent};
use crate::grants::{InviteGrant, InviteId, TokenOutcome};
use crate::limits::TOKENS_PER_AGENT_MAX;
use crate::secret::SecretHash;

fn invited(agent: &str, code: &str) -> NewAgent {
    NewAgent {
        invite: Some(SecretHash::of(code)),
        ..newcomer(agent)
    }
}

async fn uses_left<S: Store>(store: &S, code: &str) -> u32 {
    let id = InviteId::of(SecretHash::of(code));
    store
        .list_invites(None, 100)
        .await
        .unwrap()
        .into_iter()
        .find(|i| i.id == id)
        .unwrap()
        .uses_left
}

/// Two uses let two in; the agent's line tells by which invite it came.
pub async fn an_invite_lets_in_as_many_as_it_says<S: Store>(store: Arc<S>) {
    store.create_invite(invite("code", 2)).await.unwrap();
    assert_eq!(
        store.create(invited("alice", "code")).await.unwrap(),
        CreateOutcome::Created
    );
    assert_eq!(
        store.create(invited("bob", "code")).await.unwrap(),
        CreateOutcome::Created
    );
    assert_eq!(
        store.create(invited("carol", "code")).await.unwrap(),
        CreateOutcome::InviteRefused
    );
    assert_eq!(
        store.create(invited("carol", "no such code")).await.unwrap(),
        CreateOutcome::InviteRefused
    );
    let agents = store.list(None, 10).await.unwrap();
    assert_eq!(agents.len(), 2);
    assert!(
        agents
            .iter()
            .all(|agent| agent.invite == Some(InviteId::of(SecretHash::of("code"))))
    );
    // A refused newcomer left nothing behind: the name is free.
    assert_eq!(store.get(&name("carol")).await.unwrap(), None);
    assert_eq!(
        store.create(newcomer("carol")).await.unwrap(),
        CreateOutcome::Created
    );
}

/// Who does not get the name does not pay for it.
pub async fn a_refused_registration_uses_up_no_invite<S: Store>(store: Arc<S>) {
    store.create_invite(invite("code", 1)).await.unwrap();
    store.create(newcomer("alice")).await.unwrap();
    assert_eq!(
        store.create(invited("alice", "code")).await.unwrap(),
        CreateOutcome::Exists
    );
    assert_eq!(uses_left(&*store, "code").await, 1);
    assert_eq!(
        store.create(invited("bob", "code")).await.unwrap(),
        CreateOutcome::Created
    );
    assert_eq!(
        store.create(invited("bob", "code")).await.unwrap(),
        CreateOutcome::Exists,
        "the same again"
    );
    assert_eq!(uses_left(&*store, "code").await, 0);
}

/// At its end, to the millisecond, and when it is revoked.
pub async fn an_invite_ends<S: Store>(store: Arc<S>) {
    store
        .create_invite(InviteGrant {
            expires_at: Some(at(100)),
            ..invite("short", 5)
        })
        .await
        .unwrap();
    store.create_invite(invite("revoked", 5)).await.unwrap();
    let late = NewAgent {
        registered_at: at(100),
        ..invited("late", "short")
    };
    assert_eq!(store.create(late).await.unwrap(), CreateOutcome::InviteRefused);
    let in_time = NewAgent {
        registered_at: at(99),
        ..invited("in-time", "short")
    };
    assert_eq!(store.create(in_time).await.unwrap(), CreateOutcome::Created);
    assert!(
        store
            .revoke_invite(&InviteId::of(SecretHash::of("revoked")), at(1))
            .await
            .unwrap()
    );
    assert_eq!(
        store.create(invited("bob", "revoked")).await.unwrap(),
        CreateOutcome::InviteRefused
    );
}

/// Of twenty newcomers with a single-use invite at the same time one comes in.
pub async fn one_of_many_gets_the_last_use<S: Store>(store: Arc<S>) {
    store.create_invite(invite("code", 1)).await.unwrap();
    let mut callers = JoinSet::new();
    for n in 0..20 {
        let store = Arc::clone(&store);
        callers.spawn(async move {
            store
                .create(invited(&format!("agent-{n}"), "code"))
                .await
                .unwrap()
        });
    }
    let outcomes = callers.join_all().await;
    assert_eq!(
        outcomes.iter().filter(|o| **o == CreateOutcome::Created).count(),
        1
    );
    assert_eq!(
        outcomes
            .iter()
            .filter(|o| **o == CreateOutcome::InviteRefused)
            .count(),
        19
    );
    assert_eq!(store.list(None, 100).await.unwrap().len(), 1);
    assert_eq!(uses_left(&*store, "code").await, 0);
}

/// In the order of ids, in pages, with all that was set; a second revocation says so.
pub async fn invites_are_listed_and_revoked_once<S: Store>(store: Arc<S>) {
    assert!(store.list_invites(None, 10).await.unwrap().is_empty());
    for n in 0..5 {
        let expires_at = (n % 2 == 0).then(|| at(n));
        store
            .create_invite(InviteGrant {
                expires_at,
                ..invite(&format!("code-{n}"), 3)
            })
            .await
            .unwrap();
    }
    let all = store.list_invites(None, 10).await.unwrap();
    assert_eq!(all.len(), 5);
    assert!(all.is_sorted_by(|a, b| a.id < b.id));
    assert_eq!(store.list_invites(Some(&all[1].id), 2).await.unwrap(), all[2..4]);
    let second = all.iter().find(|i| i.note == "for code-2").unwrap();
    assert_eq!(
        (second.uses_max, second.uses_left, second.created_at),
        (3, 3, at(0))
    );
    assert_eq!((second.expires_at, second.revoked_at), (Some(at(2)), None));

    assert!(store.revoke_invite(&second.id, at(7)).await.unwrap());
    assert!(!store.revoke_invite(&second.id, at(8)).await.unwrap(), "again");
    assert!(
        !store
            .revoke_invite(&InviteId::parse("0123456789abcdef").unwrap(), at(8))
            .await
            .unwrap(),
        "unknown"
    );
    let revoked: Vec<_> = store.list_invites(None, 10).await.unwrap();
    assert_eq!(
        revoked.iter().filter_map(|i| i.revoked_at).collect::<Vec<_>>(),
        [at(7)]
    );
    assert_eq!(store.counts().await.unwrap().invites, 5);
}

/// All that was said about it comes back, also after its end: that is judged elsewhere.
pub async fn a_token_is_found_by_its_hash<S: Store>(store: Arc<S>) {
    assert_eq!(store.find_token(&SecretHash::of("token")).await.unwrap(), None);
    let grant = token("alice", "challenge", "token", 0);
    assert_eq!(
        store.issue_token(grant.clone()).await.unwrap(),
        TokenOutcome::Issued {
            displaced: Vec::new()
        }
    );
    assert_eq!(
        store.find_token(&SecretHash::of("token")).await.unwrap(),
        Some(grant.record)
    );
    assert_eq!(store.find_token(&SecretHash::of("Token")).await.unwrap(), None);
}

/// The second token for one challenge is not issued.
pub async fn a_challenge_is_spent_once<S: Store>(store: Arc<S>) {
    store
        .issue_token(token("alice", "challenge", "first", 0))
        .await
        .unwrap();
    let again = store
        .issue_token(token("alice", "challenge", "second", 1))
        .await
        .unwrap();
    assert_eq!(again, TokenOutcome::ChallengeSpent);
    assert_eq!(store.find_token(&SecretHash::of("second")).await.unwrap(), None);
    assert_eq!(
        store
            .issue_token(token("alice", "another", "third", 2))
            .await
            .unwrap(),
        TokenOutcome::Issued {
            displaced: Vec::new()
        }
    );
    assert_eq!(store.counts().await.unwrap().tokens, 2);
}

/// Of twenty answers to one challenge at the same time one gets a token.
pub async fn one_of_many_spends_a_challenge<S: Store>(store: Arc<S>) {
    let mut callers = JoinSet::new();
    for n in 0..20 {
        let store = Arc::clone(&store);
        callers.spawn(async move {
            store
                .issue_token(token("alice", "challenge", &format!("token-{n}"), 0))
                .await
                .unwrap()
        });
    }
    let outcomes = callers.join_all().await;
    assert_eq!(
        outcomes
            .iter()
            .filter(|o| matches!(o, TokenOutcome::Issued { .. }))
            .count(),
        1
    );
    assert_eq!(store.counts().await.unwrap().tokens, 1);
}

/// One agent cannot fill the store with tokens, and displaces nobody else's.
pub async fn the_oldest_tokens_go<S: Store>(store: Arc<S>) {
    store
        .issue_token(token("bob", "bob's", "bob's", 0))
        .await
        .unwrap();
    let most = i64::from(TOKENS_PER_AGENT_MAX);
    for n in 0..most + 3 {
        let issued = store
            .issue_token(token("alice", &format!("c{n}"), &format!("t{n}"), n))
            .await
            .unwrap();
        let oldest = (n >= most).then(|| SecretHash::of(&format!("t{}", n - most)));
        let displaced = oldest.into_iter().collect();
        assert_eq!(issued, TokenOutcome::Issued { displaced }, "token {n}");
    }
    assert_eq!(
        store.counts().await.unwrap().tokens,
        u64::from(TOKENS_PER_AGENT_MAX) + 1
    );
    for (n, is_there) in [(0, false), (2, false), (3, true), (most + 2, true)] {
        let found = store.find_token(&SecretHash::of(&format!("t{n}"))).await.unwrap();
        assert_eq!(found.is_some(), is_there, "token {n}");
    }
    assert!(
        store
            .find_token(&SecretHash::of("bob's"))
            .await
            .unwrap()
            .is_some()
    );
}

/// At the end to the millisecond, at most as many as asked for; a spent challenge stays spent until then.
pub async fn sweep_takes_what_is_over_and_nothing_else<S: Store>(store: Arc<S>) {
    for n in 0..3 {
        store
            .issue_token(token("alice", &format!("c{n}"), &format!("t{n}"), n))
            .await
            .unwrap();
    }
    assert_eq!(store.sweep(at(59), 100).await.unwrap(), 0);
    assert_eq!(
        store.sweep(at(61), 100).await.unwrap(),
        2,
        "challenges that end at 60 and 61"
    );
    let replayed = store
        .issue_token(token("alice", "c2", "replayed", 61))
        .await
        .unwrap();
    assert_eq!(replayed, TokenOutcome::ChallengeSpent);
    assert_eq!(
        store.sweep(at(3_600), 100).await.unwrap(),
        2,
        "the challenge of 62, the token of 3,600"
    );
    assert!(store.find_token(&SecretHash::of("t0")).await.unwrap().is_none());
    assert!(store.find_token(&SecretHash::of("t1")).await.unwrap().is_some());
    assert_eq!(
        store.sweep(at(9_999), 1).await.unwrap(),
        1,
        "no more than asked for"
    );
    assert_eq!(store.sweep(at(9_999), 1).await.unwrap(), 1);
    assert_eq!(store.sweep(at(9_999), 1).await.unwrap(), 0);
}
