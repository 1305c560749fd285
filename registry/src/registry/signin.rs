//! Signing in (spec §6): a challenge, an answer signed by the agent's key, a token.

use std::sync::Arc;
use std::time::Duration;

use aip_protocol::challenge::challenge_object;
use aip_protocol::error::{ErrorCode, Refusal};
use aip_protocol::name::Did;
use aip_protocol::signature::{Signature, Tag, verify};
use aip_protocol::time::Timestamp;
use moka::ops::compute::{CompResult, Op};

use super::{Challenge, Registry, SocketChallenge};
use crate::agent::{Agent, Standing};
use crate::error::{RegistryError, StoreError, refuse};
use crate::grants::{TokenGrant, TokenOutcome, TokenRecord};
use crate::limits::{KID_CHARS_MAX, SECRET_CHARS_MAX, SPENT_CHALLENGE_KEEP_SECS};
use crate::secret::SecretHash;
use crate::siblings::Spend;

/// A token, told once.
#[derive(Clone, PartialEq, Eq)]
pub struct IssuedToken {
    /// What goes into `Authorization: Bearer`.
    pub token: String,
    /// When it ends.
    pub expires_at: Timestamp,
}

impl std::fmt::Debug for IssuedToken {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("IssuedToken")
            .field("expires_at", &self.expires_at)
            .finish_non_exhaustive()
    }
}

impl Registry {
    /// A challenge for an agent that wants a token over HTTP. Costs the same and looks the same
    /// whether or not the agent exists, and keeps nothing.
    ///
    /// Refuses a DID of another domain with `sender_not_local`.
    pub fn challenge(&self, did: &Did) -> Result<Challenge, RegistryError> {
        if did.domain() != self.domain {
            let detail = format!("agents of {} sign in here, others at their own hub", self.domain);
            return Err(Refusal::new(ErrorCode::SenderNotLocal, detail).into());
        }
        Ok(self.mint.make(did, self.now(), self.chance.bytes()))
    }

    /// A challenge for a socket, which keeps it.
    pub fn socket_challenge(&self) -> SocketChallenge {
        let expires_at = self.mint.end(self.now());
        SocketChallenge(Challenge {
            challenge: self.chance.secret::<32>(),
            expires_at,
        })
    }

    /// Takes the answer to an HTTP challenge and gives a token for it, once.
    ///
    /// Refuses with `challenge_invalid`, `sender_unknown`, `sender_deactivated`, `sender_blocked`
    /// (suspended), `key_unknown`, `signature_invalid`.
    pub async fn issue_token(
        &self,
        did: &Did,
        kid: &str,
        challenge: &str,
        sig: &Signature,
    ) -> Result<IssuedToken, RegistryError> {
        let now = self.now();
        let challenge_end = self
            .mint
            .check(did, challenge, now)
            .ok_or_else(challenge_invalid)?;
        self.check_answer(did, kid, challenge, sig).await?;
        let (hash, kept_until) = (
            SecretHash::of(challenge),
            challenge_end + Duration::from_secs(SPENT_CHALLENGE_KEEP_SECS),
        );
        if self.siblings.spend(&hash, kept_until).await == Spend::Spent {
            return Err(challenge_invalid());
        }
        let token = self.chance.secret::<32>();
        let expires_at = now + Duration::from_secs(self.config.token_lifetime_secs);
        let name = did.handle().name;
        let grant = TokenGrant {
            challenge: hash,
            challenge_kept_until: kept_until,
            token: SecretHash::of(&token),
            record: TokenRecord {
                name,
                kid: kid.to_owned(),
                issued_at: now,
                expires_at,
            },
        };
        match self.grants.issue_token(grant).await? {
            TokenOutcome::Issued { displaced } => {
                for hash in displaced {
                    self.forget_token(&hash).await;
                }
                Ok(IssuedToken { token, expires_at })
            }
            TokenOutcome::ChallengeSpent => Err(challenge_invalid()),
        }
    }

