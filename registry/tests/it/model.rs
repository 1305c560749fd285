//! The stores are interchangeable: whatever is done, in whatever order, they answer alike.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use aip_registry::agent::Standing;
use aip_registry::directory::{AgentChange, NewAgent, StoredOperation};
use aip_registry::grants::{InviteGrant, InviteId};
use aip_registry::secret::SecretHash;
use aip_registry::testsuite::fixtures::{Store, at, genesis, invite, name, newcomer, next, successor, token};
use aip_registry::{MemoryStore, QuotaOverride};
use futures_util::future::join_all;
use proptest::collection::vec;
use proptest::prelude::*;

use crate::place::Place;

/// What is done to a store. Small numbers pick agents, codes and operations, so that they meet.
#[derive(Debug, Clone)]
enum Step {
    Create {
        agent: u8,
        flavour: u8,
        code: Option<u8>,
        secs: i64,
    },
    Append {
        agent: u8,
        onto: usize,
        flavour: u8,
        ends: bool,
    },
    Update {
        agent: u8,
        change: AgentChange,
    },
    Token {
        agent: u8,
        challenge: u8,
        secs: i64,
    },
    Invite {
        code: u8,
        uses: u32,
        ends: Option<i64>,
    },
    Revoke {
        code: u8,
        secs: i64,
    },
    Sweep {
        secs: i64,
    },
    Get {
        agent: u8,
    },
    History {
        agent: u8,
        from: u64,
        limit: u32,
    },
    List {
        after: Option<u8>,
        limit: u32,
    },
    Find {
        token: usize,
    },
    Invites {
        after: Option<u8>,
        limit: u32,
    },
    Counts,
}

fn change() -> impl Strategy<Value = AgentChange> {
    let quota = |messages| QuotaOverride {
        mailbox_messages: messages,
        ..QuotaOverride::default()
    };
    prop_oneof![
        Just(AgentChange::Standing(Standing::Active)),
        Just(AgentChange::Standing(Standing::Suspended)),
        proptest::option::of(0_u64..1_000_000).prop_map(move |messages| AgentChange::Quota(quota(messages))),
    ]
}

fn step() -> impl Strategy<Value = Step> {
    let agent = 0_u8..4;
    let code = 0_u8..3;
    let secs = 0_i64..200;
    prop_oneof![
        4 => (agent.clone(), 0_u8..3, proptest::option::of(code.clone()), secs.clone())
            .prop_map(|(agent, flavour, code, secs)| Step::Create { agent, flavour, code, secs }),
        6 => (agent.clone(), 0_usize..8, 0_u8..3, prop::bool::weighted(0.1))
            .prop_map(|(agent, onto, flavour, ends)| Step::Append { agent, onto, flavour, ends }),
        2 => (agent.clone(), change()).prop_map(|(agent, change)| Step::Update { agent, change }),
        3 => (agent.clone(), 0_u8..6, secs.clone())
            .prop_map(|(agent, challenge, secs)| Step::Token { agent, challenge, secs }),
        2 => (code.clone(), 0_u32..3, proptest::option::of(secs.clone()))
            .prop_map(|(code, uses, ends)| Step::Invite { code, uses, ends }),
        1 => (code.clone(), secs.clone()).prop_map(|(code, secs)| Step::Revoke { code, secs }),
        1 => (0_i64..5_000).prop_map(|secs| Step::Sweep { secs }),
        1 => agent.clone().prop_map(|agent| Step::Get { agent }),
        1 => (agent.clone(), 0_u64..5, 0_u32..5)
            .prop_map(|(agent, from, limit)| Step::History { agent, from, limit }),
        1 => (proptest::option::of(agent), 0_u32..5).prop_map(|(after, limit)| Step::List { after, limit }),
        1 => (0_usize..20).prop_map(|token| Step::Find { token }),
        1 => (proptest::option::of(code), 0_u32..5).prop_map(|(after, limit)| Step::Invites { after, limit }),
        1 => Just(Step::Counts),
    ]
}

/// What the steps need to know of each other, the same for every store.
#[derive(Default)]
struct World {
    /// Operations that were offered for an agent, good or not.
    offered: BTreeMap<u8, Vec<StoredOperation>>,
    codes: Vec<u8>,
    tokens: usize,
}

/// A step with everything filled in.
enum Call {
    Create(NewAgent),
    Append(u8, StoredOperation),
    Update(u8, AgentChange),
    Token(u8, u8, usize, i64),
    Invite(InviteGrant),
    Read(Step),
}

impl World {
    fn fill_in(&mut self, step: Step) -> Option<Call> {
        Some(match step {
            Step::Create {
                agent,
                flavour,
                code,
                secs,
            } => {
                let operation = genesis(&agent_name(agent), &flavour.to_string());
                self.offered.entry(agent).or_default().push(operation.clone());
                let invite = code.map(hash);
                let registered_at = at(secs);
                Call::Create(NewAgent {
                    operation,
                    invite,
                    registered_at,
                    ..newcomer(&agent_name(agent))
                })
            }
            Step::Append {
                agent,
                onto,
                flavour,
                ends,
            } => {
                let offered = self.offered.entry(agent).or_default();
                let before = offered.iter().rev().nth(onto % offered.len().max(1))?;
                let operation = StoredOperation {
                    deactivates: ends,
                    ..successor(before, &flavour.to_string())
                };
                offered.push(operation.clone());
                Call::Append(agent, operation)
            }
            Step::Update { agent, change } => Call::Update(agent, change),
            Step::Token {
                agent,
                challenge,
                secs,
            } => {
                self.tokens += 1;
                Call::Token(agent, challenge, self.tokens, secs)
            }
            Step::Invite { code, uses, ends } => {
                // Codes are random: the same one is never made twice.
                if self.codes.contains(&code) {
                    return None;
                }
                self.codes.push(code);
                Call::Invite(InviteGrant {
                    expires_at: ends.map(at),
                    ..invite(&code.to_string(), uses)
                })
            }
            read => Call::Read(read),
        })
    }
}

