//! Signing in on a socket: the hub's challenge, the agent's answer, and whether it still holds later.

use aip_protocol::error::{ErrorCode, Refusal};
use aip_protocol::name::Did;
use aip_protocol::signature::Signature;
use aip_registry::{Agent, SocketChallenge};
use aip_relay::limits::CREDIT_DEFAULT;

use super::frame::Auth;
use crate::app::App;
use crate::error::ApiError;
use crate::throttle::Network;

/// What an agent has shown to sign in.
#[derive(Debug)]
pub(super) enum Proof {
    /// A signature by this key.
    Key(String),
    /// A token, kept to see whether it is still good.
    Token(Box<str>),
}

/// An agent that has signed in.
#[derive(Debug)]
pub(super) struct SignedIn {
    pub(super) did: Did,
    pub(super) proof: Proof,
    pub(super) credit: u32,
    pub(super) share: bool,
}

/// Takes the agent's answer; either way the challenge is spent. One that is not good counts against its `network`.
pub(super) async fn sign_in(
    app: &App,
    network: Option<Network>,
    challenge: SocketChallenge,
    auth: Auth,
) -> Result<SignedIn, ApiError> {
    app.throttle.admit_proof(network)?;
    let signed_in = check(app, challenge, auth).await;
    signed_in.inspect_err(|error| app.throttle.count_proof(network, error.code()))
}

async fn check(app: &App, challenge: SocketChallenge, auth: Auth) -> Result<SignedIn, ApiError> {
    let credit = auth
        .credit
        .unwrap_or(CREDIT_DEFAULT)
        .min(app.settings.receive.credit_messages_max);
    let share = auth.share;
    let (did, proof) = if let Some(token) = auth.token {
        (by_token(app, &token).await?, Proof::Token(token.into_boxed_str()))
    } else {
        let did = Did::parse_input(&member(auth.did, "did")?)?;
        let kid = member(auth.kid, "kid")?;
        let sig = Signature::parse(&member(auth.sig, "sig")?)?;
        app.registry
            .authenticate_socket(challenge, &did, &kid, &sig)
            .await?;
        (did, Proof::Key(kid))
    };
    Ok(SignedIn {
        did,
        proof,
        credit,
        share,
    })
}

fn member(value: Option<String>, name: &'static str) -> Result<String, Refusal> {
    value.ok_or_else(|| {
        let detail =
            format!("`auth` needs `{name}`: send `did`, `kid` and `sig`, or `token` instead of them.");
        Refusal::new(ErrorCode::MemberMissing, detail).with("member", name)
    })
}

async fn by_token(app: &App, token: &str) -> Result<Did, ApiError> {
    let did = app.registry.authenticate(token).await?;
    did.ok_or_else(|| {
        let detail =
            "The token is unknown or has run out; get one at /api/v1/auth/token, or answer the challenge.";
        ApiError::refused(ErrorCode::TokenInvalid, detail)
    })
}

impl SignedIn {
    /// Whether the agent may stay: it is neither suspended nor deactivated, its key not revoked, its token not past
    /// its end. A registry that cannot be asked ends nobody's session.
    pub(super) async fn holds(&self, app: &App) -> bool {
        match &self.proof {
            Proof::Token(token) => app
                .registry
                .authenticate(token)
                .await
                .map_or(true, |did| did.is_some()),
            Proof::Key(kid) => {
                let now = app.clock.now();
                let good = |agent: &Agent| agent.takes_part() && agent.signing_key_now(kid, now).is_some();
                let agent = app.registry.resolve(&self.did).await;
                agent.map_or(true, |agent| agent.is_some_and(|agent| good(&agent)))
            }
        }
    }
}
