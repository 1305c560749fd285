//! Receipts: that a capability was called, what was paid for it, and what came of it.
//!
//! The text of version 1 has seven fields. Version 2 adds a digest of nine more: what a rejection, and a refund, is argued
//! from. A receipt is signed at version 2 when it has at least one of the nine.

use rand_core::CryptoRng;

use super::digest::{compact_members, sha256_hex};
use super::number::Number;
use super::signature::{self, Block};
use super::time_text;
use super::value::{Members, Value};
use super::verdict::{Check, Difference, Reason, Verdict};
use crate::error::Refusal;
use crate::multikey::{SigningKey, VerifyingKey};
use crate::time::Timestamp;

/// The fields of version 1, in the order of the text.
pub const FIELDS_V1: [&str; 7] = [
    "nonce",
    "product_id",
    "capability_id",
    "price_usd",
    "timestamp",
    "success",
    "latency_ms",
];

/// What only version 2 covers, in the order of the digest.
pub const FIELDS_V2: [&str; 9] = [
    "category",
    "channel_id",
    "delivery_reasons",
    "plugin",
    "reason",
    "refunded",
    "trace_id",
    "type",
    "verify_score",
];

/// The newest version.
const VERSION_MAX: u64 = 2;
/// How far a price may lie from the one that was expected, in millionths: it crosses JSON as a double.
const PRICE_TOLERANCE_MICROS: u64 = 5;
/// How much of an id of a stranger is told in a sentence.
const TOLD_CHARS_MAX: usize = 80;

/// What a nonce is for, which is how it starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NonceKind {
    /// `rcpt_`: of a call that was made.
    Receipt,
    /// `blocked_`: of a call that was not let through.
    Blocked,
    /// `vfail_`: of a call whose result was not accepted.
    VerificationFailed,
}

/// A fresh nonce: what it is for, and 128 random bits in hex. Never made from the time and the product, of which two
/// receipts of one second would share it.
pub fn nonce(kind: NonceKind, rng: &mut impl CryptoRng) -> String {
    let prefix = match kind {
        NonceKind::Receipt => "rcpt_",
        NonceKind::Blocked => "blocked_",
        NonceKind::VerificationFailed => "vfail_",
    };
    let mut bytes = [0; 16];
    rng.fill_bytes(&mut bytes);
    format!("{prefix}{:032x}", u128::from_be_bytes(bytes))
}

/// The receipt of a call that was made, to be signed.
#[derive(Debug, Clone, Copy)]
pub struct ReceiptDraft<'a> {
    /// From [`nonce`].
    pub nonce: &'a str,
    /// What was called.
    pub product_id: &'a str,
    /// What was called.
    pub capability_id: &'a str,
    /// What was charged, in micro-dollars.
    pub price_micros: u64,
    /// What it costs by the list, in micro-dollars. Not covered by the signature.
    pub list_price_micros: u64,
    /// When it was answered.
    pub timestamp: Timestamp,
    /// Whether the work was done.
    pub success: bool,
    /// How long the provider took, in milliseconds.
    pub latency_ms: u64,
    /// Whether it was a free trial. Not covered by the signature.
    pub sandbox: bool,
}

impl ReceiptDraft<'_> {
    /// The signed receipt, of version 1.
    ///
    /// # Errors
    /// `member_invalid` for a `|` in a text.
    pub fn sign(&self, key: &SigningKey) -> Result<Value, Refusal> {
        let mut receipt = members([
            ("nonce", self.nonce.into()),
            ("product_id", self.product_id.into()),
            ("capability_id", self.capability_id.into()),
            ("price_usd", Value::usd(self.price_micros)),
            ("list_price_usd", Value::usd(self.list_price_micros)),
            ("timestamp", time_text(self.timestamp).into()),
            ("success", self.success.into()),
            ("latency_ms", self.latency_ms.into()),
        ]);
        if self.sandbox {
            receipt.insert("sandbox".to_owned(), true.into());
        }
        sign(receipt, key)
    }
}

