//! Money: whole micro-dollars.

use std::fmt;
use std::iter::Sum;

use aip_protocol::error::{ErrorCode, Refusal};

/// Micro-dollars in a dollar.
const MICROS: u64 = 1_000_000;
/// Digits after the point that are kept.
const DIGITS: usize = 6;

/// An amount of US dollars in millionths, never negative and never a float.
///
/// The largest amount is 2^53 - 1 millionths (about nine billion dollars), which every JSON reader holds exactly.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Usd(u64);

impl Usd {
    /// Nothing.
    pub const ZERO: Self = Self(0);
    /// The largest amount.
    pub const MAX: Self = Self((1 << 53) - 1);

    /// So many millionths; `None` beyond [`Self::MAX`].
    pub const fn from_micros(micros: u64) -> Option<Self> {
        if micros <= Self::MAX.0 {
            Some(Self(micros))
        } else {
            None
        }
    }

    /// In millionths.
    pub const fn micros(self) -> u64 {
        self.0
    }

    /// Reads plain decimal digits with an optional fraction. What is finer than a millionth is rounded up: nobody sells
    /// below the price that was named.
    ///
    /// # Errors
    /// `parameter_invalid` for anything else: a sign, an exponent, `NaN`, more than [`Self::MAX`].
    pub fn parse(text: &str) -> Result<Self, Refusal> {
        let refusal = || {
            Refusal::new(
                ErrorCode::ParameterInvalid,
                "An amount is plain decimal digits, such as 0.25.",
            )
        };
        let (whole, fraction) = text.split_once('.').unwrap_or((text, "0"));
        let is_number = |part: &str| {
            !part.is_empty() && part.len() <= 40 && part.bytes().all(|byte| byte.is_ascii_digit())
        };
        if !is_number(whole) || !is_number(fraction) {
            return Err(refusal());
        }
        let (kept, finer) = fraction.split_at_checked(DIGITS).unwrap_or((fraction, ""));
        let kept: u64 = format!("{kept:0<DIGITS$}").parse().map_err(|_error| refusal())?;
        let up = u64::from(finer.bytes().any(|byte| byte != b'0'));
        let whole: u64 = whole.parse().map_err(|_error| refusal())?;
        let micros = whole
            .checked_mul(MICROS)
            .and_then(|whole| whole.checked_add(kept + up));
        micros.and_then(Self::from_micros).ok_or_else(refusal)
    }

    /// Reads as [`Self::parse`] does, and rounds nothing: what somebody puts in, pays or allows is said to the millionth.
    ///
    /// # Errors
    /// `parameter_invalid` for what [`Self::parse`] refuses, and for more than six digits after the point.
    pub fn parse_exact(text: &str) -> Result<Self, Refusal> {
        let fraction = text.split_once('.').map_or("", |(_whole, fraction)| fraction);
        if fraction.len() > DIGITS {
            let detail = "An amount has at most six digits after the point.";
            return Err(Refusal::new(ErrorCode::ParameterInvalid, detail));
        }
        Self::parse(text)
    }

    /// The sum; `None` beyond [`Self::MAX`].
    pub const fn checked_add(self, other: Self) -> Option<Self> {
        Self::from_micros(self.0 + other.0)
    }

    /// The difference; `None` below zero.
    pub const fn checked_sub(self, other: Self) -> Option<Self> {
        match self.0.checked_sub(other.0) {
            Some(micros) => Some(Self(micros)),
            None => None,
        }
    }

    /// The difference, at least nothing.
    #[must_use]
    pub const fn saturating_sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }

    /// So many hundredths of a percent of it, rounded down.
    #[must_use]
    pub const fn basis_points(self, points: u16) -> Self {
        // At most 2^53 times 10,000 in two steps, so that nothing overflows.
        let points = if points > 10_000 { 10_000 } else { points as u64 };
        Self(self.0 / 10_000 * points + self.0 % 10_000 * points / 10_000)
    }

    /// As the JSON number that AIMarket has on its wire. Up to 2^51 millionths (more than two billion dollars) [`Self::from_f64`]
    /// gives back exactly what was put in.
    #[expect(
        clippy::cast_precision_loss,
        reason = "it is below 2^53, which a double holds exactly"
    )]
    pub fn to_f64(self) -> f64 {
        self.0 as f64 / MICROS as f64
    }

    /// Reads the JSON number of AIMarket's wire; what is finer than a millionth is rounded to the nearest.
    ///
    /// # Errors
    /// `parameter_invalid` if it is not finite, below zero or beyond [`Self::MAX`].
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_precision_loss,
        clippy::cast_sign_loss,
        reason = "the bounds are checked before"
    )]
    pub fn from_f64(dollars: f64) -> Result<Self, Refusal> {
        let micros = (dollars * MICROS as f64).round();
        // What is too large for a whole number becomes the largest one, which is no amount. The bound itself is no guard here:
        // as a number of dollars it is rounded up, to one millionth more than there may be.
        let amount = if micros.is_finite() && micros >= 0.0 {
            Self::from_micros(micros as u64)
        } else {
            None
        };
        amount.ok_or_else(|| {
            Refusal::new(
                ErrorCode::ParameterInvalid,
                "An amount is a number from 0 up to nine billion dollars.",
            )
        })
    }
}

/// Plain decimal digits, with as many of the six after the point as it takes.
impl fmt::Display for Usd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let fraction = format!("{:06}", self.0 % MICROS);
        match fraction.trim_end_matches('0') {
            "" => write!(f, "{}", self.0 / MICROS),
            fraction => write!(f, "{}.{fraction}", self.0 / MICROS),
        }
    }
}

/// Saturates at [`Usd::MAX`].
impl Sum for Usd {
    fn sum<I: Iterator<Item = Self>>(amounts: I) -> Self {
        let micros = amounts.fold(0_u64, |sum, amount| sum.saturating_add(amount.0));
        Self(micros.min(Self::MAX.0))
    }
}

#[cfg(test)]
mod tests;
