//! Numbers as AIMarket signs them: as Python prints them.
//!
//! `1` and `1.0` are two numbers there, so a number keeps whether it was written as an integer.

use std::fmt;

/// Micro-dollars in a dollar.
const MICROS: f64 = 1_000_000.0;
/// 2^53: up to here a double holds every integer.
const EXACT_MAX: f64 = 9_007_199_254_740_992.0;

/// A JSON number: an integer that fits 64 bits (signed or not), or a finite double.
///
/// `Display` is Python's spelling, and that is JSON. Two numbers are equal when they are of the same kind and value.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Number(Kind);

#[derive(Debug, Clone, Copy, PartialEq)]
enum Kind {
    /// Within `i64::MIN..=u64::MAX`.
    Int(i128),
    /// Finite.
    Float(f64),
}

impl Number {
    /// Zero, the integer.
    pub const ZERO: Self = Self(Kind::Int(0));

    /// Reads the grammar of RFC 8259. It is an integer when it has neither a fraction nor an exponent.
    ///
    /// `None` for anything else, for an integer beyond 64 bits and for what no double holds.
    pub fn parse(lexeme: &str) -> Option<Self> {
        let digits = lexeme.strip_prefix('-').unwrap_or(lexeme);
        let (mantissa, exponent) = match digits.split_once(['e', 'E']) {
            Some((mantissa, exponent)) => (mantissa, Some(exponent)),
            None => (digits, None),
        };
        let (whole, fraction) = match mantissa.split_once('.') {
            Some((whole, fraction)) => (whole, Some(fraction)),
            None => (mantissa, None),
        };
        let is_whole = is_digits(whole) && (whole == "0" || !whole.starts_with('0'));
        let is_exponent = |text: &str| is_digits(text.strip_prefix(['+', '-']).unwrap_or(text));
        if !is_whole || !fraction.is_none_or(is_digits) || !exponent.is_none_or(is_exponent) {
            return None;
        }
        if fraction.is_none() && exponent.is_none() {
            return lexeme.parse().ok().and_then(Self::int);
        }
        lexeme.parse().ok().and_then(Self::float)
    }

    /// An integer; `None` beyond 64 bits.
    fn int(number: i128) -> Option<Self> {
        let fits = number >= i128::from(i64::MIN) && number <= i128::from(u64::MAX);
        fits.then_some(Self(Kind::Int(number)))
    }

    /// A double; `None` when it is not finite.
    pub fn float(number: f64) -> Option<Self> {
        number.is_finite().then_some(Self(Kind::Float(number)))
    }

    /// So many micro-dollars as the number of dollars on AIMarket's wire: a float also when it is whole (`0.0`, `5.0`,
    /// `1e-05`). Exact up to two billion dollars: [`Self::micros`] gives back what was put in.
    #[expect(
        clippy::cast_precision_loss,
        reason = "amounts of money are far below 2^53 millionths"
    )]
    pub fn usd(micros: u64) -> Self {
        Self(Kind::Float(micros as f64 / MICROS))
    }

    /// The micro-dollars that so many dollars are, to the nearest; `None` below zero or beyond 2^53.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "the bounds are checked before"
    )]
    pub fn micros(self) -> Option<u64> {
        let micros = (self.as_f64() * MICROS).round();
        (0.0..=EXACT_MAX).contains(&micros).then_some(micros as u64)
    }

    /// Whether it is a float, also one without a fraction.
    pub fn is_float(self) -> bool {
        matches!(self.0, Kind::Float(_))
    }

    /// The nearest double.
    #[expect(
        clippy::cast_precision_loss,
        reason = "the nearest double is what is asked for"
    )]
    pub fn as_f64(self) -> f64 {
        match self.0 {
            Kind::Int(number) => number as f64,
            Kind::Float(number) => number,
        }
    }

    /// The integer, when it is written as one and not below zero.
    pub fn as_u64(self) -> Option<u64> {
        match self.0 {
            Kind::Int(number) => u64::try_from(number).ok(),
            Kind::Float(_) => None,
        }
    }

    /// The integer, when it is written as one that fits.
    pub fn as_i64(self) -> Option<i64> {
        match self.0 {
            Kind::Int(number) => i64::try_from(number).ok(),
            Kind::Float(_) => None,
        }
    }

    /// The same whole number of the other kind: `0.0` for `0`, `0` for `0.0`.
    #[expect(
        clippy::cast_possible_truncation,
        reason = "the double is an integer below 2^53"
    )]
    pub(super) fn respelled(self) -> Option<Self> {
        match self.0 {
            Kind::Int(_) => Self::float(self.as_f64()),
            Kind::Float(number) if number.fract() == 0.0 && number.abs() <= EXACT_MAX => {
                Some(Self(Kind::Int(number as i128)))
            }
            Kind::Float(_) => None,
        }
    }
}

