//! Query parameters, exactly: each known one at most once, anything else is refused instead of ignored.

use std::ops::RangeInclusive;

use actix_web::HttpRequest;
use aip_protocol::error::{ErrorCode, Refusal};
use url::form_urlencoded;

use crate::error::ApiError;

/// The parameters of one request.
#[derive(Debug)]
pub struct Query<'a> {
    /// Name and value as sent, still percent-encoded.
    pairs: Vec<(&'static str, &'a str)>,
}

impl<'a> Query<'a> {
    /// Reads the query of `req`; `known` are the parameters that the path has.
    ///
    /// # Errors
    /// 400 `parameter_unknown`, or `parameter_invalid` for one that is there twice.
    pub fn parse(req: &'a HttpRequest, known: &[&'static str]) -> Result<Self, ApiError> {
        let mut pairs: Vec<(&'static str, &'a str)> = Vec::with_capacity(known.len());
        for pair in req
            .uri()
            .query()
            .unwrap_or("")
            .split('&')
            .filter(|pair| !pair.is_empty())
        {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            let Some(name) = known.iter().find(|known| **known == name) else {
                return Err(unknown(known));
            };
            if pairs.iter().any(|(seen, _)| seen == name) {
                return Err(invalid(name, "is given more than once"));
            }
            pairs.push((name, value));
        }
        Ok(Self { pairs })
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
        // With the `=` written out the whole text is one name to the decoder.
        let whole = raw.replace('=', "%3D");
        let text = form_urlencoded::parse(whole.as_bytes())
            .next()
            .map_or_else(String::new, |(text, _)| text.into_owned());
        if text.contains('\u{FFFD}') {
            return Err(invalid(name, "is not UTF-8"));
        }
        Ok(Some(text))
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

fn unknown(known: &[&'static str]) -> ApiError {
    let detail = match known {
        [] => "This path takes no query parameters.".to_owned(),
        _ => format!(
            "A query parameter is not known here. Known are: {}.",
            known.join(", ")
        ),
    };
    Refusal::new(ErrorCode::ParameterUnknown, detail).into()
}

fn invalid(name: &'static str, what: &str) -> ApiError {
    let detail = format!("The query parameter `{name}` {what}.");
    Refusal::new(ErrorCode::ParameterInvalid, detail)
        .with("parameter", name)
        .into()
}
