//! `POST /api/v1/ingest/register`: an agent, and a key to hand in what it sells, for a shop that has neither.
//!
//! An agent needs keys, and a shop that sends its name only has none: the hub draws them, and they are in this answer and
//! nowhere else. With the provider's key the shop is found and its products are. With the agent's keys, in the form of the
//! command's key file, it reads its mail, answers, and signs. Until it has changed them (`aip rotate`) its profile says who
//! drew them.

use std::fmt;

use actix_web::http::header::HeaderName;
use actix_web::{HttpRequest, HttpResponse, web};
use aip_protocol::error::{ErrorCode, Refusal};
use aip_protocol::identity::OperationDraft;
use aip_protocol::json::{Json, Object};
use aip_protocol::name::{Did, Handle, Name};
use aip_registry::listings::NewProvider;
use aip_registry::secret::SecretHash;
use aip_registry::{Registered, RegistryError};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::Serialize;
use serde_json::{Value, json};
use url::Url;
use utoipa::ToSchema;

use crate::app::App;
use crate::catalog::DrawnKeys;
use crate::catalog::limits::{
    SHOP_DESCRIPTION_BYTES_MAX, SHOP_NAME_BYTES_MAX, SHOP_NAMES_MAX, SHOP_WEBSITE_BYTES_MAX,
};
use crate::error::ApiError;
use crate::extract::{Query, header, read_json};
use crate::throttle::Cost;

/// The header with the code of an invite.
const INVITE: HeaderName = HeaderName::from_static("x-aip-invite");

/// Characters of a name that is made of a shop's.
const NAME_CHARS_MAX: usize = 48;

/// What a shop gets.
#[derive(Serialize, ToSchema)]
pub struct RegisteredShop {
    /// What its program sends as `X-Provider-Key`. It is shown only here.
    pub api_key: String,
    /// What the operator lists and revokes the key by.
    pub provider_id: String,
    /// The agent's handle, percent-encoded as in search results.
    #[schema(example = "etaji%23aigentix.org")]
    pub agent_handle: String,
    /// Its DID.
    pub agent_did: String,
    /// The agent's keys, as a key file of the command `aip`. They are shown only here.
    #[schema(value_type = Object)]
    pub agent_keys: Value,
    /// What the two are for.
    pub note: &'static str,
}

impl fmt::Debug for RegisteredShop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RegisteredShop")
            .field("agent_did", &self.agent_did)
            .finish_non_exhaustive()
    }
}

const NOTE: &str = "api_key hands in what you sell (X-Provider-Key). agent_keys is your agent itself: keep it in a file of \
                    mode 0600. With `aip --key FILE` you read its mail, answer and sign; `aip rotate` makes keys that this \
                    hub never saw. Both are shown only here.";

/// What a shop says about itself.
struct Shop {
    name: String,
    website: Option<String>,
    description: Option<String>,
    handle: Option<Name>,
}

/// Registers a shop.
#[utoipa::path(
    post,
    path = "/api/v1/ingest/register",
    operation_id = "ingest_register",
    tag = "search",
    summary = "Register a shop that has no keys",
    description = "Makes an agent of kind `business` and a provider's key for it, where the hub takes registrations. Who has \
                   keys registers at `POST /api/v1/agents` instead. Not idempotent: who lost the answer registers again, \
                   under another name.",
    params(("X-AIP-Invite" = Option<String>, Header, description = "An invite, where the hub asks for one")),
    request_body(content = Object, content_type = "application/json",
                 description = "`name`; and, as you like, `website`, `description` and `handle`: the agent's name, which else \
                                is made of the shop's"),
    responses(
        (status = 201, description = "The agent and the key", body = RegisteredShop),
        (status = 400, description = "A member is missing, malformed or beyond its bound"),
        (status = 403, description = "Registration is closed, needs an invite, or the name is reserved"),
        (status = 409, description = "The name is taken"),
        (status = 429, description = "Too many registrations from one address"),
        (status = 503, description = "The hub has no room for new agents now"),
    )
)]
pub async fn register(
    app: web::Data<App>,
    req: HttpRequest,
    payload: web::Payload,
) -> Result<HttpResponse, ApiError> {
    app.throttle.admit(Cost::Registration, &req)?;
    Query::parse(&req, &[])?;
    if !app.settings.search.ingest_registration {
        let detail = "This hub makes no agents for shops: register one with keys of your own (POST /api/v1/agents), and ask \
                      its operator for a provider's key.";
        return Err(ApiError::refused(ErrorCode::RegistrationClosed, detail));
    }
    app.require_room("agents")?;
    app.require_room("listings")?;
    let shop = Shop::read(&read_json(&app, &req, payload).await?)?;
    let keys = app.provider_keys.draw_agent();
    let did = settle(&app, &shop, &keys, header(&req, &INVITE)).await?;
    let api_key = app.provider_keys.make();
    let new = NewProvider {
        name: shop.name,
        agent: did.clone(),
        hash: SecretHash::of(&api_key),
    };
    let provider = app.listings.add_provider(&new, app.clock.now()).await?;
    tracing::info!(agent = %did, provider.id = %provider.id, "A shop registered as {did}, with the key {}", provider.id);
    Ok(HttpResponse::Created().json(RegisteredShop {
        api_key,
        provider_id: provider.id,
        agent_handle: did.handle().encoded(),
        agent_keys: key_file(&app, &did, &keys),
        agent_did: did.to_string(),
        note: NOTE,
    }))
}

