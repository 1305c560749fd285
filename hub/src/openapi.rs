//! The OpenAPI document: made from the handlers' own descriptions, and kept in git as `docs/openapi.json`.
//!
//! Error answers all have one shape, so handlers name only the status and the reason; the shape is added here.

use serde::Serialize;
use utoipa::openapi::path::{Operation, PathItem};
use utoipa::openapi::security::{HttpAuthScheme, HttpBuilder, SecurityScheme};
use utoipa::openapi::{self, Content, Ref, RefOr, ResponseBuilder};
use utoipa::{Modify, OpenApi, ToSchema};

use crate::error::{PROBLEM_JSON, is_of_market};
use crate::routes;

/// The name of the scheme for `Authorization: Bearer`, for `security(("token" = []))`.
pub const TOKEN: &str = "token";

/// The name of the scheme of the operator's door.
pub const OPERATOR: &str = "operator";

/// The name of the scheme of a provider's key.
pub const PROVIDER: &str = "provider";

/// What every error answer holds (RFC 9457), beside members of the case.
#[derive(Debug, Serialize, ToSchema)]
pub struct Problem {
    /// The page of the error.
    #[schema(example = "https://hub.example/docs/errors/handle_domain_missing")]
    pub r#type: String,
    /// The same for every occurrence of the code.
    pub title: String,
    /// The HTTP status.
    pub status: u16,
    /// A sentence that says what to do.
    pub detail: String,
    /// The stable code; `/docs/errors` lists all.
    #[schema(example = "handle_domain_missing")]
    pub code: String,
    /// Ties the answer to the hub's log; also in `X-Request-Id`.
    pub request_id: String,
}

/// What every error answer of the market holds, beside members of the case.
#[derive(Debug, Serialize, ToSchema)]
pub struct MarketProblem {
    /// Always false.
    pub success: bool,
    /// The stable code; docs/protocol/market.md lists those of the market.
    #[schema(example = "payment_required")]
    pub error: String,
    /// A sentence that says what to do; under `request_invalid` a list of `{type, loc, msg}`.
    pub detail: String,
    /// `v2`
    pub protocol_version: String,
}

