//! Sets of listing numbers: what passes a filter, as the text list tells the list by meaning.

/// Words of 64 bits on a page; a page holds 65,536 numbers in 8 KiB.
const PAGE_WORDS: usize = 1024;

/// Bits of a number that are its place on its page.
const PAGE_BITS: u32 = 16;

/// The highest number that a set takes: 2^36 - 1. A store counts from 1; pages are listed up to the highest number.
pub const NUMBER_MAX: u64 = (1 << 36) - 1;

type Page = Box<[u64; PAGE_WORDS]>;

/// A set of listing numbers. Asking is one look-up in an array; empty ranges take no room.
#[derive(Debug, Clone, Default)]
pub struct NumberSet {
    pages: Vec<Option<Page>>,
    len: usize,
}

impl NumberSet {
    /// The empty set.
    pub const fn new() -> Self {
        Self {
            pages: Vec::new(),
            len: 0,
        }
    }

    /// Adds a number. False where it was in already, or is above [`NUMBER_MAX`] and thus nobody's.
    pub fn insert(&mut self, number: u64) -> bool {
        let Some((page, word, bit)) = place(number) else {
            return false;
        };
        if page >= self.pages.len() {
            self.pages.resize_with(page + 1, || None);
        }
        let Some(slot) = self.pages.get_mut(page) else {
            return false;
        };
        let words = slot.get_or_insert_with(|| Box::new([0; PAGE_WORDS]));
        let Some(word) = words.get_mut(word) else {
            return false;
        };
        let is_new = *word & bit == 0;
        *word |= bit;
        self.len += usize::from(is_new);
        is_new
    }

    /// Whether the number is in.
    #[inline]
    pub fn contains(&self, number: u64) -> bool {
        place(number).is_some_and(|(page, word, bit)| {
            let words = self.pages.get(page).and_then(Option::as_ref);
            words
                .and_then(|words| words.get(word))
                .is_some_and(|word| word & bit != 0)
        })
    }

    /// How many numbers are in.
    pub const fn len(&self) -> usize {
        self.len
    }

    /// Whether there are none.
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The numbers, lowest first.
    pub fn iter(&self) -> impl Iterator<Item = u64> + '_ {
        let pages = (0_u64..).zip(&self.pages);
        pages
            .filter_map(|(page, words)| words.as_ref().map(|words| (page << PAGE_BITS, words)))
            .flat_map(|(first, words)| (first..).step_by(64).zip(words.iter().copied()))
            .flat_map(|(first, word)| {
                (0..64)
                    .filter(move |bit| word >> bit & 1 == 1)
                    .map(move |bit| first + bit)
            })
    }
}

impl FromIterator<u64> for NumberSet {
    fn from_iter<I: IntoIterator<Item = u64>>(numbers: I) -> Self {
        let mut set = Self::new();
        set.extend(numbers);
        set
    }
}

impl Extend<u64> for NumberSet {
    fn extend<I: IntoIterator<Item = u64>>(&mut self, numbers: I) {
        for number in numbers {
            self.insert(number);
        }
    }
}

/// Page, word on the page and bit in the word; none above [`NUMBER_MAX`].
#[inline]
fn place(number: u64) -> Option<(usize, usize, u64)> {
    if number > NUMBER_MAX {
        return None;
    }
    let page = usize::try_from(number >> PAGE_BITS).ok()?;
    let word = usize::try_from(number >> 6).ok()? % PAGE_WORDS;
    Some((page, word, 1 << (number & 63)))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_number_above_the_highest_is_nobodys() {
        let mut set = NumberSet::new();
        assert!(!set.insert(NUMBER_MAX + 1) && !set.insert(u64::MAX));
        assert!(!set.contains(u64::MAX) && set.is_empty());
    }

    proptest! {
        #[test]
        fn it_is_a_set(numbers in proptest::collection::vec(0_u64..300_000, 0..200)) {
            let expected: BTreeSet<u64> = numbers.iter().copied().collect();
            let set: NumberSet = numbers.iter().copied().collect();
            prop_assert_eq!(set.len(), expected.len());
            prop_assert!(set.iter().eq(expected.iter().copied()));
            for number in numbers {
                prop_assert!(set.contains(number));
                prop_assert_eq!(set.contains(number + 1), expected.contains(&(number + 1)));
            }
        }
    }
}
