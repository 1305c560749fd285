//! The names of keys and channels, and the seals on what lies there. Both depend on the hub's secret, so that who reads
//! Redis learns no DID, and who writes to it is not believed.

use std::fmt;

use aip_registry::secret::SecretHash;
use aip_relay::mailbox::MailboxId;
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use zeroize::Zeroizing;

/// Bytes of a name or a seal.
pub(crate) const SEAL_BYTES: usize = 16;

/// Makes names and seals.
#[derive(Clone)]
pub(crate) struct Names {
    prefix: String,
    secret: Zeroizing<[u8; 32]>,
}

impl fmt::Debug for Names {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Names")
            .field("prefix", &self.prefix)
            .finish_non_exhaustive()
    }
}

impl Names {
    pub(crate) fn new(prefix: &str, secret: Zeroizing<[u8; 32]>) -> Self {
        let prefix = prefix.to_owned();
        Self { prefix, secret }
    }

    /// Where signals about an agent are told.
    pub(crate) fn channel(&self, mailbox: &MailboxId) -> String {
        self.of("to", mailbox.as_bytes())
    }

    /// Where changes of agents are told.
    pub(crate) fn news_channel(&self) -> String {
        format!("{}:news", self.prefix)
    }

    /// What each process writes to see whether it can.
    pub(crate) fn look(&self) -> String {
        format!("{}:look", self.prefix)
    }

    /// Which process has the newest session of an agent.
    pub(crate) fn at(&self, mailbox: &MailboxId) -> String {
        self.of("at", mailbox.as_bytes())
    }

    /// Exists while newcomers wait after a takeover.
    pub(crate) fn turn(&self, mailbox: &MailboxId) -> String {
        self.of("turn", mailbox.as_bytes())
    }

    /// Which process has a message in hand.
    pub(crate) fn claim(&self, mailbox: &MailboxId, seq: u64) -> String {
        format!("{}:{seq}", self.of("claim", mailbox.as_bytes()))
    }

    /// A sender's bucket.
    pub(crate) fn bucket(&self, sender: &[u8; 16]) -> String {
        self.of("rate", sender)
    }

    /// An accepted envelope.
    pub(crate) fn accepted(&self, key: &[u8; 16]) -> String {
        self.of("seen", key)
    }

    /// A spent challenge.
    pub(crate) fn spent(&self, challenge: &SecretHash) -> String {
        self.of("spent", challenge.to_hex().as_bytes())
    }

    /// Proves that a process of this hub wrote `content` for the place `name`.
    pub(crate) fn seal(&self, name: &str, content: &[u8]) -> [u8; SEAL_BYTES] {
        self.hash("seal", &[name.as_bytes(), content])
    }

    /// Whether [`Self::seal`] made it, in the same time wherever they differ.
    pub(crate) fn is_sealed(&self, name: &str, content: &[u8], seal: &[u8]) -> bool {
        self.mac("seal", &[name.as_bytes(), content])
            .is_some_and(|mac| mac.verify_truncated_left(seal).is_ok() && seal.len() == SEAL_BYTES)
    }

    fn of(&self, kind: &str, what: &[u8]) -> String {
        format!("{}:{kind}:{}", self.prefix, hex::encode(self.hash(kind, &[what])))
    }

    fn hash(&self, kind: &str, parts: &[&[u8]]) -> [u8; SEAL_BYTES] {
        let mut hash = [0; SEAL_BYTES];
        if let Some(mac) = self.mac(kind, parts) {
            let full = mac.finalize().into_bytes();
            hash.iter_mut().zip(full).for_each(|(to, from)| *to = from);
        }
        hash
    }

    /// HMAC takes keys of any length, so this is always `Some`.
    fn mac(&self, kind: &str, parts: &[&[u8]]) -> Option<Hmac<Sha256>> {
        let mut mac = Hmac::<Sha256>::new_from_slice(self.secret.as_slice()).ok()?;
        for part in [kind.as_bytes()].iter().chain(parts) {
            // The length in front, so that the parts' bounds are not in doubt.
            mac.update(&u64::try_from(part.len()).unwrap_or(u64::MAX).to_be_bytes());
            mac.update(part);
        }
        Some(mac)
    }
}

#[cfg(test)]
mod tests {
    use aip_protocol::name::Did;

    use super::*;

    fn names(prefix: &str, secret: u8) -> Names {
        Names::new(prefix, Zeroizing::new([secret; 32]))
    }

    #[test]
    fn names_show_nothing_and_do_not_collide() {
        let did = Did::parse("did:aip:hub.example:alice").unwrap();
        let mailbox = MailboxId::of(&did);
        let (names, other) = (names("aip", 1), names("aip", 2));
        let all = [
            names.channel(&mailbox),
            names.at(&mailbox),
            names.turn(&mailbox),
            names.claim(&mailbox, 1),
            names.claim(&mailbox, 11),
            names.bucket(mailbox.as_bytes()),
            names.accepted(mailbox.as_bytes()),
            names.spent(&SecretHash::of("challenge")),
            other.channel(&mailbox),
        ];
        for (index, name) in all.iter().enumerate() {
            assert!(name.starts_with("aip:") && !name.contains("alice"), "{name}");
            assert!(!name.contains(&hex::encode(mailbox.as_bytes())), "{name}");
            assert_eq!(all.iter().filter(|other| *other == name).count(), 1, "{index}");
        }
    }

    #[test]
    fn a_seal_holds_for_its_place_content_and_hub() {
        let names = names("aip", 1);
        let seal = names.seal("place", b"content");
        assert!(names.is_sealed("place", b"content", &seal));
        assert!(!names.is_sealed("place", b"contenu", &seal));
        assert!(!names.is_sealed("plac", b"econtent", &seal));
        assert!(!names.is_sealed("place", b"content", &seal[..15]));
        assert!(!names.is_sealed("place", b"content", &[]));
        assert!(!self::names("aip", 2).is_sealed("place", b"content", &seal));
    }
}
