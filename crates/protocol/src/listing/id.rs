//! A hub's id of a listing, which follows from its agent's.

use sha2::{Digest as _, Sha256};

use crate::name::Did;

/// What an id begins with.
const PREFIX: &str = "lst_";
/// The alphabet of RFC 4648 §6 in lower case.
const ALPHABET: [u8; 32] = *b"abcdefghijklmnopqrstuvwxyz234567";
/// Characters of an id behind its prefix: 128 bits, five in each.
const CHARS: u32 = 26;

/// The hub's id of the listing that its agent calls `listing_id`: `lst_` and the first 128 bits of
/// SHA-256("aip/1 listing id", 0, DID, 0, `listing_id`) in base32. The same at every hub and after every publication.
pub fn hub_id(agent: &Did, listing_id: &str) -> String {
    let mut hash = Sha256::new();
    for part in ["aip/1 listing id\0", agent.as_str(), "\0", listing_id] {
        hash.update(part);
    }
    let hash: [u8; 32] = hash.finalize().into();
    let [bits, _] = hash.as_chunks().0 else {
        return PREFIX.to_owned();
    };
    let bits = u128::from_be_bytes(*bits);
    let mut id = PREFIX.to_owned();
    // The last character holds three bits, and two zeros behind them.
    let groups = (0..CHARS).map(|at| match 123_u32.checked_sub(5 * at) {
        Some(shift) => bits >> shift,
        None => bits << 2,
    });
    for group in groups {
        let at = usize::try_from(group & 31).unwrap_or_default();
        id.extend(ALPHABET.get(at).map(|char| char::from(*char)));
    }
    id
}

/// Whether this has the form of an id.
pub fn is_hub_id(text: &str) -> bool {
    let chars = text.strip_prefix(PREFIX).unwrap_or_default();
    chars.len() == CHARS as usize && chars.bytes().all(|char| ALPHABET.contains(&char))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_the_beginning_of_a_hash_in_base32() {
        for (agent, listing, id) in [
            ("shop", "a", "lst_6tadon6rdcsso4vhddbt7skx4q"),
            ("shop", "ü / 1", "lst_q6tmugzpf7bsywpuwdjasjskda"),
            ("sho", "pa", "lst_if2677xbchh737frpge5ypsly4"),
        ] {
            let agent = Did::parse(&format!("did:aip:hub.example:{agent}")).expect("a DID");
            assert_eq!(hub_id(&agent, listing), id);
            assert!(is_hub_id(id) && !is_hub_id(&id.to_uppercase()) && !is_hub_id(&format!("{id}a")));
        }
    }
}
