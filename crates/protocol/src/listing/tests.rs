//! Making listings: what is left out, what is refused.

use super::*;
use crate::multikey::SigningKey;

fn agent() -> Did {
    Did::parse("did:aip:example.org:alice").unwrap()
}

fn now() -> Timestamp {
    Timestamp::parse("2026-11-29T20:15:30Z").unwrap()
}

fn sign(offer: Offer) -> Result<Listing, Refusal> {
    ListingDraft::new(agent(), 3, now(), offer).sign(&SigningKey::from_seed([1; 32]))
}

fn phone() -> Offer {
    let mut phone = Offer::new(ListingKind::Product, "p-1", "Phone");
    phone.price = Some("79000.50".to_owned());
    phone.currency = Some("RUB".to_owned());
    phone.attributes.insert("gb", Json::Int(256));
    phone.extra.insert("x-note", "kept");
    phone
}

#[test]
fn what_was_signed_reads_back() {
    let listing = sign(phone()).unwrap();
    assert_eq!((listing.version, listing.price.as_deref()), (3, Some("79000.50")));
    assert_eq!(listing.offer().unwrap(), phone());
    assert_eq!(
        Offer::from_json(&Json::Object(phone().to_object())).unwrap(),
        phone()
    );
    assert!(listing.json.get("tags").is_none() && listing.json.get("deleted").is_none());
}

#[test]
fn an_offer_cannot_forge_its_frame() {
    let mut forged = phone();
    for name in ["agent", "kid", "sig", "version", "deleted", "created_at", "name"] {
        forged.extra.insert(name, "forged");
    }
    let listing = sign(forged).unwrap();
    assert_eq!((&listing.agent, listing.name.as_str()), (&agent(), "Phone"));
    assert!(!listing.deleted);
}

#[test]
fn what_a_hub_refuses_is_refused_before_it_is_sent() {
    let refused = |change: fn(&mut Offer)| {
        let mut offer = phone();
        change(&mut offer);
        sign(offer).unwrap_err().code
    };
    assert_eq!(
        refused(|offer| offer.price = Some("1e3".to_owned())),
        ErrorCode::MemberInvalid
    );
    assert_eq!(
        refused(|offer| offer.expires_at = Some(now())),
        ErrorCode::MemberInvalid
    );
    assert_eq!(
        refused(|offer| drop(offer.attributes.insert("a", Json::Null))),
        ErrorCode::MemberInvalid
    );
    let draft = ListingDraft::new(agent(), u64::MAX, now(), phone());
    assert!(draft.sign(&SigningKey::from_seed([1; 32])).is_err());
}

#[test]
fn a_deletion_says_nothing_but_what_it_takes_away() {
    let draft = ListingDraft::deletion(agent(), 4, now(), ListingKind::Product, "p-1");
    let listing = draft.sign(&SigningKey::from_seed([1; 32])).unwrap();
    assert!(listing.deleted);
    assert_eq!(
        (listing.listing_id.as_str(), listing.description.as_str()),
        ("p-1", "")
    );
    assert!(listing.attributes.is_empty() && listing.price.is_none());
}
