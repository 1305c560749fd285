//! The whole story with the commands that people type: an agent behind a router sells, another one finds it, pays, and checks
//! what it was given.

use std::path::PathBuf;

use aip_tests::market::{books, settings, until_sold};
use aip_tests::raw::Request;
use aip_tests::{TestHub, binary};
use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use tokio::process::{Child, Command};

/// Somebody with a key file.
pub(super) struct Person<'a> {
    pub(super) hub: &'a TestHub,
    pub(super) key: PathBuf,
}

impl<'a> Person<'a> {
    pub(super) fn new(hub: &'a TestHub, name: &str) -> Result<Self> {
        let folder = hub.folder().join(name);
        std::fs::create_dir_all(&folder)?;
        Ok(Self {
            hub,
            key: folder.join("agent.key"),
        })
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(binary("aip"));
        command
            .args(["--hub", self.hub.url(), "--json", "--key"])
            .arg(&self.key);
        command.args(arguments).kill_on_drop(true);
        command
    }

    /// Types a command that must succeed; what it printed, as JSON: of several lines the last.
    pub(super) async fn types(&self, arguments: &[&str]) -> Result<Value> {
        let output = self.command(arguments).output().await?;
        let said = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "aip {arguments:?}: {said}");
        let printed = String::from_utf8(output.stdout)?;
        let whole = serde_json::from_str(&printed);
        match whole {
            Ok(value) => Ok(value),
            Err(_several) => {
                let last = printed.lines().last().context("nothing was printed")?;
                Ok(serde_json::from_str(last)?)
            }
        }
    }

    /// Types a command that must succeed; what it printed.
    pub(super) async fn prints(&self, arguments: &[&str]) -> Result<String> {
        let output = self.command(arguments).output().await?;
        let said = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "aip {arguments:?}: {said}");
        Ok(String::from_utf8(output.stdout)?)
    }

    /// Types a command that must fail; what it said.
    pub(super) async fn fails(&self, arguments: &[&str]) -> Result<String> {
        let output = self.command(arguments).output().await?;
        ensure!(!output.status.success(), "aip {arguments:?} succeeded");
        Ok(format!(
            "{}{}",
            String::from_utf8_lossy(&output.stdout),
            String::from_utf8_lossy(&output.stderr)
        ))
    }

    pub(super) fn starts(&self, arguments: &[&str]) -> Result<Child> {
        Ok(self.command(arguments).spawn()?)
    }
}

/// As a decimal text or a number: both are amounts.
fn dollars(value: &Value) -> Option<f64> {
    value.as_f64().or_else(|| value.as_str()?.parse().ok())
}

const COLOGNE: &str = "{\"town\": \"Köln\"}";

/// What the shop sells, and the command that does it.
const LISTING: &str = r#"{
    "listing_id": "weather@v1", "kind": "capability", "name": "Current weather", "description": "For any town.",
    "price": "0.02", "currency": "USD", "invoke": { "relay": true },
    "input_schema": { "type": "object", "properties": { "town": { "type": "string" } }, "required": ["town"] },
    "output_schema": { "type": "object", "required": ["celsius"] }
}"#;
const WORK: &str =
    "grep -q Atlantis && { echo 'there is no such town' >&2; exit 1; }; echo '{\"celsius\": 7.5}'";

/// The shop publishes and serves.
async fn opens(shop: &Person<'_>) -> Result<Child> {
    shop.types(&["register", "shop"]).await?;
    let file = shop.hub.folder().join("weather.json");
    std::fs::write(&file, LISTING)?;
    shop.types(&["listing", "publish", &file.display().to_string()])
        .await?;
    until_sold(shop.hub, 1).await;
    shop.starts(&["serve", "--exec", WORK])
}

/// Alice searches until she finds it.
async fn finds(alice: &Person<'_>) -> Result<()> {
    let deadline = tokio::time::Instant::now() + crate::faults::DEADLINE;
    loop {
        let answer = alice
            .types(&["search", "weather town", "--kind", "capability"])
            .await?;
        if answer["results"][0]["name"] == "Current weather" {
            return Ok(());
        }
        ensure!(
            tokio::time::Instant::now() < deadline,
            "the capability is not found"
        );
    }
}

