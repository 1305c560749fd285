//! `POST` and `DELETE /api/v1/ingest/listings`: many listings at once, one JSON object a line (§9).

use actix_web::{HttpRequest, HttpResponse, web};
use aip_protocol::error::{ErrorCode, Refusal};
use aip_protocol::name::Did;
use aip_protocol::time::Timestamp;
use serde::Serialize;
use utoipa::ToSchema;

use super::provider;
use crate::app::App;
use crate::catalog::limits::{INGEST_STEP_ROWS, LISTING_BYTES_MAX};
use crate::catalog::{Ingest, Outcome, Quarantine, Row};
use crate::error::ApiError;
use crate::extract::{BodyLimit, Line, Lines, Query};
use crate::throttle::Cost;

/// What became of the rows.
#[derive(Debug, Default, Serialize, ToSchema)]
pub struct IngestReport {
    /// Rows that are stored now, and were not before.
    pub stored: u64,
    /// Rows that say what the hub held already.
    pub unchanged: u64,
    /// Rows that took a listing away.
    pub deleted: u64,
    /// Rows that were refused.
    pub refused: u64,
    /// Each row, in order.
    pub rows: Vec<RowReport>,
}

/// What became of one row.
#[derive(Debug, Serialize, ToSchema)]
pub struct RowReport {
    /// Its number, from 1; blank lines do not count.
    pub row: u64,
    /// The provider's id of the listing, where the row could be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub listing_id: Option<String>,
    /// The hub's id of the listing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// The version that the hub holds now.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<u64>,
    /// `stored`, `unchanged`, `deleted` or `refused`.
    #[schema(example = "stored")]
    pub status: &'static str,
    /// Why it was refused.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub code: Option<&'static str>,
    /// The same in a sentence.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
    /// The member that is at fault.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub member: Option<String>,
    /// What is unusual about it, such as `invisible_characters`; it is taken all the same.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub flags: Vec<String>,
    /// Whether nobody finds it: `quarantined` until the operator has looked at it, or `rejected`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub held: Option<&'static str>,
    /// Members of the row that a listing has no place for.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<String>,
}

/// Takes rows that offer something.
#[utoipa::path(
    post,
    path = "/api/v1/ingest/listings",
    tag = "search",
    summary = "Hand in many listings",
    description = "One JSON object a line: a listing without `aip`, `agent`, `kid` and `sig`, for the agent that the key \
                   speaks for. Without `version` the hub counts. A row with `\"deleted\": true` takes its listing away. \
                   Each row is judged alone and reported; the same rows again change nothing. Rows are stored while the \
                   body arrives: what was stored before an error stays.",
    security(("provider" = [])),
    request_body(content = String, description = "Rows of at most 64 KiB each", content_type = "application/x-ndjson"),
    responses(
        (status = 200, description = "Every row was judged", body = IngestReport),
        (status = 401, description = "The key is unknown or was revoked"),
        (status = 403, description = "The key's agent may not take part"),
        (status = 413, description = "More bytes or more rows than one request may have"),
        (status = 415, description = "Another media type, or a Content-Encoding"),
        (status = 429, description = "Too many requests, or too many keys that were not good, from one address"),
        (status = 503, description = "The rest was not stored; send the same again"),
    )
)]
pub async fn rows(
    app: web::Data<App>,
    req: HttpRequest,
    payload: web::Payload,
) -> Result<HttpResponse, ApiError> {
    app.require_room("listings")?;
    take(&app, &req, payload, Row::read).await
}

/// Takes rows that name listings to delete.
#[utoipa::path(
    delete,
    path = "/api/v1/ingest/listings",
    operation_id = "ingest_delete_rows",
    tag = "search",
    summary = "Delete many listings that were handed in",
    description = "One JSON object a line, of which only `listing_id` counts.",
    security(("provider" = [])),
    request_body(content = String, description = "Rows such as `{\"listing_id\": \"a\"}`",
                 content_type = "application/x-ndjson"),
    responses(
        (status = 200, description = "Every row was judged", body = IngestReport),
        (status = 401, description = "The key is unknown or was revoked"),
        (status = 403, description = "The key's agent may not take part"),
        (status = 413, description = "More bytes or more rows than one request may have"),
        (status = 415, description = "Another media type, or a Content-Encoding"),
        (status = 429, description = "Too many requests, or too many keys that were not good, from one address"),
        (status = 503, description = "The rest was not deleted; send the same again"),
    )
)]
pub async fn delete_rows(
    app: web::Data<App>,
    req: HttpRequest,
    payload: web::Payload,
) -> Result<HttpResponse, ApiError> {
    take(&app, &req, payload, |line, agent, _| {
        Row::read_deletion(line, agent)
    })
    .await
}

/// How a line is read, for an agent, now.
type Read = fn(&[u8], &Did, Timestamp) -> Result<Row, Refusal>;

