//! Every contract of the seams, under the names that the implementations in memory have.

use std::sync::Arc;
use std::time::Duration;

use aip_engines::Redis;
use aip_relay::rate::suite::Ground;
use aip_relay::rate::{Rate, SenderBuckets};

use crate::kit::{self, options, pair};

/// Makes a test of each function of a suite.
macro_rules! contract {
    ($suite:path as $name:ident on $ground:expr => $($contract:ident),+ $(,)?) => {
        mod $name {
            use $suite as suite;
            $(
                #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                async fn $contract() {
                    suite::$contract(&$ground.await).await;
                }
            )+
        }
    };
}

contract! { aip_relay::neighbours::suite as neighbours on crate::kit::context() =>
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

contract! { aip_relay::neighbours::suite::sessions as sessions on crate::kit::town() =>
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

contract! { aip_relay::dedup::shared::suite as shared_window on crate::kit::window() =>
    an_unknown_key_is_unknown,
    what_one_noted_the_other_recalls,
    a_note_can_be_repeated,
    a_note_ends,
}

contract! { aip_relay::rate::suite as sender_buckets on std::future::ready(crate::contract::There) =>
    a_burst_fits_exactly,
    senders_do_not_share_a_bucket,
    a_bucket_fills_again,
    a_pause_saves_up_no_more_than_a_burst,
}

mod siblings {
    use crate::kit::family;

    aip_registry::stamp_siblings!(family().await);
}

/// Buckets in Redis, by its clock.
struct There;

impl Ground for There {
    async fn buckets(&self, rate: Rate) -> (Arc<dyn SenderBuckets>, Arc<dyn SenderBuckets>) {
        let clusters = pair(&options(&Redis::shared().url()), &kit::clock()).await;
        let [one, other] = clusters.map(|cluster| {
            let buckets = cluster.buckets(rate);
            // They live as long as the test.
            std::mem::forget(cluster);
            Arc::new(buckets)
        });
        (one, other)
    }

    async fn pass(&self, time: Duration) {
        tokio::time::sleep(time).await;
    }
}
