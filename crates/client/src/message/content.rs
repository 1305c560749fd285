//! What a message says: JSON, text or bytes, and how each travels inside the sealed body (spec §4).

use std::borrow::Cow;
use std::fmt;

use aip_protocol::seal::Plaintext;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::Value;

/// The parameter that says that a text body is the base64url form of bytes.
const BYTES_PARAMETER: &str = "encoding=base64url";

/// The content of a message. `Debug` shows its type and size only.
#[derive(Clone, PartialEq)]
pub struct Content {
    /// Its media type.
    pub content_type: String,
    /// What it is.
    pub body: Body,
}

/// The kinds of content.
#[derive(Clone, PartialEq)]
pub enum Body {
    /// Any JSON value.
    Json(Value),
    /// Text, kept character for character.
    Text(String),
    /// Bytes.
    Bytes(Vec<u8>),
}

impl Content {
    /// `text/plain`.
    pub fn text(text: impl Into<String>) -> Self {
        Self::text_as("text/plain", text)
    }

    /// Text of another type. For JSON use [`Content::json`]: a reader takes JSON types for values, not for text.
    pub fn text_as(content_type: impl Into<String>, text: impl Into<String>) -> Self {
        Self {
            content_type: content_type.into(),
            body: Body::Text(text.into()),
        }
    }

    /// `application/json`.
    pub fn json(value: impl Into<Value>) -> Self {
        Self::json_as("application/json", value)
    }

    /// JSON of another type.
    pub fn json_as(content_type: impl Into<String>, value: impl Into<Value>) -> Self {
        Self {
            content_type: content_type.into(),
            body: Body::Json(value.into()),
        }
    }

    /// Bytes of any type.
    pub fn bytes(content_type: impl Into<String>, bytes: impl Into<Vec<u8>>) -> Self {
        Self {
            content_type: content_type.into(),
            body: Body::Bytes(bytes.into()),
        }
    }

    /// The bytes: of the text, of the compact JSON, or as they are.
    pub fn to_bytes(&self) -> Cow<'_, [u8]> {
        match &self.body {
            Body::Json(value) => Cow::Owned(value.to_string().into_bytes()),
            Body::Text(text) => Cow::Borrowed(text.as_bytes()),
            Body::Bytes(bytes) => Cow::Borrowed(bytes),
        }
    }

    /// The text, if it is text, or a JSON string.
    pub fn as_text(&self) -> Option<&str> {
        match &self.body {
            Body::Text(text) | Body::Json(Value::String(text)) => Some(text),
            _ => None,
        }
    }

    /// The JSON, if it is JSON.
    pub fn as_json(&self) -> Option<&Value> {
        match &self.body {
            Body::Json(value) => Some(value),
            _ => None,
        }
    }

    pub(crate) fn to_plaintext(&self) -> Plaintext {
        match &self.body {
            Body::Json(value) => Plaintext {
                content_type: self.content_type.clone(),
                body: value.clone(),
                ask_receipt: false,
            },
            Body::Text(text) => Plaintext {
                content_type: self.content_type.clone(),
                body: text.as_str().into(),
                ask_receipt: false,
            },
            Body::Bytes(bytes) => Plaintext {
                content_type: format!("{}; {BYTES_PARAMETER}", self.content_type),
                body: URL_SAFE_NO_PAD.encode(bytes).into(),
                ask_receipt: false,
            },
        }
    }

    /// `None` when the body is not what its type says.
    pub(crate) fn from_plaintext(plaintext: Plaintext) -> Option<Self> {
        let Plaintext {
            content_type, body, ..
        } = plaintext;
        if let Some(plain_type) = without_bytes_parameter(&content_type) {
            let bytes = URL_SAFE_NO_PAD.decode(body.as_str()?).ok()?;
            return Some(Self::bytes(plain_type, bytes));
        }
        Some(match body {
            Value::String(text) if !is_json(&content_type) => Self::text_as(content_type, text),
            value => Self::json_as(content_type, value),
        })
    }
}

/// The type without its last parameter, where that says base64url.
fn without_bytes_parameter(content_type: &str) -> Option<&str> {
    let (plain_type, parameter) = content_type.rsplit_once(';')?;
    parameter
        .trim()
        .eq_ignore_ascii_case(BYTES_PARAMETER)
        .then(|| plain_type.trim_end())
}

/// `application/json` and every `…+json`, parameters aside.
fn is_json(content_type: &str) -> bool {
    let essence = content_type
        .split(';')
        .next()
        .unwrap_or_default()
        .trim()
        .to_ascii_lowercase();
    essence == "application/json" || essence.ends_with("+json")
}

impl fmt::Debug for Content {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Content")
            .field("content_type", &self.content_type)
            .field("body", &self.body)
            .finish()
    }
}

impl fmt::Debug for Body {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Json(_) => f.write_str("Json(…)"),
            Self::Text(text) => write!(f, "Text({} bytes)", text.len()),
            Self::Bytes(bytes) => write!(f, "Bytes({} bytes)", bytes.len()),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn travels(content: &Content) -> Option<Content> {
        let bytes = content.to_plaintext().to_bytes();
        Content::from_plaintext(Plaintext::from_bytes(&bytes).unwrap())
    }

    #[test]
    fn json_text_and_bytes_arrive_as_what_they_were() {
        for content in [
            Content::json(json!({"n": 1.5, "s": "é"})),
            Content::json("a JSON string"),
            Content::json_as("application/ld+json", json!([])),
            Content::text("Grüße\n{\"not\": \"parsed\"}"),
            Content::text_as("text/markdown; charset=utf-8", "# x"),
            Content::bytes("image/png", [0x89, 0, 0xff]),
            Content::bytes("text/plain; charset=latin1", [0xe9]),
            Content::bytes("application/json", b"{ }".as_slice()),
        ] {
            assert_eq!(travels(&content).as_ref(), Some(&content));
        }
    }

    #[test]
    fn what_others_write_is_read() {
        let read = |text: &str| Content::from_plaintext(serde_json::from_str(text).unwrap());
        let json = read(r#"{"content_type":"application/json","body":"hello"}"#).unwrap();
        assert_eq!(
            (json.as_text(), json.as_json()),
            (Some("hello"), Some(&json!("hello")))
        );
        let odd = read(r#"{"content_type":"text/plain","body":{"a":1}}"#).unwrap();
        assert_eq!(odd.as_json(), Some(&json!({"a": 1})));
        assert_eq!(
            read(r#"{"content_type":"x/y; encoding=base64url","body":"*"}"#),
            None
        );
        assert_eq!(
            read(r#"{"content_type":"x/y; encoding=base64url","body":1}"#),
            None
        );
    }

    #[test]
    fn debug_shows_no_content() {
        let shown = format!(
            "{:?} {:?}",
            Content::text("secret"),
            Content::json(json!({"k": "secret"}))
        );
        assert!(!shown.contains("secret"), "{shown}");
    }

    proptest! {
        #[test]
        fn bytes_arrive_byte_for_byte(bytes: Vec<u8>) {
            let content = Content::bytes("application/octet-stream", bytes);
            prop_assert_eq!(travels(&content), Some(content));
        }

        #[test]
        fn text_arrives_byte_for_byte(text: String) {
            let content = Content::text(text.clone());
            let arrived = travels(&content).unwrap();
            prop_assert_eq!(arrived.to_bytes(), text.as_bytes());
        }
    }
}
