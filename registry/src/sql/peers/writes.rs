//! The changes about peers, but for those of windows and histories.

use aip_federation::limits::EVIDENCE_PER_PEER_MAX;
use aip_federation::peers::{PeerChange, PeerRecord};
use aip_protocol::name::Domain;
use aip_protocol::time::Timestamp;
use sqlx::any::{AnyArguments, AnyRow};
use sqlx::query::Query;
use sqlx::{Any, AnyConnection, AssertSqlSafe};

use super::{rows, statements};
use crate::limits::NONCES_DROPPED_PER_USE;
use crate::peers::{OPERATOR, evidence_key, plain, step};
use crate::sql::dialect::Dialect;
use crate::sql::rows::{broken, count, to_i64};
use crate::sql::writer::{Log, Subject, Write};

/// A change of a peer's record.
pub(super) struct ChangePeer {
    pub(super) domain: Domain,
    pub(super) change: PeerChange,
    pub(super) now: Timestamp,
}

impl Write for ChangePeer {
    type Outcome = PeerRecord;

    fn subject(&self) -> Option<Subject<'_>> {
        Some(Subject::Peer(self.domain.as_str()))
    }

    async fn apply(&self, conn: &mut AnyConnection) -> sqlx::Result<PeerRecord> {
        let row = self.query().fetch_one(conn).await?;
        rows::peer(&row).map_err(broken)
    }
}

impl ChangePeer {
    fn query(&self) -> Query<'_, Any, AnyArguments> {
        let now = self.now.unix_millis();
        let begin = |statement: &'static str| sqlx::query(statement).bind(self.domain.as_str()).bind(now);
        match &self.change {
            PeerChange::Met => begin(&statements::MEET),
            PeerChange::Documented {
                document,
                pinned,
                fresh_until,
            } => begin(&statements::DOCUMENT)
                .bind(document.to_string())
                .bind(rows::keys_text(pinned))
                .bind(fresh_until.unix_millis()),
            PeerChange::Stale => begin(&statements::MAKE_STALE),
            PeerChange::Frozen(frozen) => begin(&statements::FREEZE)
                .bind(plain(&frozen.code))
                .bind(plain(&frozen.kid))
                .bind(frozen.since.unix_millis()),
            PeerChange::Repinned => begin(&statements::REPIN),
            PeerChange::Stance(stance) => begin(&statements::SET_STANCE).bind(rows::stance_text(*stance)),
            PeerChange::Limits(limits) => begin(&statements::SET_LIMITS)
                .bind(limits.items_per_sec.map(i64::from))
                .bind(limits.bytes_per_sec.map(to_i64))
                .bind(limits.queue_items.map(i64::from)),
            PeerChange::CameIn { good_items } => begin(&statements::CAME_IN)
                .bind(now)
                .bind(to_i64(step(*good_items))),
            PeerChange::WentOut => begin(&statements::WENT_OUT).bind(now),
        }
    }
}

/// Forgets peers that nobody hears of any more, and turns that ended long ago.
pub(super) struct ForgetDead {
    pub(super) dialect: Dialect,
    pub(super) before: Timestamp,
    pub(super) limit: u32,
}

impl Write for ForgetDead {
    type Outcome = Vec<Domain>;

    async fn apply(&self, conn: &mut AnyConnection) -> sqlx::Result<Vec<Domain>> {
        let before = self.before.unix_millis();
        let forget = sqlx::query(AssertSqlSafe(statements::forget_dead(self.dialect.skip_locked())))
            .bind(before)
            .bind(i64::from(self.limit));
        let forgotten = domains(&forget.fetch_all(&mut *conn).await?)?;
        drop_of_each(conn, &forgotten, &[statements::FORGET_LINES]).await?;
        let leases = sqlx::query(statements::FORGET_LEASES).bind(before);
        leases.execute(conn).await?;
        Ok(forgotten)
    }
}

/// Forgets strangers where there are too many.
pub(super) struct ForgetStrangers {
    pub(super) keep: u32,
    pub(super) limit: u32,
}

impl Write for ForgetStrangers {
    type Outcome = Vec<Domain>;

    async fn apply(&self, conn: &mut AnyConnection) -> sqlx::Result<Vec<Domain>> {
        let forget = sqlx::query(statements::FORGET_STRANGERS.as_str())
            .bind(i64::from(self.keep))
            .bind(i64::from(self.limit));
        let forgotten = domains(&forget.fetch_all(&mut *conn).await?)?;
        drop_of_each(conn, &forgotten, &statements::FORGET_DEEDS).await?;
        drop_of_each(conn, &forgotten, &[statements::FORGET_LINES]).await?;
        Ok(forgotten)
    }
}

/// The domains in these rows, in order.
fn domains(found: &[AnyRow]) -> sqlx::Result<Vec<Domain>> {
    let domains = found.iter().map(|row| rows::domain(row, "domain"));
    let mut domains = domains.collect::<Result<Vec<_>, _>>().map_err(broken)?;
    domains.sort_unstable();
    Ok(domains)
}

