//! Prices in the ways of many countries; none is read in two ways.

use super::super::price::{Currency, read, units};

fn amount(text: &str) -> Result<String, String> {
    read(text, false)
        .map(|price| price.amount)
        .map_err(|(what, todo)| format!("{what}; {todo}"))
}

#[test]
fn numbers_are_exact_decimal_text() {
    for (text, expected) in [
        ("79000", "79000"),
        ("79000.50", "79000.50"),
        ("0.1", "0.1"),
        ("5.0", "5.0"),
        (".50", "0.50"),
        ("5.", "5"),
        ("007", "7"),
        ("0.30000000000000000", "0.3"),
        ("1e3", "1000"),
        ("1.5E+2", "150"),
        ("1e-05", "0.00001"),
        ("1.234e-5", "0.00001234"),
        ("123456e-4", "12.3456"),
        ("0e9", "0"),
        ("12,50", "12.50"),
        ("0,125", "0.125"),
        ("1,299.00", "1299.00"),
        ("1.299,00", "1299.00"),
        ("1 299,00", "1299.00"),
        ("1\u{202f}299\u{a0}000", "1299000"),
        ("1'299.95", "1299.95"),
        ("1,299,000", "1299000"),
        ("1.299.000", "1299000"),
        ("12.-", "12"),
        ("99999999999.99999999", "99999999999.99999999"),
    ] {
        assert_eq!(amount(text), Ok(expected.to_owned()), "{text}");
    }
    // A float would have made 0.1 + 0.2 of it, or lost its end.
    assert_eq!(amount("12345678901.12345678").unwrap(), "12345678901.12345678");
}

#[test]
fn what_may_be_two_numbers_is_refused() {
    let said = amount("1,299").unwrap_err();
    assert!(
        said.contains("write 1299 or 1.299") && said.contains("--decimal-comma"),
        "{said}"
    );
    assert_eq!(read("1.299,5", true).unwrap().amount, "1299.5");
    assert_eq!(read("1,299", true).unwrap().amount, "1.299");
    for text in [
        "",
        "abc",
        "-5",
        "−5",
        "5.00-",
        "1-2",
        "10 - 20",
        "1..2",
        "1,2,3",
        "12.34.56",
        "1.2e",
        "1e999",
        "1e-99",
        "1 2",
        "12 34",
        "1,299.0,0",
        "1.299 000,1",
        "0x10",
        "NaN",
        "∞",
        "١٢",
        "123456789012",
        "0.123456789",
    ] {
        assert!(amount(text).is_err(), "{text}: {:?}", amount(text));
    }
    assert!(amount(&"9".repeat(1 << 20)).unwrap_err().len() < 200);
}

#[test]
fn a_currency_stands_on_either_side() {
    for (text, code) in [
        ("12.50 EUR", "EUR"),
        ("usd 12.50", "USD"),
        ("€12,50", "EUR"),
        ("79 000 ₽", "RUB"),
        ("79 000 руб.", "RUB"),
        ("US$ 5", "USD"),
        ("$5 CAD", "CAD"),
        ("5,- kč", "CZK"),
    ] {
        assert_eq!(
            read(text, false).unwrap().currency,
            Currency::Code(code.to_owned()),
            "{text}"
        );
    }
    assert_eq!(
        read("$5", false).unwrap().currency,
        Currency::Ambiguous("$".to_owned())
    );
    assert_eq!(read("5", false).unwrap().currency, Currency::Unsaid);
    // A point behind a word is its own, and no fraction begins with it.
    let [kroner, roubles] = ["kr.500", "руб.1500"].map(|text| read(text, false).unwrap());
    assert_eq!((kroner.amount.as_str(), roubles.amount.as_str()), ("500", "1500"));
    assert_eq!(kroner.currency, Currency::Ambiguous("kr.".to_owned()));
    assert_eq!(read("$.50", false).unwrap().amount, "0.50");
    for text in ["5 apples", "EUR 5 USD", "5 dollars each"] {
        assert!(read(text, false).is_err(), "{text}");
    }
}

#[test]
fn prices_are_compared_as_numbers() {
    assert!(units("9.5") < units("10") && units("1.50") == units("1.5") && units("0.00000001") == 1);
}
