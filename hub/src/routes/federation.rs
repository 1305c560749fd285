//! The doors for hubs of other domains (§8). Every request is signed by the hub that sends it.

use std::sync::Arc;

use actix_web::HttpRequest;
use actix_web::http::header::CONTENT_LENGTH;
use aip_federation::inbound::{Call, Inbound, Incoming, Ticket};
use aip_protocol::error::{ErrorCode, Refusal};
use aip_protocol::http_signature::Target;
use url::Url;

use crate::app::App;
use crate::error::ApiError;
use crate::extract::header;
use crate::federation::switched_off;
use crate::routes::Endpoint;

pub mod messages;
pub mod outbox;
pub mod status;

/// The endpoints of this resource.
pub fn endpoints() -> Vec<Endpoint> {
    vec![
        Endpoint::at("/federation/v1/messages").post(messages::messages),
        Endpoint::at("/federation/v1/outbox").get(outbox::outbox),
        Endpoint::at("/federation/v1/status").get(status::status),
    ]
}

/// Lets a request in before its body is read.
fn knock<'a>(app: &'a App, req: &HttpRequest, call: Call) -> Result<(&'a Arc<Inbound>, Ticket), ApiError> {
    let federation = app.federation.as_ref().ok_or_else(switched_off)?;
    let body_bytes = header(req, &CONTENT_LENGTH).and_then(|length| length.parse().ok());
    let incoming = Incoming {
        target: target(app, req)?,
        fields: fields(req)?,
        address: app.throttle.address(req),
    };
    // A request that is refused here has a body that nobody will read.
    let ticket = federation.inbound.knock(call, incoming, body_bytes);
    Ok((
        &federation.inbound,
        ticket.map_err(|refusal| ApiError::from(refusal).closing())?,
    ))
}

/// What is asked of whom. The authority is ours, whatever a proxy put into `Host`.
fn target(app: &App, req: &HttpRequest) -> Result<Target, ApiError> {
    let own = Url::parse(&app.public_url).map_err(|error| ApiError::failed(ErrorCode::Internal, error))?;
    let path = req.uri().path();
    let query = req.uri().query();
    Ok(Target {
        path: path.to_owned(),
        query: format!("?{}", query.unwrap_or_default()),
        ..Target::of_url(req.method().as_str(), &own)
    })
}

/// The header fields. One that is no text is in no signature that could be checked.
fn fields(req: &HttpRequest) -> Result<Vec<(String, String)>, ApiError> {
    let read = req.headers().iter().map(|(name, value)| {
        let value = value.to_str().map_err(|_not_text| {
            let detail = "A header field of the request is no text.";
            Refusal::new(ErrorCode::RequestSignatureInvalid, detail)
        })?;
        Ok((name.as_str().to_owned(), value.to_owned()))
    });
    read.collect()
}
