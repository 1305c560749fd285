//! The room's contract tests, on its store in memory.

mod memory;
