//! Products of schema.org.

use super::*;

#[test]
fn a_product_with_an_offer() {
    let text = r#"{"@context":"https://schema.org/","@type":"Product","@id":"https://shop.example/p/1#it",
        "name":{"@value":"Наушники","@language":"ru"},"description":"d","sku":"AB-1","gtin13":4006381333931,
        "brand":{"@type":"Brand","name":"Acme"},"category":["Audio","Head"],"color":"black",
        "weight":{"@type":"QuantitativeValue","value":250,"unitText":"g"},"itemCondition":"https://schema.org/NewCondition",
        "keywords":"wired, studio",
        "additionalProperty":[{"@type":"PropertyValue","name":"Impedance (Ohm)","value":32},{"name":"Range","value":{"a":1}}],
        "offers":{"@type":"Offer","price":"79000.50","priceCurrency":"RUB","availability":"https://schema.org/InStock"}}"#;
    let rows = rows(text, Format::JsonLd, &Options::default());
    let product = rows[0].offer.as_ref().unwrap();
    assert_eq!(
        (product.listing_id.as_str(), product.name.as_str()),
        ("AB-1", "Наушники")
    );
    assert_eq!(
        (cost(product), product.available),
        ("79000.50 RUB".to_owned(), Some(true))
    );
    assert_eq!(product.lang.as_deref(), Some("ru"));
    assert_eq!(product.tags, ["wired", "studio"]);
    for (name, value) in [
        ("brand", "Acme"),
        ("category", "Audio"),
        ("color", "black"),
        ("weight", "250 g"),
        ("gtin", "4006381333931"),
        ("condition", "NewCondition"),
    ] {
        assert_eq!(attribute(product, name), value, "{name}");
    }
    assert_eq!(product.attributes.get("impedance_ohm"), Some(&Json::Int(32)));
    assert_eq!(rows[0].notes[0].member, "range");
}

#[test]
fn a_graph_names_its_nodes() {
    let text = r##"{"@context":"https://schema.org","@graph":[
        {"@type":"WebPage","name":"Shop"},
        {"@type":["Product","Thing"],"@id":"#p","name":"Pot","brand":{"@id":"#b"},"offers":[{"@id":"#o1"},{"@id":"#o2"}]},
        {"@type":"Brand","@id":"#b","name":"Kettle & Co"},
        {"@type":"Offer","@id":"#o1","price":12.90,"priceCurrency":"EUR","availability":"SoldOut"},
        {"@type":"Offer","@id":"#o2","priceSpecification":{"price":13,"priceCurrency":"EUR"},"availability":"schema:InStock"}]}"##;
    let rows = rows(text, Format::JsonLd, &Options::default());
    let [pot] = rows.as_slice() else {
        panic!("{rows:?}")
    };
    assert!(
        pot.notes.iter().any(|note| note.what.contains("2 offers")),
        "{pot:?}"
    );
    let pot = pot.offer.as_ref().unwrap();
    assert_eq!(
        (pot.listing_id.as_str(), attribute(pot, "brand")),
        ("#p", "Kettle & Co")
    );
    assert_eq!(
        (cost(pot), pot.available),
        ("13 EUR".to_owned(), Some(true)),
        "what can be had comes first"
    );
}

#[test]
fn lists_aggregates_and_currencies() {
    let text = r#"[{"@type":"ItemList","itemListElement":[{"@type":"ListItem","position":1,
          "item":{"@type":"http://schema.org/Product","name":"A","url":"https://s.example/a",
            "offers":{"@type":"AggregateOffer","lowPrice":"5","highPrice":"9","priceCurrency":"EUR"}}}]},
        {"@type":"schema:Product","name":"B","offers":{"@type":"AggregateOffer","priceCurrency":"EUR","offers":[
            {"price":7,"priceCurrency":"EUR"},{"price":6.50,"priceCurrency":"EUR"},{"price":1,"priceCurrency":"USD"}]}},
        {"@type":"ProductGroup","name":"G","hasVariant":[{"@type":"Product","name":"C","sku":"c","offers":{"price":"3"}}]}]"#;
    let offers = good(text, Format::JsonLd);
    let costs: Vec<String> = offers.iter().map(cost).collect();
    assert_eq!(costs, ["5 EUR", "6.50 EUR", "3 EUR"]);
    let ids: Vec<&str> = offers.iter().map(|offer| offer.listing_id.as_str()).collect();
    assert_eq!((ids[0], ids[2]), ("https://s.example/a", "c"));
    assert!(ids[1].starts_with("name:"));
}

