//! Words of others, before they are passed on.

/// One line of at most so many bytes: control characters become spaces, spaces are one.
pub(crate) fn told(text: &str, bytes_max: usize) -> String {
    let mut line = String::with_capacity(text.len().min(bytes_max));
    let words = text.split(|letter: char| letter.is_whitespace() || letter.is_control());
    for word in words.filter(|word| !word.is_empty()) {
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
        if line.len() > bytes_max {
            let end = (0..=bytes_max).rev().find(|end| line.is_char_boundary(*end));
            line.truncate(end.unwrap_or(0));
            line.push('…');
            break;
        }
    }
    line
}

#[cfg(test)]
mod tests {
    use super::told;

    #[test]
    fn is_one_short_line() {
        assert_eq!(told("a\r\n b\t\u{7} c ", 20), "a b c");
        assert_eq!(told("", 20), "");
        assert_eq!(told("ééé", 3), "é…");
        assert_eq!(told("abc", 3), "abc");
    }
}
