//! What an agent signs to prove that it is there (§6).

use crate::json::Json;
use crate::name::Did;

/// The object under tag [`crate::signature::Tag::Challenge`]: `audience` is the hub's domain, so
/// that an answer given to one hub is worth nothing at another.
pub fn challenge_object(audience: &str, challenge: &str, did: &Did) -> Json {
    Json::from([
        ("audience", Json::from(audience)),
        ("challenge", Json::from(challenge)),
        ("did", Json::from(did.as_str())),
    ])
}
