//! The bytes of a socket on their way in, watched before the WebSocket library sees them.
//!
//! The library collects a frame to its end and only then judges its size, so that a stranger who announces a terabyte
//! could send it. Here the announcement itself ends the connection. And who has not signed in yet has little to say.

use std::cell::Cell;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};

use actix_web::error::PayloadError;
use actix_web::{FromRequest as _, HttpRequest, dev, web};
use bytes::Bytes;
use futures_util::Stream;

use crate::error::ApiError;
use crate::limits::NEWCOMER_BYTES_MAX;

/// Raised once the agent has signed in.
#[derive(Clone, Debug)]
pub struct Allowance(Rc<Cell<u64>>);

impl Allowance {
    /// From here on only the size of each frame is limited.
    pub(super) fn lift(&self) {
        self.0.set(u64::MAX);
    }

    fn take(&self, bytes: u64) -> Result<(), TooLarge> {
        let left = self.0.get().checked_sub(bytes).ok_or(TooLarge)?;
        self.0.set(left);
        Ok(())
    }
}

/// Puts the watch between a connection and the WebSocket library.
///
/// # Errors
/// The framework hands no payload out, which is a bug.
pub async fn watched(
    req: &HttpRequest,
    payload: web::Payload,
    frame_bytes_max: usize,
) -> Result<(web::Payload, Allowance), ApiError> {
    let allowance = Allowance(Rc::new(Cell::new(NEWCOMER_BYTES_MAX)));
    let inflow = Inflow {
        payload,
        allowance: allowance.clone(),
        frame_bytes_max: u64::try_from(frame_bytes_max).unwrap_or(u64::MAX),
        at: At::First,
    };
    let payload: BoxedPayloadStream = Box::pin(inflow);
    let mut watched = dev::Payload::Stream { payload };
    let payload = web::Payload::from_request(req, &mut watched).await;
    let payload = payload
        .map_err(|error| ApiError::failed(aip_protocol::error::ErrorCode::Internal, error.to_string()))?;
    Ok((payload, allowance))
}

/// What the framework wants a payload to be.
type BoxedPayloadStream = Pin<Box<dyn Stream<Item = Result<Bytes, PayloadError>>>>;

struct Inflow {
    payload: web::Payload,
    allowance: Allowance,
    frame_bytes_max: u64,
    at: At,
}

impl Stream for Inflow {
    type Item = Result<Bytes, PayloadError>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = self.get_mut();
        let Some(item) = ready!(Pin::new(&mut this.payload).poll_next(cx)) else {
            return Poll::Ready(None);
        };
        Poll::Ready(Some(item.and_then(|bytes| {
            this.look(&bytes).map_err(|TooLarge| PayloadError::Overflow)?;
            Ok(bytes)
        })))
    }
}

impl Inflow {
    fn look(&mut self, bytes: &[u8]) -> Result<(), TooLarge> {
        self.allowance
            .take(u64::try_from(bytes.len()).unwrap_or(u64::MAX))?;
        let mut rest = bytes.iter();
        while !rest.as_slice().is_empty() {
            self.at = match self.at {
                At::Payload(left) => {
                    let here = rest
                        .as_slice()
                        .len()
                        .min(usize::try_from(left).unwrap_or(usize::MAX));
                    // Skips to the last of them.
                    rest.nth(here.saturating_sub(1));
                    At::payload(left.saturating_sub(here as u64))
                }
                at => rest.next().map_or(at, |byte| at.after(*byte)),
            };
            if self.at.announced() > self.frame_bytes_max {
                return Err(TooLarge);
            }
        }
        Ok(())
    }
}

/// More than a frame, or a stranger, may have.
#[derive(Debug, PartialEq, Eq)]
struct TooLarge;

/// Where in a frame (RFC 6455 §5.2) the next byte stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum At {
    /// FIN and opcode.
    First,
    /// The mask bit and the short length.
    Second,
    /// The long length: bytes to come, what came, bytes of the mask after it.
    Length { left: u8, value: u64, mask: u8 },
    /// The mask: bytes to come, and the length of the payload.
    Mask { left: u8, length: u64 },
    /// Bytes of the payload to come.
    Payload(u64),
}

