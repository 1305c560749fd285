//! `GET /1.0/identifiers/{did}`: DID Resolution v1 of the W3C, HTTP binding. Errors keep the shape of that standard.

use actix_web::http::StatusCode;
use actix_web::http::header::{ACCEPT, CACHE_CONTROL, CONTENT_TYPE};
use actix_web::{HttpRequest, HttpResponse, web};
use aip_protocol::document::did_document;
use aip_protocol::error::ErrorCode;
use aip_protocol::name::{Did, parse_identifier};
use serde_json::{Value, json};

use crate::app::App;
use crate::error::ApiError;
use crate::extract::{header, raw_segment};
use crate::routes::resolve::FRESH;
use crate::throttle::Cost;

/// The media type of a whole resolution result.
const RESULT: &str = "application/did-resolution";
/// The media type of a DID document alone.
const DOCUMENT: &str = "application/did";
/// The namespace of the error types.
const ERRORS: &str = "https://www.w3.org/ns/did#";

/// What the caller asked for by `Accept`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wanted {
    Result,
    Document,
}

/// An error of DID Resolution: its name, its status, and a sentence.
#[derive(Debug, PartialEq, Eq)]
struct Unresolved(&'static str, StatusCode, &'static str);

const NOT_FOUND: Unresolved = Unresolved(
    "NOT_FOUND",
    StatusCode::NOT_FOUND,
    "There is no such DID at this hub.",
);
const INVALID_DID: Unresolved = Unresolved(
    "INVALID_DID",
    StatusCode::BAD_REQUEST,
    "Write did:aip:domain:name, percent-encoded once.",
);
const METHOD_NOT_SUPPORTED: Unresolved = Unresolved(
    "METHOD_NOT_SUPPORTED",
    StatusCode::NOT_IMPLEMENTED,
    "This hub resolves did:aip only.",
);
const FEATURE_NOT_SUPPORTED: Unresolved = Unresolved(
    "FEATURE_NOT_SUPPORTED",
    StatusCode::NOT_IMPLEMENTED,
    "Resolution options are not supported here.",
);
const REPRESENTATION_NOT_SUPPORTED: Unresolved = Unresolved(
    "REPRESENTATION_NOT_SUPPORTED",
    StatusCode::NOT_ACCEPTABLE,
    "Accept application/did-resolution or application/did.",
);

/// Resolves a DID for any resolver.
#[utoipa::path(
    get,
    path = "/1.0/identifiers/{did}",
    tag = "identity",
    summary = "W3C DID Resolution",
    description = "`Accept: application/did` gives the document alone, anything else the whole result. Errors are \
                   those of DID Resolution, in `didResolutionMetadata.error`.",
    params(("did" = String, Path, description = "A DID, percent-encoded once",
            example = "did%3Aaip%3Aaigentix.org%3Aalice")),
    responses(
        (status = 200, description = "Resolved", content(
            (Object = "application/did-resolution"), (Object = "application/did"))),
        (status = 400, description = "INVALID_DID", body = Object, content_type = "application/did-resolution"),
        (status = 404, description = "NOT_FOUND", body = Object, content_type = "application/did-resolution"),
        (status = 406, description = "REPRESENTATION_NOT_SUPPORTED", body = Object,
         content_type = "application/did-resolution"),
        (status = 410, description = "The DID is deactivated", body = Object,
         content_type = "application/did-resolution"),
        (status = 501, description = "METHOD_NOT_SUPPORTED, FEATURE_NOT_SUPPORTED", body = Object,
         content_type = "application/did-resolution"),
    )
)]
pub async fn resolve_did(app: web::Data<App>, req: HttpRequest) -> Result<HttpResponse, ApiError> {
    app.throttle.admit(Cost::Request, &req)?;
    let (wanted, did) = match asked(&req) {
        Ok(asked) => asked,
        Err(error) => return Ok(unresolved(&error)),
    };
    let Some(agent) = app.registry.resolve(&did).await? else {
        return Ok(unresolved(&NOT_FOUND));
    };
    let head = agent.identity.head();
    let metadata =
        json!({ "updated": seconds(&head.created_at.to_string()), "versionId": head.seq.to_string() });
    if agent.identity.is_deactivated() {
        let body = result(
            &Value::Null,
            &json!({ "contentType": DOCUMENT }),
            &with_deactivated(metadata),
        );
        return Ok(HttpResponse::Gone()
            .insert_header((CONTENT_TYPE, RESULT))
            .body(body.to_string()));
    }
    let document = Value::from(did_document(head, &app.public_url));
    let mut response = HttpResponse::Ok();
    response.insert_header((CACHE_CONTROL, FRESH));
    Ok(match wanted {
        Wanted::Document => response
            .insert_header((CONTENT_TYPE, DOCUMENT))
            .body(document.to_string()),
        Wanted::Result => {
            let body = result(&document, &json!({ "contentType": DOCUMENT }), &metadata);
            response
                .insert_header((CONTENT_TYPE, RESULT))
                .body(body.to_string())
        }
    })
}

