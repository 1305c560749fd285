//! A provider that says how far it is: its answer is a stream of events, or of lines of JSON, with the result at its end.
//!
//! Everything of it is bounded: an event or a line by what a result may be, all of it together, and its time. What it says
//! before the result goes on as it comes; what it says after it is not read.

use aip_federation::egress::{Body, EgressError, Exchange, Limits, Request, Response, Streamed};
use aip_market::limits::{PROGRESS_BYTES_MAX, RESULT_BYTES_MAX};
use aip_market::progress::{ProgressSink, WordKind};
use aip_market::provider::ProviderError;
use aip_protocol::sse::Decoder;
use serde_json::Value;

use super::{FRAME_BYTES, no_answer};
use crate::market::providers::reason;

/// What is asked for where somebody follows the call.
pub(super) const ACCEPT: &str = "text/event-stream, application/x-ndjson, application/json";

/// All that a stream may come to: the words, what stands around them, and the result.
const STREAM_BYTES_MAX: usize = RESULT_BYTES_MAX + FRAME_BYTES + 2 * PROGRESS_BYTES_MAX;

/// One event, or one line.
const EVENT_BYTES_MAX: usize = RESULT_BYTES_MAX + FRAME_BYTES;

/// Asks once, and tells what is said on the way to the answer. That one is as if it had come alone.
///
/// # Errors
/// There is no answer.
pub(super) async fn answer(
    exchange: &dyn Exchange,
    request: Request,
    limits: Limits,
    progress: &ProgressSink,
) -> Result<Response, ProviderError> {
    let wide = Limits {
        answer_bytes_max: STREAM_BYTES_MAX,
        ..limits
    };
    let Streamed { head, body } = exchange.open(request, wide).await.map_err(no_answer)?;
    let form = Form::of(&head).filter(|_| (200..300).contains(&head.status));
    let whole = match form {
        None => whole(body, limits.answer_bytes_max).await?,
        Some(form) => told(body, Reader::new(form), progress).await?,
    };
    Ok(Response {
        body: whole.into(),
        ..head
    })
}

/// How a stream is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    /// Server-sent events: `progress`, `chunk`, `result`, `error`.
    Events,
    /// Lines: `{"progress": …}`, `{"chunk": …}`, `{"result": …}`, `{"error": …}`.
    Lines,
}

impl Form {
    fn of(head: &Response) -> Option<Self> {
        match head.content_type.as_deref()? {
            "text/event-stream" => Some(Self::Events),
            "application/x-ndjson" | "application/jsonl" => Some(Self::Lines),
            _ => None,
        }
    }
}

/// What a provider says.
#[derive(Debug, PartialEq)]
enum Said {
    Word(WordKind, Value),
    /// The body of an answer.
    Result(Vec<u8>),
    /// Why there is none.
    Error(Value),
}

async fn whole(mut body: Body, bytes_max: usize) -> Result<Vec<u8>, ProviderError> {
    let mut whole = Vec::new();
    while let Some(piece) = body.next().await {
        let piece = piece.map_err(no_answer)?;
        if whole.len() + piece.len() > bytes_max {
            return Err(no_answer(EgressError::AnswerTooLarge { bytes_max }));
        }
        whole.extend_from_slice(&piece);
    }
    Ok(whole)
}

/// Reads a stream up to its result.
async fn told(mut body: Body, mut reader: Reader, progress: &ProgressSink) -> Result<Vec<u8>, ProviderError> {
    while let Some(piece) = body.next().await {
        let piece = piece.map_err(no_answer)?;
        for said in reader.push(&piece)? {
            match said {
                Said::Word(kind, data) => {
                    // What is too much is left out; the call goes on.
                    progress.tell(kind, &data);
                }
                Said::Result(body) => return Ok(body),
                Said::Error(why) => return Err(ProviderError::Refused(reason(&why))),
            }
        }
    }
    match reader.rest()? {
        Some(Said::Result(body)) => Ok(body),
        Some(Said::Error(why)) => Err(ProviderError::Refused(reason(&why))),
        _ => {
            let why = "its stream ended without a result";
            Err(ProviderError::Invalid(why.to_owned()))
        }
    }
}

/// What was said, from bytes as they come.
#[derive(Debug)]
enum Reader {
    Events(Decoder),
    Lines(Vec<u8>),
}

impl Reader {
    fn new(form: Form) -> Self {
        match form {
            Form::Events => Self::Events(Decoder::new(EVENT_BYTES_MAX)),
            Form::Lines => Self::Lines(Vec::new()),
        }
    }

    fn push(&mut self, bytes: &[u8]) -> Result<Vec<Said>, ProviderError> {
        match self {
            Self::Events(decoder) => {
                let events = decoder.push(bytes);
                let events = events.map_err(|error| ProviderError::Invalid(error.to_string()))?;
                let said = events.into_iter().map(|event| named(&event.name, event.data));
                Ok(said.flatten().collect())
            }
            Self::Lines(rest) => {
                let mut said = Vec::new();
                let mut lines = bytes.split(|byte| *byte == b'\n').peekable();
                while let Some(line) = lines.next() {
                    if rest.len() + line.len() > EVENT_BYTES_MAX {
                        let why = format!("a line is longer than {EVENT_BYTES_MAX} bytes");
                        return Err(ProviderError::Invalid(why));
                    }
                    rest.extend_from_slice(line);
                    if lines.peek().is_some() {
                        said.extend(spoken(&std::mem::take(rest))?);
                    }
                }
                Ok(said)
            }
        }
    }

    /// A last line without an end. A last event without one is none.
    fn rest(self) -> Result<Option<Said>, ProviderError> {
        match self {
            Self::Events(_) => Ok(None),
            Self::Lines(rest) => spoken(&rest),
        }
    }
}

/// What an event says; names that are not known say nothing.
fn named(name: &str, data: String) -> Option<Said> {
    if let Some(kind) = WordKind::named(name) {
        return Some(Said::Word(kind, json_or_text(data)));
    }
    match name {
        "result" => Some(Said::Result(data.into_bytes())),
        "error" => Some(Said::Error(json_or_text(data))),
        _ => None,
    }
}

/// Many write their parts as they are.
fn json_or_text(data: String) -> Value {
    serde_json::from_str(&data).unwrap_or(Value::String(data))
}

/// What a line says; lines of another kind say nothing.
fn spoken(line: &[u8]) -> Result<Option<Said>, ProviderError> {
    if line.trim_ascii().is_empty() {
        return Ok(None);
    }
    let Ok(Value::Object(mut members)) = serde_json::from_slice(line) else {
        let why = "a line of its stream is no JSON object";
        return Err(ProviderError::Invalid(why.to_owned()));
    };
    for kind in [WordKind::Progress, WordKind::Chunk] {
        if let Some(data) = members.remove(kind.as_str()) {
            return Ok(Some(Said::Word(kind, data)));
        }
    }
    let is_refused = ["ok", "success"]
        .iter()
        .any(|name| members.get(*name) == Some(&Value::Bool(false)));
    let is_end = is_refused
        || ["result", "output"]
            .iter()
            .any(|name| members.contains_key(*name));
    if is_end {
        return Ok(Some(Said::Result(line.to_vec())));
    }
    let is_error = members.contains_key("error");
    Ok(is_error.then_some(Said::Error(Value::Object(members))))
}

#[cfg(test)]
mod tests;
