//! Amounts: read, written and shared out.

use proptest::prelude::*;

use super::Usd;

fn micros(text: &str) -> Option<u64> {
    Usd::parse(text).ok().map(Usd::micros)
}

#[test]
fn reads_plain_decimal_digits() {
    for (text, expected) in [
        ("0", 0),
        ("0.01", 10_000),
        ("1.5", 1_500_000),
        ("007.250000", 7_250_000),
        ("0.000001", 1),
        ("0.0000001", 1),
        ("0.0000010000", 1),
        ("1.9999999", 2_000_000),
        ("9007199254.740991", (1 << 53) - 1),
    ] {
        assert_eq!(micros(text), Some(expected), "{text}");
    }
}

#[test]
fn what_somebody_pays_is_never_rounded() {
    let exact = |text| Usd::parse_exact(text).ok().map(Usd::micros);
    for (text, expected) in [
        ("25", Some(25_000_000)),
        ("0.000001", Some(1)),
        ("007.250000", Some(7_250_000)),
        ("0.0000001", None),
        ("1.1234567", None),
        ("1.0000000", None),
        ("1.", None),
        ("-1.5", None),
        ("9007199254.740992", None),
    ] {
        assert_eq!(exact(text), expected, "{text}");
    }
}

/// Pitfall 26.
#[test]
fn what_is_no_amount_is_refused() {
    for text in [
        "",
        ".",
        ".5",
        "5.",
        "-1",
        "+1",
        "1e3",
        "NaN",
        "inf",
        "Infinity",
        " 1",
        "1 ",
        "1,5",
        "1_0",
        "0x1",
        "١",
        "9007199254.740992",
        "99999999999999999999999999",
        "1.2.3",
    ] {
        assert_eq!(micros(text), None, "{text}");
    }
    for number in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -0.01, 1e10, 1e300] {
        assert!(Usd::from_f64(number).is_err(), "{number}");
    }
    assert_eq!(Usd::from_f64(-0.0).unwrap(), Usd::ZERO);
}

/// What no store could read again is no amount.
#[test]
fn no_number_is_more_than_the_largest_amount() {
    for number in [Usd::MAX.to_f64(), 9_007_199_254.740_992, 9_007_199_254.740_993] {
        assert!(Usd::from_f64(number).is_err(), "{number}");
    }
    let largest = Usd::from_f64(9_007_199_254.740_99).unwrap();
    assert_eq!(largest.micros(), Usd::MAX.micros() - 1);
}

#[test]
fn a_share_is_rounded_down() {
    let of = |micros, points| Usd::from_micros(micros).unwrap().basis_points(points).micros();
    assert_eq!(of(10_000, 1_000), 1_000);
    assert_eq!(of(999, 1_000), 99);
    assert_eq!((of(1, 9_999), of(1, 10_000), of(7, 60_000)), (0, 1, 7));
    assert_eq!(of(Usd::MAX.micros(), 10_000), Usd::MAX.micros());
}

#[test]
fn sums_end_at_the_largest_amount() {
    let one = Usd::from_micros(1).unwrap();
    assert_eq!(Usd::MAX.checked_add(one), None);
    assert_eq!([Usd::MAX, one].into_iter().sum::<Usd>(), Usd::MAX);
    assert_eq!(
        (one.checked_sub(Usd::MAX), one.saturating_sub(Usd::MAX)),
        (None, Usd::ZERO)
    );
}

proptest! {
    #[test]
    fn text_comes_back(micros in 0..=Usd::MAX.micros()) {
        let amount = Usd::from_micros(micros).unwrap();
        prop_assert_eq!(Usd::parse(&amount.to_string()).unwrap(), amount);
        prop_assert_eq!(Usd::parse_exact(&amount.to_string()).unwrap(), amount);
    }

    #[test]
    fn numbers_come_back(micros in 0..=1_u64 << 51) {
        let amount = Usd::from_micros(micros).unwrap();
        prop_assert_eq!(Usd::from_f64(amount.to_f64()).unwrap(), amount);
    }

    #[test]
    fn a_share_and_the_rest_are_the_whole(micros in 0..=Usd::MAX.micros(), points in 0..=10_000_u16) {
        let amount = Usd::from_micros(micros).unwrap();
        let share = amount.basis_points(points);
        let expected = u128::from(micros) * u128::from(points) / 10_000;
        prop_assert_eq!(u128::from(share.micros()), expected);
        prop_assert_eq!(amount.checked_sub(share).and_then(|rest| rest.checked_add(share)), Some(amount));
    }
}
