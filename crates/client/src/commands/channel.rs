//! `aip channel …`: payment channels.

use aip_client::market::{Amount, ChannelKey, ChannelState, Purses, Settlement};
use aip_client::{Client, Error};
use serde_json::{Value, json};

use super::Outcome;
use crate::cli::values;
use crate::context::Context;
use crate::failure::Failure;
use crate::output::note;

/// The secret of a channel lies in a file beside the key file; who has it spends what is in the channel. It is never shown to
/// another hub. What is left of a channel goes back to the account that it came from when it is closed, or when its time is over.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, clap::Subcommand)]
enum Action {
    /// Open a channel with so many US dollars, from our account
    Open {
        /// How much, such as 1.00
        #[arg(value_name = "USD", value_parser = values::amount)]
        deposit: Amount,
        /// With the hub's money for trying out, where it gives some
        #[arg(long)]
        demo: bool,
    },
    /// How channels stand: one, or all whose secrets are kept
    Show {
        /// The channel
        id: Option<String>,
    },
    /// Put more into a channel, from where its first money came from
    Topup {
        /// How much, such as 1.00
        #[arg(value_name = "USD", value_parser = values::amount)]
        amount: Amount,
        /// The channel; the only one if none is named
        #[arg(long = "channel", value_name = "ID")]
        id: Option<String>,
    },
    /// End a channel; what is left goes back to its account
    Close {
        /// The channel; the only one if none is named
        id: Option<String>,
    },
}

pub(crate) async fn run(context: &Context, args: Args) -> Outcome {
    let client = context.client_without_keys(None)?;
    let purses = context.purses(&client)?;
    match args.action {
        Action::Open { deposit, demo } => open(context, (&client, &purses), deposit, demo).await,
        Action::Show { id } => show(context, (&client, &purses), id).await,
        Action::Topup { amount, id } => top_up(context, (&client, &purses), amount, id).await,
        Action::Close { id } => close(context, (&client, &purses), id).await,
    }
}

async fn open(
    context: &Context,
    (client, purses): (&Client, &Purses),
    deposit: Amount,
    is_demo: bool,
) -> Outcome {
    purses.require_room()?;
    let account = if is_demo { None } else { purses.account()? };
    if account.is_none() && !is_demo {
        return Err(Failure::Usage(format!(
            "no account is kept for this hub{}: make one with `aip account create`, or try --demo",
            context.key_file_doubt()
        )));
    }
    let opened = client.open_channel(deposit, account.as_ref()).await;
    let opened = opened.map_err(explained)?;
    if let Err(error) = purses.keep_channel(&opened.key) {
        // Nobody tells it again.
        note(&format!(
            "aip: the secret could not be kept; write it down: {}",
            opened.key.reveal()
        ));
        return Err(error.into());
    }
    let path = purses.channel_path(opened.key.id());
    let mut value = state_json(&opened.state)?;
    if let Some(members) = value.as_object_mut() {
        members.insert("secret_file".to_owned(), json!(path.display().to_string()));
    }
    let lines = format!("{}\nits secret is in {}", line(&opened.state), path.display());
    Ok(context.output.show(&value, &lines)?)
}

