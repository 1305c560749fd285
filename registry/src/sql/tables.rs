//! The tables of a registry as data: what a copy or a comparison has to know about their columns and keys.

mod market;

use sha2::{Digest as _, Sha256};
use sqlx::Row;
use sqlx::any::AnyRow;

use super::listings::statements::AFTER_COPY;
use super::peers::statements::{AFTER_COPY as AFTER_COPY_OF_WINDOWS, COUNT_HISTORIES};
use crate::limits::{COPY_PAGE_LARGE_ROWS, COPY_PAGE_ROWS};

/// A table, as a copy sees it. Three are not among them: `hub_facts` is about the database itself, `listing_owners` is
/// counted from the listings, and `peer_leases` are turns of processes that end within seconds.
#[derive(Debug)]
pub(super) struct Table {
    pub(super) name: &'static str,
    /// Its columns, those of the primary key first.
    columns: &'static [(&'static str, Kind)],
    /// How many of them are the primary key.
    pub(super) keys: usize,
    /// What may have changed in a row that was copied before, and whether it may go into the copy.
    renews: &'static str,
    /// Whether rows go in time, so that a copy must lose those that the original lost.
    pub(super) is_swept: bool,
    /// Rows in one page.
    pub(super) page_rows: usize,
    /// What is done when all of them are copied.
    pub(super) afterwards: &'static [&'static str],
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Text,
    Number,
}
use Kind::{Number, Text};

/// All of them, in an order in which no row refers to a later one.
pub(super) fn tables() -> impl Iterator<Item = &'static Table> {
    TABLES.iter().chain(&market::TABLES)
}

