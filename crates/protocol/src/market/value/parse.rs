//! Reading JSON with its numbers as they were written, which `serde_json` does not tell: there `-0` and integers beyond 64
//! bits are floats.

use super::{Members, Value};
use crate::error::{ErrorCode, Refusal};
use crate::limits::{MARKET_JSON_BYTES_MAX, MARKET_JSON_LEVELS_MAX};
use crate::market::number::Number;

/// One JSON text and nothing after it.
pub(super) fn strict(bytes: &[u8]) -> Result<Value, Refusal> {
    if bytes.len() > MARKET_JSON_BYTES_MAX {
        return Err(invalid("the text is longer than 16 MiB"));
    }
    let text = std::str::from_utf8(bytes).map_err(|_error| invalid("the text is not UTF-8"))?;
    let mut tokens = Tokens { rest: text };
    let value = tokens.value(MARKET_JSON_LEVELS_MAX)?;
    tokens.skip_space();
    if tokens.rest.is_empty() {
        Ok(value)
    } else {
        Err(invalid("something comes after the value"))
    }
}

fn invalid(detail: &'static str) -> Refusal {
    Refusal::new(ErrorCode::JsonInvalid, detail)
}

/// What is still to be read.
struct Tokens<'a> {
    rest: &'a str,
}

impl<'a> Tokens<'a> {
    fn skip_space(&mut self) {
        self.rest = self.rest.trim_start_matches([' ', '\t', '\n', '\r']);
    }

    /// Takes this text, when it comes next.
    fn eat(&mut self, text: &str) -> bool {
        let rest = self.rest.strip_prefix(text);
        self.rest = rest.unwrap_or(self.rest);
        rest.is_some()
    }

    /// Takes so many bytes; the caller has seen that a character ends there.
    fn take(&mut self, bytes: usize) -> &'a str {
        let (token, rest) = self.rest.split_at_checked(bytes).unwrap_or((self.rest, ""));
        self.rest = rest;
        token
    }

    /// One value that may open so many more levels.
    fn value(&mut self, levels_left: usize) -> Result<Value, Refusal> {
        self.skip_space();
        match self.rest.bytes().next() {
            Some(b'"') => self.string().map(Value::Str),
            Some(b'-' | b'0'..=b'9') => self.number(),
            Some(b'[') => self.array(deeper(levels_left)?),
            Some(b'{') => self.object(deeper(levels_left)?),
            _ if self.eat("null") => Ok(Value::Null),
            _ if self.eat("true") => Ok(Value::Bool(true)),
            _ if self.eat("false") => Ok(Value::Bool(false)),
            _ => Err(invalid("a JSON value is missing")),
        }
    }

    fn array(&mut self, levels_left: usize) -> Result<Value, Refusal> {
        let mut items = Vec::new();
        self.list(("[", "]"), |tokens| {
            items.push(tokens.value(levels_left)?);
            Ok(())
        })?;
        Ok(Value::Array(items))
    }

    fn object(&mut self, levels_left: usize) -> Result<Value, Refusal> {
        let mut members = Members::new();
        self.list(("{", "}"), |tokens| {
            tokens.skip_space();
            let name = tokens.string()?;
            tokens.skip_space();
            if !tokens.eat(":") {
                return Err(invalid("a colon is missing after a member name"));
            }
            let value = tokens.value(levels_left)?;
            match members.insert(name, value) {
                None => Ok(()),
                Some(_) => Err(invalid("a member name comes twice in one object")),
            }
        })?;
        Ok(Value::Object(members))
    }

    /// What stands between these two, separated by commas.
    fn list(
        &mut self,
        (open, close): (&str, &str),
        mut item: impl FnMut(&mut Self) -> Result<(), Refusal>,
    ) -> Result<(), Refusal> {
        self.eat(open);
        self.skip_space();
        if self.eat(close) {
            return Ok(());
        }
        loop {
            item(self)?;
            self.skip_space();
            if self.eat(close) {
                return Ok(());
            }
            if !self.eat(",") {
                return Err(invalid("a comma or the end of an array or object is missing"));
            }
        }
    }

    fn number(&mut self) -> Result<Value, Refusal> {
        let is_part = |c: char| matches!(c, '0'..='9' | '+' | '-' | '.' | 'e' | 'E');
        let end = self.rest.find(|c| !is_part(c)).unwrap_or(self.rest.len());
        let number = Number::parse(self.take(end));
        number
            .map(Value::Number)
            .ok_or_else(|| invalid("a number is malformed, an integer beyond 64 bits, or beyond a double"))
    }

    /// From one quote to the next that is not escaped; what is between is `serde_json`'s to read.
    fn string(&mut self) -> Result<String, Refusal> {
        let malformed = || invalid("a string is malformed");
        if !self.rest.starts_with('"') {
            return Err(malformed());
        }
        let mut is_escaped = false;
        let ends = |byte: u8| {
            let ends = byte == b'"' && !is_escaped;
            is_escaped = byte == b'\\' && !is_escaped;
            ends
        };
        let end = self.rest.bytes().skip(1).position(ends).ok_or_else(malformed)?;
        serde_json::from_str(self.take(end + 2)).map_err(|_error| malformed())
    }
}

fn deeper(levels_left: usize) -> Result<usize, Refusal> {
    levels_left
        .checked_sub(1)
        .ok_or_else(|| invalid("nested deeper than 64 levels"))
}
