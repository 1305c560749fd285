//! What went wrong in public with markets of this protocol: signatures, money, free tiers, catalogs; and the tests that keep us
//! from each of it.
//!
//! A test that covers number 7 is called `pitfall_07_…` (or `pitfalls_07_and_08_…`), beside the code whose behaviour it is. This
//! table says what the right behaviour is, and which tests show it first; it fails when one of them is gone.

use crate::rows::{named_after, numbers_in};

/// How a pitfall is covered.
#[derive(Debug)]
enum Covered {
    /// By these tests, and by others with its number.
    By(&'static [&'static str]),
    /// Not yet: what it is about does not exist here so far.
    Later(&'static str),
}

use Covered::{By, Later};

const CHAINS: &str = "no escrow on a chain is connected: such authorizations are refused";
const TRUST: &str = "trust scores are not built yet";

/// All of them, in order.
const TABLE: &[(u32, &str, Covered)] = &[
    (
        1,
        "a changed price or trust breaks a manifest",
        By(&["pitfall_01_a_changed_price_or_trust_breaks_a_manifest"]),
    ),
    (
        2,
        "the older text of a manifest is not accepted",
        By(&["pitfall_02_the_old_text_of_a_manifest_is_not_accepted"]),
    ),
    (
        3,
        "a receipt is checked with the key of its origin",
        By(&["pitfall_03_the_key_is_that_of_the_origin"]),
    ),
    (
        4,
        "the key inside a receipt is not believed",
        By(&["pitfall_04_the_key_inside_is_not_believed"]),
    ),
    (
        5,
        "what a version 1 leaves open is named",
        By(&["pitfall_05_a_rejection_signed_at_version_1_is_covered_in_part"]),
    ),
    (
        6,
        "members that were added are named as unsigned",
        By(&["pitfall_06_members_added_to_a_receipt_are_reported_as_unsigned"]),
    ),
    (
        7,
        "a bare signature is refused with the shape that is wanted",
        By(&["pitfall_07_a_bare_signature_is_refused_with_the_shape_that_is_wanted"]),
    ),
    (
        8,
        "both alphabets of base64, and nothing else",
        By(&["pitfall_08_both_alphabets_and_no_padding_are_read_and_nothing_is_dropped"]),
    ),
    (
        9,
        "keys and signatures of small order never verify",
        By(&["pitfall_09_small_orders_are_refused_for_every_message"]),
    ),
    (
        10,
        "numbers are spelled as Python spells them",
        By(&["pitfall_10_numbers_are_signed_as_python_spells_them"]),
    ),
    (
        11,
        "a browser may drop the point of a whole price",
        By(&["pitfall_11_a_browser_may_drop_the_point_of_a_whole_price"]),
    ),
    (
        12,
        "letters are hashed raw, and the two texts differ",
        By(&["pitfall_12_letters_are_hashed_raw_and_the_two_texts_differ"]),
    ),
    (
        13,
        "another alphabet is no other key",
        By(&["pitfall_13_the_same_key_in_the_other_alphabet_is_the_same_key"]),
    ),
    (
        14,
        "a later version is unsupported, not invalid",
        By(&["pitfall_14_a_version_that_came_later_is_unsupported_not_invalid"]),
    ),
    (
        15,
        "a genuine receipt of another call is no proof",
        By(&["pitfall_15_a_receipt_of_another_call_is_no_proof"]),
    ),
    (
        16,
        "a failed look-up of a key is made again",
        By(&["pitfall_16_a_look_up_that_failed_is_made_again_after_a_minute"]),
    ),
    (
        17,
        "an origin steers no request elsewhere",
        By(&["pitfall_17_an_address_steers_no_request_elsewhere"]),
    ),
    (
        18,
        "two rejections of one second differ",
        By(&["pitfall_18_two_rejections_of_one_second_have_two_nonces"]),
    ),
    (
        19,
        "as many calls at once as the money is for",
        By(&["pitfall_19_forty_at_once_under_a_ceiling_of_ten_are_ten"]),
    ),
    (
        20,
        "a budget of nothing is no missing budget",
        By(&["pitfall_20_a_budget_of_nothing_spends_nothing_and_none_is_no_ceiling"]),
    ),
    (
        21,
        "a provider that fails is not paid",
        By(&["pitfall_21_a_provider_that_fails_is_not_paid"]),
    ),
    (
        22,
        "an unknown key is no free call",
        By(&["pitfalls_22_and_38_who_shows_a_wrong_key_or_secret_is_told_so"]),
    ),
    (23, "one rail pays", By(&["pitfall_23_one_rail_pays"])),
    (
        24,
        "a reference is used once",
        By(&[
            "pitfall_24_a_reference_is_used_once",
            "pitfall_24_a_payment_pays_one_call",
        ]),
    ),
    (
        25,
        "a transfer that somebody quotes is no money",
        By(&[
            "pitfall_25_a_transfer_that_somebody_quotes_is_no_money",
            "pitfall_25_a_deposit_is_claimed_by_who_paid_it",
        ]),
    ),
    (
        26,
        "what is no amount is refused before anything is written",
        By(&["pitfall_26_what_is_no_amount_is_refused_before_anything_is_written"]),
    ),
    (
        27,
        "what a peer says it cost is not what is charged",
        By(&["pitfall_27_the_fee_is_of_the_lower_price"]),
    ),
    (
        28,
        "an authorization on a chain covers all that was served",
        Later(CHAINS),
    ),
    (
        29,
        "a channel with a call under way is not closed",
        By(&["pitfall_29_a_channel_with_a_call_under_way_is_not_closed"]),
    ),
    (30, "a peer without a history has no negative trust", Later(TRUST)),
    (
        31,
        "a refused input costs neither money nor a trial",
        By(&["pitfall_31_a_refused_input_costs_neither_money_nor_a_trial"]),
    ),
    (
        32,
        "what goes back is never more than is there",
        By(&["pitfall_32_what_is_not_used_comes_back"]),
    ),
    (
        33,
        "what costs less than a cent costs that",
        By(&["pitfall_33_what_costs_less_than_a_cent_costs_that"]),
    ),
    (
        34,
        "a price that went up is not paid by who named a limit",
        By(&["pitfall_34_a_price_that_went_up_is_not_paid_by_who_named_a_limit"]),
    ),
    (
        35,
        "a client that forgets the secret is told so",
        By(&["pitfall_35_the_public_agent_works_unchanged"]),
    ),
    (
        36,
        "a property may have any name",
        By(&["pitfall_36_a_property_may_have_any_name_that_the_schema_declares"]),
    ),
    (
        37,
        "only what leaves a call open is asked again, and as the same call",
        By(&["pitfall_37_only_what_leaves_a_call_open_is_said_again"]),
    ),
    (
        38,
        "a channel is opened by its secret for what is free, too",
        By(&["pitfalls_22_and_38_who_shows_a_wrong_key_or_secret_is_told_so"]),
    ),
    (
        39,
        "above the free tier the input is at fault, not the money",
        By(&["pitfalls_39_and_55_and_56_and_58_the_public_bridges_work_unchanged"]),
    ),
    (
        40,
        "a free tier is never clamped, and comes before a trial",
        By(&["pitfall_40_the_free_tier_is_a_ceiling_of_the_input"]),
    ),
    (
        41,
        "who sells for a peer asks for money at once",
        By(&["pitfall_41_a_hub_that_sells_for_another_takes_the_list_price"]),
    ),
    (
        42,
        "what has a price and nobody to pay is not sold",
        By(&["pitfall_42_a_listing_without_an_address_is_not_sold_on_a_chain"]),
    ),
    (
        43,
        "who does not pay is asked for money before the input is looked at",
        By(&["pitfall_43_an_unpaid_call_is_asked_for_money_before_its_input_is_looked_at"]),
    ),
    (
        44,
        "a peer's terms are passed on as they are",
        By(&["pitfall_44_the_402_of_a_peer_goes_to_the_buyer_as_it_is"]),
    ),
    (
        45,
        "what a peer passes on of others is not listed",
        By(&[
            "pitfall_45_only_what_a_peer_sells_itself_is_taken_up",
            "pitfall_45_a_hub_is_asked_for_what_it_sells_itself",
        ]),
    ),
    (
        46,
        "an announcement of a stranger changes nothing",
        By(&[
            "pitfall_46_what_a_stranger_names_waits_and_is_sold_nowhere",
            "pitfall_46_who_is_met_again_is_as_before",
            "pitfall_46_pending_peers_are_bounded",
        ]),
    ),
    (
        47,
        "an address of a stranger reaches no private network",
        By(&[
            "pitfall_47_a_providers_address_reaches_no_private_network",
            "pitfall_47_an_address_that_must_not_be_asked_is_not_announced",
            "pitfall_47_a_manifest_is_at_the_peers_own_origin",
        ]),
    ),
    (
        48,
        "what is too large or too deep costs only itself",
        By(&[
            "pitfalls_48_and_65_a_hostile_schema_harms_only_itself",
            "pitfall_48_an_answer_that_does_not_end_is_cut_off",
            "pitfall_48_a_thousand_tools_are_looked_at_and_bad_schemas_drop_their_own_tool_only",
        ]),
    ),
    (
        49,
        "a hub is no peer of itself",
        By(&[
            "pitfall_49_a_hub_is_no_peer_of_itself_and_one_hub_is_one_peer",
            "pitfall_49_one_key_is_one_peer",
        ]),
    ),
    (
        50,
        "a peer with another key is frozen",
        By(&[
            "pitfall_50_a_hub_that_shows_another_key_sells_nothing_until_the_operator_decides",
            "pitfall_50_another_key_freezes_a_peer",
        ]),
    ),
    (
        51,
        "a peer that is away sells nothing",
        By(&[
            "pitfall_51_what_a_hub_that_is_away_sold_ends_after_six_hours_and_nobody_elses",
            "pitfall_51_what_is_delisted_goes_and_only_of_that_peer",
        ]),
    ),
    (
        52,
        "an old manifest is not listed",
        By(&[
            "pitfall_52_an_old_manifest_is_not_taken_up",
            "pitfall_52_a_document_is_of_this_week",
        ]),
    ),
    (
        53,
        "a call without the right hub is told the right one",
        By(&["pitfall_53_who_forgets_the_hub_is_told_which_one"]),
    ),
    (
        54,
        "of two hubs with one capability the one that is called is paid",
        By(&["pitfall_54_of_two_hubs_with_the_same_ids_the_one_that_is_named_is_called_and_paid"]),
    ),
    (
        55,
        "names of tools are unique",
        By(&["pitfalls_39_and_55_and_56_and_58_the_public_bridges_work_unchanged"]),
    ),
    (
        56,
        "each property reaches the wire under its own name",
        By(&["pitfalls_39_and_55_and_56_and_58_the_public_bridges_work_unchanged"]),
    ),
    (
        57,
        "a search by another word is refused",
        By(&["pitfall_57_a_search_by_another_word_is_refused_not_answered_with_everything"]),
    ),
    (
        58,
        "a description gives no orders",
        By(&["pitfalls_39_and_55_and_56_and_58_the_public_bridges_work_unchanged"]),
    ),
    (59, "an event of the past counts once", Later(TRUST)),
    (
        60,
        "unknown ids make no metrics",
        By(&["pitfall_60_unknown_ids_make_no_metrics"]),
    ),
    (
        61,
        "what was delivered is handed over though the books cannot be written",
        By(&["pitfall_61_a_result_that_cannot_be_settled_is_delivered_and_not_paid"]),
    ),
    (
        62,
        "documents are not made anew for every reader",
        By(&["pitfall_62_documents_are_not_made_anew_for_every_reader"]),
    ),
    (
        63,
        "numbers of stations and words that stand apart raise no flag, and a flag blocks no call",
        By(&["pitfall_63_what_is_harmless_is_not_found"]),
    ),
    (
        64,
        "a caller cannot choose a fresh budget",
        By(&["pitfall_64_a_caller_cannot_choose_a_fresh_budget"]),
    ),
    (
        65,
        "a schema of a wrong form costs only itself",
        By(&["pitfalls_48_and_65_a_hostile_schema_harms_only_itself"]),
    ),
];