/// Those that are not of the market.
const TABLES: [Table; 16] = [
    Table {
        name: "invites",
        columns: &[
            ("id", Text),
            ("hash", Text),
            ("note", Text),
            ("uses_max", Number),
            ("uses_left", Number),
            ("created_at_ms", Number),
            ("expires_at_ms", Number),
            ("revoked_at_ms", Number),
        ],
        keys: 1,
        renews: "UPDATE SET uses_left = excluded.uses_left, revoked_at_ms = excluded.revoked_at_ms",
        is_swept: false,
        page_rows: COPY_PAGE_ROWS,
        afterwards: &[],
    },
    Table {
        name: "agents",
        columns: &[
            ("name", Text),
            ("head", Text),
            ("seq", Number),
            ("standing", Text),
            ("registered_at_ms", Number),
            ("deactivated_at_ms", Number),
            ("invite", Text),
            ("mailbox_messages", Number),
            ("mailbox_bytes", Number),
            ("sender_messages", Number),
        ],
        keys: 1,
        // A history never shrinks, whatever is copied over it.
        renews: "UPDATE SET head = excluded.head, seq = excluded.seq, standing = excluded.standing, \
                 deactivated_at_ms = excluded.deactivated_at_ms, mailbox_messages = excluded.mailbox_messages, \
                 mailbox_bytes = excluded.mailbox_bytes, sender_messages = excluded.sender_messages \
                 WHERE agents.seq <= excluded.seq",
        is_swept: false,
        page_rows: COPY_PAGE_ROWS,
        afterwards: &[],
    },
    Table {
        name: "operations",
        columns: &[
            ("name", Text),
            ("seq", Number),
            ("operation", Text),
            ("admitted_at_ms", Number),
        ],
        keys: 2,
        renews: "NOTHING",
        is_swept: false,
        page_rows: COPY_PAGE_ROWS,
        afterwards: &[],
    },
    Table {
        name: "tokens",
        columns: &[
            ("hash", Text),
            ("name", Text),
            ("kid", Text),
            ("issued_at_ms", Number),
            ("expires_at_ms", Number),
        ],
        keys: 1,
        renews: "NOTHING",
        is_swept: true,
        page_rows: COPY_PAGE_ROWS,
        afterwards: &[],
    },
    Table {
        name: "spent_challenges",
        columns: &[("hash", Text), ("expires_at_ms", Number)],
        keys: 1,
        renews: "NOTHING",
        is_swept: true,
        page_rows: COPY_PAGE_ROWS,
        afterwards: &[],
    },
    Table {
        name: "providers",
        columns: &[
            ("id", Text),
            ("hash", Text),
            ("name", Text),
            ("agent", Text),
            ("created_at_ms", Number),
            ("revoked_at_ms", Number),
            ("last_used_at_ms", Number),
        ],
        keys: 1,
        renews: "UPDATE SET revoked_at_ms = excluded.revoked_at_ms, last_used_at_ms = excluded.last_used_at_ms",
        is_swept: false,
        page_rows: COPY_PAGE_ROWS,
        afterwards: &[],
    },
    Table {
        name: "listing_log",
        columns: &[
            ("id", Number),
            ("change_seq", Number),
            ("number", Number),
            ("forgotten_seq", Number),
        ],
        keys: 1,
        renews: "UPDATE SET change_seq = excluded.change_seq, number = excluded.number, \
                 forgotten_seq = excluded.forgotten_seq WHERE listing_log.change_seq <= excluded.change_seq",
        is_swept: false,
        page_rows: COPY_PAGE_ROWS,
        afterwards: &[],
    },
    Table {
        name: "listings",
        columns: &[
            ("id", Text),
            ("number", Number),
            ("agent", Text),
            ("listing_id", Text),
            ("version", Number),
            ("deleted", Number),
            ("digest", Text),
            ("provider", Text),
            ("flags", Text),
            ("change_seq", Number),
            ("stored_at_ms", Number),
            ("expires_at_ms", Number),
            ("json", Text),
            ("hub", Text),
            ("trail", Text),
            ("review", Text),
        ],
        keys: 1,
        renews: "UPDATE SET number = excluded.number, version = excluded.version, deleted = excluded.deleted, \
                 digest = excluded.digest, provider = excluded.provider, flags = excluded.flags, \
                 change_seq = excluded.change_seq, stored_at_ms = excluded.stored_at_ms, \
                 expires_at_ms = excluded.expires_at_ms, json = excluded.json, hub = excluded.hub, \
                 trail = excluded.trail, review = excluded.review \
                 WHERE listings.change_seq <= excluded.change_seq",
        is_swept: false,
        page_rows: COPY_PAGE_ROWS,
        afterwards: &AFTER_COPY,
    },
    Table {
        name: "peers",
        columns: &[
            ("domain", Text),
            ("pinned", Text),
            ("document", Text),
            ("fresh_until_ms", Number),
            ("frozen_code", Text),
            ("frozen_kid", Text),
            ("frozen_since_ms", Number),
            ("stance", Text),
            ("items_per_sec", Number),
            ("bytes_per_sec", Number),
            ("queue_items", Number),
            ("first_seen_ms", Number),
            ("last_in_ms", Number),
            ("last_out_ms", Number),
            ("good_items", Number),
        ],
        keys: 1,
        renews: "NOTHING",
        is_swept: true,
        page_rows: COPY_PAGE_LARGE_ROWS,
        afterwards: &[],
    },
    Table {
        name: "peer_windows",
        columns: &[
            ("peer", Text),
            ("epoch", Text),
            ("number", Number),
            ("floor", Number),
            ("above", Text),
        ],
        keys: 2,
        renews: // A window never goes back.
        "UPDATE SET number = excluded.number, floor = excluded.floor, above = excluded.above \
                 WHERE peer_windows.floor <= excluded.floor",
        is_swept: false,
        page_rows: COPY_PAGE_ROWS,
        afterwards: &AFTER_COPY_OF_WINDOWS,
    },
    Table {
        name: "peer_refusals",
        columns: &[
            ("peer", Text),
            ("epoch", Text),
            ("peer_seq", Number),
            ("code", Text),
        ],
        keys: 3,
        renews: "NOTHING",
        is_swept: true,
        page_rows: COPY_PAGE_ROWS,
        afterwards: &[],
    },
    Table {
        name: "peer_nonces",
        columns: &[("hash", Text), ("expires_at_ms", Number)],
        keys: 1,
        renews: "NOTHING",
        is_swept: true,
        page_rows: COPY_PAGE_ROWS,
        afterwards: &[],
    },
    Table {
        name: "remote_histories",
        columns: &[
            ("did", Text),
            ("peer", Text),
            ("length", Number),
            ("fetched_at_ms", Number),
            ("bytes", Number),
            ("operations", Text),
        ],
        keys: 1,
        renews: "NOTHING",
        is_swept: true,
        page_rows: COPY_PAGE_LARGE_ROWS,
        afterwards: &[],
    },
    Table {
        name: "peer_log",
        columns: &[
            ("id", Number),
            ("evidence", Number),
            ("audit", Number),
            ("histories", Number),
            ("history_bytes", Number),
        ],
        keys: 1,
        renews: "UPDATE SET evidence = excluded.evidence, audit = excluded.audit \
                 WHERE peer_log.evidence <= excluded.evidence AND peer_log.audit <= excluded.audit",
        is_swept: false,
        page_rows: COPY_PAGE_ROWS,
        afterwards: &COUNT_HISTORIES,
    },
    Table {
        name: "peer_evidence",
        columns: &[
            ("number", Number),
            ("peer", Text),
            ("hash", Text),
            ("code", Text),
            ("subject", Text),
            ("objects", Text),
            ("at_ms", Number),
        ],
        keys: 1,
        renews: "NOTHING",
        is_swept: false,
        page_rows: COPY_PAGE_LARGE_ROWS,
        afterwards: &[],
    },
    Table {
        name: "peer_audit",
        columns: &[
            ("number", Number),
            ("peer", Text),
            ("actor", Text),
            ("action", Text),
            ("detail", Text),
            ("at_ms", Number),
        ],
        keys: 1,
        renews: "NOTHING",
        is_swept: true,
        page_rows: COPY_PAGE_ROWS,
        afterwards: &[],
    },
];

