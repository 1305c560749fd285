//! What providers earned, and what the operator paid them.

pub mod add;
pub mod list;
