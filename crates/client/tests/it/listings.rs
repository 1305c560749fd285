//! Publishing, handing in and finding: nothing is published twice, and no answer that was lost leaves a doubt.

use aip_client::protocol::error::ErrorCode;
use aip_client::protocol::json::Json;
use aip_client::protocol::listing::{ListingKind, Offer};
use aip_client::search::Query;
use aip_client::{Client, Error, KeyFile, Proof, ProviderKey, Registration, Rotation};
use futures_util::TryStreamExt as _;
use serde_json::json;

use crate::fake::listings::PROVIDER_KEY;
use crate::fake::{FakeHub, Fault};
use crate::support::{agent, builder};

const LISTINGS: &str = "/api/v1/listings";

fn tea(price: &str) -> Offer {
    let mut tea = Offer::new(ListingKind::Product, "t/1", "Green tea");
    tea.price = Some(price.to_owned());
    tea.currency = Some("EUR".to_owned());
    tea.attributes.insert("grams", Json::Int(100));
    tea
}

fn offers(names: &[&str]) -> Vec<Offer> {
    names
        .iter()
        .map(|name| Offer::new(ListingKind::Product, *name, format!("Tea {name}")))
        .collect()
}

#[tokio::test]
async fn a_listing_is_published_and_read_back_with_its_proof() {
    let hub = FakeHub::start().await;
    let alice = agent(&hub, "alice").await;
    let published = alice.publish_listing(&tea("3.50")).await.unwrap();
    assert_eq!(published.status, "stored");
    let reader = builder(&hub).build().unwrap();
    let held = reader.get_listing(&published.id).await.unwrap();
    assert_eq!((&held.offer, &held.proof), (&tea("3.50"), &Proof::Signed));
    assert_eq!(
        (Some(&held.agent), held.version),
        (alice.did().as_ref(), published.version)
    );
    let found = reader.find_listing("t/1", alice.did().as_ref()).await.unwrap();
    assert_eq!(found.id, published.id);
    let status = reader.listing_status(&published.id).await.unwrap();
    assert_eq!(
        (status.id, &status.facts["indexed"]),
        (published.id, &json!(true))
    );
    let missing = reader.get_listing("lst_none").await.unwrap_err();
    assert!(missing.is_code(ErrorCode::NotFound));
}

#[tokio::test]
async fn a_lost_answer_is_asked_for_with_the_same_bytes() {
    let hub = FakeHub::start().await;
    let alice = agent(&hub, "alice").await;
    let busy = json!({"code": "unavailable", "retry_after_s": 0});
    hub.fail(
        LISTINGS,
        [Fault::LoseAnswer, Fault::Answer(503, busy), Fault::HangUp],
    );
    let published = alice.publish_listing(&tea("3.50")).await.unwrap();
    assert_eq!(published.status, "unchanged", "the first attempt had arrived");
    let bodies = hub.bodies(LISTINGS);
    assert_eq!(bodies.len(), 4);
    assert!(bodies.iter().all(|body| *body == bodies[0]));
}

#[tokio::test]
async fn a_hub_that_has_passed_our_clock_is_overtaken() {
    let hub = FakeHub::start().await;
    let alice = agent(&hub, "alice").await;
    let first = alice.publish_listing(&tea("1")).await.unwrap();
    let ahead = first.version + 1_000_000_000_000;
    hub.state().listings.get_mut(&first.id).unwrap().version = ahead;
    let second = alice.publish_listing(&tea("2")).await.unwrap();
    assert_eq!(second.version, ahead + 1);
    let gone = alice.delete_listing("t/1").await.unwrap();
    assert_eq!((gone.status.as_str(), gone.version), ("deleted", ahead + 2));
    assert!(
        alice
            .delete_listing(&first.id)
            .await
            .unwrap_err()
            .is_code(ErrorCode::NotFound)
    );
}

