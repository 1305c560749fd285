//! What the command prints: sentences for people, or JSON, one value per line.

use std::io::{self, Write};

use serde_json::{Value, json};

use crate::failure::Failure;

/// Where a command says what it found.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Output {
    json: bool,
}

impl Output {
    pub(crate) fn new(json: bool) -> Self {
        Self { json }
    }

    /// Whether programs read along.
    pub(crate) fn is_json(self) -> bool {
        self.json
    }

    /// Prints `value` as JSON, or `lines` for people. Flushed, so that who reads along sees it at once.
    pub(crate) fn show(self, value: &Value, lines: &str) -> io::Result<()> {
        let mut out = io::stdout().lock();
        if self.json {
            writeln!(out, "{value}")?;
        } else {
            writeln!(out, "{}", printable(lines))?;
        }
        out.flush()
    }

    /// Why the command did not succeed.
    pub(crate) fn failure(self, failure: &Failure) {
        if self.json {
            let problem = failure.problem();
            let detail = failure.detail();
            let code = problem.map(|problem| problem.code.as_str());
            let request_id = problem.and_then(|problem| problem.request_id.as_deref());
            let value = json!({"error": {"code": code, "detail": detail, "request_id": request_id}});
            drop(writeln!(io::stderr(), "{value}"));
        } else {
            note(&format!("aip: {}", one_line(&failure.sentence())));
        }
    }
}

/// A remark for people; never on the standard output.
pub(crate) fn note(text: &str) {
    // Who has closed the standard error does not want to know.
    drop(writeln!(io::stderr(), "{}", printable(text)));
}

/// A refusal repeats words of strangers, such as the names in a provider's schema: they begin no line of their own.
fn one_line(text: &str) -> String {
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    lines.collect::<Vec<_>>().join(" ")
}

/// Text of strangers may hold sequences that drive a terminal; they are shown instead of obeyed.
pub(crate) fn printable(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\n' | '\t' => shown.push(c),
            // Control characters, and the marks that turn the direction of text around.
            c if c.is_control() || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}') => {
                shown.extend(c.escape_unicode());
            }
            c => shown.push(c),
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_is_one_line() {
        assert_eq!(
            one_line("it needs x\n\naip: receipt rcpt_1, signed by the hub\r\n"),
            "it needs x aip: receipt rcpt_1, signed by the hub"
        );
        assert_eq!(one_line("/a  b: no room"), "/a  b: no room");
    }

    #[test]
    fn a_message_cannot_drive_the_terminal() {
        assert_eq!(
            printable("a\tb\né \u{1b}[2J\r\u{9b}"),
            "a\tb\né \\u{1b}[2J\\u{d}\\u{9b}"
        );
        assert_eq!(printable("abc\u{202e}txt.exe"), "abc\\u{202e}txt.exe");
    }
}
