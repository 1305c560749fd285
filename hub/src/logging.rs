//! The log: where it goes, in what form, and that a panic is in it.

use std::io::IsTerminal as _;
use std::panic::PanicHookInfo;

use tracing_subscriber::EnvFilter;
use tracing_subscriber::util::{SubscriberInitExt as _, TryInitError};

use crate::config::{LogFormat, LogSettings};

/// The web framework logs each malformed request as an error, and so a stranger could fill the log. A filter that
/// names `actix_http` itself has the last word.
const QUIET: &str = "actix_http=off";

/// Why there is no log.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LogError {
    /// `log.filter` cannot be read.
    #[error(
        "`log.filter` = {filter:?} cannot be read: {source}; write a level, or levels by module such as info,aip_relay=debug"
    )]
    Filter {
        /// The setting.
        filter: String,
        /// Why not.
        source: tracing_subscriber::filter::ParseError,
    },
    /// Something has set a log up before.
    #[error("the log cannot be set up")]
    Taken(#[from] TryInitError),
}

/// Sets the log of this process up, on standard error, and makes panics part of it.
///
/// # Errors
/// The filter cannot be read, or there is a log already.
pub fn init(settings: &LogSettings) -> Result<(), LogError> {
    let lines = tracing_subscriber::fmt()
        .with_env_filter(filter(settings)?)
        .with_ansi(std::io::stderr().is_terminal())
        .with_writer(std::io::stderr);
    match settings.format {
        LogFormat::Text => lines.finish().try_init()?,
        LogFormat::Json => lines
            .json()
            .flatten_event(true)
            .with_current_span(true)
            .finish()
            .try_init()?,
    }
    std::panic::set_hook(Box::new(log_panic));
    Ok(())
}

/// The filter of `log.filter`.
///
/// # Errors
/// It cannot be read.
pub fn filter(settings: &LogSettings) -> Result<EnvFilter, LogError> {
    EnvFilter::try_new(format!("{QUIET},{}", settings.filter)).map_err(|source| LogError::Filter {
        filter: settings.filter.clone(),
        source,
    })
}

/// A panic is a bug; its place is enough to find it. Its text is left out where it is built at run time, since it
/// may hold what a stranger sent.
fn log_panic(panic: &PanicHookInfo<'_>) {
    let place = panic
        .location()
        .map_or_else(|| "an unknown place".to_owned(), ToString::to_string);
    let text = panic
        .payload()
        .downcast_ref::<&str>()
        .copied()
        .unwrap_or("(text built at run time)");
    tracing::error!(place, text, "A bug: a thread panicked at {place}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_filter_that_cannot_be_read_is_named() {
        let bad = LogSettings {
            filter: "aip_hub=loud".to_owned(),
            ..LogSettings::default()
        };
        let error = filter(&bad).unwrap_err().to_string();
        assert!(
            error.contains("log.filter") && error.contains("aip_hub=loud"),
            "{error}"
        );
        filter(&LogSettings {
            filter: "info,aip_relay=debug".to_owned(),
            ..LogSettings::default()
        })
        .unwrap();
    }
}
