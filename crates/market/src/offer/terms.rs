//! The member `invoke` of a listing: how it is invoked.

use std::time::Duration;

use aip_protocol::error::{ErrorCode, Refusal};
use aip_protocol::json::{Json, Object};
use aip_protocol::market::signature::parse_key;
use aip_protocol::multikey::VerifyingKey;

use super::{FreeTier, Way};
use crate::limits::{FREE_TIER_FIELD_BYTES_MAX, PROVIDER_TIMEOUT_SECS_MAX, PROVIDER_URL_BYTES_MAX};

/// How a capability is invoked, as its listing says: `{"url":"https://…"}` or `{"relay":true}`, and optionally
/// `"timeout_secs"` (1 to 300), `"free_tier":{"field":"a.b","max":10}` and `"public_key"`, with which answers are signed. Other
/// members are passed over.
#[derive(Debug, Clone, PartialEq)]
pub struct Terms {
    /// See [`super::Offer::way`].
    pub way: Way,
    /// See [`super::Offer::timeout`].
    pub timeout: Option<Duration>,
    /// See [`super::Offer::free_tier`].
    pub free_tier: Option<FreeTier>,
    /// See [`super::Offer::provider_key`].
    pub public_key: Option<VerifyingKey>,
}

impl Terms {
    /// Reads the member `invoke`.
    ///
    /// # Errors
    /// `member_invalid` with what is wrong: such a listing is not sold.
    pub fn read(invoke: &Json) -> Result<Self, Refusal> {
        let object = invoke
            .as_object()
            .ok_or_else(|| invalid("`invoke` is an object with `url` or `relay`."))?;
        Ok(Self {
            way: way(object)?,
            timeout: timeout(object)?,
            free_tier: object.get("free_tier").map(free_tier).transpose()?,
            public_key: object.get("public_key").map(public_key).transpose()?,
        })
    }
}

fn way(object: &Object) -> Result<Way, Refusal> {
    match (object.get("url"), object.get("relay")) {
        (Some(Json::Str(url)), None | Some(Json::Bool(false))) => {
            let is_web = url.starts_with("https://") || url.starts_with("http://");
            let is_plain = url
                .bytes()
                .all(|byte| byte.is_ascii_graphic() && !matches!(byte, b'@' | b'#' | b'\\'));
            if is_web && is_plain && url.len() <= PROVIDER_URL_BYTES_MAX {
                Ok(Way::Http(url.clone()))
            } else {
                Err(invalid(
                    "`invoke.url` is an http or https address without userinfo and fragment.",
                ))
            }
        }
        (None, Some(Json::Bool(true))) => Ok(Way::Relay),
        _ => Err(invalid("`invoke` has either `url` or `relay: true`.")),
    }
}

fn timeout(object: &Object) -> Result<Option<Duration>, Refusal> {
    let Some(secs) = object.get("timeout_secs") else {
        return Ok(None);
    };
    let secs = secs.as_int().and_then(|secs| u64::try_from(secs).ok());
    secs.filter(|secs| (1..=PROVIDER_TIMEOUT_SECS_MAX).contains(secs))
        .map(|secs| Some(Duration::from_secs(secs)))
        .ok_or_else(|| invalid("`invoke.timeout_secs` is from 1 to 300."))
}

fn free_tier(json: &Json) -> Result<FreeTier, Refusal> {
    let field = json.get("field").and_then(Json::as_str);
    let field = field.filter(|field| (1..=FREE_TIER_FIELD_BYTES_MAX).contains(&field.len()));
    match (field, json.get("max").and_then(number)) {
        (Some(field), Some(max)) => Ok(FreeTier {
            field: field.to_owned(),
            max,
        }),
        _ => Err(invalid(
            "`invoke.free_tier` has `field`, a path with points, and `max`, an integer from 0 up or a decimal as text.",
        )),
    }
}

/// In base64, as AIMarket spells keys.
fn public_key(json: &Json) -> Result<VerifyingKey, Refusal> {
    let key = json.as_str().and_then(|text| parse_key(text).ok());
    key.ok_or_else(|| invalid("`invoke.public_key` is the base64 of an Ed25519 key."))
}

/// An integer, or plain decimal digits: a listing holds no floats.
#[expect(
    clippy::cast_precision_loss,
    reason = "an integer of strict JSON is below 2^53"
)]
fn number(json: &Json) -> Option<f64> {
    match json {
        Json::Int(max) if *max >= 0 => Some(*max as f64),
        Json::Str(max) => {
            let is_decimal = !max.is_empty() && max.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
            is_decimal.then(|| max.parse().ok()).flatten()
        }
        _ => None,
    }
}

fn invalid(detail: &'static str) -> Refusal {
    Refusal::new(ErrorCode::MemberInvalid, detail)
}

#[cfg(test)]
mod tests;
