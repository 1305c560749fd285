//! The contract suites: what every store of the market promises, as plain functions that a store's tests call.
//!
//! [`stamp_market`](crate::stamp_market) makes one test of each function for a store. A promise that is not in here is not
//! one that the room may rely on.

#![expect(
    clippy::unwrap_used,
    clippy::missing_panics_doc,
    clippy::indexing_slicing,
    reason = "a suite asserts"
)]

pub mod accounts;
pub mod cancels;
pub mod channels;
pub mod crowds;
pub mod earnings;
pub mod facilitators;
pub mod fixtures;
pub mod payments;
pub mod peers;
pub mod repeats;
pub mod settlements;

/// Stamps one `#[tokio::test]` for each function of the suites. `$open` is an expression that makes a fresh `Arc` of a store,
/// with whatever must be kept alive beside it in a tuple.
#[macro_export]
macro_rules! stamp_market {
    ($open:expr) => {
        $crate::stamp_market!(@suite accounts, $open, [
            nothing_is_there_before, an_account_is_made_once, an_agent_has_one_account, a_grant_is_a_credit,
            pitfall_24_a_reference_is_used_once, keys_are_bounded_and_revoked, a_secret_opens_one_account,
            accounts_are_read_in_pages, lines_are_read_in_pages, budgets_are_set, an_account_is_suspended_and_back,
            there_is_no_more_money_than_can_be_counted,
        ]);
        $crate::stamp_market!(@suite channels, $open, [
            a_channel_is_funded_and_what_is_left_comes_back, a_channel_that_is_not_there_is_missing, an_account_has_so_many_open, what_cannot_be_paid_is_not_opened,
            opening_again_changes_nothing, demo_money_comes_and_goes, a_top_up_is_done_once,
            what_cannot_be_paid_is_not_topped_up, a_channel_ends_when_nothing_is_held, channels_expire,
            a_channel_outlives_its_key, channels_are_read_in_pages,
        ]);
        $crate::stamp_market!(@suite payments, $open, [
            a_call_is_held_and_paid, a_call_from_a_channel_is_held_and_paid, a_call_that_failed_costs_nothing,
            nobody_pays_more_than_was_held, pitfall_32_what_is_not_used_comes_back, what_cannot_be_paid_is_not_begun,
            a_budget_counts_what_is_held, a_channel_that_is_over_pays_nothing, a_revoked_key_leaves_its_calls_whole,
            a_free_call_moves_nothing, trials_are_counted, receipts_are_kept,
        ]);
        $crate::stamp_market!(@suite repeats, $open, [
            the_same_is_answered_again, another_body_is_told, the_very_same_call_is_begun_once,
            an_end_comes_once, what_is_lost_is_given_up, what_is_past_its_deadline_is_given_up,
            answers_are_forgotten,
        ]);
        $crate::stamp_market!(@suite cancels, $open, [
            a_cancelled_call_costs_nothing, what_has_ended_is_not_cancelled, what_is_being_settled_is_not_cancelled,
        ]);
        $crate::stamp_market!(@suite settlements, $open, [
            a_payment_pays_one_call, a_payment_that_was_not_made_is_given_back,
            a_call_that_is_being_paid_is_not_given_up, what_was_being_paid_is_taken_up,
            a_payment_of_which_nobody_knows_stays_claimed, a_withdrawn_call_may_be_asked_again,
            a_call_is_paid_in_one_way,
        ]);
        $crate::stamp_market!(@suite earnings, $open, [
            providers_earn_and_are_paid, providers_are_read_in_pages, the_sum_of_everything,
        ]);
        $crate::stamp_market!(@suite peers, $open, [
            nobody_is_there_before, pitfall_46_who_is_met_again_is_as_before, a_peer_is_crawled,
            pitfall_50_another_key_freezes_a_peer, a_pending_peer_that_changes_its_key_is_not_let_in,
            pitfall_49_one_key_is_one_peer, strangers_with_its_key_hide_no_peer, a_blocked_peer_stays_blocked,
            peers_are_asked_in_turn,
            silent_peers_are_forgotten, what_was_decided_is_kept, pitfall_46_pending_peers_are_bounded,
        ]);
        $crate::stamp_market!(@suite crowds, $open, [
            forty_at_once_and_money_for_ten, forty_at_once_and_a_channel_for_ten, forty_at_once_and_a_budget_for_ten,
            one_of_many_repetitions_is_begun, one_of_many_ends_counts, one_of_many_uses_of_a_reference_counts,
            visitors_at_once_get_what_they_may, nobody_is_paid_out_twice, everything_at_once_adds_up,
        ]);
    };
    (@suite $suite:ident, $open:expr, [$($name:ident),* $(,)?]) => {
        mod $suite {
            use super::*;
            $(
                #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                async fn $name() {
                    let (store, _kept) = $open.await;
                    $crate::testsuite::$suite::$name(store).await;
                }
            )*
        }
    };
}
