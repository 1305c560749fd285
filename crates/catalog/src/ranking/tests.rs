//! The lists, from hits that are made up.

use super::*;

fn hit(number: u64, score: f64, coverage: f64) -> TextHit {
    TextHit {
        number,
        id: format!("lst_{number}"),
        score,
        coverage,
        exact: false,
    }
}

/// What text found for a query of four rare words.
fn text(hits: Vec<TextHit>, coverage: f64) -> TextHits {
    TextHits {
        hits,
        coverage,
        evidence: 4.0 * coverage,
        ..TextHits::default()
    }
}

fn near(list: &[(u64, f32)]) -> Meaning {
    let nearest = list
        .iter()
        .map(|(number, score)| Near {
            number: *number,
            score: *score,
        })
        .collect();
    Meaning {
        nearest,
        others: HashMap::new(),
    }
}

#[test]
fn without_meaning_the_list_is_the_texts() {
    let lists = lists(&text(vec![hit(3, 2.0, 0.1), hit(1, 1.0, 0.1)], 0.1), &[]);
    assert_eq!((lists.fts, lists.semantic), (vec![3, 1], vec![]));
}

#[test]
fn without_text_the_list_is_that_of_meaning() {
    let lists = lists(&text(Vec::new(), 0.0), &[near(&[(5, 0.9), (2, 0.8), (9, 0.1)])]);
    assert_eq!((lists.fts, lists.semantic), (vec![], vec![5, 2, 9]));
}

#[test]
fn what_is_said_in_full_goes_by_text() {
    // Text: 1 before 2; meaning: 3, 2, 1.
    let meaning = near(&[(3, 0.9), (2, 0.8), (1, 0.1)]);
    let lists = lists(&text(vec![hit(1, 2.0, 1.0), hit(2, 1.0, 0.5)], 1.0), &[meaning]);
    assert_eq!((lists.fts, lists.semantic), (vec![1, 2], vec![1, 2, 3]));
}

#[test]
fn what_is_said_by_chance_goes_by_meaning() {
    let meaning = near(&[(3, 0.9), (2, 0.8), (1, 0.1)]);
    let lists = lists(&text(vec![hit(1, 2.0, 0.1), hit(2, 1.0, 0.1)], 0.1), &[meaning]);
    // 1 and 2 stand below 3, which says nothing of the query: the list of text leaves them out.
    assert_eq!((lists.fts, lists.semantic), (vec![], vec![3, 2, 1]));
}

#[test]
fn a_chance_hit_that_meaning_agrees_with_stays() {
    let meaning = near(&[(2, 0.9), (3, 0.8), (1, 0.1)]);
    let lists = lists(&text(vec![hit(1, 2.0, 0.1), hit(2, 1.0, 0.1)], 0.1), &[meaning]);
    assert_eq!((lists.fts, lists.semantic), (vec![2], vec![2, 3, 1]));
}

#[test]
fn a_code_with_a_slip_goes_by_text() {
    let found = TextHits {
        code_share: 1.0,
        ..text(vec![hit(1, 2.0, 0.4), hit(2, 1.9, 0.3)], 0.4)
    };
    let mut meaning = near(&[(3, 0.9), (4, 0.8)]);
    meaning.others = HashMap::from([(1, 0.2), (2, 0.3)]);
    let lists = lists(&found, &[meaning]);
    assert_eq!((lists.fts, lists.semantic), (vec![1, 2], vec![1, 2, 3, 4]));
}

#[test]
fn how_many_words_are_said_convinces_and_not_their_share() {
    // Of both queries a third is said: one word of three, and ten of thirty.
    let meaning = near(&[(3, 0.9), (2, 0.5), (1, 0.1)]);
    let of = |evidence| {
        let found = TextHits {
            evidence,
            ..text(vec![hit(1, 2.0, 0.33), hit(2, 1.0, 0.2)], 0.33)
        };
        lists(&found, std::slice::from_ref(&meaning)).semantic
    };
    assert_eq!((of(1.0), of(10.0)), (vec![3, 2, 1], vec![1, 2, 3]));
}

#[test]
fn listings_of_one_code_go_by_meaning() {
    let found = TextHits {
        code_share: 1.0,
        ..text(vec![hit(1, 2.0, 1.0), hit(2, 2.0, 1.0), hit(3, 2.0, 1.0)], 1.0)
    };
    let lists = lists(&found, &[near(&[(2, 0.9), (3, 0.5), (1, 0.1)])]);
    assert_eq!((lists.fts, lists.semantic), (vec![2, 3, 1], vec![2, 3, 1]));
}

#[test]
fn what_has_no_vector_yet_is_found_by_text() {
    let meaning = near(&[(3, 0.9), (4, 0.1)]);
    let lists = lists(&text(vec![hit(1, 2.0, 1.0)], 1.0), &[meaning]);
    assert_eq!((lists.fts, lists.semantic), (vec![1], vec![3, 4]));
}

#[test]
fn nothing_found_is_left_out_of_both_lists() {
    let found = text(
        vec![
            hit(1, 3.0, 0.5),
            hit(2, 2.9, 0.5),
            hit(3, 2.8, 0.5),
            hit(4, 0.2, 0.1),
        ],
        0.5,
    );
    let mut meaning = near(&[(9, 1.0), (8, 0.9), (3, 0.5), (7, 0.1)]);
    meaning.others = HashMap::from([(4, 0.05)]);
    let lists = lists(&found, &[meaning]);
    for number in [1, 2, 3, 4, 7, 8, 9] {
        assert!(
            lists.fts.contains(&number) || lists.semantic.contains(&number),
            "{number} in {lists:?}"
        );
    }
}

#[test]
fn the_space_whose_first_stands_out_is_believed_more() {
    let crowd = |first: u64| -> Vec<(u64, f32)> {
        let rest =
            (100..120).map(|number| (number, 0.88 - f32::from(u8::try_from(number).unwrap()) / 1000.0));
        std::iter::once((first, 0.8)).chain(rest).collect()
    };
    let mut unsure = near(&crowd(1));
    let mut sure = near(&crowd(2));
    sure.nearest[0].score = 0.99;
    unsure.others = HashMap::from([(2, 0.77)]);
    sure.others = HashMap::from([(1, 0.77)]);
    assert_eq!(by_meaning(&[unsure.clone(), sure.clone()]).first(), Some(&2));
    assert_eq!(by_meaning(&[sure, unsure]).first(), Some(&2));
}

#[test]
fn a_listing_that_one_space_does_not_hold_yet_is_judged_by_the_other() {
    let half = near(&[(1, 0.9), (2, 0.5)]);
    let whole = near(&[(3, 0.9), (1, 0.5), (2, 0.1)]);
    assert_eq!(by_meaning(&[half, whole]), vec![3, 1, 2]);
}

#[test]
fn equal_cosines_are_no_division_by_zero() {
    let same = near(&[(1, 0.5), (2, 0.5), (3, 0.5)]);
    assert_eq!(by_meaning(std::slice::from_ref(&same)), vec![1, 2, 3]);
    let lists = lists(&text(vec![hit(2, 0.0, 0.0)], 0.0), &[same, Meaning::default()]);
    assert_eq!((lists.fts, lists.semantic), (vec![2], vec![2, 1, 3]));
}
