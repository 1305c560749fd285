//! The lines of a body, one after the other, in bounded time and memory: for bodies that are larger than what is held of
//! one at a time.

use actix_web::{HttpRequest, web};
use bytes::{Bytes, BytesMut};
use tokio::time::Instant;

use super::{BodyLimit, Reader, check_media_type, refused_by_head};
use crate::app::App;
use crate::error::ApiError;

/// The media types of JSON in lines. A body that names none is taken for the first.
const LINES: &[&str] = &["application/x-ndjson", "application/ndjson", "application/jsonl"];

/// One line of a body, without its end. Blank ones are left out.
#[derive(Debug, PartialEq, Eq)]
pub enum Line {
    /// The whole of it.
    Whole(Bytes),
    /// It is longer than a line may be; nothing of it is kept.
    TooLong,
}

/// A body that is read line by line.
pub struct Lines {
    reader: Reader,
    limit: BodyLimit,
    line_bytes_max: usize,
    held: BytesMut,
    is_over: bool,
    /// The rest of a line that is too long is thrown away.
    skips: bool,
    /// When the last line was handed out: what the caller then does is not the sender's time.
    handed_out: Instant,
}

impl std::fmt::Debug for Lines {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Lines")
            .field("held_bytes", &self.held.len())
            .finish_non_exhaustive()
    }
}

impl Lines {
    /// Begins to read a body of at most `limit` whose lines have at most `line_bytes_max` bytes.
    ///
    /// # Errors
    /// 415 `encoding_unsupported` and `media_type_unsupported`, 413 for a body that announces more, 429 `rate_limited`.
    pub fn of(
        app: &App,
        req: &HttpRequest,
        payload: web::Payload,
        limit: BodyLimit,
        line_bytes_max: usize,
    ) -> Result<Self, ApiError> {
        if let Some(refusal) = refused_by_head(req, limit) {
            return Err(refusal.closing());
        }
        check_media_type(req, LINES).map_err(|refusal| ApiError::from(refusal).closing())?;
        let mut reader = Reader {
            payload,
            pace: app.body_pace(),
            began: Instant::now(),
            received: 0,
            share: app.bodies.share(app.throttle.network(req)),
        };
        // What is held at a time: a line that is not over, and what came with its end.
        reader.hold(line_bytes_max.saturating_mul(2))?;
        Ok(Self {
            reader,
            limit,
            line_bytes_max,
            held: BytesMut::new(),
            is_over: false,
            skips: false,
            handed_out: Instant::now(),
        })
    }

    /// The next line; `None` at the end.
    ///
    /// # Errors
    /// As [`super::read_body`].
    pub async fn next(&mut self) -> Result<Option<Line>, ApiError> {
        self.reader.began += self.handed_out.elapsed();
        let line = self.read_line().await;
        self.handed_out = Instant::now();
        line
    }

    async fn read_line(&mut self) -> Result<Option<Line>, ApiError> {
        loop {
            if let Some(line) = self.take_line() {
                return Ok(Some(line));
            }
            if self.is_over {
                return Ok(None);
            }
            match self.reader.chunk().await? {
                None => self.is_over = true,
                Some(_) if self.reader.received > self.limit.bytes => return Err(self.limit.refusal()),
                Some(chunk) => self.held.extend_from_slice(&chunk),
            }
        }
    }

    /// A line of what is held, if one has ended there.
    fn take_line(&mut self) -> Option<Line> {
        while !self.held.is_empty() {
            let end = self.held.iter().position(|byte| *byte == b'\n');
            let Some(end) = end.map(|at| at + 1).or(self.is_over.then_some(self.held.len())) else {
                if self.held.len() > self.line_bytes_max {
                    self.held.clear();
                    self.skips = true;
                }
                return None;
            };
            let line = self.held.split_to(end).freeze();
            let was_cut = std::mem::take(&mut self.skips);
            let text = line.trim_ascii();
            if was_cut || text.len() > self.line_bytes_max {
                return Some(Line::TooLong);
            }
            if !text.is_empty() {
                return Some(Line::Whole(line.slice_ref(text)));
            }
        }
        // It ended within a line of which nothing is held.
        (self.is_over && std::mem::take(&mut self.skips)).then_some(Line::TooLong)
    }

    /// Reads on and forgets, so that the caller gets to read an answer that comes early.
    pub async fn drain(mut self) {
        self.reader.drain().await;
    }
}
