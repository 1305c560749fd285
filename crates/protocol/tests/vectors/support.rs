//! Loading vectors and comparing refusals.

use std::path::PathBuf;

use aip_protocol::error::Refusal;
use aip_protocol::identity::{EndpointPolicy, Identity, Operation};
use aip_protocol::json::Json;
use aip_protocol::time::Timestamp;
use serde_json::Value;

pub(crate) fn path(file: &str) -> PathBuf {
    [env!("CARGO_MANIFEST_DIR"), "..", "..", "tests", "vectors", file]
        .iter()
        .collect()
}

pub(crate) fn read(file: &str) -> Vec<u8> {
    std::fs::read(path(file)).unwrap_or_else(|error| panic!("{file}: {error}"))
}

pub(crate) fn load(file: &str) -> Value {
    serde_json::from_slice(&read(file)).unwrap()
}

/// One case of a suite of ours.
pub(crate) struct Vector {
    pub(crate) name: String,
    pub(crate) input: Value,
    pub(crate) expected: Value,
}

/// Runs every vector of `aip/{suite}.json`, of which there are `count`, and counts them.
pub(crate) fn run(suite: &str, count: usize, check: impl Fn(&Vector, &Value)) {
    let file = load(&format!("aip/{suite}.json"));
    let mut ran = 0;
    for vector in file["vectors"].as_array().unwrap() {
        let vector = Vector {
            name: format!("{suite}/{}", vector["name"].as_str().unwrap()),
            input: vector["input"].clone(),
            expected: vector["expected"].clone(),
        };
        check(&vector, &file);
        ran += 1;
    }
    assert_eq!(ran, count, "{suite}");
}

impl Vector {
    /// The result is what the vector expects: this value seen through `show`, or this refusal.
    pub(crate) fn expect<T>(&self, result: Result<T, Refusal>, show: impl FnOnce(T, &Value)) {
        expect(&self.name, &self.expected, result, show);
    }
}

pub(crate) fn expect<T>(
    name: &str,
    expected: &Value,
    result: Result<T, Refusal>,
    show: impl FnOnce(T, &Value),
) {
    match (expected.get("error"), result) {
        (None, Ok(value)) => show(value, expected),
        (None, Err(refusal)) => panic!("{name}: refused with {refusal}"),
        (Some(error), Ok(_)) => panic!("{name}: should be refused with {error}"),
        (Some(error), Err(refusal)) => {
            assert_eq!(refusal.code.as_str(), error, "{name}: {refusal}");
            assert_eq!(u64::from(refusal.code.status()), expected["status"], "{name}");
        }
    }
}

pub(crate) fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_else(|| panic!("not text: {value}"))
}

pub(crate) fn hex_bytes(value: &Value) -> Vec<u8> {
    hex::decode(text(value)).unwrap()
}

pub(crate) fn hex_32(value: &Value) -> [u8; 32] {
    hex_bytes(value).try_into().unwrap()
}

pub(crate) fn time(value: &Value) -> Timestamp {
    Timestamp::parse(text(value)).unwrap()
}

pub(crate) fn json(value: &Value) -> Json {
    Json::try_from(value.clone()).unwrap()
}

pub(crate) fn operations(values: &Value) -> Vec<Operation> {
    let operation = |value| Operation::from_json(json(value), EndpointPolicy::default()).unwrap();
    values.as_array().unwrap().iter().map(operation).collect()
}

pub(crate) fn identity(history: &Value) -> Identity {
    Identity::replay(operations(history)).unwrap()
}
