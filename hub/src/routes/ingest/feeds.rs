//! `POST /api/v1/ingest/products` and `/capabilities`: rows as shops and tool servers have them, with a report of each (§9).

use std::collections::VecDeque;
use std::fmt;

use actix_web::http::header::CONTENT_TYPE;
use actix_web::{HttpMessage as _, HttpRequest, HttpResponse, web};
use aip_protocol::error::{ErrorCode, Refusal};
use aip_registry::listings::Provider;
use bytes::Bytes;
use futures_util::{Stream, stream};
use serde::Serialize;
use serde::de::{IgnoredAny, SeqAccess, Visitor};
use serde_json::{json, value::RawValue};

use super::provider;
use super::rows::{IngestReport, RowReport, too_long};
use crate::app::App;
use crate::catalog::limits::{FEED_BYTES_MAX, INGEST_STEP_ROWS, LISTING_BYTES_MAX};
use crate::catalog::{Feed, Ingest, Quarantine};
use crate::error::ApiError;
use crate::extract::{BodyLimit, Query, read_typed};
use crate::throttle::Cost;

/// What a feed may be sent as.
const MEDIA: &[&str] = &[
    JSON,
    "application/x-ndjson",
    "application/ndjson",
    "application/jsonl",
];
const JSON: &str = "application/json";

/// Takes products.
#[utoipa::path(
    post,
    path = "/api/v1/ingest/products",
    operation_id = "ingest_products",
    tag = "search",
    summary = "Hand in products",
    description = "An array of rows such as `{\"id\", \"name\", \"price\", \"currency\"}`, an object with such an array under \
                   `products`, or one row a line. Prices may be numbers. Members that are not known become attributes. Each \
                   row is judged alone and reported; the same rows again change nothing, and a row with `\"deleted\": true` \
                   takes its listing away.",
    params(
        ("X-Provider-Key" = Option<String>, Header, description = "The key; or as `Authorization: Bearer`"),
        ("progress" = Option<bool>, Query, description = "`true`: the answer is a report a line, as rows are stored, and \
                                                          at last `{\"summary\": …}`"),
    ),
    security(("provider" = [])),
    request_body(content = String, description = "Rows of at most 64 KiB each, 8 MiB in all", content_type = "application/json"),
    responses(
        (status = 200, description = "Every row was judged", body = IngestReport),
        (status = 400, description = "No list of rows"),
        (status = 401, description = "The key is unknown or was revoked"),
        (status = 403, description = "The key's agent may not take part"),
        (status = 413, description = "More bytes or more rows than one request may have"),
        (status = 415, description = "Another media type, or a Content-Encoding"),
        (status = 429, description = "Too many requests, or too many keys that were not good, from one address"),
        (status = 503, description = "The rest was not stored; send the same again"),
    )
)]
pub async fn products(
    app: web::Data<App>,
    req: HttpRequest,
    payload: web::Payload,
) -> Result<HttpResponse, ApiError> {
    take(app, req, payload, Feed::Products).await
}

/// Takes capabilities.
#[utoipa::path(
    post,
    path = "/api/v1/ingest/capabilities",
    operation_id = "ingest_capabilities",
    tag = "search",
    summary = "Hand in capabilities",
    description = "As products: an array of tools, a manifest or an MCP `tools/list` (the array under `tools` or \
                   `capabilities`), or one tool a line. What can be invoked says how: `invoke`, or `invoke_url`.",
    params(
        ("X-Provider-Key" = Option<String>, Header, description = "The key; or as `Authorization: Bearer`"),
        ("progress" = Option<bool>, Query, description = "As for products"),
    ),
    security(("provider" = [])),
    request_body(content = String, description = "Rows of at most 64 KiB each, 8 MiB in all", content_type = "application/json"),
    responses(
        (status = 200, description = "Every row was judged", body = IngestReport),
        (status = 400, description = "No list of rows"),
        (status = 401, description = "The key is unknown or was revoked"),
        (status = 403, description = "The key's agent may not take part"),
        (status = 413, description = "More bytes or more rows than one request may have"),
        (status = 415, description = "Another media type, or a Content-Encoding"),
        (status = 429, description = "Too many requests, or too many keys that were not good, from one address"),
        (status = 503, description = "The rest was not stored; send the same again"),
    )
)]
pub async fn capabilities(
    app: web::Data<App>,
    req: HttpRequest,
    payload: web::Payload,
) -> Result<HttpResponse, ApiError> {
    take(app, req, payload, Feed::Capabilities).await
}

