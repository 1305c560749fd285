//! Python's spelling of numbers, the table of it and its edges.

use super::*;

#[test]
fn floats_are_spelled_as_python_spells_them() {
    for (lexeme, python) in [
        ("0.0", "0.0"),
        ("-0.0", "-0.0"),
        ("5.0", "5.0"),
        ("0.0001", "0.0001"),
        ("0.00001", "1e-05"),
        ("1.234E-5", "1.234e-05"),
        ("1e-6", "1e-06"),
        ("12.340", "12.34"),
        ("1e3", "1000.0"),
        ("1e15", "1000000000000000.0"),
        ("9999999999999998.0", "9999999999999998.0"),
        ("1e16", "1e+16"),
        ("1.5e300", "1.5e+300"),
        ("5e-324", "5e-324"),
        ("-123456.789", "-123456.789"),
        // Ties: both neighbours read back, and the even one is written.
        ("1059438285926254.25", "1059438285926254.2"),
        ("26363981746409.3125", "26363981746409.312"),
    ] {
        let number = Number::parse(lexeme).unwrap();
        assert!(number.is_float());
        assert_eq!(number.to_string(), python, "{lexeme}");
    }
}

#[test]
fn integers_stay_integers() {
    for (lexeme, python) in [
        ("0", "0"),
        ("-0", "0"),
        ("8100", "8100"),
        ("-9223372036854775808", "-9223372036854775808"),
        ("18446744073709551615", "18446744073709551615"),
    ] {
        let number = Number::parse(lexeme).unwrap();
        assert!(!number.is_float());
        assert_eq!(number.to_string(), python);
    }
}

#[test]
fn what_is_no_json_number_is_refused() {
    for lexeme in [
        "",
        "-",
        "+1",
        "01",
        "-01",
        ".5",
        "5.",
        "1e",
        "1e+",
        "1.e3",
        "0x10",
        "1_000",
        "NaN",
        "Infinity",
        "inf",
        "1e400",
        "-1e400",
        "18446744073709551616",
        "-9223372036854775809",
        " 1",
        "1 ",
        "1,5",
        "1e5.0",
        "--1",
        "1ee5",
    ] {
        assert_eq!(Number::parse(lexeme), None, "{lexeme}");
    }
}

#[test]
fn micro_dollars_come_back() {
    for (micros, text) in [
        (0, "0.0"),
        (1, "1e-06"),
        (10, "1e-05"),
        (100, "0.0001"),
        (400_000, "0.4"),
        (5_000_000, "5.0"),
        (1_234_567, "1.234567"),
        (8_000_000_000_000_001, "8000000000.000001"),
    ] {
        assert_eq!(Number::usd(micros).to_string(), text);
        assert_eq!(Number::usd(micros).micros(), Some(micros));
    }
    assert_eq!(Number::from(3_u32).micros(), Some(3_000_000));
    assert_eq!(Number::from(-1_i64).micros(), None);
    assert_eq!(Number::float(1e300).unwrap().micros(), None);
    assert_eq!(Number::float(0.000_000_4).unwrap().micros(), Some(0));
}

#[test]
fn a_whole_number_has_two_spellings() {
    let other = |lexeme: &str| {
        Number::parse(lexeme)
            .unwrap()
            .respelled()
            .map(|other| other.to_string())
    };
    assert_eq!(other("0").as_deref(), Some("0.0"));
    assert_eq!(other("0.0").as_deref(), Some("0"));
    assert_eq!(other("5.0").as_deref(), Some("5"));
    assert_eq!(other("0.4"), None);
    assert_eq!(other("1e300"), None);
}
