//! For people and for tools: the start page, the API page, the OpenAPI document, and a page per error code.
//!
//! Pages are made once at start from the OpenAPI document and the table of codes. They load one style sheet and
//! nothing else; their policy forbids scripts.

use actix_web::HttpResponse;
use actix_web::http::header::{CACHE_CONTROL, CONTENT_SECURITY_POLICY, ContentType, HeaderValue};
use bytes::Bytes;

use crate::openapi;
use crate::routes::Endpoint;

pub mod error;
pub mod errors;
mod html;
pub mod openapi_json;
pub mod page;
mod reference;
pub mod start;
pub mod style;

pub(crate) use html::{Html, Page};

/// A page loads the hub's style sheet and nothing else.
const PAGE_POLICY: HeaderValue = HeaderValue::from_static(
    "default-src 'none'; style-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
);
const CACHED: HeaderValue = HeaderValue::from_static("public, max-age=300");

/// The endpoints of this resource.
pub fn endpoints() -> Vec<Endpoint> {
    vec![
        Endpoint::at("/").get(start::start),
        Endpoint::at("/docs").get(page::page),
        Endpoint::at("/docs/style.css").get(style::style),
        Endpoint::at("/docs/errors").get(errors::errors),
        Endpoint::at("/docs/errors/{code}").get(error::error),
        Endpoint::at("/openapi.json").get(openapi_json::openapi_json),
    ]
}

/// What is made once at start.
#[derive(Debug)]
pub struct Docs {
    openapi: Bytes,
    page: Bytes,
}

impl Docs {
    /// Makes the OpenAPI document and the API page.
    ///
    /// # Errors
    /// A description that JSON cannot hold, which is a bug.
    pub fn new() -> Result<Self, serde_json::Error> {
        let document = serde_json::to_value(openapi::document())?;
        Ok(Self {
            openapi: openapi::json()?.into(),
            page: reference::render(&document).into(),
        })
    }
}

fn page(body: impl Into<Bytes>) -> HttpResponse {
    let mut response = HttpResponse::Ok();
    response.insert_header(ContentType::html());
    response
        .insert_header((CONTENT_SECURITY_POLICY, PAGE_POLICY))
        .insert_header((CACHE_CONTROL, CACHED));
    response.body(body.into())
}

/// Answers with a page.
pub(crate) fn respond(page_of: Page) -> HttpResponse {
    page(page_of.render())
}

#[cfg(test)]
mod tests;
