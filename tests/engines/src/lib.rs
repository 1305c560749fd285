//! Real NATS, PostgreSQL and Redis servers for tests and measurements.
