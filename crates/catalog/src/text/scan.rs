//! Walks the lists of a plan and keeps the best documents.
//!
//! Scores are whole numbers (hundred-thousandths and finer), so that a sum is the same in whatever order it is made: equal
//! documents get equal scores in every segment, and ties are real ties. Lists that could not lift a document among the best by
//! themselves are only asked about documents that others found (`MaxScore`).

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;

use tantivy::columnar::StrColumn;
use tantivy::fieldnorm::FieldNormReader;
use tantivy::postings::BlockSegmentPostings;
use tantivy::schema::IndexRecordOption;
use tantivy::{DocId, Searcher, SegmentReader, TERMINATED};

use super::bits::Bits;
use super::plan::{Documents, List, Norms};
use super::schema::column;

/// Points for a score of 1.
const POINTS: f64 = 262_144.0;

/// Documents that are added up at once.
const WINDOW: u32 = 4096;

/// Where fewer documents than one in so many are admitted, each of them is looked at instead of every list.
const FEW: usize = 64;

/// A document and what it got.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Candidate {
    pub(super) points: u32,
    pub(super) segment: u32,
    pub(super) document: DocId,
    pub(super) id: String,
}

impl Candidate {
    /// The score that the points stand for.
    pub(super) fn score(&self) -> f64 {
        f64::from(self.points) / POINTS
    }
}

/// The best documents that are not deleted, highest score first, equal ones by id. `admitted` has one set for each segment;
/// none admits all.
pub(super) fn best(
    searcher: &Searcher,
    lists: &[List],
    admitted: &[Option<Bits>],
    depth: usize,
) -> tantivy::Result<Vec<Candidate>> {
    let mut kept: Vec<(u32, u32, DocId, u64)> = Vec::new();
    let mut floor = 1;
    for (place, (segment, bits)) in (0_u32..).zip(searcher.segment_readers().iter().zip(admitted)) {
        let Some(ids) = segment.fast_fields().str(column::ID)? else {
            continue;
        };
        let mut walk = Walk::new(segment, place, lists, &ids, depth, floor)?;
        walk.run(bits.as_ref(), segment.max_doc());
        kept.extend(
            walk.best
                .into_iter()
                .map(|Reverse((points, Reverse(ord), document))| (points, place, document, ord)),
        );
        kept.sort_by_key(|(points, ..)| Reverse(*points));
        if let Some((points, ..)) = depth.checked_sub(1).and_then(|last| kept.get(last)) {
            floor = *points;
            kept.retain(|(points, ..)| *points >= floor);
        }
    }
    let mut candidates = named(searcher, kept)?;
    candidates.sort_by(|a, b| b.points.cmp(&a.points).then_with(|| a.id.cmp(&b.id)));
    candidates.truncate(depth);
    Ok(candidates)
}

/// Which lists hold each candidate, by their places in `lists`, one bit each.
pub(super) fn matches(
    searcher: &Searcher,
    lists: &[List],
    candidates: &[Candidate],
) -> tantivy::Result<Vec<u128>> {
    let mut order: Vec<usize> = (0..candidates.len()).collect();
    order.sort_by_key(|place| {
        candidates
            .get(*place)
            .map(|candidate| (candidate.segment, candidate.document))
    });
    let mut masks = vec![0_u128; candidates.len()];
    let mut open: Option<(u32, Vec<(usize, Cursor)>)> = None;
    for place in order {
        let Some(candidate) = candidates.get(place) else {
            continue;
        };
        if open
            .as_ref()
            .is_none_or(|(segment, _)| *segment != candidate.segment)
        {
            let segment = searcher.segment_reader(candidate.segment);
            open = Some((candidate.segment, cursors(segment, candidate.segment, lists)?));
        }
        let (Some((_, cursors)), Some(mask)) = (&mut open, masks.get_mut(place)) else {
            continue;
        };
        for (list, cursor) in cursors {
            if cursor.points_at(candidate.document).is_some() {
                *mask |= 1 << *list;
            }
        }
    }
    Ok(masks)
}

