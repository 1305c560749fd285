//! §2 and §4: strict JSON and times; RFC 8785; the JSON parsing test suite.

use std::collections::BTreeMap;

use aip_protocol::error::{ErrorCode, Refusal};
use aip_protocol::json::Json;
use aip_protocol::time::Timestamp;

use crate::support::{hex_bytes, load, path, read, run, text};

#[test]
fn strict_json() {
    run("strict_json", 23, |vector, _| {
        let bytes = match vector.input.get("hex") {
            Some(hex) => hex_bytes(hex),
            None => text(&vector.input["text"]).as_bytes().to_vec(),
        };
        vector.expect(Json::parse(&bytes), |json, _| {
            assert_eq!(Json::parse(&json.to_jcs()).unwrap(), json, "{}", vector.name);
        });
    });
}

#[test]
fn times() {
    run("times", 14, |vector, _| {
        // A number where a time is expected is refused by whoever reads the member.
        let parsed = vector.input.as_str().map_or_else(
            || Err(Refusal::new(ErrorCode::MemberInvalid, "not text")),
            |text| Timestamp::parse(text).map_err(Refusal::from),
        );
        vector.expect(parsed, |time, expected| {
            assert_eq!(time.unix_millis(), expected["ms"], "{}", vector.name);
        });
    });
}

/// Files of RFC 8785 with floats are refused here by design; the others canonicalise to the byte.
#[test]
fn row_19_the_canonical_form_is_that_of_rfc_8785() {
    let mut ran = 0;
    for (name, has_floats) in [
        ("arrays", false),
        ("french", false),
        ("structures", true),
        ("values", true),
    ] {
        let parsed = Json::parse(&read(&format!("jcs/input/{name}.json")));
        let output = read(&format!("jcs/output/{name}.json"));
        let hex: String = String::from_utf8(read(&format!("jcs/outhex/{name}.txt"))).unwrap();
        assert_eq!(
            hex::decode(hex.split_whitespace().collect::<String>()).unwrap(),
            output,
            "{name}"
        );
        match parsed {
            Err(refusal) => assert!(
                has_floats && refusal.code == ErrorCode::JsonInvalid,
                "{name}: {refusal}"
            ),
            Ok(json) => assert_eq!(json.to_jcs(), output, "{name}"),
        }
        ran += 1;
    }
    assert_eq!(ran, 4);
}

/// A number is ours when it is a whole one within ±(2^53-1), and then its text is that of RFC 8785;
/// every other one is refused, also those that JCS could write.
#[test]
fn rfc_8785_numbers() {
    let file = load("jcs/numbers.json");
    let (mut ran, mut accepted) = (0, 0);
    for case in file.as_array().unwrap() {
        let bits = u64::from_str_radix(text(&case["ieee"]), 16).unwrap();
        let number = f64::from_bits(bits);
        ran += 1;
        let Some(written) = case["text"].as_str() else {
            assert!(!number.is_finite());
            continue;
        };
        let is_ours = number.fract() == 0.0 && number.abs() < 9_007_199_254_740_992.0;
        match Json::parse(written.as_bytes()) {
            Ok(json) => assert_eq!((json.to_jcs(), is_ours), (written.as_bytes().to_vec(), true)),
            Err(refusal) => assert!(!is_ours && refusal.code == ErrorCode::JsonInvalid, "{written}"),
        }
        accepted += u32::from(is_ours);
    }
    assert_eq!((ran, accepted), (643, 160));
}

/// Valid JSON that no signed object may hold: floats and duplicate members.
const VALID_BUT_NOT_OURS: [&str; 19] = [
    "y_number.json",
    "y_number_0e+1.json",
    "y_number_0e1.json",
    "y_number_double_close_to_zero.json",
    "y_number_int_with_exp.json",
    "y_number_minus_zero.json",
    "y_number_negative_zero.json",
    "y_number_real_capital_e.json",
    "y_number_real_capital_e_neg_exp.json",
    "y_number_real_capital_e_pos_exp.json",
    "y_number_real_exponent.json",
    "y_number_real_fraction_exponent.json",
    "y_number_real_neg_exp.json",
    "y_number_real_pos_exponent.json",
    "y_number_simple_real.json",
    "y_object_duplicated_key.json",
    "y_object_duplicated_key_and_value.json",
    "y_object_extreme_numbers.json",
    "y_structure_lonely_negative_real.json",
];

#[test]
fn json_test_suite() {
    let mut counts = BTreeMap::new();
    for entry in std::fs::read_dir(path("json-test-suite/test_parsing")).unwrap() {
        let entry = entry.unwrap();
        let name = entry.file_name().into_string().unwrap();
        let parsed = Json::parse(&std::fs::read(entry.path()).unwrap());
        let is_refused_by_design = VALID_BUT_NOT_OURS.contains(&name.as_str());
        match name.as_bytes()[0] {
            b'y' => assert_eq!(parsed.is_err(), is_refused_by_design, "{name}: {parsed:?}"),
            // What the standard leaves open is refused throughout: strings that are not Unicode,
            // numbers out of range, byte order marks, deep nesting.
            _ => assert!(parsed.is_err(), "{name}: {parsed:?}"),
        }
        *counts.entry(name.as_bytes()[0]).or_insert(0) += 1;
    }
    assert_eq!(counts, BTreeMap::from([(b'i', 35), (b'n', 188), (b'y', 95)]));
}
