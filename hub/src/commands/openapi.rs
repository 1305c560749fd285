//! `aip-hub openapi`: the OpenAPI document, as the hub serves it at `/openapi.json`.

use std::process::ExitCode;

use anyhow::Context as _;

use super::output;

pub(super) fn run() -> anyhow::Result<ExitCode> {
    let document = crate::openapi::json().context("the document cannot be written")?;
    output::line(document.trim_end())?;
    Ok(ExitCode::SUCCESS)
}