/// Finds a name that is free, and has the agent registered under it.
async fn settle(app: &App, shop: &Shop, keys: &DrawnKeys, invite: Option<&str>) -> Result<Did, ApiError> {
    let mut refused = None;
    for name in names(app, shop)? {
        let handle = Handle {
            name,
            domain: app.domain.clone(),
        };
        let mut draft = OperationDraft::genesis(handle.did(), app.clock.now(), keys.public());
        draft.profile = shop.profile().into();
        let genesis = draft.sign(&keys.rotation)?.json.to_jcs();
        match app.registry.register(&genesis, invite).await {
            Ok(Registered::Created(agent) | Registered::Same(agent)) => {
                return Ok(agent.identity.did().clone());
            }
            Err(RegistryError::Refused(refusal))
                if matches!(refusal.code, ErrorCode::HandleTaken | ErrorCode::NameReserved) =>
            {
                refused = Some(refusal);
            }
            Err(error) => return Err(error.into()),
        }
    }
    let none = || {
        Refusal::new(
            ErrorCode::HandleTaken,
            "No name is free for this shop: send one as `handle`.",
        )
    };
    Err(refused.unwrap_or_else(none).into())
}

/// The names that are tried: the one that was chosen, or the shop's, then with a few digits behind it.
fn names(app: &App, shop: &Shop) -> Result<Vec<Name>, ApiError> {
    if let Some(chosen) = &shop.handle {
        return Ok(vec![chosen.clone()]);
    }
    let host = shop
        .website
        .as_deref()
        .and_then(|website| Url::parse(website).ok());
    let host = host.as_ref().and_then(Url::host_str).unwrap_or_default();
    let host = host
        .trim_start_matches("www.")
        .split('.')
        .next()
        .unwrap_or_default();
    let words = [shop.name.as_str(), host]
        .into_iter()
        .map(slug)
        .find(|slug| !slug.is_empty());
    let base = words.unwrap_or_else(|| "shop".to_owned());
    let mut names = vec![Name::parse(&base)?];
    for _ in 1..SHOP_NAMES_MAX {
        names.push(Name::parse(&format!(
            "{base}-{}",
            app.provider_keys.draw_digits()
        ))?);
    }
    Ok(names)
}

/// Letters and digits of ASCII, with hyphens between words; nothing where there are none.
fn slug(text: &str) -> String {
    let lower = text.to_ascii_lowercase();
    let words = lower
        .split(|c: char| !c.is_ascii_alphanumeric())
        .filter(|word| !word.is_empty());
    let slug = words.collect::<Vec<_>>().join("-");
    let cut: String = slug.chars().take(NAME_CHARS_MAX).collect();
    cut.trim_end_matches('-').to_owned()
}

impl Shop {
    fn read(body: &Json) -> Result<Self, Refusal> {
        let name = text(body, "name", SHOP_NAME_BYTES_MAX)?;
        let name = name.filter(|name| !name.trim().is_empty() && !name.chars().any(char::is_control));
        let name = name.ok_or_else(|| {
            let detail = format!("`name` is what the shop is called: 1 to {SHOP_NAME_BYTES_MAX} bytes without control characters.");
            Refusal::new(ErrorCode::MemberInvalid, detail).with("member", "name")
        })?;
        let website = text(body, "website", SHOP_WEBSITE_BYTES_MAX)?;
        let is_website = |text: &String| {
            Url::parse(text).is_ok_and(|url| {
                matches!(url.scheme(), "http" | "https")
                    && url.username().is_empty()
                    && url.password().is_none()
            })
        };
        if website.as_ref().is_some_and(|website| !is_website(website)) {
            let refusal = Refusal::new(ErrorCode::MemberInvalid, "`website` is an http or https address.");
            return Err(refusal.with("member", "website"));
        }
        let handle = text(body, "handle", SHOP_NAME_BYTES_MAX)?;
        Ok(Self {
            name,
            website,
            description: text(body, "description", SHOP_DESCRIPTION_BYTES_MAX)?,
            handle: handle.as_deref().map(Name::parse).transpose()?,
        })
    }

    /// What the agent says of itself.
    fn profile(&self) -> Object {
        let mut profile = Object::from([
            ("name", Json::from(self.name.as_str())),
            ("kind", Json::from("business")),
            ("keys_drawn_by", Json::from("hub")),
        ]);
        for (name, text) in [("website", &self.website), ("description", &self.description)] {
            if let Some(text) = text {
                profile.insert(name, text.as_str());
            }
        }
        profile
    }
}

/// A member that may be absent; an empty text is nothing.
fn text(body: &Json, member: &'static str, bytes_max: usize) -> Result<Option<String>, Refusal> {
    match body.get(member) {
        None | Some(Json::Null) => Ok(None),
        Some(Json::Str(text)) if text.len() <= bytes_max => {
            Ok(Some(text.clone()).filter(|text| !text.is_empty()))
        }
        Some(_) => {
            let detail = format!("`{member}` is text of at most {bytes_max} bytes.");
            Err(Refusal::new(ErrorCode::MemberInvalid, detail).with("member", member))
        }
    }
}

/// As the command `aip` keeps keys (`aip-keys/1`).
fn key_file(app: &App, did: &Did, keys: &DrawnKeys) -> Value {
    let text = |seed: zeroize::Zeroizing<[u8; 32]>| URL_SAFE_NO_PAD.encode(seed.as_slice());
    json!({
        "format": "aip-keys/1",
        "did": did.as_str(),
        "hub": app.public_url,
        "secrets": {
            "signing": text(keys.signing.seed()),
            "sealing": [text(keys.sealing.seed())],
            "rotation": text(keys.rotation.seed()),
        },
    })
}

#[cfg(test)]
mod tests;
