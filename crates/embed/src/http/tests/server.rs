//! A server that answers as it is told, well or badly.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

/// What a request was.
#[derive(Debug, Clone)]
pub(super) struct Seen {
    /// Request line and header fields.
    pub(super) head: String,
    pub(super) body: Value,
}

impl Seen {
    /// The texts that were asked for.
    pub(super) fn texts(&self) -> Vec<String> {
        let texts = self.body["input"].as_array().unwrap();
        texts
            .iter()
            .map(|text| text.as_str().unwrap().to_owned())
            .collect()
    }
}

/// What the server does.
pub(super) enum Reply {
    /// Status, header lines, body.
    Now(u16, &'static str, String),
    /// Keeps the connection and says nothing.
    Silence,
    /// Begins and says no more.
    Half,
    /// Closes the connection.
    Close,
    /// Never stops.
    Endless,
}

pub(super) struct Server {
    pub(super) address: SocketAddr,
    seen: Arc<Mutex<Vec<Seen>>>,
    /// Ends with it.
    _tasks: JoinSet<()>,
}

impl Server {
    /// `answer` gets the number of the request, from 0, and the request.
    pub(super) async fn start(answer: impl Fn(usize, &Seen) -> Reply + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let seen = Arc::new(Mutex::new(Vec::new()));
        let mut tasks = JoinSet::new();
        let all = Arc::clone(&seen);
        let answer = Arc::new(answer);
        tasks.spawn(async move {
            let mut open = JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                let (all, answer) = (Arc::clone(&all), Arc::clone(&answer));
                open.spawn(async move {
                    serve(stream, &all, answer.as_ref()).await;
                });
            }
        });
        Self {
            address,
            seen,
            _tasks: tasks,
        }
    }

    pub(super) fn base(&self) -> String {
        format!("http://{}", self.address)
    }

    pub(super) fn seen(&self) -> Vec<Seen> {
        self.seen.lock().unwrap().clone()
    }
}

async fn serve(
    mut stream: TcpStream,
    all: &Mutex<Vec<Seen>>,
    answer: &(impl Fn(usize, &Seen) -> Reply + Sync),
) {
    let Some(seen) = request(&mut stream).await else {
        return;
    };
    let reply = {
        let mut all = all.lock().unwrap();
        all.push(seen.clone());
        answer(all.len() - 1, &seen)
    };
    // The other side may have gone away, which is its right.
    let _gone = write(&mut stream, reply).await;
}

async fn write(stream: &mut TcpStream, reply: Reply) -> std::io::Result<()> {
    match reply {
        Reply::Now(status, headers, body) => {
            let head = format!(
                "HTTP/1.1 {status} S\r\ncontent-length: {}\r\nconnection: close\r\n{headers}\r\n",
                body.len()
            );
            stream.write_all(head.as_bytes()).await?;
            stream.write_all(body.as_bytes()).await?;
            stream.shutdown().await
        }
        Reply::Silence => std::future::pending().await,
        Reply::Half => {
            stream
                .write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n{\"data\":[")
                .await?;
            std::future::pending().await
        }
        Reply::Close => Ok(()),
        Reply::Endless => {
            stream
                .write_all(b"HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n")
                .await?;
            loop {
                stream.write_all(&[b' '; 8 * 1024]).await?;
            }
        }
    }
}

/// Reads head and body.
async fn request(stream: &mut TcpStream) -> Option<Seen> {
    let mut bytes = Vec::new();
    loop {
        if let Some(end) = bytes.windows(4).position(|four| four == b"\r\n\r\n") {
            let head = String::from_utf8(bytes[..end].to_vec()).unwrap().to_lowercase();
            let length = head
                .lines()
                .find_map(|line| line.strip_prefix("content-length: "))?;
            let length: usize = length.trim().parse().unwrap();
            if bytes.len() >= end + 4 + length {
                let body = serde_json::from_slice(&bytes[end + 4..end + 4 + length]).unwrap();
                return Some(Seen { head, body });
            }
        }
        if stream.read_buf(&mut bytes).await.ok()? == 0 {
            return None;
        }
    }
}
