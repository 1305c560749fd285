//! A window: which items of one peer and epoch are settled, and how it is written down.
//!
//! The peer's numbers are contiguous, so that a window is one number and, while items overtake each other, a few runs above
//! it. They are written as text: each run as the numbers that it skips and, after a `+`, its further members. `2+2 4` above
//! 10 is 12, 13, 14 and 18.

use aip_federation::peers::Noted;
use aip_protocol::peer::{Known, Received};

/// More numbers than any window has; text that claims more is damaged.
const ABOVE_READ_MAX: u64 = 1 << 20;

/// What is settled. With which codes items were refused is kept beside it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Window(Received);

impl Window {
    /// A window as it was written down; `None` if it cannot be read.
    pub(crate) fn read(floor: u64, text: &str) -> Option<Self> {
        let (mut above, mut last, mut left) = (Vec::new(), floor, ABOVE_READ_MAX);
        for run in text.split(' ').filter(|run| !run.is_empty()) {
            let (skip, more) = run.split_once('+').unwrap_or((run, "0"));
            let first = last.checked_add(skip.parse().ok()?)?;
            let more: u64 = more.parse().ok()?;
            last = first.checked_add(more)?;
            left = left.checked_sub(more.checked_add(1)?)?;
            above.extend(first..=last);
        }
        Some(Self(Received::new(floor, above)))
    }

    /// Everything up to here is settled.
    pub(crate) fn floor(&self) -> u64 {
        self.0.acked_through()
    }

    /// How many are settled above that.
    pub(crate) fn above_count(&self) -> u64 {
        self.0.above().len() as u64
    }

    /// Which those are, as text.
    pub(crate) fn above_text(&self) -> String {
        let mut runs: Vec<(u64, u64)> = Vec::new();
        for seq in self.0.above() {
            match runs.last_mut() {
                Some((_, end)) if end.checked_add(1) == Some(seq) => *end = seq,
                _ => runs.push((seq, seq)),
            }
        }
        let mut last = self.floor();
        let texts = runs.into_iter().map(|(first, end)| {
            let (skip, more) = (first.saturating_sub(last), end.saturating_sub(first));
            last = end;
            if more == 0 {
                skip.to_string()
            } else {
                format!("{skip}+{more}")
            }
        });
        texts.collect::<Vec<_>>().join(" ")
    }

    /// Whether an item is settled, one way or the other.
    pub(crate) fn has(&self, peer_seq: u64) -> bool {
        self.0.known(peer_seq) != Known::New
    }

    /// Settles everything up to a number.
    pub(crate) fn pass_over(&mut self, through: u64) {
        let above: Vec<_> = self.0.above().collect();
        self.0 = Received::new(self.floor().max(through), above);
    }

    /// Settles items, and says which of them were not yet.
    pub(crate) fn note(&mut self, noted: &[Noted]) -> Vec<Noted> {
        let is_new = |one: &&Noted| {
            let is_new = !self.has(one.peer_seq);
            self.0.settle(one.peer_seq);
            is_new
        };
        noted.iter().filter(is_new).copied().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn window(seqs: impl IntoIterator<Item = u64>) -> Window {
        let mut window = Window::default();
        let stored = |peer_seq| Noted {
            peer_seq,
            refused: None,
        };
        window.note(&seqs.into_iter().map(stored).collect::<Vec<_>>());
        window
    }

    #[test]
    fn a_window_is_read_as_it_was_written() {
        for (seqs, floor, text) in [
            (vec![], 0, ""),
            (vec![1, 2, 3], 3, ""),
            (vec![2], 0, "2"),
            ((1..=10).chain([12, 13, 14, 18]).collect(), 10, "2+2 4"),
            ((1..=4).chain(6..=900).chain([902]).collect(), 4, "2+894 2"),
            (vec![u64::MAX - 1, u64::MAX], 0, "18446744073709551614+1"),
        ] {
            let window = window(seqs);
            assert_eq!((window.floor(), window.above_text().as_str()), (floor, text));
            assert_eq!(Window::read(floor, text), Some(window));
        }
    }

    #[test]
    fn damaged_text_is_not_a_window() {
        for text in [
            "x",
            "2+",
            "+2",
            "-2",
            "2+18446744073709551615",
            "1 18446744073709551615",
            "2+1048576",
        ] {
            assert_eq!(Window::read(1, text), None, "{text}");
        }
    }

    #[test]
    fn what_is_passed_over_closes_up() {
        for (through, floor, text) in [(1, 2, "2+1"), (3, 5, ""), (4, 5, ""), (9, 9, "")] {
            let mut some = window([1, 2, 4, 5]);
            some.pass_over(through);
            assert_eq!(
                (some.floor(), some.above_text().as_str()),
                (floor, text),
                "{through}"
            );
        }
    }

    #[test]
    fn only_what_was_not_settled_is_new() {
        let mut some = window([1, 2, 4]);
        let noted = [2, 3, 3, 4, 7].map(|peer_seq| Noted {
            peer_seq,
            refused: None,
        });
        let new: Vec<_> = some.note(&noted).iter().map(|one| one.peer_seq).collect();
        assert_eq!((new, some.floor(), some.above_count()), (vec![3, 7], 4, 1));
    }
}
