//! Codes, sizes and numbers, however they are written.

use crate::entry::AttributeValue;

use super::{attribute, entry, found, index_of, names, search};

#[test]
fn one_code_is_found_however_it_is_written() {
    let index = names(&[
        "Sony Turntable - PSLX350H",
        "Sony PS-LX300 turntable",
        "Turntable belt 350 mm",
        "Philips H350 lamp",
    ]);
    for text in [
        "PSLX350H",
        "pslx350h",
        "PS-LX350H",
        "ps lx350h",
        "ps lx 350 h",
        "PS_LX/350.H",
        "ＰＳＬＸ３５０Ｈ",
    ] {
        assert_eq!(found(&index, text).first(), Some(&1), "{text}");
        let hits = search(&index.view(), text);
        assert!(hits.hits.first().unwrap().exact, "{text}");
    }
}

#[test]
fn a_code_with_a_letter_wrong_or_its_end_missing_is_still_first() {
    let index = names(&[
        "Modem TD-8816 adsl",
        "Cable ICUSB1284",
        "Filter 433810U",
        "Switch TL-SF1005D",
        "Modem WD-3200",
    ]);
    for (text, number) in [
        ("td8b16", 1),
        ("td88", 1),
        ("icusb1i84", 2),
        ("icusb12", 2),
        ("43381", 3),
        ("sf1005", 4),
    ] {
        assert_eq!(found(&index, text).first(), Some(&number), "{text}");
    }
}

#[test]
fn a_slip_that_leaves_no_three_letters_alike_is_found() {
    let index = names(&["Bag NX15", "Bag NV30", "Bag NX159", "Lens 7K-Q2"]);
    for (text, number) in [
        ("nz15", 1),
        ("bag xn15", 1),
        ("nv3o", 2),
        ("7k-q3", 4),
        ("8kq2", 4),
    ] {
        assert_eq!(found(&index, text).first(), Some(&number), "{text}");
    }
    // The beginning of a code may be a word.
    let pros = names(&["Protector APC-PRO8", "Protector APD-PRO8"]);
    assert_eq!(found(&pros, "apcpr"), [1]);
    // A slip is looked for only where nothing says just what was asked.
    assert_eq!(found(&names(&["Bag QX15", "Bag NX15"]), "NX15").first(), Some(&2));
    assert!(search(&index.view(), "zz99").hits.is_empty());
}

#[test]
fn the_very_model_is_before_its_siblings() {
    let index = names(&[
        "Apple iPhone 15 Pro Max 128GB",
        "Apple iPhone 15 Pro 256GB",
        "Apple iPhone 15 Pro Max 256GB",
        "Apple iPhone 14 Pro Max 256GB",
        "Case for iPhone 15 Pro Max",
    ]);
    for text in [
        "iPhone 15 Pro Max 256GB",
        "iphone 15 pro max 256 gb",
        "IPHONE15 pro max 256Gb",
        "apple iphone 15 pro max 256 GB",
    ] {
        assert_eq!(found(&index, text).first(), Some(&3), "{text}");
    }
}

#[test]
fn names_of_tools_are_found_whole_and_in_parts() {
    let index = names(&[
        "sortes.draw@v1",
        "weather.get_forecast",
        "getWeatherNow",
        "draw a card",
        "airportCodes",
    ]);
    assert_eq!(found(&index, "sortes.draw@v1"), [1, 4]);
    assert!(
        search(&index.view(), "sortes.draw@v1")
            .hits
            .first()
            .unwrap()
            .exact
    );
    assert_eq!(found(&index, "sortes").first(), Some(&1));
    assert_eq!(found(&index, "SORTES draw V1").first(), Some(&1));
    assert_eq!(found(&index, "get_forecast").first(), Some(&2));
    assert_eq!(found(&index, "weather now").first(), Some(&3));
    assert_eq!(found(&index, "getweathernow").first(), Some(&3));
    assert_eq!(found(&index, "airport").first(), Some(&5));
}

#[test]
fn fractions_and_sizes() {
    let index = names(&[
        "Drill bit 5,5 mm",
        "Drill bit 5.0 mm",
        "Drill bit 55 mm",
        "Bolt M8x20",
        "Bolt M8x25",
        "Bolt M10x20",
    ]);
    assert_eq!(found(&index, "drill bit 5.5").first(), Some(&1));
    assert_eq!(found(&index, "drill bit 5,5 mm").first(), Some(&1));
    for text in ["bolt M8x20", "bolt m8×20", "bolt M8 x 20", "M8X20"] {
        assert_eq!(found(&index, text).first(), Some(&4), "{text}");
    }
}

#[test]
fn numbers_of_attributes_and_names_of_true_ones_are_words() {
    let index = index_of(vec![
        attribute(entry(1, "Headphones"), "diameter_mm", AttributeValue::Int(40123)),
        attribute(entry(2, "Headphones"), "wireless", AttributeValue::Bool(true)),
        attribute(entry(3, "Headphones"), "wireless", AttributeValue::Bool(false)),
    ]);
    assert_eq!(found(&index, "40123"), [1]);
    assert_eq!(found(&index, "wireless"), [2]);
}

#[test]
fn coverage_is_the_share_of_the_query_that_is_said() {
    let index = names(&["red apple", "green apple", "red car", "blue boat"]);
    let view = index.view();
    let of_best = |text: &str| search(&view, text).coverage;
    assert!((of_best("red apple") - 1.0).abs() < 1e-9);
    let half = of_best("apple zzzzzz");
    assert!(half > 0.0 && half < 0.5, "the unknown word weighs more: {half}");
    assert!(of_best("zzzzzz").abs() < f64::EPSILON);
}

#[test]
fn evidence_is_counted_in_words_that_one_listing_says() {
    let index = names(&["red apple", "green apple", "blue car", "old boat"]);
    let view = index.view();
    let of_best = |text: &str| search(&view, text).evidence;
    assert!((of_best("blue") - 1.0).abs() < 1e-3);
    assert!((of_best("car zzzzzz blue") - 2.0).abs() < 1e-3);
    assert!(of_best("apple") < 0.9, "two listings say it");
    assert!(of_best("zzzzzz").abs() < f64::EPSILON);
}

#[test]
fn a_word_said_again_is_not_asked_for_twice() {
    let index = names(&["apple pie", "pear tart", "plum cake"]);
    let once = search(&index.view(), "apple or pear");
    let often = search(&index.view(), "pear? Apple! or apple, or an apple pear");
    let scores =
        |hits: &[crate::text::TextHit]| hits.iter().map(|hit| (hit.number, hit.score)).collect::<Vec<_>>();
    assert_eq!(scores(&once.hits), scores(&often.hits));
}
