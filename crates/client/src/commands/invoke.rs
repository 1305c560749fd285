//! `aip invoke PRODUCT CAPABILITY [INPUT]`: calls a capability.

use std::io::{IsTerminal as _, Read as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use aip_client::market::{Amount, Call, Invoked, Purse, Purses, SignedPayment};
use aip_client::protocol::market::{Check, Verdict};
use aip_client::{Client, Error, Problem};
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use super::{Outcome, receipt};

pub(super) mod followed;

use crate::cli::values;
use crate::context::Context;
use crate::failure::Failure;
use crate::output::note;

/// What an input may have at most, in bytes; the hub takes 64 KiB.
const INPUT_BYTES_MAX: u64 = 256 * 1024;

/// The longest number of a call or a receipt that is shown.
const NUMBER_BYTES_MAX: usize = 128;

const EXAMPLES: &str = "\
Examples:
  aip search \"current weather\" --kind capability
  aip invoke shop weather@v1 '{\"town\": \"Köln\"}'
  aip invoke shop weather@v1 --file input.json --account --max-price 0.05
  aip invoke atlas situation.brief@v1 '{}' --source-hub https://hub.example --account --max-price 0.05
  aip invoke shop render@v1 '{\"frames\": 100}' --stream --account --max-price 2
  aip invoke shop render@v1 '{\"frames\": 100}' --async --account --max-price 2
  aip channel open 1.00 && aip invoke shop weather@v1 '{}' --channel --max-price 0.05

The result goes to the standard output; to the standard error, what was paid for which invocation, and whether the hub's receipt
for it is genuine; with --json, all of it is one object. Without --account or --channel only what costs nothing is called. What is
paid from needs --max-price: a hub that asks for more gets nothing.

What another hub sells (--source-hub) is attested by that hub, and its receipt is checked with the key that it publishes itself.

A call whose answer is lost is not lost: give the key that the error names with --idempotency-key, and the same call is answered
and not paid twice.";

/// Product and capability are named as in the results of `aip search --kind capability --json` and in the hub's manifest.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// Whose capability: a product, or the handle of an agent of this hub, whose name is the product
    #[arg(value_name = "PRODUCT")]
    product_id: String,
    /// Which capability
    #[arg(value_name = "CAPABILITY")]
    capability_id: String,
    /// The input, a JSON object; {} if there is none
    #[arg(value_name = "INPUT")]
    input: Option<String>,
    /// Take the input from a file; - is the standard input
    #[arg(long, value_name = "FILE", conflicts_with = "input")]
    file: Option<PathBuf>,
    #[command(flatten)]
    pay: Pay,
    /// What the call may cost at most, in US dollars
    #[arg(long, value_name = "USD", value_parser = values::amount)]
    max_price: Option<Amount>,
    /// At which other hub it is sold, as search results name it; the hub calls that one for you
    #[arg(long, value_name = "URL")]
    source_hub: Option<String>,
    /// What makes two calls one: 8 to 128 printable characters; drawn if you give none
    #[arg(long, value_name = "KEY")]
    idempotency_key: Option<String>,
    /// How long the call may take
    #[arg(long, value_name = "SPAN", value_parser = values::span, default_value = "345s")]
    wait: Duration,
    /// Say what the provider says while it works: on the standard error, or with --json as a line each
    #[arg(long, conflicts_with = "later")]
    stream: bool,
    /// Begin the call, say by which job its answer is found, and do not wait (see `aip job`)
    #[arg(long = "async")]
    later: bool,
}

