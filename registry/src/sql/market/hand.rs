//! What one change holds of the market's rows, and how it reads and writes them.

use aip_market::store::rows::Issued;
use aip_market::store::{AccountId, KeyId};
use aip_protocol::time::Timestamp;
use sqlx::any::AnyRow;
use sqlx::{AnyConnection, AssertSqlSafe};

use super::{rows, statements};
use crate::error::StoreError;
use crate::sql::dialect::Dialect;
use crate::sql::rows::{Bind, broken, can_be_there, query, to_i64};

/// All rows, until the commit.
pub(super) struct HeldRows<'c> {
    pub(super) conn: &'c mut AnyConnection,
    pub(super) issued: Issued,
}

impl<'c> HeldRows<'c> {
    pub(super) async fn take(conn: &'c mut AnyConnection, dialect: Dialect) -> sqlx::Result<Self> {
        let lock = sqlx::query(AssertSqlSafe(statements::lock_money(dialect.for_update())));
        let row = lock.fetch_one(&mut *conn).await?;
        let issued = rows::issued(&row).map_err(broken)?;
        Ok(Self { conn, issued })
    }

    pub(super) async fn all<T>(
        &mut self,
        statement: &'static str,
        values: &[Bind<'_>],
        read: impl Fn(&AnyRow) -> Result<T, StoreError>,
    ) -> sqlx::Result<Vec<T>> {
        if !can_be_there(values) {
            return Ok(Vec::new());
        }
        let found = query(statement, values).fetch_all(&mut *self.conn).await?;
        found.iter().map(read).collect::<Result<_, _>>().map_err(broken)
    }

    pub(super) async fn one<T>(
        &mut self,
        statement: &'static str,
        values: &[Bind<'_>],
        read: impl Fn(&AnyRow) -> Result<T, StoreError>,
    ) -> sqlx::Result<Option<T>> {
        let found = self.all(statement, values, read).await?;
        Ok(found.into_iter().next())
    }

    pub(super) async fn run(&mut self, statement: &'static str, values: &[Bind<'_>]) -> sqlx::Result<u64> {
        let done = query(statement, values).execute(&mut *self.conn).await?;
        Ok(done.rows_affected())
    }
}

pub(super) fn limit_bind(limit: u32) -> Bind<'static> {
    Bind::Number(limit.into())
}

pub(super) fn micros(amount: aip_market::money::Usd) -> Bind<'static> {
    Bind::Number(to_i64(amount.micros()))
}

pub(super) fn optional_micros(amount: Option<aip_market::money::Usd>) -> Bind<'static> {
    Bind::OptionalNumber(amount.map(|amount| to_i64(amount.micros())))
}

pub(super) fn millis(at: Timestamp) -> Bind<'static> {
    Bind::Number(at.unix_millis())
}

/// The columns `account` and `account_key`.
pub(super) fn payer<'a>(payer: Option<(&'a AccountId, &'a KeyId)>) -> [Bind<'a>; 2] {
    let (account, key) = payer.unzip();
    [
        Bind::OptionalText(account.map(|id| id.0.as_str())),
        Bind::OptionalText(key.map(|id| id.0.as_str())),
    ]
}
