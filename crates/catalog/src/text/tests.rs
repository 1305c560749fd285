//! Tests of the full-text list.