async fn take(
    app: web::Data<App>,
    req: HttpRequest,
    payload: web::Payload,
    feed: Feed,
) -> Result<HttpResponse, ApiError> {
    app.throttle.admit(Cost::Request, &req)?;
    app.require_room("listings")?;
    let query = Query::parse(&req, &["progress"])?;
    let with_progress = match query.raw("progress") {
        None | Some("false") => false,
        Some("true") => true,
        Some(_) => {
            let refusal = Refusal::new(ErrorCode::ParameterInvalid, "`progress` is true or false.");
            return Err(refusal.with("parameter", "progress").into());
        }
    };
    let provider = provider(&app, &req).await?;
    let limit = BodyLimit::new(FEED_BYTES_MAX.min(app.settings.search.ingest_bytes_max));
    let body = read_typed(&app, &req, payload, limit, MEDIA).await?;
    let rows_max = app.settings.search.ingest_rows_max;
    let most = usize::try_from(rows_max).unwrap_or(usize::MAX);
    let rows = if req.content_type().eq_ignore_ascii_case(JSON) || req.content_type().is_empty() {
        elements(&body, feed, most)?
    } else {
        lines(&body, most)
    };
    let rows = rows.ok_or_else(|| too_many(rows_max))?;
    let mut work = Work {
        app,
        provider,
        feed,
        rows: (1..).zip(rows).collect(),
        sums: IngestReport::default(),
    };
    if with_progress {
        let answer = HttpResponse::Ok()
            .insert_header((CONTENT_TYPE, MEDIA_OF_PROGRESS))
            .streaming(work.told());
        return Ok(answer);
    }
    let mut report = IngestReport::default();
    while let Some(rows) = work.step().await? {
        report.rows.extend(rows);
    }
    Ok(HttpResponse::Ok().json(report.counted()))
}

/// What reports of progress are sent as.
const MEDIA_OF_PROGRESS: &str = "application/x-ndjson";

/// Of a request that has more rows nothing is stored.
fn too_many(rows_max: u32) -> ApiError {
    let detail = format!("One request has at most {rows_max} rows. Nothing was stored: send fewer at once.");
    ApiError::from(Refusal::new(ErrorCode::BodyTooLarge, detail).with("rows_max", rows_max))
}

/// The rows of a JSON text: an array, an object that holds one, or a row alone. `None`: there are more than `most`.
fn elements(body: &Bytes, feed: Feed, most: usize) -> Result<Option<Vec<Bytes>>, ApiError> {
    let wrong = |error: serde_json::Error| {
        let detail = format!(
            "The body is no JSON (line {}, column {}).",
            error.line(),
            error.column()
        );
        ApiError::from(Refusal::new(ErrorCode::JsonInvalid, detail))
    };
    let bytes_of = |raw: &RawValue| body.slice_ref(raw.get().as_bytes());
    let rows_of = |items: Option<Vec<&RawValue>>| -> Option<Vec<Bytes>> {
        Some(items?.into_iter().map(bytes_of).collect())
    };
    let text = body.trim_ascii();
    if text.starts_with(b"[") {
        return Ok(rows_of(items(text, most).map_err(wrong)?));
    }
    let members: std::collections::BTreeMap<String, &RawValue> =
        serde_json::from_slice(text).map_err(wrong)?;
    let list = feed.lists().iter().find_map(|name| members.get(*name));
    if let Some(list) = list {
        return Ok(rows_of(items(list.get().as_bytes(), most).map_err(wrong)?));
    }
    if ["id", "listing_id", "name"]
        .iter()
        .any(|name| members.contains_key(*name))
    {
        return Ok(Some(vec![body.slice_ref(text)]));
    }
    let detail = format!(
        "There are no rows here: send an array, an object that holds one as {}, or one row a line as application/x-ndjson.",
        feed.lists().join(" or ")
    );
    Err(Refusal::new(ErrorCode::MemberMissing, detail).into())
}

/// The values of an array. Of one that has more than `most` none is kept: millions fit into a body.
fn items(text: &[u8], most: usize) -> serde_json::Result<Option<Vec<&RawValue>>> {
    let mut json = serde_json::Deserializer::from_slice(text);
    let items = serde::Deserializer::deserialize_seq(&mut json, Items(most))?;
    json.end()?;
    Ok(items)
}

