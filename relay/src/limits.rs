//! The named bounds of this room.
