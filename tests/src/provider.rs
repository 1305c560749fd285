//! A provider of capabilities over HTTP, as the market calls it: it keeps what it was asked, and answers what a test says.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Notify, mpsc};

/// Header fields of a request that are read at most.
const FIELDS_MAX: usize = 64;

/// One call, as it arrived.
#[derive(Debug, Clone)]
pub struct Call {
    /// The header `Idempotency-Key`: the invocation.
    pub id: String,
    /// The header fields, names in lower case.
    pub fields: Vec<(String, String)>,
    /// The body.
    pub body: Value,
}

impl Call {
    /// The member `input`.
    #[must_use]
    pub fn input(&self) -> &Value {
        self.body.get("input").unwrap_or(&Value::Null)
    }

    /// A header field, or nothing.
    #[must_use]
    pub fn header(&self, name: &str) -> &str {
        let found = self.fields.iter().find(|(known, _)| known == name);
        found.map_or("", |(_, value)| value)
    }
}

/// What a provider says.
#[derive(Debug, Clone)]
pub enum Reply {
    /// 200 with this body.
    Json(Value),
    /// A status, further header lines, and a body.
    Raw(u16, String, Vec<u8>),
    /// The same a while later.
    After(Duration, Box<Reply>),
    /// Nothing, for as long as the hub waits.
    Never,
    /// 200 with this media type and what the other end of the channel gives, as it gives it; the connection ends with it.
    Stream(&'static str, Pieces),
    /// The connection ends.
    Break,
}

/// What a stream is made of.
pub type Pieces = Arc<tokio::sync::Mutex<mpsc::Receiver<Vec<u8>>>>;

/// A stream, piece by piece. It is closed when the hub hangs up.
#[must_use]
pub fn pieces() -> (mpsc::Sender<Vec<u8>>, Pieces) {
    let (say, said) = mpsc::channel(16);
    (say, Arc::new(tokio::sync::Mutex::new(said)))
}

impl Reply {
    /// What it was given, as its result.
    #[must_use]
    pub fn echo(call: &Call) -> Self {
        Self::Json(json!({ "result": { "echo": call.input() } }))
    }
}

type Answering = dyn Fn(&Call) -> Reply + Send + Sync;

struct State {
    calls: Mutex<Vec<Call>>,
    answer: Mutex<Arc<Answering>>,
    arrived: Notify,
}

/// A provider on loopback; it stops when it is dropped.
pub struct Provider {
    url: String,
    state: Arc<State>,
    task: tokio::task::JoinHandle<()>,
}

impl fmt::Debug for Provider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Provider")
            .field("url", &self.url)
            .finish_non_exhaustive()
    }
}

impl Drop for Provider {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Provider {
    /// One that answers with what it was given.
    ///
    /// # Panics
    /// When loopback has no port.
    pub async fn echo() -> Self {
        Self::answering(Reply::echo).await
    }

    /// One that answers what `answer` says.
    ///
    /// # Panics
    /// When loopback has no port.
    pub async fn answering(answer: impl Fn(&Call) -> Reply + Send + Sync + 'static) -> Self {
        let bound = TcpListener::bind("127.0.0.1:0").await;
        let Some((listener, address)) = bound
            .ok()
            .and_then(|listener| listener.local_addr().ok().map(|address| (listener, address)))
        else {
            panic!("loopback has no port");
        };
        let state = Arc::new(State {
            calls: Mutex::default(),
            answer: Mutex::new(Arc::new(answer)),
            arrived: Notify::new(),
        });
        let serving = Arc::clone(&state);
        let task = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(stream, Arc::clone(&serving)));
            }
        });
        Self {
            url: format!("http://{address}/invoke"),
            state,
            task,
        }
    }

    /// Where it is called.
    #[must_use]
    pub fn url(&self) -> &str {
        &self.url
    }

    /// It answers so from now on.
    pub fn answer(&self, answer: impl Fn(&Call) -> Reply + Send + Sync + 'static) {
        *self.state.answer.lock().unwrap_or_else(PoisonError::into_inner) = Arc::new(answer);
    }

    /// All calls so far.
    #[must_use]
    pub fn calls(&self) -> Vec<Call> {
        let calls = self.state.calls.lock();
        calls.unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// How many different invocations it was called for.
    #[must_use]
    pub fn invocations(&self) -> usize {
        let ids: BTreeSet<String> = self.calls().into_iter().map(|call| call.id).collect();
        ids.len()
    }

    /// Returns when it has been called so often.
    pub async fn called(&self, times: usize) {
        loop {
            let arrived = self.state.arrived.notified();
            if self.calls().len() >= times {
                return;
            }
            arrived.await;
        }
    }
}

