//! How a caller wants to be answered: at once, later (`Prefer: respond-async`, RFC 7240), or by events as they come (`Accept:
//! text/event-stream`).

use std::time::Duration;

use actix_web::HttpRequest;
use actix_web::http::header::{ACCEPT, HeaderName};

use crate::market::limits::JOB_WAIT_MAX;

const PREFER: HeaderName = HeaderName::from_static("prefer");
const EVENTS: &str = "text/event-stream";
const JSON: &str = "application/json";

/// How a call is answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::routes::market) enum Manner {
    /// When it has ended.
    Plain,
    /// With where its answer is found, if it has not ended after so long.
    Later(Duration),
    /// By events.
    Events,
}

/// The manner that a request asks for. Who asks for both is answered later: a stream can be opened then.
pub(in crate::routes::market) fn of(req: &HttpRequest) -> Manner {
    let preferences = listed(req, &PREFER);
    if has(&preferences, "respond-async") {
        return Manner::Later(wait(&preferences));
    }
    let accepted = listed(req, &ACCEPT);
    match (quality(&accepted, EVENTS), quality(&accepted, JSON)) {
        (Some(events), json) if events > 0.0 && json.is_none_or(|json| events >= json) => Manner::Events,
        _ => Manner::Plain,
    }
}

/// How long a request is prepared to wait (`Prefer: wait=`), at most [`JOB_WAIT_MAX`].
pub(in crate::routes::market) fn patience(req: &HttpRequest) -> Duration {
    wait(&listed(req, &PREFER))
}

/// The parts of a header that is a list, whatever is no text left out.
fn listed(req: &HttpRequest, name: &HeaderName) -> Vec<String> {
    let values = req.headers().get_all(name);
    let texts = values.filter_map(|value| value.to_str().ok());
    let parts = texts.flat_map(|text| text.split(','));
    parts.map(|part| part.trim().to_ascii_lowercase()).collect()
}

fn has(preferences: &[String], name: &str) -> bool {
    let names = preferences.iter().map(|part| part.split(['=', ';']).next());
    names.flatten().any(|found| found.trim() == name)
}

fn wait(preferences: &[String]) -> Duration {
    let found = preferences.iter().find_map(|part| {
        let (name, value) = part.split(';').next()?.split_once('=')?;
        (name.trim() == "wait").then(|| value.trim().trim_matches('"').parse::<u64>().ok())?
    });
    Duration::from_secs(found.unwrap_or(0)).min(JOB_WAIT_MAX)
}

/// How much a media type is wanted, if it is named.
fn quality(accepted: &[String], media_type: &str) -> Option<f32> {
    accepted.iter().find_map(|range| {
        let mut parts = range.split(';').map(str::trim);
        if parts.next() != Some(media_type) {
            return None;
        }
        let quality = parts.find_map(|parameter| parameter.strip_prefix("q="));
        Some(quality.map_or(1.0, |text| text.trim().parse().unwrap_or(0.0)))
    })
}

#[cfg(test)]
mod tests {
    use actix_web::test::TestRequest;

    use super::*;

    fn asked(headers: &[(&str, &str)]) -> Manner {
        let request = TestRequest::post();
        let request = headers
            .iter()
            .fold(request, |request, header| request.append_header(*header));
        of(&request.to_http_request())
    }

    #[test]
    fn a_caller_says_how_it_is_answered() {
        let later = |secs| Manner::Later(Duration::from_secs(secs));
        let cases: &[(&[(&str, &str)], Manner)] = &[
            (&[], Manner::Plain),
            (&[("accept", "*/*")], Manner::Plain),
            (&[("accept", "application/json")], Manner::Plain),
            (&[("accept", "text/event-stream")], Manner::Events),
            (&[("accept", "Text/Event-Stream; charset=utf-8")], Manner::Events),
            (
                &[("accept", "application/json, text/event-stream")],
                Manner::Events,
            ),
            (
                &[("accept", "text/event-stream;q=0.5, application/json")],
                Manner::Plain,
            ),
            (&[("accept", "text/event-stream;q=0")], Manner::Plain),
            (&[("accept", "text/event-stream;q=x")], Manner::Plain),
            (&[("accept", "text/*")], Manner::Plain),
            (&[("prefer", "respond-async")], later(0)),
            (&[("prefer", "Respond-Async, wait=10")], later(10)),
            (&[("prefer", "wait=\"5\""), ("prefer", "respond-async")], later(5)),
            (&[("prefer", "respond-async; foo=bar, wait=100000")], later(30)),
            (&[("prefer", "wait=10")], Manner::Plain),
            (&[("prefer", "respond-asynchronously")], Manner::Plain),
            (
                &[("prefer", "respond-async"), ("accept", "text/event-stream")],
                later(0),
            ),
        ];
        for (headers, expected) in cases {
            assert_eq!(asked(headers), *expected, "{headers:?}");
        }
    }
}
