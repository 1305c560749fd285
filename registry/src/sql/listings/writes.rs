//! The changes of listings. Each takes the log first, so that what it reads stays as it is until the commit.

use std::collections::{BTreeMap, BTreeSet};

use aip_protocol::name::Did;
use aip_protocol::time::Timestamp;
use sqlx::any::AnyArguments;
use sqlx::query::Query;
use sqlx::{Any, AnyConnection, AssertSqlSafe, Row};

use super::rows::{flags_text, review_text, stored_listing, trail_text};
use super::statements;
use crate::limits::{LISTINGS_PER_STATEMENT_MAX, LISTINGS_PER_TRANSACTION_MAX};
use crate::listings::{
    Holding, Ledger, LogState, NewListing, Origin, Put, Reviewed, StoredListing, Verdict, listing_id,
};
use crate::sql::dialect::Dialect;
use crate::sql::rows::{broken, count, to_i64};
use crate::sql::writer::{Log, Write};

/// Versions of listings, to be judged and stored.
pub(in crate::sql) struct PutListings {
    pub(super) dialect: Dialect,
    pub(super) new: Vec<NewListing>,
    pub(super) max_per_agent: u32,
    pub(super) now: Timestamp,
}

impl Write for PutListings {
    type Outcome = Vec<Put>;

    fn takes_the_log(&self) -> Option<Log> {
        Some(Log::Listings)
    }

    async fn apply(&self, conn: &mut AnyConnection) -> sqlx::Result<Vec<Put>> {
        let puts = put_together(conn, &[self]).await?;
        Ok(puts.into_iter().flatten().collect())
    }
}

/// Judges and stores what several callers hand in, in their order, with the statements of one.
pub(in crate::sql) async fn put_together(
    conn: &mut AnyConnection,
    changes: &[&PutListings],
) -> sqlx::Result<Vec<Vec<Put>>> {
    let Some(first) = changes.first() else {
        return Ok(Vec::new());
    };
    let new: Vec<_> = changes.iter().flat_map(|change| &change.new).collect();
    let mut ledger = load(conn, first.dialect, &new).await?;
    let before = ledger.log;
    let mut puts = Vec::with_capacity(changes.len());
    for change in changes {
        let put = |new| ledger.put(new, change.max_per_agent, change.now);
        puts.push(change.new.iter().map(put).collect());
    }
    save(conn, &ledger, before).await?;
    Ok(puts)
}

/// What has to be known in order to judge `new`.
async fn load(conn: &mut AnyConnection, dialect: Dialect, new: &[&NewListing]) -> sqlx::Result<Ledger> {
    let mut ledger = Ledger {
        log: lock_log(conn, dialect).await?,
        ..Ledger::default()
    };
    let ids: BTreeSet<_> = new
        .iter()
        .map(|new| listing_id(&new.agent, &new.listing_id))
        .collect();
    let ids: Vec<_> = ids.into_iter().collect();
    for some in ids.chunks(LISTINGS_PER_STATEMENT_MAX) {
        let query = match some {
            [id] => sqlx::query(statements::GET.as_str()).bind(id.clone()),
            some => {
                let padded = some.iter().cloned().chain(std::iter::repeat(String::new()));
                let query = sqlx::query(statements::GET_MANY.as_str());
                padded.take(LISTINGS_PER_STATEMENT_MAX).fold(query, Query::bind)
            }
        };
        for row in query.fetch_all(&mut *conn).await? {
            let stored = stored_listing(&row).map_err(broken)?;
            ledger.rows.insert(stored.id.clone(), stored);
        }
    }
    let agents: BTreeSet<_> = new.iter().map(|new| &new.agent).collect();
    for agent in agents {
        ledger.holdings.insert(agent.clone(), holding(conn, agent).await?);
    }
    Ok(ledger)
}

async fn lock_log(conn: &mut AnyConnection, dialect: Dialect) -> sqlx::Result<LogState> {
    let lock = sqlx::query(AssertSqlSafe(statements::lock_log(dialect.for_update())));
    let row = lock.fetch_one(conn).await?;
    Ok(LogState {
        change_seq: count(&row, "change_seq").map_err(broken)?,
        number: count(&row, "number").map_err(broken)?,
    })
}

