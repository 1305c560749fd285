//! `X-Provider-Signature`: what a provider answers over HTTP, signed with the key that its listing names (AIMarket).

use aip_market::offer::Offer;
use aip_market::provider::ProviderError;
use aip_protocol::market::digest;
use aip_protocol::multikey::VerifyingKey;
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE};
use serde_json::{Value, json};

use super::spelled;

/// The field of the answer.
pub(super) const SIGNATURE: &str = "x-provider-signature";

/// Whether this result to this input is signed, where the listing names a key. The signature is over the compact text of
/// `{capability_id, input_sha256, product_id, result}`, so that an answer to another call is none to this one; one over the
/// result alone, which older providers send, is not taken.
///
/// # Errors
/// [`ProviderError::Unsigned`]
pub(super) fn check(
    offer: &Offer,
    input: &Value,
    result: &Value,
    signature: Option<&str>,
) -> Result<(), ProviderError> {
    let Some(key) = &offer.provider_key else {
        return Ok(());
    };
    let signature = signature.ok_or(ProviderError::Unsigned("it has no X-Provider-Signature"))?;
    if is_signed(key, offer, input, result, signature).unwrap_or(false) {
        Ok(())
    } else {
        Err(ProviderError::Unsigned(
            "its X-Provider-Signature is not of the listing's key over this answer",
        ))
    }
}

fn is_signed(
    key: &VerifyingKey,
    offer: &Offer,
    input: &Value,
    result: &Value,
    signature: &str,
) -> Option<bool> {
    let engines = [&STANDARD, &URL_SAFE];
    let bytes = engines.iter().find_map(|engine| engine.decode(signature).ok())?;
    let signature: [u8; 64] = bytes.try_into().ok()?;
    let signed = json!({
        "capability_id": offer.capability_id,
        "input_sha256": digest::sha256_hex(&spelled(input)?),
        "product_id": offer.product_id,
        "result": result,
    });
    Some(key.verify_bytes(&spelled(&signed)?, &signature))
}

#[cfg(test)]
mod tests {
    use aip_market::offer::Way;
    use aip_protocol::multikey::SigningKey;

    use super::super::testing::offer;
    use super::*;

    /// The text is that of aimarket-hub 3.16 (`supply_security._bound_response_canonical`).
    #[test]
    fn an_answer_is_signed_for_one_call() {
        let key = SigningKey::from_seed([5; 32]);
        let mut offer = offer(
            "did:aip:hub.example:shop",
            Way::Http("https://shop.example".to_owned()),
        );
        let (input, result) = (
            json!({ "town": "Köln", "n": 5.0 }),
            json!({ "t": 1e-5, "a": [1] }),
        );
        let unsigned =
            |offer: &Offer, signature: Option<&str>| check(offer, &input, &result, signature).is_err();
        assert!(!unsigned(&offer, None), "nobody promised a signature");
        offer.provider_key = Some(key.public().clone());
        let hash = digest::sha256_hex(r#"{"n":5.0,"town":"Köln"}"#.as_bytes());
        let text = format!(
            r#"{{"capability_id":"weather@v1","input_sha256":"{hash}","product_id":"shop","result":{{"a":[1],"t":1e-05}}}}"#
        );
        let signature = STANDARD.encode(key.sign_bytes(text.as_bytes()));
        assert!(!unsigned(&offer, Some(&signature)));
        let alone = STANDARD.encode(key.sign_bytes(br#"{"a":[1],"t":1e-05}"#));
        let stranger = STANDARD.encode(SigningKey::from_seed([6; 32]).sign_bytes(text.as_bytes()));
        for signature in [
            None,
            Some(""),
            Some("AA=="),
            Some(alone.as_str()),
            Some(stranger.as_str()),
        ] {
            assert!(unsigned(&offer, signature), "{signature:?}");
        }
        assert!(
            check(&offer, &json!({}), &result, Some(&signature)).is_err(),
            "another input"
        );
        assert!(
            check(&offer, &input, &json!({}), Some(&signature)).is_err(),
            "another result"
        );
        offer.capability_id = "forecast@v1".to_owned();
        assert!(unsigned(&offer, Some(&signature)), "another capability");
    }
}
