//! The table of error codes: equal to its page, equal to §7 of the specification.

#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use std::collections::BTreeSet;

use aip_protocol::error::ErrorCode;

fn doc(file: &str) -> String {
    let path = format!("{}/../../docs/protocol/{file}", env!("CARGO_MANIFEST_DIR"));
    std::fs::read_to_string(path).unwrap()
}

#[test]
fn the_page_is_made_from_the_code() {
    let is_same = doc("errors.md") == ErrorCode::page();
    assert!(
        is_same,
        "run `cargo run -p aip-protocol --example errors_page > docs/protocol/errors.md`"
    );
}

/// The rows of §7: `| 400 | `code`, … |`, two statuses in a row split by ` / ` in both cells.
#[test]
fn the_codes_are_those_of_the_specification() {
    let spec = doc("aip-v1.md");
    let section = spec
        .split("\n## 7. Errors\n")
        .nth(1)
        .unwrap()
        .split("\n## ")
        .next()
        .unwrap();
    let rows = section
        .lines()
        .filter(|line| line.starts_with("| ") && line.contains('`'));
    let mut wanted = BTreeSet::new();
    for row in rows {
        let cells: Vec<&str> = row.trim_matches('|').split(" | ").collect();
        for (status, codes) in cells[0].split(" / ").zip(cells[1].split(" / ")) {
            let codes = codes
                .split(',')
                .map(|code| code.trim().trim_matches('`').to_owned());
            wanted.extend(codes.map(|code| (status.trim().parse::<u16>().unwrap(), code)));
        }
    }
    let ours: BTreeSet<(u16, String)> = ErrorCode::ALL
        .iter()
        .map(|code| (code.status(), code.to_string()))
        .collect();
    assert_eq!(ours, wanted);
    assert_eq!(ErrorCode::ALL.len(), 68);
}

#[test]
fn every_code_reads_back_and_says_something() {
    for code in ErrorCode::ALL {
        assert_eq!(code.as_str().parse(), Ok(*code));
        for sentence in [code.meaning(), code.action()] {
            assert!(sentence.ends_with('.') && sentence.len() > 5, "{code}");
        }
    }
    assert!("no_such_code".parse::<ErrorCode>().is_err());
}
