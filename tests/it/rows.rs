//! The log of bugs that others had in public (names, keys, signatures, delivery, streams, operation), and the tests that
//! keep us from each of them.
//!
//! A test that covers row 7 is called `row_07_…` (`row_7_…`, or `rows_07_and_08_…`), beside the code whose behaviour it
//! is; those that need a whole hub are here and under `faults`, `hostile` and `limits`. This table says what the right
//! behaviour is, and which tests show it first; it fails when one of them is gone, and when a row has none.

mod delivery;
mod operator;

use std::collections::BTreeSet;

use crate::tidy::{files, root};

/// How a row is covered.
#[derive(Debug)]
enum Covered {
    /// By these tests, and by others with the row's number.
    By(&'static [&'static str]),
    /// Not yet: what it is about does not exist here so far.
    Later(&'static str),
}

use Covered::{By, Later};

const CATALOG: &str = "the catalog and its tools are not built yet";
const TRUST: &str = "credentials and trust are not built yet";
const REPLICAS: &str =
    "a hub of several replicas is not built yet; one hub keeps everything in its own folder";

/// Rows 1 to 50 and 77 to 87. The other rows are about federation, catalog, money and trust.
const TABLE: &[(u32, &str, Covered)] = &[
    (
        1,
        "a raw # is explained, never guessed",
        By(&["row_01_a_raw_hash_never_reaches_somebody_else"]),
    ),
    (
        2,
        "a path is decoded exactly once",
        By(&["row_2_an_identifier_is_decoded_exactly_once"]),
    ),
    (
        3,
        "an encoded slash confuses no route",
        By(&["row_3_an_encoded_slash_confuses_no_route"]),
    ),
    (
        4,
        "a port in a DID keeps one spelling",
        By(&["row_4_a_did_is_read_in_every_spelling_and_printed_in_one"]),
    ),
    (
        5,
        "a DID prints as it was read",
        By(&["row_05_a_did_prints_as_it_was_read"]),
    ),
    (
        6,
        "keys of different tuples differ",
        By(&["row_06_keys_of_different_tuples_differ"]),
    ),
    (
        7,
        "wide characters panic nowhere",
        By(&["row_07_wide_characters_at_every_offset"]),
    ),
    (8, "tool names are unique", Later(CATALOG)),
    (9, "one bad item spoils no import", Later(CATALOG)),
    (
        10,
        "look-alike names are refused",
        By(&["row_10_look_alike_names_are_refused"]),
    ),
    (
        11,
        "a rotation is seen at once",
        By(&["row_11_a_rotated_key_is_known_to_who_had_the_old_one_in_memory"]),
    ),
    (
        12,
        "failures are not remembered",
        By(&["row_12_a_failure_is_not_remembered_and_an_absence_ends_with_the_registration"]),
    ),
    (
        13,
        "the right kind of key is used",
        By(&["row_13_only_a_full_kid_of_a_signing_key_signs_in"]),
    ),
    (
        14,
        "every listed key signs in",
        By(&["row_14_each_of_several_keys_signs_in_under_its_own_kid"]),
    ),
    (
        15,
        "a change keeps what it does not change",
        By(&["row_15_a_move_keeps_what_it_does_not_change"]),
    ),
    (
        16,
        "the owner's rotation key alone decides",
        By(&["row_16_the_owners_rotation_key_alone_changes_an_identity"]),
    ),
    (17, "a cycle of trust ends", Later(TRUST)),
    (
        18,
        "what is signed is what is served",
        By(&["row_18_false_empty_and_null_are_signed_as_they_are"]),
    ),
    (
        19,
        "the canonical form is RFC 8785's",
        By(&["row_19_the_canonical_form_is_that_of_rfc_8785"]),
    ),
    (
        20,
        "published vectors check",
        By(&["row_20_published_keys_payloads_and_signatures_check"]),
    ),
    (
        21,
        "numbers that others read differently are refused",
        By(&["row_21_numbers_that_others_would_read_differently_are_refused"]),
    ),
    (
        22,
        "escapes have one form",
        By(&["row_22_escapes_have_one_canonical_form"]),
    ),
    (
        23,
        "the window is exact",
        By(&["row_23_the_window_is_exact_at_both_ends"]),
    ),
    (
        24,
        "a refusal for time names both clocks",
        By(&["row_24_a_refusal_for_time_names_both_clocks"]),
    ),
    (
        25,
        "nothing goes out before the cheap checks",
        By(&["row_25_cheap_checks_come_first_and_look_nothing_up"]),
    ),
    (
        26,
        "a captured proof is worth nothing",
        By(&["row_26_a_captured_auth_frame_is_worth_nothing_on_another_socket"]),
    ),
    (
        27,
        "202 only after a durable write",
        By(&[
            "row_27_a_store_that_is_down_acknowledges_nothing",
            "row_27_a_failed_write_closes_the_store",
        ]),
    ),
    (
        28,
        "what was not acked comes again",
        By(&["row_28_what_was_not_acknowledged_comes_again_to_the_next_listener"]),
    ),
    (
        29,
        "nobody acks or sends for another",
        By(&["row_29_nobody_acks_or_sends_for_somebody_else"]),
    ),
    (
        30,
        "a message during connect comes once",
        By(&["row_30_a_message_that_arrives_during_connect_is_delivered_once"]),
    ),
    (
        31,
        "a late end silences no successor",
        By(&["row_31_the_late_end_of_a_replaced_link_leaves_its_successor_alone"]),
    ),
    (
        32,
        "two clients of one agent are damped",
        By(&["row_32_two_clients_that_evict_each_other_are_damped"]),
    ),
    (
        33,
        "a token is renewed once",
        By(&["row_33_a_token_is_renewed_once_at_four_fifths_of_its_life"]),
    ),
    (
        34,
        "a full queue drops no message",
        By(&["row_34_a_burst_to_a_slow_reader_loses_nothing"]),
    ),
    (
        35,
        "a slow socket costs little",
        By(&["row_35_a_client_that_never_reads_costs_little_and_loses_nothing"]),
    ),
    (
        36,
        "a stalled socket holds nobody up",
        By(&["rows_35_and_36_a_client_that_never_reads_holds_nobody_up"]),
    ),
    (
        37,
        "a poison message blocks nobody",
        By(&["row_37_a_poison_message_goes_to_the_dead_letters_and_blocks_nobody"]),
    ),
    (
        38,
        "an unknown next hop is told",
        By(&["row_38_an_unknown_next_hop_is_told_to_the_sender_and_stored_nowhere"]),
    ),
    (
        39,
        "what waited is delivered in order",
        By(&["row_39_everything_that_waited_is_delivered_in_order"]),
    ),
    (40, "one push, whichever replica", Later(REPLICAS)),
    (
        41,
        "an ack twice or late is harmless",
        By(&["row_41_ack_twice_unknown_or_after_death_is_idempotent"]),
    ),
    (
        42,
        "an idle socket keeps no place",
        By(&["row_42_a_silent_socket_is_closed"]),
    ),
    (
        43,
        "a link recovers every time",
        By(&["row_43_twenty_broken_sessions_lose_nothing_and_repeat_nothing"]),
    ),
    (
        44,
        "what was acked survives a kill",
        By(&["row_44_nothing_acknowledged_is_lost_when_the_hub_is_killed"]),
    ),
    (
        45,
        "an answer states the real outcome",
        By(&["row_45_an_unknown_outcome_is_told_as_such_and_a_retry_tells_what_happened"]),
    ),
    (
        46,
        "concurrent writers all succeed",
        By(&[
            "row_46_thirty_two_writers_at_start_up_all_succeed",
            "row_46_the_busy_timeout_comes_before_every_other_pragma",
        ]),
    ),
    (
        47,
        "one process per folder",
        By(&["row_47_a_second_hub_on_the_data_folder_is_refused"]),
    ),
    (
        48,
        "a stream goes on after its cursor",
        By(&["row_48_a_stream_goes_on_after_its_cursor_and_repeats_nothing"]),
    ),
    (
        49,
        "a retry is one message",
        By(&["row_49_the_same_envelope_again_gets_the_first_answer"]),
    ),
    (
        50,
        "parallel sends keep their order",
        By(&[
            "row_50_pairs_keep_their_order_at_300_ms_and_four_batches_are_on_their_way",
            "row_50_either_hub_may_be_killed_at_any_point",
        ]),
    ),
    (
        77,
        "remnants are not an empty store",
        By(&["row_77_remnants_are_not_opened_as_an_empty_store"]),
    ),
    (
        78,
        "a kill leaves something that opens",
        By(&[
            "row_78_a_torn_log_loses_only_its_tail",
            "row_78_a_restore_is_all_or_nothing",
        ]),
    ),
    (
        79,
        "a newer store is refused",
        By(&["row_79_a_store_of_a_newer_version_is_refused_and_left_alone"]),
    ),
    (
        80,
        "a stop loses nothing and ends",
        By(&["row_80_sigterm_closes_every_socket_and_loses_nothing"]),
    ),
    (
        81,
        "one suite, the same results on every store",
        By(&["row_81_mailbox", "row_81_dedup"]),
    ),
    (
        82,
        "maps are bounded",
        By(&[
            "row_82_a_million_senders_leave_nothing_behind",
            "row_82_strangers_names_do_not_fill_the_memory",
        ]),
    ),
    (
        83,
        "every limit has a test",
        By(&["row_83_every_configured_limit_has_a_test"]),
    ),
    (
        84,
        "what expires gives room back",
        By(&["row_84_expiry_gives_room_back"]),
    ),
    (
        85,
        "refused content fills no log",
        By(&["row_85_oversize_messages_leave_no_trace"]),
    ),
    (
        86,
        "a taken port is named",
        By(&["row_86_a_taken_port_ends_the_start_and_is_named"]),
    ),
    (
        87,
        "nobody gives himself rights",
        By(&["row_87_no_door_of_the_operator_opens_for_an_agent"]),
    ),
];

