//! `aip job …`: calls that were begun and are answered later.

use std::time::Duration;

use aip_client::market::{Call, JobKey, JobState, Purses};
use aip_client::{Client, Error};
use serde_json::{Map, Value, json};

use super::invoke::followed::Teller;
use super::{Outcome, invoke};
use crate::cli::values;
use crate::context::Context;
use crate::failure::Failure;
use crate::output::note;

const EXAMPLES: &str = "\
Examples:
  aip invoke shop render@v1 '{\"frames\": 100}' --async --account --max-price 2
  aip job wait 0b7c6c1e-5d0e-4f0e-9d3f-2f1f0c9e7a11
  aip job cancel 0b7c6c1e-5d0e-4f0e-9d3f-2f1f0c9e7a11";

/// What opens a job lies in a file beside the key file, from `aip invoke --async` or `--stream` on until its answer was shown.
/// Hubs keep the answers of jobs for a day.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, clap::Subcommand)]
enum Action {
    /// The jobs whose answers were not shown yet
    List,
    /// How far a job is
    Show {
        /// The job
        id: String,
    },
    /// Wait for the answer of a job, and say what its provider says meanwhile
    Wait {
        /// The job
        id: String,
        /// How long to wait
        #[arg(long, value_name = "SPAN", value_parser = values::span, default_value = "345s")]
        wait: Duration,
    },
    /// End a job: nothing is charged, unless it has ended already
    Cancel {
        /// The job
        id: String,
    },
}

pub(crate) async fn run(context: &Context, args: Args) -> Outcome {
    let client = context.client_without_keys(None)?;
    let purses = context.purses(&client)?;
    match args.action {
        Action::List => list(context, (&client, &purses)).await,
        Action::Show { id } => {
            let state = client.job(&kept(context, &purses, &id)?).await?;
            show(context, &state)
        }
        Action::Wait { id, wait } => answer(context, (&client, &purses), &id, wait).await,
        Action::Cancel { id } => {
            let state = client.cancel_job(&kept(context, &purses, &id)?).await?;
            if !state.is_running() && state.status == "cancelled" {
                purses.forget_job(&id)?;
            }
            show(context, &state)
        }
    }
}

async fn list(context: &Context, (client, purses): (&Client, &Purses)) -> Outcome {
    let jobs = purses.jobs()?;
    if jobs.is_empty() {
        note(&format!(
            "no job is kept for this hub{}",
            context.key_file_doubt()
        ));
    }
    for key in jobs {
        match client.job(&key).await {
            Ok(state) => show(context, &state)?,
            Err(error) if is_gone(&error) => {
                purses.forget_job(key.id())?;
                note(&format!("{}: the hub does not know it any more", key.id()));
            }
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

async fn answer(
    context: &Context,
    (client, purses): (&Client, &Purses),
    id: &str,
    wait: Duration,
) -> Outcome {
    let key = kept(context, purses, id)?;
    let state = client.job(&key).await?;
    let mut teller = Teller::new(context, purses);
    let invoked = match client.wait_job(&key, wait, |event| teller.tell(event)).await {
        Ok(invoked) => invoked,
        Err(error) if error.problem().is_some() => {
            purses.forget_job(id)?;
            return Err(teller.fail(error));
        }
        Err(error) => {
            note(&format!("aip: {}", error.sentence()));
            let late = format!(
                "job {id} had no answer within the time; it goes on: ask again with `aip job wait {id}`"
            );
            return Err(Failure::Other(late));
        }
    };
    teller.finish()?;
    let source_hub = invoked.source_hub.clone();
    let mut call = Call::new(&state.product_id, &state.capability_id, Map::new());
    if let Some(hub) = &source_hub {
        call = call.source_hub(hub);
    }
    let signer = source_hub.as_deref().unwrap_or("the hub");
    invoke::show(context, (client, &call), &invoked, signer).await?;
    Ok(purses.forget_job(id)?)
}

/// The job of this id, if what opens it is kept.
fn kept(context: &Context, purses: &Purses, id: &str) -> Result<JobKey, Failure> {
    let none = || {
        Failure::Usage(format!(
            "nothing that opens a job {id} is kept for this hub{}: its answer was shown, or it was begun with another key file",
            context.key_file_doubt()
        ))
    };
    purses.job(id)?.ok_or_else(none)
}

fn is_gone(error: &Error) -> bool {
    error
        .problem()
        .is_some_and(|problem| problem.code == "job_not_found")
}

fn show(context: &Context, state: &JobState) -> Outcome {
    let answer: Value = state
        .answer
        .as_ref()
        .and_then(|answer| serde_json::from_str(answer.get()).ok())
        .unwrap_or_default();
    let last = state.progress.as_ref();
    let progress = last.map(|word| json!({"number": word.number, "kind": word.kind, "data": word.data}));
    let value = json!({
        "job_id": state.job_id,
        "status": state.status,
        "product_id": state.product_id,
        "capability_id": state.capability_id,
        "created_at": state.created_at,
        "progress": progress,
        "answer_status": state.answer_status,
        "answer": answer,
    });
    Ok(context.output.show(&value, &line(state))?)
}

fn line(state: &JobState) -> String {
    let since = state.created_at.as_ref().map(|at| format!(" since {at}"));
    let last = state.progress.as_ref().filter(|_| state.is_running());
    let last = last.map(|word| format!(", at word {}", word.number));
    format!(
        "{} is {}: {} of {}{}{}",
        state.job_id,
        state.status,
        state.capability_id,
        state.product_id,
        since.unwrap_or_default(),
        last.unwrap_or_default()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_is_one_line() {
        let text = r#"{"job_id": "j1", "status": "running", "product_id": "shop", "capability_id": "render@v1",
            "created_at": "2026-11-30T12:00:00Z", "progress": {"number": 3, "kind": "chunk", "data": "x"}}"#;
        let state: JobState = serde_json::from_str(text).unwrap();
        assert_eq!(
            line(&state),
            "j1 is running: render@v1 of shop since 2026-11-30T12:00:00Z, at word 3"
        );
    }
}
