//! The end of a row in the making: its id, its price, and whether a hub would take it.

use aip_protocol::json::Json;
use aip_protocol::listing::Offer;
use sha2::{Digest as _, Sha256};

use super::RowDraft;
use crate::import::Row;
use crate::import::price::{self, Currency};
use crate::limits::{LISTING_BYTES_MAX, LISTING_FRAME_BYTES, LISTING_ID_BYTES_MAX};

impl RowDraft<'_> {
    /// The row, good or not.
    pub(in crate::import) fn finish(mut self, number: usize, line: Option<u64>) -> Row {
        self.settle_id();
        self.settle_price();
        if self.offer.name.is_empty() {
            self.flaw("name", "it is missing", "give the row a name");
        }
        let bytes = Json::Object(self.offer.to_object()).to_jcs().len();
        if self.flaws.is_empty() && bytes > LISTING_BYTES_MAX - LISTING_FRAME_BYTES {
            let most = LISTING_BYTES_MAX - LISTING_FRAME_BYTES;
            self.flaw(
                "listing",
                format!("it has {bytes} bytes"),
                format!("shorten its texts and schemas to {most}"),
            );
        }
        // What is refused here would be refused by every hub.
        if self.flaws.is_empty()
            && let Err(refusal) = Offer::from_json(&Json::Object(self.offer.to_object()))
        {
            self.flaw("listing", refusal.detail, "mend it");
        }
        let listing_id = Some(self.offer.listing_id.clone()).filter(|id| !id.is_empty());
        Row {
            number,
            line,
            listing_id,
            offer: self.flaws.is_empty().then_some(self.offer),
            flaws: self.flaws,
            notes: self.notes,
        }
    }

    /// Its own id; a hash of it where it is too long, of the name where there is none.
    fn settle_id(&mut self) {
        self.offer.listing_id = match self.id.take() {
            Some((_, id)) if id.len() <= LISTING_ID_BYTES_MAX => id,
            Some((_, id)) => format!("sha256:{}", hash(&id)),
            None if self.offer.name.is_empty() => return,
            None => {
                self.note(
                    "listing_id",
                    "the row has no id, so it is known by its name",
                    "give it one (id, sku, gtin), or another name makes another listing",
                );
                format!("name:{}", hash(&self.offer.name.to_lowercase()))
            }
        };
    }

    fn settle_price(&mut self) {
        if let Some(sale) = self.sale.take() {
            if self.is_sale_timed {
                self.note(
                    "sale_price",
                    "it holds for a time only, and is left out",
                    "import again when the sale begins",
                );
            } else {
                self.price = Some(sale);
            }
        }
        let Some(price::Price { amount, currency }) = self.price.take() else {
            return;
        };
        let beside = self.currency.take();
        let currency = match (currency, beside) {
            (Currency::Code(here), Some(there)) if here != there => {
                return self.flaw(
                    "price",
                    format!("it is in {here} and in {there}"),
                    "name one currency",
                );
            }
            (Currency::Code(code), _) | (_, Some(code)) => Some(code),
            (Currency::Ambiguous(sign), None) if self.options.currency.is_none() => {
                let todo = "write three letters such as USD, or say which with --currency";
                return self.flaw(
                    "price",
                    format!("`{sign}` is the sign of several currencies"),
                    todo,
                );
            }
            _ => self.options.currency.clone(),
        };
        if currency.is_none() {
            return self.flaw(
                "price",
                "it names no currency",
                "add one to the file, or say which with --currency",
            );
        }
        self.offer.price = Some(amount);
        self.offer.currency = currency;
    }
}

/// The first half of SHA-256, in hexadecimal digits.
fn hash(text: &str) -> String {
    let digest = Sha256::digest(text.as_bytes());
    let halves = digest.iter().take(16).flat_map(|byte| [byte >> 4, byte & 0xf]);
    halves
        .filter_map(|half| char::from_digit(u32::from(half), 16))
        .collect()
}
