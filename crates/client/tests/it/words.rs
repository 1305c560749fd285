//! What the command says where people stumble: in flags and names, not in headers and percent signs.

use std::fs::Permissions;
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt as _;

use aip_client::Draft;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

use crate::aip::Aip;
use crate::fake::{FakeHub, Fault};
use crate::support::{agent, eventually, within};

#[tokio::test]
async fn an_invite_is_asked_for_by_its_flag() {
    let hub = FakeHub::start().await;
    let aip = Aip::new(&hub);
    let detail = "send a good invite in X-AIP-Invite; this one is missing";
    let refused = || {
        let body = json!({"code": "invite_required", "detail": detail, "request_id": "r-1"});
        Fault::Answer(403, body)
    };
    // After a refusal the client asks whether an earlier attempt arrived.
    let unknown = || Fault::Answer(404, json!({"code": "not_found"}));
    hub.fail("/api/v1/agents/alice/history", [unknown(), unknown()]);
    hub.fail("/api/v1/agents", [refused(), refused()]);
    let said = aip.fails(3, &["register", "alice"]).await;
    assert!(
        said.contains("invite_required") && said.contains("--invite CODE") && said.contains("request r-1"),
        "{said}"
    );
    assert!(!said.contains("X-AIP"), "{said}");
    let said = aip.fails(3, &["--json", "register", "alice"]).await;
    let said: Value = serde_json::from_str(&said).unwrap();
    assert!(
        said["error"]["detail"]
            .as_str()
            .unwrap()
            .contains("--invite CODE")
    );
    assert!(!aip.path("agent.key").exists(), "refused, so no keys are left");
}

#[tokio::test]
async fn a_handle_of_the_hub_is_as_good_as_a_name() {
    let hub = FakeHub::start().await;
    let aip = Aip::new(&hub);
    let said = aip.fails(2, &["register", "alice#elsewhere.example"]).await;
    assert!(
        said.contains("elsewhere.example") && said.contains("aip register alice"),
        "{said}"
    );
    assert!(!aip.path("agent.key").exists());
    for text in ["alice#", "al ice", "@alice"] {
        let said = aip.fails(2, &["register", text]).await;
        assert!(!said.contains("%23") && !said.contains("name_invalid"), "{said}");
    }
    let handle = format!("alice#{}", hub.domain);
    let said = aip.succeeds(&["register", &handle]).await;
    assert!(said.contains(&format!("You are {handle}")), "{said}");
    aip.succeeds(&["register", &format!("@alice@{}", hub.domain)])
        .await;
    let said = aip.fails(2, &["send", "bob", "x"]).await;
    assert!(
        said.contains("bob#example.org") && !said.contains("%23"),
        "{said}"
    );
}

#[tokio::test]
async fn keys_that_are_there_are_never_a_surprise() {
    let hub = FakeHub::start().await;
    let (aip, elsewhere) = (Aip::registered(&hub, "alice").await, FakeHub::start().await);
    let alice = format!("alice#{}", hub.domain);
    let said = aip.succeeds(&["register", "alice"]).await;
    assert!(said.contains("were there before"), "{said}");
    let said = aip.fails(2, &["register", "bob"]).await;
    assert!(
        said.contains(&format!("holds the keys of {alice}")) && said.contains("--key"),
        "{said}"
    );
    let said = aip
        .fails(2, &["--hub", &elsewhere.url(), "register", "alice"])
        .await;
    assert!(
        said.contains(&elsewhere.domain) && said.contains("--key"),
        "{said}"
    );
    let output = aip
        .run(&[
            "register",
            "alice",
            "--direct",
            "https://a.example/",
            "--passphrase",
        ])
        .await;
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{said}");
    assert!(
        said.contains("--direct was not used") && said.contains("--passphrase was not used"),
        "{said}"
    );
    aip.succeeds(&["export", "copy", "--plain"]).await;
    for arguments in [&["import", "copy"][..], &["export", "copy", "--plain"]] {
        let said = aip.fails(1, arguments).await;
        assert!(
            said.contains(&format!("holds the keys of {alice}")) && said.contains("another"),
            "{said}"
        );
    }
}

