//! Rate limits per sender.
