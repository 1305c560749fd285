//! What a buyer should know about the words of an offer: their hashes, whether they are others than lately, and what is odd
//! about them.

use aip_protocol::time::Timestamp;

use crate::limits::CHANGE_TOLD;

/// Beside what an offer says of itself.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Notes {
    /// SHA-256 of its description, in hexadecimal.
    pub description_sha256: String,
    /// SHA-256 of both its schemas, in hexadecimal (`docs/protocol/market.md` §17).
    pub schema_sha256: String,
    /// What is odd about its words, such as `injection_suspected`.
    pub flags: Vec<String>,
    /// The last time that its description became another one.
    pub description_changed: Option<Changed>,
    /// The last time that its schemas became others.
    pub schema_changed: Option<Changed>,
}

/// Something became another one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Changed {
    /// When.
    pub at: Timestamp,
    /// SHA-256 of what it was, in hexadecimal.
    pub previous_sha256: String,
}

impl Changed {
    /// Whether buyers are told of it still, for [`CHANGE_TOLD`].
    pub fn is_told(&self, now: Timestamp) -> bool {
        self.at + CHANGE_TOLD > now
    }
}

impl Notes {
    /// The changes that buyers are told of now, by the names that they have on the wire.
    pub fn told(&self, now: Timestamp) -> impl Iterator<Item = (&'static str, &Changed)> {
        let changes = [
            ("description_changed", &self.description_changed),
            ("schema_changed", &self.schema_changed),
        ];
        changes
            .into_iter()
            .filter_map(move |(name, changed)| changed.as_ref().map(|changed| (name, changed)))
            .filter(move |(_, changed)| changed.is_told(now))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_is_told_for_a_while() {
        let at = Timestamp::from_unix_millis(1_795_000_000_000);
        let changed = Some(Changed {
            at,
            previous_sha256: "00".repeat(32),
        });
        let notes = Notes {
            description_changed: changed,
            ..Notes::default()
        };
        let told = |now: Timestamp| notes.told(now).map(|(name, _)| name).collect::<Vec<_>>();
        assert_eq!(told(at), ["description_changed"]);
        assert_eq!(told(at + CHANGE_TOLD).len(), 0);
    }
}
