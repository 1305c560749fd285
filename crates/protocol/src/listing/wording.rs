//! Hashes of what a listing says, by which a buyer sees that it says something else than before (`docs/protocol/market.md`).

use sha2::{Digest as _, Sha256};

use super::Offer;
use crate::json::{Json, Object};

/// Members that change without the words of a listing being others.
const TERMS: [&str; 4] = ["price", "currency", "available", "expires_at"];

/// SHA-256 of what a listing says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Wording {
    /// Of `description`, in UTF-8.
    pub description: [u8; 32],
    /// Of the canonical form (RFC 8785) of `{"input_schema", "output_schema"}`, where one that is absent, or no object, is
    /// `{"type": "object"}`: as tools show them.
    pub schemas: [u8; 32],
    /// Of the canonical form of the offer without price, currency, availability and end.
    pub texts: [u8; 32],
}

impl Offer {
    /// The hashes of what it says.
    pub fn wording(&self) -> Wording {
        let schemas = ["input_schema", "output_schema"].map(|name| (name, self.shown_schema(name)));
        let texts = Json::Object(self.to_object().without(&TERMS));
        Wording {
            description: Sha256::digest(&self.description).into(),
            schemas: Sha256::digest(Json::from(schemas).to_jcs()).into(),
            texts: Sha256::digest(texts.to_jcs()).into(),
        }
    }

    fn shown_schema(&self, name: &str) -> Json {
        let given = self.extra.get(name).and_then(Json::as_object);
        let any = || Object::from([("type", Json::from("object"))]);
        Json::Object(given.cloned().unwrap_or_else(any))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::listing::ListingKind;

    fn offer() -> Offer {
        let mut offer = Offer::new(ListingKind::Capability, "draw", "Draw");
        offer.description = "Draws lots.".to_owned();
        offer
    }

    #[test]
    fn hashes_are_those_of_other_implementations() {
        let wording = offer().wording();
        assert_eq!(hex::encode(wording.description), DESCRIPTION);
        assert_eq!(hex::encode(wording.schemas), SCHEMAS);
    }

    /// `printf 'Draws lots.' | sha256sum`
    const DESCRIPTION: &str = "8b5559425cdf8ded863d4335dd4f81d90b1cb9e471a403b5cfbfab75c5ae5586";
    /// `printf '{"input_schema":{"type":"object"},"output_schema":{"type":"object"}}' | sha256sum`
    const SCHEMAS: &str = "87c0a3d0e079dd7ad8d9a0056198ce5f6311cba8cdb21fe6b84972f82434c74f";

    #[test]
    fn each_hash_is_of_its_own_part() {
        let plain = offer().wording();
        let changed = |change: fn(&mut Offer)| {
            let mut offer = offer();
            change(&mut offer);
            let wording = offer.wording();
            [
                wording.description != plain.description,
                wording.schemas != plain.schemas,
                wording.texts != plain.texts,
            ]
        };
        assert_eq!(changed(|offer| offer.price = Some("2".to_owned())), [false; 3]);
        assert_eq!(changed(|offer| offer.description.clear()), [true, false, true]);
        let schema = |offer: &mut Offer| drop(offer.extra.insert("input_schema", Object::new()));
        assert_eq!(changed(schema), [false, true, true]);
        assert_eq!(
            changed(|offer| offer.tags.push("lots".to_owned())),
            [false, false, true]
        );
    }
}
