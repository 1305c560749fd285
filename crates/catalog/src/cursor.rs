//! Where the next page begins: sealed, and good for one query only.

use aip_protocol::error::{ErrorCode, Refusal};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::{Digest as _, Sha256};

use crate::limits::CURSOR_ID_BYTES_MAX;
use crate::query::{Filter, Query};

/// What cursors are sealed for; its last figure is the version of their form.
const SEALED_FOR: &[u8] = b"aip search cursor, 1";
/// Bytes of a seal.
const SEAL: usize = 16;
const BROWSED: u8 = 1;
const LISTED: u8 = 2;

/// Text and filter of a query, in 16 bytes: what a cursor holds for.
pub(crate) type Fingerprint = [u8; 16];

/// The last result that was shown.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Place {
    /// Of all that passes a filter.
    Browsed { trust: f64, id: String },
    /// Of a list of results.
    Listed {
        /// The list, where it is still kept.
        list: u64,
        /// How often it was made deeper.
        level: u8,
        /// The place after the last one.
        offset: u32,
        /// What the last one weighed.
        score: f64,
        /// The last one.
        id: String,
    },
}

/// Writes a place down. None for an id that no listing has.
pub(crate) fn seal(place: &Place, fingerprint: &Fingerprint, key: &[u8; 32]) -> Option<String> {
    let mut bytes = Vec::with_capacity(96);
    bytes.extend(fingerprint);
    let id = match place {
        Place::Browsed { trust, id } => {
            bytes.push(BROWSED);
            bytes.extend(trust.to_le_bytes());
            id
        }
        Place::Listed {
            list,
            level,
            offset,
            score,
            id,
        } => {
            bytes.extend([LISTED, *level]);
            bytes.extend(list.to_le_bytes());
            bytes.extend(offset.to_le_bytes());
            bytes.extend(score.to_le_bytes());
            id
        }
    };
    if id.len() > CURSOR_ID_BYTES_MAX {
        return None;
    }
    bytes.extend(id.as_bytes());
    let mac = mac(key, &bytes)?.finalize().into_bytes();
    bytes.extend(mac.first_chunk::<SEAL>()?);
    Some(URL_SAFE_NO_PAD.encode(bytes))
}

/// Reads a place that this hub wrote for this query.
///
/// # Errors
/// `cursor_invalid`.
pub(crate) fn open(text: &str, fingerprint: &Fingerprint, key: &[u8; 32]) -> Result<Place, Refusal> {
    let refusal = || {
        Refusal::new(
            ErrorCode::CursorInvalid,
            "The cursor is not one of this search: take `next_cursor` as it was given and keep text and filters, or \
             begin again without one.",
        )
        .with("parameter", "cursor")
    };
    read(text, fingerprint, key).ok_or_else(refusal)
}

fn read(text: &str, fingerprint: &Fingerprint, key: &[u8; 32]) -> Option<Place> {
    let bytes = URL_SAFE_NO_PAD.decode(text).ok()?;
    let (bytes, seal) = bytes.split_last_chunk::<SEAL>()?;
    mac(key, bytes)?.verify_truncated_left(seal).ok()?;
    let (found, rest) = bytes.split_first_chunk::<16>()?;
    if found != fingerprint {
        return None;
    }
    let (kind, rest) = rest.split_first()?;
    match *kind {
        BROWSED => {
            let (trust, id) = rest.split_first_chunk()?;
            Some(Place::Browsed {
                trust: f64::from_le_bytes(*trust),
                id: String::from_utf8(id.to_vec()).ok()?,
            })
        }
        LISTED => {
            let (level, rest) = rest.split_first()?;
            let (list, rest) = rest.split_first_chunk()?;
            let (offset, rest) = rest.split_first_chunk()?;
            let (score, id) = rest.split_first_chunk()?;
            Some(Place::Listed {
                list: u64::from_le_bytes(*list),
                level: *level,
                offset: u32::from_le_bytes(*offset),
                score: f64::from_le_bytes(*score),
                id: String::from_utf8(id.to_vec()).ok()?,
            })
        }
        _ => None,
    }
}

fn mac(key: &[u8; 32], bytes: &[u8]) -> Option<Hmac<Sha256>> {
    let mut mac = Hmac::<Sha256>::new_from_slice(key).ok()?;
    mac.update(SEALED_FOR);
    mac.update(bytes);
    Some(mac)
}

