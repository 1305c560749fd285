//! One search, from the two lists to a page.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use aip_protocol::fusion::{Fusion, Ranks};
use aip_protocol::time::Timestamp;
use sha2::{Digest as _, Sha256};

use super::CatalogOptions;
use super::found::{Explain, ExplainMatch, Found, FoundItem, SearchError};
use super::list::{Kept, Listed, Reasons, ResultList, fuse};
use super::shelf::Shelf;
use crate::cursor::{self, Fingerprint, Place};
use crate::error::CatalogError;
use crate::limits::{LEG_DEPTH_MAX, LEG_DEPTH_MIN, LIST_LEVEL_MAX};
use crate::numbers::NumberSet;
use crate::query::Query;
use crate::ranking;
use crate::text::{TextIndex, TextView};
use crate::trust::TrustScores;

/// What a search works with.
#[derive(Debug)]
pub(super) struct Finder {
    text: Arc<TextIndex>,
    trust: Arc<dyn TrustScores>,
    fusion: Fusion,
    depth: usize,
    cursor_key: [u8; 32],
    pub kept: Kept,
    /// Lists that were made, so that each has another id.
    made: AtomicU64,
}

/// A space and the query's vector in it.
pub(super) type Asked = (Arc<Shelf>, Arc<[f32]>);

/// One search, all that can be waited for being there.
#[derive(Debug)]
pub(super) struct Job {
    /// Its text is trimmed.
    pub query: Query,
    pub fingerprint: Fingerprint,
    /// What was shown last.
    pub place: Option<Place>,
    /// The query's vectors; none where there is no list by meaning.
    pub meaning: Option<Vec<Asked>>,
    pub now: Timestamp,
}

/// The index at one moment, and what the filter leaves of it.
struct Snapshot {
    view: TextView,
    admitted: Option<NumberSet>,
}

impl Snapshot {
    fn admits(&self, number: u64) -> bool {
        self.admitted
            .as_ref()
            .is_none_or(|admitted| admitted.contains(number))
    }
}

impl Finder {
    pub(super) fn new(options: &CatalogOptions, text: Arc<TextIndex>, trust: Arc<dyn TrustScores>) -> Self {
        Self {
            text,
            trust,
            fusion: options.fusion,
            depth: options.depth.clamp(LEG_DEPTH_MIN, LEG_DEPTH_MAX),
            cursor_key: options.cursor_key,
            kept: Kept::new(),
            made: AtomicU64::new(0),
        }
    }

    pub(super) const fn cursor_key(&self) -> &[u8; 32] {
        &self.cursor_key
    }

    /// The page that a search asks for. It reads files and counts for long.
    pub(super) fn find(&self, job: &Job) -> Result<Found, SearchError> {
        let view = self.text.view();
        let (filter, trust) = (&job.query.filter, self.trust.as_ref());
        let facets = job
            .query
            .facets
            .then(|| view.facets(filter, trust, job.now))
            .transpose()?;
        let mut found = if job.query.text.is_empty() {
            self.browse(job, &view)?
        } else {
            let admitted = view.admitted(filter, trust, job.now)?;
            self.page(job, &Snapshot { view, admitted })?
        };
        found.facets = facets;
        Ok(found)
    }

    /// All that passes the filter, by trust, then id.
    fn browse(&self, job: &Job, view: &TextView) -> Result<Found, CatalogError> {
        let after = match &job.place {
            Some(Place::Browsed { trust, id }) => Some((*trust, id.as_str())),
            _ => None,
        };
        let limit = usize::try_from(job.query.limit).unwrap_or(usize::MAX);
        // One more tells whether there is another page.
        let rows = view.browse(
            &job.query.filter,
            self.trust.as_ref(),
            job.now,
            after,
            limit.saturating_add(1),
        )?;
        let last = rows.get(limit).and_then(|_| rows.get(limit - 1));
        let place = last.map(|row| Place::Browsed {
            trust: row.trust,
            id: row.id.clone(),
        });
        let explain = job.query.explain.then(|| self.explanation(0.0));
        let item = |(number, trust_score)| {
            Some(FoundItem {
                entry: view.entry(number)?,
                ranks: Ranks::default(),
                relevance_score: None,
                trust_score,
                final_score: None,
                explain: explain.clone(),
            })
        };
        let shown = rows.iter().take(limit).map(|row| (row.number, row.trust));
        Ok(Found {
            items: shown.filter_map(item).collect(),
            next_cursor: place.and_then(|place| cursor::seal(&place, &job.fingerprint, &self.cursor_key)),
            ..Found::default()
        })
    }