impl Table {
    fn names(&self) -> Vec<&'static str> {
        self.columns.iter().map(|(name, _)| *name).collect()
    }

    fn key_names(&self) -> String {
        let names: Vec<_> = self.names().into_iter().take(self.keys).collect();
        names.join(", ")
    }

    /// A key before every key there is: no text is empty, no number negative.
    pub(super) fn before_all(&self) -> Vec<Value> {
        let least = |(_, kind): &(_, Kind)| match kind {
            Text => Value::Text(Some(String::new())),
            Number => Value::Number(Some(-1)),
        };
        self.columns.iter().take(self.keys).map(least).collect()
    }

    pub(super) fn key(&self, mut row: Vec<Value>) -> Vec<Value> {
        row.truncate(self.keys);
        row
    }

    pub(super) fn values(&self, row: &AnyRow) -> sqlx::Result<Vec<Value>> {
        let value = |(at, (_, kind)): (usize, &(_, Kind))| match kind {
            Text => row.try_get(at).map(Value::Text),
            Number => row.try_get(at).map(Value::Number),
        };
        self.columns.iter().enumerate().map(value).collect()
    }

    pub(super) fn select(&self) -> String {
        let (columns, table, keys) = (self.names().join(", "), self.name, self.key_names());
        let after = placeholders(0, self.keys);
        format!(
            "SELECT {columns} FROM {table} WHERE ({keys}) > ({after}) ORDER BY {keys} LIMIT {}",
            self.page_rows
        )
    }

    pub(super) fn insert(&self, rows: usize) -> String {
        let (table, columns, keys, renews) =
            (self.name, self.names().join(", "), self.key_names(), self.renews);
        let count = self.columns.len();
        let rows: Vec<_> = (0..rows)
            .map(|row| format!("({})", placeholders(row * count, count)))
            .collect();
        let rows = rows.join(", ");
        format!("INSERT INTO {table} ({columns}) VALUES {rows} ON CONFLICT ({keys}) DO {renews}")
    }

    pub(super) fn sweep(&self, has_end: bool) -> String {
        let (table, keys) = (self.name, self.key_names());
        let (after, up_to) = (placeholders(0, self.keys), placeholders(self.keys, self.keys));
        let end = if has_end {
            format!(" AND ({keys}) <= ({up_to})")
        } else {
            String::new()
        };
        format!("DELETE FROM {table} WHERE ({keys}) > ({after}){end}")
    }
}