/// Takes so many values at most.
struct Items(usize);

impl<'de> Visitor<'de> for Items {
    type Value = Option<Vec<&'de RawValue>>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an array")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut values: A) -> Result<Self::Value, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = values.next_element::<&'de RawValue>()? {
            if items.len() == self.0 {
                while values.next_element::<IgnoredAny>()?.is_some() {}
                return Ok(None);
            }
            items.push(item);
        }
        Ok(Some(items))
    }
}

/// A row a line; blank ones do not count. `None`: there are more than `most`.
fn lines(body: &Bytes, most: usize) -> Option<Vec<Bytes>> {
    let lines = body.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii);
    let rows: Vec<Bytes> = lines
        .filter(|line| !line.is_empty())
        .take(most.saturating_add(1))
        .map(|line| body.slice_ref(line))
        .collect();
    (rows.len() <= most).then_some(rows)
}

/// Rows on their way into the store.
struct Work {
    app: web::Data<App>,
    provider: Provider,
    feed: Feed,
    rows: VecDeque<(u64, Bytes)>,
    /// The counts of what was reported; no rows.
    sums: IngestReport,
}

/// Where an answer that is told row by row stands.
enum Told {
    Rows(Box<Work>),
    End,
}

impl Work {
    /// Stores some rows, and says what became of each, in their order; `None` at the end.
    async fn step(&mut self) -> Result<Option<Vec<RowReport>>, ApiError> {
        let count = self.rows.len().min(INGEST_STEP_ROWS);
        if count == 0 {
            return Ok(None);
        }
        let now = self.app.clock.now();
        let (mut reports, mut step, mut left_out) = (Vec::new(), Vec::new(), Vec::new());
        for (number, text) in self.rows.drain(..count) {
            let read = if text.len() > LISTING_BYTES_MAX {
                Err(too_long())
            } else {
                self.feed.read(&text, &self.provider.agent, now)
            };
            match read {
                Ok(fed) => {
                    left_out.push((number, fed.left_out));
                    step.push((number, fed.row));
                }
                Err(refusal) => reports.push(RowReport::refused(number, None, &refusal)),
            }
        }
        let settings = &self.app.settings.search;
        let ingest = Ingest {
            listings: &*self.app.listings,
            agent: &self.provider.agent,
            provider: &self.provider.name,
            max_per_agent: settings.listings_per_agent_max,
            quarantine: Quarantine::new(&settings.quarantine),
        };
        reports.extend(ingest.store(step, now).await?.into_iter().map(RowReport::of));
        self.app.listings_changed();
        reports.sort_unstable_by_key(|report| report.row);
        for report in &mut reports {
            if let Ok(at) = left_out.binary_search_by_key(&report.row, |(number, _)| *number)
                && let Some((_, names)) = left_out.get_mut(at)
            {
                report.left_out = std::mem::take(names);
            }
        }
        Ok(Some(reports))
    }

    /// The reports as they come, made only as fast as they are taken: whoever goes away has the rest not stored.
    fn told(self) -> impl Stream<Item = Result<Bytes, actix_web::Error>> {
        stream::unfold(Told::Rows(Box::new(self)), |told| async move {
            let Told::Rows(mut work) = told else { return None };
            match work.step().await {
                Ok(Some(reports)) => {
                    let text = reports.iter().map(line).collect::<Vec<_>>().concat();
                    work.sums.add(&reports);
                    Some((Ok(Bytes::from(text)), Told::Rows(work)))
                }
                Ok(None) => {
                    let summary = json!({ "summary": work.sums.sums() });
                    Some((Ok(Bytes::from(line(&summary))), Told::End))
                }
                Err(error) => {
                    tracing::warn!(code = error.code().as_str(), cause = ?error.cause(), "A feed was not stored to its end");
                    let refusal = error.refusal();
                    let told = json!({ "error": error.code().as_str(), "detail": refusal.detail });
                    Some((Ok(Bytes::from(line(&told))), Told::End))
                }
            }
        })
    }
}

fn line(value: &impl Serialize) -> String {
    let mut line = serde_json::to_string(value).unwrap_or_default();
    line.push('\n');
    line
}

#[cfg(test)]
mod tests;