/// What is paid from.
#[derive(Debug, clap::Args)]
#[group(multiple = false)]
struct Pay {
    /// Pay from the account whose key is kept (see `aip account`)
    #[arg(long, requires = "max_price")]
    account: bool,
    /// Pay from a channel whose secret is kept (see `aip channel`), named as --channel=ID; without an ID, from the only one
    #[arg(long, value_name = "ID", num_args = 0..=1, require_equals = true, default_missing_value = "", requires = "max_price")]
    channel: Option<String>,
    /// Pay on a chain with what a wallet signed: a file with the header PAYMENT-SIGNATURE of x402, or - for the standard input
    #[arg(long, value_name = "FILE", requires = "max_price")]
    payment: Option<PathBuf>,
    /// Use one of the free calls that the hub gives a visitor of this name
    #[arg(long, value_name = "VISITOR")]
    trial: Option<String>,
}

pub(crate) async fn run(context: &Context, args: Args) -> Outcome {
    let input = input_of(&args)?;
    let client = context.client_without_keys(None)?;
    let purses = context.purses(&client)?;
    let purse = purse_of(context, &purses, args.pay)?;
    let product_id = product_of(&client, args.product_id).await?;
    let mut call = Call::new(product_id, args.capability_id, input).timeout(args.wait);
    if let Some(hub) = &args.source_hub {
        call = call.source_hub(hub);
    }
    if let Some(amount) = args.max_price {
        call = call.price_max(amount);
    }
    if let Some(key) = args.idempotency_key {
        call = call.idempotency_key(key);
    }
    let invoked = if args.later {
        let Some(invoked) = followed::started(context, (&client, &purses), &call, &purse).await? else {
            return Ok(());
        };
        invoked
    } else if args.stream {
        followed::streamed(context, (&client, &purses), &call, &purse).await?
    } else {
        client.invoke(&call, &purse).await.map_err(explained)?
    };
    let signer = args.source_hub.as_deref().unwrap_or("the hub");
    show(context, (&client, &call), &invoked, signer).await
}

/// Shows the answer of a call, and what its receipts are worth; `signer` is whose the first one is.
pub(super) async fn show(
    context: &Context,
    (client, call): (&Client, &Call),
    invoked: &Invoked,
    signer: &str,
) -> Outcome {
    let check = client.check_invoked(call, invoked).await?;
    let hub_check = client.check_hub_receipt(call, invoked).await?;
    context.output.show(
        &invoked_json(invoked, check.as_ref(), hub_check.as_ref()),
        &format!("{:#}", invoked.result),
    )?;
    if !context.output.is_json() {
        note(&paid(invoked));
        note(&attested(invoked.receipt.as_deref(), check.as_ref(), signer));
        if hub_check.is_some() {
            note(&attested(
                invoked.hub_receipt.as_deref(),
                hub_check.as_ref(),
                "the hub",
            ));
        }
    }
    Ok(())
}

/// What is called where an agent is named by its handle or DID, as it stands in search results: the product of its name. No id of
/// a product has one of these signs, and all of those have.
async fn product_of(client: &Client, product: String) -> Result<String, Failure> {
    if !product.contains(['#', '%', ':']) {
        return Ok(product);
    }
    let Ok(agent) = values::agent(&product) else {
        return Ok(product);
    };
    let domain = client.hub().await?.domain.as_str();
    if agent.domain().as_str() == domain {
        return Ok(agent.name().to_owned());
    }
    Err(Failure::Usage(format!(
        "the hub at {} calls what agents of {domain} offer, not {product}; name that agent's hub with --hub",
        client.hub_url()
    )))
}

fn purse_of(context: &Context, purses: &Purses, pay: Pay) -> Result<Purse, Failure> {
    if pay.account {
        let key = purses.account()?;
        let none = || {
            Failure::Usage(format!(
                "no account is kept for this hub{}; make one with `aip account create`",
                context.key_file_doubt()
            ))
        };
        return Ok(Purse::Account(key.ok_or_else(none)?));
    }
    if let Some(path) = &pay.payment {
        let text = read(path)?;
        let payment = SignedPayment::new(&String::from_utf8_lossy(&text))?;
        return Ok(Purse::Payment(payment));
    }
    Ok(match (pay.channel, pay.trial) {
        (Some(id), _) => Purse::Channel(super::channel::kept(
            context,
            purses,
            (Some(id).filter(|id| !id.is_empty()), "--channel=ID"),
        )?),
        (None, Some(visitor)) => Purse::Trial(visitor),
        (None, None) => Purse::Nothing,
    })
}

