//! What goes out, and what counts as a result.

use std::sync::Mutex;
use std::time::Duration;

use aip_market::offer::Way;
use aip_protocol::clock::ManualClock;
use aip_protocol::market::digest;
use aip_protocol::multikey::SigningKey;
use aip_protocol::time::Timestamp;
use async_trait::async_trait;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::super::testing::{call, offer};
use super::*;

const URL: &str = "https://Shop.example:443/aip/weather/?key=1";
const TIMEOUT: Duration = Duration::from_secs(7);

/// One answer for every request, and the last request.
#[derive(Debug)]
struct Far {
    answer: Mutex<Option<Result<Response, EgressError>>>,
    asked: Mutex<Option<(Request, Limits)>>,
}

#[async_trait]
impl Exchange for Far {
    async fn exchange(&self, request: Request, limits: Limits) -> Result<Response, EgressError> {
        *self.asked.lock().unwrap() = Some((request, limits));
        self.answer.lock().unwrap().take().unwrap()
    }
}

async fn exchanged(answer: Result<Response, EgressError>) -> (Result<Value, ProviderError>, Request, Limits) {
    let offer = offer("did:aip:hub.example:shop", Way::Http(URL.to_owned()));
    exchanged_for(&offer, json!({"town": "Köln", "t": 1e-5, "n": 5.0}), answer).await
}

async fn exchanged_for(
    offer: &Offer,
    input: Value,
    answer: Result<Response, EgressError>,
) -> (Result<Value, ProviderError>, Request, Limits) {
    let far = Arc::new(Far {
        answer: Mutex::new(Some(answer)),
        asked: Mutex::default(),
    });
    let admission = Admission {
        key: Arc::new(SigningKey::from_seed([7; 32])),
        hub: "https://hub.example/".to_owned(),
        clock: Arc::new(ManualClock::new(Timestamp::from_unix_millis(1_700_000_000_900))),
    };
    let providers = HttpProviders::new(far.clone(), Arc::new(admission));
    let outcome = providers.call(offer, URL, call(input, TIMEOUT)).await;
    let (request, limits) = far.asked.lock().unwrap().take().unwrap();
    (outcome, request, limits)
}

async fn made_of(status: u16, body: &str) -> Result<Value, ProviderError> {
    let response = Response {
        status,
        body: body.to_owned().into(),
        ..Response::default()
    };
    exchanged(Ok(response)).await.0
}

#[tokio::test]
async fn a_provider_gets_the_input_the_ids_and_one_key_for_every_attempt() {
    let answer = Response {
        status: 200,
        body: r#"{"result":{"sky":"blue"}}"#.into(),
        ..Response::default()
    };
    let (outcome, request, limits) = exchanged(Ok(answer)).await;
    assert_eq!(outcome.unwrap(), json!({"sky": "blue"}));
    assert_eq!((request.method, request.url.as_str()), (Method::Post, URL));
    let body: Value = serde_json::from_slice(&request.body).unwrap();
    let expected = json!({
        "input": {"town": "Köln", "t": 1e-5, "n": 5.0}, "product_id": "shop", "capability_id": "weather@v1",
    });
    assert_eq!(body, expected);
    let header = |name: &str| {
        request
            .headers
            .iter()
            .find(|(known, _)| *known == name)
            .map(|(_, value)| value.as_str())
    };
    let id = "00112233-4455-4677-8899-aabbccddeeff";
    assert_eq!(header("idempotency-key"), Some(id));
    assert_eq!(header("x-aimarket-operation-id"), Some(id));
    assert_eq!(header("content-type"), Some("application/json"));
    assert_eq!(limits.timeout, TIMEOUT);
    assert!(limits.answer_bytes_max > RESULT_BYTES_MAX);
    // Nothing that the buyer pays with can be in what goes out.
    assert!(
        request
            .headers
            .iter()
            .all(|(name, _)| !name.contains("channel") && !name.contains("api-key"))
    );
}

