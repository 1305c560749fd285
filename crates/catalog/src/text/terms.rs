//! Hands terms that were made already to the index: one string, a separator between them.

use tantivy::tokenizer::{Token, TokenStream, Tokenizer};

/// The name it has in the schema.
pub(super) const NAME: &str = "terms";

/// Between two terms; it is in none of them, since control characters part words.
pub(super) const SEPARATOR: &str = "\u{1f}";

/// The same as a letter, which is found faster.
const SEPARATOR_LETTER: char = '\u{1f}';

/// Cuts at every [`SEPARATOR`]; an empty term takes a place and is not indexed.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Terms;

impl Tokenizer for Terms {
    type TokenStream<'a> = TermStream<'a>;

    fn token_stream<'a>(&'a mut self, text: &'a str) -> TermStream<'a> {
        TermStream {
            terms: text.split(SEPARATOR_LETTER),
            token: Token::default(),
            next: 0,
        }
    }
}

/// The terms of one field.
#[derive(Debug)]
pub(super) struct TermStream<'a> {
    terms: std::str::Split<'a, char>,
    token: Token,
    next: usize,
}

impl TokenStream for TermStream<'_> {
    fn advance(&mut self) -> bool {
        for term in self.terms.by_ref() {
            let position = self.next;
            self.next += 1;
            if !term.is_empty() {
                self.token.position = position;
                self.token.text.clear();
                self.token.text.push_str(term);
                return true;
            }
        }
        false
    }

    fn token(&self) -> &Token {
        &self.token
    }

    fn token_mut(&mut self) -> &mut Token {
        &mut self.token
    }
}