    /// Takes the answer to the challenge that a socket was greeted with. Refuses as
    /// [`Self::issue_token`] does; either way the challenge is gone.
    pub async fn authenticate_socket(
        &self,
        challenge: SocketChallenge,
        did: &Did,
        kid: &str,
        sig: &Signature,
    ) -> Result<Arc<Agent>, RegistryError> {
        let SocketChallenge(challenge) = challenge;
        if self.now() >= challenge.expires_at {
            return Err(challenge_invalid());
        }
        self.check_answer(did, kid, &challenge.challenge, sig).await
    }

    /// Whose token this is; `None` if it is unknown or past its end, if its agent is suspended or
    /// deactivated, or if the key that asked for it was revoked or is past its grace.
    pub async fn authenticate(&self, token: &str) -> Result<Option<Did>, RegistryError> {
        if token.len() > SECRET_CHARS_MAX {
            return Ok(None);
        }
        let Some(record) = self.token(SecretHash::of(token)).await? else {
            return Ok(None);
        };
        let now = self.now();
        let did = self.did_of(&record.name);
        let agent = self.agents.get(&did).await?;
        let is_good = agent.is_some_and(|agent| {
            now < record.expires_at && agent.takes_part() && agent.signing_key_now(&record.kid, now).is_some()
        });
        Ok(is_good.then_some(did))
    }

    async fn token(&self, hash: SecretHash) -> Result<Option<TokenRecord>, RegistryError> {
        if let Some(record) = self.tokens.get(&hash).await {
            return Ok(Some(record));
        }
        let load = |_| async {
            let found = self.grants.find_token(&hash).await?;
            Ok::<_, StoreError>(found.map_or(Op::Nop, Op::Put))
        };
        Ok(
            match self.tokens.entry_by_ref(&hash).and_try_compute_with(load).await? {
                CompResult::Inserted(entry)
                | CompResult::ReplacedWith(entry)
                | CompResult::Unchanged(entry) => Some(entry.into_value()),
                CompResult::StillNone(_) | CompResult::Removed(_) => None,
            },
        )
    }

    /// Forgets a token that is gone, after a look-up that is under way: one that began before it went would otherwise
    /// put it back.
    async fn forget_token(&self, hash: &SecretHash) {
        self.tokens
            .entry_by_ref(hash)
            .and_compute_with(|_| std::future::ready(Op::Remove))
            .await;
    }

    /// The signature covers this hub's domain, so an answer given to another hub is worth nothing.
    async fn check_answer(
        &self,
        did: &Did,
        kid: &str,
        challenge: &str,
        sig: &Signature,
    ) -> Result<Arc<Agent>, RegistryError> {
        let agent = self.agents.get(did).await?;
        let agent = agent.ok_or_else(|| refuse(ErrorCode::SenderUnknown, "no agent has this DID here"))?;
        if agent.identity.is_deactivated() {
            return Err(refuse(ErrorCode::SenderDeactivated, "this agent was deactivated"));
        }
        if agent.standing == Standing::Suspended {
            return Err(refuse(
                ErrorCode::SenderBlocked,
                "the operator suspended this agent",
            ));
        }
        let key = Some(kid).filter(|kid| kid.len() <= KID_CHARS_MAX);
        let key = key.and_then(|kid| agent.signing_key_now(kid, self.now()));
        let key = key.ok_or_else(|| {
            refuse(
                ErrorCode::KeyUnknown,
                "kid names no valid signing key of this agent: did, '#', Multikey",
            )
        })?;
        if !verify(
            key,
            Tag::Challenge,
            &challenge_object(self.domain.as_str(), challenge, did),
            sig,
        ) {
            let detail =
                "the signature does not verify over {audience, challenge, did} with this hub's domain";
            return Err(refuse(ErrorCode::SignatureInvalid, detail));
        }
        Ok(agent)
    }
}

fn challenge_invalid() -> RegistryError {
    let detail = "the challenge is not one of this hub and door for this agent, was used, or is past its end; ask for another";
    refuse(ErrorCode::ChallengeInvalid, detail)
}
