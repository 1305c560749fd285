//! What makes a listing suspect without making it wrong: characters that nobody sees. It is taken, and the flags are told
//! by its status and to the operator.

use aip_protocol::listing::Offer;

/// Characters without any width are in it.
const INVISIBLE: &str = "invisible_characters";
/// Characters that turn the direction of what follows are in it.
const DIRECTION: &str = "direction_controls";
/// Control characters other than line breaks and tabs are in it.
const CONTROL: &str = "control_characters";

/// The flags of a listing, in alphabetical order.
pub fn flags(offer: &Offer) -> Vec<String> {
    let mut found = [(CONTROL, false), (DIRECTION, false), (INVISIBLE, false)];
    for text in texts(offer) {
        let mut before = ' ';
        for character in text.chars() {
            if let Some(flag) = flag_of(character, before) {
                for entry in found.iter_mut().filter(|(name, _)| *name == flag) {
                    entry.1 = true;
                }
            }
            before = character;
        }
    }
    let raised = found.into_iter().filter(|(_, raised)| *raised);
    raised.map(|(name, _)| name.to_owned()).collect()
}

/// All that people and models read.
fn texts(offer: &Offer) -> impl Iterator<Item = &str> {
    let attributes = offer.attributes.iter();
    [offer.name.as_str(), offer.description.as_str()]
        .into_iter()
        .chain(offer.tags.iter().map(String::as_str))
        .chain(attributes.flat_map(|(name, value)| [name, value.as_str().unwrap_or_default()]))
}

fn flag_of(character: char, before: char) -> Option<&'static str> {
    match character {
        '\n' | '\r' | '\t' => None,
        '\u{202A}'..='\u{202E}' | '\u{2066}'..='\u{2069}' => Some(DIRECTION),
        // The joiners belong to the spelling of Persian, of Indic scripts and of emoji; between Latin letters they hide.
        '\u{200C}' | '\u{200D}' => before.is_ascii_alphanumeric().then_some(INVISIBLE),
        '\u{00AD}'
        | '\u{034F}'
        | '\u{061C}'
        | '\u{115F}'
        | '\u{1160}'
        | '\u{17B4}'
        | '\u{17B5}'
        | '\u{180E}'
        | '\u{200B}'
        | '\u{200E}'
        | '\u{200F}'
        | '\u{2060}'..='\u{2064}'
        | '\u{206A}'..='\u{206F}'
        | '\u{3164}'
        | '\u{FEFF}'
        | '\u{FFA0}'
        | '\u{E0000}'..='\u{E0FFF}' => Some(INVISIBLE),
        other if other.is_control() => Some(CONTROL),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use aip_protocol::listing::ListingKind;

    fn of(name: &str, description: &str) -> Vec<String> {
        let mut offer = Offer::new(ListingKind::Product, "x-1", name);
        offer.attributes.insert("about", description);
        flags(&offer)
    }

    #[test]
    fn what_nobody_sees_is_told() {
        assert_eq!(of("tele\u{200B}phone", "fine"), [INVISIBLE]);
        assert_eq!(of("telephone", "a\u{202E}b\u{0007}"), [CONTROL, DIRECTION]);
        assert_eq!(of("pay\u{200D}pal", "x"), [INVISIBLE]);
        assert_eq!(of("a\u{E0041}", "x"), [INVISIBLE]);
    }

    #[test]
    fn what_belongs_to_a_script_is_not() {
        assert_eq!(of("می‌خواهم 👩‍🚀", "two\nlines\tand a tab").len(), 0);
        assert_eq!(of("iPhone 15 Pro Max 256 ГБ", "Ёлка, 東京").len(), 0);
    }
}
