//! The search page for people: made on the hub, complete without scripts, quicker with one.

use actix_web::http::header::HeaderValue;

use crate::routes::Endpoint;

pub mod script;
pub mod show;
mod view;

/// The page loads the hub's style sheet and its one script, and asks the hub; nothing else.
const POLICY: HeaderValue = HeaderValue::from_static(
    "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'self'; \
     frame-ancestors 'none'",
);

/// The endpoints of this resource.
pub fn endpoints() -> Vec<Endpoint> {
    vec![
        Endpoint::at("/search").get(show::show),
        Endpoint::at("/search.js").get(script::script),
    ]
}

#[cfg(test)]
mod tests;
