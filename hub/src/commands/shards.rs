//! `aip-hub shards`: which stream of NATS holds which part of the mailboxes, and moving parts while hubs run.

use std::fmt::Write as _;
use std::process::ExitCode;
use std::str::FromStr;

use aip_jetstream::limits::MOVE_LINGER;
use aip_jetstream::shards::{self, Conduct, Route, ShardList, Step, StreamShards};
use anyhow::bail;
use clap::Subcommand;
use rand::rngs::SysRng;
use rand_core::{Rng as _, UnwrapErr};

use super::operator::block_on;
use super::output;
use super::source::Source;
use crate::clock;
use crate::config::Overrides;
use crate::stores::nats;

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Tells which stream holds which shards
    List {
        #[command(flatten)]
        source: Source,
    },
    /// Moves shards to another stream, one after the other; run again, it goes on where it was interrupted
    Move {
        #[command(flatten)]
        source: Source,
        /// Which ones, two hexadecimal digits each: 42, or 40-7f, or 00-0f,42
        #[arg(long, value_name = "SHARDS")]
        shards: Shards,
        /// The number of the stream; the next new number makes a stream
        #[arg(long, value_name = "NUMBER")]
        to: u16,
    },
    /// Takes back a move that does not work out, as long as the shard is not in its new stream
    Undo {
        #[command(flatten)]
        source: Source,
    },
}

/// Shards as an operator writes them: each once, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Shards(Vec<u8>);

impl FromStr for Shards {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut shards = Vec::new();
        for part in text.split(',') {
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            let (first, last) = (shard(first)?, shard(last)?);
            if first > last {
                return Err(format!("{part} is the wrong way round"));
            }
            shards.extend(first..=last);
        }
        shards.sort_unstable();
        shards.dedup();
        Ok(Self(shards))
    }
}

fn shard(digits: &str) -> Result<u8, String> {
    let plain = digits.len() == 2 && digits.bytes().all(|digit| digit.is_ascii_hexdigit());
    let shard = u8::from_str_radix(digits, 16).ok().filter(|_| plain);
    shard.ok_or_else(|| format!("{digits:?} is no shard: two hexadecimal digits, 00 to ff"))
}

pub(super) fn run(command: &Command) -> anyhow::Result<ExitCode> {
    match command {
        Command::List { source } => {
            let found = block_on(async { Ok(shards::list(options(source)?.0).await?) })?;
            output::line(shown(&found).trim_end())?;
        }
        Command::Move { source, shards, to } => {
            let (options, holder) = options(source)?;
            let moved =
                block_on(async { Ok(shards::move_shards(options, &shards.0, *to, conduct(holder)).await?) })?;
            output::line(&match moved {
                0 => format!("stream {to} holds these shards already"),
                1 => "1 shard has moved".to_owned(),
                _ => format!("{moved} shards have moved"),
            })?;
        }
        Command::Undo { source } => {
            let (options, holder) = options(source)?;
            let undone = block_on(async { Ok(shards::undo(options, conduct(holder)).await?) })?;
            output::line(&format!(
                "shard {:02x} stays in stream {}",
                undone.shard, undone.from
            ))?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// How the servers are reached, and a number that tells this run from all others.
fn options(source: &Source) -> anyhow::Result<(aip_jetstream::Options, u64)> {
    let settings = source.settings(&Overrides::default())?;
    if settings.engines.mailboxes_url.is_empty() {
        bail!("the mailboxes of this hub are in its data folder, not on NATS (engines.mailboxes_url)");
    }
    let mut rng = UnwrapErr(SysRng);
    let holder = rng.next_u64();
    Ok((nats::options(&settings, "shards", rng.next_u64()), holder))
}

fn conduct(holder: u64) -> Conduct<'static> {
    Conduct {
        holder,
        clock: &clock::wall,
        linger: MOVE_LINGER,
        told: &|route, step| output::note(&told(route, step)),
    }
}

fn told(route: Route, step: Step) -> String {
    let Route { shard, from, to } = route;
    let what = match step {
        Step::Begun => format!("is to move from stream {from} to {to}"),
        Step::Copied(messages) => format!("{messages} messages are copied"),
        Step::Closed => "takes no mail for a moment".to_owned(),
        Step::Switched => format!("belongs to stream {to}"),
        Step::Opened => "takes mail again".to_owned(),
        Step::Done => "has moved".to_owned(),
        Step::Undone => format!("is as it was in stream {from}"),
        _ => "goes on".to_owned(),
    };
    format!("shard {shard:02x} {what}")
}

fn shown(found: &ShardList) -> String {
    let mut text = String::new();
    for stream in &found.streams {
        let StreamShards {
            number,
            name,
            shards,
            messages,
            bytes,
            ..
        } = stream;
        let held = if shards.is_empty() {
            "none".to_owned()
        } else {
            ranges(shards)
        };
        // Writing to a string does not fail.
        let _infallible = writeln!(
            text,
            "stream {number} ({name}): {messages} messages, {bytes} bytes, shards {held}"
        );
    }
    let _infallible = writeln!(text, "a new stream has the number {}", found.next_number);
    if let Some(Route { shard, from, to }) = found.moving {
        let _infallible = writeln!(
            text,
            "shard {shard:02x} is on its way from stream {from} to {to}: if nobody moves it, `shards move` goes on and \
             `shards undo` takes it back"
        );
    }
    text
}

/// `00-0f,42`.
fn ranges(shards: &[u8]) -> String {
    let runs = shards.chunk_by(|one, next| one.checked_add(1) == Some(*next));
    let runs = runs.filter_map(|run| match run {
        [] => None,
        [one] => Some(format!("{one:02x}")),
        [first, .., last] => Some(format!("{first:02x}-{last:02x}")),
    });
    runs.collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shards_are_written_in_hexadecimal() {
        let read = |text: &str| text.parse::<Shards>().map(|shards| shards.0);
        assert_eq!(read("42"), Ok(vec![0x42]));
        assert_eq!(read("fe-ff,00-02,01"), Ok(vec![0, 1, 2, 0xfe, 0xff]));
        assert_eq!(read("00-ff").map(|shards| shards.len()), Ok(256));
        for odd in ["", "4", "042", "4g", "+4", "7f-40", "40-", "40,", "40 41"] {
            assert!(read(odd).is_err(), "{odd:?}");
        }
    }

    #[test]
    fn shards_are_shown_as_they_are_written() {
        for text in ["42", "00-02,fe-ff", "00,02,04-05", "00-ff"] {
            let shards: Shards = text.parse().expect("shards");
            assert_eq!(ranges(&shards.0), text);
        }
    }
}