/// What waits, in words that a reader of a failure understands.
const WAITING: &[&str] = &[CHAINS, TRUST];

#[test]
fn every_pitfall_has_its_test_or_its_reason() {
    let numbers: Vec<u32> = TABLE.iter().map(|(number, _, _)| *number).collect();
    assert_eq!(numbers, (1..=65).collect::<Vec<_>>(), "each once, in order");
    let names = named_after("pitfall");
    let mut missing = Vec::new();
    for (number, behaviour, covered) in TABLE {
        assert!(!behaviour.is_empty());
        let covering: Vec<&String> = names
            .iter()
            .filter(|name| numbers_in("pitfall", name).contains(number))
            .collect();
        match covered {
            By(tests) => {
                let gone = tests
                    .iter()
                    .filter(|test| !covering.iter().any(|name| name == *test));
                missing
                    .extend(gone.map(|test| format!("{number}, {behaviour}: no {test}, only {covering:?}")));
            }
            Later(reason) => {
                assert!(WAITING.contains(reason));
                assert!(covering.is_empty(), "{number} has a test now: {covering:?}");
            }
        }
    }
    assert!(missing.is_empty(), "{}", missing.join("\n"));
    for name in names {
        for number in numbers_in("pitfall", &name) {
            assert!((1..=65).contains(&number), "{name}: the list ends with 65");
        }
    }
}
