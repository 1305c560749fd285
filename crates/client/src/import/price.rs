//! Prices as people and programs write them, read into plain decimal text. Nothing here is a float.

use crate::limits::{PRICE_FRACTION_DIGITS_MAX, PRICE_TEXT_BYTES_MAX, PRICE_WHOLE_DIGITS_MAX};

/// A price that was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Price {
    /// Plain decimal digits.
    pub(super) amount: String,
    /// What stands beside it.
    pub(super) currency: Currency,
}

/// What a price says of its currency.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Currency {
    /// Nothing.
    Unsaid,
    /// Three upper-case letters.
    Code(String),
    /// A sign that several currencies use.
    Ambiguous(String),
}

/// Why a text is no price: what is wrong, and what to do.
pub(super) type Wrong = (String, String);

/// Reads a number with or without a currency, in the ways of many countries: `12.50`, `1e-05`, `1 299,00 €`, `1,299.00`,
/// `USD 15`. One that can be read in two ways is refused.
pub(super) fn read(text: &str, decimal_comma: bool) -> Result<Price, Wrong> {
    let text = text.trim();
    if text.len() > PRICE_TEXT_BYTES_MAX {
        let start: String = text.chars().take(16).collect();
        return Err(wrong(format!("`{start}…` is too long"), EXAMPLE));
    }
    let is_digit = |c: char| c.is_ascii_digit();
    let (Some(first), Some(last)) = (text.find(is_digit), text.rfind(is_digit)) else {
        return Err(wrong(format!("`{text}` holds no number"), EXAMPLE));
    };
    // A number may begin with its point: `.50`; behind a letter, as in `kr.500`, the point ends a short form.
    let before_point = text.get(..first).and_then(|before| before.strip_suffix('.'));
    let first = before_point
        .filter(|before| !before.ends_with(char::is_alphabetic))
        .map_or(first, str::len);
    let (before, rest) = text.split_at_checked(first).unwrap_or((text, ""));
    let (number, after) = rest.split_at_checked(last + 1 - first).unwrap_or((rest, ""));
    // `12.50-` is how ledgers write it; `12,-` and `12.-` are whole amounts.
    if before.contains(['-', '−']) || after.starts_with(['-', '−']) {
        return Err(wrong(format!("`{text}` is less than nothing"), EXAMPLE));
    }
    let amount = match scientific(number) {
        Some(amount) => amount,
        None => grouped(number, decimal_comma)
            .map_err(|todo| wrong(format!("`{number}` is not one clear number"), &todo))?,
    };
    let amount = bounded(&amount).ok_or_else(|| wrong(format!("`{number}` has too many digits"), BOUNDS))?;
    Ok(Price {
        amount,
        currency: currency(before, after)?,
    })
}

/// Whether the point may as well group thousands: `1.299` is 1299 in many countries.
pub(super) fn may_be_thousands(text: &str) -> bool {
    let number = text.trim_matches(|c: char| !c.is_ascii_digit());
    number.split_once('.').is_some_and(|(whole, fraction)| {
        let is_digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
        let is_group = (1..=3).contains(&whole.len()) && fraction.len() == 3;
        is_group && !whole.starts_with('0') && is_digits(whole) && is_digits(fraction)
    })
}

/// The amount in hundred-millionths, to compare what [`read`] gave.
pub(super) fn units(amount: &str) -> u128 {
    let (whole, fraction) = amount.split_once('.').unwrap_or((amount, ""));
    let digits = format!("{whole}{fraction:0<PRICE_FRACTION_DIGITS_MAX$}");
    digits.parse().unwrap_or(u128::MAX)
}

const EXAMPLE: &str = "write plain digits with an optional fraction, such as 12.50";
const BOUNDS: &str = "write at most 11 digits before the point and 8 behind it";

fn wrong(what: String, todo: &str) -> Wrong {
    (what, todo.to_owned())
}

/// A number of JSON: digits, perhaps a fraction, perhaps an exponent. Written out exactly.
pub(super) fn scientific(number: &str) -> Option<String> {
    let (mantissa, exponent) = number.split_once(['e', 'E'])?;
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let is_number = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    let exponent: i32 = exponent
        .parse()
        .ok()
        .filter(|exponent: &i32| exponent.abs() <= 64)?;
    if whole.is_empty() || !is_number(whole) || !is_number(fraction) {
        return None;
    }
    let point = i64::try_from(whole.len()).ok()? + i64::from(exponent);
    let digits = format!("{whole}{fraction}");
    let zeros = |count: i64| "0".repeat(usize::try_from(count).unwrap_or_default());
    let padded = format!(
        "{}{digits}{}",
        zeros(1 - point),
        zeros(point - i64::try_from(digits.len()).ok()?)
    );
    let at = usize::try_from(point.max(1)).ok()?;
    let (whole, fraction) = padded.split_at_checked(at)?;
    Some(format!("{whole}.{fraction}"))
}

