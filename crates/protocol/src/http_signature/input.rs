//! Reading `Signature-Input`: a structured field (RFC 8941) with one inner list of plain strings.

use std::collections::BTreeMap;

/// The one member of a `Signature-Input` field.
#[derive(Debug, Clone)]
pub(super) struct SignatureInput {
    label: String,
    components: Vec<String>,
    values: BTreeMap<String, Value>,
    /// Components and parameters exactly as written: the value of `@signature-params`.
    raw: String,
}

#[derive(Debug, Clone)]
enum Value {
    Text(String),
    Number(i64),
}

impl SignatureInput {
    /// Reads `label=("a" "b");name=1;name="text"`; `None` for anything else, such as a second
    /// member, parameters of a component, or a component or parameter that comes twice.
    pub(super) fn parse(field: &str) -> Option<Self> {
        let (label, raw) = field.trim().split_once('=')?;
        if !is_key(label) {
            return None;
        }
        let (list, mut rest) = raw.strip_prefix('(')?.split_once(')')?;
        let components = components(list)?;
        let mut values = BTreeMap::new();
        while let Some(parameter) = rest.strip_prefix(';') {
            let (name, value) = parameter.split_once('=').filter(|(name, _)| is_key(name))?;
            let (value, after) = value_of(value)?;
            if values.insert(name.to_owned(), value).is_some() {
                return None;
            }
            rest = after;
        }
        rest.is_empty().then(|| Self {
            label: label.to_owned(),
            components,
            values,
            raw: raw.to_owned(),
        })
    }

    pub(super) fn label(&self) -> &str {
        &self.label
    }

    pub(super) fn parameters(&self) -> &str {
        &self.raw
    }

    pub(super) fn components(&self) -> impl Iterator<Item = &str> {
        self.components.iter().map(String::as_str)
    }

    pub(super) fn covers(&self, name: &str) -> bool {
        self.components().any(|component| component == name)
    }

    pub(super) fn text(&self, name: &str) -> Option<&str> {
        if let Some(Value::Text(text)) = self.values.get(name) {
            Some(text)
        } else {
            None
        }
    }

    pub(super) fn number(&self, name: &str) -> Option<i64> {
        if let Some(Value::Number(number)) = self.values.get(name) {
            Some(*number)
        } else {
            None
        }
    }
}

/// A key of a dictionary or of a parameter (RFC 8941 §3.1.2).
fn is_key(text: &str) -> bool {
    let is_first = |byte: u8| byte.is_ascii_lowercase() || byte == b'*';
    let is_later = |byte: u8| is_first(byte) || byte.is_ascii_digit() || matches!(byte, b'_' | b'-' | b'.');
    text.bytes().next().is_some_and(is_first) && text.bytes().all(is_later)
}

/// Quoted lower-case names between single spaces, none twice.
fn components(list: &str) -> Option<Vec<String>> {
    let mut names: Vec<String> = Vec::new();
    for item in list.split(' ') {
        let name = item.strip_prefix('"')?.strip_suffix('"')?;
        let is_name =
            |byte: u8| byte.is_ascii_graphic() && !byte.is_ascii_uppercase() && !matches!(byte, b'"' | b'\\');
        if name.is_empty() || !name.bytes().all(is_name) || names.iter().any(|other| other == name) {
            return None;
        }
        names.push(name.to_owned());
    }
    Some(names)
}

/// A string or an integer, and what follows it.
fn value_of(text: &str) -> Option<(Value, &str)> {
    if let Some(quoted) = text.strip_prefix('"') {
        return string(quoted);
    }
    let end = text.find(';').unwrap_or(text.len());
    let (digits, rest) = text.split_at_checked(end)?;
    let unsigned = digits.strip_prefix('-').unwrap_or(digits);
    let is_integer = (1..=15).contains(&unsigned.len()) && unsigned.bytes().all(|byte| byte.is_ascii_digit());
    let number = digits.parse().ok().filter(|_| is_integer)?;
    Some((Value::Number(number), rest))
}

/// The rest of a string after its opening quote (RFC 8941 §3.3.3).
fn string(quoted: &str) -> Option<(Value, &str)> {
    let mut text = String::new();
    let mut characters = quoted.chars();
    loop {
        match characters.next()? {
            '"' => return Some((Value::Text(text), characters.as_str())),
            '\\' => text.push(
                characters
                    .next()
                    .filter(|escaped| matches!(escaped, '"' | '\\'))?,
            ),
            printable @ ' '..='~' => text.push(printable),
            _ => return None,
        }
    }
}
