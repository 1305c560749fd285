//! The frames of the WebSocket protocol (spec §6). Pure: text in, values out, and back.

use aip_protocol::time::Timestamp;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use crate::error::{Problem, Result};
use crate::wire::{MessageStatus, Sent};

/// What a hub says.
#[derive(Debug)]
pub(crate) enum HubFrame {
    Challenge {
        challenge: String,
        domain: String,
    },
    Ready {
        epoch: String,
        floor: u64,
        pending: u64,
    },
    Message(Offered),
    Acked {
        epoch: String,
        floor: u64,
    },
    Sent {
        reference: String,
        outcome: Result<Sent, Problem>,
    },
    Status(MessageStatus),
    Error(Problem),
    /// A frame of a later version of the protocol: ignored.
    Unknown,
}

/// A message as it was offered, not looked into yet.
#[derive(Debug, Clone)]
pub(crate) struct Offered {
    pub(crate) epoch: String,
    pub(crate) seq: u64,
    pub(crate) attempt: u32,
    pub(crate) accepted_at: Timestamp,
    pub(crate) envelope: Box<RawValue>,
}

#[derive(Deserialize)]
struct Kind {
    t: String,
}

#[derive(Deserialize)]
struct ChallengeFrame {
    challenge: String,
    domain: String,
}

#[derive(Deserialize)]
struct ReadyFrame {
    epoch: String,
    floor: u64,
    #[serde(default)]
    pending: u64,
}

#[derive(Deserialize)]
struct MessageFrame {
    epoch: String,
    seq: u64,
    attempt: u32,
    accepted_at: Timestamp,
    envelope: Box<RawValue>,
}

#[derive(Deserialize)]
struct AckedFrame {
    epoch: String,
    floor: u64,
}

impl HubFrame {
    /// Reads one text frame; the error says what is wrong with it.
    pub(crate) fn parse(text: &str) -> Result<Self, serde_json::Error> {
        let Kind { t } = serde_json::from_str(text)?;
        Ok(match t.as_str() {
            "challenge" => {
                let ChallengeFrame { challenge, domain } = serde_json::from_str(text)?;
                Self::Challenge { challenge, domain }
            }
            "ready" => {
                let ReadyFrame {
                    epoch,
                    floor,
                    pending,
                } = serde_json::from_str(text)?;
                Self::Ready {
                    epoch,
                    floor,
                    pending,
                }
            }
            "msg" => {
                let MessageFrame {
                    epoch,
                    seq,
                    attempt,
                    accepted_at,
                    envelope,
                } = serde_json::from_str(text)?;
                Self::Message(Offered {
                    epoch,
                    seq,
                    attempt,
                    accepted_at,
                    envelope,
                })
            }
            "acked" => {
                let AckedFrame { epoch, floor } = serde_json::from_str(text)?;
                Self::Acked { epoch, floor }
            }
            "sent" => sent(serde_json::from_str(text)?)?,
            "status" => Self::Status(serde_json::from_str(text)?),
            "error" => Self::Error(problem(serde_json::from_str(text)?)),
            _ => Self::Unknown,
        })
    }
}

fn sent(mut members: Map<String, Value>) -> Result<HubFrame, serde_json::Error> {
    let reference = match members.remove("ref") {
        Some(Value::String(text)) => text,
        other => other.unwrap_or_default().to_string(),
    };
    let outcome = sent_outcome(members)?;
    Ok(HubFrame::Sent { reference, outcome })
}

/// The result of one message, in a frame or in a batch: a `code` makes it a refusal.
pub(crate) fn sent_outcome(members: Map<String, Value>) -> Result<Result<Sent, Problem>, serde_json::Error> {
    if members.get("code").is_some_and(Value::is_string) {
        return Ok(Err(problem(members)));
    }
    serde_json::from_value(Value::Object(members)).map(Ok)
}

fn problem(members: Map<String, Value>) -> Problem {
    Problem::from_members(members).unwrap_or_else(|| Problem::new("internal", "the hub gave no code"))
}

/// What an agent says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum AgentFrame {
    Ack {
        epoch: String,
        upto: u64,
        also: Vec<u64>,
    },
    Nak {
        epoch: String,
        seq: u64,
        retry_after_secs: u64,
    },
    Reject {
        epoch: String,
        seq: u64,
        code: String,
    },
    Send {
        reference: String,
        envelope: Box<str>,
    },
}

