//! What strangers may send: it costs time and memory in proportion to its size, and ends with a sentence.

use super::*;

fn refused(bytes: &[u8], format: Format) -> String {
    let error = read(bytes, Some(format), &euros()).unwrap_err().to_string();
    assert!(error.len() < 500, "{}", error.len());
    error
}

#[test]
fn no_entity_is_ever_expanded() {
    let laughs: Vec<String> = (1..10)
        .map(|n| format!("<!ENTITY l{n} \"{}\">", format!("&l{};", n - 1).repeat(10)))
        .collect();
    let laughs = laughs.concat();
    let text =
        format!("<!DOCTYPE x [<!ENTITY l0 \"lol\">{laughs}]><rss><item><title>&l9;</title></item></rss>");
    assert!(refused(text.as_bytes(), Format::Merchant).contains("DOCTYPE"));
    let text = "<!DOCTYPE x SYSTEM \"file:///etc/passwd\"><rss><item><title>a</title></item></rss>";
    assert!(refused(text.as_bytes(), Format::Merchant).contains("DOCTYPE"));
    for entity in [
        "&l9;",
        "&#0;",
        "&#x110000;",
        "&#xd800;",
        "&#99999999999999999999;",
    ] {
        let said = flaw(
            &format!("<rss><item><title>{entity}</title></item></rss>"),
            Format::Merchant,
        );
        assert!(said.contains("not an entity"), "{said}");
    }
}

#[test]
fn endless_numbers_are_text() {
    let digits = "9".repeat(200_000);
    for text in [
        format!("[{{\"name\":\"a\",\"price\":{digits}}},{{\"name\":\"b\"}}]"),
        format!("[{{\"name\":\"a\",\"price\":1e{digits}}},{{\"name\":\"b\"}}]"),
        format!("[{{\"name\":\"a\",\"price\":0.{digits}}},{{\"name\":\"b\"}}]"),
    ] {
        let rows = rows(&text, Format::Manifest, &euros());
        assert!(rows[0].offer.is_none() && rows[1].offer.is_some());
        assert!(rows[0].flaws[0].what.contains("too long"), "{}", rows[0].flaws[0]);
    }
    let huge = format!("[{{\"name\":\"a\",\"price\":{}}}]", "9".repeat(1 << 20));
    let rows = rows(&huge, Format::Manifest, &euros());
    assert!(
        rows[0].flaws[0].what.contains("at most 262144 are read"),
        "{}",
        rows[0].flaws[0]
    );
    let [number] = good(
        "[{\"name\":\"a\",\"attributes\":{\"n\":1e400}}]",
        Format::Manifest,
    )
    .try_into()
    .unwrap();
    assert_eq!(attribute(&number, "n"), "1e400");
}

#[test]
fn depth_is_bounded() {
    let deep =
        |open: &str, close: &str, levels: usize| format!("{}{}", open.repeat(levels), close.repeat(levels));
    let text = format!(
        "[{{\"name\":\"a\",\"input_schema\":{{\"x\":{}}}}},{{\"name\":\"b\"}}]",
        deep("[", "]", 100_000)
    );
    let rows = rows(&text, Format::Manifest, &euros());
    assert!(
        rows[0].flaws[0].what.contains("deeper than 32"),
        "{}",
        rows[0].flaws[0]
    );
    assert!(rows[1].offer.is_some());
    assert!(!refused(deep("[", "]", 1_000_000).as_bytes(), Format::JsonLd).is_empty());
    let text = format!("<rss><item>{}</item></rss>", deep("<a>", "</a>", 1000));
    assert!(refused(text.as_bytes(), Format::Merchant).contains("deeper than 32"));
}

#[test]
fn what_is_not_text_is_refused_or_told() {
    for format in [Format::Manifest, Format::JsonLd, Format::Merchant] {
        assert!(
            refused(b"[\"\xff\"]", format).contains("byte 2 of the file is not UTF-8"),
            "{format:?}"
        );
    }
    assert!(flaw("name,price\nTe\0a,\n", Format::Csv).contains("control character"));
    assert!(flaw("[{\"name\":\"a\\u0000b\"}]", Format::Manifest).contains("control character"));
    assert!(
        flaw("<rss><item><title>a&#27;b</title></item></rss>", Format::Merchant)
            .contains("control character")
    );
    assert!(refused(b"[\0]", Format::Manifest).contains("manifest"));
    let noise: Vec<u8> = (0..=255).cycle().take(100_000).collect();
    for format in [Format::Manifest, Format::JsonLd, Format::Csv, Format::Merchant] {
        assert!(!refused(&noise, format).is_empty());
    }
}

