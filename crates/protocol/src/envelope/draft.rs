//! Making envelopes, on the side of the sender.

use rand_core::CryptoRng;
use uuid::{Builder, Uuid};

use super::{Envelope, header_bytes};
use crate::error::Refusal;
use crate::json::{Json, Object};
use crate::members::to_base64url;
use crate::multikey::{SealingKey, SigningKey};
use crate::name::Did;
use crate::seal::{self, SUITE};
use crate::signature::{Tag, sign};
use crate::time::Timestamp;

/// A fresh version 4 UUID.
pub fn new_id(rng: &mut impl CryptoRng) -> Uuid {
    let mut bytes = [0; 16];
    rng.fill_bytes(&mut bytes);
    Builder::from_random_bytes(bytes).into_uuid()
}

/// An envelope before it is sealed and signed.
///
/// The result is to be kept until it is acknowledged: a retry sends the same bytes again.
#[derive(Debug, Clone)]
pub struct EnvelopeDraft {
    /// See [`new_id`].
    pub id: Uuid,
    /// The sender.
    pub from: Did,
    /// The recipient.
    pub to: Did,
    /// The member `type`, such as `aip.message`.
    pub kind: String,
    /// Now.
    pub created_at: Timestamp,
    /// After this moment it is no longer delivered.
    pub expires_at: Option<Timestamp>,
    /// Correlation of a conversation.
    pub thread: Option<String>,
    /// What this answers.
    pub reply_to: Option<String>,
    /// Further header members; they are signed over and bound to the body.
    pub extra: Object,
}

impl EnvelopeDraft {
    /// A draft with the needed members only.
    pub fn new(id: Uuid, from: Did, to: Did, kind: impl Into<String>, created_at: Timestamp) -> Self {
        Self {
            id,
            from,
            to,
            kind: kind.into(),
            created_at,
            expires_at: None,
            thread: None,
            reply_to: None,
            extra: Object::new(),
        }
    }

    /// Seals `plaintext` (see [`seal::Plaintext::to_bytes`]) for a key of the recipient and signs.
    ///
    /// Refuses what a hub would refuse for its form.
    pub fn seal(
        self,
        signing: &SigningKey,
        recipient: &SealingKey,
        plaintext: &[u8],
        rng: &mut impl CryptoRng,
    ) -> Result<Envelope, Refusal> {
        let body_kid = format!("{}#{recipient}", self.to);
        let mut object = self.header(signing);
        let sealed = seal::seal(recipient, &header_bytes(&object), plaintext, rng);
        let body = Json::from([
            ("alg", Json::from(SUITE)),
            ("kid", Json::from(body_kid)),
            ("enc", Json::from(to_base64url(&sealed.enc))),
            ("ct", Json::from(to_base64url(&sealed.ct))),
        ]);
        object.insert("encrypted_body", body);
        let unsigned = Json::Object(object.clone());
        object.insert("sig", sign(signing, Tag::Envelope, &unsigned).to_string());
        Envelope::from_json(Json::Object(object))
    }

    fn header(self, signing: &SigningKey) -> Object {
        let mut object = self.extra.without(&["encrypted_body", "sig"]);
        object.insert("kid", format!("{}#{}", self.from, signing.public()));
        object.insert("aip", "1");
        object.insert("id", self.id.hyphenated().to_string());
        object.insert("from", self.from.as_str());
        object.insert("to", self.to.as_str());
        object.insert("type", self.kind);
        object.insert("created_at", self.created_at.to_string());
        let expires_at = self.expires_at.map(|moment| moment.to_string());
        for (name, text) in [
            ("expires_at", expires_at),
            ("thread", self.thread),
            ("reply_to", self.reply_to),
        ] {
            if let Some(text) = text {
                object.insert(name, text);
            }
        }
        object
    }
}
