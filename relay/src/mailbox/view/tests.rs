//! A batch is read as if committed.
