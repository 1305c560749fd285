//! `aip-hub accounts` and `aip-hub payouts`, which speak to a running hub.

use serde_json::Value;

use super::{Folder, Hub, bad, good};

/// What a command prints as JSON: its last line.
fn read(arguments: &[&str]) -> Value {
    let said = good(arguments);
    serde_json::from_str(said.lines().last().unwrap()).unwrap()
}

/// An account with 2.5 dollars, at the hub of this folder.
fn account(data: &str) -> String {
    let made = read(&[
        "accounts", "--json", "create", "--label", "a friend", "--grant", "2.5", "--data", data,
    ]);
    assert!(made["api_key"].as_str().unwrap().starts_with("aimk_"), "{made}");
    made["account_id"].as_str().unwrap().to_owned()
}

#[test]
fn the_operator_puts_money_in_and_sees_the_books() {
    let folder = Folder::new();
    let data = folder.at("data");
    std::fs::create_dir(folder.path("data")).unwrap();
    let _hub = Hub::start(&data);
    assert_eq!(good(&["accounts", "list", "--data", &data]), "");
    let id = &account(&data);
    let credit = |amount| {
        [
            "accounts",
            "credit",
            id,
            amount,
            "--reference",
            "bank 1",
            "--data",
            &data,
        ]
    };
    assert_eq!(good(&credit("0.25")).trim(), format!("{id} has 2.75 USD"));
    assert_eq!(
        good(&credit("0.25")).trim(),
        format!("{id} has 2.75 USD; the same was put in before")
    );
    assert!(bad(&credit("1")).contains("id_reused"));
    let ledger = good(&["accounts", "ledger", id, "--data", &data]);
    assert_eq!(ledger.lines().count(), 2, "{ledger}");
    assert!(good(&["accounts", "list", "--data", &data]).contains("active"));
    assert_eq!(good(&["payouts", "list", "--data", &data]), "");
    let pay = [
        "payouts",
        "add",
        "shop#localhost:8080",
        "1",
        "--reference",
        "x",
        "--data",
        &data,
    ];
    let words = bad(&pay);
    assert!(
        words.contains("recipient_unknown") && words.contains("never sold anything here"),
        "{words}"
    );
    let books = read(&["payouts", "--json", "books", "--data", &data]);
    assert_eq!(
        (&books["balance"], &books["credited"]),
        (&true.into(), &"2.75".into())
    );
}

#[test]
fn the_operator_decides_what_an_account_spends() {
    let folder = Folder::new();
    let data = folder.at("data");
    std::fs::create_dir(folder.path("data")).unwrap();
    let _hub = Hub::start(&data);
    let id = &account(&data);
    let key = good(&[
        "accounts", "key", id, "--label", "small", "--budget", "1", "--data", &data,
    ]);
    let key = key.split_whitespace().next().unwrap();
    let said = good(&["accounts", "budget", id, "0.5", "--key", key, "--data", &data]);
    assert_eq!(said.trim(), format!("{key} may spend 0.5 USD in all"));
    let said = good(&["accounts", "budget", id, "--none", "--data", &data]);
    assert_eq!(said.trim(), format!("{id} has no ceiling"));
    let said = good(&["accounts", "suspend", id, "--data", &data]);
    assert_eq!(said.trim(), format!("{id} is suspended"));
    let shown = read(&["accounts", "--json", "show", id, "--data", &data]);
    assert_eq!(
        (&shown["balance"], &shown["standing"]),
        (&"2.5".into(), &"suspended".into())
    );
    assert_eq!(shown["keys"][1]["budget"], "0.5");
    let shown = good(&["accounts", "show", id, "--data", &data]);
    assert!(
        shown.contains("a friend") && shown.contains("of 0.5  small"),
        "{shown}"
    );
    good(&["accounts", "unsuspend", id, "--data", &data]);
    assert!(good(&["accounts", "list", "--data", &data]).contains("active"));
}

#[test]
fn what_is_no_account_is_refused() {
    let folder = Folder::new();
    let data = folder.at("data");
    std::fs::create_dir(folder.path("data")).unwrap();
    let _hub = Hub::start(&data);
    let words = bad(&["accounts", "show", "../agents", "--data", &data]);
    assert!(words.contains("is no account"), "{words}");
    let words = bad(&["accounts", "show", "acct_0", "--data", &data]);
    assert!(words.contains("not_found"), "{words}");
    let words = bad(&["accounts", "create", "--grant", "much", "--data", &data]);
    assert!(words.contains("member_invalid"), "{words}");
    let words = bad(&[
        "accounts",
        "create",
        "--owner",
        "nobody#localhost:8080",
        "--data",
        &data,
    ]);
    assert!(words.contains("not_found"), "{words}");
    let words = bad(&["accounts", "budget", "acct_0", "--data", &data]);
    assert!(words.contains("<AMOUNT>"), "{words}");
}

#[test]
fn accounts_are_in_a_backup() {
    let folder = Folder::new();
    let (data, new, backup) = (folder.at("data"), folder.at("new"), folder.at("backup"));
    std::fs::create_dir(folder.path("data")).unwrap();
    let hub = Hub::start(&data);
    let id = &account(&data);
    good(&["backup", "--data", &data, "--to", &backup]);
    assert!(hub.terminate().0.success());
    good(&["restore", "--from", &backup, "--data", &new]);
    let _restored = Hub::start(&new);
    let shown = read(&["accounts", "--json", "show", id, "--data", &new]);
    assert_eq!(shown["balance"], "2.5");
    let books = read(&["payouts", "--json", "books", "--data", &new]);
    assert_eq!(
        (&books["balance"], &books["credited"]),
        (&true.into(), &"2.5".into())
    );
}
