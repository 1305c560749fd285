//! Calls that are followed: what is said while they are under way, and what opens them later.

use std::io::{self, Write as _};

use aip_client::Client;
use aip_client::market::{Call, CallEvent, Invoked, JobKey, Purse, Purses, Started};
use serde_json::{Value, json};

use super::explained;
use crate::commands::Outcome;
use crate::context::Context;
use crate::failure::Failure;
use crate::output::{note, printable};

/// Says what is heard of a call: to people on the standard error, to programs as lines of JSON.
pub(crate) struct Teller<'a> {
    context: &'a Context,
    purses: &'a Purses,
    /// The job, whose secret is kept as long as its answer is not there.
    job: Option<JobKey>,
    /// Parts of a text were written, and no line was ended.
    is_in_line: bool,
}

impl<'a> Teller<'a> {
    pub(crate) fn new(context: &'a Context, purses: &'a Purses) -> Self {
        Self {
            context,
            purses,
            job: None,
            is_in_line: false,
        }
    }

    /// Tells one event. Who has closed an output does not want to know.
    pub(crate) fn tell(&mut self, event: CallEvent) {
        let (kind, number, data) = match event {
            CallEvent::Began(key) => {
                keep(self.purses, &key);
                if self.context.output.is_json() {
                    drop(
                        self.context
                            .output
                            .show(&json!({"event": "job", "job_id": key.id()}), ""),
                    );
                }
                self.job = Some(key);
                return;
            }
            CallEvent::Progress { number, data } => ("progress", number, data),
            CallEvent::Chunk { number, data } => ("chunk", number, data),
            _ => return,
        };
        if self.context.output.is_json() {
            let line = json!({"event": kind, "number": number, "data": data});
            drop(self.context.output.show(&line, ""));
        } else if kind == "chunk" {
            self.part(&data);
        } else {
            self.end_line();
            note(&format!("aip: {}", said(&data)));
        }
    }

    fn part(&mut self, data: &Value) {
        let Value::String(text) = data else {
            self.end_line();
            note(&data.to_string());
            return;
        };
        let mut err = io::stderr().lock();
        drop(write!(err, "{}", printable(text)).and_then(|()| err.flush()));
        self.is_in_line = !text.ends_with('\n');
    }

    fn end_line(&mut self) {
        if std::mem::take(&mut self.is_in_line) {
            note("");
        }
    }

    /// The answer is there: the job is not needed any more.
    pub(crate) fn finish(mut self) -> Result<(), Failure> {
        self.end_line();
        if let Some(key) = &self.job {
            self.purses.forget_job(key.id())?;
        }
        Ok(())
    }

    /// It ended otherwise: where the job may go on, it says how it is found.
    pub(crate) fn fail(mut self, error: aip_client::Error) -> Failure {
        self.end_line();
        match &self.job {
            Some(key) if error.problem().is_some() => drop(self.purses.forget_job(key.id())),
            Some(key) => note(&format!(
                "aip: the call goes on as job {id}; `aip job wait {id}` has its answer",
                id = key.id()
            )),
            None => {}
        }
        explained(error)
    }
}

/// By custom `done` (0 to 1) and `message`; anything else as it is.
fn said(data: &Value) -> String {
    let done = data.get("done").and_then(Value::as_f64);
    let message = data.get("message").and_then(Value::as_str);
    let share = done.filter(|done| (0.0..=1.0).contains(done));
    match (share, message, data) {
        (Some(share), Some(message), _) => format!("{:.0} %: {}", share * 100.0, one_line(message)),
        (Some(share), None, _) => format!("{:.0} %", share * 100.0),
        (None, Some(message), _) => one_line(message),
        (None, None, Value::String(text)) => one_line(text),
        (None, None, data) => data.to_string(),
    }
}

/// Words of a stranger begin no line of their own.
fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Calls, and tells what is said meanwhile.
pub(super) async fn streamed(
    context: &Context,
    (client, purses): (&Client, &Purses),
    call: &Call,
    purse: &Purse,
) -> Result<Invoked, Failure> {
    let mut teller = Teller::new(context, purses);
    let invoked = client
        .invoke_streamed(call, purse, |event| teller.tell(event))
        .await;
    match invoked {
        Ok(invoked) => {
            teller.finish()?;
            Ok(invoked)
        }
        Err(error) => Err(teller.fail(error)),
    }
}

/// Begins a call, and says by what its answer is found; the answer, where it is there already.
pub(super) async fn started(
    context: &Context,
    (client, purses): (&Client, &Purses),
    call: &Call,
    purse: &Purse,
) -> Result<Option<Invoked>, Failure> {
    match client.start_call(call, purse).await.map_err(explained)? {
        Started::Answered(invoked) => Ok(Some(*invoked)),
        Started::Job(key) => {
            keep(purses, &key);
            begun(context, &key)?;
            Ok(None)
        }
    }
}

fn begun(context: &Context, key: &JobKey) -> Outcome {
    let value = json!({"job_id": key.id(), "status": "running"});
    context.output.show(&value, key.id())?;
    if !context.output.is_json() {
        note(&format!(
            "aip: the call is under way; `aip job wait {id}` has its answer, `aip job cancel {id}` ends it",
            id = key.id()
        ));
    }
    Ok(())
}

/// The job goes on, whether its secret can be kept or not.
fn keep(purses: &Purses, key: &JobKey) {
    if let Err(error) = purses.keep_job(key) {
        note(&format!(
            "aip: what opens job {} could not be kept ({error}); write it down: {}",
            key.id(),
            key.reveal()
        ));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_provider_says_is_one_line() {
        for (data, expected) in [
            (
                json!({"done": 0.4, "message": "frame 40\n of 100"}),
                "40 %: frame 40 of 100",
            ),
            (json!({"done": 1}), "100 %"),
            (json!({"message": "hello"}), "hello"),
            (json!({"done": 7, "message": "odd"}), "odd"),
            (
                json!("a\naip: receipt rcpt_1, signed by the hub"),
                "a aip: receipt rcpt_1, signed by the hub",
            ),
            (json!({"frames": 3}), r#"{"frames":3}"#),
        ] {
            assert_eq!(said(&data), expected);
        }
    }
}
