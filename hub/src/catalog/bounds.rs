//! How much a listing may say at this hub. Its form is the protocol's to judge; these are the bounds on top of that.

use aip_catalog::Price;
use aip_protocol::error::{ErrorCode, Refusal};
use aip_protocol::json::Json;
use aip_protocol::listing::Offer;

use super::limits::{
    ATTRIBUTE_NAME_BYTES_MAX, ATTRIBUTE_TEXT_BYTES_MAX, ATTRIBUTES_MAX, DESCRIPTION_BYTES_MAX,
    LANG_BYTES_MAX, LISTING_ID_BYTES_MAX, LISTING_LEVELS_MAX, NAME_BYTES_MAX, TAG_BYTES_MAX, TAGS_MAX,
};

/// Refuses an offer that is beyond a bound.
///
/// # Errors
/// `member_invalid` with the member's name.
pub fn check(offer: &Offer) -> Result<(), Refusal> {
    let sized = |text: &str, least: usize, most: usize| (least..=most).contains(&text.len());
    let is_id = sized(&offer.listing_id, 1, LISTING_ID_BYTES_MAX)
        // It stands in paths, logs and command lines.
        && !offer.listing_id.chars().any(char::is_control);
    require(is_id, "listing_id", || {
        format!("is 1 to {LISTING_ID_BYTES_MAX} bytes of text without control characters")
    })?;
    let is_name = sized(&offer.name, 1, NAME_BYTES_MAX) && !offer.name.trim().is_empty();
    require(is_name, "name", || {
        format!("is 1 to {NAME_BYTES_MAX} bytes of text that is not blank")
    })?;
    require(
        sized(&offer.description, 0, DESCRIPTION_BYTES_MAX),
        "description",
        || format!("is text of at most {DESCRIPTION_BYTES_MAX} bytes"),
    )?;
    require(offer.lang.as_deref().is_none_or(is_lang), "lang", || {
        "is a language tag, such as `fr` or `pt-BR`".to_owned()
    })?;
    let is_price = |price: &str| Price::parse(price).is_ok();
    require(offer.price.as_deref().is_none_or(is_price), "price", || {
        "has at most 11 digits before the point and 8 behind it".to_owned()
    })?;
    require(
        offer.currency.as_deref().is_none_or(is_currency),
        "currency",
        || "is three upper-case letters, such as `EUR`".to_owned(),
    )?;
    let are_tags = offer.tags.len() <= TAGS_MAX && offer.tags.iter().all(|tag| tag.len() <= TAG_BYTES_MAX);
    require(are_tags, "tags", || {
        format!("is a list of at most {TAGS_MAX} texts of at most {TAG_BYTES_MAX} bytes each")
    })?;
    require(attributes_fit(offer), "attributes", || {
        format!(
            "holds at most {ATTRIBUTES_MAX} attributes: names of 1 to {ATTRIBUTE_NAME_BYTES_MAX} bytes, texts of at \
             most {ATTRIBUTE_TEXT_BYTES_MAX}"
        )
    })?;
    let deep = offer
        .extra
        .iter()
        .find(|(_, value)| !fits_levels(value, LISTING_LEVELS_MAX - 1));
    match deep {
        None => Ok(()),
        Some((name, _)) => require(false, name, || {
            format!("has more levels than the {LISTING_LEVELS_MAX} of a listing")
        }),
    }
}

/// Whether `text` has the form of a currency.
pub fn is_currency(text: &str) -> bool {
    text.len() == 3 && text.bytes().all(|byte| byte.is_ascii_uppercase())
}

/// Whether `text` has the form of a language (BCP 47): subtags of letters and digits.
pub fn is_lang(text: &str) -> bool {
    let subtag =
        |part: &str| (1..=8).contains(&part.len()) && part.bytes().all(|byte| byte.is_ascii_alphanumeric());
    (2..=LANG_BYTES_MAX).contains(&text.len()) && text.split('-').all(subtag)
}

