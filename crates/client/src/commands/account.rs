//! `aip account …`: the agent's account at its hub.

use aip_client::Client;
use aip_client::market::{Account, Amount, ApiKey, KeyMade, Purses};
use serde_json::{Map, Value, json};

use super::Outcome;
use crate::cli::values;
use crate::context::Context;
use crate::failure::Failure;
use crate::output::note;

/// An agent has one account, which the hub's operator fills. Its key lies in a file beside the key file and is shown to no other
/// hub. Further keys, with what each may spend, are for programs of your own.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, clap::Subcommand)]
enum Action {
    /// Make our account, and keep its key
    Create {
        /// What it is called
        #[arg(long, default_value = "")]
        label: String,
        /// What may ever be spent, of all keys together
        #[arg(long, value_name = "USD", value_parser = values::amount)]
        budget: Option<Amount>,
    },
    /// What is in it, and which keys it has
    Show,
    /// What happened to it, oldest first
    Ledger {
        /// Only what comes after this number
        #[arg(long, value_name = "N")]
        after: Option<u64>,
    },
    /// What we earned with what we sell
    Earnings,
    /// Its keys
    Key {
        #[command(subcommand)]
        action: KeyAction,
    },
}

#[derive(Debug, clap::Subcommand)]
enum KeyAction {
    /// Make a key and show it, once
    Add {
        /// What it is called
        label: String,
        /// What it may ever spend; nothing: only what is free
        #[arg(long, value_name = "USD", value_parser = values::amount)]
        budget: Option<Amount>,
        /// Keep it here, in place of the one that is kept, and do not show it
        #[arg(long)]
        keep: bool,
    },
    /// End a key
    Remove {
        /// Its id, as `aip account show` names it
        id: String,
    },
    /// Put a new key in the place of the one that is kept, which ends
    Rotate,
}

pub(crate) async fn run(context: &Context, args: Args) -> Outcome {
    let client = context.client()?;
    let purses = context.purses(&client)?;
    match args.action {
        Action::Create { label, budget } => create(context, (&client, &purses), &label, budget).await,
        Action::Show => show(context, &client).await,
        Action::Ledger { after } => ledger(context, &client, after).await,
        Action::Earnings => earnings(context, &client).await,
        Action::Key { action } => match action {
            KeyAction::Add { label, budget, keep } => {
                let made = client.add_account_key(None, &label, budget).await?;
                shown_or_kept(context, &purses, &made, keep)
            }
            KeyAction::Remove { id } => remove(context, &client, &id).await,
            KeyAction::Rotate => rotate(context, (&client, &purses)).await,
        },
    }
}

async fn create(
    context: &Context,
    (client, purses): (&Client, &Purses),
    label: &str,
    budget: Option<Amount>,
) -> Outcome {
    let path = purses.account_path();
    if purses.account()?.is_some() {
        let path = path.display();
        return Err(Failure::Usage(format!(
            "an account is kept for this hub already, in {path}"
        )));
    }
    let made = client.create_account(label, budget).await?;
    keep(purses, &made.api_key)?;
    let mut value = account_json(&made.account)?;
    if let Some(members) = value.as_object_mut() {
        members.remove("api_key");
        members.insert("key_file".to_owned(), json!(path.display().to_string()));
    }
    let (id, balance) = (&made.account.account_id, made.account.balance_usd);
    let lines = format!(
        "{id} is yours, with {balance} USD\nits key is in {}",
        path.display()
    );
    Ok(context.output.show(&value, &lines)?)
}

async fn show(context: &Context, client: &Client) -> Outcome {
    let account = client.account(None).await?;
    let mut lines = vec![format!(
        "{}: {} USD can be spent",
        account.account_id, account.balance_usd
    )];
    for (name, text) in [
        ("held_usd", "are held for calls under way"),
        ("spent_usd", "were spent"),
        ("budget_usd", "may be spent in all"),
    ] {
        lines.extend(amount_of(&account.more, name).map(|amount| format!("  {amount} USD {text}")));
    }
    let keys = account
        .more
        .get("keys")
        .and_then(Value::as_array)
        .into_iter()
        .flatten();
    lines.extend(
        keys.filter_map(Value::as_object)
            .map(|key| format!("  {}", key_line(key))),
    );
    Ok(context.output.show(&account_json(&account)?, &lines.join("\n"))?)
}

