//! Whatever is looked for: no text panics, none is an error, and what is found keeps its promises.
//!
//! The functions are those of the fuzz targets, run here on generated input.

#[path = "../../../fuzz/src/catalog.rs"]
#[expect(
    unreachable_pub,
    clippy::expect_used,
    reason = "the same file is in the library of the fuzz targets"
)]
mod targets;

use proptest::prelude::*;

fn run_all(text: &str) {
    targets::query(text.as_bytes());
    targets::price(text.as_bytes());
}

#[test]
fn wide_characters_at_every_offset_of_a_query() {
    for seed in [
        "ps-lx350h",
        "\"pro max\" 256gb",
        "sortes.draw@v1",
        "笔记本",
        "12.50",
    ] {
        for (offset, _) in seed.char_indices() {
            for wide in ["é", "😀", "\u{0}", "\"", "-", "\u{202e}", "\u{301}", "\u{fdfa}"] {
                let mut broken = seed.to_owned();
                broken.insert_str(offset, wide);
                run_all(&broken);
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_text(text in any::<String>()) {
        run_all(&text);
    }

    #[test]
    fn texts_of_the_letters_that_matter(text in "[a-z0-9PSLXH\"'@._/+ éд笔\u{301}😀-]{0,60}") {
        run_all(&text);
    }

    #[test]
    fn prices_of_the_digits_that_matter(text in "[0-9]{0,12}[.,]?[0-9]{0,9}") {
        targets::price(text.as_bytes());
    }
}
