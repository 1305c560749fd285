//! What the engines promise to the tests that use them.
#![expect(clippy::expect_used, reason = "a test is to panic, and so are its helpers")]

mod nats;
mod owner;
mod postgres;
mod processes;
mod proxy;
mod redis;
mod wire;
