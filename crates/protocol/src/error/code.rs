//! The closed list of error codes (§7), each with its status, meaning and advice.
//!
//! `docs/protocol/errors.md` is this table; a test holds the two together. Adding a code is a
//! change of the protocol.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

macro_rules! error_codes {
    ($($variant:ident, $code:literal, $status:literal, $title:literal, $meaning:literal, $action:literal;)+) => {
        /// A stable error code, spelled in `snake_case` on the wire (§7).
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[non_exhaustive]
        pub enum ErrorCode {
            $(#[doc = $meaning] $variant,)+
        }

        impl ErrorCode {
            /// Every code there is, by status.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)+];

            /// The spelling on the wire.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $code,)+ }
            }

            /// The HTTP status that goes with it.
            pub const fn status(self) -> u16 {
                match self { $(Self::$variant => $status,)+ }
            }

            /// The title of the problem document, the same for every occurrence.
            pub const fn title(self) -> &'static str {
                match self { $(Self::$variant => $title,)+ }
            }

            /// What happened, for the documentation.
            pub const fn meaning(self) -> &'static str {
                match self { $(Self::$variant => $meaning,)+ }
            }

            /// What the caller does about it, for the documentation.
            pub const fn action(self) -> &'static str {
                match self { $(Self::$variant => $action,)+ }
            }
        }

        impl FromStr for ErrorCode {
            type Err = UnknownCode;

            fn from_str(text: &str) -> Result<Self, UnknownCode> {
                match text { $($code => Ok(Self::$variant),)+ _ => Err(UnknownCode) }
            }
        }
    };
}

/// The text names no code of this version of the protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not an error code of AIP/1")]
pub struct UnknownCode;