#[test]
fn rows_are_bounded() {
    let many = "name\n".to_owned() + &"x\n".repeat(crate::limits::IMPORT_ROWS_MAX + 1);
    assert_eq!(
        read(many.as_bytes(), Some(Format::Csv), &euros()),
        Err(ImportError::TooManyRows)
    );
    let many = format!("[{}0]", "0,".repeat(crate::limits::IMPORT_ROWS_MAX));
    assert!(refused(many.as_bytes(), Format::Manifest).contains("more than 200000"));
    let long = format!("name\n\"{}\"\nTea\n", "x".repeat(1 << 20));
    let rows = rows(&long, Format::Csv, &euros());
    assert!(rows[0].flaws[0].what.contains("at most"), "{}", rows[0].flaws[0]);
    assert!(rows[1].offer.is_some());
    let item = format!("<rss><item><title>{}</title></item></rss>", "x".repeat(1 << 20));
    assert!(flaw(&item, Format::Merchant).contains("at most"));
    let columns = "a,".repeat(1000);
    assert!(refused(columns.as_bytes(), Format::Csv).contains("512 columns"));
    let tags: String = "x,".repeat(10_000);
    let tags: Vec<String> = tags
        .split(',')
        .zip(0..)
        .map(|(tag, n)| format!("{tag}{n}"))
        .collect();
    let text = format!("name,tags\nTea,\"{}\"\n", tags.join(","));
    let tea = super::rows(&text, Format::Csv, &euros()).remove(0);
    assert_eq!((tea.offer.unwrap().tags.len(), tea.notes.len()), (64, 16));
}

#[test]
fn a_tag_with_a_million_attributes_is_skipped() {
    let attributes: Vec<String> = (0..100_000).map(|n| format!(" a{n}=\"1\"")).collect();
    let text = format!(
        "<rss><item><title>a</title><link{} href=\"x\"/></item></rss>",
        attributes.concat()
    );
    let [item] = good(&text, Format::Merchant).try_into().unwrap();
    assert_eq!(attribute(&item, "url"), "");
}

/// Pieces that each format is made of, put together at random.
const PIECES: [&str; 40] = [
    "{",
    "}",
    "[",
    "]",
    ":",
    ",",
    ";",
    "\"",
    "\"name\"",
    "\"@type\":\"Product\"",
    "\"offers\"",
    "\"price\"",
    "\"tools\":[",
    "1e5",
    "-0.5",
    "null",
    "true",
    "\\u0000",
    "\\ud800",
    "<",
    ">",
    "<item>",
    "</item>",
    "<g:price>",
    "</g:price>",
    "<title>",
    "</title>",
    "&amp;",
    "&#x41;",
    "<![CDATA[",
    "]]>",
    "<!--",
    "<!DOCTYPE",
    "name,price\n",
    "1,299.00 €",
    "\r\n",
    "\t",
    "東",
    "\u{feff}",
    "\0",
];

proptest::proptest! {
    #[test]
    fn nothing_that_comes_in_is_too_much(
        pieces in proptest::collection::vec(0..PIECES.len(), 0..60),
        noise in proptest::collection::vec(proptest::num::u8::ANY, 0..20),
    ) {
        let text: Vec<&str> = pieces.into_iter().map(|piece| PIECES[piece]).collect();
        let bytes = [text.concat().as_bytes(), &noise].concat();
        for format in [None, Some(Format::Manifest), Some(Format::JsonLd), Some(Format::Csv), Some(Format::Merchant)] {
            let Ok(import) = read(&bytes, format, &euros()) else { continue };
            for row in import.rows {
                assert_eq!(row.offer.is_some(), row.flaws.is_empty());
                if let Some(offer) = row.offer {
                    let json = Json::Object(offer.to_object());
                    assert_eq!(Offer::from_json(&json).unwrap(), offer);
                }
            }
        }
    }

    #[test]
    fn a_price_is_a_decimal_or_none(text in "[0-9 .,eE'€$-]{0,12}") {
        if let Ok(price) = super::super::price::read(&text, false) {
            let (whole, fraction) = price.amount.split_once('.').unwrap_or((&price.amount, "0"));
            assert!(!whole.is_empty() && !fraction.is_empty() && (whole == "0" || !whole.starts_with('0')), "{text}: {price:?}");
            assert!([whole, fraction].concat().bytes().all(|byte| byte.is_ascii_digit()), "{text}: {price:?}");
        }
    }
}
