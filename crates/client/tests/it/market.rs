//! Calling capabilities: once and paid once, whatever the line does, with receipts that are checked; and the commands.

use std::os::unix::fs::PermissionsExt as _;
use std::time::Duration;

use aip_client::market::{Amount, ApiKey, Call, Invoked, Purse, Purses};
use aip_client::protocol::market::receipt::Expected;
use aip_client::protocol::market::{Reason, Verdict};
use aip_client::{Client, Error};
use serde_json::{Value, json};

use crate::aip::Aip;
use crate::fake::market::{API_KEY, SECRET, key_text};
use crate::fake::{FakeHub, Fault};
use crate::support::{agent, builder};

const INVOKE: &str = "/ai-market/v2/invoke";

fn call(capability: &str) -> Call {
    let input = json!({"town": "Köln", "seed": 1.5});
    Call::new("shop", capability, input.as_object().cloned().unwrap())
}

fn account() -> Purse {
    Purse::Account(ApiKey::new(API_KEY).unwrap())
}

fn amount(text: &str) -> Amount {
    text.parse().unwrap()
}

async fn invoked(client: &Client, call: &Call, purse: &Purse) -> Invoked {
    client.invoke(call, purse).await.unwrap()
}

fn code(error: &Error) -> &str {
    error.problem().map_or("", |problem| problem.code.as_str())
}

#[tokio::test]
async fn a_call_brings_a_result_and_a_receipt_that_is_checked() {
    let hub = FakeHub::start().await;
    let client = builder(&hub).build().unwrap();
    let free = call("free@v1");
    let answer = invoked(&client, &free, &Purse::Nothing).await;
    assert_eq!(answer.result, json!({"echo": {"town": "Köln", "seed": 1.5}}));
    assert_eq!((answer.price_usd, answer.is_replayed), (Amount::ZERO, false));
    let check = client.check_invoked(&free, &answer).await.unwrap().unwrap();
    assert_eq!(check.verdict, Verdict::True);
    assert!(
        check.uncovered.contains(&"list_price_usd".to_owned()),
        "{:?}",
        check.uncovered
    );
    let paid = call("paid@v1").price_max(amount("0.01"));
    let answer = invoked(&client, &paid, &account()).await;
    assert_eq!(answer.price_usd, amount("0.01"));
    let check = client.check_invoked(&paid, &answer).await.unwrap().unwrap();
    assert_eq!(check.verdict, Verdict::True);
    assert_eq!(
        hub.count("/.well-known/ai-market.json"),
        1,
        "the key is asked for once"
    );
    let nonce = serde_json::from_str::<Value>(answer.receipt.unwrap().get()).unwrap()["nonce"].clone();
    let kept = client.market_receipt(nonce.as_str().unwrap()).await.unwrap();
    let again = client
        .check_receipt(kept.get().as_bytes(), &Expected::default())
        .await
        .unwrap();
    assert_eq!(again.verdict, Verdict::True);
}

#[tokio::test]
async fn a_lost_answer_is_asked_for_again_and_paid_once() {
    let hub = FakeHub::start().await;
    let client = builder(&hub).build().unwrap();
    let busy =
        json!({"success": false, "error": "idempotency_in_progress", "detail": "Wait.", "retry_after_s": 0});
    hub.fail(
        INVOKE,
        [Fault::LoseAnswer, Fault::HangUp, Fault::Answer(409, busy)],
    );
    let answer = invoked(&client, &call("paid@v1"), &account()).await;
    assert!(answer.is_replayed);
    assert_eq!((hub.count(INVOKE), hub.state().market.calls), (4, 1));
    // The same key, long after: the same answer.
    let same = call("paid@v1").idempotency_key(answer.idempotency_key.clone());
    let again = invoked(&client, &same, &account()).await;
    assert!(again.is_replayed && again.receipt.unwrap().get() == answer.receipt.unwrap().get());
    assert_eq!(hub.state().market.calls, 1);
}

