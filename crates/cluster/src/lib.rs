//! What several processes of one hub share.
