//! Asking for the details of something that is offered (`aip.commerce.offer.request`, spec §11).

use std::fmt::Display;
use std::time::Duration;

use serde_json::json;

use super::Client;
use super::ask::answered;
use crate::error::{Error, Result};
use crate::message::Draft;
use crate::offers::{KIND_OFFER, KIND_OFFERED, OfferAnswer};

const ASKING: &str = "asking for an offer";

impl Client {
    /// Asks the agent `to` for the details of the item with this id, which is the `id` of a search result, and waits for the
    /// answer. A hub's own agent (`hub#domain`) answers for listings that ask it to, and otherwise says whom to ask
    /// ([`OfferAnswer::ask`]).
    ///
    /// # Errors
    /// Those of [`Client::ask`]; [`Error::Refused`] with the code of the answer, such as `not_found`.
    pub async fn ask_offer(
        &self,
        to: impl Display,
        item_id: &str,
        note: Option<&str>,
        wait: Duration,
    ) -> Result<OfferAnswer> {
        let mut body = json!({ "item_id": item_id });
        if let (Some(note), Some(body)) = (note, body.as_object_mut()) {
            body.insert("note".to_owned(), note.into());
        }
        let draft = Draft::json(to, body).kind(KIND_OFFER);
        let body = answered(self.ask(&draft, wait).await?, KIND_OFFERED, ASKING)?;
        let answer: OfferAnswer =
            serde_json::from_value(body).map_err(|error| Error::answer(ASKING, error))?;
        if answer.item_id != item_id {
            return Err(Error::answer(ASKING, "it is about another item"));
        }
        Ok(answer)
    }
}
