//! What the suites are made of. Stores do not look into operations, so these need no signatures.

use aip_protocol::name::Name;
use aip_protocol::time::Timestamp;

use crate::directory::{NewAgent, NextOperation, StoredOperation};
use crate::grants::{InviteGrant, TokenGrant, TokenRecord};
use crate::secret::SecretHash;
use crate::{Directory, Grants};

/// A store that keeps both agents and grants, as all of ours do.
pub trait Store: Directory + Grants + 'static {}

impl<T: Directory + Grants + 'static> Store for T {}

/// This many seconds after the moment the suites begin.
pub fn at(secs: i64) -> Timestamp {
    Timestamp::from_unix_millis(1_796_000_000_123 + secs * 1_000)
}

/// A name.
pub fn name(text: &str) -> Name {
    Name::parse(text).unwrap()
}

/// Operation 0 of `agent`, of a flavour, so that two can differ.
pub fn genesis(agent: &str, flavour: &str) -> StoredOperation {
    let json =
        format!(r#"{{"did":"{agent}","flavour":"{flavour}","text":"ü \u0000 '; DROP TABLE agents; --"}}"#);
    StoredOperation {
        seq: 0,
        prev: None,
        hash: format!("z{agent}-{flavour}-0"),
        json,
        deactivates: false,
    }
}

/// The operation after `before`.
pub fn successor(before: &StoredOperation, flavour: &str) -> StoredOperation {
    let seq = before.seq + 1;
    StoredOperation {
        seq,
        prev: Some(before.hash.clone()),
        hash: format!("{}-{flavour}-{seq}", before.hash),
        json: format!(r#"{{"after":"{}","flavour":"{flavour}"}}"#, before.hash),
        deactivates: false,
    }
}

/// An agent that wants a name, without an invite.
pub fn newcomer(agent: &str) -> NewAgent {
    NewAgent {
        name: name(agent),
        operation: genesis(agent, "first"),
        registered_at: at(0),
        invite: None,
    }
}

/// An operation for this agent's history.
pub fn next(agent: &str, operation: StoredOperation) -> NextOperation {
    NextOperation {
        name: name(agent),
        operation,
        admitted_at: at(10),
    }
}

/// An invite with a code, good for `uses`, without an end.
pub fn invite(code: &str, uses: u32) -> InviteGrant {
    InviteGrant {
        hash: SecretHash::of(code),
        note: format!("for {code}"),
        uses,
        created_at: at(0),
        expires_at: None,
    }
}

/// A token of an agent for an answered challenge, issued at `secs` and good for an hour.
pub fn token(agent: &str, challenge: &str, token: &str, secs: i64) -> TokenGrant {
    TokenGrant {
        challenge: SecretHash::of(challenge),
        challenge_kept_until: at(secs + 60),
        token: SecretHash::of(token),
        record: TokenRecord {
            name: name(agent),
            kid: format!("did:aip:hub.example:{agent}#z6Mk"),
            issued_at: at(secs),
            expires_at: at(secs + 3_600),
        },
    }
}
