//! `aip serve --exec COMMAND`: sells what a command does, over the relay.

use std::process::Stdio;
use std::sync::Arc;

use aip_client::limits::CREDIT_MAX;
use aip_client::{ListenOptions, OnReplaced, Served, ServedCall};
use serde_json::{Map, Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::process::Command;
use tokio::sync::Notify;

use super::Outcome;
use super::listen::{exec, stop};
use crate::context::Context;
use crate::output::note;

/// What a command may print at most, in bytes: a result must fit into a message.
const RESULT_BYTES_MAX: u64 = 256 * 1024;
/// What of its complaints is kept, in bytes.
const COMPLAINT_BYTES_MAX: u64 = 4 * 1024;
/// What of them a buyer is told, in characters.
const COMPLAINT_CHARS_MAX: usize = 300;

const EXAMPLES: &str = "\
Examples:
  aip listing publish weather.json     with \"kind\": \"capability\", \"price\": \"0.01\", \"currency\": \"USD\", \"invoke\": {\"relay\": true}
  aip serve --exec ./weather.sh

The command gets the input as JSON on its standard input, and prints the result as JSON on its standard output. Exit code 0 is a
result; anything else says that it was not done, with the last line of its standard error for the buyer, and nothing is charged.
AIP_INVOKE_ID names the call, and is the same when it comes again: what was done for it once is not to be done twice.

With --progress, lines that are {\"progress\": …} or {\"chunk\": …} go to whoever follows the call as they come, and the rest is the
result; AIP_PROGRESS is 1 where somebody follows it. A command whose call is cancelled is killed, and nothing is charged.";

/// Calls come from the agent's own hub, in sealed messages: no address, no open port. Other mail of the agent is left in the
/// mailbox; an agent that sells had better have a name of its own.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// Run this with sh for each call; its program must be there from the start. `AIP_INVOKE_ID`, `AIP_PRODUCT_ID`,
    /// `AIP_CAPABILITY_ID` and `AIP_ATTEMPT` tell what is called
    #[arg(long, value_name = "COMMAND")]
    exec: String,
    /// Answer calls of this capability only, and refuse others; may be given several times
    #[arg(long, value_name = "ID")]
    capability: Vec<String>,
    /// Pass on what the command says while it works: lines of its standard output that are {"progress": …} or {"chunk": …}
    #[arg(long)]
    progress: bool,
    /// Stop after so many calls
    #[arg(long, value_name = "N")]
    count: Option<u64>,
    /// Share the mailbox with other servers that do the same
    #[arg(long)]
    share: bool,
}

pub(crate) async fn run(context: &Context, args: Args) -> Outcome {
    exec::find(&args.exec).await?;
    let client = context.client()?;
    let inbox = Arc::new(context.inbox()?);
    let options = ListenOptions {
        credit: CREDIT_MAX,
        share: args.share,
        on_replaced: OnReplaced::Stop,
        ..ListenOptions::default()
    };
    let mut stopped = stop::on_signal()?;
    let mut listener = client.listen(inbox, options);
    let is_done = Notify::new();
    let mut left = args.count.unwrap_or(u64::MAX);
    let told = |served: &Served| {
        tell(context, served);
        if matches!(served, Served::Answered(_) | Served::Refused(..)) {
            left = left.saturating_sub(1);
        }
        if left == 0 {
            is_done.notify_one();
        }
    };
    let until = async {
        tokio::select! {
            () = stopped.wait() => {}
            () = is_done.notified() => {}
        }
    };
    let handler = |call| work(&args, call);
    let outcome = client.serve(&mut listener, handler, told, until).await;
    listener.close().await;
    Ok(outcome?)
}

/// Runs the command for a call.
async fn work(args: &Args, call: ServedCall) -> Result<Value, String> {
    if !args.capability.is_empty() && !args.capability.contains(&call.capability_id) {
        return Err("this capability is not served now".to_owned());
    }
    match run_command(&args.exec, &call, args.progress).await {
        Ok(outcome) => outcome,
        Err(error) => {
            note(&format!("aip: call {}: {error}", call.id));
            Err("the provider's program cannot be run".to_owned())
        }
    }
}

/// With `passes_on` what it says while it works goes to whoever follows the call.
async fn run_command(
    line: &str,
    call: &ServedCall,
    passes_on: bool,
) -> std::io::Result<Result<Value, String>> {
    let mut command = Command::new("sh");
    command.arg("-c").arg(line);
    command
        .env("AIP_INVOKE_ID", call.id.to_string())
        .env("AIP_PRODUCT_ID", call.product_id.replace('\0', ""))
        .env("AIP_CAPABILITY_ID", call.capability_id.replace('\0', ""))
        .env("AIP_ATTEMPT", call.attempt.to_string());
    if passes_on && call.progress.is_followed() {
        command.env("AIP_PROGRESS", "1");
    }
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true);
    let mut child = command.spawn()?;
    let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    let input = call.input.to_string();
    let feed = async {
        if let Some(mut stdin) = stdin {
            // A command need not read what it is given.
            drop(stdin.write_all(input.as_bytes()).await);
        }
    };
    let (_fed, printed, complaint, status) = tokio::join!(
        feed,
        printed(stdout, passes_on.then_some(call)),
        read(stderr, COMPLAINT_BYTES_MAX),
        child.wait()
    );
    let (printed, complaint) = (printed?, complaint?);
    let complaint = String::from_utf8_lossy(&complaint);
    if !complaint.trim().is_empty() {
        note(complaint.trim_end());
    }
    let status = status?;
    if !status.success() {
        return Ok(Err(
            said(&complaint).unwrap_or_else(|| "the provider could not do it".to_owned())
        ));
    }
    let result = serde_json::from_slice(&printed);
    Ok(result.map_err(|error| {
        note(&format!(
            "aip: call {}: what the command printed is not JSON: {error}",
            call.id
        ));
        "the provider's program gave no result".to_owned()
    }))
}

