//! The streams of a store: their names, their settings, and making or checking them at the start.

pub(crate) use self::layout::{Layout, Names, Place, Token};

mod layout;
pub(crate) mod wanted;
