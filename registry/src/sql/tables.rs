//! Every row of a registry, in order: to copy it into another database, and to compare the two.

use std::fmt;

use sha2::{Digest as _, Sha256};
use sqlx::any::AnyRow;
use sqlx::{AnyConnection, AssertSqlSafe, Connection, Row, SqlSafeStr};

use super::SqlStore;
use super::dialect::Role;
use super::writer::unavailable;
use crate::error::StoreError;
use crate::limits::COPY_PAGE_ROWS;

/// A table, as a copy sees it. `hub_facts` is not among them: it is about the database itself.
#[derive(Debug)]
struct Table {
    name: &'static str,
    /// Its columns, those of the primary key first.
    columns: &'static [(&'static str, Kind)],
    /// How many of them are the primary key.
    keys: usize,
    /// What may have changed in a row that was copied before, and whether it may go into the copy.
    renews: &'static str,
    /// Whether rows go in time, so that a copy must lose those that the original lost.
    is_swept: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Text,
    Number,
}
use Kind::{Number, Text};

/// In an order in which no row refers to a later one.
const TABLES: [Table; 5] = [
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
    },
    Table {
        name: "spent_challenges",
        columns: &[("hash", Text), ("expires_at_ms", Number)],
        keys: 1,
        renews: "NOTHING",
        is_swept: true,
    },
];

/// What a registry holds, in a form that is the same for the same rows in every engine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Digest {
    /// Each table with the number of its rows.
    pub rows: Vec<(&'static str, u64)>,
    /// SHA-256 over all rows in the order of their keys, in hexadecimal.
    pub sha256: String,
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (table, rows) in &self.rows {
            write!(f, "{table} {rows}, ")?;
        }
        write!(f, "sha256 {}", self.sha256)
    }
}

impl SqlStore {
    /// Copies agents with their histories, standings and quotas, tokens, spent challenges and invites
    /// into another registry of the same domain, as they are when it begins, and says how many rows
    /// it went through.
    ///
    /// Each page of rows is a transaction. A copy that was broken off is made whole by another one,
    /// and one that is repeated changes nothing; nothing is removed but tokens and spent challenges
    /// that the original does not have any more, and no history gets shorter. Whether the two are
    /// equal, [`Self::digest`] tells.
    ///
    /// # Errors
    ///
    /// [`StoreError::OtherDomain`] if the two are not of one domain, [`StoreError::Unavailable`] or
    /// [`StoreError::OutcomeUnknown`] if a database failed: copy again.
    pub async fn copy_to(&self, target: &Self) -> Result<u64, StoreError> {
        if self.domain != target.domain {
            return Err(StoreError::OtherDomain {
                found: target.domain.to_string(),
                configured: self.domain.to_string(),
            });
        }
        let mut to = target
            .target
            .connect(Role::Maintainer)
            .await
            .map_err(unavailable)?;
        let begin = target.target.dialect.begin();
        let mut rows = 0;
        let mut reading = Reading::begin(self).await?;
        for table in &TABLES {
            let mut after = table.before_all();
            loop {
                let page = reading.page(table, &after).await?;
                let is_last = page.len() < COPY_PAGE_ROWS;
                put(&mut to, begin, table, &after, &page, is_last).await?;
                rows += page.len() as u64;
                match page.into_iter().next_back() {
                    Some(last) if !is_last => after = table.key(last),
                    _ => break,
                }
            }
        }
        to.close().await.map_err(unavailable)?;
        Ok(rows)
    }

    /// Counts and hashes all rows as they are when it begins. Two registries with the same digest
    /// hold the same. Reads everything: about a second for each 100,000 rows.
    ///
    /// # Errors
    ///
    /// [`StoreError::Unavailable`] if the database failed.
    pub async fn digest(&self) -> Result<Digest, StoreError> {
        let mut reading = Reading::begin(self).await?;
        let (mut hash, mut rows) = (Sha256::new(), Vec::new());
        for table in &TABLES {
            let (mut count, mut after) = (0, table.before_all());
            loop {
                let page = reading.page(table, &after).await?;
                count += page.len() as u64;
                page.iter().flatten().for_each(|value| value.feed(&mut hash));
                match page.into_iter().next_back() {
                    Some(last) => after = table.key(last),
                    None => break,
                }
            }
            hash.update(count.to_be_bytes());
            rows.push((table.name, count));
        }
        Ok(Digest {
            rows,
            sha256: hex::encode(hash.finalize()),
        })
    }
}

/// A database as it was at one moment.
struct Reading {
    conn: AnyConnection,
}

impl Reading {
    async fn begin(store: &SqlStore) -> Result<Self, StoreError> {
        let mut conn = store.target.connect(Role::Checker).await.map_err(unavailable)?;
        // It ends with the connection.
        let begin = sqlx::raw_sql(store.target.dialect.begin_snapshot());
        begin.execute(&mut conn).await.map_err(unavailable)?;
        Ok(Self { conn })
    }

