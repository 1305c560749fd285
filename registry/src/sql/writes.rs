//! The changes: what each one runs inside the writer's transaction.
//!
//! A change decides by how many rows a statement touched, never by reading first, so that it is also
//! right where several hubs write to one database. One that refuses leaves no row behind.

use std::collections::HashMap;

use aip_protocol::name::Name;
use aip_protocol::time::Timestamp;
use sqlx::{AnyConnection, AssertSqlSafe, Row};

use super::dialect::Dialect;
use super::rows::{standing_text, to_i64};
use super::statements;
use super::writer::{Subject, Write};
use crate::directory::{AgentChange, AppendOutcome, CreateOutcome, NewAgent, NextOperation, StoredOperation};
use crate::grants::{InviteGrant, InviteId, TokenGrant, TokenOutcome};
use crate::limits::TOKENS_PER_AGENT_MAX;
use crate::secret::SecretHash;

impl Write for NewAgent {
    type Outcome = CreateOutcome;

    fn subject(&self) -> Option<Subject<'_>> {
        self.invite
            .is_none()
            .then_some(Subject::Agent(self.name.as_str()))
    }

    async fn apply(&self, conn: &mut AnyConnection) -> sqlx::Result<CreateOutcome> {
        let claim = sqlx::query(statements::CLAIM_NAME)
            .bind(self.name.as_str())
            .bind(self.operation.hash.as_str())
            .bind(to_i64(self.operation.seq))
            .bind(self.registered_at.unix_millis())
            .bind(self.invite.map(|hash| InviteId::of(hash).to_string()));
        if claim.execute(&mut *conn).await?.rows_affected() == 0 {
            return Ok(CreateOutcome::Exists);
        }
        if let Some(invite) = self.invite
            && !redeem(conn, invite, self.registered_at).await?
        {
            sqlx::query(statements::UNCLAIM_NAME)
                .bind(self.name.as_str())
                .execute(conn)
                .await?;
            return Ok(CreateOutcome::InviteRefused);
        }
        add_operation(conn, &self.name, &self.operation, self.registered_at).await?;
        Ok(CreateOutcome::Created)
    }
}

/// Registers agents that bring no invite, with two statements for all of them. Of several that want
/// one name the first gets it, as one after the other.
pub(super) async fn create_together(
    conn: &mut AnyConnection,
    agents: &[&NewAgent],
) -> sqlx::Result<Vec<CreateOutcome>> {
    let mut claim = sqlx::query(AssertSqlSafe(statements::claim_names(agents.len())));
    for agent in agents {
        claim = claim
            .bind(agent.name.as_str())
            .bind(agent.operation.hash.as_str())
            .bind(to_i64(agent.operation.seq))
            .bind(agent.registered_at.unix_millis());
    }
    let mut heads = HashMap::new();
    for row in claim.fetch_all(&mut *conn).await? {
        heads.insert(
            row.try_get::<String, _>("name")?,
            row.try_get::<String, _>("head")?,
        );
    }
    let (mut created, mut outcomes) = (Vec::with_capacity(agents.len()), Vec::with_capacity(agents.len()));
    for agent in agents {
        let name = agent.name.as_str();
        let is_claimed = heads.get(name).is_some_and(|head| *head == agent.operation.hash);
        outcomes.push(if is_claimed {
            heads.remove(name);
            created.push(*agent);
            CreateOutcome::Created
        } else {
            CreateOutcome::Exists
        });
    }
    add_first_operations(conn, &created).await?;
    Ok(outcomes)
}

async fn add_first_operations(conn: &mut AnyConnection, agents: &[&NewAgent]) -> sqlx::Result<()> {
    if agents.is_empty() {
        return Ok(());
    }
    let mut add = sqlx::query(AssertSqlSafe(statements::add_operations(agents.len())));
    for agent in agents {
        add = add
            .bind(agent.name.as_str())
            .bind(to_i64(agent.operation.seq))
            .bind(agent.operation.json.as_str())
            .bind(agent.registered_at.unix_millis());
    }
    add.execute(conn).await.map(drop)
}

impl Write for NextOperation {
    type Outcome = AppendOutcome;

    fn subject(&self) -> Option<Subject<'_>> {
        Some(Subject::Agent(self.name.as_str()))
    }

    async fn apply(&self, conn: &mut AnyConnection) -> sqlx::Result<AppendOutcome> {
        let Some(prev) = &self.operation.prev else {
            return Ok(AppendOutcome::Stale);
        };
        let moved = sqlx::query(statements::MOVE_HEAD)
            .bind(self.name.as_str())
            .bind(prev.as_str())
            .bind(self.operation.hash.as_str())
            .bind(to_i64(self.operation.seq))
            .bind(self.operation.deactivates.then(|| self.admitted_at.unix_millis()));
        if moved.execute(&mut *conn).await?.rows_affected() == 0 {
            return Ok(AppendOutcome::Stale);
        }
        add_operation(conn, &self.name, &self.operation, self.admitted_at).await?;
        Ok(AppendOutcome::Appended)
    }
}

