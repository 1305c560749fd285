//! What is typed, and what is found for it.

use aip_client::search::Query;
use aip_tests::TestHub;
use aip_tests::clients::agent;
use anyhow::{Result, ensure};

use super::{names, publish, until_found};

/// Codes in every spelling, words of several languages, a typo, a prefix.
#[tokio::test]
async fn what_people_type_finds_what_they_mean() -> Result<()> {
    let hub = TestHub::start();
    let shop = agent(&hub, "shop").await?;
    for (id, name, description) in [
        ("1", "iPhone 15 Pro Max 256GB", "Telephone, titanium"),
        ("2", "iPhone 15 Pro Max 128GB", "Telephone, titanium"),
        ("3", "Sony PS-LX350H", "Belt drive turntable for records"),
        ("4", "Квартиры в Москве", "Аренда и продажа квартир"),
        ("5", "Réservation de restaurants", "Trouver une table ce soir"),
        ("6", "笔记本电脑", "轻薄便携的笔记本电脑"),
        ("7", "sortes.draw@v1", "Draws lots in a way that can be checked"),
        (
            "8",
            "Weather forecast",
            "Rain and temperature for the coming week",
        ),
    ] {
        publish(&shop, id, name, description).await?;
    }
    until_found(&shop, "", |found| found.len() == 8).await?;
    for (text, first) in [
        ("iPhone 15 Pro Max 256GB", "iPhone 15 Pro Max 256GB"),
        ("iphone 128 gb", "iPhone 15 Pro Max 128GB"),
        ("pslx350h", "Sony PS-LX350H"),
        ("PS LX350H", "Sony PS-LX350H"),
        ("ps-lx350", "Sony PS-LX350H"),
        ("квартира", "Квартиры в Москве"),
        ("reserver un restaurant", "Réservation de restaurants"),
        ("笔记本", "笔记本电脑"),
        ("sortes.draw@v1", "sortes.draw@v1"),
        ("wether forcast", "Weather forecast"),
    ] {
        let found = names(&shop, &Query::text(text)).await?;
        ensure!(
            found.first().map(String::as_str) == Some(first),
            "{text:?} finds {found:?}"
        );
    }
    Ok(())
}

/// A newer version replaces the older one; a deletion takes it away; both say so at their own address too.
#[tokio::test]
async fn a_listing_is_replaced_and_taken_away() -> Result<()> {
    let hub = TestHub::start();
    let shop = agent(&hub, "shop").await?;
    let first = publish(&shop, "lamp", "zqlamp red", "A lamp").await?;
    until_found(&shop, "zqlamp", |found| found == ["zqlamp red"]).await?;
    let second = publish(&shop, "lamp", "zqlamp blue", "A lamp").await?;
    ensure!(
        first.id == second.id && second.version > first.version,
        "{first:?} {second:?}"
    );
    until_found(&shop, "zqlamp", |found| found == ["zqlamp blue"]).await?;
    let status = shop.listing_status(&second.id).await?;
    ensure!(format!("{status:?}").contains("lst_"), "{status:?}");
    shop.delete_listing(&second.id).await?;
    until_found(&shop, "zqlamp", <[String]>::is_empty).await?;
    let gone = shop.get_listing(&second.id).await;
    ensure!(gone.is_err(), "{gone:?}");
    Ok(())
}

/// Whoever types the words of one language finds what is written in another: the semantic list at work, offline.
#[tokio::test]
async fn meaning_crosses_languages() -> Result<()> {
    let hub = TestHub::start();
    let shop = agent(&hub, "shop").await?;
    for (id, name, description) in [
        (
            "weather",
            "Weather forecast",
            "Tells whether it will rain tomorrow, for any city",
        ),
        (
            "translate",
            "Translator",
            "Translates documents between languages",
        ),
        ("pizza", "Pizza delivery", "Orders a pizza to your door"),
    ] {
        publish(&shop, id, name, description).await?;
    }
    until_found(&shop, "va-t-il pleuvoir demain", |found| {
        found.first().is_some_and(|name| name == "Weather forecast")
    })
    .await?;
    until_found(&shop, "доставка пиццы", |found| {
        found.first().is_some_and(|name| name == "Pizza delivery")
    })
    .await?;
    Ok(())
}
