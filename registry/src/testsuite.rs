//! The contract suites: what every store promises, as plain functions that a store's tests call.
//!
//! [`stamp_contract`](crate::stamp_contract) makes one test of each function for a store. A promise
//! that is not in here is not one that the room may rely on.

#![expect(
    clippy::unwrap_used,
    clippy::missing_panics_doc,
    clippy::indexing_slicing,
    reason = "a suite asserts"
)]

pub mod directory;
pub mod fixtures;
pub mod grants;
pub mod listing_log;
pub mod listings;
pub mod peer_bounds;
pub mod peer_histories;
pub mod peer_records;
pub mod peer_windows;
pub mod peers;
pub mod providers;
pub mod reviews;
pub mod siblings;

/// Stamps one `#[tokio::test]` for each function of the suites. `$open` is an expression that makes
/// a fresh `Arc` of a store, with whatever must be kept alive beside it in a tuple.
#[macro_export]
macro_rules! stamp_contract {
    ($open:expr) => {
        $crate::stamp_contract!(@suite directory, $open, [
            missing_is_none, a_name_is_given_once, one_of_forty_at_once_gets_the_name,
            history_grows_only_at_its_head, one_of_many_appends_wins, operations_come_back_as_admitted,
            history_is_cut_where_asked, list_is_in_the_order_of_names, operators_set_standing_and_quota,
            counts_what_there_is, a_dropped_call_is_whole_or_nothing,
        ]);
        $crate::stamp_contract!(@suite grants, $open, [
            an_invite_lets_in_as_many_as_it_says, a_refused_registration_uses_up_no_invite,
            an_invite_ends, one_of_many_gets_the_last_use, invites_are_listed_and_revoked_once,
            a_token_is_found_by_its_hash, a_challenge_is_spent_once, one_of_many_spends_a_challenge,
            the_oldest_tokens_go, sweep_takes_what_is_over_and_nothing_else,
        ]);
        $crate::stamp_contract!(@suite listings, $open, [
            nothing_is_there_before, a_listing_comes_back_as_it_was_put, a_listing_of_another_hub_says_so, a_higher_version_replaces_a_lower_one,
            the_same_again_changes_nothing, a_version_is_not_replaced_by_a_lower_or_equal_one,
            a_deleted_listing_leaves_its_version, an_agents_listings_are_listed, an_agent_has_no_more_than_it_may,
            tombstones_are_bounded, many_are_judged_one_after_the_other, one_of_many_versions_wins,
            many_at_once_do_not_pass_the_measure,
        ]);
        $crate::stamp_contract!(@suite listing_log, $open, [
            a_great_many_are_stored_and_read_in_pages, tombstones_are_forgotten, an_agents_listings_are_removed,
            an_agents_listings_are_touched, who_follows_the_log_misses_nothing,
        ]);
        $crate::stamp_contract!(@suite reviews, $open, [
            what_was_said_before_is_remembered, suspects_are_listed, a_verdict_is_seen_by_who_follows_the_log,
            a_verdict_is_about_what_was_looked_at,
        ]);
        $crate::stamp_contract!(@suite providers, $open, [
            a_provider_is_found_by_its_key, the_use_of_a_key_is_noted, providers_are_listed_and_revoked_once,
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

/// Stamps one `#[tokio::test]` for each function of the suites about peers, as [`stamp_contract`](crate::stamp_contract) does.
#[macro_export]
macro_rules! stamp_peers {
    ($open:expr) => {
        $crate::stamp_contract!(@suite peers, $open, [
            a_peer_is_met_once, a_document_pins_keys, a_peer_is_frozen_until_it_is_repinned, operators_decide,
            traffic_is_counted, many_count_at_once, peers_are_listed, only_the_dead_are_forgotten,
            one_holds_the_turn, one_of_many_gets_the_turn,
        ]);
        $crate::stamp_contract!(@suite peer_windows, $open, [
            a_window_begins_empty, items_are_settled_in_any_order, what_is_remembered_stays,
            peers_and_epochs_are_apart, a_great_many_are_noted_and_known, what_never_comes_is_passed_over,
            sixteen_note_what_overlaps, one_of_many_verdicts_stays, a_nonce_is_used_once,
            nonces_stay_while_others_go, one_of_many_uses_a_nonce,
        ]);
        $crate::stamp_contract!(@suite peer_records, $open, [
            a_history_is_kept, a_history_does_not_get_shorter, evidence_is_kept_once, the_audit_log_is_in_order,
            who_follows_the_logs_misses_nothing,
        ]);
    };
}

/// The same for what bounds a store of peers that is to last.
#[macro_export]
macro_rules! stamp_peer_bounds {
    ($open:expr) => {
        $crate::stamp_contract!(@suite peer_bounds, $open, [
            refusals_are_bounded, epochs_are_bounded, evidence_is_bounded, the_audit_log_is_bounded,
            strangers_are_bounded, lines_about_the_dead_go_with_them,
        ]);
        $crate::stamp_contract!(@suite peer_histories, $open, [
            histories_of_a_peer_are_bounded, bytes_of_histories_are_bounded, strangers_make_room_for_acquaintances,
        ]);
    };
}

/// Stamps one `#[tokio::test]` for each function of the suite of siblings. `$context` is an expression that makes a fresh
/// [`siblings::Context`].
#[macro_export]
macro_rules! stamp_siblings {
    ($context:expr) => {
        $crate::stamp_siblings!(@suite $context, [
            a_challenge_is_fresh_once, one_of_many_spends_a_challenge, a_change_is_seen_by_the_other,
            a_registration_ends_an_absence, a_challenge_is_good_at_every_process_and_once,
        ]);
    };
    (@suite $context:expr, [$($name:ident),* $(,)?]) => {
        mod contract {
            use super::*;
            $(
                #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                async fn $name() {
                    $crate::testsuite::siblings::$name($context).await;
                }
            )*
        }
    };
}