impl fmt::Display for ErrorCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Serialize for ErrorCode {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl<'de> Deserialize<'de> for ErrorCode {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<str>::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

impl ErrorCode {
    /// The page `docs/protocol/errors.md`, made from this table.
    pub fn page() -> String {
        let rows = Self::ALL.iter().map(|code| {
            format!(
                "| <a id=\"{code}\"></a>`{code}` | {} | {} | {} |\n",
                code.status(),
                code.meaning(),
                code.action()
            )
        });
        format!("{PAGE_HEAD}{}", rows.collect::<String>())
    }
}

const PAGE_HEAD: &str = "\
# Error codes

Every refusal is an `application/problem+json` document (RFC 9457) with `type`, `title`, `status`, `detail`, `code`,
`request_id` and members of the case. The code is stable; the sentences are not. This page is made from the code
(`cargo run -p aip-protocol --example errors_page > docs/protocol/errors.md`) and held equal to it by a test.

| code | status | meaning | what the caller does |
|---|---|---|---|
";

error_codes! {
    NameInvalid, "name_invalid", 400, "Name invalid",
        "A name is a-z, 0-9, '.', '_' and '-', at most 63 bytes, without '..'.",
        "Correct the name.";
    DomainInvalid, "domain_invalid", 400, "Domain invalid",
        "The domain is no DNS name with two labels, or its port is bad.",
        "Correct the domain.";
    HandleInvalid, "handle_invalid", 400, "Handle invalid",
        "The text is no `name#domain`, or was percent-encoded more than once.",
        "Write `name#domain`, percent-encoded once in a URL.";
    HandleDomainMissing, "handle_domain_missing", 400, "Handle without a domain",
        "A raw `#` cut the handle short, or none was written.",
        "Percent-encode it: `name%23domain`.";
    DidInvalid, "did_invalid", 400, "DID invalid",
        "The DID cannot be read, or is not spelled canonically.",
        "Write `did:aip:domain:name`, the port's colon as `%3A`.";
    DidMethodUnsupported, "did_method_unsupported", 400, "DID method unsupported",
        "Only did:aip is served here.",
        "Ask a resolver of that method.";
    KeyInvalid, "key_invalid", 400, "Key invalid",
        "The Multikey is malformed, of the wrong kind, no point of the curve, or of low order.",
        "Send a fresh `z6Mk…` or `z6LS…` key.";
    SignatureMalformed, "signature_malformed", 400, "Signature malformed",
        "The text is no `ed25519:z…` with 64 bytes.",
        "Fix the encoding of the signature.";
    JsonInvalid, "json_invalid", 400, "JSON invalid",
        "Not strict JSON: a duplicate member, a float, a big integer, bad UTF-8, or more than 32 levels.",
        "Fix the serializer.";
    MemberMissing, "member_missing", 400, "Member missing",
        "A needed member is absent.",
        "Add it and sign again.";
    MemberInvalid, "member_invalid", 400, "Member invalid",
        "A member has the wrong form.",
        "Correct it and sign again.";
    OperationInvalid, "operation_invalid", 400, "Operation invalid",
        "The identity operation breaks a rule of the history.",
        "Build the operation anew from the current head.";
    VersionUnsupported, "version_unsupported", 400, "Version unsupported",
        "`aip` is not \"1\".",
        "Speak AIP/1.";
    RecipientMismatch, "recipient_mismatch", 400, "Recipient mismatch",
        "The envelope is for another name than the path says.",
        "Post it to the recipient's own endpoint.";
    ParameterUnknown, "parameter_unknown", 400, "Parameter unknown",
        "The query holds a parameter that this call does not know.",
        "Remove it.";
    ParameterInvalid, "parameter_invalid", 400, "Parameter invalid",
        "A parameter has the wrong form, or is given twice.",
        "Correct it.";
    CursorInvalid, "cursor_invalid", 400, "Cursor invalid",
        "The cursor was not made here, or lies beyond what was offered.",
        "Start again without a cursor.";
    DigestMismatch, "digest_mismatch", 400, "Digest mismatch",
        "`Content-Digest` is not that of the body.",
        "Send the request again, unchanged on its way.";
    TokenInvalid, "token_invalid", 401, "Token invalid",
        "The bearer token is absent, unknown or has run out.",
        "Authenticate again.";
    ChallengeInvalid, "challenge_invalid", 401, "Challenge invalid",
        "The challenge is unknown, used, too old, or of another door.",
        "Ask for a new challenge.";
    SenderUnknown, "sender_unknown", 401, "Sender unknown",
        "`from` names no registered agent.",
        "Register first, or correct `from`.";
    SenderDeactivated, "sender_deactivated", 401, "Sender deactivated",
        "`from` has ended its history.",
        "Send as another agent.";
    KeyUnknown, "key_unknown", 401, "Key unknown",
        "`kid` names no key that was valid at `created_at`.",
        "Sign with a current key.";
    SignatureInvalid, "signature_invalid", 401, "Signature invalid",
        "The signature does not verify.",
        "Sign the canonical bytes again with the key that `kid` names.";
    RotationKeyUnknown, "rotation_key_unknown", 401, "Rotation key unknown",
        "`kid` names no rotation key that may sign this operation.",
        "Sign with a rotation key of the operation before.";
    RequestSignatureInvalid, "request_signature_invalid", 401, "Request signature invalid",
        "The RFC 9421 signature of the request is absent, stale, replayed or wrong.",
        "Sign the request again with a fresh nonce.";
    HubKeyUnknown, "hub_key_unknown", 401, "Hub key unknown",
        "`kid` or `keyid` is no current key of the hub.",
        "Publish the key in the discovery document.";
    RegistrationClosed, "registration_closed", 403, "Registration closed",
        "This hub takes no new agents.",
        "Ask the operator, or use another hub.";
    InviteRequired, "invite_required", 403, "Invite required",
        "Registration needs a valid invite.",
        "Send it in the header `X-AIP-Invite`.";
    NameReserved, "name_reserved", 403, "Name reserved",
        "The name is kept for the operator.",
        "Choose another name.";
    SenderNotLocal, "sender_not_local", 403, "Sender not local",
        "`from` belongs to another domain.",
        "Send through the sender's home hub.";
    SenderBlocked, "sender_blocked", 403, "Sender blocked",
        "The sender is blocked here.",
        "Do not retry.";
    FromDomainMismatch, "from_domain_mismatch", 403, "Domain of the sender differs",
        "A hub speaks for its own agents only.",
        "Send only your own agents' mail.";
    ToDomainMismatch, "to_domain_mismatch", 403, "Domain of the recipient differs",
        "The recipient is no agent of this hub's domain.",
        "Send to the recipient's own hub.";
    PeerBlocked, "peer_blocked", 403, "Peer blocked",
        "This hub does not talk to yours.",
        "Ask the operator.";
    NotYours, "not_yours", 403, "Not yours",
        "The thing belongs to another agent.",
        "Act as its owner.";
    NotFound, "not_found", 404, "Not found",
        "There is no such thing here.",
        "Check the address.";
    RecipientUnknown, "recipient_unknown", 404, "Recipient unknown",
        "`to` names no registered agent.",
        "Check the recipient.";
    DidForeign, "did_foreign", 404, "DID of someone else",
        "A did:aip whose second part is no domain belongs to another system.",
        "Resolve it there.";
    MethodNotAllowed, "method_not_allowed", 405, "Method not allowed",
        "The path does not take this method.",
        "Use one named in `Allow`.";
    VersionConflict, "version_conflict", 409, "Version conflict",
        "A listing of this or a higher version has other bytes.",
        "Raise `version`.";
    HandleTaken, "handle_taken", 409, "Handle taken",
        "The name belongs to another agent.",
        "Choose another name.";
    HistoryConflict, "history_conflict", 409, "History conflict",
        "`seq` or `prev` does not follow the head.",
        "Fetch the head, build the operation on it.";
    HistoryForked, "history_forked", 409, "History forked",
        "The history does not extend the one known before.",
        "Keep both as evidence; the operator decides.";
    HistoryUnsound, "history_unsound", 409, "History unsound",
        "What the agent's hub shows is no history of it.",
        "Do not retry; its owner or its hub has to mend it.";
    IdReused, "id_reused", 409, "Id reused",
        "This id was used for another envelope.",
        "Send with a new id.";
    HubKeyNotPinned, "hub_key_not_pinned", 409, "Hub key not pinned",
        "A new hub key, and no pinned key vouches for it.",
        "The operator approves it, or the hub signs with the old key too.";
    EpochChanged, "epoch_changed", 409, "Epoch changed",
        "The store was created anew or restored.",
        "Start from the new epoch, dedup by id.";
    FutureCursor, "future_cursor", 409, "Cursor in the future",
        "The cursor lies beyond the newest item.",
        "Check the epoch, start from the last known item.";
    OutdatedCursor, "outdated_cursor", 409, "Cursor outdated",
        "Items after the cursor are no longer kept.",
        "Start from the oldest item still here.";
    AgentDeactivated, "agent_deactivated", 410, "Agent deactivated",
        "The agent's history has ended.",
        "Nothing can follow; use another agent.";
    RecipientDeactivated, "recipient_deactivated", 410, "Recipient deactivated",
        "The recipient has ended its history.",
        "Do not retry.";
    EnvelopeTooLarge, "envelope_too_large", 413, "Envelope too large",
        "The envelope is larger than the limit.",
        "Send less, or a reference.";
    BodyTooLarge, "body_too_large", 413, "Body too large",
        "The request's body is larger than the limit.",
        "Send less at a time.";
    MediaTypeUnsupported, "media_type_unsupported", 415, "Media type unsupported",
        "The body has another media type than this call takes.",
        "Set `Content-Type` as documented.";
    EncodingUnsupported, "encoding_unsupported", 415, "Encoding unsupported",
        "A body with `Content-Encoding` is not taken.",
        "Send it uncompressed.";
    CreatedAtOutOfWindow, "created_at_out_of_window", 422, "created_at out of window",
        "`created_at` is too far from this hub's clock.",
        "Correct your clock and sign again.";
    CreatedAtGoesBack, "created_at_goes_back", 422, "created_at goes back",
        "`created_at` lies before that of the operation before.",
        "Use the present time.";
    Expired, "expired", 422, "Expired",
        "`expires_at` is already past.",
        "Send with a later one.";
    TransitTooLong, "transit_too_long", 422, "Transit too long",
        "The item was more than five days on its way.",
        "The sender decides whether to send it anew.";
    TypeUnsupported, "type_unsupported", 422, "Type unsupported",
        "The recipient does not know messages of this type.",
        "Send what it understands.";
    RateLimited, "rate_limited", 429, "Rate limited",
        "Too many requests.",
        "Wait as `Retry-After` says.";
    Internal, "internal", 500, "Internal error",
        "The hub failed.",
        "Retry later; report the request id.";
    PeerFailed, "peer_failed", 502, "Peer failed",
        "The other hub did not answer, or not properly.",
        "Retry later.";
    Unavailable, "unavailable", 503, "Unavailable",
        "The hub cannot do this now.",
        "Wait as `Retry-After` says.";
    OutcomeUnknown, "outcome_unknown", 503, "Outcome unknown",
        "The hub cannot tell whether it was stored.",
        "Send the same bytes again; a duplicate is recognised.";
    MailboxFull, "mailbox_full", 507, "Mailbox full",
        "The mailbox, or your part of it, is full.",
        "Wait as `Retry-After` says.";
    ListingsFull, "listings_full", 507, "Listings full",
        "The agent has as many listings here as it may.",
        "Delete some, or ask the operator.";
}
