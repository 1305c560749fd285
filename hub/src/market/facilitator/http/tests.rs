//! The contract over HTTP, with the local facilitator at the other end; and answers that are none.

use std::sync::Mutex;

use aip_market::facilitator::local::{CHAIN_ID, LocalFacilitator};
use aip_market::testsuite::facilitators::{self, NOW_SECS, asked, payment};
use aip_protocol::clock::ManualClock;
use aip_protocol::time::Timestamp;

use super::*;

/// The other end: JSON in, JSON out, as x402 §7 says.
#[derive(Debug)]
struct Far {
    facilitator: LocalFacilitator,
    last: Mutex<Option<Request>>,
}

#[async_trait]
impl Exchange for Far {
    async fn exchange(&self, request: Request, _limits: Limits) -> Result<Response, EgressError> {
        let body = match request.url.strip_prefix("https://pay.example/x402") {
            Some("/supported") => json!({
                "kinds": [
                    { "x402Version": 1, "scheme": "exact", "network": "base" },
                    { "x402Version": 2, "scheme": "exact", "network": format!("eip155:{CHAIN_ID}") },
                ],
                "extensions": [], "signers": {},
            }),
            Some(path) => self.decide(path, &request.body).await,
            None => json!({}),
        };
        *self.last.lock().unwrap() = Some(request);
        Ok(Response {
            status: 200,
            body: body.to_string().into(),
            ..Response::default()
        })
    }
}

impl Far {
    async fn decide(&self, path: &str, body: &[u8]) -> Value {
        let body: Value = serde_json::from_slice(body).unwrap();
        assert_eq!(body["x402Version"], 2);
        let asked = Requirements::from_json(&body["paymentRequirements"]).unwrap();
        let payment = Payment::from_json(body["paymentPayload"].clone()).unwrap();
        let payer = payment.transfer.from.to_string();
        if path == "/verify" {
            return match self.facilitator.verify(&payment, &asked).await.unwrap() {
                Verified::Valid => json!({ "isValid": true, "payer": payer }),
                Verified::Invalid(reason) => {
                    json!({ "isValid": false, "invalidReason": reason, "payer": payer })
                }
            };
        }
        let network = asked.network();
        match self.facilitator.settle(&payment, &asked).await.unwrap() {
            Settled::Done(transaction) => {
                json!({ "success": true, "payer": payer, "transaction": transaction, "network": network })
            }
            Settled::Refused(reason) | Settled::Unclear(reason) => {
                json!({ "success": false, "errorReason": reason, "transaction": "", "network": network })
            }
        }
    }
}

fn far() -> Arc<Far> {
    let now = i64::try_from(NOW_SECS).unwrap();
    let clock = Arc::new(ManualClock::new(Timestamp::from_unix_secs(now)));
    Arc::new(Far {
        facilitator: LocalFacilitator::new(CHAIN_ID, facilitators::GRANT, clock),
        last: Mutex::default(),
    })
}

fn over(exchange: Arc<dyn Exchange>) -> HttpFacilitator {
    let token = Secret::new("s3cret");
    HttpFacilitator::new(
        exchange,
        "https://pay.example/x402/",
        token,
        Duration::from_secs(3),
    )
}

aip_market::stamp_facilitator!(over(far()));

#[tokio::test]
async fn the_token_is_shown_and_not_printed() {
    let far = far();
    let facilitator = over(far.clone());
    facilitator.verify(&payment(1, |_| {}), &asked()).await.unwrap();
    let request = far.last.lock().unwrap().take().unwrap();
    let shown = request.headers.iter().find(|(name, _)| *name == "authorization");
    assert_eq!(shown.map(|(_, value)| value.as_str()), Some("Bearer s3cret"));
    assert!(!format!("{facilitator:?}").contains("s3cret"));
}

/// One answer to everything.
#[derive(Debug)]
struct Says(u16, &'static str);

#[async_trait]
impl Exchange for Says {
    async fn exchange(&self, _request: Request, limits: Limits) -> Result<Response, EgressError> {
        assert_eq!(limits.answer_bytes_max, FACILITATOR_ANSWER_BYTES_MAX);
        Ok(Response {
            status: self.0,
            body: self.1.into(),
            ..Response::default()
        })
    }
}

async fn settled(status: u16, body: &'static str) -> Result<Settled, FacilitatorError> {
    over(Arc::new(Says(status, body)))
        .settle(&payment(1, |_| {}), &asked())
        .await
}

#[tokio::test]
async fn what_may_be_on_the_chain_is_no_refusal() {
    for (body, is_refused) in [
        (
            r#"{"success":false,"errorReason":"insufficient_funds","transaction":""}"#,
            true,
        ),
        (
            r#"{"success":false,"errorReason":"invalid_exact_evm_payload_signature"}"#,
            true,
        ),
        (
            r#"{"success":false,"errorReason":"insufficient_funds","transaction":"0xabc"}"#,
            false,
        ),
        (
            r#"{"success":false,"errorReason":"invalid_transaction_state","transaction":""}"#,
            false,
        ),
        (
            r#"{"success":false,"errorReason":"invalid_exact_evm_nonce_already_used","transaction":""}"#,
            true,
        ),
        (
            r#"{"success":false,"errorReason":"invalid_exact_evm_nonce_already_used","transaction":"0xabc"}"#,
            false,
        ),
        (
            r#"{"success":false,"errorReason":"invalid_exact_evm_transfer_event_mismatch"}"#,
            false,
        ),
        (
            r#"{"success":false,"errorReason":"unexpected_settle_error"}"#,
            false,
        ),
        (r#"{"success":false}"#, false),
    ] {
        let is_refusal = matches!(settled(200, body).await, Ok(Settled::Refused(_)));
        assert_eq!(is_refusal, is_refused, "{body}");
    }
    let refused = settled(400, r#"{"success":false,"errorReason":"insufficient_funds"}"#).await;
    assert!(matches!(refused, Ok(Settled::Refused(_))));
}

#[tokio::test]
async fn what_is_no_answer_says_nothing() {
    for (status, body) in [
        (200, "null"),
        (200, "<html>"),
        (200, "{}"),
        (200, r#"{"success":true}"#),
        (200, r#"{"success":true,"transaction":""}"#),
        (200, r#"{"success":"true","transaction":"0xabc"}"#),
        (302, r#"{"success":true,"transaction":"0xabc"}"#),
        (500, r#"{"success":true,"transaction":"0xabc"}"#),
        (500, r#"{"success":false,"errorReason":"insufficient_funds"}"#),
        (400, r#"{"success":true,"transaction":"0xabc"}"#),
    ] {
        assert!(settled(status, body).await.is_err(), "{status} {body}");
    }
}