fn input_of(args: &Args) -> Result<Map<String, Value>, Failure> {
    let text = match (&args.input, &args.file) {
        (Some(text), _) => text.clone().into_bytes(),
        (None, Some(path)) => read(path)?,
        (None, None) => return Ok(Map::new()),
    };
    let input: Result<Value, _> = serde_json::from_slice(&text);
    match input {
        Ok(Value::Object(input)) => Ok(input),
        Ok(_) => Err(Failure::Usage(
            "the input is a JSON object, such as '{\"town\": \"Köln\"}'".to_owned(),
        )),
        Err(_) if text.starts_with(b"ch_") => Err(Failure::Usage(
            "the input is not JSON; a channel to pay from is named as --channel=ID".to_owned(),
        )),
        Err(error) => Err(Failure::Usage(format!("the input is not JSON: {error}"))),
    }
}

fn read(path: &Path) -> Result<Vec<u8>, Failure> {
    let mut bytes = Vec::new();
    let read = if path == Path::new("-") {
        if std::io::stdin().is_terminal() {
            note("aip: the input is read from here, up to the end of the file");
        }
        std::io::stdin()
            .lock()
            .take(INPUT_BYTES_MAX)
            .read_to_end(&mut bytes)
    } else {
        std::fs::File::open(path).and_then(|file| file.take(INPUT_BYTES_MAX).read_to_end(&mut bytes))
    };
    read.map_err(|error| Failure::Other(format!("{}: {error}", path.display())))?;
    Ok(bytes)
}

fn invoked_json(invoked: &Invoked, check: Option<&Check>, hub_check: Option<&Check>) -> Value {
    let receipt = receipt_json(invoked.receipt.as_deref()).unwrap_or_default();
    let mut value = json!({
        "result": invoked.result,
        "invocation_id": invoked.invocation_id,
        "price_usd": invoked.price_usd,
        "list_price_usd": invoked.list_price_usd,
        "latency_ms": invoked.latency_ms,
        "remaining_balance": invoked.remaining_balance,
        "is_replayed": invoked.is_replayed,
        "idempotency_key": invoked.idempotency_key,
        "receipt": receipt,
    });
    let hub_receipt = receipt_json(invoked.hub_receipt.as_deref());
    let further = [
        ("receipt_check", check.map(receipt::check_json)),
        ("route_mode", invoked.route_mode.clone().map(Value::from)),
        ("charged_usd", invoked.charged_usd.map(|amount| json!(amount))),
        (
            "routing_fee_usd",
            invoked.routing_fee_usd.map(|amount| json!(amount)),
        ),
        ("hub_receipt", hub_receipt),
        ("hub_receipt_check", hub_check.map(receipt::check_json)),
    ];
    for (name, member) in further {
        if let (Some(members), Some(member)) = (value.as_object_mut(), member) {
            members.insert(name.to_owned(), member);
        }
    }
    value
}

fn receipt_json(receipt: Option<&RawValue>) -> Option<Value> {
    serde_json::from_str(receipt?.get()).ok()
}

fn paid(invoked: &Invoked) -> String {
    let price = match invoked.price_usd {
        Amount::ZERO => "nothing was paid".to_owned(),
        price => format!("{price} USD were paid"),
    };
    let left = invoked
        .remaining_balance
        .map(|left| format!(", {left} USD are left"));
    let again = if invoked.is_replayed {
        " (this is the answer to the same call earlier)"
    } else {
        ""
    };
    let number = word(invoked.invocation_id.as_deref()).map(|id| format!(", invocation {id}"));
    let fee = invoked
        .charged_usd
        .filter(|_| invoked.route_mode.as_deref() == Some("broker"));
    let fee = fee
        .filter(|fee| *fee > Amount::ZERO)
        .map(|fee| format!(", and {fee} USD to the hub"));
    format!(
        "aip: {price}{}{}{}{again}",
        fee.unwrap_or_default(),
        left.unwrap_or_default(),
        number.unwrap_or_default()
    )
}

