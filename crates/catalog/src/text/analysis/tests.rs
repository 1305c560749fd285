//! Tests of what text is turned into.
