//! Questions to the monitoring endpoint of a NATS server.

use std::io::{self, Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;

use serde_json::Value;

use crate::ports::loopback;

/// A server that stands still accepts a connection and never answers.
const ANSWER_WITHIN: Duration = Duration::from_secs(2);

/// The JSON document at this path; nothing when the server does not answer, or not with 200.
pub(crate) fn ask(port: u16, path: &str) -> Option<Value> {
    let answer = get(port, path).ok()?;
    let (head, body) = answer.split_once("\r\n\r\n")?;
    let status = head.split_whitespace().nth(1)?;
    if status != "200" {
        return None;
    }
    serde_json::from_str(body).ok()
}

/// The version of the protocol is one without chunks, and the server closes when it has said everything.
fn get(port: u16, path: &str) -> io::Result<String> {
    let mut connection = TcpStream::connect_timeout(&loopback(port), ANSWER_WITHIN)?;
    connection.set_read_timeout(Some(ANSWER_WITHIN))?;
    connection.write_all(format!("GET {path} HTTP/1.0\r\n\r\n").as_bytes())?;
    let mut answer = String::new();
    connection.read_to_string(&mut answer)?;
    Ok(answer)
}

/// JetStream is up and, in a cluster, has caught up with its leader.
pub(crate) fn is_healthy(port: u16) -> bool {
    ask(port, "/healthz").is_some()
}

/// The name of the server that leads the cluster, as this one sees it, and how many others keep pace with it, which
/// only the leader itself knows.
pub(crate) fn meta_leader(port: u16) -> Option<(String, usize)> {
    let answer = ask(port, "/jsz")?;
    let meta = answer.get("meta_cluster")?;
    let leader = meta.get("leader")?.as_str()?.to_owned();
    let replicas = meta.get("replicas").and_then(Value::as_array);
    let current = |replica: &&Value| replica.get("current").and_then(Value::as_bool) == Some(true);
    Some((leader, replicas.into_iter().flatten().filter(current).count()))
}

/// The name of the server that leads this stream, as this one sees it.
pub(crate) fn stream_leader(port: u16, stream: &str) -> Option<String> {
    let answer = ask(port, "/jsz?streams=true")?;
    let accounts = answer.get("account_details")?.as_array()?;
    let mut streams = accounts
        .iter()
        .filter_map(|account| account.get("stream_detail")?.as_array())
        .flatten();
    let found = streams.find(|found| found.get("name").and_then(Value::as_str) == Some(stream))?;
    found.pointer("/cluster/leader")?.as_str().map(str::to_owned)
}
