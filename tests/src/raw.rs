//! HTTP by hand: exactly the bytes that a test wants on the wire, and what came back.
//!
//! No library sends two lengths or half a head, so the requests are written here; answers are read with `httparse`.

use std::io;
use std::time::Duration;

use aip_protocol::error::ErrorCode;
use serde_json::Value;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;

/// Ends a test that would hang; no test is about time.
pub const DEADLINE: Duration = Duration::from_mins(1);

/// Header fields of an answer that are read at most.
const FIELDS_MAX: usize = 64;

/// A request, as it will be written.
#[derive(Debug, Clone)]
pub struct Request {
    method: String,
    target: String,
    fields: Vec<(String, String)>,
    body: Vec<u8>,
    framed: bool,
}

impl Request {
    /// A request without a body. Nothing is checked or encoded.
    #[must_use]
    pub fn new(method: impl Into<String>, target: impl Into<String>) -> Self {
        Self {
            method: method.into(),
            target: target.into(),
            fields: Vec::new(),
            body: Vec::new(),
            framed: true,
        }
    }

    /// `GET`.
    #[must_use]
    pub fn get(target: impl Into<String>) -> Self {
        Self::new("GET", target)
    }

    /// `POST` of JSON, or of what pretends to be JSON.
    #[must_use]
    pub fn post(target: impl Into<String>, body: impl Into<Vec<u8>>) -> Self {
        Self::new("POST", target)
            .field("content-type", "application/json")
            .body(body)
    }

    /// One more header field.
    #[must_use]
    pub fn field(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.fields.push((name.into(), value.into()));
        self
    }

    /// `Authorization: Bearer`.
    #[must_use]
    pub fn bearer(self, token: &str) -> Self {
        self.field("authorization", format!("Bearer {token}"))
    }

    /// The body.
    #[must_use]
    pub fn body(mut self, body: impl Into<Vec<u8>>) -> Self {
        self.body = body.into();
        self
    }

    /// Leaves `Content-Length` out: the test writes its own framing.
    #[must_use]
    pub fn unframed(mut self) -> Self {
        self.framed = false;
        self
    }

    /// The body in chunks of this size.
    #[must_use]
    pub fn chunked(mut self, bytes: usize) -> Self {
        let mut body = Vec::with_capacity(self.body.len() + 64);
        for chunk in self.body.chunks(bytes.max(1)) {
            body.extend_from_slice(format!("{:x}\r\n", chunk.len()).as_bytes());
            body.extend_from_slice(chunk);
            body.extend_from_slice(b"\r\n");
        }
        body.extend_from_slice(b"0\r\n\r\n");
        self.body = body;
        self.unframed().field("transfer-encoding", "chunked")
    }

    /// What goes over the wire.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut head = format!("{} {} HTTP/1.1\r\n", self.method, self.target);
        let mut push = |name: &str, value: &str| head.extend([name, ": ", value, "\r\n"]);
        if !self
            .fields
            .iter()
            .any(|(name, _)| name.eq_ignore_ascii_case("host"))
        {
            push("host", "localhost");
        }
        for (name, value) in &self.fields {
            push(name, value);
        }
        if self.framed && (!self.body.is_empty() || self.method == "POST") {
            push("content-length", &self.body.len().to_string());
        }
        head.push_str("\r\n");
        let mut bytes = head.into_bytes();
        bytes.extend_from_slice(&self.body);
        bytes
    }
}

/// What the hub answered.
#[derive(Debug, Clone)]
pub struct Answer {
    /// The status.
    pub status: u16,
    fields: Vec<(String, String)>,
    /// The body, without its framing.
    pub body: Vec<u8>,
}

impl Answer {
    /// A header field, or nothing.
    #[must_use]
    pub fn header(&self, name: &str) -> &str {
        let found = self
            .fields
            .iter()
            .find(|(known, _)| known.eq_ignore_ascii_case(name));
        found.map_or("", |(_, value)| value)
    }

    /// The body as text.
    #[must_use]
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// The body as JSON; null where it is none.
    #[must_use]
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_default()
    }

    /// The code of a problem document.
    ///
    /// # Panics
    /// When it is not one, with all its members and of the right status.
    #[must_use]
    pub fn code(&self) -> String {
        let (problem, shown) = (self.json(), self.text());
        let text = |member: &str| problem.get(member).and_then(Value::as_str).unwrap_or_default();
        let code = text("code");
        assert_eq!(
            self.header("content-type"),
            "application/problem+json",
            "{self:?}"
        );
        assert_eq!(problem.get("status"), Some(&self.status.into()), "{shown}");
        let known = code
            .parse::<ErrorCode>()
            .is_ok_and(|known| known.status() == self.status);
        assert!(known, "no code of its status: {shown}");
        let page = text("type");
        assert!(
            page.starts_with("http") && page.ends_with(&format!("/docs/errors/{code}")),
            "{shown}"
        );
        assert!(!text("title").is_empty() && text("detail").len() >= 10, "{shown}");
        let id = text("request_id");
        assert!(!id.is_empty() && id == self.header("x-request-id"), "{shown}");
        code.to_owned()
    }
}

/// A connection.
#[derive(Debug)]
pub struct Wire {
    stream: TcpStream,
    buffer: Vec<u8>,
}