/// The receipt of a call that was turned away, to be signed.
#[derive(Debug, Clone, Copy)]
pub struct RejectionDraft<'a> {
    /// From [`nonce`].
    pub nonce: &'a str,
    /// What was called.
    pub product_id: &'a str,
    /// What was called.
    pub capability_id: &'a str,
    /// Which channel would have paid.
    pub channel_id: Option<&'a str>,
    /// Why, in words.
    pub reason: &'a str,
    /// When.
    pub timestamp: Timestamp,
    /// Whether what was held went back.
    pub refunded: bool,
    /// What turned it away.
    pub by: Rejection<'a>,
}

/// What turned a call away.
#[derive(Debug, Clone, Copy)]
pub enum Rejection<'a> {
    /// A check of safety.
    Safety {
        /// Of what kind the danger is.
        category: &'a str,
        /// Which check it was.
        plugin: &'a str,
    },
    /// A check of the result.
    Verification {
        /// What it scored.
        score: Number,
        /// What it lacked.
        delivery_reasons: &'a [String],
        /// Where the check can be looked up.
        trace_id: &'a str,
    },
}

impl RejectionDraft<'_> {
    /// The signed receipt, of version 2.
    ///
    /// # Errors
    /// `member_invalid` for a `|` in a text of version 1.
    pub fn sign(&self, key: &SigningKey) -> Result<Value, Refusal> {
        let mut receipt = members([
            ("nonce", self.nonce.into()),
            ("product_id", self.product_id.into()),
            ("capability_id", self.capability_id.into()),
            ("channel_id", self.channel_id.into()),
            ("reason", self.reason.into()),
            ("timestamp", time_text(self.timestamp).into()),
            ("refunded", self.refunded.into()),
        ]);
        receipt.extend(match self.by {
            Rejection::Safety { category, plugin } => members([
                ("type", "safety_rejection".into()),
                ("category", category.into()),
                ("plugin", plugin.into()),
            ]),
            Rejection::Verification {
                score,
                delivery_reasons,
                trace_id,
            } => members([
                ("type", "verification_rejection".into()),
                ("verify_score", score.into()),
                ("delivery_reasons", delivery_reasons.to_vec().into()),
                ("trace_id", trace_id.into()),
            ]),
        });
        sign(receipt, key)
    }
}

fn members<const N: usize>(members: [(&str, Value); N]) -> Members {
    members
        .into_iter()
        .map(|(name, value)| (name.to_owned(), value))
        .collect()
}

/// Signs any receipt at the version that its members ask for; a signature that it has is replaced.
///
/// # Errors
/// `member_invalid` when a field of version 1 is of another type than it should, or a text of it has a `|`.
pub fn sign(mut receipt: Members, key: &SigningKey) -> Result<Value, Refusal> {
    let version = if FIELDS_V2.iter().any(|name| receipt.contains_key(*name)) {
        2
    } else {
        1
    };
    let price = signature::number(&receipt, "price_usd").map_err(|reason| signature::unsignable(&reason))?;
    let text = canonical(&receipt, version, price).map_err(|reason| signature::unsignable(&reason))?;
    receipt.insert(
        signature::MEMBER.to_owned(),
        signature::sign(key, text.as_bytes(), version),
    );
    Ok(receipt.into())
}

/// The text that is signed, with this spelling of the price.
fn canonical(receipt: &Members, version: u64, price: Number) -> Result<String, Reason> {
    let text = |name| signature::text(receipt, name);
    let success = match receipt.get("success") {
        None | Some(Value::Null | Value::Bool(false)) => 0,
        Some(Value::Bool(true)) => 1,
        Some(_) => return Err(Reason::MemberInvalid("success")),
    };
    let v1 = format!(
        "nonce:{}|product_id:{}|capability_id:{}|price_usd:{price}|timestamp:{}|success:{success}|latency_ms:{}",
        text("nonce")?,
        text("product_id")?,
        text("capability_id")?,
        text("timestamp")?,
        signature::number(receipt, "latency_ms")?,
    );
    Ok(if version < 2 {
        v1
    } else {
        format!("{v1}|v:2|fields:{}", fields_digest(receipt))
    })
}

/// The digest of what version 2 adds; what is not there counts as `null`, so that taking a member out changes it.
fn fields_digest(receipt: &Members) -> String {
    let fields = FIELDS_V2.map(|name| (name, receipt.get(name).unwrap_or(&Value::Null)));
    sha256_hex(&compact_members(fields.into_iter()))
}

