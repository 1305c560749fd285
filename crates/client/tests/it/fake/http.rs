//! As much HTTP/1.1 as the tests need: one request, one answer, the line closed.

use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::FakeHub;

pub(super) async fn serve(hub: FakeHub, mut stream: TcpStream) {
    let Some((head, body)) = read(&mut stream).await else {
        return;
    };
    hub.state().heads.push(head.clone());
    let mut words = head.split(' ');
    let (method, path) = (words.next().unwrap(), words.next().unwrap());
    // No answer: the stream is dropped, and the client sees a broken line.
    let Some((status, answer)) = hub.handle(method, path, &body) else {
        return;
    };
    answer_with(&mut stream, status, &answer).await;
}

/// The answer to a request that is read and not looked at.
pub(super) async fn refuse(mut stream: TcpStream, status: u16, answer: &Value) {
    if read(&mut stream).await.is_some() {
        answer_with(&mut stream, status, answer).await;
    }
}

/// `retry_after_s` and `location` become headers as well. What is no object stands for the page of a proxy.
async fn answer_with(stream: &mut TcpStream, status: u16, answer: &Value) {
    let retry_after = match answer["retry_after_s"].as_u64() {
        Some(secs) => format!("Retry-After: {secs}\r\n"),
        None => String::new(),
    };
    let location = match answer["location"].as_str() {
        Some(url) => format!("Location: {url}\r\n"),
        None => String::new(),
    };
    let replayed = match answer["scripted_replay"].as_bool() {
        Some(true) => "Idempotency-Replayed: true\r\n",
        _ => "",
    };
    let answer = answer.to_string();
    let length = answer.len();
    let head = format!(
        "HTTP/1.1 {status} X\r\nContent-Type: application/json\r\nContent-Length: {length}\r\nConnection: close\r\n{retry_after}{location}{replayed}\r\n"
    );
    drop(stream.write_all((head + &answer).as_bytes()).await);
    drop(stream.shutdown().await);
}

async fn read(stream: &mut TcpStream) -> Option<(String, Vec<u8>)> {
    let mut bytes = Vec::new();
    let end = loop {
        if let Some(end) = bytes.windows(4).position(|window| window == b"\r\n\r\n") {
            break end + 4;
        }
        if stream.read_buf(&mut bytes).await.ok()? == 0 {
            return None;
        }
    };
    let mut body = bytes.split_off(end);
    let head = String::from_utf8(bytes).ok()?;
    let length = head.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("content-length")
            .then(|| value.trim().parse().ok())?
    });
    while body.len() < length.unwrap_or(0) {
        if stream.read_buf(&mut body).await.ok()? == 0 {
            return None;
        }
    }
    Some((head, body))
}
