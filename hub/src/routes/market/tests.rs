//! The market's doors, with a provider that answers at once.

mod calls;
mod documents;
mod jobs;
mod operator;
mod purses;
mod searches;

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use actix_web::http::Method;
use actix_web::test::TestRequest;
use aip_federation::egress::{EgressError, Exchange, Limits, Request, Response};
use async_trait::async_trait;
use bytes::Bytes;
use serde_json::{Value, json};
use tokio::sync::watch;

use crate::config::Settings;
use crate::testing::{Answer, TestAgent, TestHub};

/// A provider at every address: it answers what it was asked, and remembers it.
#[derive(Default)]
struct Provider {
    calls: Mutex<Vec<Value>>,
    /// What it answers instead.
    says: Mutex<Option<(u16, Value)>>,
    /// The events that it answers instead.
    speaks: Mutex<Option<String>>,
    /// The media types that it was asked for last.
    accepted: Mutex<String>,
    hangs: watch::Sender<bool>,
}

impl fmt::Debug for Provider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Provider")
    }
}

impl Provider {
    fn calls(&self) -> Vec<Value> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn says(&self, status: u16, body: Value) {
        *self.says.lock().unwrap_or_else(PoisonError::into_inner) = Some((status, body));
    }

    fn speaks(&self, events: &str) {
        *self.speaks.lock().unwrap_or_else(PoisonError::into_inner) = Some(events.to_owned());
    }

    fn accepted(&self) -> String {
        self.accepted
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// Whether it answers nobody, for now.
    fn hangs(&self, hangs: bool) {
        self.hangs.send_replace(hangs);
    }
}

#[async_trait]
impl Exchange for Provider {
    async fn exchange(&self, request: Request, _limits: Limits) -> Result<Response, EgressError> {
        let call: Value = serde_json::from_slice(&request.body).unwrap();
        let echo = json!({ "result": { "echo": call["input"] } });
        let said = self.says.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let (status, body) = said.unwrap_or((200, echo));
        self.calls
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(call);
        let accepted = request.headers.iter().find(|(name, _)| *name == "accept");
        *self.accepted.lock().unwrap_or_else(PoisonError::into_inner) =
            accepted.map(|(_, value)| value.clone()).unwrap_or_default();
        // The sender lives as long as this.
        drop(self.hangs.subscribe().wait_for(|hangs| !hangs).await);
        let spoken = self.speaks.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some(events) = spoken {
            return Ok(Response {
                status: 200,
                content_type: Some("text/event-stream".to_owned()),
                body: Bytes::from(events),
                ..Response::default()
            });
        }
        Ok(Response {
            status,
            content_type: Some("application/json".to_owned()),
            body: Bytes::from(body.to_string()),
            ..Response::default()
        })
    }
}

/// A hub with one agent who sells.
struct Shop {
    hub: TestHub,
    provider: Arc<Provider>,
    seller: TestAgent,
}

/// The operator's token of these hubs.
const OPERATOR: &str = "0123456789abcdef0123456789abcdef";

impl Shop {
    async fn open(change: impl FnOnce(&mut Settings)) -> Self {
        let provider = Arc::new(Provider::default());
        let way = provider.clone();
        let hub = TestHub::plugged(
            |settings| {
                settings.http.operator_token = crate::config::Secret::new(OPERATOR);
                settings.market.demo_credit = false;
                change(settings);
            },
            |seams| seams.exchange = way,
        );
        let seller = hub.registered("shop").await;
        Self {
            hub,
            provider,
            seller,
        }
    }

    /// Sells a capability, for so much or for nothing.
    async fn sells(&self, id: &str, price: Option<&str>) {
        self.sells_with(id, price, |_| ()).await;
    }

    async fn sells_with(&self, id: &str, price: Option<&str>, change: impl FnOnce(&mut Value)) {
        let listing = self.hub.listing(&self.seller, id, 1, |listing| {
            listing["kind"] = json!("capability");
            listing["attributes"] = json!({ "category": "tests" });
            listing["invoke"] = json!({ "url": "https://provider.example/work" });
            if let Some(price) = price {
                listing["price"] = json!(price);
                listing["currency"] = json!("USD");
            }
            change(listing);
        });
        let answer = self.hub.publish(&listing).await;
        assert_eq!(answer.status, 201, "{answer:?}");
        self.look().await;
    }

    /// The market sees what was listed.
    async fn look(&self) {
        let room = self.hub.hub.app.market.as_ref().unwrap();
        room.shelf.catch_up().await.unwrap();
    }

    async fn asks(&self, method: Method, path: &str, headers: &[(&str, &str)], body: &Value) -> Answer {
        let mut request = TestRequest::default().method(method).uri(path).set_json(body);
        for header in headers {
            request = request.append_header(*header);
        }
        self.hub.ask(request).await
    }

    async fn posts(&self, path: &str, headers: &[(&str, &str)], body: &Value) -> Answer {
        self.asks(Method::POST, path, headers, body).await
    }

    async fn reads(&self, path: &str, headers: &[(&str, &str)]) -> Answer {
        let mut request = TestRequest::get().uri(path);
        for header in headers {
            request = request.append_header(*header);
        }
        self.hub.ask(request).await
    }

    async fn calls(&self, id: &str, headers: &[(&str, &str)], input: &Value) -> Answer {
        let body = json!({ "product_id": "shop", "capability_id": id, "input": input });
        self.posts("/ai-market/v2/invoke", headers, &body).await
    }

    /// Asks the operator's door.
    async fn operates(&self, method: Method, path: &str, body: &Value) -> Answer {
        let request = TestRequest::default()
            .method(method.clone())
            .uri(path)
            .insert_header(("authorization", format!("Bearer {OPERATOR}")));
        let request = if method == Method::GET {
            request
        } else {
            request.set_json(body)
        };
        self.hub.ask_operator(request).await
    }

    /// An account with so many dollars: its id and its key.
    async fn account(&self, dollars: &str) -> (String, String) {
        let made = self
            .operates(
                Method::POST,
                "/admin/accounts",
                &json!({ "label": "test", "grant": dollars }),
            )
            .await;
        assert_eq!(made.status, 201, "{made:?}");
        let made = made.json();
        let text = |name: &str| made[name].as_str().unwrap().to_owned();
        (text("account_id"), text("api_key"))
    }

    async fn balance(&self, key: &str) -> f64 {
        let answer = self.reads("/ai-market/v2/account", &[("x-api-key", key)]).await;
        assert_eq!(answer.status, 200, "{answer:?}");
        answer.json()["balance_usd"].as_f64().unwrap()
    }

    /// Whether everything that came in is somewhere.
    async fn balanced(&self) {
        let room = self.hub.hub.app.market.as_ref().unwrap();
        let totals = room.store().totals().await.unwrap();
        assert!(totals.balance(), "{totals:?}");
        assert_eq!(totals.held.micros(), 0, "{totals:?}");
    }
}

/// That an answer is a refusal in the market's form.
fn refused(answer: &Answer, status: u16, code: &str) -> Value {
    let body = answer.json();
    assert_eq!(
        (
            answer.status.as_u16(),
            &body["error"],
            &body["success"],
            &body["protocol_version"]
        ),
        (status, &json!(code), &json!(false), &json!("v2")),
        "{answer:?}"
    );
    assert_eq!(answer.header("content-type"), "application/json");
    body
}
