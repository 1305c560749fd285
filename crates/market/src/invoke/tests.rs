//! Invocations against the store in memory, with providers that do as they are told.

mod checks;
mod desk;
mod faulty;
mod free;
mod hubs;
mod jobs;
mod money;
mod repeated;
mod routed;
mod stops;
mod x402;