async fn holding(conn: &mut AnyConnection, agent: &Did) -> sqlx::Result<Holding> {
    let get = sqlx::query(statements::GET_OWNER).bind(agent.as_str());
    let Some(row) = get.fetch_optional(conn).await? else {
        return Ok(Holding::default());
    };
    Ok(Holding {
        live: count(&row, "live").map_err(broken)?,
        deleted: count(&row, "deleted").map_err(broken)?,
    })
}

/// Writes what changed since `before`.
async fn save(conn: &mut AnyConnection, ledger: &Ledger, before: LogState) -> sqlx::Result<()> {
    let is_changed = |row: &&StoredListing| row.change_seq > before.change_seq;
    let changed: Vec<_> = ledger.rows.values().filter(is_changed).collect();
    if changed.is_empty() {
        return Ok(());
    }
    for some in changed.chunks(LISTINGS_PER_STATEMENT_MAX) {
        let mut put = sqlx::query(AssertSqlSafe(statements::put(some.len())));
        for listing in some {
            put = bind(put, listing)?;
        }
        put.execute(&mut *conn).await?;
    }
    let agents: BTreeSet<_> = changed.iter().map(|row| &row.agent).collect();
    for agent in agents {
        let holding = ledger.holdings.get(agent).copied().unwrap_or_default();
        set_owner(conn, agent, holding).await?;
    }
    set_log(conn, ledger.log).await
}

async fn set_owner(conn: &mut AnyConnection, agent: &Did, holding: Holding) -> sqlx::Result<()> {
    let set = sqlx::query(statements::SET_OWNER)
        .bind(agent.as_str())
        .bind(to_i64(holding.live))
        .bind(to_i64(holding.deleted));
    set.execute(conn).await.map(drop)
}

async fn set_log(conn: &mut AnyConnection, log: LogState) -> sqlx::Result<()> {
    let set = sqlx::query(statements::SET_LOG)
        .bind(to_i64(log.change_seq))
        .bind(to_i64(log.number));
    set.execute(conn).await.map(drop)
}

/// In the order of the columns.
fn bind<'q>(
    query: Query<'q, Any, AnyArguments>,
    listing: &StoredListing,
) -> sqlx::Result<Query<'q, Any, AnyArguments>> {
    let json = str::from_utf8(&listing.json).map_err(|error| sqlx::Error::Encode(Box::new(error)))?;
    let (provider, hub) = match &listing.origin {
        Origin::Signed => (None, None),
        Origin::Ingested { provider } => (Some(provider.clone()), None),
        Origin::Peer { hub } => (None, Some(hub.clone())),
    };
    Ok(query
        .bind(listing.id.clone())
        .bind(to_i64(listing.number))
        .bind(listing.agent.to_string())
        .bind(listing.listing_id.clone())
        .bind(to_i64(listing.version))
        .bind(i64::from(listing.deleted))
        .bind(hex::encode(listing.digest))
        .bind(provider)
        .bind(flags_text(&listing.flags))
        .bind(to_i64(listing.change_seq))
        .bind(listing.stored_at.unix_millis())
        .bind(listing.expires_at.map(Timestamp::unix_millis))
        .bind(json.to_owned())
        .bind(hub)
        .bind(trail_text(&listing.trail))
        .bind(listing.trail.review.map(review_text)))
}

/// What an operator decided about a listing, or only a new place in the log.
pub(super) struct ReviewListing {
    pub(super) dialect: Dialect,
    pub(super) id: String,
    pub(super) version: Option<u64>,
    pub(super) verdict: Option<Verdict>,
}

impl Write for ReviewListing {
    type Outcome = Reviewed;

    fn takes_the_log(&self) -> Option<Log> {
        Some(Log::Listings)
    }

