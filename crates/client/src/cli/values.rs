//! Values of the command line: agents as people write them, and spans of time.

use std::time::Duration;

use aip_client::market::{Amount, NoAmount};
use aip_client::parse_agent;
use aip_client::protocol::error::ErrorCode;
use aip_client::protocol::listing::ListingKind;
use aip_client::protocol::name::{Did, Domain, Name};

/// Reads an agent: a handle, a DID, or the mail-like forms `alice@domain` and `@alice@domain` (spec §1: on the command
/// line only).
pub(crate) fn agent(text: &str) -> Result<Did, String> {
    let mail_like = !text.starts_with("did:") && !text.contains('#') && !text.contains("%23");
    let named = text.strip_prefix('@').unwrap_or(text);
    let handle = match named.split_once('@') {
        Some((name, domain)) if mail_like => format!("{name}#{domain}"),
        _ => text.to_owned(),
    };
    parse_agent(&handle).map_err(|refusal| match refusal.code {
        ErrorCode::HandleDomainMissing => {
            format!("the domain is missing; write it as {text}#example.org or {text}@example.org")
        }
        _ => refusal.detail.into_owned(),
    })
}

/// The name that an agent asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Wanted {
    pub(crate) name: Name,
    /// Where a whole handle was given: it must be that of the hub.
    pub(crate) domain: Option<Domain>,
}

/// Reads the name to register: alone, or as an agent of the hub is written.
pub(crate) fn wanted(text: &str) -> Result<Wanted, String> {
    let is_whole = text.contains(['#', '@', '%', ':']);
    let agent = if is_whole { agent(text).map(Some) } else { Ok(None) };
    let agent = agent.map_err(|why| format!("give the name alone, such as alice; as a handle: {why}"))?;
    let name = Name::parse(agent.as_ref().map_or(text, Did::name));
    Ok(Wanted {
        name: name.map_err(|refusal| refusal.detail.into_owned())?,
        domain: agent.as_ref().map(Did::domain),
    })
}

/// Reads a span such as `90s`, `30m`, `1h`, `7d`, or plain seconds.
pub(crate) fn span(text: &str) -> Result<Duration, String> {
    let says = || "write a number and s, m, h or d, such as 90s, 30m, 1h or 7d".to_owned();
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit = text.strip_prefix(digits).unwrap_or_default();
    let factor = match unit {
        "" | "s" => 1,
        "m" => 60,
        "h" => 3600,
        "d" => 86_400,
        _ => return Err(says()),
    };
    let count: u64 = digits.parse().map_err(|_not_a_number| says())?;
    count
        .checked_mul(factor)
        .map(Duration::from_secs)
        .ok_or_else(says)
}

/// Reads what kind of thing is offered.
pub(crate) fn kind(text: &str) -> Result<ListingKind, String> {
    ListingKind::parse(text).ok_or_else(|| "write capability, product or concept".to_owned())
}

/// Reads an attribute: `color=red`.
pub(crate) fn attribute(text: &str) -> Result<(String, String), String> {
    let pair = text.split_once('=').filter(|(name, _)| !name.is_empty());
    let (name, value) = pair.ok_or_else(|| "write it as name=value, such as color=red".to_owned())?;
    Ok((name.to_owned(), value.to_owned()))
}

/// Reads a currency: three letters, whatever their case.
pub(crate) fn currency(text: &str) -> Result<String, String> {
    let is_code = text.len() == 3 && text.bytes().all(|byte| byte.is_ascii_alphabetic());
    let code = is_code.then(|| text.to_ascii_uppercase());
    code.ok_or_else(|| "write three letters, such as EUR".to_owned())
}

/// Reads an amount of US dollars, such as `0.25`.
pub(crate) fn amount(text: &str) -> Result<Amount, String> {
    text.parse().map_err(|why: NoAmount| why.to_string())
}

/// Reads what separates the columns of a table.
pub(crate) fn separator(text: &str) -> Result<u8, String> {
    match text.as_bytes() {
        b"tab" | b"\\t" => Ok(b'\t'),
        [byte] if byte.is_ascii() && !byte.is_ascii_alphanumeric() && *byte != b'"' => Ok(*byte),
        _ => Err("write one character, such as ; or the word tab".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_agent_is_written_in_five_ways() {
        for text in [
            "alice#localhost:8080",
            "alice%23localhost:8080",
            "alice@localhost:8080",
            "@alice@localhost:8080",
            "did:aip:localhost%3A8080:alice",
            "Alice#LOCALHOST:8080",
        ] {
            assert_eq!(
                agent(text).unwrap().as_str(),
                "did:aip:localhost%3A8080:alice",
                "{text}"
            );
        }
        for text in [
            "alice",
            "@alice",
            "alice@",
            "@alice@b@c",
            "did:web:x",
            "a#b#c",
            "",
        ] {
            assert!(agent(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_missing_domain_is_explained_for_the_command_line() {
        let said = agent("alice").unwrap_err();
        assert!(
            said.contains("alice#example.org") && !said.contains("%23"),
            "{said}"
        );
    }

    #[test]
    fn a_name_is_asked_for_alone_or_as_a_handle() {
        let alone = wanted("Alice").unwrap();
        assert_eq!((alone.name.as_str(), alone.domain), ("alice", None));
        for text in [
            "alice#localhost:1",
            "alice%23localhost:1",
            "@alice@localhost:1",
            "did:aip:localhost%3A1:alice",
        ] {
            let whole = wanted(text).unwrap();
            assert_eq!(
                (whole.name.as_str(), whole.domain.unwrap().as_str()),
                ("alice", "localhost:1"),
                "{text}"
            );
        }
        for text in ["", "-", "a b", "a..b", "alice#", "#x", "@alice", "a#b#c"] {
            assert!(wanted(text).is_err(), "{text}");
        }
    }

    #[test]
    fn attributes_currencies_and_separators() {
        assert_eq!(attribute("a=b=c"), Ok(("a".to_owned(), "b=c".to_owned())));
        assert!(attribute("=b").is_err() && attribute("a").is_err());
        assert_eq!(currency("eur"), Ok("EUR".to_owned()));
        assert!(currency("€").is_err() && currency("euro").is_err());
        assert_eq!(
            (separator("tab"), separator(";"), separator("\\t")),
            (Ok(b'\t'), Ok(b';'), Ok(b'\t'))
        );
        assert!(separator("").is_err() && separator("ab").is_err() && separator("\"").is_err());
        assert!(kind("product").is_ok() && kind("Product").is_err());
    }

    #[test]
    fn spans_have_a_unit_or_are_seconds() {
        let secs = |text| span(text).map(|span| span.as_secs());
        assert_eq!(
            [secs("90"), secs("90s"), secs("2m"), secs("1h"), secs("7d")].map(Result::unwrap),
            [90, 90, 120, 3600, 604_800]
        );
        for text in [
            "",
            "s",
            "-1s",
            "1.5h",
            "1w",
            "99999999999999999999d",
            "184467440737095516d",
        ] {
            assert!(span(text).is_err(), "{text}");
        }
    }
}