/// The fingerprint of a query. The size of a page and what is told with it may change from page to page.
pub(crate) fn fingerprint(query: &Query) -> Fingerprint {
    let mut hash = Sha256::new();
    let mut take = |part: &[u8]| {
        hash.update(u64::try_from(part.len()).unwrap_or(u64::MAX).to_le_bytes());
        hash.update(part);
    };
    take(query.text.trim().as_bytes());
    let Filter {
        kinds,
        price_min,
        price_max,
        currency,
        available,
        trust_min,
        domain,
        category,
        brand,
        lang,
        attributes,
        updated_after,
    } = &query.filter;
    for kind in kinds {
        take(kind.as_str().as_bytes());
    }
    take(b"");
    for price in [price_min, price_max] {
        take(
            price
                .map(|price| price.to_string())
                .unwrap_or_default()
                .as_bytes(),
        );
    }
    take(&available.map_or(2, u8::from).to_le_bytes());
    take(&trust_min.map_or(u64::MAX, f64::to_bits).to_le_bytes());
    let domain = domain.as_ref().map(|domain| domain.as_str().to_owned());
    let updated_after = updated_after.map(|time| time.to_string());
    for text in [currency, &domain, category, brand, lang, &updated_after] {
        // What is not set differs from what is set to nothing.
        take(&[u8::from(text.is_some())]);
        take(text.as_deref().unwrap_or_default().as_bytes());
    }
    for (name, value) in attributes {
        take(name.as_bytes());
        take(value.as_bytes());
    }
    let digest: [u8; 32] = hash.finalize().into();
    digest.first_chunk().copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::price::Price;

    const KEY: [u8; 32] = [7; 32];

    fn place() -> Place {
        Place::Listed {
            list: 9,
            level: 1,
            offset: 200,
            score: 0.25,
            id: "lst_a".to_owned(),
        }
    }

    #[test]
    fn a_place_is_read_as_it_was_written() {
        for place in [
            place(),
            Place::Browsed {
                trust: 0.5,
                id: "lst_b".to_owned(),
            },
        ] {
            let text = seal(&place, &[1; 16], &KEY).unwrap();
            assert_eq!(open(&text, &[1; 16], &KEY), Ok(place));
        }
        let long = Place::Browsed {
            trust: 0.5,
            id: "a".repeat(CURSOR_ID_BYTES_MAX + 1),
        };
        assert_eq!(seal(&long, &[1; 16], &KEY), None);
    }

    #[test]
    fn whatever_is_changed_is_refused() {
        let text = seal(&place(), &[1; 16], &KEY).unwrap();
        assert!(open(&text, &[2; 16], &KEY).is_err());
        assert!(open(&text, &[1; 16], &[8; 32]).is_err());
        for at in 0..text.len() {
            assert_eq!(
                open(text.get(..at).unwrap(), &[1; 16], &KEY).unwrap_err().code,
                ErrorCode::CursorInvalid
            );
            let mut forged = text.clone().into_bytes();
            forged[at] = if forged[at] == b'A' { b'B' } else { b'A' };
            assert!(open(std::str::from_utf8(&forged).unwrap(), &[1; 16], &KEY).is_err());
        }
    }

    #[test]
    fn every_member_of_a_query_counts_but_those_of_the_page() {
        let plain = Query {
            text: "lamp".to_owned(),
            ..Query::default()
        };
        let changed: [fn(&mut Query); 8] = [
            |query| query.text = "lamps".to_owned(),
            |query| query.filter.currency = Some("EUR".to_owned()),
            |query| query.filter.category = Some("EUR".to_owned()),
            |query| query.filter.category = Some(String::new()),
            |query| query.filter.price_min = Some(Price::from_units(1)),
            |query| query.filter.price_max = Some(Price::from_units(1)),
            |query| query.filter.available = Some(false),
            |query| query.filter.trust_min = Some(0.0),
        ];
        let mut seen = vec![fingerprint(&plain)];
        for change in changed {
            let mut query = plain.clone();
            change(&mut query);
            let found = fingerprint(&query);
            assert!(!seen.contains(&found), "{query:?}");
            seen.push(found);
        }
        let page = Query {
            limit: 7,
            explain: true,
            facets: true,
            cursor: Some("x".to_owned()),
            ..plain.clone()
        };
        assert_eq!(fingerprint(&page), fingerprint(&plain));
    }

    proptest! {
        #[test]
        fn no_text_is_more_than_refused(text in ".{0,200}") {
            prop_assert!(open(&text, &[1; 16], &KEY).is_err());
        }
    }
}