async fn ledger(context: &Context, client: &Client, after: Option<u64>) -> Outcome {
    let mut after = after;
    loop {
        let page = client.account_ledger(None, after).await?;
        for entry in &page.entries {
            context
                .output
                .show(&Value::Object(entry.clone()), &entry_line(entry))?;
        }
        // A hub that names the same place again would be asked for ever.
        match page.next {
            Some(next) if after.is_none_or(|after| next > after) => after = Some(next),
            _ => return Ok(()),
        }
    }
}

async fn earnings(context: &Context, client: &Client) -> Outcome {
    let earned = client.earnings().await?;
    let text = |amount: Amount| amount.to_string();
    let value = json!({
        "currency": "USD", "earned": text(earned.earned), "paid_out": text(earned.paid_out),
        "owed": text(earned.owed), "calls": earned.calls,
    });
    let lines = format!(
        "{} USD for {} calls; {} USD were paid out, {} USD are owed",
        earned.earned, earned.calls, earned.paid_out, earned.owed
    );
    Ok(context.output.show(&value, &lines)?)
}

async fn remove(context: &Context, client: &Client, id: &str) -> Outcome {
    client.remove_account_key(None, id).await?;
    Ok(context.output.show(
        &json!({"key_id": id, "status": "ended"}),
        &format!("{id} has ended"),
    )?)
}

async fn rotate(context: &Context, (client, purses): (&Client, &Purses)) -> Outcome {
    let none = || Failure::Usage("no account is kept for this hub".to_owned());
    let old = purses.account()?.ok_or_else(none)?;
    let made = client.rotate_account_key(&old).await?;
    shown_or_kept(context, purses, &made, true)
}

fn shown_or_kept(context: &Context, purses: &Purses, made: &KeyMade, is_kept: bool) -> Outcome {
    let id = &made.key_id;
    if is_kept {
        keep(purses, &made.api_key)?;
        let path = purses.account_path().display().to_string();
        let value = json!({"key_id": id, "key_file": path});
        return Ok(context.output.show(&value, &format!("{id} is in {path}"))?);
    }
    let value = json!({"key_id": id, "api_key": made.api_key.reveal()});
    let lines = format!(
        "{id}: {}\nthis is the only time that it is shown",
        made.api_key.reveal()
    );
    Ok(context.output.show(&value, &lines)?)
}

/// A key that cannot be kept is shown instead: nobody tells it again.
fn keep(purses: &Purses, key: &ApiKey) -> Outcome {
    purses.keep_account(key).map_err(|error| {
        note(&format!(
            "aip: the key could not be kept; write it down: {}",
            key.reveal()
        ));
        error.into()
    })
}

fn account_json(account: &Account) -> Result<Value, Failure> {
    Ok(serde_json::to_value(account).map_err(std::io::Error::from)?)
}

fn amount_of(members: &Map<String, Value>, name: &str) -> Option<Amount> {
    members
        .get(name)
        .and_then(Value::as_f64)
        .and_then(Amount::from_f64)
}

fn text_of<'a>(members: &'a Map<String, Value>, name: &str) -> &'a str {
    members.get(name).and_then(Value::as_str).unwrap_or_default()
}

fn key_line(key: &Map<String, Value>) -> String {
    let budget = amount_of(key, "budget_usd").map(|budget| format!(" of {budget}"));
    let spent = amount_of(key, "spent_usd").unwrap_or_default();
    let (id, label) = (text_of(key, "key_id"), text_of(key, "label"));
    format!("{id} {label:?}: {spent}{} USD spent", budget.unwrap_or_default())
}

fn entry_line(entry: &Map<String, Value>) -> String {
    let number = entry.get("number").and_then(Value::as_u64).unwrap_or_default();
    let dollars = |name| amount_of(entry, name).unwrap_or_default();
    format!(
        "{number} {} {} {} USD, then {} {}",
        text_of(entry, "at"),
        text_of(entry, "kind"),
        dollars("amount_usd"),
        dollars("balance_usd"),
        text_of(entry, "reference")
    )
}
