//! The service that the hub calls: submit, status.
