//! `aip-hub peers`, which speaks to a running hub.

use serde_json::Value;

use super::{Folder, Hub, bad, good};

/// What is known of the peer.
fn shown(data: &str) -> Value {
    let shown = good(&["peers", "--json", "show", "two.example", "--data", data]);
    serde_json::from_str(shown.trim()).unwrap()
}

#[test]
fn the_operator_decides_about_peers() {
    let folder = Folder::new();
    let data = folder.at("data");
    std::fs::create_dir(folder.path("data")).unwrap();
    let _hub = Hub::start(&data);
    assert_eq!(good(&["peers", "list", "--data", &data]), "");
    for command in ["show", "retry", "repin"] {
        let words = bad(&["peers", command, "two.example", "--data", &data]);
        assert!(words.contains("not_found"), "{command}: {words}");
    }
    for (command, stance) in [
        ("allow", "allowed"),
        ("block", "blocked"),
        ("limit", "limited"),
        ("undecide", "undecided"),
    ] {
        let said = good(&["peers", command, "two.example", "--data", &data]);
        assert_eq!(said.trim(), format!("two.example is {stance}"));
        assert_eq!(shown(&data)["stance"], stance);
    }
    let said = good(&["peers", "retry", "two.example", "--data", &data]);
    assert_eq!(said.trim(), "two.example is tried at once");
    let said = good(&["peers", "repin", "two.example", "--data", &data]);
    assert!(said.starts_with("two.example shows a key"), "{said}");
    good(&[
        "peers",
        "limit",
        "two.example",
        "--items-per-sec",
        "5",
        "--data",
        &data,
    ]);
    assert_eq!(shown(&data)["limits"]["items_per_sec"], 5);
    good(&["peers", "limit", "two.example", "--reset", "--data", &data]);
    assert!(shown(&data)["limits"]["items_per_sec"].is_null());
    let audit = good(&["peers", "audit", "--data", &data]);
    let actions: Vec<&str> = audit
        .lines()
        .filter_map(|line| line.split_whitespace().nth(2))
        .collect();
    assert_eq!(
        actions,
        [
            "allow", "block", "limit", "undecide", "retry", "repin", "limits", "limits"
        ]
    );
}

#[test]
fn what_is_no_peer_is_refused() {
    let folder = Folder::new();
    let data = folder.at("data");
    std::fs::create_dir(folder.path("data")).unwrap();
    let _hub = Hub::start(&data);
    let words = bad(&["peers", "allow", "../agents", "--data", &data]);
    assert!(words.contains("is no domain"), "{words}");
    let words = bad(&["peers", "block", "localhost:8080", "--data", &data]);
    assert!(words.contains("this hub's own domain"), "{words}");
    let words = bad(&[
        "peers",
        "forget-history",
        "did:aip:two.example:bob",
        "--data",
        &data,
    ]);
    assert!(words.contains("knows no history"), "{words}");
    assert_eq!(good(&["peers", "evidence", "--data", &data]), "");
}