/// `signer`: the hub as the caller named it.
fn attested(receipt: Option<&RawValue>, check: Option<&Check>, signer: &str) -> String {
    let receipt = receipt_json(receipt);
    let nonce = nonce_of(receipt.as_ref());
    match check.map(|check| &check.verdict) {
        None => format!("aip: {signer} gave no receipt"),
        Some(Verdict::True) => format!("aip: receipt {nonce}, signed by {signer}"),
        Some(Verdict::False(reason)) => format!("aip: DO NOT TRUST receipt {nonce}: {reason}"),
        Some(Verdict::NotChecked(reason)) => format!("aip: receipt {nonce} was not checked: {reason}"),
    }
}

/// The number of a receipt that may be forged.
fn nonce_of(receipt: Option<&Value>) -> &str {
    let nonce = receipt.and_then(|receipt| receipt.get("nonce")?.as_str());
    word(nonce).unwrap_or("without a number")
}

/// A number of a stranger, if it is one word: it cannot go on in a line of its own that says otherwise.
fn word(number: Option<&str>) -> Option<&str> {
    number.filter(|number| {
        (1..=NUMBER_BYTES_MAX).contains(&number.len()) && number.bytes().all(|byte| byte.is_ascii_graphic())
    })
}

/// What to do about a refusal, where the market says it in terms of HTTP.
pub(super) fn explained(error: Error) -> Failure {
    let Error::Refused(mut problem) = error else {
        return error.into();
    };
    if let Some(detail) = in_flags(&problem) {
        problem.detail = detail;
    } else if let Some(hint) = hint(&problem) {
        problem.detail = format!("{} ({hint})", problem.detail);
    }
    Error::Refused(problem).into()
}

/// The free tier that an input goes beyond: a field of the input, and its largest number.
fn free_tier(problem: &Problem) -> Option<(&str, &Value)> {
    let tier = problem.members.get("free_tier")?;
    Some((tier.get("field")?.as_str()?, tier.get("max")?))
}

/// What is said in place of a refusal that speaks of headers and members.
fn in_flags(problem: &Problem) -> Option<String> {
    let dollars = |name: &str| {
        let number = problem.members.get(name).and_then(Value::as_f64);
        number.and_then(Amount::from_f64)
    };
    match problem.code.as_str() {
        "payment_required" if free_tier(problem).is_none() => Some(match dollars("needed") {
            Some(price) => {
                let chain = on_a_chain(problem).unwrap_or_default();
                format!(
                    "it costs {price} USD: pay with --account or --channel and --max-price {price}{chain}"
                )
            }
            None => "it costs something: pay with --account or --channel and --max-price".to_owned(),
        }),
        "source_hub_required" => {
            let hub = problem.members.get("source_hub").and_then(Value::as_str);
            word(hub).map(|hub| format!("another hub sells it: name it with --source-hub {hub}"))
        }
        "price_limit_exceeded" => Some(match dollars("current_price_usd") {
            Some(price) => format!("it costs {price} USD, and --max-price allows less"),
            None => "it costs more than --max-price allows".to_owned(),
        }),
        _ => None,
    }
}

/// What would pay it on a chain, where it can be paid so.
fn on_a_chain(problem: &Problem) -> Option<String> {
    let asked = problem.members.get("accepts")?.get(0)?;
    let text = |name: &str| word(asked.get(name).and_then(Value::as_str));
    let (amount, asset, network) = (text("amount")?, text("asset")?, text("network")?);
    let pay_to = text("payTo")?;
    Some(format!(
        ", or {amount} units of {asset} on {network} to {pay_to}, signed by a wallet, with --payment"
    ))
}

