//! Named cases from the wild: encodings, look-alikes and colliding pairs.

use super::*;

fn code<T>(result: Result<T, Refusal>) -> Option<ErrorCode> {
    result.err().map(|refusal| refusal.code)
}

#[test]
fn row_01_a_raw_hash_leaves_a_bare_name_and_is_explained() {
    let refusal = parse_identifier("alice").unwrap_err();
    assert_eq!(refusal.code, ErrorCode::HandleDomainMissing);
    assert!(refusal.detail.contains("%23"));
    assert_eq!(
        parse_identifier("alice%23aigentix.org").unwrap().to_string(),
        "alice#aigentix.org"
    );
}

#[test]
fn row_02_a_path_is_decoded_exactly_once() {
    assert_eq!(
        code(parse_identifier("alice%2523aigentix.org")),
        Some(ErrorCode::HandleInvalid)
    );
    assert_eq!(code(parse_identifier("alice%zz")), Some(ErrorCode::HandleInvalid));
    assert_eq!(
        code(parse_identifier("%ff%23aigentix.org")),
        Some(ErrorCode::HandleInvalid)
    );
}

#[test]
fn row_03_an_encoded_slash_is_refused_not_routed() {
    assert_eq!(
        code(parse_identifier("al%2Fice%23aigentix.org")),
        Some(ErrorCode::NameInvalid)
    );
    assert_eq!(
        code(parse_identifier("did:aip:aigentix.org:al%2Fice")),
        Some(ErrorCode::DidInvalid)
    );
}

#[test]
fn row_04_a_port_keeps_its_percent_3a_whatever_the_hex_case() {
    for text in ["did:aip:localhost%3A8443:alice", "did:aip:localhost%3a8443:alice"] {
        let did = Did::parse_input(text).unwrap();
        assert_eq!(did.as_str(), "did:aip:localhost%3A8443:alice");
        assert_eq!(
            (did.domain().host(), did.domain().port()),
            ("localhost", Some(8443))
        );
        assert_eq!(did.did_web(), "did:web:localhost%3A8443:agents:alice");
    }
}

#[test]
fn row_05_a_did_prints_as_it_was_read() {
    for text in [
        "did:aip:h.example%3A8443:alice",
        "did:aip:xn--e1afmkfd.xn--p1ai:shop",
    ] {
        assert_eq!(Did::parse(text).unwrap().to_string(), text);
    }
}

#[test]
fn row_07_wide_characters_at_every_offset_are_refused_without_panic() {
    for text in [
        "alice#example.com",
        "did:aip:example.com%3A80:alice",
        "alice%23example.com",
    ] {
        for (offset, _) in text.char_indices() {
            for wide in ["é", "😀"] {
                let mut broken = text.to_owned();
                broken.insert_str(offset, wide);
                // A wide letter inside the domain is a good IDN, everywhere else it is refused.
                let in_domain = Handle::parse(&broken).is_ok();
                assert!(
                    !in_domain || offset > text.find("example").unwrap() - 1,
                    "{broken}"
                );
                assert!(Did::parse(&broken).is_err());
                assert!(Name::parse(&broken).is_err());
            }
        }
    }
}

#[test]
fn row_10_look_alike_names_are_refused() {
    for name in [
        "раypal",
        "p\u{430}ypal",
        "\u{212a}elvin",
        "ａlice",
        "ali\u{200d}ce",
    ] {
        assert_eq!(code(Name::parse(name)), Some(ErrorCode::NameInvalid), "{name}");
    }
}

#[test]
fn reserved_names_are_known() {
    for name in ["admin", "Root", "well-known", "www"] {
        assert!(Name::parse(name).unwrap().is_reserved());
    }
    assert!(!Name::parse("alice").unwrap().is_reserved());
}

#[test]
fn domains_that_hide_an_address_are_refused() {
    for domain in [
        "127.1",
        "0x7f.1",
        "a.0x7f",
        "a.0x",
        "2130706433",
        "1.2.3.4",
        "[::1]",
        "example.com:80:80",
        "",
    ] {
        assert_eq!(
            code(Domain::parse(domain)),
            Some(ErrorCode::DomainInvalid),
            "{domain}"
        );
    }
    assert_eq!(
        code(Domain::parse(&"a.".repeat(2_000))),
        Some(ErrorCode::DomainInvalid)
    );
    assert!(Domain::parse("a.0xg").is_ok());
}
