//! Challenges of the two doors (spec §6), made so that a stranger who asks for many costs nothing.
//!
//! Over HTTP a challenge carries its own end and a MAC of it, the DID and the door, under a key that
//! all processes of the hub have: nothing is kept for one that was only asked for, nobody can crowd out another
//! agent's, and whether the DID exists plays no part. What is remembered is a challenge that was
//! *answered well*, until its end, so that it works once. On a socket the connection itself holds
//! the challenge it was greeted with and gives it up when it is answered. So neither door knows the
//! other's challenges.

use std::time::Duration;

use aip_protocol::name::Did;
use aip_protocol::time::Timestamp;
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use zeroize::Zeroizing;

use crate::limits::SECRET_CHARS_MAX;
use crate::secret::{decode, encode};

const NONCE_BYTES: usize = 16;
const END_BYTES: usize = 8;
const MAC_DOMAIN: &[u8] = b"aip/1 http challenge\n";

/// A challenge for an agent that signs in over HTTP.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Challenge {
    /// What the agent signs, with the hub's domain and its DID.
    pub challenge: String,
    /// When it ends.
    pub expires_at: Timestamp,
}

/// A challenge that belongs to one socket. It is not `Clone`: answering consumes it.
#[derive(Debug)]
pub struct SocketChallenge(pub(super) Challenge);

impl SocketChallenge {
    /// What the agent signs.
    pub fn text(&self) -> &str {
        &self.0.challenge
    }
}

/// Makes and recognises HTTP challenges.
pub(super) struct ChallengeMint {
    key: Zeroizing<[u8; 32]>,
    lifetime: Duration,
}

impl std::fmt::Debug for ChallengeMint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ChallengeMint")
            .field("lifetime", &self.lifetime)
            .finish_non_exhaustive()
    }
}

impl ChallengeMint {
    pub(super) fn new(key: Zeroizing<[u8; 32]>, lifetime_secs: u64) -> Self {
        Self {
            key,
            lifetime: Duration::from_secs(lifetime_secs),
        }
    }

    /// When a challenge that is made now ends.
    pub(super) fn end(&self, now: Timestamp) -> Timestamp {
        now + self.lifetime
    }

    /// A challenge for this DID.
    pub(super) fn make(&self, did: &Did, now: Timestamp, nonce: [u8; NONCE_BYTES]) -> Challenge {
        let expires_at = self.end(now);
        let mut bytes = nonce.to_vec();
        bytes.extend_from_slice(&expires_at.unix_millis().to_be_bytes());
        let tag = self
            .mac(did, &bytes)
            .map(|mac| mac.finalize().into_bytes())
            .unwrap_or_default();
        bytes.extend_from_slice(&tag);
        Challenge {
            challenge: encode(&bytes),
            expires_at,
        }
    }

    /// The end of a challenge that this mint made for this DID and that has not ended.
    pub(super) fn check(&self, did: &Did, text: &str, now: Timestamp) -> Option<Timestamp> {
        if text.len() > SECRET_CHARS_MAX {
            return None;
        }
        let bytes = decode(text)?;
        let (signed, tag) = bytes.split_at_checked(NONCE_BYTES + END_BYTES)?;
        self.mac(did, signed)?.verify_slice(tag).ok()?;
        let end: [u8; END_BYTES] = signed.get(NONCE_BYTES..)?.try_into().ok()?;
        let end = Timestamp::from_unix_millis(i64::from_be_bytes(end));
        (now < end).then_some(end)
    }

    /// HMAC takes keys of any length, so this is always `Some`.
    fn mac(&self, did: &Did, signed: &[u8]) -> Option<Hmac<Sha256>> {
        let mut mac = Hmac::<Sha256>::new_from_slice(self.key.as_slice()).ok()?;
        // Two parts of fixed length, so that the DID's bounds are not in doubt.
        mac.update(MAC_DOMAIN);
        mac.update(signed);
        mac.update(did.as_str().as_bytes());
        Some(mac)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn did(name: &str) -> Did {
        Did::parse(&format!("did:aip:hub.example:{name}")).expect("a DID")
    }

    #[test]
    fn a_challenge_is_known_until_its_end_to_its_agent_at_its_hub() {
        let mint = ChallengeMint::new(Zeroizing::new([7; 32]), 60);
        let start = Timestamp::from_unix_millis(1_000_000);
        let made = mint.make(&did("alice"), start, [1; 16]);
        let just_before = Timestamp::from_unix_millis(1_059_999);
        assert_eq!(made.expires_at.unix_millis(), 1_060_000);
        assert_eq!(
            mint.check(&did("alice"), &made.challenge, just_before),
            Some(made.expires_at)
        );
        assert_eq!(
            mint.check(&did("alice"), &made.challenge, made.expires_at),
            None,
            "it ends"
        );
        assert_eq!(
            mint.check(&did("bob"), &made.challenge, start),
            None,
            "another agent"
        );
        let other = ChallengeMint::new(Zeroizing::new([8; 32]), 60);
        assert_eq!(
            other.check(&did("alice"), &made.challenge, start),
            None,
            "another hub"
        );
    }

    #[test]
    fn no_part_of_a_challenge_can_be_changed() {
        let mint = ChallengeMint::new(Zeroizing::new([7; 32]), 60);
        let start = Timestamp::from_unix_millis(1_000_000);
        let bytes = decode(&mint.make(&did("alice"), start, [1; 16]).challenge).expect("base64url");
        for at in 0..bytes.len() {
            let mut changed = bytes.clone();
            changed[at] ^= 1;
            assert_eq!(
                mint.check(&did("alice"), &encode(&changed), start),
                None,
                "byte {at}"
            );
        }
        for length in 0..bytes.len() {
            assert_eq!(
                mint.check(&did("alice"), &encode(&bytes[..length]), start),
                None,
                "{length} bytes"
            );
        }
        assert_eq!(mint.check(&did("alice"), &"A".repeat(1_000_000), start), None);
    }
}
