//! No text is an error, and none takes long.

use proptest::prelude::*;

use crate::limits::QUERY_TERMS_MAX;
use crate::text::{analysis, plan};

use super::{entry, found, index_of, names, search};

#[test]
fn nothing_in_a_text_is_a_language() {
    let index = names(&["red apple", "AND OR NOT", "x to y"]);
    for text in [
        "",
        "   ",
        "\t\n",
        "!!!",
        "\0",
        "\u{202e}\u{200b}",
        "(((((",
        "\"",
        "\"\"",
        "\" \"",
        "title:(",
        "[x TO y",
        "{0}",
        "* ? ~2 ^",
        "a* OR b*",
        "\\",
        "/re(g+)+x/",
        "+-+-",
        "<script>",
        "'; DROP TABLE",
        "%00",
        "🦀🦀",
        "\u{feff}",
        "̈̈̈̈",
        "....",
        "@v1",
    ] {
        search(&index.view(), text);
    }
    assert_eq!(found(&index, "red AND apple").first(), Some(&1));
    assert_eq!(found(&index, "(red) +apple -x").first(), Some(&1));
    assert_eq!(found(&index, "name:\"red apple\"").first(), Some(&1));
}

#[test]
fn a_million_words_are_read_no_further_than_the_limit() {
    let index = names(&["red apple", "w7 w8"]);
    let view = index.view();
    let words: Vec<String> = (0..1_000_000).map(|word| format!("w{word}")).collect();
    assert_eq!(search(&view, &words.join(" ")).hits.first().unwrap().number, 2);
    search(&view, &"a".repeat(1_000_000));
    search(&view, &"\u{fdfa}".repeat(100_000));
    search(&view, &"笔".repeat(100_000));
    search(&view, &"a\u{301}".repeat(100_000));
    search(&view, &"1-".repeat(100_000));
    search(&view, &"\"".repeat(100_000));
}

#[test]
fn no_query_walks_more_lists_than_the_limit() {
    let words: Vec<String> = (0..600)
        .map(|word| format!("word{word} x{word}y plain"))
        .collect();
    let index = index_of(vec![entry(1, &words.join(" ")), entry(2, "plain")]);
    let view = index.view();
    let text = words.join(" ");
    let asked = analysis::asked(&text, &analysis::Language::ALL);
    let searcher = index.reader.searcher();
    let plan = plan::plan(&searcher, &index.fields, &asked).unwrap();
    assert_eq!(plan.lists.len(), QUERY_TERMS_MAX);
    assert_eq!(search(&view, &text).hits.first().unwrap().number, 1);
}

#[test]
fn a_listing_of_anything_is_taken() {
    let texts = [
        "\0\0",
        "\u{202e}abc",
        &"é".repeat(40_000),
        &"a ".repeat(40_000),
        "\u{1f}a\u{1f}b",
        "",
        "🦀",
        &"1".repeat(70_000),
    ];
    let index = names(&texts);
    assert_eq!(index.view().len(), texts.len() as u64);
    assert_eq!(found(&index, "a b").first(), Some(&5));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn no_text_is_an_error(listing in "\\PC{0,60}", text in any::<String>(), quoted in "\\PC{0,20}") {
        let index = names(&[&listing, "red apple 256GB"]);
        let view = index.view();
        let text = format!("{text} \"{quoted}\"");
        let hits = search(&view, &text);
        for hit in &hits.hits {
            prop_assert!((0.0..=1.0 + 1e-9).contains(&hit.coverage), "{}", hit.coverage);
            prop_assert!(view.explain(hit.number, &text).is_some());
        }
    }

    #[test]
    fn a_listing_is_found_by_its_own_name(name in "[a-zA-Zéèà0-9 ._-]{1,40}") {
        prop_assume!(name.chars().any(char::is_alphanumeric));
        let index = names(&["red apple", &name]);
        let hits = search(&index.view(), &name);
        let hit = hits.hits.iter().find(|hit| hit.number == 2);
        prop_assert!(hit.is_some_and(|hit| hit.exact && hit.coverage > 0.999), "{:?}", hit);
    }
}