/// Answers the first thing that is said to it with these bytes, and closes.
async fn door(answer: &'static [u8]) -> (SocketAddr, JoinHandle<()>) {
    let door = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = door.local_addr().unwrap();
    let answering = tokio::spawn(async move {
        let (mut stream, _) = door.accept().await.unwrap();
        let mut said = [0; 4096];
        assert!(stream.read(&mut said).await.unwrap() > 0);
        stream.write_all(answer).await.unwrap();
    });
    (address, answering)
}

#[tokio::test]
async fn http_and_https_are_told_apart() {
    let hub = FakeHub::start().await;
    let aip = Aip::new(&hub);
    let look = |url: String| [url, "resolve".to_owned(), "bob@hub.example".to_owned()];
    let try_at = async |url: String, code: i32| {
        let [url, command, who] = look(url);
        aip.fails(code, &["--hub", &url, &command, &who]).await
    };
    let said = try_at("http://hub.example".to_owned(), 2).await;
    assert!(
        said.contains("https://hub.example") && said.contains("--allow-http"),
        "{said}"
    );
    let said = try_at(hub.domain.clone(), 2).await;
    assert!(said.contains(&format!("http://{}", hub.domain)), "{said}");
    let moved = Fault::Answer(301, json!({"location": "https://hub.example/x?y"}));
    hub.fail("/api/v1/resolve", [moved]);
    let said = try_at(hub.url(), 3).await;
    assert!(said.contains("leads on to https://hub.example,"), "{said}");
    // A hub behind TLS answers plain http with an alert, and closes.
    let (address, answering) = door(&[21, 3, 3, 0, 2, 2, 70]).await;
    let said = try_at(format!("http://{address}"), 1).await;
    assert!(said.contains(&format!("https://{address}")), "{said}");
    answering.await.unwrap();
    // And the other way round. A root that signed nothing stands for those of the machine, which may have none.
    let root = aip.path("root.pem");
    std::fs::write(&root, include_str!("words/root.pem")).unwrap();
    let (address, answering) = door(b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n").await;
    let secure = format!("https://{address}");
    let mut command = aip.command(&["--hub", &secure, "resolve", "bob@hub.example"]);
    let output = within(command.env("SSL_CERT_FILE", &root).output())
        .await
        .unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains(&format!("is it http://{address}?")), "{said}");
    answering.await.unwrap();
}

#[tokio::test]
async fn a_status_says_each_thing_once() {
    let hub = FakeHub::start().await;
    let aip = Aip::registered(&hub, "alice").await;
    let id = "6f8f3f5e-2a52-4e0b-9a5f-6f0c6f1d7c11";
    for (status, code, line) in [
        ("expired", "expired", "expired"),
        ("refused", "mailbox_full", "refused (mailbox_full)"),
    ] {
        hub.state().status = Some(json!({"status": status, "code": code}));
        assert_eq!(aip.succeeds(&["status", id]).await, format!("{id} {line}\n"));
    }
}

#[tokio::test]
async fn a_takeover_says_what_to_do() {
    let hub = FakeHub::start().await;
    let bob = Aip::registered(&hub, "bob").await;
    let listening = bob.spawn(&["listen"]);
    eventually("a session", || hub.state().sessions == 1).await;
    hub.kick(4409);
    let output = within(listening.wait_with_output()).await.unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("--share") && said.contains("--come-back"), "{said}");
    assert_eq!(hub.state().sessions, 1, "it does not fight");
}

#[tokio::test]
async fn a_listener_says_once_that_the_hub_is_away_and_that_it_is_back() {
    let hub = FakeHub::start().await;
    let (alice, bob) = (agent(&hub, "alice").await, Aip::registered(&hub, "bob").await);
    let listening = bob.spawn(&["listen", "--count", "1"]);
    eventually("a session", || hub.state().sessions == 1).await;
    hub.state().upgrades.push_back(Fault::HangUp);
    hub.kick(1001);
    let to = format!("bob#{}", hub.domain);
    alice.send(&Draft::text(to, "hello")).await.unwrap();
    let output = within(listening.wait_with_output()).await.unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{said}");
    assert_eq!(said.matches("trying again until it is").count(), 1, "{said}");
    assert_eq!(said.matches("open again").count(), 1, "{said}");
}

