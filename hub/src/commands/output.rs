//! What a command says: results on standard output, everything else on standard error.

use std::io::{self, Write as _};

/// Writes a line for programs and people to standard output, at once.
///
/// # Errors
/// Nobody reads it any more.
pub(super) fn line(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    writeln!(out, "{text}")?;
    out.flush()
}

/// Writes a line for people to standard error. If nobody reads it, it is not worth failing for.
pub(super) fn note(text: &str) {
    writeln!(io::stderr().lock(), "{text}").unwrap_or_default();
}

/// Writes why a command failed.
pub(super) fn error(text: &str) {
    note(text);
}