fn require(holds: bool, member: &str, should: impl FnOnce() -> String) -> Result<(), Refusal> {
    if holds {
        return Ok(());
    }
    let detail = format!("The member `{member}` {}.", should());
    Err(Refusal::new(ErrorCode::MemberInvalid, detail).with("member", member))
}

fn attributes_fit(offer: &Offer) -> bool {
    let fits = |(name, value): (&str, &Json)| {
        let text = value.as_str().unwrap_or_default();
        (1..=ATTRIBUTE_NAME_BYTES_MAX).contains(&name.len()) && text.len() <= ATTRIBUTE_TEXT_BYTES_MAX
    };
    offer.attributes.len() <= ATTRIBUTES_MAX && offer.attributes.iter().all(fits)
}

/// Whether the value has at most `levels` levels of objects and arrays.
fn fits_levels(json: &Json, levels: usize) -> bool {
    let inside = |item: &Json| levels > 0 && fits_levels(item, levels - 1);
    match json {
        Json::Array(items) => levels > 0 && items.iter().all(inside),
        Json::Object(members) => levels > 0 && members.iter().all(|(_, item)| inside(item)),
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use aip_protocol::json::Object;
    use aip_protocol::listing::ListingKind;

    fn refused(change: impl FnOnce(&mut Offer)) -> Option<String> {
        let mut offer = Offer::new(ListingKind::Product, "x-1", "Telephone");
        offer.lang = Some("pt-BR".to_owned());
        offer.price = Some("12.50".to_owned());
        offer.currency = Some("EUR".to_owned());
        change(&mut offer);
        let refusal = check(&offer).err()?;
        assert_eq!(refusal.code, ErrorCode::MemberInvalid);
        Some(refusal.members[0].1.as_str().unwrap().to_owned())
    }

    #[test]
    fn what_is_within_its_bounds_passes() {
        assert_eq!(refused(|_| {}), None);
        assert_eq!(refused(|offer| offer.name = "x".repeat(NAME_BYTES_MAX)), None);
    }

    #[test]
    fn what_is_beyond_one_is_refused_by_name() {
        let text = |text: &str| Some(text.to_owned());
        let named = |wrong: fn(&mut Offer)| refused(wrong).unwrap();
        assert_eq!(named(|offer| offer.listing_id = "a\0b".to_owned()), "listing_id");
        assert_eq!(named(|offer| offer.listing_id = "x".repeat(129)), "listing_id");
        assert_eq!(named(|offer| offer.name = " \u{a0}".to_owned()), "name");
        assert_eq!(named(|offer| offer.name = "x".repeat(513)), "name");
        assert_eq!(
            named(|offer| offer.description = "x".repeat(32_769)),
            "description"
        );
        assert_eq!(named(|offer| offer.tags = vec!["x".repeat(129)]), "tags");
        assert_eq!(named(|offer| offer.tags = vec![String::new(); 65]), "tags");
        assert_eq!(
            named(|offer| offer.attributes = Object::from([("", Json::from(true))])),
            "attributes"
        );
        assert_eq!(
            named(|offer| offer.attributes = Object::from([("a", Json::from("x".repeat(1_025)))])),
            "attributes"
        );
        for lang in ["français", "", "x", "en_US"] {
            assert_eq!(refused(|offer| offer.lang = text(lang)), text("lang"), "{lang}");
        }
        for price in ["100000000000", "0.000000001"] {
            assert_eq!(
                refused(|offer| offer.price = text(price)),
                text("price"),
                "{price}"
            );
        }
        for currency in ["eur", "EU", "€"] {
            assert_eq!(refused(|offer| offer.currency = text(currency)), text("currency"));
        }
    }

    #[test]
    fn a_deep_schema_is_refused() {
        let nested = |levels: usize| (0..levels).fold(Json::from("x"), |inner, _| Json::from([("p", inner)]));
        let with = |levels: usize| {
            refused(|offer| {
                offer.extra.insert("input_schema", nested(levels));
            })
        };
        assert_eq!(with(LISTING_LEVELS_MAX - 1), None);
        assert_eq!(with(LISTING_LEVELS_MAX), Some("input_schema".to_owned()));
    }
}