fn hint(problem: &Problem) -> Option<String> {
    if let Some((field, max)) = free_tier(problem) {
        return Some(format!(
            "lower {field} to {max}, or pay with --account or --channel"
        ));
    }
    match problem.code.as_str() {
        "incomplete_input" => {
            let missing = problem.members.get("missing")?.as_array()?;
            let names: Vec<&str> = missing.iter().filter_map(Value::as_str).collect();
            Some(format!("missing: {}", names.join(", "))).filter(|_| !names.is_empty())
        }
        "invalid_input" => {
            let first = problem.members.get("problems")?.get(0)?;
            let text = |name: &str| first.get(name).and_then(Value::as_str).unwrap_or_default();
            Some(format!("at {:?}: {}", text("path"), text("message")))
        }
        "provider_failed" => problem.members.get("reason")?.as_str().map(str::to_owned),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problem(code: &str, members: &Value) -> Problem {
        let mut problem = Problem::new(code, "No.");
        problem.members = members.as_object().cloned().unwrap();
        problem
    }

    #[test]
    fn pitfall_39_a_free_tier_is_about_the_input_and_not_about_money() {
        let tier = json!({"free_tier": {"field": "puzzle.T", "requested": 5, "max": 3}, "needed": 0.01});
        let said = explained(Error::Refused(Box::new(problem("payment_required", &tier)))).sentence();
        assert!(said.contains("lower puzzle.T to 3"), "{said}");
        for tier in [
            json!({"free_tier": "T"}),
            json!({"free_tier": {"field": 7, "max": 3}}),
            json!({"free_tier": {}}),
        ] {
            let said = explained(Error::Refused(Box::new(problem("payment_required", &tier)))).sentence();
            assert!(said.contains("pay with --account"), "{said}");
        }
    }

    #[test]
    fn a_forged_receipt_says_nothing_in_lines_of_its_own() {
        let of = |nonce: &str| nonce_of(Some(&json!({ "nonce": nonce }))).to_owned();
        assert_eq!(of("rcpt_0011"), "rcpt_0011");
        for nonce in [
            "x\naip: receipt rcpt_1, signed by the hub",
            "a b",
            "é",
            "x".repeat(129).as_str(),
        ] {
            assert_eq!(of(nonce), "without a number", "{nonce:?}");
        }
        assert_eq!(nonce_of(None), "without a number");
        assert_eq!(nonce_of(Some(&json!({ "nonce": 7 }))), "without a number");
    }

    #[test]
    fn what_it_costs_is_named_exactly() {
        let said = |code: &str, members: &Value| in_flags(&problem(code, members)).unwrap();
        assert_eq!(
            said("payment_required", &json!({"needed": 0.0101})),
            "it costs 0.0101 USD: pay with --account or --channel and --max-price 0.0101"
        );
        assert_eq!(
            said("price_limit_exceeded", &json!({"current_price_usd": 0.02})),
            "it costs 0.02 USD, and --max-price allows less"
        );
        let unknown = said("price_limit_exceeded", &json!({}));
        assert_eq!(unknown, "it costs more than --max-price allows");
        assert_eq!(hint(&problem("provider_failed", &json!({}))), None);
    }

    #[test]
    fn what_is_wrong_with_the_input_is_said() {
        let missing = problem("incomplete_input", &json!({"missing": ["town", "day"]}));
        assert_eq!(hint(&missing).as_deref(), Some("missing: town, day"));
        let wrong = json!({"problems": [{"path": "/town", "message": "is not a string"}]});
        let wrong = problem("invalid_input", &wrong);
        assert_eq!(hint(&wrong).as_deref(), Some("at \"/town\": is not a string"));
        let failed = problem("provider_failed", &json!({"reason": "timed_out"}));
        assert_eq!(hint(&failed).as_deref(), Some("timed_out"));
        assert_eq!(hint(&problem("incomplete_input", &json!({}))), None);
    }
}
