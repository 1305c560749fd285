//! The command `aip` as a process: what it prints, and with which exit code it ends.

use std::path::Path;

use aip_client::{Client, Draft};
use serde_json::Value;

use crate::aip::Aip;
use crate::fake::{FakeHub, Fault};
use crate::support::{agent, eventually, within};

async fn say(alice: &Client, hub: &FakeHub, text: &str) {
    alice
        .send(&Draft::text(format!("bob#{}", hub.domain), text))
        .await
        .unwrap();
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_default()
}

#[tokio::test]
async fn exit_codes_and_words_tell_what_to_do() {
    let hub = FakeHub::start().await;
    let aip = Aip::new(&hub);
    let said = aip.fails(1, &["whoami"]).await;
    assert!(
        said.contains("no key file at") && said.contains("run `aip register`"),
        "{said}"
    );
    aip.fails(2, &["send", "bob", "x"]).await;
    aip.fails(2, &["--hub", "http://hub.example", "resolve", "bob@hub.example"])
        .await;
    let _taken = agent(&hub, "alice").await;
    let said = aip.fails(3, &["register", "alice"]).await;
    assert!(said.contains("handle_taken: as scripted (request r-1)"), "{said}");
    let said = aip.fails(3, &["--json", "register", "alice"]).await;
    assert_eq!(
        serde_json::from_str::<Value>(&said).unwrap()["error"]["code"],
        "handle_taken"
    );
    aip.succeeds(&["register", "bob"]).await;
    aip.succeeds(&["register", "bob"]).await;
    let said = aip.fails(2, &["deactivate"]).await;
    assert!(said.contains("--yes"), "{said}");
    hub.fail("/api/v1/messages", [Fault::HangUp]);
    let to = format!("alice@{}", hub.domain);
    let said = aip.fails(1, &["send", &to, "x", "--retry-for", "0"]).await;
    assert!(said.contains("it may have arrived"), "{said}");
}

#[tokio::test]
async fn a_send_that_has_to_be_tried_again_says_so() {
    let hub = FakeHub::start().await;
    let aip = Aip::registered(&hub, "bob").await;
    let _recipient = agent(&hub, "alice").await;
    hub.fail("/api/v1/messages", [Fault::HangUp]);
    let to = format!("alice@{}", hub.domain);
    let output = aip.run(&["send", &to, "x"]).await;
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{said}");
    assert!(
        said.contains("trying again") && !said.contains('\u{1b}'),
        "{said}"
    );
}

#[tokio::test]
async fn what_was_sent_is_listened_to() {
    let hub = FakeHub::start().await;
    let (alice, bob) = (
        Aip::registered(&hub, "alice").await,
        Aip::registered(&hub, "bob").await,
    );
    let to = format!("@bob@{}", hub.domain);
    let sent = alice
        .succeeds(&["--json", "send", &to, "Grüße", "--type", "a.b", "--thread", "t"])
        .await;
    let sent: Value = serde_json::from_str(&sent).unwrap();
    assert_eq!(sent["status"], "stored");
    std::fs::write(alice.path("f"), [0xff, 0x00]).unwrap();
    alice.succeeds(&["send", &to, "--file", "f"]).await;
    let heard = bob.succeeds(&["listen", "--json", "--count", "2"]).await;
    let heard: Vec<Value> = heard
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(
        (&heard[0]["id"], &heard[0]["body"]),
        (&sent["id"], &Value::from("Grüße"))
    );
    assert_eq!(
        (&heard[0]["type"], &heard[0]["thread"]),
        (&Value::from("a.b"), &Value::from("t"))
    );
    assert_eq!(heard[1]["content_type"], "application/octet-stream");
    assert_eq!(heard[1]["body_base64url"], "_wA");
    assert_eq!(
        hub.state().mailboxes["bob"].floor(),
        2,
        "acknowledged before it ended"
    );
    assert_eq!(bob.succeeds(&["inbox", "--ack"]).await, "");
    let status = alice.succeeds(&["status", sent["id"].as_str().unwrap()]).await;
    assert!(status.contains("stored"), "{status}");
}

#[tokio::test]
async fn a_command_runs_for_each_message_and_its_failure_brings_it_back() {
    let hub = FakeHub::start().await;
    let (alice, bob) = (agent(&hub, "alice").await, Aip::registered(&hub, "bob").await);
    say(&alice, &hub, "one; touch hacked").await;
    say(&alice, &hub, "two").await;
    let script = r#"test "$AIP_ATTEMPT" != 1 || test "$AIP_SEQ" != 1 || exit 7
        echo "$AIP_SEQ $AIP_TYPE $AIP_FROM $(cat)" >> heard"#;
    bob.succeeds(&["listen", "--count", "2", "--exec", script]).await;
    let from = alice.did().unwrap();
    let heard = read(&bob.path("heard"));
    let mut heard: Vec<&str> = heard.lines().collect();
    heard.sort_unstable();
    assert_eq!(
        heard,
        [
            format!("1 aip.message {from} one; touch hacked"),
            format!("2 aip.message {from} two")
        ]
    );
    assert!(!bob.path("hacked").exists());
    assert_eq!(hub.frames("nak").len(), 1);
}

#[tokio::test]
async fn a_signal_ends_a_listener_cleanly_and_a_second_listener_is_kept_out() {
    let hub = FakeHub::start().await;
    let (alice, bob) = (agent(&hub, "alice").await, Aip::registered(&hub, "bob").await);
    say(&alice, &hub, "\u{1b}[2Jhello").await;
    let listening = bob.spawn(&["listen"]);
    eventually("the message is acknowledged", || hub.frames("ack").len() == 1).await;
    let said = bob.fails(1, &["listen"]).await;
    assert!(said.contains("another process uses the inbox"), "{said}");
    let pid = listening.id().unwrap().to_string();
    assert!(
        std::process::Command::new("kill")
            .args(["-INT", &pid])
            .status()
            .unwrap()
            .success()
    );
    let output = within(listening.wait_with_output()).await.unwrap();
    assert_eq!(
        output.status.code(),
        Some(0),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let shown = String::from_utf8(output.stdout).unwrap();
    assert!(
        shown.contains("hello") && !shown.contains('\u{1b}'),
        "a message does not drive the terminal: {shown:?}"
    );
}

#[tokio::test]
async fn keys_travel_in_one_file() {
    let hub = FakeHub::start().await;
    let (here, there) = (Aip::registered(&hub, "alice").await, Aip::new(&hub));
    let file = there.path("exported").display().to_string();
    let output = within(here.command(&["export", &file, "--plain"]).output())
        .await
        .unwrap();
    assert!(String::from_utf8(output.stderr).unwrap().contains("not sealed"));
    there.succeeds(&["import", &file]).await;
    there.fails(1, &["import", &file]).await;
    let whoami = |said: String| serde_json::from_str::<Value>(&said).unwrap()["kid"].clone();
    let (one, two) = (
        here.succeeds(&["--json", "whoami"]).await,
        there.succeeds(&["--json", "whoami"]).await,
    );
    assert_eq!(whoami(one), whoami(two));
    there.succeeds(&["rotate", "--rotation"]).await;
    here.fails(2, &["export", "sealed"]).await;
}
