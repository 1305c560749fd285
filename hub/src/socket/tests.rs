//! Sockets, over real connections.
