//! Order, escapes and refusals of strict JSON beyond the shared vectors.

use super::*;

fn parse(text: &str) -> Result<Json, Refusal> {
    Json::parse(text.as_bytes())
}

#[test]
fn members_sort_by_utf16_code_units() {
    let names = ["\u{fb33}", "😀", "\u{e000}", "\u{d7ff}", "é", "z", "", "a", "aa"];
    let object: Object = names.iter().map(|name| (*name, Json::Null)).collect();
    let sorted: Vec<&str> = object.iter().map(|(name, _)| name).collect();
    let mut expected = names.to_vec();
    expected.sort_by_key(|name| name.encode_utf16().collect::<Vec<_>>());
    assert_eq!(sorted, expected);
}

#[test]
fn refuses_100_000_open_brackets_without_overflow() {
    assert_eq!(
        parse(&"[".repeat(100_000)).unwrap_err().code,
        ErrorCode::JsonInvalid
    );
    assert_eq!(
        parse(&"{\"a\":".repeat(100_000)).unwrap_err().code,
        ErrorCode::JsonInvalid
    );
}

#[test]
fn counts_levels_from_the_outermost() {
    let nested = |levels: usize| format!("{}{}", "[".repeat(levels), "]".repeat(levels));
    assert!(parse(&nested(32)).is_ok());
    assert_eq!(parse(&nested(33)).unwrap_err().code, ErrorCode::JsonInvalid);
    let mut built = Json::Null;
    for _ in 0..33 {
        built = Json::Array(vec![built]);
    }
    assert!(built.check().is_err());
    assert!(built.as_array().unwrap()[0].check().is_ok());
}

#[test]
fn converts_to_and_from_serde_json() {
    let json = parse(r#"{"n":-7,"s":"é","a":[null,true,{}]}"#).unwrap();
    let value: Value = json.clone().into();
    assert_eq!(
        value,
        serde_json::json!({"n": -7, "s": "é", "a": [null, true, {}]})
    );
    assert_eq!(Json::try_from(value).unwrap(), json);
    assert!(Json::try_from(serde_json::json!({"x": 1.5})).is_err());
    assert!(Json::try_from(9_007_199_254_740_992_u64).is_err());
    assert_eq!(serde_json::to_string(&json).unwrap(), json.to_string());
}

#[test]
fn an_object_is_a_sorted_map() {
    let mut object = Object::new();
    assert_eq!(object.insert("b", 1_u32), None);
    assert_eq!(object.insert("a", "x"), None);
    assert_eq!(object.insert("b", 2_u32), Some(Json::Int(1)));
    assert_eq!(object.remove("a"), Some(Json::from("x")));
    assert_eq!(
        (object.len(), object.contains("a"), object.get("b")),
        (1, false, Some(&Json::Int(2)))
    );
    let mut bytes = Vec::new();
    object.write_jcs_without(&["b"], &mut bytes);
    assert_eq!(bytes, b"{}");
}