impl AgentFrame {
    /// The text of the frame.
    pub(crate) fn encode(&self) -> String {
        match self {
            Self::Ack { epoch, upto, also } => {
                json!({"t": "ack", "epoch": epoch, "upto": upto, "also": also})
            }
            Self::Nak {
                epoch,
                seq,
                retry_after_secs,
            } => {
                json!({"t": "nak", "epoch": epoch, "seq": seq, "retry_after_s": retry_after_secs})
            }
            Self::Reject { epoch, seq, code } => {
                json!({"t": "reject", "epoch": epoch, "seq": seq, "code": code})
            }
            // The envelope goes out as its very bytes: parsing and printing it again is not ours to do.
            Self::Send { reference, envelope } => {
                return format!(
                    r#"{{"t":"send","ref":{},"envelope":{envelope}}}"#,
                    Value::from(reference.as_str())
                );
            }
        }
        .to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::SentStatus;

    #[test]
    fn the_frames_of_the_specification_are_read() {
        let parse = |text: &str| HubFrame::parse(text).unwrap();
        let hello = parse(
            r#"{"t":"challenge","challenge":"c","domain":"localhost:1","server_time":"2026-11-29T20:15:30Z"}"#,
        );
        assert!(matches!(hello, HubFrame::Challenge { domain, .. } if domain == "localhost:1"));
        let ready = parse(r#"{"t":"ready","session":9,"epoch":"e","floor":4,"pending":2}"#);
        assert!(matches!(
            ready,
            HubFrame::Ready {
                floor: 4,
                pending: 2,
                ..
            }
        ));
        let message = parse(
            r#"{"t":"msg","epoch":"e","seq":17,"attempt":1,"accepted_at":"2026-11-29T20:15:30.1Z","envelope":{"b": 1,"a":"é"}}"#,
        );
        let HubFrame::Message(offered) = message else {
            panic!("a message")
        };
        assert_eq!((offered.seq, offered.attempt), (17, 1));
        assert_eq!(
            offered.envelope.get(),
            r#"{"b": 1,"a":"é"}"#,
            "the bytes of the envelope are kept"
        );
        assert!(matches!(
            parse(r#"{"t":"acked","epoch":"e","floor":3}"#),
            HubFrame::Acked { floor: 3, .. }
        ));
        assert!(
            matches!(parse(r#"{"t":"error","code":"token_invalid","detail":"d"}"#), HubFrame::Error(p) if p.code == "token_invalid")
        );
        assert!(matches!(parse(r#"{"t":"weather"}"#), HubFrame::Unknown));
        assert!(HubFrame::parse("{}").is_err());
        assert!(HubFrame::parse(r#"{"t":"msg"}"#).is_err());
    }

    #[test]
    fn sent_is_an_answer_or_a_refusal() {
        let id = "6f8f3f5e-2a52-4e0b-9a5f-6f0c6f1d7c11";
        let frame = HubFrame::parse(&format!(
            r#"{{"t":"sent","ref":"r","id":"{id}","status":"stored","seq":1}}"#
        ));
        let HubFrame::Sent { reference, outcome } = frame.unwrap() else {
            panic!("sent")
        };
        assert_eq!(
            (reference.as_str(), outcome.unwrap().status),
            ("r", SentStatus::Stored)
        );
        let frame = HubFrame::parse(&format!(
            r#"{{"t":"sent","ref":"r","id":"{id}","status":"refused","code":"expired"}}"#
        ));
        let HubFrame::Sent { outcome, .. } = frame.unwrap() else {
            panic!("sent")
        };
        assert_eq!(outcome.unwrap_err().code, "expired");
    }

    #[test]
    fn what_an_agent_says_is_the_specification_s() {
        let epoch = || "e".to_owned();
        let value = |frame: AgentFrame| serde_json::from_str::<Value>(&frame.encode()).unwrap();
        assert_eq!(
            value(AgentFrame::Ack {
                epoch: epoch(),
                upto: 17,
                also: vec![19, 20]
            }),
            json!({"t": "ack", "epoch": "e", "upto": 17, "also": [19, 20]})
        );
        assert_eq!(
            value(AgentFrame::Nak {
                epoch: epoch(),
                seq: 3,
                retry_after_secs: 5
            }),
            json!({"t": "nak", "epoch": "e", "seq": 3, "retry_after_s": 5})
        );
        assert_eq!(
            value(AgentFrame::Reject {
                epoch: epoch(),
                seq: 3,
                code: "unreadable".into()
            }),
            json!({"t": "reject", "epoch": "e", "seq": 3, "code": "unreadable"})
        );
        let send = AgentFrame::Send {
            reference: "a\"b".into(),
            envelope: r#"{"b": 1}"#.into(),
        };
        assert_eq!(send.encode(), r#"{"t":"send","ref":"a\"b","envelope":{"b": 1}}"#);
    }
}
