//! Tables.

use super::*;

#[test]
fn separators_quotes_and_marks() {
    let table = "id,Product Name,Price,In stock,Brand\n1,\"Tea, green \"\"Sencha\"\"\",3.50,yes,Acme\n";
    for (text, what) in [
        (table.to_owned(), "commas"),
        (format!("\u{feff}{table}"), "a byte order mark"),
        (table.replace('\n', "\r\n"), "line ends of Windows"),
        (
            table
                .replace(", green", "; green")
                .replace(',', ";")
                .replace("; green", ", green"),
            "semicolons",
        ),
        (
            table
                .replace(", green", "!")
                .replace(',', "\t")
                .replace('!', ", green"),
            "tabs",
        ),
        (format!("{table}\n,,,,\n"), "empty lines"),
    ] {
        let [tea] = good(&text, Format::Csv).try_into().unwrap();
        assert_eq!(
            (tea.listing_id.as_str(), tea.name.as_str()),
            ("1", "Tea, green \"Sencha\""),
            "{what}"
        );
        assert_eq!(
            (cost(&tea), tea.available, attribute(&tea, "brand")),
            ("3.50 EUR".to_owned(), Some(true), "Acme")
        );
    }
}

#[test]
fn headers_of_several_languages_and_shops() {
    let text = "Артикул;Наименование;Цена;Валюта;Наличие;Цвет корпуса\nА-7;Чайник;1 299,00;руб.;нет;белый\n";
    let [kettle] = good(text, Format::Csv).try_into().unwrap();
    assert_eq!(
        (kettle.listing_id.as_str(), kettle.name.as_str()),
        ("А-7", "Чайник")
    );
    assert_eq!(
        (cost(&kettle), kettle.available),
        ("1299.00 RUB".to_owned(), Some(false))
    );
    assert_eq!(attribute(&kettle, "цвет_корпуса"), "белый");
    let text = "Variant SKU,Title,Body (HTML),Vendor,Variant Price,Variant Barcode,Tags,Image Src\n\
                S1,Pot,<p>Round</p>,Acme,12,4006381333931,\"a, b\",https://i.example/x.png\n";
    let [pot] = good(text, Format::Csv).try_into().unwrap();
    assert_eq!(
        (pot.listing_id.as_str(), pot.tags.len(), attribute(&pot, "gtin")),
        ("S1", 2, "4006381333931")
    );
    assert!(!pot.attributes.iter().any(|(name, _)| name.starts_with("image")));
}

#[test]
fn numbers_stay_as_they_are_written() {
    let [tea] = good("name,gtin,size\nTea,0012345678905,007\n", Format::Csv)
        .try_into()
        .unwrap();
    assert_eq!(
        (tea.listing_id.as_str(), attribute(&tea, "size")),
        ("0012345678905", "007")
    );
}

#[test]
fn the_decimal_comma_is_said_where_it_is_not_seen() {
    let options = Options {
        decimal_comma: true,
        ..euros()
    };
    let rows = rows("name;price\nTea;1,299\nPot;1.299\n", Format::Csv, &options);
    let costs: Vec<String> = rows.iter().map(|row| cost(row.offer.as_ref().unwrap())).collect();
    assert_eq!(costs, ["1.299 EUR", "1299 EUR"]);
}

#[test]
fn a_point_that_may_group_thousands_is_told() {
    let text = "name;price\nTea;1.299 EUR\n";
    let said = flaw(text, Format::Csv);
    assert!(
        said.contains("may group thousands") && said.contains("--decimal-point"),
        "{said}"
    );
    let options = Options {
        decimal_point: true,
        ..euros()
    };
    let rows = rows(text, Format::Csv, &options);
    assert_eq!(cost(rows[0].offer.as_ref().unwrap()), "1.299 EUR");
    let offers = good("name;price\nPot;0.125\nCup;1299.000\nKey;1.2990\n", Format::Csv);
    assert_eq!(offers.len(), 3);
}

