//! What became of a message that a peer handed in: `GET /federation/v1/status` (an addition to spec §8, named `mail-status` in
//! the discovery document's `features`).

use std::sync::Arc;

use aip_protocol::error::{ErrorCode, Refusal};
use aip_protocol::json::{Json, Object};
use aip_protocol::name::Did;
use bytes::Bytes;
use uuid::Uuid;

use super::counters::Call;
use super::{Inbound, MailStatus, Ticket, query};

/// The answer to a question about one message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StatusAnswer {
    /// The message.
    pub id: Uuid,
    /// Its recipient.
    pub to: Did,
    /// What became of it.
    pub status: MailStatus,
}

impl StatusAnswer {
    /// The body of the answer.
    pub fn to_body(&self) -> Bytes {
        let Self { id, to, status } = self;
        let mut object = Object::from([
            ("id", Json::from(id.hyphenated().to_string())),
            ("to", Json::from(to.as_str())),
            ("status", Json::from(status.status.as_str())),
            ("accepted_at", Json::from(status.accepted_at.to_string())),
            ("at", Json::from(status.at.to_string())),
        ]);
        if let Some(code) = &status.code {
            object.insert("code", code.as_str());
        }
        Bytes::from(Json::Object(object).to_jcs())
    }
}

impl Inbound {
    /// Answers a peer that asks what became of a message of one of its agents: `from`, `id`, `to` in the query.
    ///
    /// # Errors
    ///
    /// Those of [`Inbound::push`] about the request; `parameter_unknown`, `parameter_invalid`, `did_invalid`;
    /// `from_domain_mismatch` and `to_domain_mismatch`; `not_found`.
    pub async fn mail_status(&self, ticket: Ticket) -> Result<StatusAnswer, Refusal> {
        let answer = self.answer_status(Arc::new(ticket)).await;
        self.counters.call(Call::Status, answer)
    }

    async fn answer_status(&self, ticket: Arc<Ticket>) -> Result<StatusAnswer, Refusal> {
        let caller = self.authenticate(&ticket, None).await?;
        let [from, id, to] = query::read(&ticket.incoming.target, ["from", "id", "to"])?;
        let (from, id) = (query::given(from, "from")?, query::given(id, "id")?);
        let (from, to) = (Did::parse(&from)?, Did::parse(&query::given(to, "to")?)?);
        let id = Uuid::try_parse(&id).map_err(|_uuid| query::invalid("id", "is a UUID"))?;
        if from.domain() != caller.domain {
            let detail = "A hub asks about mail of its own agents only.";
            return Err(Refusal::new(ErrorCode::FromDomainMismatch, detail));
        }
        if to.domain() != self.policy.own {
            let detail = "The recipient is no agent of this hub's domain.";
            return Err(Refusal::new(ErrorCode::ToDomainMismatch, detail));
        }
        let status = self.seams.statuses.status(&from, &to, id).await?;
        let none = || {
            Refusal::new(
                ErrorCode::NotFound,
                "There is no record of this message, or none any more.",
            )
        };
        Ok(StatusAnswer {
            id,
            to,
            status: status.ok_or_else(none)?,
        })
    }
}
