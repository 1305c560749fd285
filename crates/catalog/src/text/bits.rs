//! A set of the documents of one segment.

/// One bit for each document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Bits {
    words: Vec<u64>,
}

impl Bits {
    /// None of so many documents.
    pub(super) fn none(documents: u32) -> Self {
        Self {
            words: vec![0; documents.div_ceil(64) as usize],
        }
    }

    /// All of them.
    pub(super) fn all(documents: u32) -> Self {
        let mut words = vec![u64::MAX; documents.div_ceil(64) as usize];
        if let (Some(last), 1..) = (words.last_mut(), documents % 64) {
            *last = (1 << (documents % 64)) - 1;
        }
        Self { words }
    }

    pub(super) fn insert(&mut self, document: u32) {
        if let Some(word) = self.words.get_mut(document as usize / 64) {
            *word |= 1 << (document % 64);
        }
    }

    #[inline]
    pub(super) fn contains(&self, document: u32) -> bool {
        self.words
            .get(document as usize / 64)
            .is_some_and(|word| word >> (document % 64) & 1 == 1)
    }

    /// Keeps what the other holds too.
    pub(super) fn intersect(&mut self, other: &Self) {
        for (word, other) in self.words.iter_mut().zip(&other.words) {
            *word &= other;
        }
    }

    /// Keeps those for which it holds.
    pub(super) fn retain(&mut self, mut holds: impl FnMut(u32) -> bool) {
        for (first, word) in (0_u32..).step_by(64).zip(&mut self.words) {
            let mut left = *word;
            while left != 0 {
                let bit = left.trailing_zeros();
                left &= left - 1;
                if !holds(first + bit) {
                    *word &= !(1 << bit);
                }
            }
        }
    }

    pub(super) fn len(&self) -> usize {
        self.words.iter().map(|word| word.count_ones() as usize).sum()
    }

    /// The documents, lowest first.
    pub(super) fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        (0_u32..).step_by(64).zip(&self.words).flat_map(|(first, word)| {
            let mut left = *word;
            std::iter::from_fn(move || {
                let bit = (left != 0).then(|| left.trailing_zeros())?;
                left &= left - 1;
                Some(first + bit)
            })
        })
    }
}
