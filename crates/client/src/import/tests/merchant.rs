//! Feeds in XML.

use super::*;

fn feed(items: &str) -> String {
    format!(
        "<?xml version=\"1.0\"?>\n<rss version=\"2.0\" xmlns:g=\"http://base.google.com/ns/1.0\"><channel>\n\
         <title>Shop</title><link>https://shop.example</link>{items}</channel></rss>"
    )
}

#[test]
fn an_item_of_rss() {
    let text = feed(
        "<item><g:id>TDA-1</g:id><title>Dishes &amp; More &#8212; <![CDATA[<b>blue</b>]]></title>
          <g:description>Line&#10;two</g:description><link>https://shop.example/1?a=1&amp;b=2</link>
          <g:image_link>https://i.example/1.png</g:image_link><g:price>15.00 USD</g:price>
          <g:availability>in_stock</g:availability><g:brand>Acme</g:brand><g:gtin>0012345678905</g:gtin>
          <g:google_product_category>Home &gt; Kitchen</g:google_product_category><g:color>blue</g:color>
          <g:shipping><g:country>US</g:country><g:price>6.49 USD</g:price></g:shipping>
          <g:product_detail><g:section_name>General</g:section_name><g:attribute_name>Dish washer</g:attribute_name>
            <g:attribute_value>safe</g:attribute_value></g:product_detail></item>",
    );
    let [dishes] = good(&text, Format::Merchant).try_into().unwrap();
    assert_eq!(dishes.listing_id, "TDA-1");
    assert_eq!(dishes.name, "Dishes & More — <b>blue</b>");
    assert_eq!(dishes.description, "Line\ntwo");
    assert_eq!(
        (cost(&dishes), dishes.available),
        ("15.00 USD".to_owned(), Some(true))
    );
    for (name, value) in [
        ("brand", "Acme"),
        ("gtin", "0012345678905"),
        ("category", "Home > Kitchen"),
        ("color", "blue"),
        ("url", "https://shop.example/1?a=1&b=2"),
        ("dish_washer", "safe"),
        ("country", ""),
    ] {
        assert_eq!(attribute(&dishes, name), value, "{name}");
    }
    assert!(!dishes.attributes.contains("image_link"));
}

#[test]
fn an_entry_of_atom() {
    let text = r#"<feed xmlns="http://www.w3.org/2005/Atom" xmlns:g="http://base.google.com/ns/1.0"><title>Shop</title>
        <entry><id>tag:1</id><title>Pot</title><link rel="alternate" href="https://s.example/?a&#61;1&amp;b"/>
        <summary>Round.</summary><g:price>12 EUR</g:price><g:availability>preorder</g:availability></entry></feed>"#;
    let [pot] = good(text, Format::Merchant).try_into().unwrap();
    assert_eq!(
        (pot.listing_id.as_str(), pot.description.as_str()),
        ("tag:1", "Round.")
    );
    assert_eq!((cost(&pot), pot.available), ("12 EUR".to_owned(), Some(false)));
    assert_eq!(attribute(&pot, "url"), "https://s.example/?a=1&b");
}

#[test]
fn a_bad_item_does_not_stop_the_others() {
    let text = feed(
        "<item><g:id>1</g:id><title>A&nbsp;B</title></item><item><g:id>2</g:id></item>\
         <item><g:id>3</g:id><title>C</title><g:price>from 5</g:price></item><item><g:id>4</g:id><title>D</title></item>",
    );
    let rows = rows(&text, Format::Merchant, &euros());
    let said: Vec<String> = rows
        .iter()
        .map(|row| row.flaws.first().map(ToString::to_string).unwrap_or_default())
        .collect();
    assert!(said[0].contains("&nbsp; is not an entity of XML"), "{said:?}");
    assert!(said[1].contains("name: it is missing"), "{said:?}");
    assert!(said[2].contains("not a currency"), "{said:?}");
    assert!(said[3].is_empty());
}

#[test]
fn what_is_not_a_feed_is_refused_whole() {
    for (text, why) in [
        ("<html><body>hello</body></html>", "neither <item> nor <entry>"),
        ("<rss><channel><item><title>a</item></channel></rss>", "at byte"),
        (
            "<rss><channel><item><title>a</title></item>",
            "ends inside <channel>",
        ),
        ("<rss><item><title>a</title></item", "at byte"),
        ("<!DOCTYPE html><html></html>", "a web page, not a feed"),
        ("plain text", "neither <item> nor <entry>"),
    ] {
        let error = read(text.as_bytes(), Some(Format::Merchant), &euros()).unwrap_err();
        assert!(error.to_string().contains(why), "{text}: {error}");
    }
}
