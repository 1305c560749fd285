//! The commands `aip search` and `aip listing` as processes.

use serde_json::Value;

use crate::aip::Aip;
use crate::fake::FakeHub;
use crate::fake::listings::PROVIDER_KEY;

fn values(said: &str) -> Vec<Value> {
    said.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

const TABLE: &str = "sku;name;price;brand\nT-1;Green tea;3,50;Acme\nT-2;Pot;\"1,299\";Acme\nT-3;\u{1b}[2JBad;1;\nT-4;東京 Tea;12;Acme\n";

#[tokio::test]
async fn a_listing_is_published_shown_found_and_deleted() {
    let hub = FakeHub::start().await;
    let (shop, buyer) = (Aip::registered(&hub, "shop").await, Aip::new(&hub));
    let said = shop
        .succeeds(&[
            "listing",
            "publish",
            "--name",
            "Green tea",
            "--price",
            "3.50",
            "--currency",
            "eur",
            "--attr",
            "brand=Acme",
            "--tag",
            "tea",
        ])
        .await;
    assert!(said.contains("is stored as version"), "{said}");
    let said = buyer.succeeds(&["search", "Green", "tea"]).await;
    let lines: Vec<&str> = said.lines().collect();
    assert_eq!(
        lines[0].split_whitespace().collect::<Vec<_>>(),
        ["#", "NAME", "PRICE", "TRUST", "AGENT"]
    );
    let handle = format!("shop#{}", hub.domain);
    assert_eq!(
        lines[1].split_whitespace().collect::<Vec<_>>(),
        ["1", "Green", "tea", "3.50", "EUR", "0.25", &handle]
    );
    let found = values(&buyer.succeeds(&["--json", "search", "Green"]).await);
    let id = found[0]["results"][0]["id"].as_str().unwrap();
    assert_eq!(found[0]["results"][0]["price"], "3.50", "exact text");
    let said = buyer.succeeds(&["listing", "show", id]).await;
    assert!(
        said.contains(&format!("signed by {handle}")) && said.contains("brand: Acme"),
        "{said}"
    );
    let said = shop.succeeds(&["listing", "show", "green-tea"]).await;
    assert!(said.contains("price: 3.50 EUR"), "{said}");
    let said = shop.succeeds(&["listing", "status", "green-tea"]).await;
    assert!(said.contains("indexed: true"), "{said}");
    let said = buyer.succeeds(&["listing", "list", &handle]).await;
    assert!(said.contains("green-tea") && said.contains("ID"), "{said}");
    let said = shop.succeeds(&["listing", "delete", "green-tea"]).await;
    assert!(said.contains("is taken away"), "{said}");
    shop.fails(3, &["listing", "delete", "green-tea"]).await;
    assert_eq!(buyer.succeeds(&["search", "Green"]).await, "");
    assert_eq!(shop.succeeds(&["listing", "list"]).await, "");
}

#[tokio::test]
async fn a_file_is_published_and_what_is_wrong_with_it_is_said_first() {
    let hub = FakeHub::start().await;
    let shop = Aip::registered(&hub, "shop").await;
    let file = r#"{"listing_id":"w","kind":"capability","name":"Weather","price":"0.01","currency":"USD","input_schema":{"a":1}}"#;
    std::fs::write(shop.path("w.json"), file).unwrap();
    let said = shop
        .succeeds(&["listing", "publish", "w.json", "--dry-run"])
        .await;
    assert!(
        said.contains("\"input_schema\"") && hub.state().listings.is_empty(),
        "{said}"
    );
    shop.succeeds(&["listing", "publish", "w.json"]).await;
    assert_eq!(hub.state().listings.len(), 1);
    std::fs::write(shop.path("bad.json"), file.replace("\"0.01\"", "0.01")).unwrap();
    shop.fails(2, &["listing", "publish", "bad.json"]).await;
    std::fs::write(shop.path("list.json"), format!("[{file}]")).unwrap();
    let said = shop.fails(2, &["listing", "publish", "list.json"]).await;
    assert!(said.contains("aip listing import list.json"), "{said}");
    for line in [
        &["listing", "publish"][..],
        &["listing", "publish", "w.json", "--name", "x"],
        &["listing", "publish", "--name", "x", "--price", "1"],
        &[
            "listing",
            "publish",
            "--name",
            "x",
            "--price",
            "1,5",
            "--currency",
            "EUR",
        ],
        &["listing", "publish", "--name", "!!!"],
        &["search", "x", "--limit", "0"],
        &["search", "x", "--attr", "novalue"],
    ] {
        shop.fails(2, line).await;
    }
}

#[tokio::test]
async fn an_import_reports_each_row_and_can_be_repeated() {
    let hub = FakeHub::start().await;
    let shop = Aip::registered(&hub, "shop").await;
    std::fs::write(shop.path("t.csv"), TABLE).unwrap();
    let import = ["listing", "import", "t.csv", "--currency", "EUR"];
    let output = shop.run(&[&import[..], &["--dry-run"]].concat()).await;
    let said = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(
        said.contains("row 2, line 3 (T-2): price: `1,299` is not one clear number; write 1299 or 1.299"),
        "{said}"
    );
    assert!(
        said.contains("2 of 4 rows are good; nothing was published") && !said.contains('\u{1b}'),
        "{said}"
    );
    assert!(hub.state().listings.is_empty());
    let rows = |output: std::process::Output| values(&String::from_utf8(output.stdout).unwrap());
    let first = rows(shop.run(&[&["--json"], &import[..]].concat()).await);
    let statuses = |rows: &[Value]| {
        rows.iter()
            .filter_map(|row| row["status"].as_str())
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    assert_eq!(statuses(&first), ["stored", "unread", "unread", "stored"]);
    assert_eq!(first[1]["flaws"][0]["member"], "price");
    assert_eq!(
        (&first[4]["rows"], &first[4]["stored"], &first[4]["unread"]),
        (&4.into(), &2.into(), &2.into())
    );
    let second = rows(shop.run(&[&["--json"], &import[..]].concat()).await);
    assert_eq!(statuses(&second), ["unchanged", "unread", "unread", "unchanged"]);
    assert_eq!(hub.bodies("/api/v1/listings").len(), 2);
    let said = shop
        .fails(1, &["listing", "import", "t.csv", "--format", "manifest"])
        .await;
    assert!(said.contains("t.csv: this cannot be read as manifest"), "{said}");
}

#[tokio::test]
async fn a_provider_key_stands_in_for_a_signature() {
    let hub = FakeHub::start().await;
    let shop = Aip::new(&hub);
    std::fs::write(shop.path("key"), format!("{PROVIDER_KEY}\n")).unwrap();
    let feed = "<rss><channel><item><id>1</id><title>Tea</title><price>3.50 EUR</price></item>\
        <item><id>refuse-me</id><title>Pot</title></item></channel></rss>";
    std::fs::write(shop.path("feed.xml"), feed).unwrap();
    let import = ["listing", "import", "feed.xml", "--provider-key-file", "key"];
    let output = shop.run(&import).await;
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(
        said.contains("row 2 (refuse-me): member_invalid: as scripted"),
        "{said}"
    );
    assert!(
        said.contains("1 published, 0 unchanged, 1 refused by the hub"),
        "{said}"
    );
    assert_eq!(output.status.code(), Some(1));
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(
        said.contains("2 rows, read as merchant") && !said.contains(PROVIDER_KEY),
        "{said}"
    );
    shop.succeeds(&["listing", "delete", "1", "--provider-key-file", "key"])
        .await;
    std::fs::write(shop.path("key"), "wrong").unwrap();
    shop.fails(3, &import).await;
}
