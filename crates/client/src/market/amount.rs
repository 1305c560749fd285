//! US dollars, in whole millionths.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Millionths in a dollar.
const MICROS: u64 = 1_000_000;
/// Digits after the point.
const DIGITS: usize = 6;
/// The largest amount in millionths, a billion dollars: up to it the doubles are closer to each other than a millionth, with
/// room for a reader that takes the neighbour of the right one.
const MICROS_MAX: u64 = 1_000_000_000 * MICROS;

/// An amount of US dollars: whole millionths, never below zero. It is written as plain decimal digits, and stands on
/// AIMarket's wire as the JSON number that is nearest, from which the same amount is read again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Amount(u64);

impl Amount {
    /// Nothing.
    pub const ZERO: Self = Self(0);

    /// So many millionths; `None` beyond a billion dollars.
    pub const fn from_micros(micros: u64) -> Option<Self> {
        if micros <= MICROS_MAX {
            Some(Self(micros))
        } else {
            None
        }
    }

    /// In millionths.
    pub const fn micros(self) -> u64 {
        self.0
    }

    /// The number on the wire.
    #[expect(
        clippy::cast_precision_loss,
        reason = "it is below 2^53, which a double holds exactly"
    )]
    pub fn to_f64(self) -> f64 {
        self.0 as f64 / MICROS as f64
    }

    /// What a hub says; what is finer than a millionth is rounded to the nearest. `None` for what is no amount.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_precision_loss,
        clippy::cast_sign_loss,
        reason = "the bounds are checked before"
    )]
    pub fn from_f64(dollars: f64) -> Option<Self> {
        let micros = (dollars * MICROS as f64).round();
        let is_amount = micros.is_finite() && micros >= 0.0 && micros <= MICROS_MAX as f64;
        is_amount.then_some(Self(micros as u64))
    }
}

/// Why a text is no amount.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("an amount is plain decimal digits with at most six after the point, such as 0.25")]
pub struct NoAmount;

impl FromStr for Amount {
    type Err = NoAmount;

    fn from_str(text: &str) -> Result<Self, NoAmount> {
        let (whole, fraction) = text.split_once('.').unwrap_or((text, "0"));
        let is_number = |part: &str, digits_max: usize| {
            (1..=digits_max).contains(&part.len()) && part.bytes().all(|byte| byte.is_ascii_digit())
        };
        if !is_number(whole, 10) || !is_number(fraction, DIGITS) {
            return Err(NoAmount);
        }
        let number = |text: &str| text.parse::<u64>().map_err(|_error| NoAmount);
        let micros = number(whole)? * MICROS + number(&format!("{fraction:0<DIGITS$}"))?;
        Self::from_micros(micros).ok_or(NoAmount)
    }
}

impl fmt::Display for Amount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let fraction = format!("{:06}", self.0 % MICROS);
        match fraction.trim_end_matches('0') {
            "" => write!(f, "{}", self.0 / MICROS),
            fraction => write!(f, "{}.{fraction}", self.0 / MICROS),
        }
    }
}

impl Serialize for Amount {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_f64(self.to_f64())
    }
}

impl<'de> Deserialize<'de> for Amount {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let dollars = f64::deserialize(deserializer)?;
        Self::from_f64(dollars).ok_or_else(|| serde::de::Error::custom("not an amount of dollars"))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn an_amount_is_plain_digits() {
        for (text, micros) in [
            ("0", 0),
            ("0.25", 250_000),
            ("12", 12_000_000),
            ("0.000001", 1),
            ("999999999.999999", MICROS_MAX - 1),
            ("1000000000", MICROS_MAX),
        ] {
            assert_eq!(text.parse::<Amount>().unwrap().micros(), micros, "{text}");
            assert_eq!(text.parse::<Amount>().unwrap().to_string(), text);
        }
        assert_eq!("1.50".parse::<Amount>().unwrap().to_string(), "1.5");
        for text in [
            "",
            ".",
            "1.",
            ".5",
            "-1",
            "+1",
            "1e3",
            "NaN",
            "inf",
            "0.0000001",
            "1000000000.000001",
            "1,5",
            " 1",
        ] {
            assert_eq!(text.parse::<Amount>(), Err(NoAmount), "{text}");
        }
    }

    #[test]
    fn pitfall_26_what_is_no_amount_is_not_read_from_a_hub() {
        for dollars in [f64::NAN, f64::INFINITY, -0.01, 1e9 + 1.0] {
            assert_eq!(Amount::from_f64(dollars), None, "{dollars}");
        }
        assert_eq!(Amount::from_f64(0.1 + 0.2), Some(Amount(300_000)));
    }

    proptest! {
        #[test]
        fn every_amount_comes_back_from_the_wire(micros in 0..=MICROS_MAX) {
            let amount = Amount(micros);
            let wire = serde_json::to_string(&amount).unwrap();
            prop_assert_eq!(serde_json::from_str::<Amount>(&wire).unwrap(), amount);
            prop_assert_eq!(amount.to_string().parse::<Amount>().unwrap(), amount);
        }
    }
}
