//! `aip receipts [ID]`: the recipients' own word that they have what was sent.

use aip_client::{Receipt, ReceiptState};
use serde_json::Value;
use uuid::Uuid;

use super::Outcome;
use crate::context::Context;
use crate::failure::Failure;
use crate::output::note;

/// Receipts come with `aip listen` or `aip inbox --ack`, are checked, and are kept beside the key file.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Only the one for this message; without one, the exit code is 1
    #[arg(value_name = "ID")]
    id: Option<Uuid>,
}

pub(crate) async fn run(context: &Context, args: &Args) -> Outcome {
    let client = context.client()?;
    let mut receipts = client.receipts().await?;
    if let Some(id) = args.id {
        receipts.retain(|receipt| receipt.id == id);
        if receipts.is_empty() {
            return Err(Failure::Other(format!("no receipt for {id} has come")));
        }
    }
    for receipt in &receipts {
        let value: Value = serde_json::to_value(receipt).map_err(std::io::Error::from)?;
        context.output.show(&value, &line(receipt))?;
    }
    if receipts.is_empty() {
        note("no receipt has come");
    }
    Ok(())
}

/// A receipt for people.
pub(super) fn line(receipt: &Receipt) -> String {
    let did = match receipt.state {
        ReceiptState::Delivered => "received",
        ReceiptState::Read => "read",
    };
    let (id, from, at) = (receipt.id, receipt.from.handle(), receipt.at);
    format!("{id} {did} by {from} at {at}")
}
