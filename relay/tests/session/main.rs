//! Delivery to connected agents: the pure machine against a model, and whole links over the store in memory.

mod link;
mod machine;
mod model;
mod reader;
mod world;
