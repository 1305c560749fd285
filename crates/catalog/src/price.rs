//! Prices: exact, and ordered.

use std::fmt;

use aip_protocol::error::{ErrorCode, Refusal};

use crate::limits::{PRICE_FRACTION_DIGITS_MAX, PRICE_WHOLE_DIGITS_MAX};

/// A price in hundred-millionths of its currency's unit. Never a float: two prices are equal when they are the same number,
/// however they were written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Price(u64);

impl Price {
    /// Reads plain decimal digits with an optional fraction (spec §9): at most 11 digits before the point and 8 behind it.
    ///
    /// # Errors
    /// `parameter_invalid` where the text is no such number.
    pub fn parse(text: &str) -> Result<Self, Refusal> {
        let (whole, fraction) = text.split_once('.').unwrap_or((text, "0"));
        let is_number = |part: &str, digits_max: usize| {
            !part.is_empty() && part.len() <= digits_max && part.bytes().all(|byte| byte.is_ascii_digit())
        };
        if !is_number(whole, PRICE_WHOLE_DIGITS_MAX) || !is_number(fraction, PRICE_FRACTION_DIGITS_MAX) {
            return Err(Refusal::new(
                ErrorCode::ParameterInvalid,
                "A price is plain decimal digits, at most 11 before the point and 8 behind it.",
            ));
        }
        let digits = format!("{whole}{fraction:0<PRICE_FRACTION_DIGITS_MAX$}");
        let units = digits
            .bytes()
            .fold(0_u64, |units, byte| units * 10 + u64::from(byte - b'0'));
        Ok(Self(units))
    }

    /// In hundred-millionths, as the index keeps it.
    pub const fn units(self) -> u64 {
        self.0
    }

    /// The price of so many hundred-millionths.
    pub const fn from_units(units: u64) -> Self {
        Self(units)
    }
}

impl fmt::Display for Price {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const UNIT: u64 = 10_u64.pow(8);
        let fraction = format!("{:08}", self.0 % UNIT);
        match fraction.trim_end_matches('0') {
            "" => write!(f, "{}", self.0 / UNIT),
            fraction => write!(f, "{}.{fraction}", self.0 / UNIT),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_price_is_exact() {
        for (text, units, shown) in [
            ("79000", 7_900_000_000_000, "79000"),
            ("12.50", 1_250_000_000, "12.5"),
            ("0", 0, "0"),
            ("0.00000001", 1, "0.00000001"),
            (
                "99999999999.99999999",
                9_999_999_999_999_999_999,
                "99999999999.99999999",
            ),
        ] {
            let price = Price::parse(text).unwrap();
            assert_eq!(
                (price.units(), price.to_string().as_str()),
                (units, shown),
                "{text}"
            );
            assert_eq!(Price::from_units(units), price);
        }
    }

    #[test]
    fn what_is_no_price_is_refused() {
        for text in [
            "",
            ".",
            "1.",
            ".5",
            "-1",
            "+1",
            "1e3",
            "NaN",
            "1,5",
            "100000000000",
            "0.000000001",
            "١",
        ] {
            assert!(Price::parse(text).is_err(), "{text}");
        }
    }
}
