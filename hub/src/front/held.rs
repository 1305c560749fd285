//! The body of a request in chunks, held until its answer has gone out.
//!
//! When nobody reads such a body any more, the web framework reads it to its end and throws it away, for as long as the
//! caller likes to send. A body that is held counts as one that is still being read: then the connection is closed
//! after the answer, within the framework's disconnect timeout. A body with a length is treated so by the framework.

use std::cell::RefCell;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use actix_web::HttpMessage as _;
use actix_web::body::{BodySize, BoxBody, MessageBody};
use actix_web::dev::{Payload, ServiceRequest, ServiceResponse};
use actix_web::error::PayloadError;
use bytes::Bytes;
use futures_util::Stream;

/// A share in the body of a request.
#[derive(Clone)]
pub(super) struct Held(Rc<RefCell<Payload>>);

impl Held {
    /// Keeps a share of the body, if it comes in chunks.
    pub(super) fn of(req: &mut ServiceRequest) -> Option<Self> {
        if !req.chunked().unwrap_or(false) {
            return None;
        }
        let held = Self(Rc::new(RefCell::new(req.take_payload())));
        req.set_payload(Payload::Stream {
            payload: Box::pin(held.clone()),
        });
        Some(held)
    }

    /// Keeps it until the last byte of the answer is written.
    pub(super) fn until_sent(self, answer: ServiceResponse<BoxBody>) -> ServiceResponse<BoxBody> {
        answer.map_body(|_head, body| BoxBody::new(Answer { body, _request: self }))
    }
}

/// The body of an answer, with that of its request.
struct Answer {
    body: BoxBody,
    _request: Held,
}

impl MessageBody for Answer {
    type Error = Box<dyn std::error::Error>;

    fn size(&self) -> BodySize {
        self.body.size()
    }

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, Self::Error>>> {
        Pin::new(&mut self.get_mut().body).poll_next(cx)
    }
}

impl Stream for Held {
    type Item = Result<Bytes, PayloadError>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        Pin::new(&mut *self.0.borrow_mut()).poll_next(cx)
    }
}
