//! What goes to another hub, and what counts as its answer.

use std::sync::Mutex;
use std::time::Duration;

use aip_federation::egress::EgressError;
use aip_market::credential::{API_KEY_PREFIX, Secret};
use aip_market::offer::{Offer, PeerSource, Source, Way};
use aip_market::peers::{Declared, Found, PeerStatus, RouteMode};
use aip_protocol::clock::ManualClock;
use aip_protocol::multikey::SigningKey;
use aip_protocol::time::Timestamp;
use uuid::Uuid;

use super::super::testing::offer;
use super::*;

const PEER: &str = "https://peer.example";
const KEY: &str = "aimk_ours";

/// One answer for every request, and the last request.
#[derive(Debug)]
struct Far {
    answer: Mutex<Option<Result<Response, EgressError>>>,
    asked: Mutex<Option<Request>>,
}

#[async_trait]
impl Exchange for Far {
    async fn exchange(&self, request: Request, _limits: Limits) -> Result<Response, EgressError> {
        *self.asked.lock().unwrap() = Some(request);
        self.answer.lock().unwrap().take().unwrap()
    }
}

#[derive(Debug)]
struct Keys;

impl PeerKeys for Keys {
    fn key(&self, url: &str) -> Option<Secret> {
        (url == PEER).then(|| Secret::shown(API_KEY_PREFIX, KEY).unwrap())
    }
}

fn peer(url: &str, declared: Declared) -> MarketPeer {
    let began = Timestamp::from_unix_secs(1_700_000_000);
    MarketPeer {
        url: url.to_owned(),
        status: PeerStatus::Active,
        mode: RouteMode::Broker,
        key: None,
        advertised_key: None,
        found: Found::Operator,
        depth: 0,
        declared,
        first_seen: began,
        crawl_at: began,
        last_try: None,
        last_crawl: None,
        failures: 0,
        last_error: None,
        capabilities: 0,
    }
}

fn hub() -> MarketPeer {
    let declared = Declared {
        hub_version: Some("1".to_owned()),
        invoke_url: Some("https://peer.example/mcp".to_owned()),
        ..Declared::default()
    };
    peer(PEER, declared)
}

fn sold() -> Offer {
    Offer {
        source: Source::Peer(PeerSource {
            hub: PEER.to_owned(),
            name: "Peer".to_owned(),
        }),
        ..offer("did:aip:peer.example:hub", Way::Peer)
    }
}

fn nothing() -> Shown {
    Shown::Buyer {
        visitor: None,
        payment: Vec::new(),
        most: None,
    }
}

async fn called(
    peer: &MarketPeer,
    shown: &Shown,
    answer: Result<Response, EgressError>,
) -> (Result<PeerAnswer, PeerFailure>, Option<Request>) {
    let far = Arc::new(Far {
        answer: Mutex::new(Some(answer)),
        asked: Mutex::default(),
    });
    let admission = Admission {
        key: Arc::new(SigningKey::from_seed([7; 32])),
        hub: "https://hub.example".to_owned(),
        clock: Arc::new(ManualClock::new(Timestamp::from_unix_secs(1_700_000_000))),
    };
    let providers = PeerProviders::new(far.clone(), Arc::new(admission), Arc::new(Keys));
    let (offer, input) = (sold(), json!({ "town": "Köln" }));
    let call = PeerCall {
        peer,
        offer: &offer,
        id: Uuid::from_u128(7),
        input: &input,
        timeout: Duration::from_secs(7),
        shown,
    };
    let outcome = providers.call(call).await;
    let asked = far.asked.lock().unwrap().take();
    (outcome, asked)
}

fn response(status: u16, body: &str) -> Response {
    Response {
        status,
        body: body.to_owned().into(),
        ..Response::default()
    }
}

async fn asked(peer: &MarketPeer, shown: &Shown) -> (Request, Value) {
    let (_, request) = called(peer, shown, Err(EgressError::TimedOut)).await;
    let request = request.unwrap();
    let body = serde_json::from_slice(&request.body).unwrap();
    (request, body)
}

