//! A name server that changes its mind: the classic way to get past a check that is made before the connection.
//!
//! It speaks DNS (RFC 1035) over UDP, with a time to live of 0. The addresses of this machine play both parts: `127.0.0.2` is
//! allowed and stands for the public internet, `127.0.0.1` is not and stands for the inside.

use std::collections::VecDeque;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;
use bytes::Bytes;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, UdpSocket};

use super::super::{
    EgressError, Exchange, GuardedClient, Limits, Method, Policy, Request, Resolve, Response,
};

const OUTSIDE: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 2);
const INSIDE: Ipv4Addr = Ipv4Addr::LOCALHOST;

/// Serves a zone that holds every name; each query is answered by the next list, the last one for ever.
async fn name_server(answers: &[&[Ipv4Addr]]) -> SocketAddr {
    let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let address = socket.local_addr().unwrap();
    let mut answers: VecDeque<Vec<Ipv4Addr>> = answers.iter().map(|answer| answer.to_vec()).collect();
    tokio::spawn(async move {
        let mut query = [0; 512];
        while let Ok((length, from)) = socket.recv_from(&mut query).await {
            let answer = if answers.len() > 1 {
                answers.pop_front().unwrap()
            } else {
                answers[0].clone()
            };
            let reply = reply(&query[..length], &answer);
            socket.send_to(&reply, from).await.unwrap();
        }
    });
    address
}

/// The header with the answer bit set, the question as it came, and the addresses.
fn reply(query: &[u8], addresses: &[Ipv4Addr]) -> Vec<u8> {
    let mut reply = query.to_vec();
    reply[2] |= 0x80;
    reply[6..8].copy_from_slice(&u16::try_from(addresses.len()).unwrap().to_be_bytes());
    for address in addresses {
        // A pointer to the name in the question; type A, class IN, time to live 0, four bytes.
        reply.extend_from_slice(&[0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 0, 0, 4]);
        reply.extend_from_slice(&address.octets());
    }
    reply
}

/// Asks that name server for every look-up.
#[derive(Debug)]
struct Dns {
    server: SocketAddr,
    queries: AtomicUsize,
}

#[async_trait]
impl Resolve for Dns {
    async fn addresses(&self, host: &str) -> io::Result<Vec<IpAddr>> {
        self.queries.fetch_add(1, Ordering::SeqCst);
        let mut query = vec![0xab, 0xcd, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0];
        for label in host.split('.') {
            query.push(u8::try_from(label.len()).unwrap());
            query.extend_from_slice(label.as_bytes());
        }
        query.extend_from_slice(&[0, 0, 1, 0, 1]);
        let socket = UdpSocket::bind("127.0.0.1:0").await?;
        socket.send_to(&query, self.server).await?;
        let mut reply = [0; 512];
        let length = socket.recv(&mut reply).await?;
        let records = reply[query.len()..length].chunks_exact(16);
        Ok(records
            .map(|record| IpAddr::from([record[12], record[13], record[14], record[15]]))
            .collect())
    }
}

/// A server that says who it is, and how often it was connected to. It closes after each answer.
async fn server(address: Ipv4Addr, port: u16, says: &'static str) -> (u16, Arc<AtomicUsize>) {
    let listener = TcpListener::bind((address, port)).await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let connections = Arc::new(AtomicUsize::new(0));
    let seen = Arc::clone(&connections);
    tokio::spawn(async move {
        while let Ok((mut socket, _)) = listener.accept().await {
            seen.fetch_add(1, Ordering::SeqCst);
            let mut request = [0; 1024];
            let _read = socket.read(&mut request).await;
            let length = says.len();
            let answer =
                format!("HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n{says}");
            let _written = socket.write_all(answer.as_bytes()).await;
        }
    });
    (port, connections)
}

struct World {
    client: GuardedClient,
    dns: Arc<Dns>,
    port: u16,
    outside: Arc<AtomicUsize>,
    inside: Arc<AtomicUsize>,
}

impl World {
    async fn new(answers: &[&[Ipv4Addr]]) -> Self {
        let (port, outside) = server(OUTSIDE, 0, "outside").await;
        let (_, inside) = server(INSIDE, port, "inside").await;
        let dns = Arc::new(Dns {
            server: name_server(answers).await,
            queries: AtomicUsize::new(0),
        });
        let policy = Policy {
            allow_http: true,
            allowed_private_ranges: vec!["127.0.0.2/32".parse().unwrap()],
            ..Policy::default()
        };
        Self {
            client: GuardedClient::new(policy, dns.clone()).unwrap(),
            dns,
            port,
            outside,
            inside,
        }
    }

    async fn ask(&self) -> Result<Response, EgressError> {
        let request = Request {
            method: Method::Get,
            url: format!("http://rebind.example:{}/.well-known/aip", self.port),
            headers: Vec::new(),
            body: Bytes::new(),
        };
        self.client.exchange(request, Limits::default()).await
    }

    fn connections(&self) -> (usize, usize) {
        (
            self.outside.load(Ordering::SeqCst),
            self.inside.load(Ordering::SeqCst),
        )
    }
}

#[tokio::test]
async fn row_60_a_name_server_that_changes_its_mind_reaches_nobody_inside() {
    let world = World::new(&[&[OUTSIDE], &[INSIDE]]).await;
    assert_eq!(world.ask().await.unwrap().body.as_ref(), b"outside");
    assert_eq!(
        world.dns.queries.load(Ordering::SeqCst),
        1,
        "what was checked is what was connected to"
    );
    for _ in 0..3 {
        let error = world.ask().await.unwrap_err();
        assert!(
            matches!(error, EgressError::AddressRefused(IpAddr::V4(INSIDE))),
            "{error:?}"
        );
    }
    assert_eq!(world.connections(), (1, 0));
}

#[tokio::test]
async fn row_60_an_answer_with_both_kinds_of_address_is_refused() {
    for answer in [&[OUTSIDE, INSIDE], &[INSIDE, OUTSIDE]] {
        let world = World::new(&[answer]).await;
        let error = world.ask().await.unwrap_err();
        assert!(matches!(error, EgressError::AddressRefused(_)), "{error:?}");
        assert_eq!(world.connections(), (0, 0));
    }
}
