//! The small types that settings are made of: what a word in the file may be, and a secret that does not print.

use std::fmt;

use serde::{Deserialize, Serialize, Serializer};

/// Who may register an agent at this hub (spec §3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Registration {
    /// Anyone.
    Open,
    /// Whoever holds an invite (`aip-hub admin invite create`).
    Invite,
    /// Nobody.
    Closed,
}

/// How the log is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LogFormat {
    /// Lines for people.
    Text,
    /// One JSON object a line, for a log store.
    Json,
}

/// A text that neither `Debug` nor `Serialize` shows; it goes in, and only [`Secret::reveal`] lets it out.
#[derive(Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(transparent)]
pub struct Secret(String);

impl Secret {
    /// Wraps `text`.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// Whether none was set.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The text itself: for comparing and for handing on, never for a log.
    pub fn reveal(&self) -> &str {
        &self.0
    }

    const fn shown(&self) -> &'static str {
        if self.0.is_empty() { "" } else { "(redacted)" }
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.is_empty() { "(none)" } else { "(redacted)" })
    }
}

impl Serialize for Secret {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.shown())
    }
}
