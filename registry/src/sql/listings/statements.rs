//! The SQL text about listings and providers.

use std::sync::LazyLock;

use crate::limits::LISTINGS_PER_STATEMENT_MAX;
use crate::sql::statements::rows;

/// Everything about a listing, in the order in which it is written.
const COLUMNS: &str = "id, number, agent, listing_id, version, deleted, digest, provider, flags, change_seq, \
     stored_at_ms, expires_at_ms, json, hub, trail, review";
/// How many that are.
const COLUMN_COUNT: usize = 16;

fn select(rest: &str) -> String {
    format!("SELECT {COLUMNS} FROM listings WHERE {rest}")
}

pub(super) static GET: LazyLock<String> = LazyLock::new(|| select("id = $1"));

/// By as many ids as a statement has; the empty one is none.
pub(super) static GET_MANY: LazyLock<String> = LazyLock::new(|| {
    let ids = rows(1, LISTINGS_PER_STATEMENT_MAX, "");
    select(&format!("id IN {ids} ORDER BY id"))
});

pub(super) static OF_AGENT: LazyLock<String> =
    LazyLock::new(|| select("agent = $1 AND id > $2 AND deleted = 0 ORDER BY id LIMIT $3"));

/// As its index says it.
pub(super) static SUSPECTS: LazyLock<String> = LazyLock::new(|| {
    select("(flags <> '[]' OR review IS NOT NULL) AND deleted = 0 AND id > $1 ORDER BY id LIMIT $2")
});

pub(super) static CHANGES: LazyLock<String> =
    LazyLock::new(|| select("change_seq > $1 ORDER BY change_seq LIMIT $2"));

pub(super) const GET_LOG: &str = "SELECT change_seq, number, forgotten_seq FROM listing_log WHERE id = 1";

/// The same, and nobody else changes a listing until the commit.
pub(super) fn lock_log(for_update: &str) -> String {
    format!("{GET_LOG}{for_update}")
}

pub(super) const SET_LOG: &str = "UPDATE listing_log SET change_seq = $1, number = $2 WHERE id = 1";

pub(super) const GET_OWNER: &str = "SELECT live, deleted FROM listing_owners WHERE agent = $1";

pub(super) const SET_OWNER: &str = "INSERT INTO listing_owners (agent, live, deleted) VALUES ($1, $2, $3) \
     ON CONFLICT (agent) DO UPDATE SET live = excluded.live, deleted = excluded.deleted";

/// Writes so many listings over what is there of them.
pub(super) fn put(count: usize) -> String {
    let rows = rows(count, COLUMN_COUNT, "");
    let set: Vec<_> = COLUMNS
        .split(", ")
        .filter(|column| *column != "id")
        .map(|column| format!("{column} = excluded.{column}"))
        .collect();
    let set = set.join(", ");
    format!("INSERT INTO listings ({COLUMNS}) VALUES {rows} ON CONFLICT (id) DO UPDATE SET {set}")
}

/// The end of a page of an agent's listings, and how many it has.
pub(super) const PAGE_OF_AGENT: &str = "SELECT MAX(id) AS last, COUNT(*) AS listings FROM \
     (SELECT id FROM listings WHERE agent = $1 AND deleted = 0 AND id > $2 ORDER BY id LIMIT $3) AS page";

/// Moves a page of an agent's listings behind a place in the log, in the order of their ids.
pub(super) const TOUCH: &str = "UPDATE listings SET change_seq = $1 + page.place FROM \
     (SELECT id AS page_id, ROW_NUMBER() OVER (ORDER BY id) AS place FROM listings \
     WHERE agent = $2 AND deleted = 0 AND id > $3 AND id <= $4) AS page WHERE listings.id = page.page_id";

/// The same, and makes them tombstones.
pub(super) const REMOVE: &str = "UPDATE listings SET change_seq = $1 + page.place, deleted = 1, json = '', \
     flags = '[]', expires_at_ms = NULL, stored_at_ms = $5 FROM \
     (SELECT id AS page_id, ROW_NUMBER() OVER (ORDER BY id) AS place FROM listings \
     WHERE agent = $2 AND deleted = 0 AND id > $3 AND id <= $4) AS page WHERE listings.id = page.page_id";