fn wanted() -> impl Iterator<Item = u32> {
    (1..=50).chain(77..=87)
}

fn named_after_rows() -> BTreeSet<String> {
    named_after("row")
}

/// The names of all functions, and of modules of generated tests, that carry such a number.
pub(crate) fn named_after(what: &str) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for path in files(&root(), "rs") {
        let text = std::fs::read_to_string(path).unwrap();
        for defining in ["fn ", " as "] {
            let words = text
                .split(defining)
                .skip(1)
                .filter_map(|rest| rest.split(['(', ':', '<']).next());
            let numbered = words.filter(|word| !numbers_in(what, word).is_empty());
            names.extend(numbered.map(str::to_owned));
        }
    }
    names
}

fn rows_of(name: &str) -> Vec<u32> {
    numbers_in("row", name)
}

/// The numbers in a name: `row_07_x` is 7, `rows_35_and_36_x` are 35 and 36.
pub(crate) fn numbers_in(what: &str, name: &str) -> Vec<u32> {
    let rest = name
        .strip_prefix(what)
        .map(|rest| rest.strip_prefix('s').unwrap_or(rest));
    let Some(rest) = rest.and_then(|rest| rest.strip_prefix('_')) else {
        return Vec::new();
    };
    let numbers = rest.split('_').map_while(|part| match part {
        "and" => Some(None),
        part => part.parse().ok().map(Some),
    });
    numbers.flatten().collect()
}