    /// The next rows after a key.
    async fn page(&mut self, table: &Table, after: &[Value]) -> Result<Vec<Vec<Value>>, StoreError> {
        let mut select = sqlx::query(AssertSqlSafe(table.select()));
        for key in after {
            select = key.bind(select);
        }
        let rows = select.fetch_all(&mut self.conn).await.map_err(unavailable)?;
        let page = rows
            .iter()
            .map(|row| table.values(row))
            .collect::<sqlx::Result<_>>();
        page.map_err(|error| StoreError::Corrupt(format!("table {}: {error}", table.name)))
    }
}

/// Makes the rows of `table` after `after`, up to the last one of `page`, those of `page`.
async fn put(
    conn: &mut AnyConnection,
    begin: &'static str,
    table: &Table,
    after: &[Value],
    page: &[Vec<Value>],
    is_last: bool,
) -> Result<(), StoreError> {
    let mut transaction = conn.begin_with(begin.into_sql_str()).await.map_err(unavailable)?;
    if table.is_swept {
        let up_to = if is_last { None } else { page.last() };
        let mut sweep = sqlx::query(AssertSqlSafe(table.sweep(up_to.is_some())));
        for key in after
            .iter()
            .chain(up_to.into_iter().flat_map(|row| row.iter().take(table.keys)))
        {
            sweep = key.bind(sweep);
        }
        sweep.execute(&mut *transaction).await.map_err(unavailable)?;
    }
    if !page.is_empty() {
        let mut insert = sqlx::query(AssertSqlSafe(table.insert(page.len())));
        for value in page.iter().flatten() {
            insert = value.bind(insert);
        }
        insert.execute(&mut *transaction).await.map_err(unavailable)?;
    }
    let commit = transaction.commit().await;
    commit.map_err(|error| StoreError::OutcomeUnknown(std::sync::Arc::new(error)))
}

impl Table {
    fn names(&self) -> Vec<&'static str> {
        self.columns.iter().map(|(name, _)| *name).collect()
    }

    fn key_names(&self) -> String {
        let names: Vec<_> = self.names().into_iter().take(self.keys).collect();
        names.join(", ")
    }

    /// A key before every key there is: no text is empty, no number negative.
    fn before_all(&self) -> Vec<Value> {
        let least = |(_, kind): &(_, Kind)| match kind {
            Text => Value::Text(Some(String::new())),
            Number => Value::Number(Some(-1)),
        };
        self.columns.iter().take(self.keys).map(least).collect()
    }

    fn key(&self, mut row: Vec<Value>) -> Vec<Value> {
        row.truncate(self.keys);
        row
    }

    fn values(&self, row: &AnyRow) -> sqlx::Result<Vec<Value>> {
        let value = |(at, (_, kind)): (usize, &(_, Kind))| match kind {
            Text => row.try_get(at).map(Value::Text),
            Number => row.try_get(at).map(Value::Number),
        };
        self.columns.iter().enumerate().map(value).collect()
    }

    fn select(&self) -> String {
        let (columns, table, keys) = (self.names().join(", "), self.name, self.key_names());
        let after = placeholders(0, self.keys);
        format!(
            "SELECT {columns} FROM {table} WHERE ({keys}) > ({after}) ORDER BY {keys} LIMIT {COPY_PAGE_ROWS}"
        )
    }

    fn insert(&self, rows: usize) -> String {
        let (table, columns, keys, renews) =
            (self.name, self.names().join(", "), self.key_names(), self.renews);
        let count = self.columns.len();
        let rows: Vec<_> = (0..rows)
            .map(|row| format!("({})", placeholders(row * count, count)))
            .collect();
        let rows = rows.join(", ");
        format!("INSERT INTO {table} ({columns}) VALUES {rows} ON CONFLICT ({keys}) DO {renews}")
    }

    fn sweep(&self, has_end: bool) -> String {
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
enum Value {
    Text(Option<String>),
    Number(Option<i64>),
}

type AnyQuery<'q> = sqlx::query::Query<'q, sqlx::Any, sqlx::any::AnyArguments>;

impl Value {
    fn bind<'q>(&self, query: AnyQuery<'q>) -> AnyQuery<'q> {
        match self {
            Self::Text(text) => query.bind(text.clone()),
            Self::Number(number) => query.bind(*number),
        }
    }

    /// A kind, then as many bytes as follow from it, so that no two rows look alike.
    fn feed(&self, hash: &mut Sha256) {
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
                       WHERE m.type = 'table' AND m.name NOT IN ('hub_facts', '_sqlx_migrations')";
        let rows = sqlx::query(columns).fetch_all(&mut conn).await.expect("read");
        let there: BTreeSet<String> = rows.iter().map(|row| row.get(0)).collect();
        let copied = TABLES.iter().flat_map(|table| {
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
