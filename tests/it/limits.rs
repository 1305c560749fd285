//! Every limit that an operator can set, and every fixed one that a caller can meet: what fits exactly is taken, one
//! more is refused with its code, its status, the limit in the answer, and when to come back where that helps.
//!
//! The table says for each key of `config/default.toml` which test exceeds it, or why none can from outside.

mod http;
mod identity;
mod receiving;
mod sending;

use aip_tests::raw::{Answer, Request, ask};
use aip_tests::{HubOptions, TestAgent, TestHub};
use serde_json::Value;

use crate::tidy::{files, root};

/// What exceeds a limit.
enum Exceeded {
    /// A test of this name, anywhere in the tree.
    By(&'static str),
    /// Nothing can, or it is no limit.
    Not(&'static str),
}

use Exceeded::{By, Not};

/// Every number, and every list that limits, of `config/default.toml`.
const TABLE: &[(&str, Exceeded)] = &[
    ("http.workers", Not("no limit: threads")),
    ("http.connections_max", By("connections_beyond_the_limit_wait")),
    ("http.requests_per_sec", By("one_address_cannot_take_all")),
    ("http.request_burst", By("one_address_cannot_take_all")),
    ("http.header_timeout_secs", By("half_a_head_is_not_waited_for")),
    ("http.body_timeout_secs", By("half_a_body_is_not_waited_for")),
    (
        "http.body_bytes_per_sec_min",
        By("a_body_that_keeps_its_pace_may_take_longer"),
    ),
    ("http.keep_alive_secs", By("an_idle_connection_is_closed")),
    (
        "http.shutdown_timeout_secs",
        By("row_80_sigterm_closes_every_socket_and_loses_nothing"),
    ),
    (
        "relay.envelope_bytes_max",
        By("row_83_an_envelope_ends_exactly_at_its_limit"),
    ),
    (
        "relay.batch_envelopes_max",
        By("row_83_a_batch_ends_exactly_at_its_limits"),
    ),
    (
        "relay.batch_bytes_max",
        By("row_83_a_batch_ends_exactly_at_its_limits"),
    ),
    (
        "relay.sender_messages_per_sec",
        By("row_83_a_sender_has_its_burst_and_no_more"),
    ),
    (
        "relay.sender_burst_messages",
        By("row_83_a_sender_has_its_burst_and_no_more"),
    ),
    (
        "relay.mailbox_messages_max",
        By("row_83_a_mailbox_ends_exactly_at_its_limits"),
    ),
    (
        "relay.mailbox_bytes_max",
        By("row_83_a_mailbox_ends_exactly_at_its_limits"),
    ),
    (
        "relay.mailbox_messages_per_sender_max",
        By("row_83_a_mailbox_ends_exactly_at_its_limits"),
    ),
    ("relay.retention_days", By("row_84_expiry_gives_room_back")),
    (
        "relay.direct_timeout_secs",
        By("redirects_are_not_followed_and_answers_are_bounded"),
    ),
    (
        "relay.disk_used_percent_max",
        By("row_27_a_full_disk_refuses_appends_only"),
    ),
    (
        "relay.disk_free_bytes_min",
        By("row_83_a_disk_that_is_too_full_takes_nothing_and_gives_everything"),
    ),
    ("relay.sweep_interval_secs", Not("no limit: how often is swept")),
    (
        "receive.frame_bytes_max",
        By("row_83_a_frame_ends_exactly_at_its_limit"),
    ),
    (
        "receive.credit_messages_max",
        By("row_83_credit_ends_exactly_at_its_limit"),
    ),
    (
        "receive.auth_timeout_secs",
        By("a_thousand_sockets_that_never_sign_in_are_sent_away"),
    ),
    (
        "receive.silence_timeout_secs",
        By("row_42_a_silent_socket_is_closed"),
    ),
    ("receive.frames_per_sec_max", By("floods_of_frames_are_ended")),
    (
        "receive.poll_wait_secs_max",
        By("row_83_a_poll_ends_exactly_at_its_limits"),
    ),
    (
        "receive.poll_messages_max",
        By("row_83_a_poll_ends_exactly_at_its_limits"),
    ),
    ("market.fee_bps", Not("no limit: what the hub keeps of a payment")),
    (
        "market.trials_per_visitor",
        By("pitfall_31_a_refused_input_costs_neither_money_nor_a_trial"),
    ),
    (
        "market.demo_deposit_usd_max",
        By("money_for_trying_out_has_a_limit_and_is_gone_at_the_end"),
    ),
    (
        "market.channel_lifetime_hours",
        By("a_channel_ends_with_its_time"),
    ),
    (
        "market.provider_timeout_secs",
        By("a_provider_has_the_time_of_the_settings"),
    ),
    (
        "market.invokes_per_minute",
        By("pitfall_64_a_caller_cannot_choose_a_fresh_budget"),
    ),
    (
        "market.invoke_burst",
        By("pitfall_64_a_caller_cannot_choose_a_fresh_budget"),
    ),
    (
        "market.purse_requests_per_minute",
        By("one_network_cannot_guess_at_purses_without_end"),
    ),
    ("market_peers.seeds", Not("no limit: hubs that sell here")),
    (
        "market_peers.crawl_interval_secs",
        Not("no limit: how often is looked at what a hub sells"),
    ),
    (
        "market_peers.routing_fee_bps",
        Not("no limit: what is added to the price of what other hubs sell"),
    ),
    (
        "market_x402.facilitator_timeout_secs",
        By("a_facilitator_that_is_silent_is_asked_again"),
    ),
    (
        "market_x402.asset_decimals",
        Not("no limit: how the token is counted"),
    ),
    (
        "search.quarantine",
        By("what_is_suspect_is_found_when_the_operator_has_looked_at_it"),
    ),
    (
        "registry.cache_agents_max",
        By("row_82_strangers_names_do_not_fill_the_memory"),
    ),
    (
        "registry.token_lifetime_secs",
        By("row_83_tokens_and_challenges_end_when_they_say"),
    ),
    (
        "registry.challenge_lifetime_secs",
        By("row_83_tokens_and_challenges_end_when_they_say"),
    ),
    (
        "registry.history_page_operations_max",
        By("row_83_a_history_page_ends_exactly_at_its_limit"),
    ),
    (
        "registry.registrations_per_minute",
        By("one_address_cannot_take_all"),
    ),
    ("registry.registration_burst", By("one_address_cannot_take_all")),
    (
        "egress.answer_bytes_max",
        By("row_83_a_long_answer_of_an_endpoint_is_read_no_further"),
    ),
    (
        "egress.connect_timeout_secs",
        Not("an address that answers nothing is outside of this machine"),
    ),
    (
        "egress.allowed_private_ranges",
        By("private_endpoints_are_never_called"),
    ),
    (
        "relay.blocked_senders",
        By("row_83_a_blocked_sender_sends_nothing"),
    ),
    ("hub.reserved_names", By("row_83_reserved_names_are_not_given")),
    ("http.allowed_origins", By("a_bad_handshake_is_refused")),
    ("http.trusted_proxies", By("one_address_cannot_take_all")),
    (
        "postgres.connections_max",
        Not("no limit to a caller: who finds none free waits"),
    ),
    (
        "postgres.connect_timeout_secs",
        Not("a server that answers nothing is outside of this machine"),
    ),
    (
        "postgres.wait_timeout_secs",
        Not("an inner limit: the registry's tests exhaust the pool"),
    ),
    (
        "postgres.statement_timeout_secs",
        Not("an inner limit: the database keeps it"),
    ),
    ("nats.streams", Not("no limit: how mailboxes are spread")),
    ("nats.replicas", Not("no limit: copies")),
    (
        "nats.publish_timeout_millis",
        Not("no limit: when a publish is tried again"),
    ),
    (
        "nats.publish_deadline_secs",
        By("without_its_mailboxes_a_process_takes_no_mail_and_recovers"),
    ),
    (
        "nats.read_timeout_millis",
        Not("no limit: when a read is given up"),
    ),
    (
        "redis.connect_timeout_millis",
        Not("no limit: when a process decides alone"),
    ),
    (
        "redis.answer_timeout_millis",
        Not("no limit: when a process decides alone"),
    ),
    (
        "search.models",
        Not("no limit: which models find listings by meaning"),
    ),
    (
        "search.model_threads",
        Not("no limit: how many cores a model may take"),
    ),
    (
        "search.embedder_dimensions",
        Not("no limit: what a server's vectors have, and others are refused"),
    ),
    (
        "search.embedder_timeout_secs",
        Not("no limit on a stranger: how long the operator's own server may take"),
    ),
    (
        "search.embed_timeout_millis",
        Not("no limit: when a search is answered without meaning"),
    ),
    (
        "search.depth",
        Not("no limit: how much of each list is fused at least"),
    ),
    ("search.fusion_k", Not("no limit: a number of the formula")),
    (
        "search.trust_weight_percent",
        Not("no limit: a number of the formula"),
    ),
    (
        "search.listings_per_agent_max",
        By("an_agent_has_so_many_listings_and_they_are_listed"),
    ),
    (
        "federation.allowed",
        By("an_allowlist_lets_those_in_that_it_names"),
    ),
    (
        "federation.blocked",
        By("a_blocked_peer_hands_nothing_in_and_gets_nothing"),
    ),
    (
        "federation.static_peers",
        Not("no limit: where peers are, instead of asking their domain"),
    ),
    (
        "federation.peer_items_per_sec",
        By("a_peer_hands_in_no_more_than_it_may"),
    ),
    (
        "federation.peer_bytes_per_sec",
        By("a_peer_sends_no_more_bytes_than_it_may"),
    ),
    (
        "federation.queue_messages_max",
        By("an_outbox_holds_no_more_than_it_may"),
    ),
    ("federation.queue_bytes_max", By("a_full_outbox_says_so")),
    (
        "federation.queue_messages_per_sender_max",
        By("an_outbox_holds_no_more_than_it_may"),
    ),
    (
        "federation.push_timeout_secs",
        By("whatever_a_peer_answers_mail_waits_until_it_is_kind"),
    ),
    (
        "federation.requests_max",
        By("a_thousand_peers_that_hang_hold_up_nobody"),
    ),
    ("search.ingest_rows_max", By("a_request_has_its_bounds")),
    ("search.ingest_bytes_max", By("a_request_has_its_bounds")),
];

#[test]
fn row_83_every_configured_limit_has_a_test() {
    let text = std::fs::read_to_string(root().join("config/default.toml")).unwrap();
    let settings: toml::Table = text.parse().unwrap();
    let sources = files(&root(), "rs")
        .into_iter()
        .map(|path| std::fs::read_to_string(path).unwrap());
    let sources = sources.collect::<String>();
    let limits = |(section, keys): (&String, &toml::Value)| {
        let keys = keys.as_table().unwrap().iter();
        let numbers = keys.filter(|(_, value)| value.is_integer() || value.is_array());
        numbers
            .map(|(key, _)| format!("{section}.{key}"))
            .collect::<Vec<_>>()
    };
    for key in settings.iter().flat_map(limits) {
        let Some((_, exceeded)) = TABLE.iter().find(|(known, _)| *known == key) else {
            panic!("say in tests/it/limits.rs which test exceeds {key}");
        };
        match exceeded {
            By(test) => assert!(
                sources.contains(&format!("fn {test}(")),
                "{key}: there is no test {test}"
            ),
            Not(reason) => assert!(!reason.is_empty()),
        }
    }
    for (key, _) in TABLE {
        let (section, name) = key.split_once('.').unwrap();
        assert!(settings[section].get(name).is_some(), "there is no setting {key}");
    }
}

fn hub(config: &str) -> TestHub {
    TestHub::start_with(HubOptions {
        config: Some(config.to_owned()),
        ..HubOptions::default()
    })
}

async fn two(hub: &TestHub) -> (TestAgent, TestAgent) {
    (
        TestAgent::registered(hub, "alice").await,
        TestAgent::registered(hub, "bob").await,
    )
}

async fn get(hub: &TestHub, target: &str, token: &str) -> Answer {
    ask(hub.url(), &Request::get(target).bearer(token)).await
}

/// Status and code of a refusal.
fn told(answer: &Answer) -> (u16, String) {
    (answer.status, answer.code())
}

/// The seconds of `Retry-After`.
fn retry_after(answer: &Answer) -> u64 {
    answer
        .header("retry-after")
        .parse()
        .unwrap_or_else(|_| panic!("no Retry-After: {answer:?}"))
}

fn number(value: &Value) -> u64 {
    value.as_u64().unwrap_or_else(|| panic!("{value} is no number"))
}