impl At {
    fn after(self, byte: u8) -> Self {
        match self {
            Self::First => Self::Second,
            Self::Second => {
                let mask = if byte & 0x80 == 0 { 0 } else { 4 };
                match byte & 0x7f {
                    126 => Self::Length {
                        left: 2,
                        value: 0,
                        mask,
                    },
                    127 => Self::Length {
                        left: 8,
                        value: 0,
                        mask,
                    },
                    short => Self::mask(mask, short.into()),
                }
            }
            Self::Length { left, value, mask } => {
                let value = value << 8 | u64::from(byte);
                match left {
                    0 | 1 => Self::mask(mask, value),
                    _ => Self::Length {
                        left: left - 1,
                        value,
                        mask,
                    },
                }
            }
            Self::Mask { left, length } => Self::mask(left.saturating_sub(1), length),
            Self::Payload(left) => Self::payload(left.saturating_sub(1)),
        }
    }

    fn mask(left: u8, length: u64) -> Self {
        match left {
            0 => Self::payload(length),
            _ => Self::Mask { left, length },
        }
    }

    fn payload(left: u64) -> Self {
        match left {
            0 => Self::First,
            _ => Self::Payload(left),
        }
    }

    /// The length of the payload, as far as it is known.
    fn announced(self) -> u64 {
        match self {
            Self::Mask { length, .. } | Self::Payload(length) => length,
            Self::First | Self::Second | Self::Length { .. } => 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn inflow(frame_bytes_max: u64) -> Inflow {
        let mut nothing = dev::Payload::None;
        let req = actix_web::test::TestRequest::default().to_http_request();
        let payload = web::Payload::from_request(&req, &mut nothing)
            .into_inner()
            .unwrap();
        let allowance = Allowance(Rc::new(Cell::new(NEWCOMER_BYTES_MAX)));
        allowance.lift();
        Inflow {
            payload,
            allowance,
            frame_bytes_max,
            at: At::First,
        }
    }

    fn frame(length: u64) -> Vec<u8> {
        let mut frame = vec![0x81];
        match (u8::try_from(length), u16::try_from(length)) {
            (Ok(short @ 0..=125), _) => frame.push(0x80 | short),
            (_, Ok(middle)) => {
                frame.push(0xfe);
                frame.extend(middle.to_be_bytes());
            }
            _ => {
                frame.push(0xff);
                frame.extend(length.to_be_bytes());
            }
        }
        frame.extend([1, 2, 3, 4]);
        frame
    }

    #[test]
    fn frames_end_exactly_at_the_limit_however_they_are_cut() {
        for max in [0, 1, 125, 126, 65_535, 65_536, 1 << 20] {
            for cut in [1, 2, 3, 7, 1_000_000_000] {
                let mut bytes = frame(max);
                bytes.resize(bytes.len() + usize::try_from(max).unwrap(), 0xff);
                bytes.extend(frame(0));
                bytes.extend(frame(max));
                let mut watch = inflow(max);
                for part in bytes.chunks(cut) {
                    watch.look(part).unwrap();
                }
                let one_more = frame(max + 1);
                let mut watch = inflow(max);
                let seen: Result<Vec<()>, TooLarge> =
                    one_more.chunks(cut).map(|part| watch.look(part)).collect();
                assert_eq!(seen, Err(TooLarge), "{max} in parts of {cut}");
            }
        }
    }

    #[test]
    fn a_length_beyond_everything_is_refused() {
        for length in [1 << 40, 1 << 63, u64::MAX] {
            assert_eq!(inflow(1 << 20).look(&frame(length)), Err(TooLarge));
        }
        // Without a mask too, which the library refuses for itself.
        assert_eq!(inflow(10).look(&[0x81, 11]), Err(TooLarge));
        inflow(10).look(&[0x81, 10, 1]).unwrap();
    }

    #[test]
    fn a_stranger_has_little_to_say() {
        let mut watch = inflow(1 << 20);
        watch.allowance.0.set(10);
        let ping = [0x89, 0x80, 0, 0, 0, 0];
        watch.look(&ping).unwrap();
        assert_eq!(watch.look(&ping), Err(TooLarge));
        watch.allowance.lift();
        watch.look(&ping).unwrap();
    }
}
