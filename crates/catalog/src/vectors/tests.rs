//! What a space promises: the nearest, exactly enough, and still after a crash.

use std::collections::BTreeMap;
use std::fs;

use proptest::prelude::*;

use super::*;
use crate::limits::EXACT_ROWS_MAX;
use crate::numbers::NumberSet;

/// A small generator of numbers that look random and are the same every time.
struct Dice(u64);

impl Dice {
    fn roll(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A vector of length 1 that leans to one side, as those of real models do.
    fn vector(&mut self, dimensions: usize) -> Vec<f32> {
        let mut vector: Vec<f32> = (0..dimensions)
            .map(|at| {
                let part = f32::from(u16::try_from(self.roll() >> 48).unwrap()) / 65_536.0 - 0.5;
                part + if at % 3 == 0 { 0.6 } else { 0.1 }
            })
            .collect();
        let length = vector.iter().map(|part| part * part).sum::<f32>().sqrt();
        for part in &mut vector {
            *part /= length;
        }
        vector
    }
}

fn new(number: u64, vector: Vec<f32>) -> NewVector {
    NewVector {
        number,
        hash: [u8::try_from(number % 251).unwrap(); 16],
        vector,
    }
}

fn fill(space: &Space, dice: &mut Dice, numbers: std::ops::Range<u64>) -> BTreeMap<u64, Vec<f32>> {
    let vectors: BTreeMap<u64, Vec<f32>> = numbers
        .map(|number| (number, dice.vector(space.dimensions())))
        .collect();
    let all: Vec<NewVector> = vectors
        .iter()
        .map(|(number, vector)| new(*number, vector.clone()))
        .collect();
    for batch in all.chunks(100) {
        space.put(batch).unwrap();
    }
    vectors
}

fn exact(vectors: &BTreeMap<u64, Vec<f32>>, query: &[f32], depth: usize) -> Vec<u64> {
    let dot = |vector: &[f32]| vector.iter().zip(query).map(|(a, b)| a * b).sum::<f32>();
    let mut all: Vec<(f32, u64)> = vectors
        .iter()
        .map(|(number, vector)| (dot(vector), *number))
        .collect();
    all.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
    all.iter().take(depth).map(|(_, number)| *number).collect()
}

fn numbers(near: &[Near]) -> Vec<u64> {
    near.iter().map(|near| near.number).collect()
}

fn shared(a: &[u64], b: &[u64]) -> usize {
    a.iter().filter(|number| b.contains(number)).count()
}

#[test]
fn the_nearest_are_found_and_their_cosines_are_right() {
    let mut dice = Dice(1);
    let space = Space::open(None, "test", 96).unwrap();
    let vectors = fill(&space, &mut dice, 1..2_001);
    for _ in 0..10 {
        let query = dice.vector(96);
        let found = space.nearest(&query, None, 50);
        assert!(shared(&numbers(&found), &exact(&vectors, &query, 50)) >= 46);
        for near in &found {
            let vector = &vectors[&near.number];
            let cosine: f32 = vector.iter().zip(&query).map(|(a, b)| a * b).sum();
            assert!((near.score - cosine).abs() < 0.01, "{near:?} is {cosine}");
        }
        assert_eq!(
            space.cosines(&query, numbers(&found)),
            found.iter().map(|near| Some(near.score)).collect::<Vec<_>>()
        );
    }
    assert_eq!(space.cosines(&dice.vector(96), [9_999]), [None]);
}

#[test]
fn signs_choose_well_among_many() {
    let mut dice = Dice(2);
    let space = Space::open(None, "test", 64).unwrap();
    let most = u64::try_from(EXACT_ROWS_MAX).unwrap();
    let vectors = fill(&space, &mut dice, 1..most + 2_001);
    assert!(space.len() > EXACT_ROWS_MAX);
    let admitted: NumberSet = vectors.keys().copied().filter(|number| number % 7 > 0).collect();
    let few: NumberSet = vectors
        .keys()
        .copied()
        .filter(|number| number % 4_000 == 7)
        .collect();
    let mut shared_count = 0;
    for _ in 0..5 {
        // One that is about something: near to a row.
        let near = &vectors[&(dice.roll() % most + 1)];
        let noise = dice.vector(64);
        let query: Vec<f32> = near.iter().zip(&noise).map(|(a, b)| a * 0.8 + b * 0.2).collect();
        let found = numbers(&space.nearest(&query, None, 50));
        shared_count += shared(&found, &exact(&vectors, &query, 50));
        assert_eq!(found[0], exact(&vectors, &query, 1)[0]);
        let found = numbers(&space.nearest(&query, Some(&admitted), 50));
        assert_eq!(found.len(), 50);
        assert!(found.iter().all(|number| number % 7 > 0));
        // Where few are admitted, all of them are found.
        let mut found = numbers(&space.nearest(&query, Some(&few), 50));
        found.sort_unstable();
        assert!(found.iter().copied().eq(few.iter()), "{found:?}");
    }
    assert!(shared_count >= 5 * 42, "{shared_count}");
}

#[test]
fn equals_go_by_number_and_what_is_blank_is_never_found() {
    let space = Space::open(None, "test", 4).unwrap();
    let same = vec![0.5; 4];
    let batch: Vec<NewVector> = [9, 3, 7, 5].map(|number| new(number, same.clone())).into();
    space.put(&batch).unwrap();
    space
        .put(&[new(1, vec![0.0; 4]), new(2, vec![f32::NAN; 4])])
        .unwrap();
    space.put(&[new(4, vec![0.5; 3])]).unwrap();
    assert_eq!(numbers(&space.nearest(&same, None, 3)), [3, 5, 7]);
    assert_eq!(numbers(&space.nearest(&same, None, 10)), [3, 5, 7, 9]);
    assert_eq!(
        space
            .cosines(&same, [1, 3])
            .iter()
            .filter(|cosine| cosine.is_none())
            .count(),
        1
    );
    assert!(space.nearest(&[0.0; 4], None, 10).is_empty());
    assert!(space.nearest(&[f32::INFINITY; 4], None, 10).is_empty());
    assert!(space.nearest(&[0.5; 3], None, 10).is_empty());
    assert!(space.nearest(&same, None, 0).is_empty());
    assert_eq!(space.len(), 7);
}

#[test]
fn the_mean_is_set_once_and_kept() {
    let dir = tempfile::tempdir().unwrap();
    let open = || Space::open(Some(dir.path()), "test", 8).unwrap();
    let space = open();
    let mut dice = Dice(3);
    let probes: Vec<Vec<f32>> = (0..9).map(|_| dice.vector(8)).collect();
    space.centre(&[vec![f32::NAN; 8], vec![1.0; 3]]).unwrap();
    assert!(!space.is_centred());
    space.centre(&probes).unwrap();
    let vector = dice.vector(8);
    let all: Vec<NewVector> = (1..=200).map(|number| new(number, vector.clone())).collect();
    for batch in all.chunks(10) {
        space.put(batch).unwrap();
    }
    let found = space.nearest(&vector, None, 300);
    assert_eq!(numbers(&found), (1..=200).collect::<Vec<_>>());
    assert!(found.iter().all(|near| (near.score - 1.0).abs() < 0.02));
    space.centre(&probes[..1]).unwrap();
    assert_eq!(space.nearest(&vector, None, 300), found);
    drop(space);
    assert!(open().is_centred());
    assert_eq!(open().nearest(&vector, None, 300), found);
}

#[test]
fn codes_hang_on_nothing_but_the_vector() {
    let mut dice = Dice(10);
    let probes: Vec<Vec<f32>> = (0..9).map(|_| dice.vector(32)).collect();
    let all: Vec<NewVector> = (1..=100).map(|number| new(number, dice.vector(32))).collect();
    let (forth, back) = (
        Space::open(None, "a", 32).unwrap(),
        Space::open(None, "b", 32).unwrap(),
    );
    for space in [&forth, &back] {
        space.centre(&probes).unwrap();
    }
    for one in &all {
        forth.put(std::slice::from_ref(one)).unwrap();
    }
    back.put(&all.iter().rev().cloned().collect::<Vec<_>>()).unwrap();
    let query = dice.vector(32);
    assert_eq!(forth.nearest(&query, None, 100), back.nearest(&query, None, 100));
}

#[test]
fn long_vectors_do_not_overflow() {
    let space = Space::open(None, "test", 8_192).unwrap();
    let part = (1.0_f32 / 8_192.0).sqrt();
    space
        .put(&[new(1, vec![part; 8_192]), new(2, vec![-part; 8_192])])
        .unwrap();
    let found = space.nearest(&vec![part; 8_192], None, 2);
    assert_eq!(numbers(&found), [1, 2]);
    assert!((found[0].score - 1.0).abs() < 0.01 && (found[1].score + 1.0).abs() < 0.01);
}

#[test]
fn what_was_kept_is_there_after_a_restart() {
    let dir = tempfile::tempdir().unwrap();
    let open = || Space::open(Some(dir.path()), "test-1.0", 32).unwrap();
    let mut dice = Dice(4);
    let space = open();
    fill(&space, &mut dice, 1..300);
    space.remove(&[5, 6, 7, 4_000]).unwrap();
    space.put(&[new(8, dice.vector(32))]).unwrap();
    space.settle(77).unwrap();
    let query = dice.vector(32);
    let found = space.nearest(&query, None, 400);
    let hash = space.hash(8);
    drop(space);

    let space = open();
    assert_eq!((space.len(), space.settled()), (296, 77));
    assert_eq!(space.nearest(&query, None, 400), found);
    assert_eq!((space.hash(8), space.hash(5)), (hash, None));
    assert_eq!(space.numbers().len(), 296);
}

#[test]
fn a_torn_end_is_cut_off_wherever_it_is() {
    let dir = tempfile::tempdir().unwrap();
    let open = || Space::open(Some(dir.path()), "test", 16).unwrap();
    let mut dice = Dice(5);
    fill(&open(), &mut dice, 1..6);
    open().settle(5).unwrap();
    let path = dir.path().join("test.vec");
    let whole = fs::read(&path).unwrap();
    for len in 0..whole.len() {
        fs::write(&path, &whole[..len]).unwrap();
        let space = open();
        let kept = space.len();
        assert!(kept <= 5 && space.settled() == 0, "{len}: {kept}");
        // It goes on from there.
        space.put(&[new(9, dice.vector(16))]).unwrap();
        space.settle(9).unwrap();
        drop(space);
        let space = open();
        assert_eq!((space.len(), space.settled()), (kept + 1, 9), "{len}");
    }
}

#[test]
fn a_damaged_record_ends_the_file() {
    let dir = tempfile::tempdir().unwrap();
    let open = || Space::open(Some(dir.path()), "test", 16).unwrap();
    fill(&open(), &mut Dice(6), 1..6);
    open().settle(5).unwrap();
    let path = dir.path().join("test.vec");
    let whole = fs::read(&path).unwrap();
    for at in 0..whole.len() {
        let mut damaged = whole.clone();
        damaged[at] ^= 0x40;
        fs::write(&path, damaged).unwrap();
        let space = open();
        assert!(space.len() <= 5 && space.settled() == 0, "{at}");
    }
}

#[test]
fn a_file_of_another_form_is_begun_anew() {
    let dir = tempfile::tempdir().unwrap();
    let open = |dimensions| Space::open(Some(dir.path()), "test", dimensions).unwrap();
    fill(&open(16), &mut Dice(7), 1..6);
    assert_eq!(open(16).len(), 5);
    assert_eq!(open(8).len(), 0);
    assert_eq!(open(16).len(), 0);
    Space::open(Some(dir.path()), "other", 16).unwrap();
    Space::forget_others(dir.path(), &["other"]).unwrap();
    assert!(!dir.path().join("test.vec").exists() && dir.path().join("other.vec").exists());
}

#[test]
fn ids_that_are_no_names_of_files_are_refused() {
    for id in ["", "..", ".hidden", "a/b", "A", "a b", "é", &"a".repeat(129)] {
        assert!(Space::open(None, id, 4).is_err(), "{id}");
    }
    assert!(Space::open(None, "good", 0).is_err());
}

#[test]
fn the_file_does_not_grow_with_what_is_gone() {
    let dir = tempfile::tempdir().unwrap();
    let space = Space::open(Some(dir.path()), "test", 8).unwrap();
    let mut dice = Dice(8);
    for _ in 0..60 {
        fill(&space, &mut dice, 1..100);
    }
    assert!(space.bytes() < 2_500 * 41, "{}", space.bytes());
    drop(space);
    let space = Space::open(Some(dir.path()), "test", 8).unwrap();
    assert_eq!(space.len(), 99);
}

#[derive(Debug, Clone)]
enum Act {
    Put(u64),
    Remove(u64),
    Reopen,
}

fn act() -> impl Strategy<Value = Act> {
    prop_oneof![
        6 => (1_u64..40).prop_map(Act::Put),
        3 => (1_u64..40).prop_map(Act::Remove),
        1 => Just(Act::Reopen),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Whatever happens in whatever order, a space holds what a map would.
    #[test]
    fn it_is_a_map(acts in proptest::collection::vec(act(), 0..120)) {
        let dir = tempfile::tempdir().unwrap();
        let open = || Space::open(Some(dir.path()), "test", 8).unwrap();
        let mut space = open();
        let mut expected = BTreeMap::new();
        let mut dice = Dice(9);
        for act in acts {
            match act {
                Act::Put(number) => {
                    let mut one = new(number, dice.vector(8));
                    one.hash = dice.roll().to_le_bytes().repeat(2).try_into().unwrap();
                    expected.insert(number, one.hash);
                    space.put(&[one]).unwrap();
                }
                Act::Remove(number) => {
                    expected.remove(&number);
                    space.remove(&[number]).unwrap();
                }
                Act::Reopen => {
                    drop(space);
                    space = open();
                }
            }
        }
        prop_assert!(space.numbers().iter().eq(expected.keys().copied()));
        for (number, hash) in &expected {
            prop_assert_eq!(space.hash(*number), Some(*hash));
        }
        let mut found = numbers(&space.nearest(&dice.vector(8), None, 100));
        found.sort_unstable();
        prop_assert!(found.iter().eq(expected.keys()));
    }
}