/// The call that a receipt should be about.
#[derive(Debug, Clone, Copy, Default)]
pub struct Expected<'a> {
    /// The capability that was called.
    pub capability_id: Option<&'a str>,
    /// Its product. A receipt that names none is not about another one.
    pub product_id: Option<&'a str>,
    /// What was to be paid, in micro-dollars; five millionths more or less are the same.
    pub price_micros: Option<u64>,
}

impl Expected<'_> {
    /// The first difference between the call and what the receipt attests. Only signed members are looked at.
    fn difference(&self, receipt: &Members) -> Option<Difference> {
        let attested = |name| receipt.get(name).and_then(Value::as_str).unwrap_or_default();
        let differs = |member, expected: &str| {
            (attested(member) != expected).then(|| Difference {
                member,
                attested: quoted(attested(member)),
                expected: quoted(expected),
            })
        };
        let names_product = !attested("product_id").is_empty();
        self.capability_id
            .and_then(|expected| differs("capability_id", expected))
            .or_else(|| {
                self.product_id
                    .filter(|_| names_product)
                    .and_then(|expected| differs("product_id", expected))
            })
            .or_else(|| price_difference(receipt, self.price_micros?))
    }
}

/// Foreign text for a sentence: its beginning, with what is not to be printed escaped.
fn quoted(text: &str) -> String {
    format!("{:?}", text.chars().take(TOLD_CHARS_MAX).collect::<String>())
}

fn price_difference(receipt: &Members, expected_micros: u64) -> Option<Difference> {
    let attested = signature::number(receipt, "price_usd").unwrap_or(Number::ZERO);
    let is_same = attested
        .micros()
        .is_some_and(|micros| micros.abs_diff(expected_micros) <= PRICE_TOLERANCE_MICROS);
    (!is_same).then(|| Difference {
        member: "price_usd",
        attested: attested.to_string(),
        expected: Number::usd(expected_micros).to_string(),
    })
}

/// Whether one of the pinned keys of the origin has signed this receipt, and it is about this call.
///
/// The key that a receipt names itself is not believed. The version is the one that its signature names: a receipt of
/// version 1 with members that only version 2 covers is [`Verdict::True`] and has them in [`Check::uncovered`]; who argues
/// from them asks [`is_evidence_covered`]. A whole price may have lost its `.0` on the way (a browser drops it).
pub fn verify(receipt: &Value, pinned: &[VerifyingKey], expected: &Expected<'_>) -> Check {
    let Some(members) = receipt.as_object().filter(|members| !members.is_empty()) else {
        return Check::unproven(Verdict::NotChecked(Reason::NothingToCheck));
    };
    let check = signed(members, pinned).unwrap_or_else(Check::unproven);
    let covers_v2 = check.version.unwrap_or(1) >= 2;
    let covers = |name: &str| FIELDS_V1.contains(&name) || covers_v2 && FIELDS_V2.contains(&name);
    let mut check = signature::with_uncovered(check, members, covers);
    if check.verdict.is_true()
        && let Some(difference) = expected.difference(members)
    {
        check.verdict = Verdict::False(Reason::DifferentCall(difference));
    }
    check
}

fn signed(receipt: &Members, pinned: &[VerifyingKey]) -> Result<Check, Verdict> {
    let block = Block::of(receipt, VERSION_MAX)?;
    let price = signature::number(receipt, "price_usd").map_err(Verdict::False)?;
    let spellings = [Some(price), price.respelled()];
    let texts: Result<Vec<Vec<u8>>, Reason> = spellings
        .into_iter()
        .flatten()
        .map(|price| canonical(receipt, block.version, price).map(String::into_bytes))
        .collect();
    Ok(block.check(pinned, &texts.map_err(Verdict::False)?))
}

/// Whether a receipt that is proven is so with everything that a rejection or a refund is argued from.
pub fn is_evidence_covered(check: &Check) -> bool {
    check.verdict.is_true()
        && !check
            .uncovered
            .iter()
            .any(|name| FIELDS_V2.contains(&name.as_str()))
}
