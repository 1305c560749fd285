//! The changes of histories of agents elsewhere. Each takes the row of `peer_log` first, which has their number.

use aip_federation::peers::{HistoryCap, HistoryCaps};
use aip_protocol::name::Did;
use aip_protocol::time::Timestamp;
use sqlx::AnyConnection;

use super::statements;
use super::writes::lock_log;
use crate::sql::dialect::Dialect;
use crate::sql::rows::{Bind, broken, count, number, query, to_i64};
use crate::sql::writer::{Log, Write};

/// Keeps one.
pub(super) struct KeepHistory {
    pub(super) dialect: Dialect,
    pub(super) did: Did,
    pub(super) length: i64,
    pub(super) operations: String,
    pub(super) fetched_at: Timestamp,
    pub(super) caps: HistoryCaps,
}

impl Write for KeepHistory {
    type Outcome = ();

    fn takes_the_log(&self) -> Option<Log> {
        Some(Log::Peers)
    }

    async fn apply(&self, conn: &mut AnyConnection) -> sqlx::Result<()> {
        lock_log(conn, self.dialect, "audit").await?;
        let size = [Bind::Text(self.did.as_str())];
        let before = sum(conn, statements::SIZE_OF_HISTORY, &size).await?;
        let new = Sum {
            histories: 1,
            bytes: to_i64(self.operations.len()),
        };
        let peer = self.did.domain();
        let keep = [
            Bind::Text(self.did.as_str()),
            Bind::Text(peer.as_str()),
            Bind::Number(self.length),
            Bind::Number(self.fetched_at.unix_millis()),
            Bind::Number(new.bytes),
            Bind::Text(&self.operations),
        ];
        let kept = query(statements::KEEP_HISTORY, &keep).execute(&mut *conn).await?;
        if kept.rows_affected() == 0 {
            return Ok(());
        }
        let mut grown = new.less(before);
        if grown.bytes > 0 {
            let [histories, bytes] = binds(self.caps.per_peer);
            let of_peer = [histories, bytes, Bind::Text(peer.as_str())];
            grown = grown.less(sum(conn, &statements::DROP_HISTORIES_OF_PEER, &of_peer).await?);
        }
        if !self.caps.all.holds(add(conn, grown).await?) {
            let gone = sum(conn, &statements::DROP_HISTORIES, &binds(self.caps.all.cleared())).await?;
            add(conn, Sum::default().less(gone)).await?;
        }
        Ok(())
    }
}

/// Forgets one.
pub(super) struct ForgetHistory {
    pub(super) dialect: Dialect,
    pub(super) did: Did,
}

impl Write for ForgetHistory {
    type Outcome = bool;

    fn takes_the_log(&self) -> Option<Log> {
        Some(Log::Peers)
    }

    async fn apply(&self, conn: &mut AnyConnection) -> sqlx::Result<bool> {
        lock_log(conn, self.dialect, "audit").await?;
        let did = [Bind::Text(self.did.as_str())];
        let gone = sum(conn, statements::FORGET_HISTORY, &did).await?;
        add(conn, Sum::default().less(gone)).await?;
        Ok(gone.histories == 1)
    }
}

/// So many histories, and so many bytes of them; what is less than nothing goes.
#[derive(Debug, Clone, Copy, Default)]
struct Sum {
    histories: i64,
    bytes: i64,
}

impl Sum {
    fn less(self, other: Self) -> Self {
        Self {
            histories: self.histories - other.histories,
            bytes: self.bytes - other.bytes,
        }
    }
}

/// Of the histories that a statement answers with.
async fn sum(conn: &mut AnyConnection, statement: &'static str, values: &[Bind<'_>]) -> sqlx::Result<Sum> {
    let mut sum = Sum::default();
    for row in query(statement, values).fetch_all(conn).await? {
        sum.histories += 1;
        sum.bytes += number::<i64>(&row, "bytes").map_err(broken)?;
    }
    Ok(sum)
}

fn binds(cap: HistoryCap) -> [Bind<'static>; 2] {
    [cap.histories, cap.bytes].map(|most| Bind::Number(to_i64(most)))
}

/// Counts what came or went, and says what there is now.
async fn add(conn: &mut AnyConnection, sum: Sum) -> sqlx::Result<HistoryCap> {
    let values = [Bind::Number(sum.histories), Bind::Number(sum.bytes)];
    let row = query(statements::ADD_HISTORIES, &values).fetch_one(conn).await?;
    Ok(HistoryCap {
        histories: count(&row, "histories").map_err(broken)?,
        bytes: count(&row, "history_bytes").map_err(broken)?,
    })
}
