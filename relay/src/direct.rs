//! Direct delivery to an agent's own endpoint.