#[tokio::test]
async fn a_purse_beside_another_key_file_is_not_looked_for_in_vain() {
    let hub = FakeHub::start().await;
    let aip = Aip::registered(&hub, "alice").await;
    std::fs::write(aip.path("bad.key"), "not a key").unwrap();
    std::fs::set_permissions(aip.path("bad.key"), Permissions::from_mode(0o600)).unwrap();
    for (file, purse, says) in [
        ("nix.key", "--channel", "there is no key file nix.key"),
        ("nix.key", "--account", "there is no key file nix.key"),
        ("bad.key", "--account", "bad.key: not a key file"),
    ] {
        let call = [
            "--key",
            file,
            "invoke",
            "shop",
            "paid@v1",
            purse,
            "--max-price",
            "1",
        ];
        let said = aip.fails(2, &call).await;
        assert!(
            said.contains("is kept for this hub") && said.contains(says),
            "{said}"
        );
    }
    let said = aip.fails(2, &["channel", "close"]).await;
    assert!(!said.contains("key file"), "{said}");
}

#[tokio::test]
async fn an_agent_of_the_hub_is_a_product_by_its_handle() {
    let hub = FakeHub::start().await;
    let aip = Aip::new(&hub);
    for product in [
        format!("shop#{}", hub.domain),
        format!("did:aip:{}:shop", hub.domain.replace(':', "%3A")),
    ] {
        aip.succeeds(&["invoke", &product, "free@v1"]).await;
        let body = hub.bodies("/ai-market/v2/invoke").pop().unwrap();
        let body: Value = serde_json::from_slice(&body).unwrap();
        assert_eq!(body["product_id"], "shop", "{product}");
    }
    let asked = hub.count("/ai-market");
    let said = aip.fails(2, &["invoke", "shop#two.example", "free@v1"]).await;
    assert!(
        said.contains("shop#two.example") && said.contains(&hub.domain) && said.contains("--hub"),
        "{said}"
    );
    assert_eq!(
        hub.count("/ai-market"),
        asked,
        "nothing is called elsewhere than was meant"
    );
}

#[tokio::test]
async fn one_of_several_channels_is_named_in_the_form_that_is_taken() {
    let hub = FakeHub::start().await;
    let alice = Aip::registered(&hub, "alice").await;
    alice.succeeds(&["account", "create"]).await;
    for id in ["ch_0", "ch_1"] {
        assert!(alice.succeeds(&["channel", "open", "1.00"]).await.contains(id));
    }
    for (line, says) in [
        ("invoke shop paid@v1 --max-price 1 --channel", "--channel=ID"),
        ("channel topup 1", "topup USD --channel ID"),
        ("channel close", "close ID"),
        ("invoke shop paid@v1 --max-price 1 --channel ch_0", "--channel=ID"),
        (
            "invoke shop paid@v1 {} --max-price 1 --channel ch_0",
            "--channel=ID",
        ),
    ] {
        let arguments: Vec<&str> = line.split(' ').collect();
        let said = alice.fails(2, &arguments).await;
        assert!(said.contains(says), "{line}: {said}");
    }
    let line = "invoke shop paid@v1 --max-price 1 --channel=ch_0";
    let arguments: Vec<&str> = line.split(' ').collect();
    alice.succeeds(&arguments).await;
}

#[tokio::test]
async fn a_call_without_an_answer_names_its_flag_and_where_it_came_to() {
    let hub = FakeHub::start().await;
    // The line opens, and nobody speaks.
    let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", silent.local_addr().unwrap());
    let line = format!("--hub {url} invoke shop paid@v1 --idempotency-key 12345678 --wait 0s");
    let arguments: Vec<&str> = line.split(' ').collect();
    let said = Aip::new(&hub).fails(1, &arguments).await;
    assert!(
        said.contains("--idempotency-key 12345678") && said.contains("has not answered in time"),
        "{said}"
    );
    assert!(!said.contains("cannot be reached"), "{said}");
}
