//! One command for one message.

use std::io;
use std::path::Path;
use std::process::{ExitStatus, Stdio};

use aip_client::Incoming;
use tokio::io::AsyncWriteExt;
use tokio::process::{ChildStdin, Command};

use crate::commands::Outcome;
use crate::failure::Failure;

/// What sh ends with when a program cannot be executed, and when there is none.
const NOT_RUN: [i32; 2] = [126, 127];

/// A command line for sh.
#[derive(Debug, Clone, Copy)]
pub(super) struct Handler<'a>(&'a str);

impl<'a> Handler<'a> {
    /// Looks for the program that the command line begins with, as far as that can be told without running it.
    ///
    /// # Errors
    /// [`Failure::ProgramGone`] when it cannot be run.
    pub(super) async fn find(command: &'a str) -> Result<Self, Failure> {
        let Some(program) = program_of(command) else {
            return Ok(Self(command));
        };
        if is_there(program).await? {
            return Ok(Self(command));
        }
        Err(Failure::ProgramGone(format!(
            "--exec: {program} cannot be run: there is no such program, or it is not executable"
        )))
    }

    /// Runs the command; anything but exit code 0 is a failure. The environment holds only header members, never the
    /// command line: what a stranger wrote is not parsed by a shell.
    ///
    /// # Errors
    /// [`Failure::ProgramGone`] when no message can be processed any more.
    pub(super) async fn run(self, message: &Incoming) -> Outcome {
        let mut child = self.command(message).spawn().map_err(no_shell)?;
        let stdin = child.stdin.take();
        let body = message.content.to_bytes();
        let (fed, status) = tokio::join!(feed(stdin, &body), child.wait());
        fed?;
        let status = status?;
        if status.success() {
            return Ok(());
        }
        if status.code().is_some_and(|code| NOT_RUN.contains(&code)) {
            // Gone since the start? A script may as well end like this by itself, for this message only.
            Self::find(self.0).await?;
        }
        Err(Failure::Other(explained(status)))
    }

    fn command(self, message: &Incoming) -> Command {
        let mut command = Command::new("sh");
        command.arg("-c").arg(self.0);
        command
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
            );
        command.stdin(Stdio::piped()).kill_on_drop(true);
        command
    }
}

/// Looks for the program of a command line, as [`Handler::find`]; where it is not there, the command line is wrong.
pub(in crate::commands) async fn find(command: &str) -> Result<(), Failure> {
    match Handler::find(command).await {
        Err(Failure::ProgramGone(why)) => Err(Failure::Usage(why)),
        found => found.map(drop),
    }
}

/// The first word, where sh would take it for a program as it stands: no quotes, no variables, no patterns.
fn program_of(command: &str) -> Option<&str> {
    let command = command.trim_start();
    let is_end = |c: char| c.is_whitespace() || ";|&<>(".contains(c);
    let end = command.find(is_end).unwrap_or(command.len());
    let (word, rest) = command.split_at_checked(end)?;
    let is_plain = |c: char| c.is_alphanumeric() || "/._-+,:@".contains(c);
    // What begins with a bracket, or has one behind it, is a group or a function.
    let is_program = !word.is_empty()
        && !word.starts_with('-')
        && word.chars().all(is_plain)
        && !rest.trim_start().starts_with('(');
    is_program.then_some(word)
}

/// A path is looked at; a name is sh's to find: it may be built in.
async fn is_there(program: &str) -> Result<bool, Failure> {
    if program.contains('/') {
        return Ok(is_executable(Path::new(program)));
    }
    let mut look = Command::new("sh");
    look.args(["-c", "command -v \"$1\"", "sh", program]);
    look.stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    Ok(look.status().await.map_err(no_shell)?.success())
}

#[cfg(unix)]
fn is_executable(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    path.metadata()
        .is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
}

#[cfg(not(unix))]
fn is_executable(path: &Path) -> bool {
    path.is_file()
}

fn no_shell(error: io::Error) -> Failure {
    match error.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::PermissionDenied => {
            Failure::ProgramGone(format!("--exec: sh cannot be run: {error}"))
        }
        _ => Failure::Io(error),
    }
}

fn explained(status: ExitStatus) -> String {
    let why = match status.code() {
        Some(126) => " (something in it cannot be executed)",
        Some(127) => " (a program in it was not found)",
        _ => "",
    };
    format!("the command ended with {status}{why}")
}

/// A command need not read what it is given.
async fn feed(stdin: Option<ChildStdin>, body: &[u8]) -> io::Result<()> {
    let Some(mut stdin) = stdin else { return Ok(()) };
    match stdin.write_all(body).await {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        written => written,
    }
}

/// An environment variable cannot hold a NUL.
fn without_nul(text: &str) -> String {
    text.replace('\0', "\u{fffd}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_plain_first_word_is_taken_for_a_program() {
        for (command, program) in [
            ("cat", "cat"),
            (" ./handle.sh --fast", "./handle.sh"),
            ("jq .body|tee log", "jq"),
            ("cat>>log; echo", "cat"),
            ("set -e\ncat", "set"),
        ] {
            assert_eq!(program_of(command), Some(program), "{command}");
        }
        for command in [
            "",
            "  ",
            "X=1 cat",
            "$HANDLER",
            "\"my handler\"",
            "~/handle",
            "(cat)",
            "{ cat; }",
            "f() { cat; }; f",
            "f () { cat; }; f",
            "# cat",
            "[ -f x ]",
            "<in cat",
            "-c",
            "! cat",
        ] {
            assert_eq!(program_of(command), None, "{command}");
        }
    }

    #[tokio::test]
    async fn what_sh_knows_is_there() {
        for command in [
            "cat",
            "test -f x",
            "if true; then cat; fi",
            "/bin/sh -c cat",
            "$UNKNOWN",
        ] {
            assert!(Handler::find(command).await.is_ok(), "{command}");
        }
        for command in [
            "no-such-program-here --x",
            "./no-such-script",
            "/etc/passwd",
            "/tmp",
        ] {
            let missing = Handler::find(command).await.unwrap_err();
            assert!(matches!(missing, Failure::ProgramGone(_)), "{command}: {missing}");
        }
    }
}
