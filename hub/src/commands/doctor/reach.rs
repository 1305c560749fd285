//! The running hub: whether it is ready, and whether others reach it under its public URL.

use serde_json::Value;

use super::super::operator::{Operator, client};
use super::Finding;
use crate::config::Settings;
use crate::datadir::DataDir;

/// The discovery document (spec §8).
const DISCOVERY_PATH: &str = "/.well-known/aip";

pub(super) async fn examine(settings: &Settings, folder: &DataDir) -> Vec<Finding> {
    vec![ready(settings, folder).await, reachable(settings).await]
}

async fn ready(settings: &Settings, folder: &DataDir) -> Finding {
    let asked = match Operator::running(settings, folder) {
        Ok(operator) => operator.ready().await,
        Err(error) => Err(error),
    };
    match asked {
        Ok((true, _)) => Finding::Good("the hub runs and takes work".to_owned()),
        Ok((false, words)) => Finding::Bad(format!("the hub runs and takes no work: {}", reason(&words))),
        Err(error) => Finding::Bad(format!(
            "a process holds the data folder and does not answer: {error:#}"
        )),
    }
}

/// Why it takes none: the `reason` of its problem document, or all that it answered.
fn reason(answer: &str) -> String {
    let problem: Value = serde_json::from_str(answer).unwrap_or_default();
    match problem.get("reason").and_then(Value::as_str) {
        Some(reason) => reason.replace('_', " "),
        None => answer.trim().to_owned(),
    }
}

async fn reachable(settings: &Settings) -> Finding {
    if settings.hub.domain.is_empty() {
        return Finding::Doubtful(
            "whether others reach the hub is not known: hub.domain is not set here".to_owned(),
        );
    }
    let url = format!("{}{DISCOVERY_PATH}", settings.public_url());
    match discover(&url).await {
        Ok(domain) if domain == settings.hub.domain => Finding::Good(format!("{url} answers for {domain}")),
        Ok(domain) => Finding::Bad(format!(
            "{url} answers for {domain:?} and not for {}: the reverse proxy or the name leads elsewhere",
            settings.hub.domain
        )),
        Err(error) => Finding::Bad(format!(
            "{url} does not lead to this hub ({error:#}): check the name, the reverse proxy and its certificate"
        )),
    }
}

/// The domain that the discovery document at `url` is for.
async fn discover(url: &str) -> anyhow::Result<String> {
    let answer = client()?.get(url).send().await?.error_for_status()?;
    let document: Value = answer.json().await?;
    let domain = document.get("domain").and_then(Value::as_str);
    domain
        .map(str::to_owned)
        .ok_or_else(|| anyhow::anyhow!("what answers there is no hub"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn why_a_hub_takes_no_work_is_told_in_words() {
        let problem = r#"{"status":503,"detail":"The hub takes no work now.","reason":"disk_full"}"#;
        assert_eq!(reason(problem), "disk full");
        assert_eq!(reason("Bad Gateway\n"), "Bad Gateway");
        assert_eq!(reason("{}"), "{}");
    }
}
