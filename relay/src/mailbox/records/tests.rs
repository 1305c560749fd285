//! Reading back.