fn named(searcher: &Searcher, mut kept: Vec<(u32, u32, DocId, u64)>) -> tantivy::Result<Vec<Candidate>> {
    kept.sort_by_key(|(_, segment, _, ord)| (*segment, *ord));
    let mut candidates = Vec::with_capacity(kept.len());
    for group in kept.chunk_by(|a, b| a.1 == b.1) {
        let Some((_, segment, ..)) = group.first() else {
            continue;
        };
        let Some(ids) = searcher.segment_reader(*segment).fast_fields().str(column::ID)? else {
            continue;
        };
        let ords: Vec<u64> = group.iter().map(|(.., ord)| *ord).collect();
        let mut names = Vec::with_capacity(ords.len());
        ids.dictionary()
            .sorted_ords_to_term_cb(&ords, |id| names.push(String::from_utf8_lossy(id).into_owned()))?;
        let rows = group.iter().zip(names);
        candidates.extend(rows.map(|(&(points, segment, document, _), id)| Candidate {
            points,
            segment,
            document,
            id,
        }));
    }
    Ok(candidates)
}

type Best = BinaryHeap<Reverse<(u32, Reverse<u64>, DocId)>>;

/// The walk through one segment.
struct Walk<'a> {
    /// The lists that can give the most first.
    cursors: Vec<Cursor>,
    /// What all cursors from this one on can give together.
    rest: Vec<u32>,
    segment: &'a SegmentReader,
    ids: &'a StrColumn,
    best: Best,
    depth: usize,
    /// Fewer points than these are of no use.
    floor: u32,
}

impl<'a> Walk<'a> {
    fn new(
        segment: &'a SegmentReader,
        place: u32,
        lists: &[List],
        ids: &'a StrColumn,
        depth: usize,
        floor: u32,
    ) -> tantivy::Result<Self> {
        let mut cursors: Vec<Cursor> = cursors(segment, place, lists)?
            .into_iter()
            .map(|(_, cursor)| cursor)
            .collect();
        cursors.sort_by_key(|cursor| Reverse(cursor.most));
        let mut rest = vec![0_u32];
        for cursor in cursors.iter().rev() {
            rest.push(rest.last().copied().unwrap_or(0).saturating_add(cursor.most));
        }
        rest.reverse();
        Ok(Self {
            cursors,
            rest,
            segment,
            ids,
            best: Best::new(),
            depth,
            floor,
        })
    }

    fn run(&mut self, admitted: Option<&Bits>, documents: u32) {
        if self.depth == 0 {
            return;
        }
        match admitted {
            Some(bits) if bits.len() * FEW < documents as usize => {
                for document in bits.iter() {
                    self.complete(document, 0, 0);
                }
            }
            _ => self.run_windows(admitted),
        }
    }

    fn run_windows(&mut self, admitted: Option<&Bits>) {
        let mut sums = vec![0_u32; WINDOW as usize];
        loop {
            let needed = self.needed();
            let essential = self.cursors.get_mut(..needed).unwrap_or_default();
            let Some(first) = essential.iter().filter_map(Cursor::next).min() else {
                return;
            };
            for cursor in essential {
                cursor.add_up(first, &mut sums);
            }
            for (document, sum) in (first..).zip(&mut sums) {
                let points = std::mem::take(sum);
                if points > 0 && admitted.is_none_or(|bits| bits.contains(document)) {
                    self.complete(document, points, needed);
                }
            }
        }
    }

    /// How many of the first cursors a document must be found by, in at least one, to be of use.
    fn needed(&self) -> usize {
        self.rest
            .iter()
            .position(|rest| *rest < self.floor)
            .unwrap_or(self.cursors.len())
    }

    /// Adds what the cursors from `from` on give to the document, and keeps it if it is among the best.
    fn complete(&mut self, document: DocId, mut points: u32, from: usize) {
        let cursors = self.cursors.get_mut(from..).unwrap_or_default();
        let rest = self.rest.get(from..).unwrap_or_default();
        for (cursor, rest) in cursors.iter_mut().zip(rest) {
            if points.saturating_add(*rest) < self.floor {
                return;
            }
            points = points.saturating_add(cursor.points_at(document).unwrap_or(0));
        }
        if points < self.floor || points == 0 || self.segment.is_deleted(document) {
            return;
        }
        let Some(ord) = self.ids.ords().first(document) else {
            return;
        };
        let entry = Reverse((points, Reverse(ord), document));
        if self.best.len() < self.depth {
            self.best.push(entry);
        } else if self.best.peek().is_some_and(|worst| entry < *worst) {
            self.best.pop();
            self.best.push(entry);
        }
        if let (true, Some(Reverse((worst, ..)))) = (self.best.len() >= self.depth, self.best.peek()) {
            self.floor = self.floor.max(*worst);
        }
    }
}

