//! Who is connected.