/// What a command prints. Of a call of which it may say how far it is, the lines that do go on as they come.
async fn printed(
    from: Option<impl tokio::io::AsyncRead + Unpin>,
    told: Option<&ServedCall>,
) -> std::io::Result<Vec<u8>> {
    let Some(call) = told else {
        return read(from, RESULT_BYTES_MAX).await;
    };
    let Some(from) = from else {
        return Ok(Vec::new());
    };
    let (mut from, mut kept, mut line) = (BufReader::new(from), Vec::new(), Vec::new());
    loop {
        line.clear();
        let mut next = (&mut from).take(RESULT_BYTES_MAX);
        if next.read_until(b'\n', &mut line).await? == 0 {
            return Ok(kept);
        }
        match word(&line) {
            Some(("progress", data)) => call.progress.progress(data).await,
            Some((_, data)) => call.progress.chunk(data).await,
            // One byte more than is taken is too much.
            None if kept.len() as u64 <= RESULT_BYTES_MAX => kept.extend_from_slice(&line),
            None => {}
        }
    }
}

/// `{"progress": …}` or `{"chunk": …}`, and nothing beside it.
fn word(line: &[u8]) -> Option<(&'static str, Value)> {
    if !line.trim_ascii_start().starts_with(b"{") {
        return None;
    }
    let mut members: Map<String, Value> = serde_json::from_slice(line).ok()?;
    if members.len() != 1 {
        return None;
    }
    ["progress", "chunk"]
        .into_iter()
        .find_map(|kind| members.remove(kind).map(|data| (kind, data)))
}

/// All of it is read, so that the command is never stuck; so much is kept.
async fn read(from: Option<impl tokio::io::AsyncRead + Unpin>, bytes_max: u64) -> std::io::Result<Vec<u8>> {
    let mut kept = Vec::new();
    let Some(mut from) = from else {
        return Ok(kept);
    };
    (&mut from).take(bytes_max).read_to_end(&mut kept).await?;
    tokio::io::copy(&mut from, &mut tokio::io::sink()).await?;
    Ok(kept)
}

/// The last line that says something.
fn said(complaint: &str) -> Option<String> {
    let line = complaint
        .lines()
        .rev()
        .map(str::trim)
        .find(|line| !line.is_empty())?;
    Some(line.chars().take(COMPLAINT_CHARS_MAX).collect())
}