#[derive(OpenApi)]
#[openapi(
    info(
        title = "AIP/1 hub",
        description = "Names, identities, sealed messages and offers of the agents of one domain. Every error is a problem \
                       document (RFC 9457) with a stable `code`; every answer carries `X-Request-Id`. Query \
                       parameters that a path does not know are refused. The protocol itself is \
                       docs/protocol/aip-v1.md.",
    ),
    paths(
        routes::resolve::get::resolve,
        routes::resolve::query::resolve_by_query,
        routes::agents::create::create,
        routes::agents::operate::operate,
        routes::agents::history::history,
        routes::agents::show::show,
        routes::did::web::did_web,
        routes::did::resolve::resolve_did,
        routes::messages::send::send,
        routes::messages::relay::relay,
        routes::messages::status::status,
        routes::federation::messages::messages,
        routes::federation::outbox::outbox,
        routes::federation::status::status,
        routes::socket::connect::connect,
        routes::inbox::poll::poll,
        routes::inbox::ack::ack,
        routes::inbox::stream::stream,
        routes::inbox::dead::dead,
        routes::inbox::redrive::redrive,
        routes::auth::challenge::challenge,
        routes::auth::token::token,
        routes::search::get::search,
        routes::search::post::search,
        routes::search_page::script::script,
        routes::search_page::show::show,
        routes::listings::publish::publish,
        routes::listings::show::show,
        routes::listings::delete::delete,
        routes::listings::status::status,
        routes::listings::of_agent::of_agent,
        routes::ingest::rows::rows,
        routes::ingest::rows::delete_rows,
        routes::ingest::delete::delete,
        routes::ingest::feeds::products,
        routes::ingest::feeds::capabilities,
        routes::ingest::register::register,
        routes::market::search::search,
        routes::market::invoke::invoke,
        routes::market::manifest::manifest,
        routes::market::prices::prices,
        routes::market::well_known::well_known,
        routes::market::schemas::schemas,
        routes::market::schema::schema,
        routes::market::channel::open::open,
        routes::market::channel::show::show,
        routes::market::channel::top_up::top_up,
        routes::market::channel::close::close,
        routes::market::job::show::show,
        routes::market::job::cancel::cancel,
        routes::market::job::events::events,
        routes::market::account::create::create,
        routes::market::account::show::show,
        routes::market::account::ledger::ledger,
        routes::market::account::rotate_key::rotate_key,
        routes::market::account::add_key::add_key,
        routes::market::account::revoke_key::revoke_key,
        routes::market::federation::announce::announce,
        routes::market::federation::peers::peers,
        routes::market::receipts::show::show,
        routes::market::receipts::verify::verify,
        routes::market::verification::show::show,
        routes::market::verification::appeal::appeal,
        routes::market::earnings::earnings,
        routes::discovery::discovery,
        routes::health::live::live,
        routes::health::ready::ready,
        routes::metrics::metrics,
        routes::admin::agents::agents,
        routes::admin::standing::standing,
        routes::admin::quota::quota,
        routes::admin::invites::invites,
        routes::admin::create_invite::create_invite,
        routes::admin::revoke_invite::revoke_invite,
        routes::admin::providers::providers,
        routes::admin::create_provider::create_provider,
        routes::admin::revoke_provider::revoke_provider,
        routes::admin::peers::list::peers,
        routes::admin::peers::show::peer,
        routes::admin::peers::stance::stance,
        routes::admin::peers::limits::limits,
        routes::admin::peers::repin::repin,
        routes::admin::peers::retry::retry,
        routes::admin::peers::audit::audit,
        routes::admin::peers::evidence::evidence,
        routes::admin::peers::forget_history::forget_history,
        routes::admin::accounts::list::accounts,
        routes::admin::accounts::create::create_account,
        routes::admin::accounts::show::account,
        routes::admin::accounts::credit::credit,
        routes::admin::accounts::standing::standing,
        routes::admin::accounts::budget::budget,
        routes::admin::accounts::add_key::add_account_key,
        routes::admin::accounts::ledger::ledger,
        routes::admin::payouts::list::payouts,
        routes::admin::payouts::add::add_payout,
        routes::admin::market::books,
        routes::admin::market_peers::list::list,
        routes::admin::market_peers::approve::approve,
        routes::admin::market_peers::log::log,
        routes::admin::market_peers::show::show,
        routes::admin::market_peers::remove::remove,
        routes::admin::market_peers::block::block,
        routes::admin::market_peers::repin::repin,
        routes::admin::market_peers::mode::set,
        routes::admin::market_peers::crawl::crawl,
        routes::admin::catalog::catalog,
        routes::admin::quarantine::suspects,
        routes::admin::quarantine::judge,
        routes::admin::backup::backup,
        routes::admin::pause::pause,
        routes::admin::resume::resume,
        routes::docs::openapi_json::openapi_json,
        routes::docs::page::page,
        routes::docs::errors::errors,
        routes::docs::error::error,
        routes::docs::style::style,
        routes::docs::start::start,
    ),
    components(schemas(Problem, MarketProblem)),
    tags(
        (name = "identity", description = "Who an agent is: registration, rotation, resolution (§3)"),
        (name = "sending", description = "Envelopes in (§5)"),
        (name = "federation", description = "Mail between hubs (§8)"),
        (name = "receiving", description = "Envelopes out (§6)"),
        (name = "search", description = "What agents offer (§9)"),
        (name = "market", description = "Calls of capabilities, and the money for them (AIMarket v2)"),
        (name = "authentication", description = "A token for an agent's own doors (§6)"),
        (name = "hub", description = "What this hub is (§8)"),
        (name = "operation", description = "Health and counters"),
        (name = "administration", description = "The operator's door; not on the public listener"),
        (name = "documentation", description = "For people and for tools"),
    ),
    modifiers(&Tokens, &Problems)
)]
struct Document;

/// The document.
pub fn document() -> openapi::OpenApi {
    Document::openapi()
}

/// The document as it lies in `docs/openapi.json`: indented, with a newline at its end. The same every time.
///
/// # Errors
/// A description that JSON cannot hold, which is a bug.
pub fn json() -> Result<String, serde_json::Error> {
    Ok(document().to_pretty_json()? + "\n")
}

/// Declares the scheme of `Authorization: Bearer`.
struct Tokens;

impl Modify for Tokens {
    fn modify(&self, document: &mut openapi::OpenApi) {
        let about = "A token of POST /api/v1/auth/token. It belongs to one agent and lasts an hour.";
        let scheme = HttpBuilder::new()
            .scheme(HttpAuthScheme::Bearer)
            .description(Some(about))
            .build();
        let components = document.components.get_or_insert_default();
        components.add_security_scheme(TOKEN, SecurityScheme::Http(scheme));
        let about =
            "The operator's token, from operator.token in the data folder. On the operator's listener only.";
        let scheme = HttpBuilder::new()
            .scheme(HttpAuthScheme::Bearer)
            .description(Some(about))
            .build();
        components.add_security_scheme(OPERATOR, SecurityScheme::Http(scheme));
        let about =
            "A provider's key, made by the operator with `aip-hub providers add`. It speaks for one agent.";
        let scheme = HttpBuilder::new()
            .scheme(HttpAuthScheme::Bearer)
            .description(Some(about))
            .build();
        components.add_security_scheme(PROVIDER, SecurityScheme::Http(scheme));
    }
}