async fn take(
    app: &App,
    req: &HttpRequest,
    payload: web::Payload,
    read: Read,
) -> Result<HttpResponse, ApiError> {
    app.throttle.admit(Cost::Request, req)?;
    Query::parse(req, &[])?;
    let provider = provider(app, req).await?;
    let settings = &app.settings.search;
    let limit = BodyLimit::new(settings.ingest_bytes_max);
    let mut lines = Lines::of(app, req, payload, limit, LISTING_BYTES_MAX)?;
    let ingest = Ingest {
        listings: &*app.listings,
        agent: &provider.agent,
        provider: &provider.name,
        max_per_agent: settings.listings_per_agent_max,
        quarantine: Quarantine::new(&settings.quarantine),
    };
    let (mut report, mut number, mut step) = (IngestReport::default(), 0_u64, Vec::new());
    let ended = loop {
        let line = match lines.next().await {
            Ok(None) => break Ok(()),
            Err(error) => break Err(error),
            Ok(Some(_)) if number >= u64::from(settings.ingest_rows_max) => {
                break Err(too_many(settings.ingest_rows_max));
            }
            Ok(Some(line)) => line,
        };
        number += 1;
        let row = match line {
            Line::Whole(bytes) => read(&bytes, ingest.agent, app.clock.now()),
            Line::TooLong => Err(too_long()),
        };
        match row {
            Ok(row) => step.push((number, row)),
            Err(refusal) => report.rows.push(RowReport::refused(number, None, &refusal)),
        }
        if step.len() >= INGEST_STEP_ROWS {
            let stored = report.store(app, &ingest, std::mem::take(&mut step)).await;
            if let Err(error) = stored {
                break Err(error);
            }
        }
    };
    let rest = report.store(app, &ingest, step).await;
    if let Err(error) = ended.and(rest) {
        lines.drain().await;
        return Err(error);
    }
    Ok(HttpResponse::Ok().json(report.counted()))
}

pub(super) fn too_long() -> Refusal {
    let detail = format!("A row has at most {LISTING_BYTES_MAX} bytes.");
    Refusal::new(ErrorCode::BodyTooLarge, detail)
}

fn too_many(rows_max: u32) -> ApiError {
    let detail = format!(
        "One request has at most {rows_max} rows. Those before are stored: send the rest in further requests."
    );
    ApiError::from(Refusal::new(ErrorCode::BodyTooLarge, detail).with("rows_max", rows_max)).closing()
}

impl IngestReport {
    async fn store(&mut self, app: &App, ingest: &Ingest<'_>, step: Vec<(u64, Row)>) -> Result<(), ApiError> {
        if step.is_empty() {
            return Ok(());
        }
        let outcomes = ingest.store(step, app.clock.now()).await?;
        app.listings_changed();
        self.rows.extend(outcomes.into_iter().map(RowReport::of));
        Ok(())
    }

    /// In the order of the rows, with the counts.
    pub(super) fn counted(mut self) -> Self {
        let mut rows = std::mem::take(&mut self.rows);
        rows.sort_unstable_by_key(|row| row.row);
        self.add(&rows);
        self.rows = rows;
        self
    }

    /// Counts rows, without keeping them.
    pub(super) fn add(&mut self, rows: &[RowReport]) {
        for row in rows {
            match row.status {
                "stored" => self.stored += 1,
                "unchanged" => self.unchanged += 1,
                "deleted" => self.deleted += 1,
                _ => self.refused += 1,
            }
        }
    }

    /// The counts alone.
    pub(super) fn sums(&self) -> serde_json::Value {
        serde_json::json!({
            "stored": self.stored, "unchanged": self.unchanged, "deleted": self.deleted, "refused": self.refused,
        })
    }
}

impl RowReport {
    pub(super) fn of(outcome: Outcome) -> Self {
        match outcome.done {
            Ok(done) => Self {
                row: outcome.number,
                listing_id: Some(outcome.listing_id),
                id: Some(done.id),
                version: Some(done.version),
                status: done.status,
                code: None,
                detail: None,
                member: None,
                flags: done.flags,
                held: done.held.as_str(),
                left_out: Vec::new(),
            },
            Err(refusal) => Self::refused(outcome.number, Some(outcome.listing_id), &refusal),
        }
    }

    pub(super) fn refused(row: u64, listing_id: Option<String>, refusal: &Refusal) -> Self {
        let member = refusal.members.iter().find(|(name, _)| *name == "member");
        Self {
            row,
            listing_id,
            id: None,
            version: None,
            status: "refused",
            code: Some(refusal.code.as_str()),
            detail: Some(refusal.detail.to_string()),
            member: member.and_then(|(_, value)| value.as_str()).map(str::to_owned),
            flags: Vec::new(),
            held: None,
            left_out: Vec::new(),
        }
    }
}
