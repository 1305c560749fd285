//! `aip send TO [TEXT]`: seals a message and sends it.

use std::io::{IsTerminal, Read};
use std::path::{Path, PathBuf};
use std::time::Duration;

use aip_client::protocol::limits::ENVELOPE_BYTES_MAX;
use aip_client::protocol::name::Did;
use aip_client::{Content, Draft, KIND_DEFAULT};
use serde_json::Value;

use super::Outcome;
use crate::cli::values;
use crate::context::Context;
use crate::failure::Failure;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Who it is for
    #[arg(value_name = "TO", value_parser = values::agent)]
    to: Did,
    /// What to say; without it, and without --file, the standard input is sent
    text: Option<String>,
    /// Send a file; - is the standard input
    #[arg(long, value_name = "FILE", conflicts_with = "text")]
    file: Option<PathBuf>,
    /// The type of the message
    #[arg(long = "type", value_name = "TYPE", default_value = KIND_DEFAULT)]
    kind: String,
    /// The conversation it belongs to
    #[arg(long)]
    thread: Option<String>,
    /// The message that it answers
    #[arg(long, value_name = "ID")]
    reply_to: Option<String>,
    /// How long it is worth delivering, such as 1h
    #[arg(long, value_name = "SPAN", value_parser = values::span)]
    expires: Option<Duration>,
    /// Ask the recipient for a signed receipt; `aip receipts` shows it when it has come
    #[arg(long)]
    receipt: bool,
    /// The media type of what is sent: text/plain by default, application/octet-stream for what is not text
    #[arg(long, value_name = "TYPE")]
    content_type: Option<String>,
    /// How long to try when the hub does not answer; at most 15m
    #[arg(long, value_name = "SPAN", value_parser = values::span, default_value = "2m")]
    retry_for: Duration,
}

pub(crate) async fn run(context: &Context, args: Args) -> Outcome {
    let content = content_of(read(&args)?, args.content_type)?;
    let mut draft = Draft::new(&args.to, content).kind(args.kind);
    if let Some(thread) = args.thread {
        draft = draft.thread(thread);
    }
    if let Some(reply_to) = args.reply_to {
        draft = draft.reply_to(reply_to);
    }
    if let Some(expires) = args.expires {
        draft = draft.expires_in(expires);
    }
    if args.receipt {
        draft = draft.ask_receipt();
    }
    let client = context.client_with(Some(args.retry_for))?;
    let sent = client.send(&draft).await?;
    let value = serde_json::to_value(&sent).map_err(std::io::Error::from)?;
    let status = value.get("status").and_then(Value::as_str).unwrap_or_default();
    let place = sent
        .seq
        .map(|seq| format!(" as number {seq}"))
        .unwrap_or_default();
    let lines = format!("{} {status}{place} for {}", sent.id, args.to.handle());
    Ok(context.output.show(&value, &lines)?)
}

fn read(args: &Args) -> Result<Vec<u8>, Failure> {
    match (&args.text, &args.file) {
        (Some(text), _) => Ok(text.clone().into_bytes()),
        (None, Some(path)) if path != Path::new("-") => {
            let file = std::fs::File::open(path);
            let bytes = file.and_then(read_bounded);
            bytes.map_err(|error| Failure::Other(format!("{}: {error}", path.display())))
        }
        (None, None) if std::io::stdin().is_terminal() => Err(Failure::Usage(
            "what is to be sent? Give a text, --file, or pipe it in".to_owned(),
        )),
        _ => Ok(read_bounded(std::io::stdin().lock())?),
    }
}

/// More than an envelope holds is not read; sealing then says that it is too large.
fn read_bounded(from: impl Read) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    from.take(ENVELOPE_BYTES_MAX as u64 + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Text stays text, character for character; only what is called JSON is read as JSON.
fn content_of(bytes: Vec<u8>, content_type: Option<String>) -> Result<Content, Failure> {
    if let Some(content_type) = content_type
        .as_deref()
        .filter(|content_type| is_json(content_type))
    {
        let value: Result<Value, _> = serde_json::from_slice(&bytes);
        let value = value.map_err(|error| Failure::Usage(format!("this is not {content_type}: {error}")))?;
        return Ok(Content::json_as(content_type, value));
    }
    Ok(match String::from_utf8(bytes) {
        Ok(text) => Content::text_as(content_type.unwrap_or_else(|| "text/plain".to_owned()), text),
        Err(not_text) => {
            let content_type = content_type.unwrap_or_else(|| "application/octet-stream".to_owned());
            Content::bytes(content_type, not_text.into_bytes())
        }
    })
}

fn is_json(content_type: &str) -> bool {
    let essence = content_type.split(';').next().unwrap_or_default().trim();
    essence == "application/json" || essence.ends_with("+json")
}

#[cfg(test)]
mod tests {
    use aip_client::Body;

    use super::*;

    #[test]
    fn only_what_is_called_json_is_read_as_json() {
        let text = br#"{"b": 1, "a": 1.10}"#;
        let plain = content_of(text.to_vec(), None).unwrap();
        assert_eq!(
            (plain.content_type.as_str(), &*plain.to_bytes()),
            ("text/plain", text.as_slice())
        );
        let json = content_of(text.to_vec(), Some("application/ld+json".to_owned())).unwrap();
        assert_eq!(json.as_json().unwrap()["b"], 1);
        assert!(matches!(
            content_of(b"{".to_vec(), Some("application/json".to_owned())),
            Err(Failure::Usage(_))
        ));
    }

    #[test]
    fn what_is_not_text_is_sent_as_bytes() {
        let content = content_of(vec![0xff, 0], None).unwrap();
        assert_eq!(content.content_type, "application/octet-stream");
        assert_eq!(content.body, Body::Bytes(vec![0xff, 0]));
    }
}
