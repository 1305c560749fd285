//! Remote identities.
