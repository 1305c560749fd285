//! Whether the input is one that the provider takes (step 11), and the result one that it promised.

use serde_json::{Value, json};

use super::request::Request;
use crate::limits::{CHECK_WORK_INLINE_MAX, INPUT_BYTES_MAX};
use crate::offer::Offer;
use crate::refusal::{MarketCode, MarketRefusal};
use crate::schema::{Checked, Fault, Schema};

/// Checks the input.
pub(super) async fn check(offer: &Offer, request: &Request) -> Result<(), MarketRefusal> {
    if request.is_too_large() {
        let detail = format!("The input has at most {INPUT_BYTES_MAX} bytes as JSON.");
        return Err(MarketRefusal::new(MarketCode::InputTooLarge, detail));
    }
    let Some(schema) = &offer.input_schema else {
        return Ok(());
    };
    let absent = missing(schema.value(), &request.input);
    if !absent.is_empty() {
        return Err(incomplete(offer, &absent));
    }
    let (detail, faults) = match checked(schema, &request.input, request.input_bytes).await {
        Checked::Fits => return Ok(()),
        Checked::Faulty(faults) => ("The input is not what the capability takes.", faults),
        Checked::TooLarge => ("The input is too large to be checked.", Vec::new()),
        Checked::NoSchema => {
            let detail = "This capability has no schema that can be checked.";
            return Err(MarketRefusal::new(MarketCode::NotInvocable, detail));
        }
    };
    let problems = faults
        .into_iter()
        .map(|Fault { path, message }| json!({ "path": path, "message": message }));
    Err(MarketRefusal::new(MarketCode::InputInvalid, detail)
        .with("capability_id", offer.capability_id.as_str())
        .with("problems", problems.collect::<Value>()))
}

/// Checks a value; what may take long is checked elsewhere, so that others are answered meanwhile.
pub(super) async fn checked(schema: &Schema, value: &Value, bytes: usize) -> Checked {
    if schema.work(bytes) <= CHECK_WORK_INLINE_MAX {
        return schema.check(value, bytes);
    }
    let (schema, value) = (schema.clone(), value.clone());
    let check = tokio::task::spawn_blocking(move || schema.check(&value, bytes));
    check.await.unwrap_or(Checked::TooLarge)
}

fn incomplete(offer: &Offer, absent: &[Vec<&str>]) -> MarketRefusal {
    let sets: Vec<String> = absent.iter().map(|names| names.join(", ")).collect();
    let detail = format!(
        "{} needs {} in its input.",
        offer.capability_id,
        sets.join(", or ")
    );
    let missing = match absent {
        [names] => json!(names),
        sets => json!(sets),
    };
    MarketRefusal::new(MarketCode::InputIncomplete, detail)
        .with("missing", missing)
        .with("accepts", json!(absent))
        .with("capability_id", offer.capability_id.as_str())
}

/// The sets of names of which one is needed, and none is there whole; empty: nothing is missing. As AIMarket reads a schema:
/// what `required` names, and otherwise the alternatives of `anyOf` and `oneOf` at the top.
fn missing<'a>(schema: &'a Value, input: &Value) -> Vec<Vec<&'a str>> {
    let always = absent_of(schema, input);
    if !always.is_empty() {
        return vec![always];
    }
    let alternatives: Vec<&Value> = ["anyOf", "oneOf"]
        .into_iter()
        .filter_map(|name| schema.get(name)?.as_array())
        .flatten()
        .filter(|rule| rule.get("required").is_some_and(Value::is_array))
        .collect();
    let gaps: Vec<Vec<&str>> = alternatives.iter().map(|rule| absent_of(rule, input)).collect();
    if gaps.iter().any(Vec::is_empty) {
        Vec::new()
    } else {
        gaps
    }
}

fn absent_of<'a>(rule: &'a Value, input: &Value) -> Vec<&'a str> {
    rule.get("required")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .filter(|name| input.get(name).is_none())
        .collect()
}
