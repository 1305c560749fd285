//! As much of the engines' protocols as it takes to see that they work.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use serde_json::Value;

/// Ends a test that would hang; no test is about time.
const DEADLINE: Duration = Duration::from_mins(1);

/// How often a server that is not ready yet is asked, and how long between.
const ASKED_MAX: usize = 300;
const ASK_EVERY: Duration = Duration::from_millis(100);

fn connect(address: SocketAddr) -> BufReader<TcpStream> {
    let connection = TcpStream::connect(address).expect("a connection");
    connection.set_read_timeout(Some(DEADLINE)).expect("a time limit");
    BufReader::new(connection)
}

/// One command to Redis, written inline, and the first line of the answer.
pub(crate) fn redis(address: SocketAddr, command: &str) -> String {
    let mut connection = connect(address);
    write!(connection.get_mut(), "{command}\r\n").expect("sent");
    let mut line = String::new();
    connection.read_line(&mut line).expect("an answer");
    line.trim_end().to_owned()
}

/// A document from the monitoring endpoint of NATS.
pub(crate) fn monitor(url: &str, path: &str) -> Value {
    let host = url.strip_prefix("http://").expect("http");
    let mut connection = connect(host.parse().expect("an address"));
    write!(connection.get_mut(), "GET {path} HTTP/1.0\r\n\r\n").expect("sent");
    let mut answer = String::new();
    connection.read_to_string(&mut answer).expect("an answer");
    let (_, body) = answer.split_once("\r\n\r\n").expect("a body");
    serde_json::from_str(body).expect("JSON")
}

/// A client of NATS that asks one thing at a time.
pub(crate) struct Client {
    connection: BufReader<TcpStream>,
    /// What the server said first.
    pub(crate) info: Value,
}

impl Client {
    pub(crate) fn connect(address: SocketAddr) -> Self {
        let mut connection = connect(address);
        let info = line(&mut connection);
        let info = info.strip_prefix("INFO ").expect("INFO comes first");
        let info = serde_json::from_str(info).expect("JSON");
        write!(
            connection.get_mut(),
            "CONNECT {{\"verbose\":false}}\r\nSUB answers 1\r\n"
        )
        .expect("sent");
        Self { connection, info }
    }

    /// A request, and the JSON that is answered.
    pub(crate) fn ask(&mut self, subject: &str, body: &str) -> Value {
        let length = body.len();
        write!(
            self.connection.get_mut(),
            "PUB {subject} answers {length}\r\n{body}\r\n"
        )
        .expect("sent");
        loop {
            let head = line(&mut self.connection);
            if head == "PING" {
                write!(self.connection.get_mut(), "PONG\r\n").expect("sent");
            }
            if head.starts_with("MSG ") {
                let length = head.rsplit(' ').next().expect("a length");
                let mut body = vec![0; length.parse().expect("a number")];
                self.connection.read_exact(&mut body).expect("a body");
                return serde_json::from_slice(&body).expect("JSON");
            }
        }
    }

    pub(crate) fn create_stream(&mut self, name: &str, replicas: usize) {
        let config =
            format!("{{\"name\":\"{name}\",\"subjects\":[\"{name}.>\"],\"num_replicas\":{replicas}}}");
        let answer = self.ask(&format!("$JS.API.STREAM.CREATE.{name}"), &config);
        assert_eq!(answer.get("error"), None, "{answer}");
    }

    pub(crate) fn publish(&mut self, subject: &str) {
        let answer = self.ask(subject, "something");
        assert!(answer.get("seq").is_some(), "{answer}");
    }

    /// How many messages a stream has. Servers that have just begun may have to be asked again.
    pub(crate) fn messages(&mut self, stream: &str) -> u64 {
        let mut asked = 0;
        loop {
            let answer = self.ask(&format!("$JS.API.STREAM.INFO.{stream}"), "");
            if let Some(messages) = answer.pointer("/state/messages").and_then(Value::as_u64) {
                return messages;
            }
            asked += 1;
            assert!(answer.get("error").is_some() && asked < ASKED_MAX, "{answer}");
            std::thread::sleep(ASK_EVERY);
        }
    }
}

fn line(connection: &mut BufReader<TcpStream>) -> String {
    let mut line = String::new();
    let bytes = connection.read_line(&mut line).expect("a line");
    assert!(bytes > 0, "the server has closed the connection");
    line.trim_end().to_owned()
}
