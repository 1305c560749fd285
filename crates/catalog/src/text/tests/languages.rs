//! Words in many languages and scripts.

use crate::query::Filter;
use crate::trust::NoTrust;

use super::super::analysis;
use super::{DEPTH, found, index_of, names, now, search, with_lang};

#[test]
fn words_are_found_by_their_stems_in_each_language() {
    let index = index_of(vec![
        with_lang(1, "translation of documents for companies", "en"),
        with_lang(2, "réservations d'hôtels et traductions de textes", "fr"),
        with_lang(3, "бронирование гостиниц и переводы текстов", "ru"),
        with_lang(4, "Übersetzungen von Häusern und Verträgen", "de"),
        with_lang(
            5,
            "traducciones de canciones y reservas de hoteles baratos",
            "es-MX",
        ),
    ]);
    for (text, number) in [
        ("translating a document", 1),
        ("company", 1),
        ("réserver un hôtel", 2),
        ("reservation d'hotel", 2),
        ("traduire mes textes", 2),
        ("забронировать гостиницу", 3),
        ("перевод текста", 3),
        ("Übersetzung Vertrag", 4),
        ("Haus", 4),
        ("canción traducida", 5),
        ("reserva hotel barato", 5),
    ] {
        assert_eq!(found(&index, text).first(), Some(&number), "{text}");
    }
}

#[test]
fn accents_and_forms_of_letters_make_no_difference() {
    let index = names(&[
        "Crème brûlée",
        "Ёлка зелёная",
        "Straße Öl",
        "Café noir",
        "Σίσυφος",
        "ﬁne ﬂour",
    ]);
    for (text, number) in [
        ("creme brulee", 1),
        ("CRÈME BRÛLÉE", 1),
        ("cre\u{300}me bru\u{302}le\u{301}e", 1),
        ("елка зеленая", 2),
        ("ЁЛКА", 2),
        ("ёлки", 2),
        ("strasse", 3),
        ("ol", 3),
        ("ｃａｆｅ", 4),
        ("σισυφοσ", 5),
        ("fine flour", 6),
        ("ca\u{200b}fé", 4),
        ("ca\u{ad}fe", 4),
    ] {
        assert_eq!(found(&index, text).first(), Some(&number), "{text}");
    }
}

#[test]
fn short_i_is_no_accent() {
    let index = names(&["мой чайник", "мои книги"]);
    assert_eq!(found(&index, "чайник"), [1]);
    assert_eq!(found(&index, "чайники"), [1]);
}

#[test]
fn scripts_without_spaces_are_found_inside() {
    let index = names(&[
        "轻薄笔记本电脑，适合学生",
        "日本語の翻訳サービス",
        "노트북컴퓨터를 팝니다",
        "ขายโน้ตบุ๊กมือสอง",
        "苹果手机壳",
        "iPhone手机保护壳256GB",
    ]);
    for (text, number) in [
        ("笔记本电脑", 1),
        ("电脑", 1),
        ("翻訳", 2),
        ("翻訳サービス", 2),
        ("컴퓨터", 3),
        ("โน้ตบุ๊ก", 4),
        ("苹果 手机", 5),
        ("果", 5),
        ("iphone 手机", 6),
        ("256 gb 手机", 6),
    ] {
        assert_eq!(found(&index, text).first(), Some(&number), "{text}");
    }
}

#[test]
fn the_language_of_a_query_is_told_when_it_is_certain() {
    for (text, lang) in [
        (
            "Je voudrais réserver une chambre d'hôtel à Paris pour deux personnes la semaine prochaine",
            Some("fr"),
        ),
        (
            "What is the best way to find out whether the hotel has any rooms left for the next week?",
            Some("en"),
        ),
        ("найди гостиницу", Some("ru")),
        ("笔记本电脑", Some("zh")),
        ("", None),
        ("12345", None),
    ] {
        assert_eq!(analysis::detect(text), lang, "{text}");
    }
}

#[test]
fn listings_without_a_language_are_found_by_the_one_they_are_in() {
    let index = index_of(vec![
        super::entry(
            1,
            "Bonjour, nous proposons des traductions professionnelles de documents juridiques et commerciaux",
        ),
        super::entry(
            2,
            "Professional translations of legal and commercial documents for companies all over the world",
        ),
        with_lang(3, "Sony WH-1000XM5", "fr-CA"),
    ]);
    let filter = Filter {
        lang: Some("fr".to_owned()),
        ..Filter::default()
    };
    let browsed = index
        .view()
        .browse(&filter, &NoTrust, now(), None, DEPTH)
        .unwrap();
    assert_eq!(browsed.iter().map(|hit| hit.number).collect::<Vec<_>>(), [1, 3]);
}

#[test]
fn no_word_is_left_out() {
    let index = names(&["The Who", "To be or not to be", "IT", "Вы и мы", "Être ou avoir"]);
    for (text, number) in [
        ("the who", 1),
        ("to be or not to be", 2),
        ("it", 3),
        ("и", 4),
        ("ou", 5),
    ] {
        assert_eq!(found(&index, text).first(), Some(&number), "{text}");
    }
}

#[test]
fn beginnings_and_slips_find_words() {
    let index = names(&[
        "Restaurant finder",
        "Headphones",
        "Keyboard mechanical",
        "Гостиница",
        "Rest area",
        "Translation",
    ]);
    for (text, number) in [
        ("restaur", 1),
        ("headph", 2),
        ("restorant", 1),
        ("headpones", 2),
        ("keybaord", 3),
        ("keyboardd", 3),
        ("гостинница", 4),
        ("trnslation", 6),
    ] {
        assert_eq!(found(&index, text).first(), Some(&number), "{text}");
    }
    assert_eq!(
        found(&index, "rest").first(),
        Some(&5),
        "what was typed is before what begins with it"
    );
    assert!(found(&index, "xylophone").is_empty());
}

#[test]
fn what_stands_in_quotes_is_before_the_same_words_apart() {
    let index = names(&[
        "day of the long night and its market",
        "night market guide",
        "market for the night and night for the market",
        "夜市指南",
    ]);
    let hits = search(&index.view(), "\"night market\"");
    let first = hits.hits.first().unwrap();
    assert_eq!((first.number, first.exact), (2, true));
    assert!(hits.hits.iter().skip(1).all(|hit| !hit.exact));
    assert_eq!(found(&index, "«夜市»"), [4]);
    assert_eq!(
        found(&index, "\"night market").len(),
        3,
        "a quote that is never closed is no quote"
    );
}

#[test]
fn a_name_that_is_the_whole_query_is_exact() {
    let index = names(&["Weather", "Weather weather weather in the weather", "Weather Now"]);
    let hits = search(&index.view(), "  weather! ");
    let exact: Vec<u64> = hits
        .hits
        .iter()
        .filter(|hit| hit.exact)
        .map(|hit| hit.number)
        .collect();
    assert_eq!((exact, hits.hits.first().unwrap().number), (vec![1], 1));
}