#[tokio::test]
async fn what_the_market_refuses_is_said_once_and_typed() {
    let hub = FakeHub::start().await;
    let client = builder(&hub).build().unwrap();
    let wrong = Purse::Account(ApiKey::new("aimk_wrong").unwrap());
    for (capability, purse, expected, status) in [
        ("paid@v1", Purse::Nothing, "payment_required", 402),
        ("fails@v1", account(), "provider_failed", 502),
        ("none@v1", account(), "capability_unknown", 404),
        ("free@v1", wrong, "invalid_api_key", 401),
    ] {
        let before = hub.count(INVOKE);
        let error = client.invoke(&call(capability), &purse).await.unwrap_err();
        let problem = error.problem().unwrap();
        assert_eq!((problem.code.as_str(), problem.status), (expected, status));
        assert_eq!(problem.detail, "as scripted");
        assert_eq!(hub.count(INVOKE), before + 1, "{expected}");
    }
    let dear = call("paid@v1").price_max(amount("0.009999"));
    let error = client.invoke(&dear, &account()).await.unwrap_err();
    assert_eq!(code(&error), "price_limit_exceeded");
    assert_eq!(error.problem().unwrap().members["current_price_usd"], json!(0.01));
    assert_eq!(hub.state().market.calls, 0);
    // The other shape of errors that AIMarket has.
    hub.fail(
        INVOKE,
        [Fault::Answer(
            422,
            json!({"detail": [{"loc": ["body"], "msg": "no"}]}),
        )],
    );
    let error = client
        .invoke(&call("free@v1"), &Purse::Nothing)
        .await
        .unwrap_err();
    let problem = error.problem().unwrap();
    assert!(
        problem.code == "http_422" && problem.detail.contains("\"no\""),
        "{problem}"
    );
}

#[tokio::test]
async fn a_call_without_an_answer_names_the_key_that_tells() {
    let hub = FakeHub::start().await;
    let client = builder(&hub).build().unwrap();
    hub.fail(INVOKE, std::iter::repeat_n(Fault::LoseAnswer, 10_000));
    let short = call("paid@v1").timeout(Duration::from_millis(100));
    let Error::CallUnknown { key, .. } = client.invoke(&short, &account()).await.unwrap_err() else {
        panic!("it may have been paid");
    };
    assert_eq!(hub.state().market.calls, 1);
    let other = FakeHub::start().await;
    let away = Client::builder("http://127.0.0.1:1").build().unwrap();
    let never = away
        .invoke(&call("paid@v1").timeout(Duration::from_millis(50)), &account())
        .await;
    assert!(
        matches!(never, Err(Error::Unreachable { .. })),
        "it never arrived"
    );
    drop((key, other));
}

#[tokio::test]
async fn pitfalls_4_15_and_16_a_receipt_is_true_false_or_not_checked() {
    let hub = FakeHub::start().await;
    let client = builder(&hub).build().unwrap();
    let verdict = async |capability: &str| {
        let call = call(capability);
        let answer = invoked(&client, &call, &Purse::Nothing).await;
        client
            .check_invoked(&call, &answer)
            .await
            .unwrap()
            .unwrap()
            .verdict
    };
    hub.fail("/.well-known/ai-market.json", [Fault::Answer(503, json!({}))]);
    assert_eq!(verdict("free@v1").await, Verdict::NotChecked(Reason::NoKey));
    assert_eq!(verdict("free@v1").await, Verdict::NotChecked(Reason::NoKey));
    assert_eq!(
        hub.count("/.well-known/ai-market.json"),
        1,
        "not asked again within a minute"
    );
    let client = builder(&hub).build().unwrap();
    let verdict = async |capability: &str| {
        let call = call(capability);
        let answer = invoked(&client, &call, &Purse::Nothing).await;
        client
            .check_invoked(&call, &answer)
            .await
            .unwrap()
            .unwrap()
            .verdict
    };
    assert_eq!(verdict("free@v1").await, Verdict::True);
    hub.state().market.forges = true;
    assert_eq!(verdict("free@v1").await, Verdict::False(Reason::KeyNotPinned));
    hub.state().market.forges = false;
    hub.state().market.attests = Some("cheap@v1");
    let other = verdict("free@v1").await;
    assert!(
        matches!(other, Verdict::False(Reason::DifferentCall(_))),
        "{other:?}"
    );
}

