//! Delivery to connected agents: events in, effects out.