fn is_digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

impl fmt::Display for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Kind::Int(number) => write!(f, "{number}"),
            Kind::Float(number) => f.write_str(&python_repr(number)),
        }
    }
}

/// Python's `repr` of a float: the shortest digits that read back as the same double and, among those, the nearest to it
/// (a tie goes to the even digit); with an exponent of a sign and at least two digits when it is below -4 or at least 16.
fn python_repr(number: f64) -> String {
    let digits = shortest(number);
    let (mantissa, exponent) = digits.split_once('e').unwrap_or((&digits, "0"));
    let exponent: i32 = exponent.parse().unwrap_or_default();
    if !(-4..16).contains(&exponent) {
        return format!("{mantissa}e{exponent:+03}");
    }
    let (sign, mantissa) = match mantissa.strip_prefix('-') {
        Some(mantissa) => ("-", mantissa),
        None => ("", mantissa),
    };
    format!("{sign}{}", positional(&mantissa.replace('.', ""), exponent))
}

/// `d.ddde±x`. The standard library finds how many digits it takes, and rounds a tie up; rounding to that many digits
/// goes to even, as Python does, and nearly always reads back as well.
fn shortest(number: f64) -> String {
    let shortest = format!("{number:e}");
    let mantissa = shortest.split('e').next().unwrap_or_default();
    let digits = mantissa.bytes().filter(u8::is_ascii_digit).count();
    let nearest = format!("{number:.*e}", digits.saturating_sub(1));
    if nearest.parse() == Ok(number) {
        nearest
    } else {
        shortest
    }
}

/// These digits with the point behind the digit of 10^0, and at least one digit on each side of it.
fn positional(digits: &str, exponent: i32) -> String {
    let Ok(exponent) = usize::try_from(exponent) else {
        let zeros = usize::try_from(-exponent - 1).unwrap_or_default();
        return format!("0.{}{digits}", "0".repeat(zeros));
    };
    match digits.split_at_checked(exponent + 1) {
        Some((whole, fraction)) if !fraction.is_empty() => format!("{whole}.{fraction}"),
        _ => format!("{digits:0<width$}.0", width = exponent + 1),
    }
}

impl From<u64> for Number {
    fn from(number: u64) -> Self {
        Self(Kind::Int(number.into()))
    }
}

impl From<u32> for Number {
    fn from(number: u32) -> Self {
        Self(Kind::Int(number.into()))
    }
}

impl From<i64> for Number {
    fn from(number: i64) -> Self {
        Self(Kind::Int(number.into()))
    }
}

/// `serde_json` writes a double in another spelling than Python, of the same value and kind.
impl From<Number> for serde_json::Number {
    fn from(number: Number) -> Self {
        let float = || Self::from_f64(number.as_f64()).unwrap_or_else(|| Self::from(0));
        match (number.as_u64(), number.as_i64()) {
            (Some(number), _) => Self::from(number),
            (None, Some(number)) => Self::from(number),
            (None, None) => float(),
        }
    }
}

impl From<&serde_json::Number> for Number {
    fn from(number: &serde_json::Number) -> Self {
        let float = || Self::float(number.as_f64().unwrap_or_default()).unwrap_or(Self::ZERO);
        match (number.as_u64(), number.as_i64()) {
            (Some(number), _) => Self::from(number),
            (None, Some(number)) => Self::from(number),
            (None, None) => float(),
        }
    }
}

#[cfg(test)]
mod tests;