    async fn apply(&self, conn: &mut AnyConnection) -> sqlx::Result<Reviewed> {
        let mut ledger = Ledger {
            log: lock_log(conn, self.dialect).await?,
            ..Ledger::default()
        };
        let get = sqlx::query(statements::GET.as_str()).bind(self.id.as_str());
        if let Some(row) = get.fetch_optional(&mut *conn).await? {
            let stored = stored_listing(&row).map_err(broken)?;
            ledger
                .holdings
                .insert(stored.agent.clone(), holding(conn, &stored.agent).await?);
            ledger.rows.insert(stored.id.clone(), stored);
        }
        let before = ledger.log;
        let reviewed = ledger.review(&self.id, self.version, self.verdict);
        save(conn, &ledger, before).await?;
        Ok(reviewed)
    }
}

/// Gives a page of an agent's listings new places in the log, and makes them tombstones if they are removed. Says how many
/// there were and which was the last; `None` after the last page.
pub(super) struct MoveUp {
    pub(super) dialect: Dialect,
    pub(super) agent: Did,
    pub(super) after: String,
    pub(super) removed_at: Option<Timestamp>,
}

impl Write for MoveUp {
    type Outcome = Option<(u64, String)>;

    fn takes_the_log(&self) -> Option<Log> {
        Some(Log::Listings)
    }

    async fn apply(&self, conn: &mut AnyConnection) -> sqlx::Result<Self::Outcome> {
        let mut log = lock_log(conn, self.dialect).await?;
        let page = sqlx::query(statements::PAGE_OF_AGENT)
            .bind(self.agent.as_str())
            .bind(self.after.as_str())
            .bind(to_i64(LISTINGS_PER_TRANSACTION_MAX));
        let row = page.fetch_one(&mut *conn).await?;
        let (last, listings): (Option<String>, i64) = (row.try_get("last")?, row.try_get("listings")?);
        let Some(last) = last else {
            return Ok(None);
        };
        let is_removed = self.removed_at.is_some();
        let statement = if is_removed {
            statements::REMOVE
        } else {
            statements::TOUCH
        };
        let mut moved = sqlx::query(statement)
            .bind(to_i64(log.change_seq))
            .bind(self.agent.as_str())
            .bind(self.after.as_str())
            .bind(last.as_str());
        if let Some(removed_at) = self.removed_at {
            moved = moved.bind(removed_at.unix_millis());
        }
        moved.execute(&mut *conn).await?;
        let listings = listings.unsigned_abs();
        if is_removed {
            let mut holding = holding(conn, &self.agent).await?;
            holding.live = holding.live.saturating_sub(listings);
            holding.deleted += listings;
            set_owner(conn, &self.agent, holding).await?;
        }
        log.change_seq += listings;
        set_log(conn, log).await?;
        Ok(Some((listings, last)))
    }
}

/// Forgets tombstones.
pub(super) struct Forget {
    pub(super) dialect: Dialect,
    pub(super) before: Timestamp,
    pub(super) limit: u32,
}

impl Write for Forget {
    type Outcome = u64;

    fn takes_the_log(&self) -> Option<Log> {
        Some(Log::Listings)
    }

    async fn apply(&self, conn: &mut AnyConnection) -> sqlx::Result<u64> {
        lock_log(conn, self.dialect).await?;
        let last = sqlx::query(statements::LAST_OLD)
            .bind(self.before.unix_millis())
            .bind(i64::from(self.limit));
        let Some(last) = last
            .fetch_one(&mut *conn)
            .await?
            .try_get::<Option<i64>, _>("last")?
        else {
            return Ok(0);
        };
        let forget = sqlx::query(statements::FORGET).bind(last);
        let (mut forgotten, mut owners) = (0, BTreeMap::<String, i64>::new());
        for row in forget.fetch_all(&mut *conn).await? {
            *owners.entry(row.try_get("agent")?).or_default() += 1;
            forgotten += 1;
        }
        for (agent, count) in owners {
            let less = sqlx::query(statements::FORGET_OF_OWNER).bind(agent).bind(count);
            less.execute(&mut *conn).await?;
        }
        sqlx::query(statements::DROP_EMPTY_OWNERS)
            .execute(&mut *conn)
            .await?;
        let set = sqlx::query(statements::SET_FORGOTTEN).bind(last);
        set.execute(conn).await?;
        Ok(forgotten)
    }
}
