//! What the market says no to, in the shape of AIMarket: `{"success":false,"error":…,"detail":…,"protocol_version":"v2"}`.

use std::borrow::Cow;
use std::fmt;

use serde_json::{Map, Value, json};

use crate::store::StoreError;

mod code;

pub use code::MarketCode;

/// The version of the protocol that is answered in.
pub const PROTOCOL_VERSION: &str = "v2";

const DETAIL: &str = "detail";

/// A considered "no": a stable code, a sentence that says what to do, and members of the case.
#[derive(Debug, Clone, PartialEq)]
pub struct MarketRefusal {
    /// The stable code; it knows its HTTP status.
    pub code: MarketCode,
    /// One sentence for the caller. Never holds a secret.
    pub detail: Cow<'static, str>,
    /// Further members, such as `needed`.
    pub members: Vec<(&'static str, Value)>,
    /// When it makes sense to come back, in seconds: the header `Retry-After`.
    pub retry_after_secs: Option<u64>,
    /// Further headers, about payment; names in lower case.
    pub headers: Vec<(&'static str, String)>,
}

impl MarketRefusal {
    /// A refusal without further members.
    pub fn new(code: MarketCode, detail: impl Into<Cow<'static, str>>) -> Self {
        Self {
            code,
            detail: detail.into(),
            members: Vec::new(),
            retry_after_secs: None,
            headers: Vec::new(),
        }
    }

    /// Adds a member of the case.
    #[must_use]
    pub fn with(mut self, name: &'static str, value: impl Into<Value>) -> Self {
        self.members.push((name, value.into()));
        self
    }

    /// Says when to come back.
    #[must_use]
    pub fn retry_after(mut self, secs: u64) -> Self {
        self.retry_after_secs = Some(secs);
        self
    }

    /// A body that is not of its form: `detail` is a list with one `{type, loc, msg}`, as AIMarket's clients read it there.
    /// `loc` is the member, such as `["body", "input"]`.
    pub fn request(location: &[&str], message: impl Into<Cow<'static, str>>) -> Self {
        let message = message.into();
        let list = json!([{ "type": "value_error", "loc": location, "msg": message }]);
        Self::new(MarketCode::RequestInvalid, message).with(DETAIL, list)
    }

    /// The JSON body. A member of a name that is there already replaces it.
    pub fn body(&self) -> Value {
        let mut body = Map::new();
        body.insert("success".to_owned(), false.into());
        body.insert("error".to_owned(), self.code.as_str().into());
        body.insert(DETAIL.to_owned(), self.detail.as_ref().into());
        for (name, value) in &self.members {
            body.insert((*name).to_owned(), value.clone());
        }
        body.insert("protocol_version".to_owned(), PROTOCOL_VERSION.into());
        Value::Object(body)
    }
}

impl fmt::Display for MarketRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.code.as_str(), self.detail)
    }
}

impl std::error::Error for MarketRefusal {}

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum MarketError {
    /// Considered, and refused.
    #[error(transparent)]
    Refused(#[from] MarketRefusal),
    /// The store could not do it: a failure of ours.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl MarketError {
    /// As a refusal for the caller: a failure of the store is [`MarketCode::Unavailable`] and does not say more.
    pub fn into_refusal(self) -> MarketRefusal {
        match self {
            Self::Refused(refusal) => refusal,
            Self::Store(_) => {
                MarketRefusal::new(MarketCode::Unavailable, "The market cannot work now. Try again.")
                    .retry_after(1)
            }
        }
    }
}
