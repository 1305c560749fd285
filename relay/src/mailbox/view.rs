//! An ordered key-value view of a store, and a batch of writes that can be read before it is committed.
//!
//! The rules of a mailbox ([`super::rules`]) are written once, over [`View`] and [`Txn`]; a backend brings
//! the view and commits the writes. Two operations in one batch see each other through the [`Txn`].

use std::collections::BTreeMap;
use std::fmt;
use std::ops::ControlFlow;

use bytes::Bytes;

use super::error::StoreError;

/// A column family; what each holds is told where its keys are made, in [`super::keys`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Family {
    Meta,
    Message,
    Mailbox,
    Sender,
    Attempt,
    Expiry,
    Dedup,
    Dead,
    Status,
}

/// The longest key there is (a status: bucket, sender, id, recipient) with room to spare.
const KEY_BYTES_MAX: usize = 55;

/// A key, kept inline: batches hold thousands of them.
#[derive(Clone, Copy)]
pub(crate) struct Key {
    len: u8,
    bytes: [u8; KEY_BYTES_MAX],
}

impl Key {
    /// Joins the parts. What passes the bound is cut, which the fixed-width parts of [`super::keys`] never
    /// reach.
    pub(crate) fn from_parts(parts: &[&[u8]]) -> Self {
        let mut bytes = [0; KEY_BYTES_MAX];
        let mut len = 0_u8;
        for (to, from) in bytes.iter_mut().zip(parts.iter().copied().flatten()) {
            *to = *from;
            len += 1;
        }
        Self { len, bytes }
    }

    pub(crate) fn as_slice(&self) -> &[u8] {
        self.bytes.get(..usize::from(self.len)).unwrap_or_default()
    }
}

impl PartialEq for Key {
    fn eq(&self, other: &Self) -> bool {
        self.as_slice() == other.as_slice()
    }
}

impl Eq for Key {}

impl PartialOrd for Key {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Key {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.as_slice().cmp(other.as_slice())
    }
}

impl std::hash::Hash for Key {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.as_slice().hash(state);
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_slice()
            .iter()
            .try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// Keys from `from` up to, not including, `until`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Span {
    pub(crate) from: Key,
    pub(crate) until: Key,
}

/// Gets each key and value of a scan; breaks to end it.
pub(crate) type Visit<'a> = &'a mut dyn FnMut(&[u8], &[u8]) -> ControlFlow<()>;

/// Reads of an ordered store.
pub(crate) trait View {
    fn get(&self, family: Family, key: &Key) -> Result<Option<Bytes>, StoreError>;

    fn exists(&self, family: Family, key: &Key) -> Result<bool, StoreError> {
        Ok(self.get(family, key)?.is_some())
    }

    /// Visits in ascending order of keys.
    fn scan(&self, family: Family, span: &Span, visit: Visit<'_>) -> Result<(), StoreError>;
}

/// The writes of a batch: a value, or nothing for a deletion.
pub(crate) type Writes = BTreeMap<(Family, Key), Option<Bytes>>;

/// What a write took the place of in its batch, if anything.
type Before = ((Family, Key), Option<Option<Bytes>>);

/// A batch of writes over a view, readable as if it were committed.
pub(crate) struct Txn<'a> {
    base: &'a dyn View,
    writes: Writes,
    drops: Vec<(Family, Span)>,
    undo: Vec<Before>,
    drops_marked: usize,
}

impl<'a> Txn<'a> {
    pub(crate) fn new(base: &'a dyn View) -> Self {
        Self {
            base,
            writes: Writes::new(),
            drops: Vec::new(),
            undo: Vec::new(),
            drops_marked: 0,
        }
    }

    pub(crate) fn put(&mut self, family: Family, key: Key, value: impl Into<Bytes>) {
        self.write(family, key, Some(value.into()));
    }

    pub(crate) fn delete(&mut self, family: Family, key: Key) {
        self.write(family, key, None);
    }

    /// Drops a whole range at commit. Reads of this batch do not see it: only ranges that nobody reads any
    /// more.
    pub(crate) fn drop_span(&mut self, family: Family, span: Span) {
        self.drops.push((family, span));
    }

    fn write(&mut self, family: Family, key: Key, value: Option<Bytes>) {
        let before = self.writes.insert((family, key), value);
        self.undo.push(((family, key), before));
    }

    /// Everything from here on is one operation for [`Txn::rollback`].
    pub(crate) fn mark(&mut self) {
        self.undo.clear();
        self.drops_marked = self.drops.len();
    }

    /// Takes back what was written since the mark.
    pub(crate) fn rollback(&mut self) {
        while let Some((place, before)) = self.undo.pop() {
            match before {
                Some(before) => self.writes.insert(place, before),
                None => self.writes.remove(&place),
            };
        }
        self.drops.truncate(self.drops_marked);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.writes.is_empty() && self.drops.is_empty()
    }

    /// The writes and the ranges to drop, for the backend to commit.
    pub(crate) fn into_parts(self) -> (Writes, Vec<(Family, Span)>) {
        (self.writes, self.drops)
    }
}

impl View for Txn<'_> {
    fn get(&self, family: Family, key: &Key) -> Result<Option<Bytes>, StoreError> {
        match self.writes.get(&(family, *key)) {
            Some(written) => Ok(written.clone()),
            None => self.base.get(family, key),
        }
    }

    fn exists(&self, family: Family, key: &Key) -> Result<bool, StoreError> {
        match self.writes.get(&(family, *key)) {
            Some(written) => Ok(written.is_some()),
            None => self.base.exists(family, key),
        }
    }

    fn scan(&self, family: Family, span: &Span, visit: Visit<'_>) -> Result<(), StoreError> {
        if span.from >= span.until {
            return Ok(());
        }
        let mut own = self
            .writes
            .range((family, span.from)..(family, span.until))
            .peekable();
        let mut flow = ControlFlow::Continue(());
        self.base.scan(family, span, &mut |key, value| {
            while let Some(((_, mine), written)) = own.next_if(|((_, mine), _)| mine.as_slice() < key) {
                flow = show(mine, written.as_ref(), visit);
                flow?;
            }
            flow = match own.next_if(|((_, mine), _)| mine.as_slice() == key) {
                Some(((_, mine), written)) => show(mine, written.as_ref(), visit),
                None => visit(key, value),
            };
            flow
        })?;
        if flow.is_continue() {
            // The end of the span ends the walk as well as a break does.
            let _ended = own.try_for_each(|((_, mine), written)| show(mine, written.as_ref(), visit));
        }
        Ok(())
    }
}

fn show(key: &Key, written: Option<&Bytes>, visit: Visit<'_>) -> ControlFlow<()> {
    written.map_or(ControlFlow::Continue(()), |value| visit(key.as_slice(), value))
}

#[cfg(test)]
mod tests;
