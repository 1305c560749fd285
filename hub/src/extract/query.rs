//! Query parameters, exactly: each known one at most once, anything else is refused instead of ignored.

use std::ops::RangeInclusive;

use actix_web::HttpRequest;
use aip_protocol::error::{ErrorCode, Refusal};
use percent_encoding::percent_decode_str;

use crate::error::ApiError;

/// The parameters of one request.
#[derive(Debug)]
pub struct Query<'a> {
    /// Name and value as sent, still percent-encoded.
    pairs: Vec<(&'static str, &'a str)>,
    /// Those whose names begin with the prefix of [`Query::parse_with`], without it.
    open: Vec<(&'a str, &'a str)>,
}

/// Bytes of an unknown parameter's name that the refusal repeats.
const SHOWN_BYTES_MAX: usize = 64;

impl<'a> Query<'a> {
    /// Reads the query of `req`; `known` are the parameters that the path has.
    ///
    /// # Errors
    /// 400 `parameter_unknown`, or `parameter_invalid` for one that is there twice.
    pub fn parse(req: &'a HttpRequest, known: &[&'static str]) -> Result<Self, ApiError> {
        Self::parse_with(req, known, None)
    }

    /// The same, where also every name that begins with `prefix` is known: [`Query::open`] tells those.
    ///
    /// # Errors
    /// As [`Query::parse`].
    pub fn parse_with(
        req: &'a HttpRequest,
        known: &[&'static str],
        prefix: Option<&'static str>,
    ) -> Result<Self, ApiError> {
        let mut open = Vec::new();
        let mut pairs: Vec<(&'static str, &'a str)> = Vec::with_capacity(known.len());
        for pair in req
            .uri()
            .query()
            .unwrap_or("")
            .split('&')
            .filter(|pair| !pair.is_empty())
        {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            if let Some(rest) = prefix.and_then(|prefix| name.strip_prefix(prefix)) {
                open.push((rest, value));
                continue;
            }
            let Some(name) = known.iter().find(|known| **known == name) else {
                return Err(unknown(name, known));
            };
            if pairs.iter().any(|(seen, _)| seen == name) {
                return Err(invalid(name, "is given more than once"));
            }
            pairs.push((name, value));
        }
        Ok(Self { pairs, open })
    }

    /// A value as sent, still percent-encoded.
    pub fn raw(&self, name: &str) -> Option<&'a str> {
        self.pairs
            .iter()
            .find(|(known, _)| *known == name)
            .map(|(_, value)| *value)
    }

    /// A value, decoded once.
    ///
    /// # Errors
    /// 400 `parameter_invalid` for bytes that are no UTF-8.
    pub fn text(&self, name: &'static str) -> Result<Option<String>, ApiError> {
        let Some(raw) = self.raw(name) else {
            return Ok(None);
        };
        decoded(raw)
            .map(Some)
            .ok_or_else(|| invalid(name, "is not UTF-8"))
    }

    /// Names behind the prefix and their values, decoded once, in the order they were sent.
    ///
    /// # Errors
    /// 400 `parameter_invalid` for bytes that are no UTF-8.
    pub fn open(&self) -> Result<Vec<(String, String)>, ApiError> {
        let pair = |(name, value): &(&str, &str)| Some((decoded(name)?, decoded(value)?));
        let pairs = self.open.iter().map(pair).collect::<Option<Vec<_>>>();
        let detail = "A query parameter is not UTF-8.";
        pairs.ok_or_else(|| Refusal::new(ErrorCode::ParameterInvalid, detail).into())
    }

    /// A whole number within `range`, or `default` where the parameter is absent.
    ///
    /// # Errors
    /// 400 `parameter_invalid`, naming the range.
    pub fn number(
        &self,
        name: &'static str,
        range: RangeInclusive<u64>,
        default: u64,
    ) -> Result<u64, ApiError> {
        let Some(raw) = self.raw(name) else {
            return Ok(default);
        };
        let digits = !raw.is_empty() && raw.bytes().all(|byte| byte.is_ascii_digit());
        match raw.parse::<u64>() {
            Ok(number) if digits && range.contains(&number) => Ok(number),
            _ => Err(invalid(
                name,
                &format!("is not a whole number from {} to {}", range.start(), range.end()),
            )),
        }
    }
}

/// The text of one name or value; `None` where it is no UTF-8.
fn decoded(raw: &str) -> Option<String> {
    let spaced = raw.replace('+', " ");
    let text = percent_decode_str(&spaced).decode_utf8().ok()?;
    Some(text.into_owned())
}

/// The refusal of a parameter that a path does not have. The name is repeated as it was sent: visible ASCII.
pub(crate) fn unknown(name: &str, known: &[&str]) -> ApiError {
    let shown: String = name.chars().take(SHOWN_BYTES_MAX).collect();
    let detail = match known {
        [] => format!("The query parameter {shown:?} is not known here: this path takes none."),
        _ => format!(
            "The query parameter {shown:?} is not known here. Known are: {}.",
            known.join(", ")
        ),
    };
    Refusal::new(ErrorCode::ParameterUnknown, detail)
        .with("parameter", shown)
        .into()
}

fn invalid(name: &'static str, what: &str) -> ApiError {
    let detail = format!("The query parameter `{name}` {what}.");
    Refusal::new(ErrorCode::ParameterInvalid, detail)
        .with("parameter", name)
        .into()
}

#[cfg(test)]
mod tests {
    use super::decoded;

    #[test]
    fn what_is_utf8_is_text() {
        assert_eq!(decoded("a=b%3D+%2B%26").as_deref(), Some("a=b= +&"));
        assert_eq!(decoded("%EF%BF%BD").as_deref(), Some("\u{FFFD}"));
        assert_eq!(decoded("%FF%20"), None);
    }
}
