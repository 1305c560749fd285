//! `aip-hub admin`, which speaks to a running hub.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;

use aip_protocol::clock::Clock as _;
use aip_protocol::identity::{Keys, OperationDraft};
use aip_protocol::multikey::{OpeningKey, SigningKey};
use aip_protocol::name::Handle;
use rand::SeedableRng as _;
use rand::rngs::StdRng;
use serde_json::{Value, json};

use super::{Folder, Hub, bad, good};

#[test]
fn admin_speaks_to_the_running_hub() {
    let folder = Folder::new();
    let data = folder.at("data");
    std::fs::create_dir(folder.path("data")).unwrap();
    let words = bad(&["admin", "list", "--data", &data]);
    assert!(words.contains("no hub runs"), "{words}");
    let _hub = Hub::start(&data);
    let agents = good(&["admin", "list", "--data", &data]);
    assert!(
        agents.lines().count() == 1 && agents.ends_with("  hub\n"),
        "the hub's own agent alone: {agents}"
    );
    let code = good(&[
        "admin", "invite", "create", "--uses", "3", "--note", "for bob", "--data", &data,
    ]);
    assert!(code.trim().len() > 16, "{code}");
    let listed = good(&["admin", "invite", "list", "--data", &data]);
    assert!(
        listed.contains("3 of 3") && listed.contains("for bob"),
        "{listed}"
    );
    let id = listed.split_whitespace().next().unwrap().to_owned();
    let said = good(&["admin", "invite", "revoke", &id, "--data", &data]);
    assert_eq!(said.trim(), format!("{id} is revoked"));
    let listed = good(&["admin", "--json", "invite", "list", "--data", &data]);
    let line: Value = serde_json::from_str(listed.trim()).unwrap();
    assert_eq!(line["state"], "revoked");
    let words = bad(&["admin", "suspend", "nobody", "--data", &data]);
    assert!(words.contains("not_found"), "{words}");
    let words = bad(&[
        "admin",
        "quota",
        "../invites",
        "--mailbox-messages",
        "1",
        "--data",
        &data,
    ]);
    assert!(words.contains("no name"), "{words}");
}

/// Registers an agent of `localhost:8080`, the domain of these tests.
fn register(hub: &Hub, name: &str) {
    let mut rng = StdRng::seed_from_u64(7);
    let did = Handle::parse(&format!("{name}#localhost:8080")).unwrap().did();
    let rotation = SigningKey::generate(&mut rng);
    let keys = Keys {
        signing: vec![SigningKey::generate(&mut rng).public().clone()],
        sealing: vec![OpeningKey::generate(&mut rng).public().clone()],
        rotation: vec![rotation.public().clone()],
    };
    let now = aip_hub::clock::SystemClock::new(None).now();
    let genesis = OperationDraft::genesis(did, now, keys).sign(&rotation).unwrap();
    let body = String::from_utf8(genesis.json.to_jcs()).unwrap();
    let address = hub.url("public").trim_start_matches("http://");
    let mut stream = TcpStream::connect(address).unwrap();
    write!(
        stream,
        "POST /api/v1/agents HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\nContent-Type: \
         application/json\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    )
    .unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 201"), "{answer}");
}

#[test]
fn a_providers_key_is_made_listed_and_revoked() {
    let folder = Folder::new();
    let data = folder.at("data");
    let hub = Hub::start(&data);
    register(&hub, "shop");
    let providers = |arguments: &[&str]| good(&[&["providers", "--data", &data], arguments].concat());
    assert_eq!(providers(&["list"]), "");
    let key = providers(&["add", "the feed", "--agent", "shop#localhost:8080"]);
    assert!(
        key.trim().starts_with("aip_provider_") && key.trim().len() > 64,
        "{key}"
    );
    let listed = providers(&["list"]);
    assert!(
        listed.contains("good") && listed.contains("the feed") && !listed.contains(key.trim()),
        "{listed}"
    );
    let id = listed.split_whitespace().next().unwrap().to_owned();
    assert_eq!(providers(&["revoke", &id]).trim(), format!("{id} is revoked"));
    let line: Value = serde_json::from_str(providers(&["--json", "list"]).trim()).unwrap();
    assert_eq!(
        (&line["state"], &line["last_used_at"]),
        (&json!("revoked"), &Value::Null)
    );
    let words = bad(&[
        "providers",
        "add",
        "x",
        "--agent",
        "nobody#localhost:8080",
        "--data",
        &data,
    ]);
    assert!(words.contains("not_found"), "{words}");
    let words = bad(&["providers", "revoke", "../invites", "--data", &data]);
    assert!(words.contains("no id"), "{words}");
}

#[test]
fn a_change_of_an_agent_says_what_is_so_now() {
    let folder = Folder::new();
    let data = folder.at("data");
    let hub = Hub::start(&data);
    register(&hub, "alice");
    let admin = |arguments: &[&str]| {
        let said = good(&[&["admin", "--data", &data], arguments].concat());
        assert_eq!(said.lines().count(), 1, "{said}");
        said.trim().to_owned()
    };
    assert_eq!(admin(&["suspend", "alice"]), "alice is suspended");
    let said: Value = serde_json::from_str(&admin(&["--json", "unsuspend", "alice"])).unwrap();
    assert_eq!(said, json!({ "name": "alice", "standing": "active" }));
    let said = admin(&["quota", "alice", "--mailbox-messages", "9"]);
    assert!(
        said.starts_with("alice has the quota mailbox_messages=9;"),
        "{said}"
    );
    let said: Value = serde_json::from_str(&admin(&["--json", "quota", "alice"])).unwrap();
    let none = json!({ "mailbox_messages": null, "mailbox_bytes": null, "sender_messages": null });
    assert_eq!(said, json!({ "name": "alice", "quota": none }));
    assert_eq!(admin(&["quota", "alice"]), "alice has the hub's own quota");
}
