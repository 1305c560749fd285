//! The manifest of a peer, as it is read: signed by the pinned key, of this week, and of what is in it only what the peer sells
//! itself.

use std::collections::BTreeSet;

use aip_protocol::market::{Value, manifest};
use aip_protocol::multikey::VerifyingKey;
use aip_protocol::time::Timestamp;

use super::error::{CrawlError, Page};
use super::fresh::check_age;
use super::row::{LeftOut, Row};
use crate::market::limits::TOOLS_MAX;

/// What a manifest holds.
#[derive(Debug, Default)]
pub(super) struct Catalogue {
    /// What can be taken up.
    pub(super) rows: Vec<Row>,
    /// What was left out, and why: one entry for each reason that there was, with how many.
    pub(super) left_out: std::collections::BTreeMap<LeftOut, usize>,
}

/// Reads the manifest of the peer at `url`.
///
/// # Errors
/// It is not signed by `key`, it is old, or it is none.
pub(super) fn read(
    found: &Value,
    key: &VerifyingKey,
    url: &str,
    now: Timestamp,
) -> Result<Catalogue, CrawlError> {
    let wrong = |what: String| CrawlError::wrong(Page::Manifest, what);
    let check = manifest::verify(found, std::slice::from_ref(key));
    if let Some(reason) = check.verdict.reason() {
        return Err(wrong(format!("is not proven: {reason}")));
    }
    let generated_at = found.get("generated_at").and_then(Value::as_str);
    check_age(Page::Manifest, generated_at.unwrap_or_default(), now)?;
    let tools = found.get("tools").and_then(Value::as_array);
    let tools = tools.ok_or_else(|| wrong("has no `tools`".to_owned()))?;
    let mut catalogue = Catalogue::default();
    let mut named = BTreeSet::new();
    for (place, tool) in tools.iter().enumerate() {
        let row = if place < TOOLS_MAX {
            Row::read(tool, url)
        } else {
            Err(LeftOut::TooMany)
        };
        let row = row.and_then(|row| {
            let ids = (row.product_id.clone(), row.capability_id.clone());
            if named.insert(ids) {
                Ok(row)
            } else {
                Err(LeftOut::Twice)
            }
        });
        match row {
            Ok(row) => catalogue.rows.push(row),
            Err(why) => *catalogue.left_out.entry(why).or_default() += 1,
        }
    }
    Ok(catalogue)
}

#[cfg(test)]
mod tests;
