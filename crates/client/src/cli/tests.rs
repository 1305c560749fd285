//! What the command line accepts, and what it refuses.

use clap::{CommandFactory, Parser};

use super::*;

fn parse(line: &str) -> Result<Cli, clap::Error> {
    Cli::try_parse_from(std::iter::once("aip").chain(line.split_whitespace()))
}

#[test]
fn the_command_line_is_consistent() {
    Cli::command().debug_assert();
}

#[test]
fn every_command_of_the_manual_is_understood() {
    for line in [
        "register alice",
        "register alice --invite i-1 --direct https://a.example/aip --passphrase --hub https://h.example",
        "resolve alice#localhost:8080",
        "resolve @alice@example.org --history --json",
        "resolve did:aip:example.org:alice --repin",
        "send bob@example.org hello",
        "send bob@example.org --file - --type a.b --thread t --reply-to r --expires 1h --content-type text/x",
        "--hub http://localhost:1 --key k send bob@example.org hello --retry-for 5m",
        "search",
        "search red kettle --kind product,concept --price-min 1 --price-max 12.50 --currency eur --available --category c",
        "search x --available=false --brand b --lang fr --domain a.example --trust-min 0.5 --attr a=b --attr c=d --limit 5",
        "search x --all --explain --facets --updated-after 2026-11-29T00:00:00Z --json",
        "listing publish f.json --dry-run",
        "listing publish --name n --id i --kind concept --description d --lang en --tag a --tag b --attr a=b --expires 7d",
        "listing publish --name n --price 1 --currency EUR --unavailable",
        "listing import f --format merchant --dry-run --provider-key-file k --currency EUR --lang fr --kind product",
        "listing import - --format csv --decimal-comma --separator ; --retry-for 1m",
        "listing delete i --provider-key-file k",
        "listing show i",
        "listing status i",
        "listing list",
        "listing list alice@example.org",
        "listen",
        "listen --exec cat --json --count 3 --credit 8 --share --come-back",
        "inbox --limit 5 --ack --wait 10s",
        "status 6f8f3f5e-2a52-4e0b-9a5f-6f0c6f1d7c11 --to bob@example.org",
        "rotate --revoke-old --rotation",
        "whoami -vv",
        "dead",
        "dead redrive 7",
        "export backup.key --plain",
        "import backup.key --passphrase",
        "deactivate --yes",
    ] {
        understood(line);
    }
}

#[test]
fn every_command_of_the_market_is_understood() {
    for line in [
        "invoke shop weather@v1",
        "invoke shop weather@v1 {} --account --max-price 0.05 --idempotency-key 12345678 --wait 1m",
        "invoke shop weather@v1 --file - --channel --max-price 1",
        "invoke shop weather@v1 {} --channel=ch_1 --max-price 1 --json",
        "invoke shop weather@v1 --trial visitor-1",
        "invoke shop render@v1 {} --stream",
        "invoke shop render@v1 {} --async --account --max-price 2",
        "job list",
        "job show j1",
        "job wait j1 --wait 10m --json",
        "job cancel j1",
        "channel open 1.00 --demo",
        "channel show",
        "channel show ch_1",
        "channel topup 0.5 --channel ch_1",
        "channel close ch_1",
        "account create --label l --budget 5",
        "account show",
        "account ledger --after 7",
        "account earnings",
        "account key add bot --budget 0 --keep",
        "account key remove key_1",
        "account key rotate",
        "receipt show rcpt_1",
        "receipt verify - --capability c@v1 --product p --price 0.01",
        "--key k receipt verify f --signer 11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo=",
        "serve --exec ./x.sh --capability a@v1 --capability b@v1 --count 3 --share --progress",
    ] {
        understood(line);
    }
}

fn understood(line: &str) {
    if let Err(error) = parse(line) {
        panic!("{line}: {error}");
    }
}

#[test]
fn what_makes_no_sense_is_wrong_usage() {
    for line in [
        "",
        "register",
        "resolve alice",
        "send bob hello",
        "send bob@example.org hello --file f",
        "send bob@example.org hello --expires soon",
        "search x --kind weapon",
        "search x --limit 101",
        "search x --available false x --available=maybe",
        "listing",
        "listing publish",
        "listing publish f --name n",
        "listing publish --name n --price 1",
        "listing publish f --price 1 --currency EUR",
        "listing publish f --id x",
        "listing publish f --kind concept",
        "listing publish f --tag a",
        "listing publish f --unavailable",
        "listing import f --format pdf",
        "listing import f --separator xx",
        "listen --credit 0",
        "listen --credit 9999",
        "inbox --limit 0",
        "status not-an-id",
        "dead redrive x",
        "fly",
    ] {
        let error = parse(line).map(drop).expect_err(line);
        assert_eq!(error.exit_code(), 2, "{line}");
    }
}

#[test]
fn a_channel_is_joined_to_its_option() {
    let said = |line: &str| {
        let error = parse(line).map(drop).expect_err(line);
        hinted(error).render().to_string()
    };
    let apart = said("invoke shop weather@v1 {} --channel ch_1 --max-price 1");
    assert!(apart.contains("--channel=ID"), "{apart}");
    let other = said("invoke shop weather@v1 {} more");
    assert!(!other.contains("--channel=ID"), "{other}");
}

#[test]
fn global_options_stand_anywhere() {
    for line in [
        "--json --hub https://h.example whoami",
        "whoami --json --hub https://h.example",
    ] {
        let cli = parse(line).unwrap();
        assert!(cli.global.json, "{line}");
        assert_eq!(cli.global.hub.as_deref(), Some("https://h.example"), "{line}");
    }
}
