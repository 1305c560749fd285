//! Failures in the words of the command line: a hub speaks of headers, the library of calls, and here there are flags.

use std::error::Error as StdError;
use std::io;

use aip_client::{Error, Problem};

use crate::failure::Failure;

/// The same failure, with the option to give where there is one. `hub` is the URL that was used.
pub(crate) fn of_the_command(failure: Failure, hub: Option<&str>) -> Failure {
    let Failure::Client(error) = failure else {
        return failure;
    };
    match error {
        Error::Refused(mut problem) => {
            if let Some(detail) = refusal(&problem) {
                detail.clone_into(&mut problem.detail);
            }
            Error::Refused(problem).into()
        }
        Error::Insecure(url) => {
            let secure = url.replacen("http://", "https://", 1);
            Failure::Usage(format!(
                "{url}: plain http is for this machine only; write {secure}, or add --allow-http"
            ))
        }
        Error::Url(text) => Failure::Usage(format!(
            "{text:?} is not the URL of a hub; write it as {}",
            likely_url(&text)
        )),
        Error::KeysOfAnother(did) => Failure::Usage(format!(
            "the key file holds the keys of {}; for another name, name another key file with --key or AIP_KEY",
            did.handle()
        )),
        Error::Replaced => Failure::Other(
            "another listener of this agent took over; --share divides the mail between them, --come-back waits \
             for the other one to end"
                .to_owned(),
        ),
        error => match hub.and_then(|hub| scheme_hint(&error, hub)) {
            Some(hint) => Failure::Other(format!("{}; {hint}", error.sentence())),
            None => error.into(),
        },
    }
}

/// What to do about a refusal that the hub explains in terms of HTTP.
fn refusal(problem: &Problem) -> Option<&'static str> {
    Some(match problem.code.as_str() {
        "invite_required" => {
            "this hub takes new agents by invite, and none was given, or it is unknown, used up or past its end; \
             ask its operator for one, and give it with --invite CODE"
        }
        "sender_not_local" => {
            "the keys are those of another hub's agent; name the agent's own hub with --hub, or leave --hub and \
             AIP_HUB away"
        }
        "token_invalid" | "challenge_invalid" => {
            "the hub did not take a login that it had just asked for; try again in a moment"
        }
        "account_not_found" => "the agent has no account at this hub; make one with `aip account create`",
        "key_not_found" => "the account has no such key; `aip account show` lists them",
        "visitor_invalid" => "the name of a visitor, which --trial gives, is 8 to 64 of A-Z a-z 0-9 _ -",
        _ => return None,
    })
}

/// Without a scheme it is most likely a domain, or a port of this machine.
fn likely_url(text: &str) -> String {
    let is_bare = !text.is_empty()
        && text
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || ".-:".contains(c));
    if !is_bare {
        return "https://hub.example".to_owned();
    }
    let is_here = text.starts_with("localhost") || text.starts_with("127.");
    format!("{}://{text}", if is_here { "http" } else { "https" })
}

/// One side speaks http and the other https: the line opens, and then nothing makes sense.
fn scheme_hint(error: &Error, hub: &str) -> Option<String> {
    let Error::Unreachable { source, .. } = error else {
        return None;
    };
    if let Some(rest) = hub.strip_prefix("https://") {
        let hint = || format!("the hub there does not speak https; is it http://{rest}?");
        return is_not_tls(source.as_ref()).then(hint);
    }
    let rest = hub.strip_prefix("http://")?;
    let failed = source.downcast_ref::<reqwest::Error>()?;
    let is_garbled = !failed.is_connect() && !failed.is_timeout();
    is_garbled.then(|| format!("if the hub there speaks https, write https://{rest}"))
}

/// Whether a TLS handshake was answered with something else.
fn is_not_tls(error: &(dyn StdError + 'static)) -> bool {
    let mut cause = Some(error);
    while let Some(error) = cause {
        if let Some(rustls::Error::InvalidMessage(_)) = error.downcast_ref() {
            return true;
        }
        // An I/O error hides what it was made of: its source is that one's source.
        let made_of = error.downcast_ref::<io::Error>().and_then(io::Error::get_ref);
        cause = match made_of {
            Some(inner) => Some(inner),
            None => error.source(),
        };
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(error: Error, hub: &str) -> String {
        of_the_command(error.into(), Some(hub)).sentence()
    }

    #[test]
    fn an_invite_is_asked_for_by_its_flag() {
        let detail = "send a good invite in X-AIP-Invite; this one is missing";
        let refused = Error::Refused(Box::new(Problem::new("invite_required", detail)));
        let failure = of_the_command(refused.into(), None);
        assert_eq!(failure.exit_code(), 3);
        let said = failure.sentence();
        assert!(
            said.contains("--invite CODE") && !said.contains("X-AIP-Invite"),
            "{said}"
        );
        let other = Error::Refused(Box::new(Problem::new("handle_taken", "Choose another.")));
        assert!(said_of(other).contains("Choose another."));
    }

    #[test]
    fn the_market_speaks_of_flags_and_commands() {
        for (code, detail, says) in [
            (
                "account_not_found",
                "POST /ai-market/v2/accounts makes one.",
                "aip account create",
            ),
            (
                "key_not_found",
                "GET /ai-market/v2/account lists them.",
                "aip account show",
            ),
            (
                "visitor_invalid",
                "X-AIMarket-Sandbox-Visitor is 8 to 64 of …",
                "--trial",
            ),
        ] {
            let said = said_of(Error::Refused(Box::new(Problem::new(code, detail))));
            assert!(said.contains(says) && !said.contains(detail), "{said}");
        }
    }

    fn said_of(error: Error) -> String {
        said(error, "https://hub.example")
    }

    #[test]
    fn urls_are_mended() {
        let insecure = of_the_command(Error::Insecure("http://hub.example".into()).into(), None);
        assert_eq!(insecure.exit_code(), 2);
        let sentence = insecure.sentence();
        assert!(
            sentence.contains("https://hub.example") && sentence.contains("--allow-http"),
            "{sentence}"
        );
        for (text, likely) in [
            ("hub.example", "https://hub.example"),
            ("localhost:8080", "http://localhost:8080"),
            ("ftp://x", "https://hub.example"),
            ("", "https://hub.example"),
        ] {
            assert!(said_of(Error::Url(text.into())).ends_with(likely), "{text}");
        }
    }

    #[test]
    fn a_hub_without_tls_is_recognised() {
        let garbled = rustls::Error::InvalidMessage(rustls::InvalidMessage::InvalidContentType);
        let unreachable = |source: io::Error| Error::Unreachable {
            doing: "looking",
            source: Box::new(source),
        };
        let wrapped = io::Error::other(io::Error::other(garbled));
        let sentence = said(unreachable(wrapped), "https://localhost:8080");
        assert!(sentence.ends_with("is it http://localhost:8080?"), "{sentence}");
        let away = unreachable(io::Error::from(io::ErrorKind::ConnectionRefused));
        assert!(!said(away, "https://localhost:8080").contains("http://"));
    }
}
