//! Asking the hub what agents offer (spec §9).

use futures_util::Stream;
use futures_util::stream::try_unfold;

use super::Client;
use crate::error::Result;
use crate::limits::SEARCH_WINDOW;
use crate::search::{Answer, Query};
use crate::transport::Request;

const SEARCHING: &str = "searching";

impl Client {
    /// One page of what is found. Asked again for up to 20 s on a hub that does not answer or is too busy.
    ///
    /// # Errors
    /// [`crate::Error::Refused`] with `parameter_invalid` and the parameter's name, or `cursor_invalid`.
    pub async fn search(&self, query: &Query) -> Result<Answer> {
        let body = query.to_json().to_jcs();
        let ends_at = self.now() + self.0.send_window.min(SEARCH_WINDOW);
        let mut failures = 0;
        loop {
            let request = Request::post(SEARCHING, "/api/v1/search", body.clone());
            let error = match self.transport().call(request).await {
                Ok(answer) => return answer.json(),
                Err(error) if error.is_transient() => error,
                Err(error) => return Err(error),
            };
            failures += 1;
            if !self.pause(failures, &error, ends_at).await {
                return Err(error);
            }
        }
    }

    /// All that is found, page by page, from the query's cursor on. Nothing is asked before the stream is.
    pub fn search_pages(&self, query: Query) -> impl Stream<Item = Result<Answer>> + use<> {
        let client = self.clone();
        pages(query, move |query| {
            let client = client.clone();
            async move { client.search(&query).await }
        })
    }
}

/// Pages from the query's cursor on, each found by `search`.
pub(super) fn pages<S, F>(query: Query, search: S) -> impl Stream<Item = Result<Answer>> + use<S, F>
where
    S: Fn(Query) -> F,
    F: Future<Output = Result<Answer>>,
{
    try_unfold(Some(query), move |query| {
        let asked = query.clone().map(&search);
        async move {
            let (Some(query), Some(asked)) = (query, asked) else {
                return Ok(None);
            };
            let answer = asked.await?;
            // A hub that hands out the same cursor again would be asked for ever.
            let cursor = answer
                .next_cursor
                .clone()
                .filter(|next| query.cursor.as_ref() != Some(next));
            let next = cursor.map(|cursor| Query {
                cursor: Some(cursor),
                ..query
            });
            Ok(Some((answer, next)))
        }
    })
}