/// Gives every error answer its shape, and every operation an answer for the errors it does not name.
struct Problems;

impl Modify for Problems {
    fn modify(&self, document: &mut openapi::OpenApi) {
        document.paths.paths.iter_mut().for_each(|(path, item)| {
            let shape = Shape::of(path);
            operations(item).for_each(|operation| describe(operation, shape));
        });
    }
}

fn operations(item: &mut PathItem) -> impl Iterator<Item = &mut Operation> {
    [
        &mut item.get,
        &mut item.post,
        &mut item.put,
        &mut item.patch,
        &mut item.delete,
    ]
    .into_iter()
    .filter_map(Option::as_mut)
}

/// The form that errors of a path have.
#[derive(Clone, Copy)]
struct Shape {
    schema: &'static str,
    media_type: &'static str,
}

impl Shape {
    fn of(path: &str) -> Self {
        if is_of_market(path) {
            Self {
                schema: "MarketProblem",
                media_type: "application/json",
            }
        } else {
            Self {
                schema: "Problem",
                media_type: PROBLEM_JSON,
            }
        }
    }
}

fn describe(operation: &mut Operation, shape: Shape) {
    let problem = || Content::new(Some(Ref::from_schema_name(shape.schema)));
    for (status, response) in &mut operation.responses.responses {
        if let RefOr::T(response) = response
            && (status.starts_with('4') || status.starts_with('5'))
            && response.content.is_empty()
        {
            response
                .content
                .insert(shape.media_type.to_owned(), problem().into());
        }
    }
    let any = ResponseBuilder::new()
        .description("Any other refusal or failure")
        .content(shape.media_type, problem());
    operation
        .responses
        .responses
        .insert("default".to_owned(), any.build().into());
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn documented() -> BTreeSet<(String, String)> {
        let value = serde_json::to_value(document()).unwrap();
        let paths = value["paths"].as_object().unwrap();
        let methods = |(path, item): (&String, &serde_json::Value)| {
            let path = path.clone();
            item.as_object()
                .unwrap()
                .keys()
                .map(move |m| (path.clone(), m.to_uppercase()))
                .collect::<Vec<_>>()
        };
        paths.iter().flat_map(methods).collect()
    }

    fn served() -> BTreeSet<(String, String)> {
        let endpoints = routes::public().into_iter().chain(routes::operator());
        let pairs = |endpoint: routes::Endpoint| {
            let methods = endpoint.methods().iter().filter(|method| **method != "HEAD");
            methods
                .map(|method| (endpoint.path().to_owned(), (*method).to_owned()))
                .collect::<Vec<_>>()
        };
        endpoints.flat_map(pairs).collect()
    }

    #[test]
    fn every_route_is_documented_and_nothing_else_is() {
        assert_eq!(served(), documented());
    }

    #[test]
    fn the_document_in_git_is_current() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/openapi.json");
        let kept = std::fs::read_to_string(path).unwrap_or_default();
        assert!(
            kept == json().unwrap(),
            "run `cargo run -p aip-hub -- openapi > docs/openapi.json`"
        );
    }

    #[test]
    fn the_document_is_the_same_every_time() {
        assert_eq!(json().unwrap(), json().unwrap());
    }

    /// OpenAPI asks for it; generated clients name their functions so.
    #[test]
    fn no_two_operations_have_one_id() {
        let value = serde_json::to_value(document()).unwrap();
        let mut seen = BTreeSet::new();
        for (path, method) in documented() {
            let id = &value["paths"][&path][&method.to_lowercase()]["operationId"];
            assert!(
                seen.insert(id.to_string()),
                "{method} {path}: there is another {id}"
            );
        }
    }

    #[test]
    fn every_operation_has_a_tag_that_is_described() {
        let value = serde_json::to_value(document()).unwrap();
        let tags: BTreeSet<_> = value["tags"]
            .as_array()
            .unwrap()
            .iter()
            .map(|tag| tag["name"].clone().to_string())
            .collect();
        for (path, method) in documented() {
            let tag = &value["paths"][&path][&method.to_lowercase()]["tags"][0];
            assert!(
                tags.contains(&tag.to_string()),
                "{method} {path} has the tag {tag}"
            );
        }
    }
}
