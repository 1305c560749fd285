//! The bytes of records: a version, then numbers and length-prefixed text.
//!
//! What does not read back is [`StoreError::Corrupt`], never a guess.

use aip_protocol::name::Did;
use aip_protocol::time::Timestamp;
use aip_relay::mailbox::StoreError;
use bytes::Bytes;

/// Puts a record together.
#[derive(Debug)]
pub(crate) struct Writer(Vec<u8>);

impl Writer {
    /// `room` is a guess of the record's length.
    pub(crate) fn new(version: u8, room: usize) -> Self {
        let mut bytes = Vec::with_capacity(room);
        bytes.push(version);
        Self(bytes)
    }

    pub(crate) fn raw(&mut self, bytes: &[u8]) -> &mut Self {
        self.0.extend_from_slice(bytes);
        self
    }

    pub(crate) fn byte(&mut self, byte: u8) -> &mut Self {
        self.raw(&[byte])
    }

    /// Eight bytes: for what is large or random.
    pub(crate) fn fixed(&mut self, value: u64) -> &mut Self {
        self.raw(&value.to_be_bytes())
    }

    /// One to ten bytes (LEB128): for what is mostly small.
    pub(crate) fn number(&mut self, mut value: u64) -> &mut Self {
        loop {
            let low = value.to_le_bytes().first().copied().unwrap_or_default() & 0x7f;
            value >>= 7;
            if value == 0 {
                return self.byte(low);
            }
            self.byte(low | 0x80);
        }
    }

    pub(crate) fn time(&mut self, at: Timestamp) -> &mut Self {
        self.fixed(u64::try_from(at.unix_nanos().max(0)).unwrap_or(u64::MAX))
    }

    pub(crate) fn text(&mut self, text: &str) -> &mut Self {
        self.number(text.len() as u64).raw(text.as_bytes())
    }

    pub(crate) fn finish(self) -> Bytes {
        self.0.into()
    }
}

/// Takes a record apart. `None` means: not what was written.
#[derive(Debug)]
pub(crate) struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    /// `None` when the record has another version.
    pub(crate) fn new(version: u8, bytes: &'a [u8]) -> Option<Self> {
        let (found, rest) = bytes.split_first()?;
        (*found == version).then_some(Self(rest))
    }

    pub(crate) fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (head, rest) = self.0.split_first_chunk::<N>()?;
        self.0 = rest;
        Some(*head)
    }

    pub(crate) fn byte(&mut self) -> Option<u8> {
        self.array::<1>().map(|[byte]| byte)
    }

    pub(crate) fn fixed(&mut self) -> Option<u64> {
        self.array().map(u64::from_be_bytes)
    }

    pub(crate) fn number(&mut self) -> Option<u64> {
        let mut value = 0_u64;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            let part = u64::from(byte & 0x7f);
            // The tenth byte has room for one bit.
            if part.checked_shl(shift)? >> shift != part {
                return None;
            }
            value |= part << shift;
            if byte & 0x80 == 0 {
                return Some(value);
            }
        }
        None
    }

    pub(crate) fn time(&mut self) -> Option<Timestamp> {
        self.fixed()
            .map(|nanos| Timestamp::from_unix_nanos(i128::from(nanos)))
    }

    pub(crate) fn text(&mut self) -> Option<&'a str> {
        let len = usize::try_from(self.number()?).ok()?;
        let (text, rest) = self.0.split_at_checked(len)?;
        self.0 = rest;
        std::str::from_utf8(text).ok()
    }

    pub(crate) fn did(&mut self) -> Option<Did> {
        Did::parse(self.text()?).ok()
    }

    /// All that is left.
    pub(crate) fn rest(self) -> &'a [u8] {
        self.0
    }

    /// `value`, if nothing is left.
    pub(crate) fn end<T>(self, value: T) -> Option<T> {
        self.0.is_empty().then_some(value)
    }
}

/// What was read, or an error that says what is unreadable.
pub(crate) fn readable<T>(value: Option<T>, what: &'static str) -> Result<T, StoreError> {
    value.ok_or(StoreError::Corrupt(what.into()))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn numbers_take_as_little_room_as_they_need() {
        let len = |value| {
            let mut to = Writer::new(1, 0);
            to.number(value);
            to.finish().len() - 1
        };
        assert_eq!(
            [0, 127, 128, 16_383, 16_384, u64::MAX].map(len),
            [1, 1, 2, 2, 3, 10]
        );
    }

    #[test]
    fn a_number_that_does_not_fit_is_no_number() {
        let mut bytes = vec![1; 11];
        bytes[1..].fill(0xff);
        assert_eq!(Reader::new(1, &bytes).and_then(|mut from| from.number()), None);
        bytes[10] = 0x02;
        assert_eq!(Reader::new(1, &bytes).and_then(|mut from| from.number()), None);
    }

    proptest! {
        #[test]
        fn what_was_written_reads_back(number: u64, fixed: u64, text in ".{0,40}", byte: u8) {
            let mut to = Writer::new(3, 0);
            to.number(number).text(&text).fixed(fixed).byte(byte);
            let bytes = to.finish();
            let mut from = Reader::new(3, &bytes).ok_or(TestCaseError::fail("version"))?;
            prop_assert_eq!(from.number(), Some(number));
            prop_assert_eq!(from.text(), Some(text.as_str()));
            prop_assert_eq!(from.fixed(), Some(fixed));
            prop_assert_eq!(from.byte(), Some(byte));
            prop_assert_eq!(from.end(()), Some(()));
            prop_assert!(Reader::new(4, &bytes).is_none());
        }
    }
}