async fn show(context: &Context, (client, purses): (&Client, &Purses), id: Option<String>) -> Outcome {
    let channels = match id {
        Some(id) => vec![kept(context, purses, (Some(id), "`aip channel show ID`"))?],
        None => purses.channels()?,
    };
    if channels.is_empty() {
        note(&format!(
            "no channel is kept for this hub{}",
            context.key_file_doubt()
        ));
    }
    for key in channels {
        match client.channel(&key).await {
            Ok(state) => context.output.show(&state_json(&state)?, &line(&state))?,
            Err(error) if is_gone(&error) => note(&format!("{}: the hub does not know it", key.id())),
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

async fn top_up(
    context: &Context,
    (client, purses): (&Client, &Purses),
    amount: Amount,
    id: Option<String>,
) -> Outcome {
    let key = kept(context, purses, (id, "`aip channel topup USD --channel ID`"))?;
    let account = purses.account()?;
    let state = client.top_up(&key, amount, account.as_ref()).await;
    let state = state.map_err(explained)?;
    Ok(context.output.show(&state_json(&state)?, &line(&state))?)
}

async fn close(context: &Context, (client, purses): (&Client, &Purses), id: Option<String>) -> Outcome {
    let key = kept(context, purses, (id, "`aip channel close ID`"))?;
    let settlement = client.close_channel(&key).await?;
    purses.forget_channel(key.id())?;
    let value = serde_json::to_value(&settlement).map_err(std::io::Error::from)?;
    Ok(context.output.show(&value, &settled(&settlement))?)
}

/// What became of the money: what came from nowhere goes back nowhere.
fn settled(settlement: &Settlement) -> String {
    let (used, rest) = (settlement.used_usd, settlement.refund_usd);
    let status = settlement.more.get("refund_status").and_then(Value::as_str);
    let goes = if status == Some("none") && rest != Amount::ZERO {
        "of the hub's money for trying out are gone"
    } else {
        "go back"
    };
    format!(
        "{} is closed: {used} USD were spent, {rest} USD {goes}",
        settlement.channel_id
    )
}

/// The channel of this id, or the only one, if its secret is kept. `how` says in which form it is named.
pub(super) fn kept(
    context: &Context,
    purses: &Purses,
    (id, how): (Option<String>, &str),
) -> Result<ChannelKey, Failure> {
    let Some(id) = id else {
        let mut channels = purses.channels()?;
        return match (channels.pop(), channels.len()) {
            (Some(only), 0) => Ok(only),
            (Some(_), _) => Err(Failure::Usage(format!(
                "several channels are kept: name one as {how}; `aip channel show` lists them"
            ))),
            (None, _) => Err(Failure::Usage(format!(
                "no channel is kept for this hub{}; open one with `aip channel open`",
                context.key_file_doubt()
            ))),
        };
    };
    let none = || {
        Failure::Usage(format!(
            "no secret of a channel {id} is kept for this hub{}: it was closed, or not opened with this key file",
            context.key_file_doubt()
        ))
    };
    purses.channel(&id)?.ok_or_else(none)
}

/// A refusal in the words of the command line, where the hub speaks of members and headers.
fn explained(error: Error) -> Failure {
    let Error::Refused(mut problem) = error else {
        return error.into();
    };
    match problem.code.as_str() {
        "payment_required" => {
            let detail = "this hub gives no money for trying out: make an account with `aip account create`, have the \
                          hub's operator put money in, and leave --demo away";
            detail.clone_into(&mut problem.detail);
        }
        "deposit_invalid" => problem.detail = problem.detail.replace("deposit_usd", "the amount"),
        _ => {}
    }
    Error::Refused(problem).into()
}

fn is_gone(error: &Error) -> bool {
    error
        .problem()
        .is_some_and(|problem| problem.code == "channel_not_found")
}

fn state_json(state: &ChannelState) -> Result<Value, Failure> {
    Ok(serde_json::to_value(state).map_err(std::io::Error::from)?)
}

fn line(state: &ChannelState) -> String {
    let until = state.expires_at.as_ref().map(|at| format!(" until {at}"));
    format!(
        "{} is {}: {} USD of {} can be spent{}",
        state.channel_id,
        state.status,
        state.balance_usd,
        state.original_deposit_usd,
        until.unwrap_or_default()
    )
}

#[cfg(test)]
mod tests {
    use aip_client::Problem;

    use super::*;

    #[test]
    fn a_refused_deposit_is_explained_in_flags() {
        let said = |code: &str, detail: &str| {
            explained(Error::Refused(Box::new(Problem::new(code, detail)))).sentence()
        };
        let over = said("deposit_invalid", "deposit_usd is at most 100.");
        assert!(over.ends_with("the amount is at most 100."), "{over}");
        let unfunded = said(
            "payment_required",
            "Open an account (POST /ai-market/v2/accounts).",
        );
        assert!(
            unfunded.contains("aip account create") && !unfunded.contains("POST"),
            "{unfunded}"
        );
    }

    #[test]
    fn money_from_nowhere_goes_back_nowhere() {
        let said = |refund: f64, status: &str| {
            let settlement = json!({
                "channel_id": "ch_1", "used_usd": 0.006, "refund_usd": refund, "refund_status": status,
            });
            settled(&serde_json::from_value(settlement).unwrap())
        };
        assert_eq!(
            said(1.994, "none"),
            "ch_1 is closed: 0.006 USD were spent, 1.994 USD of the hub's money for trying out are gone"
        );
        for (refund, status, says) in [
            (1.994, "executed", "1.994 USD go back"),
            (0.0, "none", "0 USD go back"),
        ] {
            let said = said(refund, status);
            assert!(said.ends_with(says), "{said}");
        }
    }
}