fn asked(req: &HttpRequest) -> Result<(Wanted, Did), Unresolved> {
    let wanted = wanted(header(req, &ACCEPT).unwrap_or("*/*")).ok_or(REPRESENTATION_NOT_SUPPORTED)?;
    if req.uri().query().is_some_and(|query| !query.is_empty()) {
        return Err(FEATURE_NOT_SUPPORTED);
    }
    Ok((wanted, parse(raw_segment(req, "did"))?))
}

/// Reads a DID; a handle is none.
fn parse(raw: &str) -> Result<Did, Unresolved> {
    let scheme = raw
        .get(..4)
        .is_some_and(|start| start == "did:" || start.eq_ignore_ascii_case("did%"));
    if !scheme {
        return Err(INVALID_DID);
    }
    // Resolvers put the DID into the path as it is, with the `%3A` of its port; others encode the whole of it.
    let did = Did::parse_input(raw).or_else(|_encoded| parse_identifier(raw).map(|handle| handle.did()));
    did.map_err(|refusal| match refusal.code {
        ErrorCode::DidMethodUnsupported => METHOD_NOT_SUPPORTED,
        ErrorCode::DidForeign => NOT_FOUND,
        _ => INVALID_DID,
    })
}

/// The first media range that can be served; weights are for choices finer than this one.
fn wanted(accept: &str) -> Option<Wanted> {
    accept.split(',').find_map(|range| {
        let media_type = range.split(';').next().unwrap_or("").trim();
        match media_type.to_ascii_lowercase().as_str() {
            "application/did-resolution"
            | "application/json"
            | "application/ld+json"
            | "application/*"
            | "*/*" => Some(Wanted::Result),
            "application/did" | "application/did+json" | "application/did+ld+json" => Some(Wanted::Document),
            _ => None,
        }
    })
}

fn unresolved(Unresolved(name, status, detail): &Unresolved) -> HttpResponse {
    let title = name.replace('_', " ").to_lowercase();
    let error = json!({ "type": format!("{ERRORS}{name}"), "title": title, "detail": detail });
    let body = result(&Value::Null, &json!({ "error": error }), &json!({}));
    HttpResponse::build(*status)
        .insert_header((CONTENT_TYPE, RESULT))
        .body(body.to_string())
}

fn result(document: &Value, resolution: &Value, about_document: &Value) -> Value {
    json!({
        "didDocument": document,
        "didResolutionMetadata": resolution,
        "didDocumentMetadata": about_document,
    })
}

fn with_deactivated(mut metadata: Value) -> Value {
    if let Some(members) = metadata.as_object_mut() {
        members.insert("deactivated".to_owned(), Value::Bool(true));
    }
    metadata
}

/// The standard wants times without fractions of a second.
fn seconds(time: &str) -> String {
    time.split_once('.')
        .map_or_else(|| time.to_owned(), |(whole, _)| format!("{whole}Z"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accept_chooses_between_result_and_document() {
        assert_eq!(wanted("*/*"), Some(Wanted::Result));
        assert_eq!(wanted("application/did-resolution"), Some(Wanted::Result));
        assert_eq!(wanted("application/did"), Some(Wanted::Document));
        assert_eq!(wanted("text/html, application/did;q=0.9"), Some(Wanted::Document));
        assert_eq!(wanted("text/html"), None);
    }

    #[test]
    fn errors_are_told_apart() {
        assert_eq!(
            parse("did%3Aaip%3Aexample.org%3Aalice").unwrap().as_str(),
            "did:aip:example.org:alice"
        );
        for raw in [
            "did:aip:localhost%3A8443:alice",
            "did:aip:localhost%253A8443:alice",
            "did%3Aaip%3Alocalhost%253A8443%3Aalice",
        ] {
            assert_eq!(parse(raw).unwrap().as_str(), "did:aip:localhost%3A8443:alice");
        }
        assert_eq!(parse("did:example:123"), Err(METHOD_NOT_SUPPORTED));
        assert_eq!(parse("did:aip:example.org:"), Err(INVALID_DID));
        assert_eq!(parse("did:aip:5f2a9c0de1b34477"), Err(NOT_FOUND));
        assert_eq!(parse("alice%23example.org"), Err(INVALID_DID));
        assert_eq!(parse("é"), Err(INVALID_DID));
    }

    #[test]
    fn times_have_no_fraction() {
        assert_eq!(seconds("2026-11-29T20:15:30.123Z"), "2026-11-29T20:15:30Z");
        assert_eq!(seconds("2026-11-29T20:15:30Z"), "2026-11-29T20:15:30Z");
    }
}
