//! How large a schema is when its references are followed.

use std::collections::HashMap;

use serde_json::Value;

use super::SchemaError;
use crate::limits::{SCHEMA_LEVELS_MAX, SCHEMA_VALUES_MAX};

/// Values in a schema, each `$ref` counted as what it points to; `Size` beyond [`SCHEMA_VALUES_MAX`] and
/// [`SCHEMA_LEVELS_MAX`].
///
/// Whatever looks like a reference counts as one, also inside of examples: what is refused too much can be written otherwise.
pub(super) fn values(schema: &Value) -> Result<u64, SchemaError> {
    let draft = schema.get("$schema").and_then(Value::as_str).unwrap_or_default();
    let mut measure = Measure {
        root: schema,
        // Before draft 6 an id was called `id`, which is the name of much else.
        id: if draft.contains("draft-04") { "id" } else { "$id" },
        known: HashMap::new(),
        open: Vec::new(),
    };
    Ok(measure.value(schema, 1)?.values)
}

/// Patterns in a schema, each of which takes memory of its own when it is compiled. Of a schema whose levels were counted.
pub(super) fn patterns(schema: &Value) -> usize {
    match schema {
        Value::Object(members) => members
            .iter()
            .map(|(name, member)| {
                let own = match (name.as_str(), member) {
                    ("pattern", Value::String(_)) => 1,
                    ("patternProperties", Value::Object(named)) => named.len(),
                    _ => 0,
                };
                own + patterns(member)
            })
            .sum(),
        Value::Array(items) => items.iter().map(patterns).sum(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => 0,
    }
}

/// How large a part of a schema is.
#[derive(Clone, Copy)]
struct Size {
    values: u64,
    levels: usize,
}

struct Measure<'a> {
    root: &'a Value,
    id: &'static str,
    /// Of every reference that was followed to its end, how large it is.
    known: HashMap<&'a str, Size>,
    /// The references that are being followed.
    open: Vec<&'a str>,
}

impl<'a> Measure<'a> {
    /// `level` is that of the value, with the outermost as 1.
    fn value(&mut self, value: &'a Value, level: usize) -> Result<Size, SchemaError> {
        if level > SCHEMA_LEVELS_MAX {
            return Err(SchemaError::Size);
        }
        let mut size = Size { values: 1, levels: 1 };
        match value {
            Value::Object(members) => {
                for (name, member) in members {
                    let part = match (name.as_str(), member) {
                        ("$ref", Value::String(pointer)) => self.reference(pointer, level)?,
                        (
                            "$dynamicRef" | "$recursiveRef" | "$anchor" | "$dynamicAnchor",
                            Value::String(_),
                        ) => {
                            return Err(SchemaError::Reference);
                        }
                        // A part that is a document of its own would be where its references start.
                        (name, Value::String(_)) if level > 1 && (name == self.id || name == "$schema") => {
                            return Err(SchemaError::Reference);
                        }
                        _ => self.value(member, level + 1)?,
                    };
                    size.add(part, level)?;
                }
            }
            Value::Array(items) => {
                for item in items {
                    let part = self.value(item, level + 1)?;
                    size.add(part, level)?;
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
        Ok(size)
    }

    fn reference(&mut self, pointer: &'a str, level: usize) -> Result<Size, SchemaError> {
        if let Some(known) = self.known.get(pointer) {
            return Ok(*known);
        }
        if self.open.contains(&pointer) {
            return Err(SchemaError::Reference);
        }
        // Percent-encoded, it would mean one thing here and another to the validator.
        let target = pointer
            .strip_prefix('#')
            .filter(|path| !path.contains('%'))
            .and_then(|path| self.root.pointer(path))
            .ok_or(SchemaError::Reference)?;
        self.open.push(pointer);
        let size = self.value(target, level + 1)?;
        self.open.pop();
        self.known.insert(pointer, size);
        Ok(size)
    }
}

impl Size {
    /// Counts in a part of the value on this level.
    fn add(&mut self, part: Self, level: usize) -> Result<(), SchemaError> {
        self.values = self.values.saturating_add(part.values);
        self.levels = self.levels.max(part.levels + 1);
        if self.values > SCHEMA_VALUES_MAX || level + self.levels > SCHEMA_LEVELS_MAX + 1 {
            return Err(SchemaError::Size);
        }
        Ok(())
    }
}
