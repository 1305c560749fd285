//! The order of calls, the bounds of the queue, and the end.
