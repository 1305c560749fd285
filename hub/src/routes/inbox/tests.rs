//! The inbox over HTTP.
