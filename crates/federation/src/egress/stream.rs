//! An answer that comes bit by bit.

use std::fmt;

use bytes::Bytes;
use futures_util::stream::{self, BoxStream, StreamExt as _};

use super::{EgressError, Response};

/// An answer whose body is still to come.
#[derive(Debug)]
pub struct Streamed {
    /// Status and fields; its body is empty.
    pub head: Response,
    /// What comes after them.
    pub body: Body,
}

/// A body as it comes, within the limits of its request: [`super::Limits::answer_bytes_max`] altogether, and
/// [`super::Limits::timeout`] up to its end. Dropped, it ends the exchange.
pub struct Body(BoxStream<'static, Result<Bytes, EgressError>>);

impl Body {
    /// These pieces.
    pub fn of(pieces: impl stream::Stream<Item = Result<Bytes, EgressError>> + Send + 'static) -> Self {
        Self(pieces.boxed())
    }

    /// The next piece; `None` at the end. After an error nothing more comes.
    ///
    /// # Errors
    /// It broke off, took too long, or is too large.
    pub async fn next(&mut self) -> Option<Result<Bytes, EgressError>> {
        self.0.next().await
    }
}

impl fmt::Debug for Body {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Body").finish_non_exhaustive()
    }
}

/// A whole answer, as one that comes in one piece.
impl From<Response> for Streamed {
    fn from(mut response: Response) -> Self {
        let whole = std::mem::take(&mut response.body);
        Self {
            head: response,
            body: Body::of(stream::iter([Ok(whole)])),
        }
    }
}
