//! Schemas of strangers: understood where they can be, and harmless.

use serde_json::{Value, json};

use super::{Checked, Fault, Schema, SchemaError};

fn check(schema: &Schema, value: &Value) -> Checked {
    schema.check(value, value.to_string().len())
}

fn schema(value: Value) -> Schema {
    Schema::new(value).expect("a schema within bounds")
}

#[test]
fn says_where_a_value_does_not_fit_and_not_what_it_is() {
    let schema = schema(json!({
        "type": "object",
        "properties": { "puzzle": { "type": "object", "properties": { "T": { "type": "integer", "maximum": 9 } } } },
    }));
    assert_eq!(check(&schema, &json!({ "puzzle": { "T": 9 } })), Checked::Fits);
    let faulty = check(&schema, &json!({ "puzzle": { "T": "a secret" } }));
    let Checked::Faulty(faults) = faulty else {
        panic!("{faulty:?}");
    };
    let [Fault { path, message }] = faults.as_slice() else {
        panic!("{faults:?}");
    };
    assert_eq!(path, "/puzzle/T");
    assert!(
        message.contains("integer") && !message.contains("secret"),
        "{message}"
    );
}

/// Pitfalls 36, 55 and 56: names that are words of a language, or look like secrets, are names like others.
#[test]
fn properties_may_have_any_name() {
    let names = [
        "seed",
        "token",
        "secret",
        "credit_card",
        "lambda",
        "from",
        "config",
        "run_manager",
        "$id",
        "id",
    ];
    let properties: serde_json::Map<String, Value> = names
        .iter()
        .map(|name| ((*name).to_owned(), json!({ "type": ["string", "null"] })))
        .collect();
    let schema = schema(json!({
        "type": "object",
        "properties": properties,
        "required": names,
        "additionalProperties": false,
    }));
    let value: serde_json::Map<String, Value> = names
        .iter()
        .map(|name| ((*name).to_owned(), json!("x")))
        .collect();
    assert_eq!(check(&schema, &value.into()), Checked::Fits);
}

#[test]
fn unions_alternatives_and_references_into_the_schema_are_understood() {
    let schema = schema(json!({
        "$schema": "http://json-schema.org/draft-07/schema#",
        "$id": "https://elsewhere.example/s",
        "definitions": { "point": { "type": "array", "items": { "type": "number" }, "minItems": 2, "maxItems": 2 } },
        "type": "object",
        "properties": {
            "points": { "type": "array", "items": { "oneOf": [{ "$ref": "#/definitions/point" }, { "type": "null" }] } },
        },
    }));
    assert_eq!(
        check(&schema, &json!({ "points": [[1, 2.5], null] })),
        Checked::Fits
    );
    assert!(matches!(
        check(&schema, &json!({ "points": [[1]] })),
        Checked::Faulty(_)
    ));
}

/// Pitfall 65, and schemas that a stranger wrote to be hard to check: each is dropped, none does harm.
#[test]
fn hostile_schemas_are_not_used() {
    for (value, error) in [
        (json!(0), SchemaError::Form),
        (json!("x"), SchemaError::Form),
        (json!({ "$ref": "#" }), SchemaError::Reference),
        (json!({ "$ref": "http://127.0.0.1/x" }), SchemaError::Reference),
        (json!({ "$ref": "file:///etc/passwd" }), SchemaError::Reference),
        (json!({ "$ref": "#/nowhere" }), SchemaError::Reference),
        (
            json!({ "a": { "$ref": "#/b" }, "b": { "allOf": [{ "$ref": "#/a" }] } }),
            SchemaError::Reference,
        ),
        (
            json!({ "%61": {}, "a": { "allOf": [{ "$ref": "#/%61" }] }, "allOf": [{ "$ref": "#/%61" }] }),
            SchemaError::Reference,
        ),
        (json!({ "$dynamicRef": "#x" }), SchemaError::Reference),
        (
            json!({ "not": { "$schema": "http://json-schema.org/draft-04/schema#" } }),
            SchemaError::Reference,
        ),
        (
            json!({ "properties": { "a": { "$id": "urn:x", "$ref": "#/b" } } }),
            SchemaError::Reference,
        ),
        (json!({ "description": "x".repeat(300_000) }), SchemaError::Size),
    ] {
        assert_eq!(Schema::new(value.clone()), Err(error), "{value}");
    }
    for value in [
        json!({ "required": "abc" }),
        json!({ "required": 0 }),
        json!({ "type": "text" }),
        json!({ "pattern": "(" }),
        json!({ "properties": { "a": { "pattern": "(?=a)b" } } }),
        json!({ "pattern": "(((a{100}){100}){100})" }),
        json!({ "$schema": "https://elsewhere.example/draft" }),
    ] {
        let schema = schema(value.clone());
        assert!(!schema.is_usable(), "{value}");
        assert_eq!(check(&schema, &json!("a")), Checked::NoSchema, "{value}");
    }
}