/// One list in one segment.
struct Cursor {
    postings: Postings,
    weight: f64,
    /// The most points it gives.
    most: u32,
}

enum Postings {
    Blocks {
        blocks: Box<BlockSegmentPostings>,
        at: usize,
        lengths: Option<(FieldNormReader, Arc<Norms>)>,
    },
    Found {
        documents: Vec<DocId>,
        at: usize,
    },
}

fn cursors(segment: &SegmentReader, place: u32, lists: &[List]) -> tantivy::Result<Vec<(usize, Cursor)>> {
    let mut cursors = Vec::new();
    for (number, list) in lists.iter().enumerate() {
        let postings = match &list.documents {
            Documents::Term { field, infos } => {
                let Some(info) = infos.get(place as usize).and_then(Option::as_ref) else {
                    continue;
                };
                let index = segment.inverted_index(*field)?;
                let blocks = index.read_block_postings_from_terminfo(info, IndexRecordOption::WithFreqs)?;
                let lengths = match &list.norms {
                    Some(norms) => Some((segment.get_fieldnorms_reader(*field)?, Arc::clone(norms))),
                    None => None,
                };
                Postings::Blocks {
                    blocks: Box::new(blocks),
                    at: 0,
                    lengths,
                }
            }
            Documents::Found(found) => {
                let documents = found.get(place as usize).cloned().unwrap_or_default();
                Postings::Found { documents, at: 0 }
            }
        };
        cursors.push((
            number,
            Cursor {
                postings,
                weight: list.weight,
                most: points(list.weight).saturating_add(1),
            },
        ));
    }
    Ok(cursors)
}

impl Cursor {
    /// The next document, if there is one.
    fn next(&self) -> Option<DocId> {
        match &self.postings {
            Postings::Blocks { blocks, at, .. } => blocks.docs().get(*at).copied(),
            Postings::Found { documents, at } => documents.get(*at).copied(),
        }
    }

    /// Adds the points of every document of the window to its sum, and goes past the window.
    fn add_up(&mut self, first: DocId, sums: &mut [u32]) {
        let weight = self.weight;
        match &mut self.postings {
            Postings::Found { documents, at } => {
                while let Some(sum) = documents
                    .get(*at)
                    .and_then(|document| sums.get_mut((document - first) as usize))
                {
                    *sum = sum.saturating_add(points(weight));
                    *at += 1;
                }
            }
            Postings::Blocks { blocks, at, lengths } => loop {
                let documents = blocks.docs().get(*at..).unwrap_or_default();
                // Where terms are not counted there are no counts, and none are needed.
                let freqs = blocks
                    .freqs()
                    .get(*at..)
                    .unwrap_or_default()
                    .iter()
                    .copied()
                    .chain(std::iter::repeat(1));
                for (document, freq) in documents.iter().zip(freqs) {
                    let Some(sum) = sums.get_mut((document - first) as usize) else {
                        return;
                    };
                    *sum = sum.saturating_add(points(weight * share(lengths.as_ref(), *document, freq)));
                    *at += 1;
                }
                blocks.advance();
                *at = 0;
                if blocks.block_len() == 0 {
                    return;
                }
            },
        }
    }

    /// What the document gets, if it is in the list. Documents are asked for in rising order.
    fn points_at(&mut self, document: DocId) -> Option<u32> {
        match &mut self.postings {
            Postings::Found { documents, at } => {
                *at += documents.get(*at..)?.partition_point(|other| *other < document);
                (documents.get(*at) == Some(&document)).then(|| points(self.weight))
            }
            Postings::Blocks { blocks, at, lengths } => {
                *at = blocks.seek(document);
                let found = blocks.docs().get(*at).copied().unwrap_or(TERMINATED);
                (found == document)
                    .then(|| points(self.weight * share(lengths.as_ref(), document, blocks.freq(*at))))
            }
        }
    }
}

/// The share of its weight that a list gives (BM25): all of it where length does not count.
#[inline]
fn share(lengths: Option<&(FieldNormReader, Arc<Norms>)>, document: DocId, freq: u32) -> f64 {
    let Some((reader, norms)) = lengths else {
        return 1.0;
    };
    let norm = norms
        .get(usize::from(reader.fieldnorm_id(document)))
        .copied()
        .unwrap_or(1.0);
    let freq = f64::from(freq);
    freq / (freq + norm)
}

#[inline]
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "weights are positive; a cast saturates"
)]
fn points(score: f64) -> u32 {
    (score * POINTS) as u32
}
