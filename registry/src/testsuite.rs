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
pub mod providers;
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
            nothing_is_there_before, a_listing_comes_back_as_it_was_put, a_higher_version_replaces_a_lower_one,
            the_same_again_changes_nothing, a_version_is_not_replaced_by_a_lower_or_equal_one,
            a_deleted_listing_leaves_its_version, an_agents_listings_are_listed, an_agent_has_no_more_than_it_may,
            tombstones_are_bounded, many_are_judged_one_after_the_other, one_of_many_versions_wins,
            many_at_once_do_not_pass_the_measure,
        ]);
        $crate::stamp_contract!(@suite listing_log, $open, [
            a_great_many_are_stored_and_read_in_pages, tombstones_are_forgotten, an_agents_listings_are_removed,
            an_agents_listings_are_touched, who_follows_the_log_misses_nothing,
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