#[tokio::test]
async fn a_channel_is_opened_spent_and_closed() {
    let hub = FakeHub::start().await;
    let client = builder(&hub).build().unwrap();
    let key = ApiKey::new(API_KEY).unwrap();
    let opened = client.open_channel(amount("1.00"), Some(&key)).await.unwrap();
    assert_eq!(
        (opened.state.balance_usd, opened.key.reveal()),
        (amount("1"), SECRET)
    );
    let purse = Purse::Channel(opened.key.clone());
    let answer = invoked(&client, &call("paid@v1"), &purse).await;
    assert_eq!(answer.remaining_balance, Some(amount("0.99")));
    hub.fail("/ai-market/v2/channel/topup", [Fault::HangUp]);
    let state = client
        .top_up(&opened.key, amount("0.000001"), Some(&key))
        .await
        .unwrap();
    assert_eq!(state.balance_usd, amount("0.990001"));
    assert_eq!(client.channel(&opened.key).await.unwrap().status, "open");
    let settlement = client.close_channel(&opened.key).await.unwrap();
    assert_eq!(
        (settlement.used_usd, settlement.refund_usd),
        (amount("0.01"), amount("0.990001"))
    );
    let gone = client.channel(&opened.key).await.unwrap_err();
    assert_eq!(code(&gone), "channel_not_found");
}

#[tokio::test]
async fn an_agent_has_an_account_and_its_keys() {
    let hub = FakeHub::start().await;
    let alice = agent(&hub, "alice").await;
    let made = alice.create_account("mine", Some(amount("5"))).await.unwrap();
    assert_eq!(
        (made.api_key.reveal(), made.account.account_id.as_str()),
        (API_KEY, "acct_1")
    );
    let body = hub.bodies("/ai-market/v2/accounts").pop().unwrap();
    assert_eq!(
        serde_json::from_slice::<Value>(&body).unwrap(),
        json!({"label": "mine", "budget_usd": 5.0})
    );
    let again = alice.create_account("", None).await.unwrap_err();
    assert_eq!(code(&again), "account_exists");
    assert_eq!(alice.account(None).await.unwrap().balance_usd, amount("4.99"));
    assert_eq!(
        alice
            .add_account_key(None, "bot", Some(Amount::ZERO))
            .await
            .unwrap()
            .key_id,
        "key_2"
    );
    alice.remove_account_key(None, "key_2").await.unwrap();
    let rotated = alice.rotate_account_key(&made.api_key).await.unwrap();
    assert_eq!(
        (rotated.api_key.reveal(), rotated.key_id.as_str()),
        ("aimk_next", "key_3")
    );
    assert_eq!(alice.account_ledger(None, None).await.unwrap().entries.len(), 1);
    let earned = alice.earnings().await.unwrap();
    assert_eq!((earned.owed, earned.calls), (amount("0.15"), 25));
}

#[tokio::test]
async fn the_account_commands_keep_every_secret_to_themselves() {
    let hub = FakeHub::start().await;
    let alice = Aip::registered(&hub, "alice").await;
    let said = alice.succeeds(&["account", "create", "--label", "mine"]).await;
    assert!(said.contains("acct_1") && !said.contains(API_KEY), "{said}");
    assert!(alice.fails(2, &["account", "create"]).await.contains("already"));
    let purses = Purses::at(alice.path("agent.key.state"), &hub.url());
    let mode = std::fs::metadata(purses.account_path())
        .unwrap()
        .permissions()
        .mode();
    assert_eq!(
        (purses.account().unwrap().unwrap().reveal(), mode & 0o777),
        (API_KEY, 0o600)
    );
    let said = alice.succeeds(&["--json", "account", "show"]).await;
    assert!(said.contains("acct_1") && !said.contains("aimk_"), "{said}");
    assert!(
        alice
            .succeeds(&["account", "ledger"])
            .await
            .contains("credit 5 USD, then 5")
    );
    assert!(
        alice
            .succeeds(&["account", "earnings"])
            .await
            .contains("0.15 USD are owed")
    );
    let said = alice
        .succeeds(&["account", "key", "add", "bot", "--budget", "1"])
        .await;
    assert!(
        said.contains("aimk_second"),
        "a key for others is shown once: {said}"
    );
}

