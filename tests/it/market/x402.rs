//! Paid on a chain: the terms of a 402, a payment that a wallet signs, and a provider that is paid past the hub; with the local
//! facilitator, and with one over HTTP while the hub is killed.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use aip_client::market::{Call, Purse, SignedPayment};
use aip_client::protocol::market::evm::transfer::Transfer;
use aip_client::protocol::market::evm::{EvmKey, Word};
use aip_client::protocol::market::x402::{Requirements, to_header};
use aip_tests::market::{books, call, settings, until_sold};
use aip_tests::provider::{Provider, Reply};
use aip_tests::raw::{Answer, Request};
use anyhow::{Context as _, Result};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value, json};

use super::{Shop, made, refused};

/// Where the provider is paid.
const PAYOUT: &str = "0x209693Bc6afc0C5328bA36FaF03C514EF312287C";
const PRICE: i64 = 250_000;

fn wallet(number: u8) -> EvmKey {
    EvmKey::from_bytes(&[number; 32]).expect("a key")
}

fn decoded(header: &str) -> Value {
    let bytes = STANDARD.decode(header).expect("base64");
    serde_json::from_slice(&bytes).expect("JSON")
}

async fn open(x402: &str) -> Result<Shop> {
    let shop = Shop::open_at(settings(&format!("\n[market_x402]\nenabled = true\n{x402}"))).await?;
    let mut offer = shop.offer("paid@v1", Some("0.25"), &json!({}));
    offer.attributes.insert("payout_address", PAYOUT);
    aip_tests::market::sell(&shop.hub, &shop.seller, &[offer]).await?;
    Ok(shop)
}

async fn local() -> Result<Shop> {
    open("facilitator = \"local\"\nnetwork = \"eip155:31337\"").await
}

fn asked() -> Request {
    call("shop", "paid@v1", &json!({ "n": 1 }))
}

/// What a wallet makes of the terms.
fn signed(terms: &Value, number: u8, nonce: u8) -> String {
    let asked = Requirements::from_json(&terms["accepts"][0]).expect("terms");
    let now = u64::try_from(aip_tests::keyed::now().unix_millis() / 1_000).expect("now");
    let (after, before) = (now - 600, now + asked.timeout_secs);
    let transfer = Transfer {
        from: wallet(number).address(),
        to: asked.pay_to,
        value: Word::from(asked.amount),
        valid_after: Word::from(after),
        valid_before: Word::from(before),
        nonce: Word::from_bytes([nonce; 32]),
    };
    let signature = wallet(number).sign(&transfer.digest(&asked.token()));
    to_header(&json!({
        "x402Version": 2,
        "resource": terms["resource"],
        "accepted": terms["accepts"][0],
        "payload": {
            "signature": signature.to_string(),
            "authorization": {
                "from": transfer.from.to_string(),
                "to": transfer.to.to_string(),
                "value": asked.amount.to_string(),
                "validAfter": after.to_string(),
                "validBefore": before.to_string(),
                "nonce": transfer.nonce.to_string(),
            },
        },
    }))
}

/// The terms of a call that is not paid: the same in the body and in the header.
async fn terms(shop: &Shop) -> Value {
    let answer = shop.ask(&asked()).await;
    let body = refused(&answer, 402, "payment_required");
    let terms = decoded(answer.header("payment-required"));
    assert_eq!(
        (&terms["accepts"], &terms["x402Version"]),
        (&body["accepts"], &json!(2))
    );
    terms
}

async fn pays(shop: &Shop, header: &str) -> Answer {
    shop.ask(&asked().field("PAYMENT-SIGNATURE", header)).await
}

#[tokio::test]
async fn a_buyer_pays_a_provider_on_a_chain() -> Result<()> {
    let shop = local().await?;
    let terms = terms(&shop).await;
    assert_eq!(
        (&terms["accepts"][0]["amount"], &terms["accepts"][0]["payTo"]),
        (&json!("250000"), &json!(PAYOUT))
    );
    let answer = pays(&shop, &signed(&terms, 1, 1)).await;
    let body = made(&answer);
    assert_eq!(body["result"]["echo"], json!({ "n": 1 }));
    let settled = decoded(answer.header("payment-response"));
    assert_eq!((&settled, &settled["success"]), (&body["payment"], &json!(true)));
    assert_eq!(settled["payer"], wallet(1).address().to_string());
    assert!(
        settled["transaction"]
            .as_str()
            .is_some_and(|text| text.starts_with("0x"))
    );
    assert_eq!(body["receipt"]["price_usd"], json!(0.25));
    let verify = Request::post(
        "/ai-market/v2/receipts/verify",
        json!({ "receipt": body["receipt"] }).to_string(),
    );
    let check = shop.ask(&verify).await.json();
    assert_eq!((&check["valid"], &check["kept"]), (&json!(true), &json!(true)));
    // It is nobody's here.
    let earnings = shop.seller.earnings().await?;
    assert_eq!((earnings.owed.to_string(), earnings.calls), ("0".to_owned(), 1));
    let books = books(&shop.hub).await?;
    assert_eq!((books.paid_directly, books.earned, books.held), (PRICE, 0, 0));
    let again = refused(&pays(&shop, &signed(&terms, 1, 1)).await, 402, "payment_invalid");
    assert_eq!(again["reason"], "payment_used");
    assert_eq!(shop.provider.calls().len(), 1);
    let well_known = shop
        .ask(&Request::get("/.well-known/ai-market.json"))
        .await
        .json();
    let rail = &well_known["payment_rails"]["seller_direct"];
    assert_eq!(
        (&rail["enabled"], &rail["network"]),
        (&json!(true), &json!("eip155:31337"))
    );
    assert_eq!(well_known["payment_testnet"], true);
    let manifest = shop.ask(&Request::get("/ai-market/v2/manifest")).await.json();
    assert_eq!(manifest["tools"][0]["payout_address"], PAYOUT);
    Ok(())
}

