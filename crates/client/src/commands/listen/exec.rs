//! One command for one message.

use std::process::Stdio;

use aip_client::Incoming;
use tokio::io::AsyncWriteExt;
use tokio::process::{ChildStdin, Command};

use crate::commands::Outcome;
use crate::failure::Failure;

/// Runs the command; anything but exit code 0 is a failure. The environment holds only header members, never the command
/// line: what a stranger wrote is not parsed by a shell.
pub(super) async fn run(command: &str, message: &Incoming) -> Outcome {
    let mut child = Command::new("sh")
        .arg("-c")
        .arg(command)
        .env("AIP_FROM", message.from.as_str())
        .env("AIP_TYPE", &message.kind)
        .env("AIP_ID", message.id.to_string())
        .env("AIP_SEQ", message.seq.to_string())
        .env("AIP_ATTEMPT", message.attempt.to_string())
        .env("AIP_CONTENT_TYPE", without_nul(&message.content.content_type))
        .env(
            "AIP_THREAD",
            without_nul(message.thread.as_deref().unwrap_or_default()),
        )
        .env(
            "AIP_REPLY_TO",
            without_nul(message.reply_to.as_deref().unwrap_or_default()),
        )
        .stdin(Stdio::piped())
        .kill_on_drop(true)
        .spawn()?;
    let stdin = child.stdin.take();
    let body = message.content.to_bytes();
    let (fed, status) = tokio::join!(feed(stdin, &body), child.wait());
    fed?;
    let status = status?;
    if status.success() {
        Ok(())
    } else {
        Err(Failure::Other(format!("the command ended with {status}")))
    }
}

/// A command need not read what it is given.
async fn feed(stdin: Option<ChildStdin>, body: &[u8]) -> std::io::Result<()> {
    let Some(mut stdin) = stdin else { return Ok(()) };
    match stdin.write_all(body).await {
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(()),
        written => written,
    }
}

/// An environment variable cannot hold a NUL.
fn without_nul(text: &str) -> String {
    text.replace('\0', "\u{fffd}")
}