#[test]
fn currencies_must_be_one_and_known() {
    assert!(flaw("name,price\nTea,3\n", Format::Csv).contains("--currency"));
    assert!(flaw("name,price\nTea,$3\n", Format::Csv).contains("several currencies"));
    assert!(flaw("name,price,currency\nTea,3 EUR,USD\n", Format::Csv).contains("in EUR and in USD"));
    assert!(flaw("name,price,currency\nTea,3,bananas\n", Format::Csv).contains("not a currency"));
}

#[test]
fn two_prices_that_differ_are_told() {
    let said = flaw("name,price,unit price\nTea,3.50 EUR,35.00 EUR\n", Format::Csv);
    assert!(said.contains("price: it is 3.50 and 35.00"), "{said}");
    let same = good("name,price,unit price\nTea,3.50 CHF,3.5\nPot,,12\n", Format::Csv);
    assert_eq!([cost(&same[0]), cost(&same[1])], ["3.50 CHF", "12 EUR"]);
}

#[test]
fn each_row_says_what_is_wrong_with_it() {
    let text = b"id,name,price\n1,Tea,free\n2,Pot\n3,Cup\xff,1 EUR\n4,,1 EUR\n5,Spoon,1 EUR\n";
    let import = read(text, Some(Format::Csv), &Options::default()).unwrap();
    let said: Vec<String> = import
        .rows
        .iter()
        .map(|row| row.flaws.first().map(ToString::to_string).unwrap_or_default())
        .collect();
    assert!(said[0].contains("price: `free` holds no number"), "{said:?}");
    assert!(said[1].contains("it has 2 fields, the header 3"), "{said:?}");
    assert!(said[2].contains("name: it is not UTF-8"), "{said:?}");
    assert!(said[3].contains("name: it is missing"), "{said:?}");
    assert!(said[4].is_empty());
    let lines: Vec<Option<u64>> = import.rows.iter().map(|row| row.line).collect();
    assert_eq!(lines, [2, 3, 4, 5, 6].map(Some));
    assert_eq!(
        (import.rows[3].number, import.rows[3].listing_id.as_deref()),
        (4, Some("4"))
    );
}

#[test]
fn an_open_quote_is_found_where_it_opens() {
    let rows = rows("id,name\n1,Tea\n2,\"Pot\n3,Cup\n4,Spoon\n", Format::Csv, &euros());
    assert!(rows[0].offer.is_some());
    assert_eq!((rows.len(), rows[1].line), (2, Some(3)));
    assert!(
        rows[1].flaws[0].what.contains("a quote is opened"),
        "{}",
        rows[1].flaws[0]
    );
    let inch = good("id,name\n1,5\" pipe\n2,\"quoted \"\" quote\"\n", Format::Csv);
    assert_eq!(
        (inch[0].name.as_str(), inch[1].name.as_str()),
        ("5\" pipe", "quoted \" quote")
    );
}

#[test]
fn a_header_is_needed() {
    for text in [
        "",
        "1,Tea,3\n2,Pot,4\n",
        "price\n3\n",
        // The rows would be taken into the name of the last column.
        "name,\"price\nTea,3\nPot,4\n",
    ] {
        let error = read(text.as_bytes(), Some(Format::Csv), &euros()).unwrap_err();
        assert!(matches!(error, ImportError::Malformed { .. }), "{text}: {error}");
    }
}

#[test]
fn a_sale_counts_unless_it_ends() {
    let text = "name,price,sale price\nTea,5 EUR,4 EUR\n";
    assert_eq!(cost(&good(text, Format::Csv)[0]), "4 EUR");
    let text = "name,price,sale price,sale_price_effective_date\nTea,5 EUR,4 EUR,2026-01-01/2026-02-01\n";
    assert_eq!(cost(&good(text, Format::Csv)[0]), "5 EUR");
}