    fn page(&self, job: &Job, snapshot: &Snapshot) -> Result<Found, CatalogError> {
        let (mut list, mut offset, mut reasons) = self.begin(job, snapshot)?;
        let limit = usize::try_from(job.query.limit).unwrap_or(usize::MAX);
        let mut items = Vec::with_capacity(limit);
        let mut last = None;
        loop {
            while items.len() < limit
                && let Some(listed) = list.items.get(offset)
            {
                offset += 1;
                // What went, or no longer passes, since the list was made is left out.
                let entry = snapshot
                    .admits(listed.number)
                    .then(|| snapshot.view.entry(listed.number))
                    .flatten();
                if let Some(entry) = entry {
                    let explain = || self.explain(job, snapshot, listed, reasons.as_ref());
                    let explain = job.query.explain.then(explain);
                    last = Some(listed.clone());
                    items.push(shown(listed, entry, explain));
                }
            }
            if items.len() == limit || !list.is_cut || list.level >= LIST_LEVEL_MAX {
                break;
            }
            let (deeper, why) = self.list(job, snapshot, list.level + 1)?;
            Arc::make_mut(&mut list).deepen(deeper);
            reasons = why.or(reasons);
        }
        let has_more = offset < list.items.len() || (list.is_cut && list.level < LIST_LEVEL_MAX);
        let next_cursor = last
            .filter(|_| has_more)
            .and_then(|last| self.next(job, &list, offset, &last));
        let degraded = if list.is_degraded {
            vec!["semantic"]
        } else {
            Vec::new()
        };
        if next_cursor.is_some() {
            self.kept.keep(list);
        }
        Ok(Found {
            items,
            next_cursor,
            degraded,
            facets: None,
        })
    }

    fn next(&self, job: &Job, list: &ResultList, offset: usize, last: &Listed) -> Option<String> {
        let place = Place::Listed {
            list: list.id,
            level: list.level,
            offset: u32::try_from(offset).ok()?,
            score: last.score,
            id: last.id.clone().into_string(),
        };
        cursor::seal(&place, &job.fingerprint, &self.cursor_key)
    }

    /// The list to go on with, and where: the kept one, or one that is made as it was.
    fn begin(
        &self,
        job: &Job,
        snapshot: &Snapshot,
    ) -> Result<(Arc<ResultList>, usize, Option<Reasons>), CatalogError> {
        let Some(Place::Listed {
            list,
            level,
            offset,
            score,
            id,
        }) = &job.place
        else {
            let (list, reasons) = self.list(job, snapshot, 0)?;
            return Ok((Arc::new(list), 0, reasons));
        };
        if let Some(list) = self.kept.get(*list, &job.fingerprint) {
            // Lists are kept without their reasons.
            let reasons = if job.query.explain {
                self.list(job, snapshot, list.level)?.1
            } else {
                None
            };
            return Ok((list, usize::try_from(*offset).unwrap_or(usize::MAX), reasons));
        }
        let (mut made, mut reasons) = self.list(job, snapshot, 0)?;
        while made.level < (*level).min(LIST_LEVEL_MAX) && made.is_cut {
            let (deeper, why) = self.list(job, snapshot, made.level + 1)?;
            made.deepen(deeper);
            reasons = why.or(reasons);
        }
        let after = made.after(*score, id);
        Ok((Arc::new(made), after, reasons))
    }

