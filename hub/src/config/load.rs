//! Reads the settings from all their sources and refuses keys that nobody knows.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::{Path, PathBuf};

use figment::Figment;
use figment::providers::{Env, Format, Serialized, Toml};
use figment::value::{Dict, Value};
use ipnet::IpNet;

use super::{Problems, Settings, render};

/// The prefix of the environment's keys: `AIP_HUB__HTTP__LISTEN` is `http.listen`.
const ENV_PREFIX: &str = "AIP_HUB__";

/// The keys whose values are secrets.
const SECRET_KEYS: &[&str] = &[
    "http.operator_token",
    "engines.registry_url",
    "engines.mailboxes_url",
    "engines.shared_url",
    "nats.password",
    "nats.token",
    "search.embedder_key",
];

/// What the command line sets; `None` leaves a key as the other sources have it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Overrides {
    /// `--dev`: start from [`Settings::development`].
    pub dev: bool,
    /// `--data`.
    pub data_dir: Option<PathBuf>,
    /// `--listen`.
    pub listen: Option<SocketAddr>,
    /// `--operator-listen`.
    pub operator_listen: Option<SocketAddr>,
    /// `--domain`.
    pub domain: Option<String>,
}

/// Loads: defaults, then `file`, then the environment, then `overrides`.
///
/// # Errors
/// Every key that is unknown, or the first value of the wrong kind, with the name of the key and its source.
/// Whether the values make sense together is [`Settings::check`].
pub fn load(file: Option<&Path>, overrides: &Overrides) -> Result<Settings, Problems> {
    let base = if overrides.dev {
        Settings::development()
    } else {
        Settings::default()
    };
    let mut figment = Figment::from(Serialized::defaults(&base));
    if let Some(file) = file {
        if !file.exists() {
            return Err(Problems::one(format!(
                "the settings file {} does not exist; give another with --config, or make one with `aip-hub init`",
                file.display()
            )));
        }
        figment = figment.merge(Toml::file_exact(file));
    }
    figment = figment.merge(Env::prefixed(ENV_PREFIX).split("__"));
    figment = with_plain_secrets(figment);
    figment = with_overrides(figment, overrides);
    refuse_unknown(&figment)?;
    figment
        .extract()
        .map_err(|error| Problems::new(error.into_iter().map(|e| sentence(&e)).collect()))
}

/// Takes secrets from the environment letter by letter: a password of digits is no number.
#[expect(
    clippy::disallowed_methods,
    reason = "the configuration is what reads the environment"
)]
fn with_plain_secrets(mut figment: Figment) -> Figment {
    for key in SECRET_KEYS {
        let name = format!("{ENV_PREFIX}{}", key.replace('.', "__").to_uppercase());
        // In quotation marks, it is written as a value of the file, and was read so.
        if let Ok(secret) = std::env::var(name)
            && !secret.starts_with('"')
        {
            figment = figment.merge(Serialized::default(key, secret));
        }
    }
    figment
}

fn with_overrides(mut figment: Figment, overrides: &Overrides) -> Figment {
    if overrides.dev {
        figment = figment.merge(Serialized::default("hub.development", true));
    }
    if let Some(data_dir) = &overrides.data_dir {
        figment = figment.merge(Serialized::default("hub.data_dir", data_dir));
    }
    if let Some(listen) = overrides.listen {
        figment = figment.merge(Serialized::default("http.listen", listen));
    }
    if let Some(listen) = overrides.operator_listen {
        figment = figment.merge(Serialized::default("http.operator_listen", listen));
    }
    if let Some(domain) = &overrides.domain {
        figment = figment.merge(Serialized::default("hub.domain", domain));
    }
    figment
}

/// Finds all unknown sections and keys at once; serde alone would stop at the first.
fn refuse_unknown(figment: &Figment) -> Result<(), Problems> {
    let merged: Dict = figment
        .extract()
        .map_err(|error| Problems::new(error.into_iter().map(|e| sentence(&e)).collect()))?;
    let known: BTreeMap<&str, Vec<&str>> = render::SECTIONS
        .iter()
        .map(|s| (s.name, s.keys.iter().map(|k| k.name).collect()))
        .collect();
    let mut problems = Vec::new();
    for (section, value) in &merged {
        let Some(keys) = known.get(section.as_str()) else {
            let sections = known.keys().copied().collect::<Vec<_>>().join(", ");
            problems.push(unknown(
                figment,
                section,
                &format!("the sections are: {sections}"),
            ));
            continue;
        };
        let Value::Dict(_, entries) = value else {
            problems.push(unknown(
                figment,
                section,
                &format!("write it as a section, [{section}]"),
            ));
            continue;
        };
        for key in entries.keys().filter(|key| !keys.contains(&key.as_str())) {
            let hint = format!("the keys of [{section}] are: {}", keys.join(", "));
            problems.push(unknown(figment, &format!("{section}.{key}"), &hint));
        }
    }
    Problems::check(problems)
}

fn unknown(figment: &Figment, key: &str, hint: &str) -> String {
    let source = figment.find_metadata(key).map_or_else(String::new, source_of);
    format!("there is no setting `{key}`{source}; {hint}")
}

fn source_of(metadata: &figment::Metadata) -> String {
    match &metadata.source {
        Some(figment::Source::File(path)) => format!(" (in {})", path.display()),
        _ if metadata.name.contains("environment") => " (in the environment)".to_owned(),
        _ => String::new(),
    }
}

fn sentence(error: &figment::Error) -> String {
    let source = error.metadata.as_ref().map_or_else(String::new, source_of);
    if error.path.is_empty() {
        return format!("the settings cannot be read{source}: {}", error.kind);
    }
    format!(
        "`{}` cannot be read{source}: {}",
        error.path.join("."),
        error.kind
    )
}

/// The networks of this machine itself, which development may reach.
pub(super) fn loopback_ranges() -> Vec<IpNet> {
    [
        (IpAddr::V4(Ipv4Addr::new(127, 0, 0, 0)), 8),
        (IpAddr::V6(Ipv6Addr::LOCALHOST), 128),
    ]
    .into_iter()
    .filter_map(|(address, bits)| IpNet::new(address, bits).ok())
    .collect()
}