async fn serve(mut stream: TcpStream, state: Arc<State>) {
    let mut buffer = Vec::new();
    while let Some(call) = read(&mut stream, &mut buffer).await {
        let answer = Arc::clone(&state.answer.lock().unwrap_or_else(PoisonError::into_inner));
        let mut reply = answer(&call);
        state
            .calls
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(call);
        state.arrived.notify_waiters();
        while let Reply::After(pause, then) = reply {
            tokio::time::sleep(pause).await;
            reply = *then;
        }
        let (status, lines, body) = match reply {
            Reply::Json(body) => (200, String::new(), body.to_string().into_bytes()),
            Reply::Raw(status, lines, body) => (status, lines, body),
            Reply::Never => {
                // Until the hub hangs up.
                while matches!(stream.read_buf(&mut buffer).await, Ok(read) if read > 0) {}
                return;
            }
            Reply::Stream(media_type, pieces) => return speak(stream, media_type, &pieces).await,
            Reply::Break | Reply::After(..) => return,
        };
        let length = body.len();
        let head = format!(
            "HTTP/1.1 {status} X\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n{lines}\r\n"
        );
        if stream
            .write_all(&[head.into_bytes(), body].concat())
            .await
            .is_err()
        {
            return;
        }
    }
}

/// Says pieces as they come, until there are no more of them or nobody listens.
async fn speak(mut stream: TcpStream, media_type: &str, pieces: &Pieces) {
    let mut pieces = pieces.lock().await;
    let head = format!("HTTP/1.1 200 X\r\ncontent-type: {media_type}\r\nconnection: close\r\n\r\n");
    let (mut listens, mut says) = stream.split();
    let mut buffer = [0; 64];
    let speaking = async {
        says.write_all(head.as_bytes()).await?;
        while let Some(piece) = pieces.recv().await {
            says.write_all(&piece).await?;
        }
        says.shutdown().await
    };
    tokio::select! {
        _said = speaking => {}
        _hung_up = listens.read(&mut buffer) => {}
    }
    pieces.close();
}

/// The next request; `None` at the end of the connection, or when what comes is none.
async fn read(stream: &mut TcpStream, buffer: &mut Vec<u8>) -> Option<Call> {
    let (length, fields) = loop {
        let mut fields = [httparse::EMPTY_HEADER; FIELDS_MAX];
        let mut head = httparse::Request::new(&mut fields);
        if let httparse::Status::Complete(length) = head.parse(buffer).ok()? {
            let text = |field: &httparse::Header<'_>| {
                let value = String::from_utf8_lossy(field.value).into_owned();
                (field.name.to_ascii_lowercase(), value)
            };
            break (length, head.headers.iter().map(text).collect::<Vec<_>>());
        }
        fill(stream, buffer).await?;
    };
    buffer.drain(..length);
    let named = |name: &str| {
        let found = fields.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value.clone()).unwrap_or_default()
    };
    let length: usize = named("content-length").parse().ok()?;
    while buffer.len() < length {
        fill(stream, buffer).await?;
    }
    let body: Vec<u8> = buffer.drain(..length).collect();
    Some(Call {
        id: named("idempotency-key"),
        body: serde_json::from_slice(&body).unwrap_or_default(),
        fields,
    })
}

async fn fill(stream: &mut TcpStream, buffer: &mut Vec<u8>) -> Option<()> {
    match stream.read_buf(buffer).await {
        Ok(0) | Err(_) => None,
        Ok(_) => Some(()),
    }
}
