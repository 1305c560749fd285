//! The front as the hub uses it: registration, operations, histories, sign-in, operators.

mod history;
mod operate;
mod operator;
mod register;
mod signin;

use aip_protocol::error::{ErrorCode, Refusal};
use aip_registry::RegistryError;

/// The refusal in an answer that must be one.
fn refused<T: std::fmt::Debug>(answer: Result<T, RegistryError>) -> Refusal {
    answer
        .expect_err("a refusal")
        .refusal()
        .expect("not a failure")
        .clone()
}

/// Its code.
fn code<T: std::fmt::Debug>(answer: Result<T, RegistryError>) -> ErrorCode {
    refused(answer).code
}