async fn drop_of_each(
    conn: &mut AnyConnection,
    peers: &[Domain],
    drops: &[&'static str],
) -> sqlx::Result<()> {
    for peer in peers {
        for drop in drops {
            let drop = sqlx::query(*drop).bind(peer.as_str());
            drop.execute(&mut *conn).await?;
        }
    }
    Ok(())
}

/// Takes a turn, or lengthens it.
pub(super) struct Lease {
    pub(super) peer: Domain,
    pub(super) holder: String,
    pub(super) now: Timestamp,
    pub(super) until: Timestamp,
}

impl Write for Lease {
    type Outcome = bool;

    fn subject(&self) -> Option<Subject<'_>> {
        Some(Subject::Lease(self.peer.as_str()))
    }

    async fn apply(&self, conn: &mut AnyConnection) -> sqlx::Result<bool> {
        let lease = sqlx::query(statements::LEASE)
            .bind(self.peer.as_str())
            .bind(self.holder.as_str())
            .bind(self.until.unix_millis())
            .bind(self.now.unix_millis());
        Ok(lease.execute(conn).await?.rows_affected() == 1)
    }
}

/// Gives a turn back.
pub(super) struct Release {
    pub(super) peer: Domain,
    pub(super) holder: String,
}

impl Write for Release {
    type Outcome = ();

    fn subject(&self) -> Option<Subject<'_>> {
        Some(Subject::Lease(self.peer.as_str()))
    }

    async fn apply(&self, conn: &mut AnyConnection) -> sqlx::Result<()> {
        let release = sqlx::query(statements::RELEASE)
            .bind(self.peer.as_str())
            .bind(self.holder.as_str());
        release.execute(conn).await.map(|_| ())
    }
}

/// Uses up a nonce.
pub(super) struct UseNonce {
    pub(super) dialect: Dialect,
    pub(super) hash: String,
    pub(super) now: Timestamp,
    pub(super) until: Timestamp,
}

impl Write for UseNonce {
    type Outcome = bool;

    fn subject(&self) -> Option<Subject<'_>> {
        Some(Subject::Nonce(&self.hash))
    }

    async fn apply(&self, conn: &mut AnyConnection) -> sqlx::Result<bool> {
        let now = self.now.unix_millis();
        let nonce = sqlx::query(statements::USE_NONCE)
            .bind(self.hash.as_str())
            .bind(self.until.unix_millis())
            .bind(now);
        let is_fresh = nonce.execute(&mut *conn).await?.rows_affected() == 1;
        let sweep = crate::sql::statements::sweep("peer_nonces", self.dialect.skip_locked());
        let sweep = sqlx::query(AssertSqlSafe(sweep))
            .bind(now)
            .bind(i64::from(NONCES_DROPPED_PER_USE));
        sweep.execute(conn).await?;
        Ok(is_fresh)
    }
}

/// The last number of a log, which nobody else moves until the commit.
pub(super) async fn lock_log(conn: &mut AnyConnection, dialect: Dialect, log: &str) -> sqlx::Result<u64> {
    let lock = sqlx::query(AssertSqlSafe(statements::lock_log(dialect.for_update())));
    count(&lock.fetch_one(conn).await?, log).map_err(broken)
}

/// A piece of evidence.
pub(super) struct AddEvidence {
    pub(super) dialect: Dialect,
    pub(super) peer: Domain,
    pub(super) code: String,
    pub(super) subject: String,
    pub(super) objects: String,
    pub(super) now: Timestamp,
}

impl Write for AddEvidence {
    type Outcome = ();

    fn takes_the_log(&self) -> Option<Log> {
        Some(Log::Peers)
    }

    async fn apply(&self, conn: &mut AnyConnection) -> sqlx::Result<()> {
        let next = to_i64(lock_log(conn, self.dialect, "evidence").await? + 1);
        let count_all = sqlx::query(statements::COUNT_EVIDENCE).bind(self.peer.as_str());
        let row = count_all.fetch_one(&mut *conn).await?;
        if count(&row, "evidence").map_err(broken)? >= EVIDENCE_PER_PEER_MAX.into() {
            return Ok(());
        }
        let add = sqlx::query(statements::ADD_EVIDENCE)
            .bind(next)
            .bind(self.peer.as_str())
            .bind(evidence_key(&self.code, &self.subject, &self.objects))
            .bind(self.code.as_str())
            .bind(self.subject.as_str())
            .bind(self.objects.as_str())
            .bind(self.now.unix_millis());
        if add.execute(&mut *conn).await?.rows_affected() == 0 {
            return Ok(());
        }
        let set = sqlx::query(statements::SET_EVIDENCE_NUMBER).bind(next);
        set.execute(conn).await.map(|_| ())
    }
}

/// A line of the audit log.
pub(super) struct AddLine {
    pub(super) dialect: Dialect,
    pub(super) peer: Domain,
    pub(super) actor: String,
    pub(super) action: String,
    pub(super) detail: String,
    pub(super) now: Timestamp,
}

impl Write for AddLine {
    type Outcome = ();

    fn takes_the_log(&self) -> Option<Log> {
        Some(Log::Peers)
    }

    async fn apply(&self, conn: &mut AnyConnection) -> sqlx::Result<()> {
        let next = to_i64(lock_log(conn, self.dialect, "audit").await? + 1);
        let add = sqlx::query(statements::ADD_LINE)
            .bind(next)
            .bind(self.peer.as_str())
            .bind(self.actor.as_str())
            .bind(self.action.as_str())
            .bind(self.detail.as_str())
            .bind(self.now.unix_millis());
        add.execute(&mut *conn).await?;
        if self.actor != OPERATOR {
            let drop = sqlx::query(statements::DROP_OLD_LINES.as_str())
                .bind(self.peer.as_str())
                .bind(self.actor.as_str());
            drop.execute(&mut *conn).await?;
        }
        let set = sqlx::query(statements::SET_AUDIT_NUMBER).bind(next);
        set.execute(conn).await.map(|_| ())
    }
}