/// Says what became of a message. Who has closed the standard output does not want to know.
fn tell(context: &Context, served: &Served) {
    let call_json = |call: &ServedCall, status: &str, why: Option<&str>| {
        json!({
            "id": call.id.to_string(), "product_id": call.product_id, "capability_id": call.capability_id,
            "attempt": call.attempt, "status": status, "error": why,
        })
    };
    let (value, line) = match served {
        Served::Answered(call) => (
            call_json(call, "answered", None),
            format!("{} {} answered", call.id, call.capability_id),
        ),
        Served::Refused(call, why) => (
            call_json(call, "refused", Some(why)),
            format!("{} {} refused: {why}", call.id, call.capability_id),
        ),
        Served::Late(call) => (
            call_json(call, "late", None),
            format!(
                "{} {} came too late: nobody waits for it (is this machine's clock right?)",
                call.id, call.capability_id
            ),
        ),
        Served::Cancelled(call) => (
            call_json(call, "cancelled", None),
            format!("{} {} was cancelled by its buyer", call.id, call.capability_id),
        ),
        Served::Unanswered(call, error) => (
            call_json(call, "unanswered", Some(&error.sentence())),
            format!(
                "{} {} could not be answered: {}",
                call.id,
                call.capability_id,
                error.sentence()
            ),
        ),
        Served::Rejected(message) => {
            note(&format!(
                "aip: a call that is none, from {}, went to the dead letters",
                message.from.handle()
            ));
            return;
        }
        Served::Left(message) => {
            let (seq, from) = (message.seq, message.from.handle());
            note(&format!(
                "aip: message {seq} from {from} is no call; it stays in the mailbox"
            ));
            return;
        }
        _ => return,
    };
    drop(context.output.show(&value, &line));
}

#[cfg(test)]
mod tests {
    use super::*;
    use aip_client::ServedCall;

    #[test]
    fn the_buyer_is_told_the_last_line() {
        assert_eq!(
            said("warming up\n\n  out of tea \n\n").as_deref(),
            Some("out of tea")
        );
        assert_eq!(said(" \n"), None);
        assert_eq!(said(&"x".repeat(1_000)).unwrap().len(), COMPLAINT_CHARS_MAX);
    }

    fn call(input: Value) -> ServedCall {
        let id = uuid::Uuid::from_u128(0x0011_2233_4455_4677_8899_aabb_ccdd_eeff);
        ServedCall::new(id, "shop", "echo@v1", input)
    }

    /// Nobody follows these calls: what is said goes nowhere, and is no part of the result.
    #[tokio::test]
    async fn what_a_command_says_while_it_works_is_not_its_result() {
        let made = |line: &'static str| async move {
            run_command(line, &call(json!({"a": 1})), true).await.unwrap()
        };
        let says = r#"echo '{"progress": {"done": 0.5}}'; echo '{'; echo '{"chunk": "x"}'; echo '"b": 2}'"#;
        assert_eq!(made(says).await, Ok(json!({"b": 2})));
        let not_alone = r#"echo '{"progress": 1, "b": 2}'"#;
        assert_eq!(made(not_alone).await, Ok(json!({"progress": 1, "b": 2})));
        assert_eq!(
            made("cat; printf '%s' \"$AIP_PROGRESS\"").await,
            Ok(json!({"a": 1}))
        );
        assert_eq!(
            made("yes | head -c 3000000").await,
            Err("the provider's program gave no result".to_owned())
        );
    }

    #[tokio::test]
    async fn a_command_makes_a_result_of_the_input_or_says_why_not() {
        let made = |line: &'static str| async move {
            run_command(line, &call(json!({"a": 1.5})), false).await.unwrap()
        };
        assert_eq!(made("cat").await, Ok(json!({"a": 1.5})));
        assert_eq!(
            made("echo \"\\\"$AIP_CAPABILITY_ID $AIP_INVOKE_ID\\\"\"").await,
            Ok(json!("echo@v1 00112233-4455-4677-8899-aabbccddeeff"))
        );
        assert_eq!(made("echo no tea >&2; exit 3").await, Err("no tea".to_owned()));
        assert_eq!(
            made("exit 1").await,
            Err("the provider could not do it".to_owned())
        );
        assert_eq!(
            made("echo hello").await,
            Err("the provider's program gave no result".to_owned())
        );
        assert_eq!(
            made("yes | head -c 3000000").await,
            Err("the provider's program gave no result".to_owned())
        );
    }
}
