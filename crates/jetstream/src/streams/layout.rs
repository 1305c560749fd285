//! What lies where: names of streams, and the subjects of a mailbox.
//!
//! A mailbox is known on the servers by a *token*, a keyed hash: who may look at the streams cannot tell whose
//! mailbox a subject is. The first byte of the hash is its *shard*; the store's record says which stream holds
//! which shard.

use std::fmt;
use std::sync::{Arc, PoisonError, RwLock};

use aip_relay::mailbox::MailboxId;
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

use super::Held;
use crate::shards::Moves;

/// Domain separation of tokens.
const TOKEN_TAG: &[u8] = b"aip mailbox token";
/// Characters of a token: 128 bits, five a character.
const TOKEN_CHARS: u32 = 26;

/// Names that depend on the prefix alone.
#[derive(Debug, Clone)]
pub(crate) struct Names {
    prefix: Box<str>,
    capitals: Box<str>,
}

impl Names {
    pub(crate) fn new(prefix: &str) -> Self {
        Self {
            prefix: prefix.into(),
            capitals: prefix.to_ascii_uppercase().into(),
        }
    }

    /// The stream of mailboxes number `index`.
    pub(crate) fn mailboxes(&self, index: u16) -> String {
        self.stream(&format!("MB_{index}"))
    }

    /// The stream of cursor records.
    pub(crate) fn cursors(&self) -> String {
        self.stream("CUR")
    }

    /// The stream of dead letters.
    pub(crate) fn dead(&self) -> String {
        self.stream("DLQ")
    }

    /// The stream of statuses.
    pub(crate) fn statuses(&self) -> String {
        self.stream("ST")
    }

    /// The stream of what ends before its retention does.
    pub(crate) fn expiries(&self) -> String {
        self.stream("EX")
    }

    /// The stream of the store's own records.
    pub(crate) fn meta(&self) -> String {
        self.stream("META")
    }

    /// The subject of the store's own record `what`.
    pub(crate) fn meta_subject(&self, what: &str) -> String {
        format!("{}.meta.{what}", self.prefix)
    }

    /// Matches the messages of all mailboxes of a shard.
    pub(crate) fn shard_subject(&self, shard: u8) -> String {
        format!("{}.mb.{shard:02x}.*", self.prefix)
    }

    /// A subject of the stream of mailboxes number `index` that belongs to no shard.
    pub(crate) fn fence_subject(&self, index: u16) -> String {
        format!("{}{index}", self.fence_prefix())
    }

    /// What all of those begin with.
    pub(crate) fn fence_prefix(&self) -> String {
        format!("{}.fence.", self.prefix)
    }

    fn stream(&self, what: &str) -> String {
        format!("{}_{what}", self.capitals)
    }

    /// The first token of all subjects.
    pub(crate) fn prefix(&self) -> &str {
        &self.prefix
    }
}

/// What a mailbox is called on the servers.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Token(Arc<str>);

impl fmt::Display for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Where a mailbox lies. Made once per mailbox and era; clones share the text.
#[derive(Debug, Clone)]
pub(crate) struct Place {
    pub(crate) shard: u8,
    /// Which of the shard's stays in its streams it is: places in the stream mean something only within one.
    pub(crate) era: u64,
    /// The stream of its messages.
    pub(crate) stream: Arc<str>,
    pub(crate) token: Token,
    pub(crate) entry_subject: Arc<str>,
    pub(crate) cursor_subject: Arc<str>,
    pub(crate) dead_subject: Arc<str>,
    /// Where the hints of new messages appear.
    pub(crate) live_subject: Arc<str>,
}

/// Where everything of a store lies.
pub(crate) struct Layout {
    pub(crate) names: Names,
    secret: [u8; 32],
    /// Which stream holds which shard, as last heard.
    held: RwLock<Arc<Held>>,
    pub(crate) cursors: Arc<str>,
    pub(crate) dead: Arc<str>,
    pub(crate) statuses: Arc<str>,
    pub(crate) expiries: Arc<str>,
}

impl fmt::Debug for Layout {
    /// Without the secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Layout")
            .field("names", &self.names)
            .finish_non_exhaustive()
    }
}

impl Layout {
    /// `shards` tells the number of the stream for each shard, none of which was ever moved; a missing one is 0.
    pub(crate) fn new(names: Names, secret: [u8; 32], shards: &[u16]) -> Self {
        Self {
            secret,
            held: RwLock::new(Arc::new(Held::new(&names, shards, &Moves::default()))),
            cursors: names.cursors().into(),
            dead: names.dead().into(),
            statuses: names.statuses().into(),
            expiries: names.expiries().into(),
            names,
        }
    }

    /// Where `mailbox` lies.
    pub(crate) fn mailbox_place(&self, mailbox: &MailboxId) -> Place {
        let (shard, token) = self.token(mailbox);
        let prefix = self.names.prefix();
        let subject = |what: &str| format!("{prefix}.{what}.{shard:02x}.{token}").into();
        let held = self.held();
        Place {
            shard,
            era: held.era(shard),
            stream: held.stream(shard),
            entry_subject: subject("mb"),
            cursor_subject: subject("cur"),
            dead_subject: subject("dlq"),
            live_subject: subject("live"),
            token,
        }
    }

