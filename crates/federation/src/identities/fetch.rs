//! A history as its hub serves it: page by page, within bounds.

use std::borrow::Cow;

use aip_protocol::error::ErrorCode;
use aip_protocol::json::Json;
use aip_protocol::name::Did;
use bytes::Bytes;
use serde::Deserialize;
use serde_json::value::RawValue;
use url::Url;

use super::{IdentityError, RemoteIdentities};
use crate::directory::{Peer, PeerError};
use crate::egress::{EgressError, Limits, Method, Request, Response};
use crate::limits::{CURSOR_BYTES_MAX, HISTORY_OPERATIONS_MAX, HISTORY_PAGE_OPERATIONS, HISTORY_PAGES_MAX};

/// A page. The operations stay text until each is read by itself, as strictly as the protocol asks.
#[derive(Deserialize)]
struct Page<'a> {
    #[serde(borrow)]
    operations: Vec<&'a RawValue>,
    #[serde(default)]
    next_cursor: Option<Cow<'a, str>>,
}

/// A problem document (RFC 9457), as far as it matters.
#[derive(Deserialize)]
struct Problem<'a> {
    #[serde(borrow)]
    code: Cow<'a, str>,
}

impl RemoteIdentities {
    /// All operations, oldest first. Nothing about them is checked but that they are JSON.
    pub(super) async fn fetch(&self, peer: &Peer, did: &Did) -> Result<Vec<Json>, IdentityError> {
        let path = format!("/api/v1/agents/{}/history", did.name());
        let Ok(url) = Url::parse(&peer.url(&path)) else {
            return Err(unsound("the address of its hub cannot be put together"));
        };
        let mut operations = Vec::new();
        let mut bytes_left = self.limits.page.answer_bytes_max;
        let mut cursor: Option<String> = None;
        for _ in 0..HISTORY_PAGES_MAX {
            let body = self.page(&url, cursor.as_deref(), bytes_left).await?;
            bytes_left -= body.len();
            let page: Page<'_> = serde_json::from_slice(&body)
                .map_err(|_form| unsound("a page of it is not of the right form"))?;
            let is_empty = page.operations.is_empty();
            for text in page.operations {
                let operation = Json::parse(text.get().as_bytes());
                operations.push(operation.map_err(|refusal| unsound(refusal.to_string()))?);
            }
            if operations.len() > HISTORY_OPERATIONS_MAX {
                return Err(unsound("it has too many operations"));
            }
            match page.next_cursor {
                None => return Ok(operations),
                Some(_) if is_empty => return Err(unsound("an empty page of it is not the last one")),
                Some(next) if next.len() > CURSOR_BYTES_MAX => {
                    return Err(unsound("a cursor in it is too long"));
                }
                Some(next) => cursor = Some(next.into_owned()),
            }
        }
        Err(unsound("it has too many pages"))
    }

    async fn page(&self, url: &Url, cursor: Option<&str>, bytes_left: usize) -> Result<Bytes, IdentityError> {
        let mut url = url.clone();
        let limit = HISTORY_PAGE_OPERATIONS.to_string();
        url.query_pairs_mut().append_pair("limit", &limit);
        if let Some(cursor) = cursor {
            url.query_pairs_mut().append_pair("cursor", cursor);
        }
        let request = Request {
            method: Method::Get,
            url: url.into(),
            headers: vec![("accept", "application/json".to_owned())],
            body: Bytes::new(),
        };
        let limits = Limits {
            answer_bytes_max: bytes_left,
            ..self.limits.page
        };
        let response = self
            .seams
            .exchange
            .exchange(request, limits)
            .await
            .map_err(|error| failed(&error))?;
        read(response)
    }
}

/// The body of a page. A hub says by a problem document of its own that there is no such agent; everything else that is no page
/// says nothing about the agent.
fn read(response: Response) -> Result<Bytes, IdentityError> {
    let media_type = response.content_type.as_deref();
    match response.status {
        200 if media_type == Some("application/json") => Ok(response.body),
        404 if media_type == Some("application/problem+json") && is_not_found(&response.body) => {
            Err(IdentityError::NotFound)
        }
        status => {
            let media_type = media_type.unwrap_or("no type").to_owned();
            let cause = format!("status {status}, {media_type}, where a page of a history is due");
            Err(IdentityError::Peer(PeerError::unreachable(cause)))
        }
    }
}

fn is_not_found(body: &[u8]) -> bool {
    serde_json::from_slice(body)
        .is_ok_and(|problem: Problem<'_>| problem.code == ErrorCode::NotFound.as_str())
}

fn failed(error: &EgressError) -> IdentityError {
    match error {
        EgressError::AnswerTooLarge { .. } => unsound("it is too long"),
        error if error.is_refusal() => IdentityError::Peer(PeerError::Unfit(error.to_string().into())),
        error => IdentityError::Peer(PeerError::unreachable(error.to_string())),
    }
}

fn unsound(detail: impl Into<Cow<'static, str>>) -> IdentityError {
    IdentityError::Unsound(detail.into())
}