/// The canonical text is that of aimarket-hub 3.16 (`provider_request_auth.request_canonical`).
#[tokio::test]
async fn the_hub_signs_that_it_admitted_the_call() {
    let (_, request, _) = exchanged(Err(EgressError::TimedOut)).await;
    let header = |name: &str| {
        let found = request.headers.iter().find(|(known, _)| *known == name);
        found.map(|(_, value)| value.clone()).unwrap()
    };
    assert_eq!(header("x-aimarket-hub-signer"), "https://hub.example");
    assert_eq!(
        header("x-aimarket-hub-audience"),
        "https://shop.example/aip/weather"
    );
    assert_eq!(header("x-aimarket-hub-timestamp"), "1700000000");
    let nonce = header("x-aimarket-hub-nonce");
    assert_eq!(nonce, "00112233445546778899aabbccddeeff");
    let input = digest::sha256_hex(r#"{"n":5.0,"t":1e-05,"town":"Köln"}"#.as_bytes());
    let canonical = format!(
        "aimarket-hub-request/v1\n{{\"aud\":\"https://shop.example/aip/weather\",\"capability_id\":\"weather@v1\",\
         \"hub\":\"https://hub.example\",\"input_sha256\":\"{input}\",\"nonce\":\"{nonce}\",\"ts\":1700000000}}"
    );
    let signature = STANDARD.decode(header("x-aimarket-hub-signature")).unwrap();
    let key = SigningKey::from_seed([7; 32]);
    assert_eq!(signature, key.sign_bytes(canonical.as_bytes()));
}

#[tokio::test]
async fn a_result_is_result_or_output_or_the_whole_body() {
    for (body, expected) in [
        (r#"{"success":true,"result":[1],"output":2}"#, json!([1])),
        (r#"{"ok":true,"output":{"a":1.50}}"#, json!({"a": 1.5})),
        (r#"{"sky":"blue"}"#, json!({"sky": "blue"})),
        (r#"{"result":null}"#, Value::Null),
        (r#"{"ok":"false","result":1}"#, json!(1)),
    ] {
        assert_eq!(made_of(200, body).await.unwrap(), expected, "{body}");
    }
}

#[tokio::test]
async fn pitfall_21_what_is_no_result_is_an_error_of_its_kind() {
    let refused = |why: &str| ProviderError::Refused(why.to_owned());
    let invalid = |why: &str| ProviderError::Invalid(why.to_owned());
    for (status, body, expected) in [
        (200, r#"{"ok":false,"error":"no tea"}"#, refused("no tea")),
        (
            200,
            r#"{"success":false,"result":1}"#,
            refused("it does not say why"),
        ),
        (200, "[1]", invalid("it is no JSON object")),
        (200, "<html>", invalid("it is no JSON object")),
        (200, "", invalid("it is no JSON object")),
        (302, r#"{"result":1}"#, invalid("status 302")),
        (500, r#"{"result":1}"#, invalid("status 500")),
        (422, "<html>", invalid("status 422")),
        (
            402,
            r#"{"ok":false,"error":"payment_required","free_tier":{"field":"T","max":10}}"#,
            refused("status 402: payment_required"),
        ),
    ] {
        assert_eq!(
            made_of(status, body).await.unwrap_err(),
            expected,
            "{status} {body}"
        );
    }
}

#[tokio::test]
async fn an_answer_that_its_listing_promises_signed_is_signed_or_none() {
    let key = SigningKey::from_seed([5; 32]);
    let (input, result) = (json!({ "a": 1 }), json!({ "b": 2 }));
    let text = format!(
        r#"{{"capability_id":"weather@v1","input_sha256":"{}","product_id":"shop","result":{{"b":2}}}}"#,
        digest::sha256_hex(br#"{"a":1}"#)
    );
    let signature = STANDARD.encode(key.sign_bytes(text.as_bytes()));
    for (fields, is_signed) in [
        (vec![("x-provider-signature", signature)], true),
        (Vec::new(), false),
    ] {
        let answer = Response {
            status: 200,
            body: json!({ "result": result }).to_string().into(),
            fields,
            ..Response::default()
        };
        let mut offer = offer("did:aip:hub.example:shop", Way::Http(URL.to_owned()));
        offer.provider_key = Some(key.public().clone());
        let outcome = exchanged_for(&offer, input.clone(), Ok(answer)).await.0;
        assert_eq!(outcome.is_ok(), is_signed, "{outcome:?}");
        if !is_signed {
            assert!(matches!(outcome, Err(ProviderError::Unsigned(_))));
        }
    }
}

#[tokio::test]
async fn what_egress_says_is_told_without_the_url() {
    for (error, expected) in [
        (EgressError::TimedOut, "TimedOut"),
        (EgressError::AnswerTooLarge { bytes_max: 9 }, "Invalid"),
        (EgressError::AddressRefused([10, 0, 0, 1].into()), "Unreachable"),
        (EgressError::SchemeRefused, "Unreachable"),
        (EgressError::ConnectFailed("refused".into()), "Unreachable"),
    ] {
        let shown = format!("{:?}", exchanged(Err(error)).await.0.unwrap_err());
        assert!(shown.starts_with(expected) && !shown.contains("key=1"), "{shown}");
    }
}
