//! Handles: `name#domain`, what people read.

use std::fmt;

use super::{Did, Domain, Name, decode_once, percent_encode, text_type};
use crate::error::{ErrorCode, Refusal};

/// A name at a domain, `alice#aigentix.org`.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Handle {
    /// The agent's name within the domain.
    pub name: Name,
    /// The domain, with its port if any.
    pub domain: Domain,
}

text_type!(Handle, parse);

impl Handle {
    /// Reads `name#domain`, or the percent-encoded `name%23domain` that search answers carry.
    ///
    /// Without a `#` the refusal is `handle_domain_missing`: a raw `#` in a URL starts a fragment
    /// and never reaches a server. More than one is `handle_invalid`.
    pub fn parse(text: &str) -> Result<Self, Refusal> {
        if !text.contains('#') && text.contains("%23") {
            return Self::split(&decode_once(text)?);
        }
        Self::split(text)
    }

    fn split(text: &str) -> Result<Self, Refusal> {
        let Some((name, domain)) = text.split_once('#') else {
            let detail = "the handle has no domain; in a URL write it percent-encoded, as name%23domain";
            return Err(Refusal::new(ErrorCode::HandleDomainMissing, detail));
        };
        if domain.contains('#') {
            return Err(Refusal::new(
                ErrorCode::HandleInvalid,
                "a handle has exactly one '#'",
            ));
        }
        Ok(Self {
            name: Name::parse(name)?,
            domain: Domain::parse(domain)?,
        })
    }

    /// The DID of the same agent.
    pub fn did(&self) -> Did {
        Did::of(self)
    }

    /// Percent-encoded, to be put into a URL as it is.
    pub fn encoded(&self) -> String {
        percent_encode(&self.to_string())
    }
}

impl fmt::Display for Handle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}#{}", self.name, self.domain)
    }
}
