//! The store on JetStream keeps the contract of mailboxes and of the dedup window, as every other one does: the same
//! suites, under the same names, on a real server.

#![expect(clippy::unwrap_used, reason = "a test is to panic")]

use std::sync::Arc;

use aip_jetstream::JetStreamMailboxes;
use aip_relay::mailbox::memory::MemoryMailboxes;
use aip_relay::mailbox::{Epoch, MailboxStore};

use self::pair::Pair;

#[path = "kit/pair.rs"]
mod pair;
#[path = "kit/stores.rs"]
mod stores;

type Store = (Arc<dyn MailboxStore>, ());

fn options() -> aip_jetstream::Options {
    let url = aip_engines::Nats::shared().url();
    stores::options(&url, &stores::prefix("contract"))
}

/// One process.
async fn nats() -> Store {
    let window = MemoryMailboxes::new(Epoch::from_random(1));
    let parts = stores::parts(Arc::new(window));
    let store = JetStreamMailboxes::open(options(), parts, stores::start()).await;
    (Arc::new(store.unwrap()), ())
}

/// One process that remembers no dedup keys of its own: the streams are the authority.
async fn nats_without_window() -> Store {
    (Arc::new(stores::open_forgetful(options()).await), ())
}

/// Two processes without windows of their own, taking turns.
async fn nats_of_two_processes() -> Store {
    let options = options();
    let one = stores::open_forgetful(options.clone()).await;
    let other = stores::open_forgetful(options).await;
    (Arc::new(Pair::new(one, other)), ())
}

/// Makes a test of each function of a suite, on each of the backends.
macro_rules! on_nats {
    ($suite:path as $name:ident, $backends:tt: $contracts:tt) => {
        mod $name {
            on_nats!(@each $suite, $backends, $contracts);
        }
    };
    (@each $suite:path, [$($backend:ident),+], $contracts:tt) => {
        $(
            mod $backend {
                on_nats!(@tests $backend, $suite, $contracts);
            }
        )+
    };
    (@tests $backend:ident, $suite:path, [$($contract:ident),+ $(,)?]) => {
        use $suite as suite;
        $(
            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $contract() {
                let (store, ground) = crate::$backend().await;
                suite::$contract(&suite::Context::new(store, ground)).await;
            }
        )+
    };
}

// Of two processes, the one that is faster comes first.
on_nats! { aip_relay::mailbox::suite as row_81_mailbox_order, [nats, nats_without_window]: [
    begun_in_order_is_stored_in_order,
] }

on_nats! { aip_relay::mailbox::suite as row_81_mailbox, [nats, nats_without_window, nats_of_two_processes]: [
    appended_is_fetched_in_order,
    an_unknown_mailbox_is_empty,
    a_retry_is_a_duplicate_with_the_first_number,
    row_45_the_same_id_gets_the_same_result,
    other_bytes_under_one_id_are_refused,
    nobody_can_use_up_the_id_of_another,
    row_06_mailboxes_and_senders_do_not_mix,
    row_83_quotas_hold_at_the_limit,
    a_quota_of_zero_lets_nothing_in,
    a_direct_delivery_is_remembered_only,
    a_fetch_is_bounded,
    a_large_envelope_comes_back_whole,
    forty_inserts_of_one_key_store_one,
    concurrent_appends_get_all_numbers,
    the_clock_high_water_only_rises,
    an_ack_settles_up_to_its_number,
    row_28_a_fetched_message_stays_until_its_ack,
    row_41_an_ack_twice_or_late_is_harmless,
    acks_out_of_order_hold_the_floor,
    an_ack_beyond_the_end_changes_nothing,
    row_29_an_ack_reaches_one_mailbox_only,
    a_sequence_number_is_never_used_again,
    offers_are_counted,
    row_37_a_buried_message_leaves_the_way,
    burying_in_the_middle_holds_the_floor,
    a_redrive_gives_a_new_number,
    a_redrive_into_a_full_mailbox_is_refused,
    dead_letters_are_bounded,
    dead_letters_end_after_fourteen_days,
    a_late_redrive_leaves_no_status,
    a_long_code_is_cut,
    a_status_is_the_senders,
    a_status_is_kept_fourteen_days,
    an_id_used_again_has_its_newest_status,
    an_expired_message_is_never_offered,
    row_84_expiry_gives_room_back,
    a_late_append_is_swept_too,
    a_sweep_is_bounded,
    a_legal_retry_always_meets_its_record,
] }

on_nats! { aip_relay::mailbox::suite as row_81_outbox, [nats, nats_without_window, nats_of_two_processes]: [
    a_letter_waits_in_the_outbox,
    a_letter_is_queued_once,
    row_06_outboxes_and_mailboxes_do_not_mix,
    row_83_outboxes_are_bounded,
    letters_leave_each_with_its_fate,
    a_letter_leaves_once,
    letters_leave_in_any_order,
    many_letters_leave_at_once,
    concurrent_settlers_share_nothing,
    an_expired_letter_is_not_sent,
    a_letter_waits_for_a_bounded_time,
    a_delivered_letter_is_acked_once,
    old_news_do_not_set_the_time_back,
    a_long_code_of_the_peer_is_cut,
] }

on_nats! { aip_relay::dedup::suite as row_81_dedup, [nats]: [
    the_first_wins,
    the_first_answer_is_kept,
    the_window_is_exact_at_its_edges,
    the_longest_life_survives_every_sweep,
    a_sweep_leaves_slack_for_calls_under_way,
    one_winner_under_forty_concurrent_inserts,
] }