#[tokio::test]
async fn what_does_not_pay_is_told_before_the_work() -> Result<()> {
    let shop = local().await?;
    shop.sells("unpayable@v1", Some("0.25")).await?;
    let mut dear = shop.offer("dear@v1", Some("101"), &json!({}));
    dear.attributes.insert("payout_address", PAYOUT);
    aip_tests::market::sell(&shop.hub, &shop.seller, &[dear]).await?;
    let terms = terms(&shop).await;
    let mut elsewhere = terms.clone();
    elsewhere["accepts"][0]["payTo"] = json!(wallet(1).address().to_string());
    let body = refused(
        &pays(&shop, &signed(&elsewhere, 1, 1)).await,
        402,
        "payment_invalid",
    );
    assert_eq!(body["reason"], "invalid_payment_requirements");
    let shows = |id: &str, header: String| call("shop", id, &json!({})).field("PAYMENT-SIGNATURE", header);
    let unpayable = shop.ask(&shows("unpayable@v1", signed(&terms, 1, 1))).await;
    assert!(
        refused(&unpayable, 402, "listing_not_sellable")
            .get("accepts")
            .is_none()
    );
    // Everybody has a hundred dollars.
    let dear = refused(
        &shop.ask(&call("shop", "dear@v1", &json!({}))).await,
        402,
        "payment_required",
    );
    let answer = shop.ask(&shows("dear@v1", signed(&dear, 1, 1))).await;
    let body = refused(&answer, 402, "payment_invalid");
    assert_eq!(body["reason"], "insufficient_funds");
    assert_eq!(
        decoded(answer.header("payment-required"))["accepts"],
        body["accepts"]
    );
    assert_eq!(
        (shop.provider.calls().len(), books(&shop.hub).await?.paid_directly),
        (0, 0)
    );
    made(&pays(&shop, &signed(&terms, 1, 1)).await);
    Ok(())
}

#[tokio::test]
async fn the_client_passes_on_what_a_wallet_signed() -> Result<()> {
    let shop = local().await?;
    let buyer = aip_tests::clients::agent(&shop.hub, "buyer").await?;
    let input = Map::from_iter([("n".to_owned(), json!(1))]);
    let call = Call::new("shop", "paid@v1", input);
    let refusal = buyer
        .invoke(&call, &Purse::Nothing)
        .await
        .expect_err("it is not paid");
    let aip_client::Error::Refused(problem) = refusal else {
        panic!("no refusal: {refusal:?}");
    };
    let payment = signed(&Value::Object(problem.members.clone()), 2, 1);
    let purse = Purse::Payment(SignedPayment::new(&payment)?);
    let invoked = buyer.invoke(&call, &purse).await?;
    let check = buyer
        .check_invoked(&call, &invoked)
        .await?
        .context("no receipt")?;
    assert_eq!(check.verdict, aip_client::protocol::market::Verdict::True);
    Ok(())
}

/// Verifies everything, and settles what it is told unless it `waits`; what was settled before it says again.
fn facilitator(
    waits: Arc<AtomicBool>,
) -> impl Fn(&aip_tests::provider::Call) -> Reply + Send + Sync + 'static {
    let asked: Mutex<BTreeMap<String, u32>> = Mutex::default();
    move |call| {
        let order = &call.body["paymentPayload"]["payload"]["authorization"];
        let nonce = order["nonce"].as_str().unwrap_or_default().to_owned();
        let mut asked = asked.lock().expect("no panic");
        let times = asked.entry(nonce.clone()).or_default();
        *times += 1;
        if *times > 1 && waits.load(Ordering::SeqCst) {
            return Reply::Never;
        }
        Reply::Json(
            json!({ "isValid": true, "success": true, "transaction": nonce, "network": "eip155:84532" }),
        )
    }
}

/// While the payment is being made: nobody knows whether it was. After the restart it is asked about, and the call has ended.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hub_that_is_killed_while_a_payment_is_made_loses_nothing() -> Result<()> {
    let waits = Arc::new(AtomicBool::new(true));
    let paying = Provider::answering(facilitator(Arc::clone(&waits))).await;
    let mut shop = open(&format!("facilitator = {:?}", paying.url())).await?;
    let header = signed(&terms(&shop).await, 1, 7);
    let request = asked()
        .field("PAYMENT-SIGNATURE", &header)
        .field("Idempotency-Key", "order-0001");
    let caller = tokio::spawn(super::crash::attempt(shop.hub.url().to_owned(), request.clone()));
    paying.called(2).await;
    tokio::task::block_in_place(|| shop.hub.kill());
    assert!(caller.await?.is_none());
    waits.store(false, Ordering::SeqCst);
    tokio::task::block_in_place(|| shop.hub.restart());
    until_sold(&shop.hub, 1).await;
    let waiting = async {
        loop {
            let answer = shop.ask(&request).await;
            if answer.status == 200 {
                return answer;
            }
            refused(&answer, 409, "idempotency_in_progress");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    let answer = tokio::time::timeout(Duration::from_mins(1), waiting).await?;
    assert_eq!(answer.header("idempotency-replayed"), "true");
    let body = made(&answer);
    assert_eq!(
        (body["receipt"]["price_usd"].as_f64(), body.get("settled")),
        (Some(0.25), None)
    );
    assert_eq!(
        body["payment"]["transaction"],
        Word::from_bytes([7; 32]).to_string()
    );
    assert_eq!(shop.provider.calls().len(), 1, "the work was done once");
    assert_eq!(books(&shop.hub).await?.paid_directly, PRICE);
    Ok(())
}
