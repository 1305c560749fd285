//! A batch is read as if committed, and an operation can be taken back out of it.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;

/// A view over a map.
struct Map(BTreeMap<Key, Bytes>);

impl View for Map {
    fn get(&self, _: Family, key: &Key) -> Result<Option<Bytes>, StoreError> {
        Ok(self.0.get(key).cloned())
    }

    fn scan(&self, _: Family, span: &Span, visit: Visit<'_>) -> Result<(), StoreError> {
        let _ended: ControlFlow<()> = self
            .0
            .range(span.from..span.until)
            .try_for_each(|(key, value)| visit(key.as_slice(), value));
        Ok(())
    }
}

fn key(byte: u8) -> Key {
    Key::from_parts(&[&[byte]])
}

fn value(byte: u8) -> Bytes {
    vec![byte].into()
}

/// The first `limit` entries of a span.
fn scan(view: &dyn View, span: Span, limit: usize) -> Vec<(u8, u8)> {
    let mut found = Vec::new();
    let mut visit = |key: &[u8], value: &[u8]| {
        if found.len() == limit {
            return ControlFlow::Break(());
        }
        found.push((key[0], value[0]));
        if found.len() == limit {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    };
    view.scan(Family::Meta, &span, &mut visit).unwrap();
    found
}

proptest! {
    /// Whatever was written over whatever was there: the batch reads as the map that would come of it.
    #[test]
    fn a_batch_reads_as_its_outcome(
        base in prop::collection::btree_map(0..20_u8, any::<u8>(), 0..15),
        writes in prop::collection::vec((0..20_u8, any::<Option<u8>>(), any::<bool>()), 0..20),
        (from, until, limit) in (0..20_u8, 0..21_u8, 0..20_usize),
    ) {
        let map = Map(base.iter().map(|(at, byte)| (key(*at), value(*byte))).collect());
        let mut expected = base;
        let mut txn = Txn::new(&map);
        for (at, byte, taken_back) in writes {
            txn.mark();
            match byte {
                Some(byte) => txn.put(Family::Meta, key(at), value(byte)),
                None => txn.delete(Family::Meta, key(at)),
            }
            if taken_back {
                txn.rollback();
            } else {
                match byte {
                    Some(byte) => expected.insert(at, byte),
                    None => expected.remove(&at),
                };
            }
        }
        for at in 0..20 {
            let read = txn.get(Family::Meta, &key(at)).unwrap();
            prop_assert_eq!(read, expected.get(&at).copied().map(value));
            prop_assert_eq!(txn.exists(Family::Meta, &key(at)).unwrap(), expected.contains_key(&at));
        }
        let span = Span { from: key(from), until: key(until) };
        let in_span = expected.iter().filter(|(at, _)| **at >= from && **at < until).take(limit);
        let wanted: Vec<_> = in_span.map(|(at, byte)| (*at, *byte)).collect();
        if from < until && limit > 0 {
            prop_assert_eq!(scan(&txn, span, limit), wanted);
        }
    }
}

#[test]
fn a_rollback_takes_back_one_operation_only() {
    let map = Map(BTreeMap::new());
    let mut txn = Txn::new(&map);
    txn.mark();
    txn.put(Family::Meta, key(1), value(1));
    txn.mark();
    txn.put(Family::Meta, key(1), value(2));
    txn.put(Family::Meta, key(1), value(3));
    txn.put(Family::Meta, key(2), value(2));
    txn.drop_span(
        Family::Meta,
        Span {
            from: key(0),
            until: key(9),
        },
    );
    txn.rollback();
    assert_eq!(txn.get(Family::Meta, &key(1)).unwrap(), Some(value(1)));
    let (writes, drops) = txn.into_parts();
    assert_eq!((writes.len(), drops.len()), (1, 0));
}

#[test]
fn an_untouched_batch_is_empty() {
    let map = Map(BTreeMap::new());
    let mut txn = Txn::new(&map);
    assert!(txn.is_empty());
    txn.mark();
    txn.delete(Family::Meta, key(1));
    assert!(!txn.is_empty());
    txn.rollback();
    assert!(txn.is_empty());
}
