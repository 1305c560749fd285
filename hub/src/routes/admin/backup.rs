//! `POST /admin/backups`: a consistent copy of everything the hub keeps, in a new folder on the hub's own disk.

use std::path::PathBuf;

use actix_web::{HttpRequest, HttpResponse, web};
use aip_protocol::error::{ErrorCode, Refusal};
use aip_protocol::time::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::Operator;
use crate::app::App;
use crate::backup::BackupError;
use crate::error::ApiError;

/// What is asked for.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct BackupBody {
    /// An absolute path that does not exist yet, or an empty folder. Nothing is ever overwritten.
    #[schema(value_type = String, example = "/var/backups/aip-hub/2026-11-29")]
    pub to: PathBuf,
}

/// A backup that was taken.
#[derive(Debug, Serialize, ToSchema)]
pub struct BackupTaken {
    /// How many files it holds.
    pub files: usize,
    /// Their bytes.
    pub bytes: u64,
    /// When it was taken.
    #[schema(value_type = String, format = "date-time")]
    pub made_at: Timestamp,
    /// What lies on engines and is not in it: a sentence each, with what copies it.
    pub elsewhere: Vec<&'static str>,
}

/// Takes a backup.
#[utoipa::path(
    post,
    path = "/admin/backups",
    tag = "administration",
    summary = "Take a backup",
    description = "Of everything in the data folder. Answers when the copy is complete, synced and listed in its manifest.json.",
    security(("operator" = [])),
    request_body = BackupBody,
    responses((status = 201, description = "It is complete", body = BackupTaken),
              (status = 400, description = "The path is relative, or something is there"),
              (status = 401, description = "The operator's token is missing or wrong"))
)]
pub async fn backup(
    app: web::Data<App>,
    _operator: Operator,
    req: HttpRequest,
    payload: web::Payload,
) -> Result<HttpResponse, ApiError> {
    let body: BackupBody = super::read(&app, &req, payload).await?;
    if !body.to.is_absolute() {
        return Err(ApiError::refused(
            ErrorCode::MemberInvalid,
            "Give `to` as an absolute path on the hub's machine.",
        ));
    }
    let Some(stores) = &app.stores else {
        return Err(ApiError::refused(
            ErrorCode::Unavailable,
            "This hub keeps everything in memory.",
        ));
    };
    let manifest = stores.backup(&body.to, app.clock.now()).await.map_err(refuse)?;
    let taken = BackupTaken {
        files: manifest.files.len(),
        bytes: manifest.files.values().map(|file| file.bytes).sum(),
        made_at: manifest.made_at,
        elsewhere: stores.elsewhere(),
    };
    tracing::info!(
        backup.bytes = taken.bytes,
        "A backup was taken: {}",
        body.to.display()
    );
    Ok(HttpResponse::Created().json(taken))
}

/// What the operator can mend is a refusal; the rest is a failure.
fn refuse(error: BackupError) -> ApiError {
    match error {
        BackupError::NotEmpty { .. } | BackupError::DataDir(_) => {
            Refusal::new(ErrorCode::MemberInvalid, error.to_string()).into()
        }
        error => ApiError::failed(ErrorCode::Internal, error),
    }
}