#[test]
fn references_do_not_make_a_small_schema_large() {
    let mut doubling = json!({ "a0": { "type": "string" } });
    for level in 1..20 {
        let below = json!({ "$ref": format!("#/a{}", level - 1) });
        doubling[format!("a{level}")] = json!({ "allOf": [below, below] });
    }
    assert_eq!(Schema::new(doubling), Err(SchemaError::Size));

    let mut deep = json!({ "a0": { "type": "string" } });
    for level in 1..32 {
        deep[format!("a{level}")] = json!({ "not": { "$ref": format!("#/a{}", level - 1) } });
    }
    assert_eq!(Schema::new(deep), Err(SchemaError::Size));

    let mut nested = json!({});
    for _ in 0..15 {
        nested = json!({ "properties": { "a": nested } });
    }
    assert!(Schema::new(nested.clone()).is_ok());
    assert_eq!(
        Schema::new(json!({ "properties": { "a": nested } })),
        Err(SchemaError::Size)
    );
}

/// A pattern that backtracking engines take for ever for.
#[test]
fn patterns_take_linear_time() {
    let schema = schema(json!({ "type": "string", "pattern": "^(a+)+$" }));
    let value = json!(format!("{}b", "a".repeat(50_000)));
    assert!(matches!(check(&schema, &value), Checked::Faulty(_)));
}

#[test]
fn what_would_take_too_long_is_not_checked() {
    let alternatives: Vec<Value> = (0..4_000).map(|number| json!(number)).collect();
    let schema = schema(json!({ "items": { "enum": alternatives } }));
    let value = json!(vec![0; 200_000]);
    assert_eq!(check(&schema, &value), Checked::TooLarge);
}

#[test]
fn formats_are_not_asserted() {
    for draft in ["draft-07/schema#", "draft-04/schema#"] {
        let schema =
            schema(json!({ "$schema": format!("http://json-schema.org/{draft}"), "format": "email" }));
        assert_eq!(check(&schema, &json!("nobody")), Checked::Fits, "{draft}");
    }
}

#[test]
fn a_schema_is_its_document() {
    let one = schema(json!({ "type": "object" }));
    assert_eq!(one, schema(json!({ "type": "object" })));
    assert_ne!(one, schema(json!({ "type": "array" })));
    assert!(schema(json!(true)).is_usable());
}

/// A shelf of a hundred thousand schemas holds their documents, and not what they are compiled to.
#[test]
fn what_is_only_looked_at_is_not_kept_compiled() {
    let schema = schema(json!({ "type": "object" }));
    assert!(schema.is_usable());
    assert!(schema.0.compiled.get().is_none());
    assert_eq!(check(&schema, &json!({})), Checked::Fits);
    assert!(schema.0.compiled.get().is_some());
}

#[test]
fn so_many_patterns_are_compiled_and_no_more() {
    let of = |count: usize| {
        let patterns = (0..count).map(|number| json!({ "pattern": format!("\\w{number}") }));
        Schema::new(json!({ "anyOf": patterns.collect::<Vec<Value>>() }))
    };
    assert!(of(crate::limits::SCHEMA_PATTERNS_MAX).is_ok());
    assert_eq!(of(crate::limits::SCHEMA_PATTERNS_MAX + 1), Err(SchemaError::Size));
    let named: serde_json::Map<String, Value> = (0..65)
        .map(|number| (format!("^a{number}$"), json!(true)))
        .collect();
    assert_eq!(
        Schema::new(json!({ "patternProperties": named })),
        Err(SchemaError::Size)
    );
    // A property of this name is no pattern.
    assert!(Schema::new(json!({ "properties": { "pattern": { "type": "string" } } })).is_ok());
}
