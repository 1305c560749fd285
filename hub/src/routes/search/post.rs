//! `POST /api/v1/search`: the same search with its parameters in a JSON object (§9).

use actix_web::{HttpRequest, HttpResponse, web};
use aip_protocol::error::{ErrorCode, Refusal};
use aip_protocol::json::Json;

use super::{Answer, PARAMETERS, Search, invalid};
use crate::app::App;
use crate::error::ApiError;
use crate::extract::{Query, read_json};
use crate::throttle::Cost;

/// Searches by the members of an object.
#[utoipa::path(
    post,
    path = "/api/v1/search",
    operation_id = "search_by_body",
    tag = "search",
    summary = "Search listings, parameters in the body",
    description = "The members are the parameters of the query form, as text, whole numbers or booleans. Write a \
                   fraction as text (`\"0.5\"`): bodies hold no floats.",
    request_body(content = Object, content_type = "application/json"),
    responses(
        (status = 200, description = "What was found", body = Answer),
        (status = 400, description = "No JSON object, or a member is unknown or not in its form"),
        (status = 413, description = "The body is too large"),
        (status = 415, description = "The body is not application/json"),
        (status = 429, description = "Too many requests from one address"),
    )
)]
pub async fn search(
    app: web::Data<App>,
    req: HttpRequest,
    payload: web::Payload,
) -> Result<HttpResponse, ApiError> {
    app.throttle.admit(Cost::Request, &req)?;
    Query::parse(&req, &[])?;
    let body = read_json(&app, &req, payload).await?;
    let members = body
        .as_object()
        .ok_or_else(|| Refusal::new(ErrorCode::ParameterInvalid, "The body must be a JSON object."))?;
    let mut search = Search::default();
    for (member, value) in members.iter() {
        let name = PARAMETERS.iter().find(|known| **known == member).ok_or_else(|| {
            let known = PARAMETERS.join(", ");
            Refusal::new(
                ErrorCode::ParameterUnknown,
                format!("A member is not known here. Known are: {known}."),
            )
        })?;
        search.take(name, text(value).ok_or_else(|| invalid(name))?.as_str())?;
    }
    Ok(search.answer())
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
