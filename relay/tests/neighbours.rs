//! Several processes of one hub, in one process's memory.

#![expect(clippy::expect_used, clippy::indexing_slicing, reason = "a test is to panic")]

use std::sync::{Arc, Weak};

use aip_protocol::clock::{Clock, ManualClock};
use aip_protocol::time::Timestamp;
use aip_relay::neighbours::memory::House;
use aip_relay::neighbours::suite::sessions::Town;
use aip_relay::neighbours::suite::{Context, Recorder, Side};
use aip_relay::neighbours::{Ears, Neighbours};

fn context() -> Context {
    let clock = Arc::new(ManualClock::new(Timestamp::from_unix_millis(0)));
    let mut sides = House::street(2).into_iter().map(|house| {
        let ears = Arc::<Recorder>::default();
        let weak: Weak<dyn Ears> = Arc::downgrade(&(Arc::<Recorder>::clone(&ears) as Arc<dyn Ears>));
        house.listen(weak, Arc::<ManualClock>::clone(&clock));
        Side {
            neighbours: house,
            ears,
        }
    });
    let mut next = || sides.next().expect("a side");
    Context::new(next(), next(), ())
}

fn town() -> Town {
    let houses = House::street(2);
    let neighbours = [0, 1].map(|number: usize| Arc::<House>::clone(&houses[number]) as Arc<dyn Neighbours>);
    let listen =
        |number: usize, ears: Weak<dyn Ears>, clock: Arc<dyn Clock>| houses[number].listen(ears, clock);
    Town::new(neighbours, listen, ())
}

/// Makes a test of each function of a suite.
macro_rules! contract {
    ($suite:path as $name:ident on $ground:expr => $($contract:ident),+ $(,)?) => {
        mod $name {
            use $suite as suite;
            $(
                #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                async fn $contract() {
                    suite::$contract(&$ground()).await;
                }
            )+
        }
    };
}

contract! { aip_relay::neighbours::suite as neighbours on crate::context =>
    a_signal_is_heard_where_the_agent_is,
    nobody_hears_itself,
    agents_do_not_mix,
    one_leave_ends_every_arrival,
    the_last_of_many_comings_and_goings_counts,
    generations_rise_across_processes,
    many_at_once_have_generations_of_their_own,
    a_session_is_told_of_again_under_its_number,
    after_a_takeover_the_next_one_waits,
    without_a_takeover_nobody_waits,
    a_claimed_message_is_taken,
    a_claim_is_renewed_by_its_process,
    a_claim_ends_with_its_hold,
    a_released_message_is_free,
    a_message_can_be_given_back_for_later,
    a_claim_after_a_release_stands,
    nobody_releases_for_another,
    of_two_processes_exactly_one_gets_a_message,
}

contract! { aip_relay::neighbours::suite::sessions as sessions on crate::town =>
    a_newer_session_elsewhere_replaces_the_older,
    a_takeover_is_one_agents,
    of_two_at_once_one_survives,
    of_many_at_once_one_survives,
    all_must_share_across_processes,
    who_gives_up_leaves_nothing_behind,
    comings_and_goings_are_balanced,
    mail_reaches_a_session_elsewhere,
    mail_reaches_a_reader_elsewhere,
    a_status_reaches_its_sender_elsewhere,
    a_status_reaches_every_sharing_session,
    a_suspended_agent_is_closed_everywhere,
    an_ack_elsewhere_makes_room,
    what_was_offered_elsewhere_can_be_acked,
    a_look_finds_what_nobody_told_of,
    a_message_is_never_in_two_hands,
    messages_are_shared_out,
    what_is_given_back_comes_elsewhere,
    what_is_left_behind_comes_elsewhere,
    what_is_rejected_comes_nowhere,
}