/// Alice makes an account, which the operator fills.
async fn has_money(alice: &Person<'_>) -> Result<()> {
    let account = alice.types(&["account", "create", "--label", "mine"]).await?;
    let id = account["account_id"].as_str().context("no account_id")?;
    let body = json!({ "amount": "1", "reference": "invoice-1" }).to_string();
    let credit = Request::post(format!("/admin/accounts/{id}/credits"), body);
    let credited = alice.hub.operate(credit).await;
    ensure!(credited.status < 300, "{}", credited.text());
    Ok(())
}

/// Alice calls, from `purse`; what came of it.
async fn calls(alice: &Person<'_>, purse: &str) -> Result<Value> {
    let paid = alice
        .types(&[
            "invoke",
            "shop",
            "weather@v1",
            COLOGNE,
            purse,
            "--max-price",
            "0.02",
        ])
        .await?;
    ensure!(paid["result"] == json!({ "celsius": 7.5 }), "{paid}");
    Ok(paid)
}

/// What alice is refused costs nothing, and is said in words that help.
async fn is_refused(alice: &Person<'_>) -> Result<()> {
    for (input, price, says) in [
        (COLOGNE, "0.01", "price_limit_exceeded"),
        ("{}", "0.05", "town"),
        ("{\"town\": \"Atlantis\"}", "0.05", "provider_failed"),
    ] {
        let told = alice
            .fails(&[
                "invoke",
                "shop",
                "weather@v1",
                input,
                "--channel",
                "--max-price",
                price,
            ])
            .await?;
        ensure!(told.contains(says), "{told}");
    }
    Ok(())
}

/// The receipt is checked from a file and by its number; another one, and a forged one, are not taken for it.
async fn checks(alice: &Person<'_>, receipt: &Value) -> Result<()> {
    let file = alice.hub.folder().join("receipt.json");
    let path = file.display().to_string();
    std::fs::write(&file, receipt.to_string())?;
    alice
        .types(&[
            "receipt",
            "verify",
            &path,
            "--capability",
            "weather@v1",
            "--price",
            "0.02",
        ])
        .await?;
    alice
        .types(&[
            "receipt",
            "verify",
            receipt["nonce"].as_str().context("no nonce")?,
        ])
        .await?;
    alice
        .fails(&["receipt", "verify", &path, "--capability", "other@v1"])
        .await?;
    let mut forged = receipt.clone();
    forged["price_usd"] = json!(0.01);
    std::fs::write(&file, forged.to_string())?;
    alice.fails(&["receipt", "verify", &path]).await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_whole_story_of_the_market_with_the_commands() -> Result<()> {
    let hub = TestHub::start_with(settings("fee_bps = 500"));
    let (shop, alice) = (Person::new(&hub, "shop")?, Person::new(&hub, "alice")?);
    alice.types(&["register", "alice"]).await?;
    let mut serving = opens(&shop).await?;
    finds(&alice).await?;
    let told = alice.fails(&["invoke", "shop", "weather@v1", COLOGNE]).await?;
    ensure!(told.contains("payment_required"), "{told}");
    has_money(&alice).await?;
    calls(&alice, "--account").await?;
    let opened = alice.types(&["channel", "open", "0.5"]).await?;
    let paid = calls(&alice, "--channel").await?;
    is_refused(&alice).await?;
    checks(&alice, &paid["receipt"]).await?;
    let channel = opened["channel_id"].as_str().context("no channel_id")?;
    let settled = alice.types(&["channel", "close", channel]).await?;
    ensure!(settled.to_string().contains("0.48"), "{settled}");
    let shown = alice.types(&["account", "show"]).await?;
    ensure!(dollars(&shown["balance_usd"]) == Some(0.96), "{shown}");
    let earned = shop.types(&["account", "earnings"]).await?;
    ensure!(dollars(&earned["earned"]) == Some(0.038), "{earned}");
    serving.kill().await?;
    let books = books(&hub).await?;
    assert_eq!(
        (books.earned, books.fees, books.balances, books.held),
        (38_000, 2_000, 960_000, 0)
    );
    Ok(())
}
