//! What came of verifying: true, false, or not checked.

use std::fmt;

use crate::multikey::VerifyingKey;

/// The three states. What could not be looked at is no forgery, and no proof either.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// A pinned key has signed it, and it is about what was asked.
    True,
    /// It is no proof: tampered with, of another signer, or about something else.
    False(Reason),
    /// It was not looked at.
    NotChecked(Reason),
}

impl Verdict {
    /// Whether it is proven.
    pub const fn is_true(&self) -> bool {
        matches!(self, Self::True)
    }

    /// Whether it was looked at, and refuted.
    pub const fn is_false(&self) -> bool {
        matches!(self, Self::False(_))
    }

    /// AIMarket's three states in JSON: `true`, `false`, `null`.
    pub const fn as_bool(&self) -> Option<bool> {
        match self {
            Self::True => Some(true),
            Self::False(_) => Some(false),
            Self::NotChecked(_) => None,
        }
    }

    /// Why it is not proven.
    pub const fn reason(&self) -> Option<&Reason> {
        match self {
            Self::True => None,
            Self::False(reason) | Self::NotChecked(reason) => Some(reason),
        }
    }
}

/// Why something is not proven. `Display` is a sentence for people, [`Self::code`] is for machines.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Reason {
    /// There is no object to look at.
    NothingToCheck,
    /// No key of the origin is known.
    NoKey,
    /// It has no `signature`.
    SignatureMissing,
    /// Its `signature` is no object with a `value`; what it is instead.
    SignatureShape(&'static str),
    /// Its signature is no base64 of 64 bytes.
    SignatureMalformed,
    /// It is signed with another algorithm than Ed25519.
    AlgorithmUnsupported,
    /// The version in its signature is no positive integer.
    VersionUnreadable,
    /// Its signature is of a version that came after this code.
    VersionUnsupported(u64),
    /// A signed member has another type than it should, or text that another member could be read out of.
    MemberInvalid(&'static str),
    /// No pinned key has signed these bytes.
    SignatureInvalid,
    /// The key that it names itself has signed it, and that one is not pinned.
    KeyNotPinned,
    /// It is genuine, and about another call.
    DifferentCall(Difference),
}

/// The first member in which a receipt is about another call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    /// `capability_id`, `product_id` or `price_usd`.
    pub member: &'static str,
    /// What the receipt attests.
    pub attested: String,
    /// What was called.
    pub expected: String,
}

impl Reason {
    /// The stable code; those of AIMarket's negative vectors where they name one.
    pub const fn code(&self) -> &'static str {
        match self {
            Self::NothingToCheck => "nothing-to-check",
            Self::NoKey => "no-key",
            Self::SignatureMissing => "signature-missing",
            Self::SignatureShape(_) => "signature-shape",
            Self::SignatureMalformed => "signature-malformed",
            Self::AlgorithmUnsupported => "algorithm-unsupported",
            Self::VersionUnreadable => "version-unreadable",
            Self::VersionUnsupported(_) => "version-unsupported",
            Self::MemberInvalid(_) => "member-invalid",
            Self::SignatureInvalid => "signature-invalid",
            Self::KeyNotPinned => "key-not-pinned",
            Self::DifferentCall(_) => "different-call",
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NothingToCheck => f.write_str("there is nothing to check"),
            Self::NoKey => f.write_str("no key of its signer is known"),
            Self::SignatureMissing => f.write_str("it is not signed"),
            Self::SignatureShape(found) => write!(
                f,
                "its signature is {found}, where an object is wanted: {{\"algorithm\":\"ed25519\",\"public_key\":\"<base64>\",\
                 \"value\":\"<base64>\"}}"
            ),
            Self::SignatureMalformed => f.write_str("its signature is not the base64 of 64 bytes"),
            Self::AlgorithmUnsupported => f.write_str("it is signed with another algorithm than ed25519"),
            Self::VersionUnreadable => f.write_str("the version of its signature is no positive integer"),
            Self::VersionUnsupported(version) => {
                write!(
                    f,
                    "its signature is of version {version}, which is not known here"
                )
            }
            Self::MemberInvalid(name) => write!(f, "its member {name} is not of the form that can be signed"),
            Self::SignatureInvalid => f.write_str("its signature is not of a pinned key over this content"),
            Self::KeyNotPinned => {
                f.write_str("it is signed with the key that it names itself, which is not pinned")
            }
            Self::DifferentCall(Difference {
                member,
                attested,
                expected,
            }) => write!(
                f,
                "it is genuine, and about a different call: {member} is {attested}, not {expected}"
            ),
        }
    }
}

/// What came of verifying one object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Check {
    /// Whether it is proven.
    pub verdict: Verdict,
    /// The pinned key that has signed it.
    pub key: Option<VerifyingKey>,
    /// The version of its signature, when there is one that can be read.
    pub version: Option<u64>,
    /// Its members that the signature does not cover, by name: nothing is proven of them. Everything, while nothing is
    /// proven.
    pub uncovered: Vec<String>,
    /// It also has a post-quantum signature, which is not looked at here.
    pub has_post_quantum: bool,
}

impl Check {
    /// Nothing is proven.
    pub(super) const fn unproven(verdict: Verdict) -> Self {
        Self {
            verdict,
            key: None,
            version: None,
            uncovered: Vec::new(),
            has_post_quantum: false,
        }
    }
}
