//! Logging in: a challenge, a signature, a token for an hour (spec §6). One login at a time, and one per token.

use std::sync::Arc;
use std::time::Duration;

use aip_protocol::challenge::challenge_object;
use aip_protocol::error::ErrorCode;
use aip_protocol::signature::{Tag, sign};
use aip_protocol::time::Timestamp;
use serde_json::json;
use zeroize::Zeroizing;

use super::Client;
use crate::error::{Error, Problem, Result};
use crate::limits::{LOGIN_ATTEMPTS_MAX, TOKEN_LIFE_MAX, TOKEN_LIFE_MIN, TOKEN_RENEW_PERCENT};
use crate::transport::{Answer, Request};
use crate::wire::{ChallengeAnswer, TokenAnswer};

/// The token in use. The lock is held over a login, so that all who need one wait for the same.
#[derive(Debug, Default)]
pub(super) struct Tokens(tokio::sync::Mutex<Option<Held>>);

#[derive(Clone)]
struct Held {
    token: Arc<Zeroizing<String>>,
    renew_at: Timestamp,
    ends_at: Timestamp,
}

impl std::fmt::Debug for Held {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Held")
            .field("renew_at", &self.renew_at)
            .finish_non_exhaustive()
    }
}

impl Client {
    /// A token for `Authorization: Bearer`, for calls that this library does not make itself. Logs in when there is none
    /// or 80 % of its life is over.
    pub async fn token(&self) -> Result<Arc<Zeroizing<String>>> {
        let mut held = self.0.tokens.0.lock().await;
        let now = self.now();
        let usable = held.as_ref().filter(|held| now < held.ends_at);
        if let Some(held) = usable.filter(|held| now < held.renew_at) {
            return Ok(Arc::clone(&held.token));
        }
        match (self.log_in().await, usable.cloned()) {
            (Ok(fresh), _) => Ok(Arc::clone(&held.insert(fresh).token)),
            // A hub that cannot renew just now has not ended the token that is still good.
            (Err(error), Some(good)) if error.is_transient() => Ok(good.token),
            (Err(error), _) => {
                *held = None;
                Err(error)
            }
        }
    }

    /// A challenge that the hub does not know any more, or that another of its processes gave out, is asked for anew.
    async fn log_in(&self) -> Result<Held> {
        let mut attempt = 1;
        loop {
            match self.log_in_once().await {
                Err(error) if error.is_code(ErrorCode::ChallengeInvalid) && attempt < LOGIN_ATTEMPTS_MAX => {
                    attempt += 1;
                }
                outcome => return outcome,
            }
        }
    }

    async fn log_in_once(&self) -> Result<Held> {
        let keys = self.keys()?;
        let did = keys.did();
        let body = json!({"did": did}).to_string();
        let request = Request::post("asking for a challenge", "/api/v1/auth/challenge", body);
        let ChallengeAnswer { challenge } = self.0.transport.call(request).await?.json()?;
        // The audience is the agent's own domain, whatever the hub calls itself: see the session's handshake.
        let object = challenge_object(did.domain().as_str(), &challenge, did);
        let sig = sign(&keys.signing, Tag::Challenge, &object);
        let body = json!({"did": did, "kid": keys.kid(), "challenge": challenge, "sig": sig}).to_string();
        let request = Request::post("logging in", "/api/v1/auth/token", body);
        let TokenAnswer { token, expires_at } = self.0.transport.call(request).await?.json()?;
        Ok(held(token, expires_at, self.now()))
    }

    /// Forgets the token, if it is still the one that was refused.
    async fn drop_token(&self, refused: &Arc<Zeroizing<String>>) {
        let mut held = self.0.tokens.0.lock().await;
        held.take_if(|held| Arc::ptr_eq(&held.token, refused));
    }

    /// Makes a call that needs a token; a token that the hub no longer knows is replaced once.
    pub(crate) async fn call_with_token(&self, request: impl Fn() -> Request) -> Result<Answer> {
        let token = self.token().await?;
        match self.call_with(&token, request()).await {
            Err(error) if is_token_refused(&error) => {
                self.drop_token(&token).await;
                let token = self.token().await?;
                self.call_with(&token, request()).await
            }
            result => result,
        }
    }

    async fn call_with(&self, token: &str, mut request: Request) -> Result<Answer> {
        request.token = Some(Zeroizing::new(token.to_owned()));
        self.0.transport.call(request).await
    }
}

/// The market of a hub has a word of its own for it.
fn is_token_refused(error: &Error) -> bool {
    let is_markets = |problem: &Problem| problem.code == "invalid_token";
    error.is_code(ErrorCode::TokenInvalid) || error.problem().is_some_and(is_markets)
}

/// The hub's clock and ours may differ, so the life that is computed from both is only believed within bounds; a token
/// that ends earlier is replaced when the hub says so.
fn held(token: String, expires_at: Timestamp, now: Timestamp) -> Held {
    let life = Duration::from_millis(u64::try_from(expires_at.millis_since(now)).unwrap_or_default());
    let life = life.clamp(TOKEN_LIFE_MIN, TOKEN_LIFE_MAX);
    let renew_at = now + life * TOKEN_RENEW_PERCENT / 100;
    Held {
        token: Arc::new(Zeroizing::new(token)),
        renew_at,
        ends_at: now + life,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_renewed_at_four_fifths_of_its_life() {
        let now = Timestamp::from_unix_millis(0);
        let token = held("t".into(), now + Duration::from_hours(1), now);
        assert_eq!(token.renew_at, now + Duration::from_mins(48));
        assert_eq!(token.ends_at, now + Duration::from_hours(1));
    }

    #[test]
    fn a_clock_that_is_off_does_not_make_every_call_a_login() {
        let now = Timestamp::from_unix_millis(0) + Duration::from_hours(2);
        let token = held("t".into(), Timestamp::from_unix_millis(0), now);
        assert_eq!(token.ends_at, now + TOKEN_LIFE_MIN);
        assert!(!format!("{token:?}").contains("\"t\""));
    }
}