fn names(request: &Request) -> Vec<&'static str> {
    request.headers.iter().map(|(name, _)| *name).collect()
}

fn header<'a>(request: &'a Request, name: &str) -> Option<&'a str> {
    let found = request.headers.iter().find(|(known, _)| *known == name);
    found.map(|(_, value)| value.as_str())
}

#[tokio::test]
async fn a_hub_is_asked_for_what_is_its_own_and_a_bare_provider_where_it_says() {
    let (request, body) = asked(&hub(), &nothing()).await;
    assert_eq!(request.url, "https://peer.example/ai-market/v2/invoke");
    let expected = json!({
        "product_id": "shop", "capability_id": "weather@v1", "source_hub": "local", "input": { "town": "Köln" },
    });
    assert_eq!(body, expected);
    assert_eq!(
        header(&request, "idempotency-key"),
        Some("00000000-0000-0000-0000-000000000007")
    );
    assert_eq!(
        header(&request, "x-aimarket-routing-hub"),
        Some("https://hub.example")
    );
    let at = |url: &str| Declared {
        invoke_url: Some(url.to_owned()),
        ..Declared::default()
    };
    for (base, said, expected) in [
        (
            PEER,
            "https://peer.example/aimarket/invoke",
            "https://peer.example/aimarket/invoke",
        ),
        (PEER, "https://Peer.Example:443/x", "https://Peer.Example:443/x"),
        // A provider says where it is, and never where else to go.
        (
            PEER,
            "https://elsewhere.example/x",
            "https://peer.example/ai-market/v2/invoke",
        ),
        (
            PEER,
            "http://peer.example/x",
            "https://peer.example/ai-market/v2/invoke",
        ),
        (
            PEER,
            "https://peer.example:8443/x",
            "https://peer.example/ai-market/v2/invoke",
        ),
        (
            PEER,
            "data:text/plain,x",
            "https://peer.example/ai-market/v2/invoke",
        ),
        (
            "https://o.example/family",
            "/x",
            "https://o.example/family/ai-market/v2/invoke",
        ),
    ] {
        let (request, body) = asked(&peer(base, at(said)), &nothing()).await;
        assert_eq!(request.url, expected);
        let source_hub = if expected.ends_with("/ai-market/v2/invoke") {
            "local"
        } else {
            "https://hub.example"
        };
        assert_eq!(body["source_hub"], json!(source_hub));
    }
}

/// What a peer is shown, and nothing else: not the buyer's key, channel or secret, which are not even here.
#[tokio::test]
async fn a_peer_is_shown_what_pays_it() {
    let always = [
        "content-type",
        "accept",
        "idempotency-key",
        "x-aimarket-routing-hub",
    ];
    let (request, _) = asked(&hub(), &nothing()).await;
    assert_eq!(names(&request), always);
    let paying = Shown::Buyer {
        visitor: Some("hub-fed-1".to_owned()),
        payment: vec![("payment-signature", "cGF5".to_owned())],
        most: Some(Usd::parse("0.02").unwrap()),
    };
    let (request, body) = asked(&hub(), &paying).await;
    assert_eq!(header(&request, "payment-signature"), Some("cGF5"));
    assert_eq!(
        header(&request, "x-aimarket-sandbox-visitor"),
        None,
        "who pays does not try"
    );
    assert_eq!(body["max_price_usd"], json!(0.02));
    let trying = Shown::Buyer {
        visitor: Some("hub-fed-1".to_owned()),
        payment: Vec::new(),
        most: None,
    };
    let (request, _) = asked(&hub(), &trying).await;
    assert_eq!(header(&request, "x-aimarket-sandbox-visitor"), Some("hub-fed-1"));
    let (request, _) = asked(&hub(), &Shown::Admission).await;
    assert_eq!(
        header(&request, "x-aimarket-hub-audience"),
        Some("https://peer.example/ai-market/v2/invoke")
    );
    assert!(
        header(&request, "x-aimarket-hub-signature").is_some() && header(&request, "x-api-key").is_none()
    );
    let price = Shown::Key(Usd::parse("0.006").unwrap());
    let (request, body) = asked(&hub(), &price).await;
    assert_eq!(header(&request, "x-api-key"), Some(KEY));
    assert_eq!(body["max_price_usd"], json!(0.006), "no more than the buyer paid");
    assert_eq!(header(&request, "x-aimarket-hub-signature"), None);
    let elsewhere = peer("https://other.example", Declared::default());
    let (outcome, request) = called(&elsewhere, &price, Err(EgressError::TimedOut)).await;
    assert!(
        matches!(outcome, Err(PeerFailure::HubUnpaid(_))) && request.is_none(),
        "no key, no call"
    );
    assert!(!format!("{paying:?}").contains("cGF5"));
}