async fn redeem(conn: &mut AnyConnection, invite: SecretHash, now: Timestamp) -> sqlx::Result<bool> {
    let redeem = sqlx::query(statements::REDEEM_INVITE)
        .bind(invite.to_hex())
        .bind(now.unix_millis());
    Ok(redeem.execute(conn).await?.rows_affected() == 1)
}

async fn add_operation(
    conn: &mut AnyConnection,
    name: &Name,
    operation: &StoredOperation,
    now: Timestamp,
) -> sqlx::Result<()> {
    let add = sqlx::query(statements::ADD_OPERATION)
        .bind(name.as_str())
        .bind(to_i64(operation.seq))
        .bind(operation.json.as_str())
        .bind(now.unix_millis());
    add.execute(conn).await.map(drop)
}

/// What an operator sets.
pub(super) struct Update {
    pub(super) name: Name,
    pub(super) change: AgentChange,
}

impl Write for Update {
    type Outcome = bool;

    fn subject(&self) -> Option<Subject<'_>> {
        Some(Subject::Agent(self.name.as_str()))
    }

    async fn apply(&self, conn: &mut AnyConnection) -> sqlx::Result<bool> {
        let set = match self.change {
            AgentChange::Standing(standing) => sqlx::query(statements::SET_STANDING)
                .bind(self.name.as_str())
                .bind(standing_text(standing)),
            AgentChange::Quota(quota) => sqlx::query(statements::SET_QUOTA)
                .bind(self.name.as_str())
                .bind(quota.mailbox_messages.map(to_i64))
                .bind(quota.mailbox_bytes.map(to_i64))
                .bind(quota.sender_messages.map(to_i64)),
        };
        Ok(set.execute(conn).await?.rows_affected() == 1)
    }
}

impl Write for TokenGrant {
    type Outcome = TokenOutcome;

    async fn apply(&self, conn: &mut AnyConnection) -> sqlx::Result<TokenOutcome> {
        let spend = sqlx::query(statements::SPEND_CHALLENGE)
            .bind(self.challenge.to_hex())
            .bind(self.challenge_kept_until.unix_millis());
        if spend.execute(&mut *conn).await?.rows_affected() == 0 {
            return Ok(TokenOutcome::ChallengeSpent);
        }
        let add = sqlx::query(statements::ADD_TOKEN)
            .bind(self.token.to_hex())
            .bind(self.record.name.as_str())
            .bind(self.record.kid.as_str())
            .bind(self.record.issued_at.unix_millis())
            .bind(self.record.expires_at.unix_millis());
        add.execute(&mut *conn).await?;
        let drop_oldest = sqlx::query(statements::DROP_OLDEST_TOKENS)
            .bind(self.record.name.as_str())
            .bind(i64::from(TOKENS_PER_AGENT_MAX));
        let gone = drop_oldest.fetch_all(conn).await?;
        let mut displaced = Vec::with_capacity(gone.len());
        for row in &gone {
            displaced.extend(SecretHash::from_hex(&row.try_get::<String, _>("hash")?));
        }
        Ok(TokenOutcome::Issued { displaced })
    }
}

impl Write for InviteGrant {
    type Outcome = ();

    async fn apply(&self, conn: &mut AnyConnection) -> sqlx::Result<()> {
        let add = sqlx::query(statements::ADD_INVITE)
            .bind(InviteId::of(self.hash).to_string())
            .bind(self.hash.to_hex())
            .bind(self.note.as_str())
            .bind(i64::from(self.uses))
            .bind(i64::from(self.uses))
            .bind(self.created_at.unix_millis())
            .bind(self.expires_at.map(Timestamp::unix_millis));
        add.execute(conn).await.map(drop)
    }
}

/// The end of an invite.
pub(super) struct Revoke {
    pub(super) id: InviteId,
    pub(super) now: Timestamp,
}

impl Write for Revoke {
    type Outcome = bool;

    async fn apply(&self, conn: &mut AnyConnection) -> sqlx::Result<bool> {
        let revoke = sqlx::query(statements::REVOKE_INVITE)
            .bind(self.id.as_str())
            .bind(self.now.unix_millis());
        Ok(revoke.execute(conn).await?.rows_affected() == 1)
    }
}

/// Removes what is over.
pub(super) struct Sweep {
    pub(super) dialect: Dialect,
    pub(super) now: Timestamp,
    pub(super) limit: u32,
}

impl Write for Sweep {
    type Outcome = u64;

    async fn apply(&self, conn: &mut AnyConnection) -> sqlx::Result<u64> {
        let mut removed = 0;
        for table in ["tokens", "spent_challenges"] {
            let sweep = sqlx::query(AssertSqlSafe(statements::sweep(
                table,
                self.dialect.skip_locked(),
            )))
            .bind(self.now.unix_millis())
            .bind(i64::from(self.limit));
            removed += sweep.execute(&mut *conn).await?.rows_affected();
        }
        Ok(removed)
    }
}