#[tokio::test]
async fn a_key_that_another_process_replaced_is_read_again() {
    let hub = FakeHub::start().await;
    let folder = tempfile::tempdir().unwrap();
    let file = KeyFile::at(folder.path().join("k"));
    let open = || builder(&hub).key_file(file.clone()).unwrap().build().unwrap();
    open().register("alice", Registration::default()).await.unwrap();
    let stale = open();
    open()
        .rotate(Rotation {
            revoke_old: true,
            rotation_key: false,
        })
        .await
        .unwrap();
    let published = stale.publish_listing(&tea("1")).await.unwrap();
    assert_eq!(published.status, "stored");
    assert_eq!(hub.bodies(LISTINGS).len(), 2);
}

#[tokio::test]
async fn what_no_hub_would_take_is_not_sent() {
    let hub = FakeHub::start().await;
    let alice = agent(&hub, "alice").await;
    let refused = alice.publish_listing(&tea("3,50")).await.unwrap_err();
    assert!(matches!(refused, Error::Invalid(_)), "{refused}");
    let reader = builder(&hub).build().unwrap();
    assert!(matches!(
        reader.publish_listing(&tea("1")).await,
        Err(Error::NoKeys)
    ));
    assert_eq!(hub.count(LISTINGS), 0);
}

#[tokio::test]
async fn importing_twice_changes_nothing() {
    let hub = FakeHub::start().await;
    let alice = agent(&hub, "alice").await;
    let publish = |client: Client, offers: Vec<Offer>| async move {
        let results = client.publish_listings(&offers).await.unwrap();
        results
            .into_iter()
            .map(|result| result.unwrap().status)
            .collect::<Vec<_>>()
    };
    let mut teas = offers(&["a", "b", "c"]);
    assert_eq!(publish(alice.clone(), teas.clone()).await, ["stored"; 3]);
    let before = hub.bodies(LISTINGS).len();
    assert_eq!(publish(alice.clone(), teas.clone()).await, ["unchanged"; 3]);
    assert_eq!(hub.bodies(LISTINGS).len(), before, "nothing was sent");
    teas[1].description = "Now with more leaves.".to_owned();
    assert_eq!(publish(alice, teas).await, ["unchanged", "stored", "unchanged"]);
    assert_eq!(hub.bodies(LISTINGS).len(), before + 1);
}

#[tokio::test]
async fn what_a_provider_handed_in_is_still_signed() {
    let hub = FakeHub::start().await;
    let shop = agent(&hub, "shop").await;
    let key = ProviderKey::new(PROVIDER_KEY).unwrap();
    let teas = offers(&["a"]);
    let row = shop.ingest(&key, &teas).await.unwrap().rows.remove(0);
    let id = row.id.unwrap();
    assert_eq!(shop.get_listing(&id).await.unwrap().proof, Proof::Ingested);
    let [published] = shop.publish_listings(&teas).await.unwrap().try_into().unwrap();
    assert_eq!(published.unwrap().status, "stored");
    assert_eq!(shop.get_listing(&id).await.unwrap().proof, Proof::Signed);
}

#[tokio::test]
async fn a_refused_offer_does_not_stop_the_others() {
    let hub = FakeHub::start().await;
    let alice = agent(&hub, "alice").await;
    let full = json!({"code": "listings_full", "detail": "as scripted"});
    hub.fail(LISTINGS, [Fault::Answer(507, full)]);
    let results = alice.publish_listings(&offers(&["a", "b"])).await.unwrap();
    assert_eq!(results.iter().filter(|result| result.is_ok()).count(), 1);
    let refused = results.into_iter().find_map(Result::err).unwrap();
    assert_eq!(refused.problem().unwrap().code, "listings_full");
}

#[tokio::test]
async fn a_forged_listing_is_not_believed() {
    let hub = FakeHub::start().await;
    let alice = agent(&hub, "alice").await;
    let id = alice.publish_listing(&tea("3.50")).await.unwrap().id;
    hub.state().listings.get_mut(&id).unwrap().json["price"] = json!("0.01");
    let held = builder(&hub).build().unwrap().get_listing(&id).await.unwrap();
    assert!(matches!(held.proof, Proof::Broken(_)), "{:?}", held.proof);
    hub.state().listings.get_mut(&id).unwrap().json["agent"] = json!("nobody");
    let error = builder(&hub).build().unwrap().get_listing(&id).await.unwrap_err();
    assert!(matches!(error, Error::Answer { .. }), "{error}");
}