async fn answered(shown: &Shown, response: Response) -> Result<PeerAnswer, PeerFailure> {
    called(&hub(), shown, Ok(response)).await.0
}

#[tokio::test]
async fn answers_of_hubs_and_of_bare_providers_are_brought_into_one_form() {
    for (body, result, price) in [
        (
            r#"{"success":true,"result":[1],"price_usd":0.004,"receipt":{"nonce":"r"}}"#,
            json!([1]),
            Some("0.004"),
        ),
        (
            r#"{"ok":true,"output":{"a":1},"receipt":{"nonce":"r","price_usd":0.01}}"#,
            json!({ "a": 1 }),
            Some("0.01"),
        ),
        (
            r#"{"sky":"blue","receipt":{"nonce":"r"}}"#,
            json!({ "sky": "blue" }),
            None,
        ),
        // Pitfall 27: numbers of a stranger are numbers, or nothing.
        (
            r#"{"result":1,"price_usd":"0.01","latency_ms":1e30,"receipt":{"nonce":"r"}}"#,
            json!(1),
            None,
        ),
        (
            r#"{"result":1,"price_usd":-1,"receipt":{"nonce":"r"}}"#,
            json!(1),
            None,
        ),
        (
            r#"{"result":1,"price_usd":0,"receipt":{"nonce":"r"}}"#,
            json!(1),
            Some("0"),
        ),
    ] {
        let answer = answered(&nothing(), response(200, body)).await.unwrap();
        let receipt = answer.receipt.unwrap();
        assert_eq!(
            (answer.result, receipt.get("nonce")),
            (result, Some(&"r".into())),
            "{body}"
        );
        assert_eq!(
            answer.price,
            price.map(|price| Usd::parse(price).unwrap()),
            "{body}"
        );
    }
    let huge = answered(&nothing(), response(200, r#"{"result":1,"price_usd":1e300}"#))
        .await
        .unwrap();
    assert_eq!((huge.price, huge.receipt), (Some(Usd::MAX), None));
    for body in [
        r#"{"result":1,"sandbox":true}"#,
        r#"{"result":1,"sandbox":{"remaining":2}}"#,
    ] {
        assert!(answered(&nothing(), response(200, body)).await.unwrap().is_trial);
    }
}

#[tokio::test]
async fn headers_about_payment_go_on_and_no_others() {
    let paid = Response {
        fields: vec![("payment-response", "e30=".to_owned()), ("etag", "x".to_owned())],
        ..response(200, r#"{"result":1}"#)
    };
    let headers = answered(&nothing(), paid).await.unwrap().headers;
    assert_eq!(headers, [("payment-response", "e30=".to_owned())]);
}

/// A receipt keeps the spelling that it was signed in.
#[tokio::test]
async fn a_receipt_comes_back_as_it_is() {
    let text = r#"{"latency_ms":12.34,"nonce":"r","price_usd":1e-05,"signature":{"value":"x"}}"#;
    let body = format!(r#"{{"result":1,"receipt":{text}}}"#);
    let receipt = answered(&nothing(), response(200, &body))
        .await
        .unwrap()
        .receipt
        .unwrap();
    assert_eq!(receipt.to_string(), text);
}

#[tokio::test]
async fn what_is_no_answer_is_a_failure_of_its_kind() {
    let refused = |why: &str| PeerFailure::Provider(ProviderError::Refused(why.to_owned()));
    let invalid = |why: &str| PeerFailure::Provider(ProviderError::Invalid(why.to_owned()));
    let key = Shown::Key(Usd::ZERO);
    for (shown, status, body, expected) in [
        (
            nothing(),
            200,
            r#"{"success":false,"error":"no tea"}"#,
            refused("no tea"),
        ),
        (nothing(), 200, r#"{"ok":false}"#, refused("it does not say why")),
        (nothing(), 200, "[]", invalid("it is no JSON object")),
        (
            nothing(),
            200,
            r#"{"result":NaN}"#,
            invalid("it is no JSON object"),
        ),
        (
            nothing(),
            200,
            r#"{"result":1,"result":2}"#,
            invalid("it is no JSON object"),
        ),
        (nothing(), 301, r#"{"result":1}"#, invalid("status 301")),
        (nothing(), 500, r#"{"error":"x"}"#, invalid("status 500")),
        (
            nothing(),
            409,
            r#"{"error":"price_limit_exceeded"}"#,
            refused("status 409: price_limit_exceeded"),
        ),
        (nothing(), 401, r#"{"error":"x"}"#, refused("status 401: x")),
        (
            key.clone(),
            401,
            r#"{"error":"invalid_api_key"}"#,
            PeerFailure::HubUnpaid("status 401: invalid_api_key".to_owned()),
        ),
        (key, 402, "", PeerFailure::HubUnpaid("status 402".to_owned())),
        (
            Shown::Admission,
            402,
            r#"{"error":"payment_required"}"#,
            PeerFailure::HubUnpaid("status 402: payment_required".to_owned()),
        ),
    ] {
        let outcome = answered(&shown, response(status, body)).await;
        assert_eq!(outcome.unwrap_err(), expected, "{status} {body}");
    }
    let (outcome, _) = called(&hub(), &nothing(), Err(EgressError::TimedOut)).await;
    assert_eq!(
        outcome.unwrap_err(),
        PeerFailure::Provider(ProviderError::TimedOut)
    );
}

/// Pitfall 44: word for word; and where there are no words, those of the header.
#[tokio::test]
async fn a_402_is_handed_on() {
    let words = r#"{"error":"payment_required","needed":0.01,  "accepts":[]}"#;
    let with = |body: &str, field: &str| Response {
        fields: vec![
            ("payment-required", field.to_owned()),
            ("retry-after", "1".to_owned()),
        ],
        ..response(402, body)
    };
    let Err(PeerFailure::Unpaid(terms)) = answered(&nothing(), with(words, "eA==")).await else {
        panic!("the buyer is to pay");
    };
    assert_eq!(
        (&terms.body[..], &terms.headers[..]),
        (words.as_bytes(), &[("payment-required", "eA==".to_owned())][..])
    );
    let offer = STANDARD.encode(r#"{"x402Version":2,"accepts":[{"payTo":"0xpeer"}],"secret":1}"#);
    for body in ["", "{}", "<html>", "[1]"] {
        let Err(PeerFailure::Unpaid(terms)) = answered(&nothing(), with(body, &offer)).await else {
            panic!("the buyer is to pay");
        };
        let spoken: Value = serde_json::from_slice(&terms.body).unwrap();
        assert_eq!(spoken["error"], json!("payment_required"));
        assert_eq!(
            (&spoken["accepts"], &spoken["x402Version"]),
            (&json!([{ "payTo": "0xpeer" }]), &json!(2))
        );
        assert_eq!((terms.headers.len(), spoken.get("secret")), (1, None));
    }
}