/// The last of the oldest tombstones that are old enough.
pub(super) const LAST_OLD: &str = "SELECT MAX(change_seq) AS last FROM (SELECT change_seq FROM listings \
     WHERE deleted = 1 AND stored_at_ms < $1 ORDER BY change_seq LIMIT $2) AS old";

pub(super) const FORGET: &str = "DELETE FROM listings WHERE deleted = 1 AND change_seq <= $1 RETURNING agent";

pub(super) const FORGET_OF_OWNER: &str = "UPDATE listing_owners SET deleted = deleted - $2 WHERE agent = $1";

pub(super) const DROP_EMPTY_OWNERS: &str = "DELETE FROM listing_owners WHERE live = 0 AND deleted = 0";

pub(super) const SET_FORGOTTEN: &str = "UPDATE listing_log SET forgotten_seq = $1 WHERE id = 1";

pub(super) const COUNT: &str = "SELECT \
     (SELECT CAST(COALESCE(SUM(live), 0) AS BIGINT) FROM listing_owners) AS live, \
     (SELECT CAST(COALESCE(SUM(deleted), 0) AS BIGINT) FROM listing_owners) AS deleted, \
     (SELECT COUNT(*) FROM providers) AS providers";

pub(super) const ADD_PROVIDER: &str =
    "INSERT INTO providers (id, hash, name, agent, created_at_ms) VALUES ($1, $2, $3, $4, $5)";

pub(super) const LIST_PROVIDERS: &str = "SELECT id, name, agent, created_at_ms, revoked_at_ms, last_used_at_ms \
     FROM providers WHERE id > $1 ORDER BY id LIMIT $2";

pub(super) const FIND_PROVIDER: &str = "SELECT id, hash, name, agent, created_at_ms, revoked_at_ms, last_used_at_ms FROM providers WHERE hash = $1";

pub(super) const REVOKE_PROVIDER: &str =
    "UPDATE providers SET revoked_at_ms = $2 WHERE id = $1 AND revoked_at_ms IS NULL";

pub(super) const USE_PROVIDER: &str = "UPDATE providers SET last_used_at_ms = $2 \
     WHERE id = $1 AND (last_used_at_ms IS NULL OR last_used_at_ms < $2)";

/// After listings were copied: tombstones that the original forgot go, and what is counted is counted anew. Nobody changes
/// a listing meanwhile.
pub(in crate::sql) const AFTER_COPY: [&str; 4] = [
    "UPDATE listing_log SET id = id WHERE id = 1",
    "DELETE FROM listings WHERE deleted = 1 AND change_seq <= (SELECT forgotten_seq FROM listing_log WHERE id = 1)",
    "DELETE FROM listing_owners",
    "INSERT INTO listing_owners (agent, live, deleted) SELECT agent, CAST(SUM(1 - deleted) AS BIGINT), \
     CAST(SUM(deleted) AS BIGINT) FROM listings GROUP BY agent",
];

/// What cannot be, and the sentence about each that is found all the same.
pub(in crate::sql) const CHECKS: [(&str, &str); 3] = [
    (
        "SELECT l.agent FROM (SELECT agent, SUM(1 - deleted) AS live, SUM(deleted) AS deleted FROM listings \
         GROUP BY agent) AS l LEFT JOIN listing_owners o ON o.agent = l.agent \
         WHERE o.agent IS NULL OR o.live <> l.live OR o.deleted <> l.deleted LIMIT $1",
        "the listings of {} are not as many as were counted",
    ),
    (
        "SELECT o.agent FROM listing_owners o WHERE o.live + o.deleted > 0 \
         AND NOT EXISTS (SELECT 1 FROM listings l WHERE l.agent = o.agent) LIMIT $1",
        "{} has none of the listings that were counted",
    ),
    (
        "SELECT l.id FROM listings l WHERE l.change_seq > (SELECT change_seq FROM listing_log) \
         OR l.number > (SELECT number FROM listing_log) LIMIT $1",
        "the listing {} is ahead of the log of changes",
    ),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_counted() {
        assert_eq!(COLUMNS.split(", ").count(), COLUMN_COUNT);
        assert!(put(2).contains("$32)") && !put(2).contains("$33"));
    }
}
