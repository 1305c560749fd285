//! Nothing lost, nothing twice, every pair in order: whatever breaks.

use std::collections::HashMap;
use std::time::Duration;

use proptest::prelude::*;
use tokio::time::sleep;

use super::world::{Act, Running, World, domain};
use crate::outbox::Fate;

const BETA: &str = "beta.example";
const DAY: Duration = Duration::from_hours(24);

/// A life with random faults, restarts and pauses.
#[derive(Debug, Clone)]
struct Life {
    /// Sender and recipient of each message.
    messages: Vec<(u8, u8)>,
    faults: Vec<Fault>,
    /// After how many milliseconds the process is killed, again and again.
    crashes: Vec<u64>,
    /// The hub's time for an answer.
    delay_ms: u64,
    refused: Option<usize>,
    /// Whose mailbox is full until the last process runs, and for a while after.
    full: Option<u8>,
}

#[derive(Debug, Clone, Copy)]
enum Fault {
    None,
    Lost,
    Gateway,
    Busy,
    Away,
    Unauthentic,
    Garbage,
    Again,
    Forgets(usize),
}

fn fault() -> impl Strategy<Value = Fault> {
    prop_oneof![
        4 => Just(Fault::None),
        2 => Just(Fault::Lost),
        1 => Just(Fault::Gateway),
        1 => Just(Fault::Busy),
        2 => Just(Fault::Away),
        1 => Just(Fault::Unauthentic),
        1 => Just(Fault::Garbage),
        1 => Just(Fault::Again),
        1 => (1..5_usize).prop_map(Fault::Forgets),
    ]
}

fn life() -> impl Strategy<Value = Life> {
    (
        prop::collection::vec((0..3_u8, 0..3_u8), 1..300),
        prop::collection::vec(fault(), 0..25),
        prop::collection::vec(0..20_000_u64, 0..4),
        0..800_u64,
        prop::option::of(0..300_usize),
        prop::option::of(0..3_u8),
    )
        .prop_map(|(messages, faults, crashes, delay_ms, refused, full)| Life {
            messages,
            faults,
            crashes,
            delay_ms,
            refused,
            full,
        })
}

fn act(fault: Fault) -> Act {
    match fault {
        Fault::None => Act::Answer,
        Fault::Lost => Act::LoseAnswer,
        Fault::Gateway => Act::Say(502, "text/html", "<html>Bad gateway</html>"),
        Fault::Busy => Act::SayLater(429, "3"),
        Fault::Away => Act::Refuse,
        Fault::Unauthentic => Act::Say(401, "application/problem+json", r#"{"code":"hub_key_unknown"}"#),
        Fault::Garbage => Act::Say(200, "application/json", r#"{"results":"none"}"#),
        Fault::Again => Act::WantAgain((1..400).collect(), Some(2)),
        Fault::Forgets(count) => Act::Forget(count),
    }
}

async fn live(life: Life) {
    let world = World::new();
    let names = ["a", "b", "c"];
    let mut pairs = Vec::new();
    for (from, to) in &life.messages {
        let pair = (names[usize::from(*from)], names[usize::from(*to)]);
        world.put(pair.0, pair.1, BETA);
        pairs.push(pair);
    }
    let refused = life
        .refused
        .filter(|index| *index < pairs.len())
        .map(|index| index as u64 + 1);
    world.hub(BETA, |hub| {
        hub.script = life.faults.iter().copied().map(act).collect();
        hub.delay = Duration::from_millis(life.delay_ms);
        hub.refuses.extend(refused.map(|seq| (seq, "recipient_unknown")));
        let full = (1..)
            .zip(&life.messages)
            .filter(|(_, (_, to))| life.full == Some(*to));
        hub.full.extend(full.map(|(seq, _)| seq));
    });
    for (number, crash_ms) in life.crashes.iter().enumerate() {
        let delivery = world.delivery(&format!("run-{number}"));
        let running = Running::start(&delivery);
        delivery.wake(&domain(BETA));
        sleep(Duration::from_millis(*crash_ms)).await;
        drop(running);
    }
    let delivery = world.delivery("last");
    let _running = Running::start(&delivery);
    delivery.wake(&domain(BETA));
    if life.full.is_some() {
        sleep(DAY / 6).await;
        world.hub(BETA, |hub| {
            let left = world.fates(BETA);
            let others = (1..=pairs.len() as u64).filter(|seq| !hub.full.contains(seq));
            assert!(
                others.into_iter().all(|seq| left.contains_key(&seq)),
                "others wait"
            );
            hub.full.clear();
        });
    }
    world.drained(BETA, DAY).await;

    check(&world, &pairs, refused, life.crashes.len());
}

/// Everything arrived once, each pair in order, and only what was refused came back.
fn check(world: &World, pairs: &[(&str, &str)], refused: Option<u64>, crashes: usize) {
    let stored = world.hub(BETA, |hub| hub.stored.clone());
    let mut last: HashMap<(&str, &str), u64> = HashMap::new();
    for seq in &stored {
        let pair = pairs[usize::try_from(*seq).unwrap() - 1];
        let before = last.insert(pair, *seq);
        assert!(
            before.is_none_or(|before| before < *seq),
            "{pair:?}: {seq} after {before:?}"
        );
    }
    let mut sorted = stored;
    sorted.sort_unstable();
    let all = (1..=pairs.len() as u64).filter(|seq| Some(*seq) != refused);
    assert_eq!(sorted, all.collect::<Vec<u64>>(), "each once");
    for (seq, fate) in world.fates(BETA) {
        let expected = match refused {
            Some(refused) if refused == seq => Fate::Refused("recipient_unknown".to_owned()),
            _ => Fate::Delivered,
        };
        assert_eq!(fate, expected, "{seq}");
    }
    let told = world.told.bounces.lock().unwrap().len();
    let refusals = usize::from(refused.is_some());
    assert!(told >= refusals, "at least once");
    assert!(told <= refusals * (1 + crashes), "once in a life at most");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, ..ProptestConfig::default() })]

    #[test]
    fn whatever_breaks_nothing_is_lost_doubled_or_reordered(life in life()) {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build()
            .unwrap();
        runtime.block_on(live(life));
    }
}

