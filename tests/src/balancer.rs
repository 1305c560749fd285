//! What stands before the processes of a hub: a small load balancer, as `deploy/caddy/Caddyfile` sets one up.
//!
//! Each new connection goes to the next process that is alive; a process that refuses is passed over at once, one that
//! does not answer `/health/live` in time gets no new connections. Connections that are open stay where they are.

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use crate::TestHub;

/// Between two looks at a process.
const LOOK_EVERY: Duration = Duration::from_millis(500);
/// For a process to answer a look, or to accept a connection.
const ANSWER_WITHIN: Duration = Duration::from_secs(1);
/// For a connection to find a process, and the pause between two tries.
const TRY_FOR: Duration = Duration::from_secs(5);
const TRY_AGAIN_AFTER: Duration = Duration::from_millis(100);

/// Passes connections on to the processes of a hub. Dropping it closes them all.
#[derive(Debug)]
pub struct Balancer {
    address: SocketAddr,
    _tasks: JoinSet<()>,
}

#[derive(Debug)]
struct Process {
    address: SocketAddr,
    alive: AtomicBool,
}

#[derive(Debug)]
struct Processes {
    all: Vec<Process>,
    next: AtomicUsize,
}

impl Balancer {
    /// Listens before these processes, on the runtime of the caller.
    ///
    /// # Panics
    /// When it cannot listen, or a process has never run.
    pub async fn before(hubs: &[TestHub]) -> Self {
        let all = hubs.iter().map(|hub| Process {
            address: address(hub),
            alive: AtomicBool::new(true),
        });
        let processes = Arc::new(Processes {
            all: all.collect(),
            next: AtomicUsize::new(0),
        });
        let listener = match TcpListener::bind(("127.0.0.1", crate::free_port())).await {
            Ok(listener) => listener,
            Err(error) => panic!("the balancer cannot listen: {error}"),
        };
        let address = match listener.local_addr() {
            Ok(address) => address,
            Err(error) => panic!("the balancer has no address: {error}"),
        };
        let mut tasks = JoinSet::new();
        for number in 0..processes.all.len() {
            tasks.spawn(Arc::clone(&processes).watch(number));
        }
        tasks.spawn(accept_all(listener, processes));
        Self {
            address,
            _tasks: tasks,
        }
    }

    /// What clients connect to.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }
}

fn address(hub: &TestHub) -> SocketAddr {
    match hub.url().trim_start_matches("http://").parse() {
        Ok(address) => address,
        Err(error) => panic!("{} is no address of a process: {error}", hub.url()),
    }
}

/// Connections end with the balancer.
async fn accept_all(listener: TcpListener, processes: Arc<Processes>) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            Ok((client, _)) = listener.accept() => {
                connections.spawn(carry(client, Arc::clone(&processes)));
            }
            Some(_) = connections.join_next() => {}
        }
    }
}

async fn carry(mut client: TcpStream, processes: Arc<Processes>) {
    let Ok(Some(mut process)) = timeout(TRY_FOR, processes.connect()).await else {
        return;
    };
    // Latency is not for Nagle to add; a connection that breaks is what the tests are for.
    drop((client.set_nodelay(true), process.set_nodelay(true)));
    drop(copy_bidirectional(&mut client, &mut process).await);
}

impl Processes {
    /// A connection to the next process that takes one.
    async fn connect(&self) -> Option<TcpStream> {
        loop {
            for process in self.in_turn() {
                if let Ok(stream) = in_time(TcpStream::connect(process.address)).await {
                    return Some(stream);
                }
            }
            sleep(TRY_AGAIN_AFTER).await;
        }
    }

    /// Those that are alive, beginning with another one each time.
    fn in_turn(&self) -> impl Iterator<Item = &Process> {
        let first = self.next.fetch_add(1, Ordering::Relaxed);
        let all = self.all.iter().cycle().skip(first % self.all.len().max(1));
        all.take(self.all.len())
            .filter(|process| process.alive.load(Ordering::Relaxed))
    }

    async fn watch(self: Arc<Self>, number: usize) {
        let Some(process) = self.all.get(number) else {
            return;
        };
        loop {
            let alive = in_time(look(process.address)).await.unwrap_or(false);
            process.alive.store(alive, Ordering::Relaxed);
            sleep(LOOK_EVERY).await;
        }
    }
}

async fn in_time<T>(work: impl Future<Output = io::Result<T>>) -> io::Result<T> {
    timeout(ANSWER_WITHIN, work).await?
}

/// Whether a process says that it is alive.
async fn look(address: SocketAddr) -> io::Result<bool> {
    const WANTED: &[u8] = b"HTTP/1.1 200 ";
    let mut stream = TcpStream::connect(address).await?;
    let request = format!("GET /health/live HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await?;
    let mut start = [0; WANTED.len()];
    stream.read_exact(&mut start).await?;
    Ok(start == WANTED)
}
