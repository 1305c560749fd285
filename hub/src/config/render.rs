//! Writes settings as commented TOML: the default file, and what `config show` prints.

use std::fmt::Write as _;

use super::section::{Key, Section};
use super::{
    EgressSettings, EngineSettings, FederationSettings, HttpSettings, HubSettings, LogSettings,
    MarketPeerSettings, MarketSettings, NatsSettings, PostgresSettings, ReceiveSettings, RedisSettings,
    RegistrySettings, RelaySettings, SearchSettings, Settings, X402Settings,
};

/// A section with its name in the file.
#[derive(Debug)]
pub(super) struct SectionText {
    pub(super) name: &'static str,
    pub(super) about: &'static [&'static str],
    pub(super) keys: &'static [Key],
}

const fn text<S: Section>(name: &'static str) -> SectionText {
    SectionText {
        name,
        about: S::ABOUT,
        keys: S::KEYS,
    }
}

/// All sections in the order of the file.
pub(super) const SECTIONS: &[SectionText] = &[
    text::<HubSettings>("hub"),
    text::<HttpSettings>("http"),
    text::<RelaySettings>("relay"),
    text::<ReceiveSettings>("receive"),
    text::<RegistrySettings>("registry"),
    text::<SearchSettings>("search"),
    text::<FederationSettings>("federation"),
    text::<MarketSettings>("market"),
    text::<MarketPeerSettings>("market_peers"),
    text::<X402Settings>("market_x402"),
    text::<EgressSettings>("egress"),
    text::<EngineSettings>("engines"),
    text::<PostgresSettings>("postgres"),
    text::<NatsSettings>("nats"),
    text::<RedisSettings>("redis"),
    text::<LogSettings>("log"),
];

const DEFAULT_HEADER: &str = "\
# All settings of aip-hub at their defaults. Written by `aip-hub config default`; a test compares.
#
";

const HEADER: &str = "\
# A file needs only the keys it changes. The environment wins over the file (AIP_HUB__HTTP__LISTEN for
# http.listen), the command line over both. `aip-hub config check` tells what is wrong with a file.
";

/// The text of `config/default.toml`: every key with its comment and its default.
///
/// # Errors
/// None with the settings of this crate; a value that TOML cannot hold would be one.
pub fn default_toml() -> Result<String, toml::ser::Error> {
    Ok(format!(
        "{DEFAULT_HEADER}{}",
        commented_toml(&Settings::default())?
    ))
}

/// `settings` as TOML with the comment of every key.
///
/// # Errors
/// A path that is not UTF-8.
pub fn commented_toml(settings: &Settings) -> Result<String, toml::ser::Error> {
    Ok(format!("{HEADER}{}", body(settings, true)?))
}

/// `settings` as TOML without comments, secrets redacted.
///
/// # Errors
/// A path that is not UTF-8.
pub fn to_toml(settings: &Settings) -> Result<String, toml::ser::Error> {
    body(settings, false)
}

fn body(settings: &Settings, comments: bool) -> Result<String, toml::ser::Error> {
    let values = toml::Table::try_from(settings)?;
    let mut out = String::new();
    for section in SECTIONS {
        if comments || !out.is_empty() {
            out.push('\n');
        }
        if comments {
            comment(&mut out, section.about);
        }
        line(&mut out, &format!("[{}]", section.name));
        for key in section.keys {
            let Some(value) = values.get(section.name).and_then(|s| s.get(key.name)) else {
                continue;
            };
            if comments {
                comment(&mut out, key.about);
            }
            line(&mut out, &format!("{} = {}", key.name, literal(value)));
        }
    }
    Ok(out)
}

fn comment(out: &mut String, lines: &[&str]) {
    for text in lines {
        line(out, &format!("#{text}"));
    }
}

fn line(out: &mut String, text: &str) {
    // Writing to a String cannot fail.
    _ = writeln!(out, "{text}");
}

/// A value as TOML, with large integers in groups of three.
fn literal(value: &toml::Value) -> String {
    match value {
        toml::Value::Integer(number) if number.unsigned_abs() >= 10_000 => grouped(*number),
        other => other.to_string(),
    }
}

fn grouped(number: i64) -> String {
    let digits = number.unsigned_abs().to_string();
    let mut out = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            out.push('_');
        }
        out.push(digit);
    }
    if number < 0 { format!("-{out}") } else { out }
}
