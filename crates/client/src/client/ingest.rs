//! Handing in many listings with a provider's key (spec §9): no agent's keys are needed, and the hub finds out by itself
//! what has changed.

use aip_protocol::json::Json;
use aip_protocol::listing::Offer;

use super::Client;
use crate::error::{Error, Result};
use crate::limits::{INGEST_BYTES_MAX, INGEST_ROWS_MAX, INGEST_TIMEOUT};
use crate::listing::{IngestAnswer, IngestReport, ProviderKey};
use crate::transport::{NDJSON, Request};

const INGESTING: &str = "handing listings in";
const WITHDRAWING: &str = "taking listings away";
const PATH: &str = "/api/v1/ingest/listings";

impl Client {
    /// Hands listings in, in as few requests as the limits allow. Each row is judged alone; the same rows again change
    /// nothing, so that after an error the whole may be sent again.
    ///
    /// # Errors
    /// [`Error::Refused`] for a key that the hub does not know and for other refusals of a whole request.
    pub async fn ingest(&self, key: &ProviderKey, offers: &[Offer]) -> Result<IngestReport> {
        let lines = offers
            .iter()
            .map(|offer| Json::Object(offer.to_object()).to_jcs());
        self.in_batches(lines, |body| Request::post(INGESTING, PATH, body), key)
            .await
    }

    /// Takes listings away that were handed in, by the ids that the provider gave them.
    pub async fn withdraw(&self, key: &ProviderKey, listing_ids: &[String]) -> Result<IngestReport> {
        let lines = listing_ids
            .iter()
            .map(|id| Json::from([("listing_id", Json::from(id.as_str()))]).to_jcs());
        self.in_batches(lines, |body| Request::delete(WITHDRAWING, PATH, body), key)
            .await
    }

    async fn in_batches(
        &self,
        lines: impl Iterator<Item = Vec<u8>>,
        request: impl Fn(Vec<u8>) -> Request,
        key: &ProviderKey,
    ) -> Result<IngestReport> {
        let mut report = IngestReport::default();
        for batch in batches(lines) {
            let send = || {
                let request = request(batch.body.clone()).media_type(NDJSON);
                request.token(key.as_str()).timeout(INGEST_TIMEOUT)
            };
            let IngestAnswer { rows } = self.call_patiently(send).await?.json()?;
            if rows.len() != batch.rows {
                let why = format_args!("{} results for {} rows", rows.len(), batch.rows);
                return Err(Error::answer(INGESTING, why));
            }
            report.extend(rows);
            tracing::info!(rows = report.rows.len(), "handed in");
        }
        Ok(report)
    }
}

/// Rows of one request.
#[derive(Debug, Default)]
struct Batch {
    rows: usize,
    body: Vec<u8>,
}

/// At least one row each, and no more than the limits allow.
fn batches(lines: impl Iterator<Item = Vec<u8>>) -> impl Iterator<Item = Batch> {
    let mut lines = lines.peekable();
    std::iter::from_fn(move || {
        let mut batch = Batch::default();
        while let Some(line) = lines.next_if(|line| {
            batch.rows == 0
                || (batch.rows < INGEST_ROWS_MAX && batch.body.len() + line.len() < INGEST_BYTES_MAX)
        }) {
            batch.body.extend_from_slice(&line);
            batch.body.push(b'\n');
            batch.rows += 1;
        }
        (batch.rows > 0).then_some(batch)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batch_keeps_both_limits_and_loses_nothing() {
        let sizes = |lines: Vec<Vec<u8>>| {
            batches(lines.into_iter())
                .map(|batch| batch.rows)
                .collect::<Vec<_>>()
        };
        assert_eq!(sizes(vec![]), [0_usize; 0]);
        assert_eq!(
            sizes(vec![vec![b'x'; 10]; INGEST_ROWS_MAX + 1]),
            [INGEST_ROWS_MAX, 1]
        );
        assert_eq!(sizes(vec![vec![b'x'; INGEST_BYTES_MAX / 2]; 3]), [1, 1, 1]);
        assert_eq!(sizes(vec![vec![b'x'; INGEST_BYTES_MAX / 2 - 2]; 3]), [2, 1]);
        assert_eq!(sizes(vec![vec![b'x'; INGEST_BYTES_MAX * 2]]), [1]);
    }
}