#[tokio::test(start_paused = true)]
async fn row_50_pairs_keep_their_order_at_300_ms_and_four_batches_are_on_their_way() {
    let world = World::new();
    world.hub(BETA, |hub| hub.delay = Duration::from_millis(300));
    let names: Vec<String> = (0..50).map(|number| format!("agent-{number}")).collect();
    for _ in 0..40 {
        for name in &names {
            world.put(name, "bob", BETA);
        }
    }
    let delivery = world.delivery("here");
    let _running = Running::start(&delivery);
    delivery.wake(&domain(BETA));
    let began = world.now();
    let ended = world.drained(BETA, DAY).await;
    // 2,000 messages are 32 batches, four at a time: eight rounds, and a few to begin with.
    let rounds = ended.millis_since(began) / 300;
    assert!(rounds <= 16, "{rounds} rounds");
    world.hub(BETA, |hub| {
        assert_eq!(hub.busy_most, 4);
        assert_eq!(hub.stored.len(), 2_000);
        for first in 0..50 {
            let of_pair: Vec<u64> = hub
                .stored
                .iter()
                .copied()
                .filter(|seq| (seq - 1) % 50 == first)
                .collect();
            assert!(of_pair.is_sorted());
        }
    });
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_was_lost_is_made_up_for_by_a_duplicate() {
    let world = World::new();
    world.hub(BETA, |hub| hub.script = [Act::LoseAnswer].into());
    let delivery = world.delivery("here");
    let _running = Running::start(&delivery);
    world.send(&delivery, "alice", "bob", BETA);
    world.drained(BETA, DAY).await;
    world.hub(BETA, |hub| {
        assert_eq!(hub.stored, [1]);
        assert_eq!(hub.pushes.len(), 2);
    });
    assert_eq!(world.fates(BETA)[&1], Fate::Delivered);
}

#[tokio::test(start_paused = true)]
async fn a_message_without_a_result_goes_again_and_what_comes_after_it_waits() {
    let world = World::new();
    world.hub(BETA, |hub| hub.script = [Act::Forget(2)].into());
    for to in ["x", "y", "y", "y"] {
        world.put("alice", to, BETA);
    }
    let delivery = world.delivery("here");
    let _running = Running::start(&delivery);
    delivery.wake(&domain(BETA));
    world.drained(BETA, DAY).await;
    world.hub(BETA, |hub| {
        assert_eq!(hub.stored, [1, 2, 3, 4]);
        assert_eq!(hub.pushes[1].1, [3, 4]);
    });
}
