//! How large a schema is when its references are followed.

use std::collections::HashMap;

use serde_json::Value;

use super::SchemaError;

/// References that may lie within each other.
const NESTED_MAX: usize = 32;

/// Values in a schema, each `$ref` counted as what it points to; `Size` beyond `max`.
///
/// Whatever looks like a reference counts as one, also inside of examples: what is refused too much can be written otherwise.
pub(super) fn values(schema: &Value, max: u64) -> Result<u64, SchemaError> {
    Measure {
        root: schema,
        max,
        known: HashMap::new(),
        open: Vec::new(),
    }
    .value(schema)
}

struct Measure<'a> {
    root: &'a Value,
    max: u64,
    /// Of every reference that was followed to its end, how large it is.
    known: HashMap<&'a str, u64>,
    /// The references that are being followed.
    open: Vec<&'a str>,
}

impl<'a> Measure<'a> {
    fn value(&mut self, value: &'a Value) -> Result<u64, SchemaError> {
        let mut sum: u64 = 1;
        match value {
            Value::Object(members) => {
                for (name, member) in members {
                    let count = match (name.as_str(), member) {
                        ("$ref", Value::String(pointer)) => self.reference(pointer)?,
                        (
                            "$dynamicRef" | "$recursiveRef" | "$anchor" | "$dynamicAnchor",
                            Value::String(_),
                        ) => {
                            return Err(SchemaError::Reference);
                        }
                        ("$id" | "id", Value::String(_)) if !std::ptr::eq(value, self.root) => {
                            return Err(SchemaError::Reference);
                        }
                        _ => self.value(member)?,
                    };
                    sum = self.within(sum.saturating_add(count))?;
                }
            }
            Value::Array(items) => {
                for item in items {
                    let count = self.value(item)?;
                    sum = self.within(sum.saturating_add(count))?;
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
        Ok(sum)
    }

    fn reference(&mut self, pointer: &'a str) -> Result<u64, SchemaError> {
        if let Some(known) = self.known.get(pointer) {
            return Ok(*known);
        }
        if self.open.len() >= NESTED_MAX || self.open.contains(&pointer) {
            return Err(SchemaError::Reference);
        }
        let target = pointer
            .strip_prefix('#')
            .and_then(|path| self.root.pointer(path))
            .ok_or(SchemaError::Reference)?;
        self.open.push(pointer);
        let count = self.value(target)?;
        self.open.pop();
        self.known.insert(pointer, count);
        Ok(count)
    }

    fn within(&self, count: u64) -> Result<u64, SchemaError> {
        if count <= self.max {
            Ok(count)
        } else {
            Err(SchemaError::Size)
        }
    }
}