#[tokio::test]
async fn a_listing_stays_proven_when_its_key_is_replaced() {
    let hub = FakeHub::start().await;
    let alice = agent(&hub, "alice").await;
    let id = alice.publish_listing(&tea("3.50")).await.unwrap().id;
    alice
        .rotate(Rotation {
            revoke_old: true,
            rotation_key: false,
        })
        .await
        .unwrap();
    let held = builder(&hub).build().unwrap().get_listing(&id).await.unwrap();
    assert_eq!(held.proof, Proof::Signed);
}

#[tokio::test]
async fn rows_are_handed_in_with_a_providers_key() {
    let hub = FakeHub::start().await;
    let reader = builder(&hub).build().unwrap();
    let key = ProviderKey::new(PROVIDER_KEY).unwrap();
    let mut rows = offers(&["a", "refuse-me"]);
    rows.extend((0..600).map(|n| Offer::new(ListingKind::Product, n.to_string(), "x")));
    hub.fail("/api/v1/ingest/listings", [Fault::HangUp]);
    let report = reader.ingest(&key, &rows).await.unwrap();
    assert_eq!((report.rows.len(), report.stored, report.refused), (602, 601, 1));
    assert_eq!(
        (report.rows[1].row, report.rows[1].code.as_deref()),
        (2, Some("member_invalid"))
    );
    assert_eq!(report.rows[601].row, 602, "numbers go on over the requests");
    assert_eq!(hub.count("/api/v1/ingest/listings"), 3);
    let head = hub.state().heads.last().cloned().unwrap();
    assert!(
        head.to_lowercase().contains("content-type: application/x-ndjson"),
        "{head}"
    );
    let again = reader.ingest(&key, &rows[..1]).await.unwrap();
    assert_eq!((again.unchanged, again.rows[0].version), (1, Some(1)));
    let gone = reader.withdraw(&key, &["a".to_owned()]).await.unwrap();
    assert_eq!(gone.deleted, 1);
    let unknown = ProviderKey::new("another").unwrap();
    let refused = reader.ingest(&unknown, &rows).await.unwrap_err();
    assert!(refused.is_code(ErrorCode::TokenInvalid) && !refused.to_string().contains("another"));
    assert_eq!(reader.ingest(&key, &[]).await.unwrap().rows.len(), 0);
}

#[tokio::test]
async fn a_search_is_read_page_by_page() {
    let hub = FakeHub::start().await;
    let alice = agent(&hub, "alice").await;
    alice
        .publish_listings(&offers(&["a", "b", "c", "d", "e"]))
        .await
        .unwrap();
    alice.publish_listing(&tea("3.50")).await.unwrap();
    let reader = builder(&hub).build().unwrap();
    hub.fail("/api/v1/search", [Fault::HangUp]);
    let pages: Vec<_> = reader
        .search_pages(Query::text("Tea"))
        .try_collect()
        .await
        .unwrap();
    let names: Vec<&str> = pages
        .iter()
        .flat_map(|page| &page.results)
        .map(|hit| hit.name.as_str())
        .collect();
    assert_eq!(names, ["Tea a", "Tea b", "Tea c", "Tea d", "Tea e"]);
    assert_eq!(
        (pages.len(), pages[0].degraded.as_slice()),
        (3, &["semantic".to_owned()][..])
    );
    let [hit] = reader
        .search(&Query::text("Green"))
        .await
        .unwrap()
        .results
        .try_into()
        .unwrap();
    assert_eq!(
        (hit.price.as_deref(), hit.currency.as_deref()),
        (Some("3.50"), Some("EUR"))
    );
    assert_eq!(hit.agent.handle, format!("alice#{}", hub.domain));
    let invalid = json!({"code": "parameter_invalid", "parameter": "price_max", "detail": "as scripted"});
    hub.fail("/api/v1/search", [Fault::Answer(400, invalid)]);
    let refused = reader.search(&Query::text("x")).await.unwrap_err();
    assert_eq!(refused.problem().unwrap().members["parameter"], "price_max");
}
