//! Histories in pages (spec §3): whoever reads them can check every key that an agent ever had.

use aip_protocol::error::ErrorCode;
use aip_protocol::name::Name;

use super::Registry;
use crate::error::{RegistryError, refuse};
use crate::limits::HISTORY_PAGE_OPERATIONS_MAX;
use crate::secret::{decode, encode};

/// A page of a history.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HistoryPage {
    /// Operations as admitted, canonical JSON, oldest first.
    pub operations: Vec<String>,
    /// Where the next page begins; `None` on the last one.
    pub next_cursor: Option<String>,
}

/// What a history cursor starts with, so that a cursor of another list is not taken for one.
const CURSOR_PREFIX: &[u8] = b"history:";

fn cursor(seq: u64) -> String {
    encode(&[CURSOR_PREFIX, seq.to_string().as_bytes()].concat())
}

fn parse_cursor(text: &str) -> Option<u64> {
    let bytes = decode(text)?;
    let seq = std::str::from_utf8(bytes.strip_prefix(CURSOR_PREFIX)?)
        .ok()?
        .parse()
        .ok()?;
    (cursor(seq) == text).then_some(seq)
}

impl Registry {
    /// A page of a history, from a cursor of the page before or from the start. `limit` is cut to
    /// [`HISTORY_PAGE_OPERATIONS_MAX`].
    ///
    /// Refuses with `not_found` and `cursor_invalid`.
    pub async fn history(
        &self,
        name: &Name,
        from: Option<&str>,
        limit: u32,
    ) -> Result<HistoryPage, RegistryError> {
        let bad_cursor = || {
            refuse(
                ErrorCode::CursorInvalid,
                "send back next_cursor as it came, or none",
            )
        };
        let from_seq = from.map_or(Some(0), parse_cursor).ok_or_else(bad_cursor)?;
        let limit = limit.clamp(1, HISTORY_PAGE_OPERATIONS_MAX);
        // One more than asked for tells whether there is a next page.
        let mut operations = self.directory.history(name, from_seq, limit + 1).await?;
        if operations.is_empty() {
            return Err(match from {
                Some(_) => bad_cursor(),
                None => refuse(ErrorCode::NotFound, "no agent has this name here"),
            });
        }
        let has_more = operations.len() > limit as usize;
        operations.truncate(limit as usize);
        Ok(HistoryPage {
            operations,
            next_cursor: has_more.then(|| cursor(from_seq + u64::from(limit))),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_has_one_spelling() {
        assert_eq!(parse_cursor(&cursor(100)), Some(100));
        for bad in [
            "",
            "100",
            "history:100",
            &encode(b"history:0100"),
            &encode(b"history:-1"),
            &encode(b"inbox:1"),
        ] {
            assert_eq!(parse_cursor(bad), None, "{bad}");
        }
    }
}