fn agent_name(agent: u8) -> String {
    format!("agent-{agent}")
}

fn hash(code: u8) -> SecretHash {
    SecretHash::of(&code.to_string())
}

/// Does it and says what came of it.
async fn run<S: Store>(store: &S, call: &Call) -> String {
    match call {
        Call::Create(agent) => format!("{:?}", store.create(agent.clone()).await.expect("answered")),
        Call::Append(agent, operation) => {
            let next = next(&agent_name(*agent), operation.clone());
            format!("{:?}", store.append(next).await.expect("answered"))
        }
        Call::Update(agent, change) => {
            format!(
                "{:?}",
                store
                    .update(&name(&agent_name(*agent)), *change)
                    .await
                    .expect("answered")
            )
        }
        Call::Token(agent, challenge, n, secs) => {
            let grant = token(
                &agent_name(*agent),
                &challenge.to_string(),
                &format!("token-{n}"),
                *secs,
            );
            format!("{:?}", store.issue_token(grant).await.expect("answered"))
        }
        Call::Invite(invite) => format!(
            "{:?}",
            store.create_invite(invite.clone()).await.expect("answered")
        ),
        Call::Read(step) => read(store, step).await,
    }
}

async fn read<S: Store>(store: &S, step: &Step) -> String {
    match step {
        Step::Revoke { code, secs } => {
            format!(
                "{:?}",
                store
                    .revoke_invite(&InviteId::of(hash(*code)), at(*secs))
                    .await
                    .expect("answered")
            )
        }
        Step::Sweep { secs } => format!("{:?}", store.sweep(at(*secs), 1_000).await.expect("answered")),
        Step::Get { agent } => format!(
            "{:?}",
            store.get(&name(&agent_name(*agent))).await.expect("answered")
        ),
        Step::History { agent, from, limit } => {
            format!(
                "{:?}",
                store
                    .history(&name(&agent_name(*agent)), *from, *limit)
                    .await
                    .expect("answered")
            )
        }
        Step::List { after, limit } => {
            let after = after.map(|agent| name(&agent_name(agent)));
            format!(
                "{:?}",
                store.list(after.as_ref(), *limit).await.expect("answered")
            )
        }
        Step::Find { token } => {
            format!(
                "{:?}",
                store
                    .find_token(&SecretHash::of(&format!("token-{token}")))
                    .await
                    .expect("answered")
            )
        }
        Step::Invites { after, limit } => {
            let after = after.map(|code| InviteId::of(hash(code)));
            format!(
                "{:?}",
                store
                    .list_invites(after.as_ref(), *limit)
                    .await
                    .expect("answered")
            )
        }
        _ => format!("{:?}", store.counts().await.expect("answered")),
    }
}

/// Everything that can be read, for the end.
async fn all<S: Store>(store: &S) -> Vec<String> {
    let mut reads: Vec<_> = (0..4).map(|agent| Step::Get { agent }).collect();
    reads.extend([
        Step::List {
            after: None,
            limit: 100,
        },
        Step::Invites {
            after: None,
            limit: 100,
        },
        Step::Counts,
    ]);
    reads.extend((0..60).map(|token| Step::Find { token }));
    let mut answers = Vec::new();
    for step in &reads {
        answers.push(read(store, step).await);
    }
    answers
}

/// Whether a call only asks. Within a round of calls that run at once, what it sees is not fixed.
fn only_asks(call: &Call) -> bool {
    matches!(call, Call::Read(step) if !matches!(step, Step::Revoke { .. } | Step::Sweep { .. }))
}

/// Does the same to both in rounds, and compares what they say.
async fn compare<S: Store>(rounds: Vec<Vec<Step>>, store: &S) -> Result<(), TestCaseError> {
    let memory = MemoryStore::new();
    let mut world = World::default();
    for round in rounds {
        // Changes of a round are begun in this order and wait for each other in one batch.
        let calls: Vec<_> = round.into_iter().filter_map(|step| world.fill_in(step)).collect();
        let (asks, changes): (Vec<_>, Vec<_>) = calls.iter().partition(|call| only_asks(call));
        for calls in [changes, asks] {
            let expected = join_all(calls.iter().map(|call| run(&memory, call))).await;
            let got = join_all(calls.iter().map(|call| run(store, call))).await;
            prop_assert_eq!(expected, got);
        }
    }
    prop_assert_eq!(all(&memory).await, all(store).await);
    Ok(())
}

fn runtime() -> tokio::runtime::Runtime {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    runtime.enable_all().build().expect("a runtime")
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn memory_and_sqlite_answer_alike(rounds in vec(vec(step(), 1..6), 1..16)) {
        runtime().block_on(async {
            let place = Place::sqlite();
            let store = place.open().await;
            compare(rounds, &store).await?;
            store.close().await;
            Ok::<_, TestCaseError>(())
        })?;
    }

    #[test]
    fn memory_and_postgres_answer_alike(rounds in vec(vec(step(), 1..6), 1..16)) {
        static PLACE: LazyLock<Place> = LazyLock::new(Place::postgres);
        runtime().block_on(async {
            let store = PLACE.open().await;
            PLACE.damage("TRUNCATE invites, agents, operations, tokens, spent_challenges").await;
            compare(rounds, &store).await?;
            store.close().await;
            Ok::<_, TestCaseError>(())
        })?;
    }
}
