//! The streams of a store: their names, their settings, and making or checking them at the start.

pub(crate) use self::differences::differences;
pub use self::ensure::StreamError;
pub(crate) use self::ensure::{Missing, Policy, ensure, info};
pub(crate) use self::held::Held;
pub(crate) use self::layout::{Layout, Names, Place};

mod differences;
mod ensure;
mod held;
mod layout;
pub(crate) mod wanted;