#[test]
fn a_name_tells_its_rows() {
    assert_eq!(rows_of("row_07_wide_characters"), [7]);
    assert_eq!(rows_of("row_7_x"), [7]);
    assert_eq!(rows_of("rows_35_and_36_a_client"), [35, 36]);
    assert!(rows_of("rows_of").is_empty() && rows_of("row").is_empty() && rows_of("arrow_1").is_empty());
}

#[test]
fn every_row_of_the_bug_log_has_its_test_or_its_reason() {
    let table: Vec<u32> = TABLE.iter().map(|(row, _, _)| *row).collect();
    assert_eq!(table, wanted().collect::<Vec<_>>(), "each row once, in order");
    let names = named_after_rows();
    for (row, behaviour, covered) in TABLE {
        assert!(!behaviour.is_empty());
        let covering: Vec<&String> = names.iter().filter(|name| rows_of(name).contains(row)).collect();
        match covered {
            By(tests) => {
                assert!(!tests.is_empty(), "row {row}, {behaviour}: no test");
                for test in *tests {
                    assert!(
                        covering.iter().any(|name| name == test),
                        "row {row}, {behaviour}: there is no test {test}, only {covering:?}"
                    );
                }
            }
            Later(reason) => {
                assert!(!reason.is_empty());
                assert!(
                    covering.is_empty(),
                    "row {row} has a test now, {covering:?}: take it out of what waits"
                );
            }
        }
    }
}

/// A row's number in a name means this log and nothing else.
#[test]
fn no_test_names_a_row_that_does_not_exist() {
    for name in named_after_rows() {
        for row in rows_of(&name) {
            assert!((1..=87).contains(&row), "{name}: the log ends with row 87");
        }
    }
}