    /// Asks both sides and fuses what they say.
    fn list(
        &self,
        job: &Job,
        snapshot: &Snapshot,
        level: u8,
    ) -> Result<(ResultList, Option<Reasons>), CatalogError> {
        let Job { query, now, .. } = job;
        let depth = self
            .depth
            .saturating_mul(4_usize.pow(u32::from(level)))
            .min(LEG_DEPTH_MAX);
        let trust = self.trust.as_ref();
        let text = snapshot
            .view
            .search(&query.text, &query.filter, trust, *now, depth)?;
        let asked = job.meaning.as_deref().unwrap_or_default();
        let spaces: Vec<_> = asked
            .iter()
            .map(|(shelf, vector)| (&shelf.space, vector.as_ref()))
            .collect();
        let mut meanings = ranking::meanings(&text, &spaces, snapshot.admitted.as_ref(), depth);
        let is_cut =
            text.hits.len() >= depth || meanings.iter().any(|meaning| meaning.nearest.len() >= depth);
        let mut numbers: Vec<u64> = text.hits.iter().map(|hit| hit.number).collect();
        numbers.extend(
            meanings
                .iter()
                .flat_map(|meaning| meaning.nearest.iter().map(|near| near.number)),
        );
        numbers.sort_unstable();
        numbers.dedup();
        let named = snapshot.view.named(&numbers, trust)?;
        // Vectors may be ahead of the index, or of listings that are gone from it.
        for meaning in &mut meanings {
            meaning.nearest.retain(|near| named.contains_key(&near.number));
            meaning.others.retain(|number, _| named.contains_key(number));
        }
        let lists = ranking::lists(&text, &meanings);
        let reasons = query.explain.then(|| {
            let ids = spaces.iter().map(|(space, _)| space.id());
            Reasons::of(&text, ids.zip(&meanings))
        });
        let list = ResultList {
            id: self.new_id(job),
            fingerprint: job.fingerprint,
            items: fuse(&self.fusion, &lists, job.meaning.is_some(), &named),
            level,
            is_cut: is_cut && depth < LEG_DEPTH_MAX,
            is_degraded: job.meaning.is_none(),
        };
        Ok((list, reasons))
    }

    /// An id that no list of any process of this hub has.
    fn new_id(&self, job: &Job) -> u64 {
        let mut hash = Sha256::new();
        hash.update(self.cursor_key);
        hash.update(job.fingerprint);
        hash.update(job.now.unix_millis().to_le_bytes());
        hash.update(std::process::id().to_le_bytes());
        hash.update(self.made.fetch_add(1, Ordering::Relaxed).to_le_bytes());
        let digest: [u8; 32] = hash.finalize().into();
        digest.first_chunk().copied().map_or(0, u64::from_le_bytes)
    }

    fn explain(&self, job: &Job, snapshot: &Snapshot, listed: &Listed, reasons: Option<&Reasons>) -> Explain {
        let matched = snapshot
            .view
            .explain(listed.number, &job.query.text)
            .unwrap_or_default();
        let matched = matched.into_iter().map(|found| ExplainMatch {
            field: found.field,
            terms: found.terms,
        });
        Explain {
            text: reasons.and_then(|reasons| reasons.text(listed.number)),
            cosines: reasons
                .map(|reasons| reasons.cosines(listed.number))
                .unwrap_or_default(),
            matched: matched.collect(),
            ..self.explanation(listed.rrf)
        }
    }

    fn explanation(&self, rrf: f64) -> Explain {
        let Fusion { k, trust_weight } = self.fusion;
        Explain {
            rrf,
            k,
            trust_weight,
            ..Explain::default()
        }
    }
}

fn shown(listed: &Listed, entry: crate::entry::Entry, explain: Option<Explain>) -> FoundItem {
    FoundItem {
        entry,
        ranks: listed.ranks,
        relevance_score: Some(listed.relevance),
        trust_score: listed.trust,
        final_score: Some(listed.score),
        explain,
    }
}
