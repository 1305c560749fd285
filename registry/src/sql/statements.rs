//! Every SQL text of the room, in one place and in the words that all dialects share.

/// A name is claimed once; who comes second changes no row.
pub(super) const CLAIM_NAME: &str = "INSERT INTO agents (name, head, seq, standing, registered_at_ms, invite) \
     VALUES ($1, $2, $3, 'active', $4, $5) ON CONFLICT (name) DO NOTHING";

/// The same for many names at once, without invites; answers with those that were free.
pub(super) fn claim_names(count: usize) -> String {
    let rows = rows(count, 4, ", 'active'");
    format!(
        "INSERT INTO agents (name, head, seq, registered_at_ms, standing) VALUES {rows} \
         ON CONFLICT (name) DO NOTHING RETURNING name, head"
    )
}

/// Takes back a claim of the same transaction.
pub(super) const UNCLAIM_NAME: &str = "DELETE FROM agents WHERE name = $1";

pub(super) const ADD_OPERATION: &str =
    "INSERT INTO operations (name, seq, operation, admitted_at_ms) VALUES ($1, $2, $3, $4)";

pub(super) fn add_operations(count: usize) -> String {
    let rows = rows(count, 4, "");
    format!("INSERT INTO operations (name, seq, operation, admitted_at_ms) VALUES {rows}")
}

/// Moves the head, if it is the one the operation was made for and the history has not ended.
pub(super) const MOVE_HEAD: &str = "UPDATE agents SET head = $3, seq = $4, deactivated_at_ms = $5 \
     WHERE name = $1 AND head = $2 AND deactivated_at_ms IS NULL";

pub(super) const GET_AGENT: &str = "SELECT o.operation, a.head, a.standing, a.registered_at_ms, \
     a.mailbox_messages, a.mailbox_bytes, a.sender_messages \
     FROM agents a JOIN operations o ON o.name = a.name WHERE a.name = $1 ORDER BY o.seq";

pub(super) const GET_HISTORY: &str =
    "SELECT operation FROM operations WHERE name = $1 AND seq >= $2 ORDER BY seq LIMIT $3";

pub(super) const LIST_AGENTS: &str = "SELECT name, head, seq, standing, registered_at_ms, deactivated_at_ms, \
     invite, mailbox_messages, mailbox_bytes, sender_messages \
     FROM agents WHERE name > $1 ORDER BY name LIMIT $2";

pub(super) const SET_STANDING: &str = "UPDATE agents SET standing = $2 WHERE name = $1";

pub(super) const SET_QUOTA: &str = "UPDATE agents SET mailbox_messages = $2, mailbox_bytes = $3, \
     sender_messages = $4 WHERE name = $1";

pub(super) const COUNT_ALL: &str = "SELECT (SELECT COUNT(*) FROM agents) AS agents, \
     (SELECT COUNT(*) FROM agents WHERE standing = 'suspended') AS suspended, \
     (SELECT COUNT(*) FROM agents WHERE deactivated_at_ms IS NOT NULL) AS deactivated, \
     (SELECT COUNT(*) FROM tokens) AS tokens, (SELECT COUNT(*) FROM invites) AS invites";

/// One winner: who comes second changes no row.
pub(super) const SPEND_CHALLENGE: &str = "INSERT INTO spent_challenges (hash, expires_at_ms) VALUES ($1, $2) \
     ON CONFLICT (hash) DO NOTHING";

pub(super) const ADD_TOKEN: &str =
    "INSERT INTO tokens (hash, name, kid, issued_at_ms, expires_at_ms) VALUES ($1, $2, $3, $4, $5)";

pub(super) const DROP_OLDEST_TOKENS: &str = "DELETE FROM tokens WHERE name = $1 AND hash NOT IN \
     (SELECT hash FROM tokens WHERE name = $1 ORDER BY issued_at_ms DESC, hash DESC LIMIT $2) RETURNING hash";

/// Tokens that were issued later than now.
pub(super) const DROP_LATER_TOKENS: &str = "DELETE FROM tokens WHERE issued_at_ms > $1";

pub(super) const FIND_TOKEN: &str =
    "SELECT hash, name, kid, issued_at_ms, expires_at_ms FROM tokens WHERE hash = $1";

pub(super) const ADD_INVITE: &str = "INSERT INTO invites \
     (id, hash, note, uses_max, uses_left, created_at_ms, expires_at_ms) VALUES ($1, $2, $3, $4, $5, $6, $7)";

