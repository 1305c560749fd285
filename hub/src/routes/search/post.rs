//! `POST /api/v1/search`: the same search with its parameters in a JSON object (§9).

use actix_web::{HttpRequest, HttpResponse, web};
use aip_protocol::error::{ErrorCode, Refusal};
use aip_protocol::json::Json;

use super::{ATTRIBUTE_PREFIX, ATTRIBUTES, Answer, PARAMETERS, Search, find, invalid};
use crate::app::App;
use crate::error::ApiError;
use crate::extract::{BodyLimit, Query, read_json_within, unknown};
use crate::limits::SEARCH_BODY_BYTES_MAX;
use crate::throttle::Cost;

/// Searches by the members of an object.
#[utoipa::path(
    post,
    path = "/api/v1/search",
    operation_id = "search_by_body",
    tag = "search",
    summary = "Search listings, parameters in the body",
    description = "The members are the parameters of the query form, as text, whole numbers or booleans; `attributes` \
                   is an object of the values that attributes must have, `attr.NAME` one of them. Write a fraction as text (`\"0.5\"`): bodies \
                   hold no floats.",
    request_body(content = Object, content_type = "application/json"),
    responses(
        (status = 200, description = "What was found", body = Answer),
        (status = 400, description = "No JSON object, or a member is unknown or not in its form; the answer names it"),
        (status = 413, description = "The body is too large"),
        (status = 415, description = "The body is not application/json"),
        (status = 429, description = "Too many requests from one address"),
        (status = 503, description = "The catalog cannot be asked now"),
    )
)]
pub async fn search(
    app: web::Data<App>,
    req: HttpRequest,
    payload: web::Payload,
) -> Result<HttpResponse, ApiError> {
    app.throttle.admit(Cost::Request, &req)?;
    Query::parse(&req, &[])?;
    let body = read_json_within(&app, &req, payload, BodyLimit::new(SEARCH_BODY_BYTES_MAX)).await?;
    let search = read(&body)?;
    Ok(HttpResponse::Ok().json(find(&app, search.into_query()).await?))
}

/// The search that an object asks for.
pub(crate) fn read(body: &Json) -> Result<Search, ApiError> {
    let members = body
        .as_object()
        .ok_or_else(|| Refusal::new(ErrorCode::ParameterInvalid, "The body must be a JSON object."))?;
    let mut search = Search::default();
    for (member, value) in members.iter() {
        if member == ATTRIBUTES {
            take_attributes(&mut search, value)?;
            continue;
        }
        if let Some(name) = member.strip_prefix(ATTRIBUTE_PREFIX) {
            let value = text(value).ok_or_else(|| invalid(ATTRIBUTES))?;
            search.take_attribute(name, &value)?;
            continue;
        }
        let Some(name) = PARAMETERS.iter().find(|known| **known == member) else {
            return Err(unknown(member, &[PARAMETERS, &[ATTRIBUTES]].concat()));
        };
        search.take(name, text(value).ok_or_else(|| invalid(name))?.as_str())?;
    }
    Ok(search)
}

fn take_attributes(search: &mut Search, value: &Json) -> Result<(), ApiError> {
    let members = value.as_object().ok_or_else(|| invalid(ATTRIBUTES))?;
    for (name, value) in members.iter() {
        let value = text(value).ok_or_else(|| invalid(ATTRIBUTES))?;
        search.take_attribute(name, &value)?;
    }
    Ok(())
}

/// A member as the query would carry it; some values have no such form.
fn text(value: &Json) -> Option<String> {
    match value {
        Json::Str(text) => Some(text.clone()),
        Json::Int(number) => Some(number.to_string()),
        Json::Bool(flag) => Some(flag.to_string()),
        Json::Null | Json::Array(_) | Json::Object(_) => None,
    }
}