/// Digits with a decimal point or comma, and groups of thousands.
fn grouped(number: &str, decimal_comma: bool) -> Result<String, String> {
    const SPACES: [char; 6] = [' ', '\u{a0}', '\u{2009}', '\u{202f}', '\'', '’'];
    let plain: String = number
        .chars()
        .map(|c| if SPACES.contains(&c) { ' ' } else { c })
        .collect();
    if plain.contains(|c: char| !c.is_ascii_digit() && !matches!(c, '.' | ',' | ' ')) {
        return Err(EXAMPLE.to_owned());
    }
    let decimal = if decimal_comma {
        plain.contains(',').then_some(',')
    } else {
        decimal_mark(&plain)?
    };
    let (whole, fraction) = match decimal {
        Some(mark) => plain.rsplit_once(mark).unwrap_or((&plain, "")),
        None => (plain.as_str(), ""),
    };
    let groups: Vec<&str> = whole.split([' ', ',', '.']).collect();
    let (first, others) = groups.split_first().ok_or(EXAMPLE)?;
    let is_grouped =
        others.is_empty() || ((1..=3).contains(&first.len()) && others.iter().all(|group| group.len() == 3));
    // One kind of mark groups: `1.299 000` is a slip of the pen.
    let marks = [' ', ',', '.']
        .iter()
        .filter(|mark| whole.contains(**mark))
        .count();
    if !is_grouped || marks > 1 || fraction.contains([' ', ',', '.']) {
        return Err(EXAMPLE.to_owned());
    }
    Ok(format!("{}.{fraction}", groups.concat()))
}

/// Which mark stands before the fraction, if one does.
fn decimal_mark(number: &str) -> Result<Option<char>, String> {
    let count = |mark: char| number.matches(mark).count();
    match (count('.'), count(',')) {
        (1, 0) => Ok(Some('.')),
        (0, 1) => {
            let (whole, fraction) = number.split_once(',').unwrap_or((number, ""));
            let may_be_thousands = fraction.len() == 3 && !whole.starts_with('0') && !whole.contains(' ');
            if may_be_thousands {
                return Err(format!(
                    "write {whole}{fraction} or {whole}.{fraction}, or say that the comma is the decimal point (--decimal-comma)"
                ));
            }
            Ok(Some(','))
        }
        // None at all, or marks of one kind that come several times: they group.
        (_, 0) | (0, _) => Ok(None),
        _ => Ok(number.chars().rev().find(|c| matches!(c, '.' | ','))),
    }
}

/// Without needless zeros, and within the digits that hubs take.
fn bounded(amount: &str) -> Option<String> {
    let (whole, fraction) = amount.split_once('.').unwrap_or((amount, ""));
    let whole = whole.trim_start_matches('0');
    let whole = if whole.is_empty() { "0" } else { whole };
    // What was written is kept, `12.50` and all, unless it is too long for that.
    let fraction = if fraction.len() > PRICE_FRACTION_DIGITS_MAX {
        fraction.trim_end_matches('0')
    } else {
        fraction
    };
    let fits = whole.len() <= PRICE_WHOLE_DIGITS_MAX && fraction.len() <= PRICE_FRACTION_DIGITS_MAX;
    fits.then(|| {
        if fraction.is_empty() {
            whole.to_owned()
        } else {
            format!("{whole}.{fraction}")
        }
    })
}

/// What stands around the number.
fn currency(before: &str, after: &str) -> Result<Currency, Wrong> {
    // `12.-` and `12,–` are whole amounts.
    let after = after.trim_start_matches(['.', ',', '-', '–', '—']);
    let said = [before, after].map(str::trim);
    let said: Vec<&str> = said.into_iter().filter(|part| !part.is_empty()).collect();
    match said.as_slice() {
        [] => Ok(Currency::Unsaid),
        [one] => sign(one),
        [one, other] => match (sign(one)?, sign(other)?) {
            (Currency::Code(code), Currency::Ambiguous(_))
            | (Currency::Ambiguous(_), Currency::Code(code)) => Ok(Currency::Code(code)),
            _ => Err(wrong(
                format!("`{one}` and `{other}` are two currencies"),
                "name one",
            )),
        },
        _ => Err(wrong("the currency is not clear".to_owned(), "name one")),
    }
}

/// The currency of a sign or a code.
pub(super) fn sign(text: &str) -> Result<Currency, Wrong> {
    let lower = text.trim().trim_end_matches('.').to_lowercase();
    let code = match lower.as_str() {
        "€" | "euro" | "euros" => "EUR",
        "£" => "GBP",
        "us$" | "$us" | "usd$" => "USD",
        "ca$" | "c$" => "CAD",
        "a$" | "au$" => "AUD",
        "r$" => "BRL",
        "₽" | "руб" | "р" | "рублей" => "RUB",
        "₴" | "грн" => "UAH",
        "₸" => "KZT",
        "₹" => "INR",
        "₩" => "KRW",
        "₺" => "TRY",
        "₪" => "ILS",
        "₫" => "VND",
        "฿" => "THB",
        "zł" => "PLN",
        "kč" => "CZK",
        "$" | "¥" | "￥" | "元" | "kr" => return Ok(Currency::Ambiguous(text.trim().to_owned())),
        code if code.len() == 3 && code.bytes().all(|byte| byte.is_ascii_lowercase()) => {
            return Ok(Currency::Code(code.to_ascii_uppercase()));
        }
        _ => {
            return Err(wrong(
                format!("`{text}` is not a currency"),
                "write three letters, such as EUR",
            ));
        }
    };
    Ok(Currency::Code(code.to_owned()))
}
