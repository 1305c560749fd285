//! The admission pipeline of spec §5, cheap checks first.