impl Wire {
    /// Connects to the host and port of `url`.
    ///
    /// # Errors
    /// Those of the system.
    pub async fn open(url: &str) -> io::Result<Self> {
        let address = url.trim_start_matches("http://");
        Ok(Self {
            stream: TcpStream::connect(address).await?,
            buffer: Vec::new(),
        })
    }

    /// Writes.
    ///
    /// # Errors
    /// The hub has closed the connection already.
    pub async fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stream.write_all(bytes).await?;
        self.stream.flush().await
    }

    /// Ends our side; the hub can still answer.
    ///
    /// # Errors
    /// The hub has closed the connection already.
    pub async fn half_close(&mut self) -> io::Result<()> {
        self.stream.shutdown().await
    }

    /// The next answer; `None` when the connection ends, or breaks, before there is a whole one.
    ///
    /// # Panics
    /// When nothing comes within [`DEADLINE`], or what comes is not HTTP.
    pub async fn answer(&mut self) -> Option<Answer> {
        self.answer_to("GET").await
    }

    /// [`Wire::answer`] to a request of this method; the answer to `HEAD` has no body.
    ///
    /// # Panics
    /// As there.
    pub async fn answer_to(&mut self, method: &str) -> Option<Answer> {
        let Ok(answer) = timeout(DEADLINE, self.read_answer(method)).await else {
            panic!(
                "no answer in time, only {:?}",
                String::from_utf8_lossy(&self.buffer)
            );
        };
        answer
    }

    /// Everything until the hub closes the connection, or breaks it.
    ///
    /// # Panics
    /// When it stays open for [`DEADLINE`].
    pub async fn rest(&mut self) -> Vec<u8> {
        let reading = async { while self.fill().await.is_some() {} };
        assert!(
            timeout(DEADLINE, reading).await.is_ok(),
            "the connection stays open"
        );
        std::mem::take(&mut self.buffer)
    }

    async fn read_answer(&mut self, method: &str) -> Option<Answer> {
        loop {
            let (mut answer, length) = loop {
                match self.head() {
                    Some(found) => break found,
                    None => self.fill().await?,
                }
            };
            if answer.status < 200 && answer.status != 101 {
                continue;
            }
            let empty = method == "HEAD" || matches!(answer.status, 101 | 204 | 304);
            answer.body = match length {
                _ if empty => Vec::new(),
                _ if answer.header("transfer-encoding").contains("chunked") => self.chunks().await?,
                Some(length) => self.take(length).await?,
                None => self.rest().await,
            };
            return Some(answer);
        }
    }

    /// The head of an answer, if it is there, and the length that it names.
    fn head(&mut self) -> Option<(Answer, Option<usize>)> {
        let mut fields = [httparse::EMPTY_HEADER; FIELDS_MAX];
        let mut head = httparse::Response::new(&mut fields);
        let length = match head.parse(&self.buffer) {
            Ok(httparse::Status::Complete(length)) => length,
            Ok(httparse::Status::Partial) => return None,
            Err(error) => panic!("{error}: {:?}", String::from_utf8_lossy(&self.buffer)),
        };
        let text = |value: &[u8]| String::from_utf8_lossy(value).into_owned();
        let fields = head
            .headers
            .iter()
            .map(|field| (field.name.to_owned(), text(field.value)));
        let answer = Answer {
            status: head.code.unwrap_or_default(),
            fields: fields.collect(),
            body: Vec::new(),
        };
        self.buffer.drain(..length);
        let length = answer.header("content-length").parse().ok();
        Some((answer, length))
    }

    async fn take(&mut self, length: usize) -> Option<Vec<u8>> {
        while self.buffer.len() < length {
            self.fill().await?;
        }
        Some(self.buffer.drain(..length).collect())
    }

    async fn chunks(&mut self) -> Option<Vec<u8>> {
        let mut body = Vec::new();
        loop {
            let (head, length) = match httparse::parse_chunk_size(&self.buffer) {
                Ok(httparse::Status::Complete((head, length))) => (head, usize::try_from(length).ok()?),
                Ok(httparse::Status::Partial) => {
                    self.fill().await?;
                    continue;
                }
                Err(error) => panic!("{error}: {:?}", String::from_utf8_lossy(&self.buffer)),
            };
            self.take(head).await?;
            body.extend(self.take(length).await?);
            self.take(2).await?;
            if length == 0 {
                return Some(body);
            }
        }
    }

    async fn fill(&mut self) -> Option<()> {
        match self.stream.read_buf(&mut self.buffer).await {
            Ok(0) | Err(_) => None,
            Ok(_) => Some(()),
        }
    }
}

/// Asks over a connection of its own. `None` when the hub closes it without a whole answer.
///
/// # Panics
/// When the hub cannot be reached, or keeps silent.
pub async fn try_ask(url: &str, request: &Request) -> Option<Answer> {
    let mut wire = match Wire::open(url).await {
        Ok(wire) => wire,
        Err(error) => panic!("{url} cannot be reached: {error}"),
    };
    // A hub that has heard enough closes while we are still sending; what counts is whether it answered.
    let _sent = wire.send(&request.to_bytes()).await;
    wire.answer_to(&request.method).await
}

/// Asks over a connection of its own.
///
/// # Panics
/// When there is no answer.
pub async fn ask(url: &str, request: &Request) -> Answer {
    match try_ask(url, request).await {
        Some(answer) => answer,
        None => panic!("{} {}: no answer", request.method, request.target),
    }
}
