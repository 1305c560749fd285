//! The search page in a real browser: with its script, and without.

use aip_tests::clients::agent;
use aip_tests::raw::{Request, ask};
use aip_tests::{Driven, TestHub};
use anyhow::{Result, ensure};

use super::{publish, until_found};

#[tokio::test]
async fn one_types_and_sees_and_copies_a_handle() -> Result<()> {
    let Some(mut browser) = Driven::start().await else {
        return Ok(());
    };
    let hub = TestHub::start();
    let shop = agent(&hub, "shop").await?;
    publish(&shop, "1", "zqpage lamp", "<img src=x onerror=alert(1)>").await?;
    publish(&shop, "2", "zqpage chair", "To sit on").await?;
    until_found(&shop, "zqpage", |found| found.len() == 2).await?;

    browser.open(&format!("{}/search", hub.url())).await;
    browser
        .value("document.querySelector('input[name=q]').focus()")
        .await;
    browser.type_text("zqpage lamp").await;
    // Nobody pressed a button.
    browser
        .until("document.querySelector('ol.cards h2')?.textContent === 'zqpage lamp' && location.search.includes('zqpage')")
        .await;
    ensure!(
        browser
            .value("document.querySelectorAll('ol.cards img').length")
            .await
            == 0,
        "text is text"
    );
    let handle = browser
        .value("document.querySelector('.handle').textContent")
        .await;
    ensure!(handle == format!("shop#{}", hub.domain()), "{handle}");
    browser
        .value("document.querySelector('button.copy').click()")
        .await;
    browser
        .until("['Copied', 'Selected'].includes(document.querySelector('button.copy').textContent)")
        .await;
    // The link leads to who that is.
    let link = browser.value("document.querySelector('p.agent a').href").await;
    let path = link.as_str().unwrap_or_default().replacen(hub.url(), "", 1);
    let resolved = ask(hub.url(), &Request::get(path)).await;
    ensure!(resolved.status == 200, "{link}: {}", resolved.text());
    ensure!(browser.console().is_empty(), "{:?}", browser.console());
    Ok(())
}

/// The same address without any script: the form's own request.
#[tokio::test]
async fn the_page_is_whole_without_scripts() -> Result<()> {
    let hub = TestHub::start();
    let shop = agent(&hub, "shop").await?;
    publish(&shop, "1", "zqplain lamp", "A lamp").await?;
    until_found(&shop, "zqplain", |found| found.len() == 1).await?;
    let page = ask(hub.url(), &Request::get("/search?q=zqplain&kind=&price_min=")).await;
    ensure!(
        page.status == 200 && page.text().contains("<h2>zqplain lamp</h2>"),
        "{}",
        page.text()
    );
    let wrong = ask(hub.url(), &Request::get("/search?price_min=cheap")).await;
    ensure!(
        wrong.status == 400 && wrong.text().contains("role=\"alert\""),
        "{}",
        wrong.text()
    );
    Ok(())
}