/// Uses an invite once, if it is good now.
pub(super) const REDEEM_INVITE: &str = "UPDATE invites SET uses_left = uses_left - 1 \
     WHERE hash = $1 AND uses_left > 0 AND revoked_at_ms IS NULL \
     AND (expires_at_ms IS NULL OR expires_at_ms > $2)";

pub(super) const LIST_INVITES: &str = "SELECT id, note, uses_max, uses_left, created_at_ms, expires_at_ms, \
     revoked_at_ms FROM invites WHERE id > $1 ORDER BY id LIMIT $2";

pub(super) const REVOKE_INVITE: &str =
    "UPDATE invites SET revoked_at_ms = $2 WHERE id = $1 AND revoked_at_ms IS NULL";

/// Removes rows whose time is over; `skip` leaves those alone that somebody else is removing.
pub(super) fn sweep(table: &str, skip: &str) -> String {
    format!(
        "DELETE FROM {table} WHERE hash IN (SELECT hash FROM {table} WHERE expires_at_ms <= $1 LIMIT $2{skip})"
    )
}

pub(super) const GET_FACT: &str = "SELECT value FROM hub_facts WHERE key = $1";

pub(super) const ADD_FACT: &str =
    "INSERT INTO hub_facts (key, value) VALUES ($1, $2) ON CONFLICT (key) DO NOTHING";

/// A fact, in place of the one that there is.
pub(super) const REPLACE_FACT: &str = "INSERT INTO hub_facts (key, value) VALUES ($1, $2) \
     ON CONFLICT (key) DO UPDATE SET value = excluded.value";

/// On PostgreSQL only: what cannot be, and the sentence about each that is found all the same.
pub(super) const POSTGRES_CHECKS: [(&str, &str); 4] = [
    (
        "SELECT CAST(c.relname AS TEXT) FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid \
         JOIN pg_namespace n ON n.oid = c.relnamespace \
         WHERE n.nspname = current_schema() AND NOT i.indisvalid LIMIT $1",
        "index {} is not valid: REINDEX it",
    ),
    (
        "SELECT CAST(t.relname || '.' || a.attname AS TEXT) FROM pg_attribute a \
         JOIN pg_class t ON t.oid = a.attrelid JOIN pg_namespace n ON n.oid = t.relnamespace \
         JOIN pg_collation c ON c.oid = a.attcollation \
         WHERE n.nspname = current_schema() AND c.collname <> 'C' AND a.attnum > 0 AND t.relkind = 'r' \
         AND t.relname IN ('hub_facts', 'agents', 'operations', 'tokens', 'spent_challenges', 'invites', \
         'listings', 'listing_owners', 'providers', 'peers', 'peer_leases', 'peer_windows', 'peer_refusals', \
         'peer_nonces', 'remote_histories', 'peer_evidence', 'peer_audit', 'market_accounts', 'market_lines', \
         'market_keys', 'market_references', 'market_channels', 'market_invocations', 'market_repeats', \
         'market_trials', 'market_receipts', 'market_earnings') LIMIT $1",
        "column {} is not sorted by bytes",
    ),
    (
        "SELECT o.name FROM operations o WHERE NOT EXISTS (SELECT 1 FROM agents a WHERE a.name = o.name) LIMIT $1",
        "a row of operations refers to nothing: {}",
    ),
    (
        "SELECT a.name FROM agents a WHERE NOT EXISTS \
         (SELECT 1 FROM operations o WHERE o.name = a.name AND o.seq = a.seq) LIMIT $1",
        "the newest operation of {} is not there",
    ),
];

/// Asks nothing.
pub(super) const PING: &str = "SELECT 1";

/// On PostgreSQL only: how the database is encoded, and whether the server syncs what it commits.
pub(super) const SERVER_SETTINGS: &str = "SELECT CAST(getdatabaseencoding() AS TEXT) AS encoding, \
     current_setting('fsync') AS fsync";

/// So many rows of values, each of so many placeholders and a constant rest.
pub(super) fn rows(count: usize, placeholders: usize, rest: &str) -> String {
    let row = |row: usize| {
        let numbers = (1..=placeholders).map(|column| format!("${}", row * placeholders + column));
        format!("({}{rest})", numbers.collect::<Vec<_>>().join(", "))
    };
    (0..count).map(row).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn placeholders_are_numbered_through() {
        assert_eq!(rows(1, 2, ""), "($1, $2)");
        assert_eq!(rows(2, 2, ", 'x'"), "($1, $2, 'x'), ($3, $4, 'x')");
    }
}
