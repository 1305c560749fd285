//! DIDs of the method `did:aip`: what machines store.

use std::fmt;
use std::sync::Arc;

use super::{Domain, Handle, Name, percent_encode, text_type};
use crate::error::{ErrorCode, Refusal};

const METHOD: &str = "did:aip:";

/// `did:aip:domain:name` in its one canonical spelling. Cheap to clone.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Did {
    text: Arc<str>,
}

text_type!(Did, parse);

impl Did {
    /// Reads the canonical spelling, byte for byte, as signed objects need it.
    ///
    /// Refuses with `did_invalid`, `did_method_unsupported`, or `did_foreign` when the second part
    /// is no domain and the DID therefore belongs to somebody else's use of the method.
    pub fn parse(text: &str) -> Result<Self, Refusal> {
        let rest = method_specific(text)?;
        let (domain, name) = match rest.split_once(':') {
            Some((domain, name)) => (domain, Some(name)),
            None => (rest, None),
        };
        // Either spelling of the port's colon is read; the comparison below wants the right one.
        let domain = Domain::parse(&domain.replace("%3A", ":").replace("%3a", ":"));
        let domain = domain.map_err(|_not_a_domain| {
            Refusal::new(
                ErrorCode::DidForeign,
                "the part after did:aip: is no domain, so this DID is not ours",
            )
        })?;
        let name = name.filter(|name| !name.contains(':'));
        let name = name.ok_or_else(|| invalid("a did:aip DID is did:aip:domain:name"))?;
        let name =
            Name::parse(name).map_err(|_not_a_name| invalid("the last part of the DID is not a name"))?;
        let did = Self::of(&Handle { name, domain });
        if did.as_str() == text {
            return Ok(did);
        }
        Err(invalid(format!(
            "the DID is not spelled canonically, write {did}"
        )))
    }

    /// Reads input to the API: the domain is lower-cased and `%3a` read as `%3A`; the name is
    /// taken as it is. Never inside a signed object.
    pub fn parse_input(text: &str) -> Result<Self, Refusal> {
        let Some(rest) = text.strip_prefix(METHOD) else {
            return Self::parse(text);
        };
        let end = rest.find(':').unwrap_or(rest.len());
        let (domain, name) = rest.split_at_checked(end).unwrap_or((rest, ""));
        let domain = domain.to_ascii_lowercase().replace("%3a", "%3A");
        Self::parse(&format!("{METHOD}{domain}{name}"))
    }

    pub(super) fn of(handle: &Handle) -> Self {
        Self {
            text: format!("{METHOD}{}:{}", handle.domain.in_did(), handle.name).into(),
        }
    }

    /// The DID.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The agent's name.
    pub fn name(&self) -> &str {
        self.parts().1
    }

    /// The agent's domain.
    pub fn domain(&self) -> Domain {
        Domain::canonical(self.parts().0.replace("%3A", ":"))
    }

    /// The handle of the same agent.
    pub fn handle(&self) -> Handle {
        Handle {
            name: Name(self.name().to_owned()),
            domain: self.domain(),
        }
    }

    /// The equivalent `did:web` (§3).
    pub fn did_web(&self) -> String {
        let (domain, name) = self.parts();
        format!("did:web:{domain}:agents:{name}")
    }

    /// Percent-encoded, to be put into a URL as it is.
    pub fn encoded(&self) -> String {
        percent_encode(self.as_str())
    }

    /// Domain as written in the DID, and name.
    fn parts(&self) -> (&str, &str) {
        // The canonical form always has both.
        self.text
            .strip_prefix(METHOD)
            .and_then(|rest| rest.split_once(':'))
            .unwrap_or_default()
    }
}

/// The part after `did:aip:`, in the character set of DID Core §3.1.
fn method_specific(text: &str) -> Result<&str, Refusal> {
    let named = text.strip_prefix("did:").and_then(|rest| rest.split_once(':'));
    let is_method = |name: &str| {
        !name.is_empty()
            && name
                .bytes()
                .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit())
    };
    let (method, rest) = named
        .filter(|(method, rest)| is_method(method) && !rest.is_empty())
        .ok_or_else(|| invalid("not a DID; a handle is turned into did:aip:domain:name first"))?;
    if method != "aip" {
        return Err(Refusal::new(
            ErrorCode::DidMethodUnsupported,
            "only did:aip is served here",
        ));
    }
    if is_idstring(rest) {
        Ok(rest)
    } else {
        Err(invalid("characters outside the DID syntax"))
    }
}

fn is_idstring(text: &str) -> bool {
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        let is_good = match byte {
            b'%' => [bytes.next(), bytes.next()]
                .into_iter()
                .all(|hex| hex.is_some_and(|hex| hex.is_ascii_hexdigit())),
            byte => byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-' | b':'),
        };
        if !is_good {
            return false;
        }
    }
    true
}

fn invalid(detail: impl Into<std::borrow::Cow<'static, str>>) -> Refusal {
    Refusal::new(ErrorCode::DidInvalid, detail)
}

impl fmt::Display for Did {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}
