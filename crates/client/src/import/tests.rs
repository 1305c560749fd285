//! What each format gives, and what strangers may send.

mod hostile;
mod jsonld;
mod manifest;
mod merchant;
mod price;
mod table;

use aip_protocol::json::Json;
use aip_protocol::listing::Offer;

use super::*;

/// Reads text as a format; every row must be good.
fn good(text: &str, format: Format) -> Vec<Offer> {
    let rows = rows(text, format, &euros());
    let offer = |row: Row| {
        row.offer
            .unwrap_or_else(|| panic!("row {}: {}", row.number, row.flaws[0]))
    };
    rows.into_iter().map(offer).collect()
}

fn rows(text: &str, format: Format, options: &Options) -> Vec<Row> {
    read(text.as_bytes(), Some(format), options).unwrap().rows
}

fn euros() -> Options {
    Options {
        currency: Some("EUR".to_owned()),
        ..Options::default()
    }
}

/// Price and currency.
fn cost(offer: &Offer) -> String {
    let part = |text: &Option<String>| text.clone().unwrap_or_default();
    format!("{} {}", part(&offer.price), part(&offer.currency))
}

fn attribute<'a>(offer: &'a Offer, name: &str) -> &'a str {
    offer.attributes.get(name).and_then(Json::as_str).unwrap_or("")
}

/// What is wrong with the only row.
fn flaw(text: &str, format: Format) -> String {
    let rows = rows(text, format, &Options::default());
    assert!(rows.len() == 1 && rows[0].offer.is_none(), "{rows:?}");
    rows[0].flaws[0].to_string()
}

#[test]
fn a_format_is_recognised_by_its_look() {
    for (text, format) in [
        ("{\"tools\":[]}", Format::Manifest),
        ("\u{feff} [{\"name\":\"a\"}]", Format::Manifest),
        ("{\"@context\":\"https://schema.org\"}", Format::JsonLd),
        ("[{\"@type\":\"Product\"}]", Format::JsonLd),
        ("\n<?xml version=\"1.0\"?><rss/>", Format::Merchant),
        ("name;price\n", Format::Csv),
        ("", Format::Csv),
    ] {
        assert_eq!(Format::detect(text.as_bytes()), format, "{text}");
    }
}

#[test]
fn the_same_row_is_the_same_offer_every_time() {
    let text = "name,price,color\nTea,3.50,green\nPot,12,blue\n";
    assert_eq!(good(text, Format::Csv), good(text, Format::Csv));
    let [tea, pot] = good(text, Format::Csv).try_into().unwrap();
    assert_ne!(tea.listing_id, pot.listing_id);
    let dearer = good("name,price,color\nTEA,4,green\n", Format::Csv);
    assert_eq!(
        tea.listing_id, dearer[0].listing_id,
        "known by its name, whatever its case"
    );
}

#[test]
fn two_rows_of_one_id_are_told_apart() {
    let rows = rows("id,name\nx,Tea\ny,Pot\nx,Cup\n", Format::Csv, &Options::default());
    assert!(rows[0].offer.is_some() && rows[1].offer.is_some() && rows[2].offer.is_none());
    assert_eq!(
        rows[2].flaws[0].to_string(),
        "listing_id: row 1 has the same; give each row an id of its own"
    );
}

#[test]
fn a_long_id_is_replaced_by_its_hash() {
    let id = "x".repeat(500);
    let offers = good(&format!("id,name\n{id},Tea\n"), Format::Csv);
    assert!(offers[0].listing_id.starts_with("sha256:") && offers[0].listing_id.len() == 39);
}

#[test]
fn what_is_too_long_for_a_listing_is_told() {
    let long = "x".repeat(40_000);
    assert!(flaw(&format!("name,description\nTea,{long}\n"), Format::Csv).contains("40000 bytes"));
    let name = "x".repeat(600);
    assert!(flaw(&format!("name\n{name}\n"), Format::Csv).contains("shorten it to 512"));
    let wide: Vec<String> = (0..100).map(|n| format!(",c{n}")).collect();
    let wide = wide.concat();
    let text = format!(
        "name{wide}\nTea{}\n",
        format!(",{}", "y".repeat(1000)).repeat(100)
    );
    assert!(flaw(&text, Format::Csv).contains("listing: it has 1"));
}

#[test]
fn wide_text_of_a_spreadsheet_is_read() {
    let text = "name\tprice\nЧай\t3.5\n";
    let units: Vec<u8> = text.encode_utf16().flat_map(u16::to_le_bytes).collect();
    let bytes = [&[0xff, 0xfe][..], &units].concat();
    let import = read(&bytes, None, &euros()).unwrap();
    assert_eq!(import.format, Format::Csv);
    assert_eq!(import.rows[0].offer.as_ref().unwrap().name, "Чай");
    let odd = [&bytes[..], &[0]].concat();
    assert!(matches!(
        read(&odd, None, &euros()),
        Err(ImportError::NotUtf8 { .. })
    ));
}