/// So many placeholders after the first `skip`.
fn placeholders(skip: usize, count: usize) -> String {
    let numbers = (skip + 1..=skip + count).map(|number| format!("${number}"));
    numbers.collect::<Vec<_>>().join(", ")
}

/// What is in a column.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Value {
    Text(Option<String>),
    Number(Option<i64>),
}

type AnyQuery<'q> = sqlx::query::Query<'q, sqlx::Any, sqlx::any::AnyArguments>;

impl Value {
    pub(super) fn bind<'q>(&self, query: AnyQuery<'q>) -> AnyQuery<'q> {
        match self {
            Self::Text(text) => query.bind(text.clone()),
            Self::Number(number) => query.bind(*number),
        }
    }

    /// A kind, then as many bytes as follow from it, so that no two rows look alike.
    pub(super) fn feed(&self, hash: &mut Sha256) {
        match self {
            Self::Text(None) | Self::Number(None) => hash.update([0]),
            Self::Text(Some(text)) => {
                hash.update([1]);
                hash.update((text.len() as u64).to_be_bytes());
                hash.update(text.as_bytes());
            }
            Self::Number(Some(number)) => {
                hash.update([2]);
                hash.update(number.to_be_bytes());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sql::SqlStore;
    use crate::sql::dialect::Role;
    use std::collections::BTreeSet;

    #[tokio::test]
    async fn every_table_and_every_column_is_copied() {
        let folder = tempfile::tempdir().expect("a folder");
        let domain = aip_protocol::name::Domain::parse("hub.example").expect("a domain");
        let store = SqlStore::open_sqlite(&folder.path().join("db"), &domain)
            .await
            .expect("opened");
        let mut conn = store.target.connect(Role::Checker).await.expect("connected");
        let columns = "SELECT m.name || '.' || c.name FROM sqlite_master m, pragma_table_info(m.name) c \
                       WHERE m.type = 'table' AND m.name NOT IN \
                       ('hub_facts', 'listing_owners', 'peer_leases', '_sqlx_migrations')";
        let rows = sqlx::query(columns).fetch_all(&mut conn).await.expect("read");
        let there: BTreeSet<String> = rows.iter().map(|row| row.get(0)).collect();
        let copied = tables().flat_map(|table| {
            table
                .columns
                .iter()
                .map(|(name, _)| format!("{}.{name}", table.name))
        });
        assert_eq!(copied.collect::<BTreeSet<_>>(), there);
    }

    #[test]
    fn statements_are_numbered_through() {
        let operations = &TABLES[2];
        assert_eq!(
            operations.select(),
            "SELECT name, seq, operation, admitted_at_ms FROM operations WHERE (name, seq) > ($1, $2) \
             ORDER BY name, seq LIMIT 200"
        );
        assert_eq!(
            operations.insert(2),
            "INSERT INTO operations (name, seq, operation, admitted_at_ms) VALUES ($1, $2, $3, $4), \
             ($5, $6, $7, $8) ON CONFLICT (name, seq) DO NOTHING"
        );
        assert_eq!(
            TABLES[4].sweep(true),
            "DELETE FROM spent_challenges WHERE (hash) > ($1) AND (hash) <= ($2)"
        );
    }
}