#[test]
fn the_price_that_is_asked_is_taken() {
    let text = r#"[{"@type":"Product","name":"A","offers":{"@type":"Offer","priceSpecification":[
            {"@type":"UnitPriceSpecification","priceType":"https://schema.org/StrikethroughPrice","price":15,"priceCurrency":"EUR"},
            {"@type":"DeliveryChargeSpecification","price":4,"priceCurrency":"EUR"},
            {"@type":"UnitPriceSpecification","price":8,"priceCurrency":"EUR","validForMemberTier":{"name":"gold"}},
            {"@type":"UnitPriceSpecification","price":10,"priceCurrency":"EUR"}]}},
        {"@type":"Product","name":"B","offers":{"@type":"AggregateOffer","priceCurrency":"USD","lowPrice":5,"offers":[
            {"@type":"Offer","price":7},{"@type":"Offer","price":5}]}}]"#;
    let costs: Vec<String> = good(text, Format::JsonLd).iter().map(cost).collect();
    assert_eq!(
        costs,
        ["10 EUR", "5 USD"],
        "never the currency of the command line"
    );
}

#[test]
fn a_node_that_is_named_without_end_is_read_once() {
    let names = vec![r##"{"@id":"#o"}"##; 10_000].join(",");
    let long = "x".repeat(200_000);
    let text = format!(
        r##"[{{"@type":"Offer","@id":"#o","price":3,"priceCurrency":"EUR","description":"{long}"}},
            {{"@type":"Product","name":"A","offers":{{"@type":"AggregateOffer","offers":[{names}]}}}}]"##
    );
    let rows = rows(&text, Format::JsonLd, &Options::default());
    assert_eq!(cost(rows[0].offer.as_ref().unwrap()), "3 EUR");
    assert!(
        rows[0]
            .notes
            .iter()
            .any(|note| note.what.contains("more than 256 offers")),
        "{:?}",
        rows[0].notes
    );
}

#[test]
fn every_availability_has_a_meaning() {
    for (word, available, more) in [
        ("http://schema.org/InStock", true, ""),
        ("https://schema.org/LimitedAvailability/", true, "limited"),
        ("PreOrder", false, "preorder"),
        ("schema:OutOfStock", false, ""),
        ("Discontinued", false, "discontinued"),
    ] {
        let text =
            format!(r#"{{"@type":"Product","name":"x","offers":{{"price":1,"availability":"{word}"}}}}"#);
        let [offer] = good(&text, Format::JsonLd).try_into().unwrap();
        assert_eq!(
            (offer.available, attribute(&offer, "availability")),
            (Some(available), more),
            "{word}"
        );
    }
}

#[test]
fn a_document_without_products_says_so() {
    for text in ["{}", r#"{"@type":"Person","name":"x"}"#, "[]", "nonsense"] {
        let error = read(text.as_bytes(), Some(Format::JsonLd), &euros()).unwrap_err();
        assert!(error.to_string().contains("jsonld"), "{error}");
    }
}

#[test]
fn a_page_carries_its_products_in_scripts() {
    let page = r#"<!DOCTYPE html><html><head><script>var a = "<b>";</script>
        <SCRIPT type="application/ld+json" id="x">{"@type":"Product","name":"Thé","sku":"1","offers":{"price":"3"}}</SCRIPT>
        <script type='application/ld+json'>[{"@type":"Product","name":"Pot","sku":"2"}]</script><p>A product</p></html>"#;
    let import = read(page.as_bytes(), None, &euros()).unwrap();
    assert_eq!(import.format, Format::JsonLd);
    let names: Vec<&str> = import
        .rows
        .iter()
        .map(|row| row.offer.as_ref().unwrap().name.as_str())
        .collect();
    assert_eq!(names, ["Thé", "Pot"]);
    for page in [
        "<script type=\"application/ld+json\"></script>",
        "<script type=\"application/ld+json\">{\"@type\":\"Product\"",
        "<script application/ld+json",
    ] {
        assert!(read(page.as_bytes(), None, &euros()).is_err(), "{page}");
    }
}
