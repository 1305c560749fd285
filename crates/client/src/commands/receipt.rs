//! `aip receipt …`: the hub's signed word that a call was made and what it cost.

use std::io::Read as _;
use std::path::{Path, PathBuf};

use aip_client::limits::RECEIPT_JSON_BYTES_MAX;
use aip_client::market::Amount;
use aip_client::protocol::market::receipt::{Expected, verify};
use aip_client::protocol::market::signature::parse_key;
use aip_client::protocol::market::{Check, Reason, Value as Exact, Verdict};
use aip_client::protocol::multikey::VerifyingKey;
use aip_client::{Client, Error};
use serde_json::{Value, json};

use super::Outcome;
use crate::cli::values;
use crate::context::Context;
use crate::failure::Failure;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, clap::Subcommand)]
enum Action {
    /// Show a receipt that the hub gave out, letter for letter
    Show {
        /// Its number, such as rcpt_…
        nonce: String,
    },
    /// Check a receipt: exit code 0 if it is genuine, 1 if it is not, or could not be checked
    ///
    /// The signature is checked against the hub's key, never against the one that the receipt names itself; with --signer,
    /// without asking anybody.
    Verify(Box<Verify>),
}

/// What is checked, and against what.
#[derive(Debug, clap::Args)]
struct Verify {
    /// A file that holds one; - is the standard input; or the number of one that the hub gave out
    #[arg(value_name = "FILE")]
    receipt: PathBuf,
    /// The key of the hub that signed it, in base64
    #[arg(long, value_name = "BASE64", value_parser = |text: &str| parse_key(text).map_err(|why| why.to_string()))]
    signer: Option<VerifyingKey>,
    /// The hub that did the work, where it is another one: its key is asked for there
    #[arg(long, value_name = "URL", conflicts_with = "signer")]
    source_hub: Option<String>,
    /// It must be about this capability
    #[arg(long, value_name = "ID")]
    capability: Option<String>,
    /// It must be about this product
    #[arg(long, value_name = "ID")]
    product: Option<String>,
    /// It must be for this price
    #[arg(long, value_name = "USD", value_parser = values::amount)]
    price: Option<Amount>,
}

pub(crate) async fn run(context: &Context, args: Args) -> Outcome {
    match args.action {
        Action::Show { nonce } => show(context, &nonce).await,
        Action::Verify(args) => {
            let expected = Expected {
                capability_id: args.capability.as_deref(),
                product_id: args.product.as_deref(),
                price_micros: args.price.map(Amount::micros),
            };
            let signer = match (args.signer, args.source_hub) {
                (Some(key), _) => Signer::Key(Box::new(key)),
                (None, hub) => Signer::Hub(hub.unwrap_or_else(|| "local".to_owned())),
            };
            check(context, &args.receipt, signer, &expected).await
        }
    }
}

async fn show(context: &Context, nonce: &str) -> Outcome {
    let receipt = context.client_without_keys(None)?.market_receipt(nonce).await?;
    let value: Value = serde_json::from_str(receipt.get()).map_err(std::io::Error::from)?;
    // As it was signed: another spelling of a number is another receipt.
    Ok(context.output.show(&value, receipt.get())?)
}

/// Whose signature it is.
enum Signer {
    Key(Box<VerifyingKey>),
    /// `local`, or the URL of another one.
    Hub(String),
}

async fn check(context: &Context, path: &Path, signer: Signer, expected: &Expected<'_>) -> Outcome {
    let given = read(path)?;
    let check = match (signer, given) {
        (Signer::Key(key), Some(receipt)) => {
            let receipt = Exact::parse(&receipt).map_err(Error::from)?;
            verify(&receipt, &[*key], expected)
        }
        (signer, given) => {
            let client = context.client_without_keys(None)?;
            let receipt = match given {
                Some(receipt) => receipt,
                None => fetched(&client, path).await?,
            };
            match signer {
                Signer::Key(key) => verify(&Exact::parse(&receipt).map_err(Error::from)?, &[*key], expected),
                Signer::Hub(hub) => client.check_receipt_of(&hub, &receipt, expected).await?,
            }
        }
    };
    context.output.show(&check_json(&check), &lines(&check))?;
    match check.verdict {
        Verdict::True => Ok(()),
        Verdict::False(_) => Err(Failure::Other("the receipt is not genuine".to_owned())),
        Verdict::NotChecked(_) => Err(Failure::Other("the receipt was not checked".to_owned())),
    }
}

/// What is no file and looks like a number of a receipt is one.
async fn fetched(client: &Client, path: &Path) -> Result<Vec<u8>, Failure> {
    let nonce = path.to_string_lossy();
    Ok(client.market_receipt(&nonce).await?.get().as_bytes().to_vec())
}

/// `None`: it is the number of a receipt.
fn read(path: &Path) -> Result<Option<Vec<u8>>, Failure> {
    let mut bytes = Vec::new();
    let most = RECEIPT_JSON_BYTES_MAX as u64 + 1;
    let read = if path == Path::new("-") {
        std::io::stdin().lock().take(most).read_to_end(&mut bytes)
    } else {
        match std::fs::File::open(path) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound && is_nonce(path) => return Ok(None),
            opened => opened.and_then(|file| file.take(most).read_to_end(&mut bytes)),
        }
    };
    read.map_err(|error| Failure::Other(format!("{}: {error}", path.display())))?;
    Ok(Some(bytes))
}

fn is_nonce(path: &Path) -> bool {
    let text = path.to_string_lossy();
    ["rcpt_", "blocked_", "vfail_"]
        .iter()
        .any(|prefix| text.starts_with(prefix))
}

/// What came of a check, as JSON: `true`, `false`, or null for what was not checked.
pub(super) fn check_json(check: &Check) -> Value {
    let reason = check.verdict.reason();
    json!({
        "valid": check.verdict.as_bool(),
        "reason": reason.map(Reason::code),
        "detail": reason.map(ToString::to_string),
        "signature_version": check.version,
        "uncovered": check.uncovered,
        "key": check.key.as_ref().map(aip_client::protocol::market::signature::key_text),
    })
}

fn lines(check: &Check) -> String {
    let verdict = match &check.verdict {
        Verdict::True => "genuine: signed by the hub".to_owned(),
        Verdict::False(reason) => format!("NOT genuine: {reason}"),
        Verdict::NotChecked(reason) => format!("not checked: {reason}"),
    };
    if check.verdict.is_true() && !check.uncovered.is_empty() {
        return format!(
            "{verdict}\nnot covered by the signature: {}",
            check.uncovered.join(", ")
        );
    }
    verdict
}