#[tokio::test]
async fn the_commands_pay_from_a_channel() {
    let hub = FakeHub::start().await;
    let alice = Aip::registered(&hub, "alice").await;
    assert!(
        alice
            .fails(2, &["channel", "open", "1.00"])
            .await
            .contains("aip account create")
    );
    alice.succeeds(&["account", "create"]).await;
    let said = alice.succeeds(&["channel", "open", "1.00"]).await;
    assert!(
        said.contains("ch_0 is open: 1 USD") && !said.contains(SECRET),
        "{said}"
    );
    let output = alice
        .run(&[
            "invoke",
            "shop",
            "paid@v1",
            r#"{"a":1}"#,
            "--channel",
            "--max-price",
            "0.05",
        ])
        .await;
    let (result, notes) = (
        String::from_utf8(output.stdout).unwrap(),
        String::from_utf8(output.stderr).unwrap(),
    );
    assert_eq!(
        serde_json::from_str::<Value>(&result).unwrap(),
        json!({"echo": {"a": 1}})
    );
    assert!(
        notes.contains("0.01 USD were paid, 0.99 USD are left, invocation call-1")
            && notes.contains("signed by the hub"),
        "{notes}"
    );
    let said = alice.succeeds(&["channel", "topup", "0.01"]).await;
    assert!(said.contains("1 USD of"), "{said}");
    let said = alice.succeeds(&["channel", "close"]).await;
    assert!(said.contains("0.01 USD were spent, 1 USD go back"), "{said}");
    assert!(
        alice
            .fails(2, &["channel", "close"])
            .await
            .contains("no channel is kept")
    );
    let said = alice.fails(2, &["channel", "close", "ch_0"]).await;
    assert!(said.contains("ch_0") && said.contains("it was closed"), "{said}");
}

#[tokio::test]
async fn the_commands_pay_from_the_account_and_only_what_was_said() {
    let hub = FakeHub::start().await;
    let alice = Aip::registered(&hub, "alice").await;
    alice.succeeds(&["account", "create"]).await;
    let said = alice
        .succeeds(&[
            "--json",
            "invoke",
            "shop",
            "paid@v1",
            "--account",
            "--max-price",
            "0.05",
        ])
        .await;
    let said: Value = serde_json::from_str(&said).unwrap();
    assert_eq!(
        (&said["price_usd"], &said["receipt_check"]["valid"]),
        (&json!(0.01), &json!(true))
    );
    assert_eq!(said["invocation_id"], "call-1");
    alice.fails(2, &["invoke", "shop", "paid@v1", "--account"]).await;
    alice.fails(2, &["invoke", "shop", "paid@v1", "[1]"]).await;
    let said = alice.fails(3, &["invoke", "shop", "paid@v1"]).await;
    assert!(
        said.contains("--max-price 0.01") && !said.contains("as scripted"),
        "{said}"
    );
    let elsewhere = alice
        .fails(
            2,
            &[
                "--hub",
                "http://127.0.0.1:9",
                "invoke",
                "shop",
                "paid@v1",
                "--account",
                "--max-price",
                "1",
            ],
        )
        .await;
    assert!(
        elsewhere.contains("no account is kept for this hub"),
        "{elsewhere}"
    );
}

#[tokio::test]
async fn receipts_are_shown_and_verified_by_the_command() {
    let hub = FakeHub::start().await;
    let alice = Aip::new(&hub);
    let said = alice.succeeds(&["--json", "invoke", "shop", "free@v1"]).await;
    let said: Value = serde_json::from_str(&said).unwrap();
    let nonce = said["receipt"]["nonce"].as_str().unwrap();
    let receipt = alice.succeeds(&["receipt", "show", nonce]).await;
    std::fs::write(alice.path("receipt.json"), &receipt).unwrap();
    let said = alice.succeeds(&["receipt", "verify", "receipt.json"]).await;
    assert!(
        said.starts_with("genuine: signed by the hub\nnot covered by the signature: list_price_usd"),
        "{said}"
    );
    alice
        .succeeds(&[
            "receipt",
            "verify",
            nonce,
            "--capability",
            "free@v1",
            "--product",
            "shop",
            "--price",
            "0",
        ])
        .await;
    alice
        .fails(1, &["receipt", "verify", nonce, "--capability", "paid@v1"])
        .await;
    alice
        .fails(1, &["receipt", "verify", nonce, "--price", "0.00001"])
        .await;
    alice.fails(3, &["receipt", "verify", "rcpt_none"]).await;
    let asked = hub.count("/");
    alice
        .succeeds(&["receipt", "verify", "receipt.json", "--signer", &key_text()])
        .await;
    assert_eq!(
        hub.count("/"),
        asked,
        "where the signer is named, nobody is asked"
    );
    let changed = receipt.replace("0.0", "0.01");
    std::fs::write(alice.path("changed.json"), changed).unwrap();
    alice.fails(1, &["receipt", "verify", "changed.json"]).await;
    std::fs::write(alice.path("none.json"), "{").unwrap();
    alice.fails(2, &["receipt", "verify", "none.json"]).await;
}
