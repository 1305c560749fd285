//! The SQL text about peers.

use std::sync::LazyLock;

use aip_federation::limits::{AUDIT_LINES_MAX, REFUSALS_PER_EPOCH_MAX};

use crate::limits::SEQS_PER_STATEMENT_MAX;
use crate::sql::statements::rows;

/// Everything about a peer.
const COLUMNS: &str = "domain, pinned, document, fresh_until_ms, frozen_code, frozen_kid, frozen_since_ms, stance, \
     items_per_sec, bytes_per_sec, queue_items, first_seen_ms, last_in_ms, last_out_ms, good_items";

pub(super) static GET: LazyLock<String> =
    LazyLock::new(|| format!("SELECT {COLUMNS} FROM peers WHERE domain = $1"));

pub(super) static LIST: LazyLock<String> =
    LazyLock::new(|| format!("SELECT {COLUMNS} FROM peers WHERE domain > $1 ORDER BY domain LIMIT $2"));

/// A column, what a peer that is made has there, and what one that is there gets.
type Set = (&'static str, &'static str, &'static str);

/// Makes a peer (its domain is `$1`, the moment `$2`) or changes it, and answers with it.
fn change(set: &[Set]) -> String {
    let part = |part: fn(&Set) -> String| set.iter().map(part).collect::<String>();
    let (names, values) = (
        part(|(name, _, _)| format!(", {name}")),
        part(|(_, made, _)| format!(", {made}")),
    );
    let changes = part(|(name, _, there)| format!(", {name} = {there}"));
    format!(
        "INSERT INTO peers (domain, first_seen_ms{names}) VALUES ($1, $2{values}) \
         ON CONFLICT (domain) DO UPDATE SET domain = excluded.domain{changes} RETURNING {COLUMNS}"
    )
}

pub(super) static MEET: LazyLock<String> = LazyLock::new(|| change(&[]));

pub(super) static DOCUMENT: LazyLock<String> = LazyLock::new(|| {
    change(&[
        ("document", "$3", "excluded.document"),
        ("pinned", "$4", "excluded.pinned"),
        ("fresh_until_ms", "$5", "excluded.fresh_until_ms"),
    ])
});

pub(super) static MAKE_STALE: LazyLock<String> =
    LazyLock::new(|| change(&[("fresh_until_ms", "NULL", "NULL")]));

/// Who was frozen before stays so for the old reason.
pub(super) static FREEZE: LazyLock<String> = LazyLock::new(|| {
    change(&[
        (
            "frozen_code",
            "$3",
            "COALESCE(peers.frozen_code, excluded.frozen_code)",
        ),
        (
            "frozen_kid",
            "$4",
            "COALESCE(peers.frozen_kid, excluded.frozen_kid)",
        ),
        (
            "frozen_since_ms",
            "$5",
            "COALESCE(peers.frozen_since_ms, excluded.frozen_since_ms)",
        ),
    ])
});

pub(super) static REPIN: LazyLock<String> = LazyLock::new(|| {
    change(&[
        ("pinned", "''", "''"),
        ("frozen_code", "NULL", "NULL"),
        ("frozen_kid", "NULL", "NULL"),
        ("frozen_since_ms", "NULL", "NULL"),
        ("fresh_until_ms", "NULL", "NULL"),
    ])
});

pub(super) static SET_STANCE: LazyLock<String> =
    LazyLock::new(|| change(&[("stance", "$3", "excluded.stance")]));

pub(super) static SET_LIMITS: LazyLock<String> = LazyLock::new(|| {
    change(&[
        ("items_per_sec", "$3", "excluded.items_per_sec"),
        ("bytes_per_sec", "$4", "excluded.bytes_per_sec"),
        ("queue_items", "$5", "excluded.queue_items"),
    ])
});

/// The clocks of several processes are not one.
pub(super) static CAME_IN: LazyLock<String> = LazyLock::new(|| {
    change(&[
        (
            "last_in_ms",
            "$3",
            "CASE WHEN peers.last_in_ms > excluded.last_in_ms THEN peers.last_in_ms ELSE excluded.last_in_ms END",
        ),
        ("good_items", "$4", "peers.good_items + excluded.good_items"),
    ])
});

pub(super) static WENT_OUT: LazyLock<String> = LazyLock::new(|| {
    change(&[(
        "last_out_ms",
        "$3",
        "CASE WHEN peers.last_out_ms > excluded.last_out_ms THEN peers.last_out_ms ELSE excluded.last_out_ms END",
    )])
});

/// `skip` leaves those alone that somebody is changing.
pub(super) fn forget_dead(skip: &str) -> String {
    format!(
        "DELETE FROM peers WHERE domain IN (SELECT p.domain FROM peers p WHERE p.first_seen_ms < $1 \
         AND (p.last_in_ms IS NULL OR p.last_in_ms < $1) AND (p.last_out_ms IS NULL OR p.last_out_ms < $1) \
         AND p.stance = 'undecided' AND p.items_per_sec IS NULL AND p.bytes_per_sec IS NULL \
         AND p.queue_items IS NULL AND p.frozen_code IS NULL \
         AND NOT EXISTS (SELECT 1 FROM peer_evidence e WHERE e.peer = p.domain) \
         ORDER BY p.domain LIMIT $2{skip}) RETURNING domain"
    )
}

const IS_STRANGER: &str = "good_items = 0 AND last_out_ms IS NULL AND stance = 'undecided' \
     AND items_per_sec IS NULL AND bytes_per_sec IS NULL AND queue_items IS NULL";

/// But for `$1` of them. That it is one is asked again of a row that somebody is changing.
pub(super) static FORGET_STRANGERS: LazyLock<String> = LazyLock::new(|| {
    format!(
        "DELETE FROM peers WHERE {IS_STRANGER} AND domain IN (SELECT domain FROM peers WHERE {IS_STRANGER} \
         ORDER BY COALESCE(last_in_ms, first_seen_ms) DESC, domain LIMIT $2 OFFSET $1) RETURNING domain"
    )
});

/// What goes with a peer that is dead, and with a stranger.
pub(super) const FORGET_LINES: &str = "DELETE FROM peer_audit WHERE peer = $1 AND actor <> 'operator'";

/// What goes with a stranger.
pub(super) const FORGET_DEEDS: [&str; 3] = [
    "DELETE FROM peer_evidence WHERE peer = $1",
    "DELETE FROM peer_windows WHERE peer = $1",
    "DELETE FROM peer_refusals WHERE peer = $1",
];

pub(super) const FORGET_LEASES: &str = "DELETE FROM peer_leases WHERE until_ms < $1";

/// One holder: who comes while another has it changes no row. `$3` is the end, `$4` now.
pub(super) const LEASE: &str = "INSERT INTO peer_leases (peer, holder, until_ms) VALUES ($1, $2, $3) \
     ON CONFLICT (peer) DO UPDATE SET holder = excluded.holder, until_ms = CASE \
     WHEN peer_leases.holder = excluded.holder AND peer_leases.until_ms > excluded.until_ms \
     THEN peer_leases.until_ms ELSE excluded.until_ms END \
     WHERE peer_leases.holder = excluded.holder OR peer_leases.until_ms <= $4";

pub(super) const RELEASE: &str = "DELETE FROM peer_leases WHERE peer = $1 AND holder = $2";

pub(super) const GET_WINDOW: &str =
    "SELECT number, floor, above FROM peer_windows WHERE peer = $1 AND epoch = $2";

/// The same, and nobody else changes it until the commit.
pub(super) fn lock_window(for_update: &str) -> String {
    format!("{GET_WINDOW}{for_update}")
}

pub(super) const ADD_WINDOW: &str = "INSERT INTO peer_windows (peer, epoch, number, floor, above) VALUES ($1, $2, \
     (SELECT COALESCE(MAX(number), 0) + 1 FROM peer_windows WHERE peer = $1), 0, '') \
     ON CONFLICT (peer, epoch) DO NOTHING";

pub(super) const SET_WINDOW: &str =
    "UPDATE peer_windows SET floor = $3, above = $4 WHERE peer = $1 AND epoch = $2";

pub(super) const DROP_REFUSALS_OF_OLD_EPOCHS: &str = "DELETE FROM peer_refusals WHERE peer = $1 AND epoch IN \
     (SELECT epoch FROM peer_windows WHERE peer = $1 AND number <= $2)";

pub(super) const DROP_OLD_EPOCHS: &str = "DELETE FROM peer_windows WHERE peer = $1 AND number <= $2";

pub(super) fn add_refusals(count: usize) -> String {
    let rows = rows(count, 4, "");
    format!(
        "INSERT INTO peer_refusals (peer, epoch, peer_seq, code) VALUES {rows} \
         ON CONFLICT (peer, epoch, peer_seq) DO NOTHING"
    )
}

pub(super) static DROP_OLD_REFUSALS: LazyLock<String> = LazyLock::new(|| {
    format!(
        "DELETE FROM peer_refusals WHERE peer = $1 AND epoch = $2 AND peer_seq <= \
         (SELECT peer_seq FROM peer_refusals WHERE peer = $1 AND epoch = $2 \
         ORDER BY peer_seq DESC LIMIT 1 OFFSET {REFUSALS_PER_EPOCH_MAX})"
    )
});

/// Of as many items as a statement has.
pub(super) static GET_REFUSALS: LazyLock<String> = LazyLock::new(|| {
    let seqs: Vec<_> = (3..3 + SEQS_PER_STATEMENT_MAX).map(|n| format!("${n}")).collect();
    let seqs = seqs.join(", ");
    format!(
        "SELECT peer_seq, code FROM peer_refusals WHERE peer = $1 AND epoch = $2 AND peer_seq IN ({seqs})"
    )
});

/// One winner: who comes before it is over changes no row. `$2` is the end, `$3` now.
pub(super) const USE_NONCE: &str = "INSERT INTO peer_nonces (hash, expires_at_ms) VALUES ($1, $2) \
     ON CONFLICT (hash) DO UPDATE SET expires_at_ms = excluded.expires_at_ms \
     WHERE peer_nonces.expires_at_ms <= $3";

pub(super) const GET_REMOTE_HISTORY: &str =
    "SELECT did, operations, fetched_at_ms FROM remote_histories WHERE did = $1";

pub(super) const SIZE_OF_HISTORY: &str = "SELECT bytes FROM remote_histories WHERE did = $1";

pub(super) const KEEP_HISTORY: &str = "INSERT INTO remote_histories \
     (did, peer, length, fetched_at_ms, bytes, operations) \
     VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT (did) DO UPDATE SET length = excluded.length, \
     fetched_at_ms = excluded.fetched_at_ms, bytes = excluded.bytes, operations = excluded.operations \
     WHERE remote_histories.length < excluded.length OR (remote_histories.length = excluded.length \
     AND remote_histories.fetched_at_ms <= excluded.fetched_at_ms)";

pub(super) const FORGET_HISTORY: &str = "DELETE FROM remote_histories WHERE did = $1 RETURNING bytes";

/// Drops those for which there is no room among `$1` histories of `$2` bytes: of strangers first, then what was not fetched
/// for longest.
fn drop_histories(of: &str) -> String {
    format!(
        "DELETE FROM remote_histories WHERE did IN (SELECT did FROM (SELECT h.did, \
         ROW_NUMBER() OVER newest AS place, SUM(h.bytes) OVER newest AS filled \
         FROM remote_histories h LEFT JOIN peers p ON p.domain = h.peer {of} WINDOW newest AS (ORDER BY CASE \
         WHEN p.good_items > 0 OR p.last_out_ms IS NOT NULL OR p.stance IN ('allowed', 'limited') THEN 0 ELSE 1 END, \
         h.fetched_at_ms DESC, h.did)) AS ordered WHERE place > $1 OR filled > $2) RETURNING bytes"
    )
}

/// Of all.
pub(super) static DROP_HISTORIES: LazyLock<String> = LazyLock::new(|| drop_histories(""));

/// Of the peer `$3`.
pub(super) static DROP_HISTORIES_OF_PEER: LazyLock<String> =
    LazyLock::new(|| drop_histories("WHERE h.peer = $3"));

/// So many more, and so many bytes more; answers with what there is now.
pub(super) const ADD_HISTORIES: &str = "UPDATE peer_log SET histories = histories + $1, \
     history_bytes = history_bytes + $2 WHERE id = 1 RETURNING histories, history_bytes";

/// After histories were copied: the target may have had others.
pub(in crate::sql) const COUNT_HISTORIES: [&str; 1] = ["UPDATE peer_log SET \
     histories = (SELECT COUNT(*) FROM remote_histories), \
     history_bytes = (SELECT CAST(COALESCE(SUM(bytes), 0) AS BIGINT) FROM remote_histories) WHERE id = 1"];

/// Nobody else adds a line to a log, or a history, until the commit.
pub(super) fn lock_log(for_update: &str) -> String {
    format!("SELECT evidence, audit FROM peer_log WHERE id = 1{for_update}")
}

pub(super) const SET_EVIDENCE_NUMBER: &str = "UPDATE peer_log SET evidence = $1 WHERE id = 1";

pub(super) const SET_AUDIT_NUMBER: &str = "UPDATE peer_log SET audit = $1 WHERE id = 1";

pub(super) const COUNT_EVIDENCE: &str = "SELECT COUNT(*) AS evidence FROM peer_evidence WHERE peer = $1";

pub(super) const ADD_EVIDENCE: &str = "INSERT INTO peer_evidence (number, peer, hash, code, subject, objects, at_ms) \
     VALUES ($1, $2, $3, $4, $5, $6, $7) ON CONFLICT (peer, hash) DO NOTHING";

/// Of one peer, and of all.
pub(super) const EVIDENCE: [&str; 2] = [
    "SELECT number, peer, code, subject, objects, at_ms FROM peer_evidence \
     WHERE peer = $1 AND number > $2 ORDER BY number LIMIT $3",
    "SELECT number, peer, code, subject, objects, at_ms FROM peer_evidence \
     WHERE number > $1 ORDER BY number LIMIT $2",
];

pub(super) const ADD_LINE: &str =
    "INSERT INTO peer_audit (number, peer, actor, action, detail, at_ms) VALUES ($1, $2, $3, $4, $5, $6)";

pub(super) static DROP_OLD_LINES: LazyLock<String> = LazyLock::new(|| {
    format!(
        "DELETE FROM peer_audit WHERE peer = $1 AND actor = $2 AND number <= \
         (SELECT number FROM peer_audit WHERE peer = $1 AND actor = $2 \
         ORDER BY number DESC LIMIT 1 OFFSET {AUDIT_LINES_MAX})"
    )
});

/// Of one peer, and of all.
pub(super) const AUDIT: [&str; 2] = [
    "SELECT number, peer, actor, action, detail, at_ms FROM peer_audit \
     WHERE peer = $1 AND number > $2 ORDER BY number LIMIT $3",
    "SELECT number, peer, actor, action, detail, at_ms FROM peer_audit \
     WHERE number > $1 ORDER BY number LIMIT $2",
];

/// After windows were copied: epochs that the original has forgotten go.
pub(in crate::sql) const AFTER_COPY: [&str; 1] = ["DELETE FROM peer_windows WHERE number <= \
     (SELECT MAX(newest.number) FROM peer_windows newest WHERE newest.peer = peer_windows.peer) - 16"];

/// On SQLite only: keeps the windows as they are now, for as long as the connection lives.
pub(in crate::sql) const KEEP_WINDOWS: &str = "BEGIN DEFERRED; \
     CREATE TEMP TABLE kept_windows AS SELECT * FROM main.peer_windows; \
     CREATE TEMP TABLE kept_refusals AS SELECT * FROM main.peer_refusals; COMMIT";

/// On SQLite only: puts them into the database `copy`, which nobody else uses yet.
pub(in crate::sql) const PUT_WINDOWS_BACK: &str = "PRAGMA copy.journal_mode = DELETE; BEGIN IMMEDIATE; \
     DELETE FROM copy.peer_windows; INSERT INTO copy.peer_windows SELECT * FROM temp.kept_windows; \
     DELETE FROM copy.peer_refusals; INSERT INTO copy.peer_refusals SELECT * FROM temp.kept_refusals; \
     COMMIT; DETACH DATABASE copy";

/// What cannot be, and the sentence about each that is found all the same.
pub(in crate::sql) const CHECKS: [(&str, &str); 3] = [
    (
        "SELECT r.peer FROM peer_refusals r WHERE NOT EXISTS \
         (SELECT 1 FROM peer_windows w WHERE w.peer = r.peer AND w.epoch = r.epoch) LIMIT $1",
        "an item of {} was refused in an epoch that is not known",
    ),
    (
        "SELECT e.peer FROM peer_evidence e WHERE e.number > (SELECT evidence FROM peer_log) \
         UNION ALL SELECT a.peer FROM peer_audit a WHERE a.number > (SELECT audit FROM peer_log) LIMIT $1",
        "a line about {} is ahead of its log",
    ),
    (
        "SELECT CAST(l.histories AS TEXT) FROM peer_log l WHERE l.histories <> (SELECT COUNT(*) FROM remote_histories) \
         OR l.history_bytes <> (SELECT COALESCE(SUM(bytes), 0) FROM remote_histories) LIMIT $1",
        "{} histories of agents elsewhere were counted, which is wrong, or their bytes are",
    ),
];

#[cfg(test)]
mod tests {
    use super::*;
    use aip_federation::limits::EPOCHS_PER_PEER_MAX;

    #[test]
    fn a_change_names_its_columns_once() {
        assert_eq!(
            *SET_STANCE,
            format!(
                "INSERT INTO peers (domain, first_seen_ms, stance) VALUES ($1, $2, $3) ON CONFLICT (domain) \
                 DO UPDATE SET domain = excluded.domain, stance = excluded.stance RETURNING {COLUMNS}"
            )
        );
        assert!(GET_REFUSALS.ends_with("$65, $66)"));
        assert!(AFTER_COPY[0].ends_with(&format!("- {EPOCHS_PER_PEER_MAX}")));
    }
}
