//! The DID document: one function of the newest operation (§3).

use crate::identity::{Operation, RouteMode};
use crate::json::{Json, Object};
use crate::multikey::{SealingKey, VerifyingKey};

/// The document of the `did:aip`; `hub_url` is the base URL of the agent's home hub.
pub fn did_document(operation: &Operation, hub_url: &str) -> Json {
    let handle = operation.did.handle();
    let web_page = format!("https://{}/agents/{}", handle.domain, handle.name);
    let known_as = vec![operation.did.did_web(), web_page];
    document(operation, hub_url, operation.did.as_str(), known_as)
}

/// The same document as `did:web`: every id and controller in that form, `alsoKnownAs` the
/// `did:aip` one.
pub fn did_web_document(operation: &Operation, hub_url: &str) -> Json {
    document(
        operation,
        hub_url,
        &operation.did.did_web(),
        vec![operation.did.to_string()],
    )
}

fn document(operation: &Operation, hub_url: &str, id: &str, known_as: Vec<String>) -> Json {
    let signing: Vec<&str> = operation.keys.signing.iter().map(VerifyingKey::as_str).collect();
    let sealing: Vec<&str> = operation.keys.sealing.iter().map(SealingKey::as_str).collect();
    let ids = |keys: &[&str]| Json::from(keys.iter().map(|key| format!("{id}#{key}")).collect::<Vec<_>>());
    let methods: Vec<Json> = signing
        .iter()
        .chain(&sealing)
        .map(|key| method(id, key))
        .collect();
    let context = vec![
        "https://www.w3.org/ns/did/v1",
        "https://w3id.org/security/multikey/v1",
    ];
    Json::from([
        ("@context", Json::from(context)),
        ("id", Json::from(id)),
        ("alsoKnownAs", Json::from(known_as)),
        ("verificationMethod", Json::Array(methods)),
        ("authentication", ids(&signing)),
        ("assertionMethod", ids(&signing)),
        ("keyAgreement", ids(&sealing)),
        ("service", Json::Array(services(operation, hub_url, id))),
        ("route_mode", Json::from(operation.route_mode.as_str())),
    ])
}

fn method(id: &str, key: &str) -> Json {
    Json::from([
        ("id", Json::from(format!("{id}#{key}"))),
        ("type", Json::from("Multikey")),
        ("controller", Json::from(id)),
        ("publicKeyMultibase", Json::from(key)),
    ])
}

fn services(operation: &Operation, hub_url: &str, id: &str) -> Vec<Json> {
    let service = |fragment: &str, kind: &str, endpoint: &str| {
        let members = [
            ("id", format!("{id}#{fragment}")),
            ("type", kind.into()),
            ("serviceEndpoint", endpoint.into()),
        ];
        Json::Object(members.into_iter().collect::<Object>())
    };
    let mut services = vec![service("relay", "AIPRelay", &relay_endpoint(operation, hub_url))];
    if let (RouteMode::Direct, Some(endpoint)) = (operation.route_mode, &operation.endpoint) {
        services.push(service("direct", "AIPDirect", endpoint));
    }
    services
}

fn relay_endpoint(operation: &Operation, hub_url: &str) -> String {
    format!("{}/relay/{}", hub_url.trim_end_matches('/'), operation.did.name())
}

/// The place to POST an envelope to: the agent's own endpoint in direct mode, its relay at the
/// home hub otherwise.
pub fn delivery_endpoint(operation: &Operation, hub_url: &str) -> String {
    match (operation.route_mode, &operation.endpoint) {
        (RouteMode::Direct, Some(endpoint)) => endpoint.clone(),
        _ => relay_endpoint(operation, hub_url),
    }
}