    /// Which stream holds which shard, as far as this process has heard.
    pub(crate) fn held(&self) -> Arc<Held> {
        // It is replaced as a whole.
        Arc::clone(&self.held.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Whether the mailbox at `place` is still there, as far as this process has heard.
    pub(crate) fn holds(&self, place: &Place) -> bool {
        self.held().era(place.shard) == place.era
    }

    /// Takes note of what the store's record says; tells the shards that have moved since.
    pub(crate) fn adopt(&self, shards: &[u16], moves: &Moves) -> Vec<u8> {
        let new = Held::new(&self.names, shards, moves);
        let mut held = self.held.write().unwrap_or_else(PoisonError::into_inner);
        let moved = new.moved_since(&held);
        if !moved.is_empty() {
            *held = Arc::new(new);
        }
        moved
    }

    /// All streams of mailboxes, each once.
    pub(crate) fn mailbox_streams(&self) -> Vec<Arc<str>> {
        self.held().streams()
    }

    /// A keyed hash with the store's secret, under a tag of its own.
    pub(crate) fn keyed_hash(&self, tag: &[u8], parts: &[&[u8]]) -> [u8; 32] {
        let mut mac =
            Hmac::<Sha256>::new_from_slice(&self.secret).unwrap_or_else(|_| Hmac::new(&[0; 64].into()));
        for part in std::iter::once(&tag).chain(parts) {
            mac.update(&u32::try_from(part.len()).unwrap_or(u32::MAX).to_be_bytes());
            mac.update(part);
        }
        mac.finalize().into_bytes().into()
    }

    fn token(&self, mailbox: &MailboxId) -> (u8, Token) {
        let hash = self.keyed_hash(TOKEN_TAG, &[mailbox.as_bytes()]);
        let mut half = [0; 16];
        half.iter_mut().zip(hash).for_each(|(to, from)| *to = from);
        let [shard, ..] = half;
        (shard, Token(base32(u128::from_be_bytes(half)).into()))
    }
}

/// RFC 4648 base32 in lower case, without padding.
fn base32(bits: u128) -> String {
    const ALPHABET: [char; 32] = [
        'a', 'b', 'c', 'd', 'e', 'f', 'g', 'h', 'i', 'j', 'k', 'l', 'm', 'n', 'o', 'p', 'q', 'r', 's', 't',
        'u', 'v', 'w', 'x', 'y', 'z', '2', '3', '4', '5', '6', '7',
    ];
    let digit = |place: u32| {
        let value = match 123_u32.checked_sub(place * 5) {
            Some(shift) => bits >> shift,
            // The last character has two bits of padding.
            None => bits << 2,
        };
        ALPHABET.get((value & 31) as usize).copied().unwrap_or('a')
    };
    (0..TOKEN_CHARS).map(digit).collect()
}

#[cfg(test)]
mod tests {
    use aip_protocol::name::Did;

    use super::*;

    #[test]
    fn base32_is_that_of_the_standard() {
        // RFC 4648 section 10: "foobar" is MZXW6YTBOI; here with ten bytes of zeros after it.
        let bits = u128::from_be_bytes(*b"foobar\0\0\0\0\0\0\0\0\0\0");
        assert_eq!(base32(bits), "mzxw6ytboiaaaaaaaaaaaaaaaa");
        assert_eq!(base32(u128::MAX), "7777777777777777777777777".to_owned() + "4");
    }

    fn layout(secret: u8) -> Layout {
        let shards: Vec<u16> = (0..256).map(|shard| shard % 16).collect();
        Layout::new(Names::new("aip"), [secret; 32], &shards)
    }

    #[test]
    fn a_mailbox_has_one_place_that_only_the_secret_tells() {
        let did = Did::parse("did:aip:example.org:alice")
            .map_or_else(|_| MailboxId::from_bytes([7; 16]), |did| MailboxId::of(&did));
        let (here, again, elsewhere) = (
            layout(1).mailbox_place(&did),
            layout(1).mailbox_place(&did),
            layout(2).mailbox_place(&did),
        );
        assert_eq!(here.entry_subject, again.entry_subject);
        assert_ne!(here.token, elsewhere.token);
        let (token, stream) = (here.token.to_string(), here.stream.to_string());
        assert_eq!(token.len(), 26);
        let (head, shard_and_token) = here.entry_subject.split_at("aip.mb.".len());
        let (shard, rest) = shard_and_token.split_once('.').expect("a shard");
        assert_eq!((head, rest), ("aip.mb.", token.as_str()));
        let shard = u8::from_str_radix(shard, 16).expect("hexadecimal");
        assert_eq!(stream, format!("AIP_MB_{}", shard % 16));
        assert_eq!(*here.live_subject, *format!("aip.live.{shard:02x}.{token}"));
    }

    #[test]
    fn streams_of_mailboxes_are_told_once_each() {
        assert_eq!(layout(1).mailbox_streams().len(), 16);
    }
}
