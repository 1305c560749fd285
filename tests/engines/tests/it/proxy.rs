//! The proxy, before a server that repeats what it hears.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use aip_engines::Proxy;

use crate::processes::until;

/// Ends a test that would hang; no test is about time.
const DEADLINE: Duration = Duration::from_mins(1);

/// How long silence is listened to. Too short a time could only hide a fault, never invent one.
const SILENCE: Duration = Duration::from_millis(100);

/// A server that repeats what it hears, and counts the bytes.
struct Echo {
    address: SocketAddr,
    heard: Arc<AtomicUsize>,
}

impl Echo {
    /// It ends with the test process.
    fn start() -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
        let address = listener.local_addr().expect("an address");
        let heard = Arc::new(AtomicUsize::new(0));
        let counter = Arc::clone(&heard);
        std::thread::spawn(move || {
            for connection in listener.incoming().map_while(Result::ok) {
                let counter = Arc::clone(&counter);
                std::thread::spawn(move || repeat(connection, &counter));
            }
        });
        Self { address, heard }
    }

    fn heard(&self) -> usize {
        self.heard.load(Ordering::SeqCst)
    }
}

fn repeat(mut connection: TcpStream, heard: &AtomicUsize) {
    let mut buffer = [0; 4096];
    while let Ok(bytes) = connection.read(&mut buffer)
        && bytes > 0
    {
        heard.fetch_add(bytes, Ordering::SeqCst);
        let heard_now = buffer.get(..bytes).unwrap_or_default();
        if connection.write_all(heard_now).is_err() {
            return;
        }
    }
}

fn connect(proxy: &Proxy) -> TcpStream {
    let connection = TcpStream::connect(proxy.addr()).expect("a connection");
    connection.set_read_timeout(Some(DEADLINE)).expect("a time limit");
    connection
}

fn send(connection: &mut TcpStream, text: &str) {
    connection.write_all(text.as_bytes()).expect("sent");
}

fn assert_hears(connection: &mut TcpStream, text: &str) {
    let mut heard = vec![0; text.len()];
    connection.read_exact(&mut heard).expect("an answer");
    assert_eq!(String::from_utf8_lossy(&heard), text);
}

fn assert_silent(connection: &mut TcpStream) {
    connection.set_read_timeout(Some(SILENCE)).expect("a time limit");
    let error = connection.read(&mut [0]).expect_err("silence");
    assert_eq!(error.kind(), ErrorKind::WouldBlock);
    connection.set_read_timeout(Some(DEADLINE)).expect("a time limit");
}

fn assert_closed(connection: &mut TcpStream) {
    match connection.read(&mut [0]) {
        Ok(bytes) => assert_eq!(bytes, 0),
        Err(error) => assert_eq!(error.kind(), ErrorKind::ConnectionReset),
    }
}

fn assert_refused(proxy: &Proxy) {
    let error = TcpStream::connect(proxy.addr()).expect_err("refused");
    assert_eq!(error.kind(), ErrorKind::ConnectionRefused);
}

#[test]
fn everything_passes() {
    let echo = Echo::start();
    let proxy = Proxy::to(echo.address);
    let (mut one, mut other) = (connect(&proxy), connect(&proxy));
    send(&mut one, "one");
    send(&mut other, "other");
    assert_hears(&mut one, "one");
    assert_hears(&mut other, "other");
    assert_eq!(proxy.connections(), 2);
    assert_eq!(
        proxy.url(&format!("redis://{}/", echo.address)),
        format!("redis://{}/", proxy.addr())
    );

    // More than a batch, and the end is passed on in both directions.
    let much = "x".repeat(300_000);
    let mut writer = one.try_clone().expect("a second end");
    let sent = much.clone();
    let writing = std::thread::spawn(move || {
        send(&mut writer, &sent);
        writer
            .shutdown(std::net::Shutdown::Write)
            .expect("said everything");
    });
    let mut heard = String::new();
    one.read_to_string(&mut heard).expect("an answer");
    writing.join().expect("written");
    assert!(heard == much);
    until("only one is left", || proxy.connections() == 1);
}

#[test]
fn a_cut_closes_and_refuses_until_it_heals() {
    let echo = Echo::start();
    let proxy = Proxy::to(echo.address);
    for round in ["first", "second"] {
        let mut connection = connect(&proxy);
        send(&mut connection, round);
        assert_hears(&mut connection, round);
        proxy.cut();
        assert_closed(&mut connection);
        assert_refused(&proxy);
        proxy.cut();
        assert_refused(&proxy);
        proxy.heal();
    }
    proxy.heal();
    let mut connection = connect(&proxy);
    send(&mut connection, "again");
    assert_hears(&mut connection, "again");
}

#[test]
fn a_stall_holds_everything_back_until_it_heals() {
    let echo = Echo::start();
    let proxy = Proxy::to(echo.address);
    let mut old = connect(&proxy);
    send(&mut old, "before");
    assert_hears(&mut old, "before");
    proxy.stall();
    let mut new = connect(&proxy);
    send(&mut old, "held");
    send(&mut new, "new");
    assert_silent(&mut old);
    assert_silent(&mut new);
    assert_eq!(echo.heard(), "before".len());
    proxy.heal();
    assert_hears(&mut old, "held");
    assert_hears(&mut new, "new");

    proxy.stall();
    let mut third = connect(&proxy);
    proxy.cut();
    assert_closed(&mut old);
    assert_closed(&mut third);
}

#[test]
fn a_muted_server_hears_and_is_not_heard() {
    let echo = Echo::start();
    let proxy = Proxy::to(echo.address);
    let mut connection = connect(&proxy);
    send(&mut connection, "before");
    assert_hears(&mut connection, "before");
    proxy.mute();
    send(&mut connection, "unanswered");
    until("it hears", || echo.heard() == "beforeunanswered".len());
    assert_silent(&mut connection);
    proxy.cut();
    assert_closed(&mut connection);
}

#[test]
fn a_connection_can_be_torn_at_a_byte() {
    let echo = Echo::start();
    let proxy = Proxy::to(echo.address);
    let mut connection = connect(&proxy);
    send(&mut connection, "whole");
    assert_hears(&mut connection, "whole");
    proxy.drop_after(3);
    send(&mut connection, "torn");
    // Whether the answer to the three bytes still comes is open.
    drop(connection.read_to_end(&mut Vec::new()));
    until("nobody listens", || TcpStream::connect(proxy.addr()).is_err());
    assert_eq!(echo.heard(), "wholetor".len());
    proxy.heal();
    let mut connection = connect(&proxy);
    send(&mut connection, "whole again");
    assert_hears(&mut connection, "whole again");
}

#[test]
fn a_delay_holds_up_but_loses_nothing() {
    let echo = Echo::start();
    let proxy = Proxy::to(echo.address);
    proxy.delay(Duration::from_millis(20));
    let mut connection = connect(&proxy);
    send(&mut connection, "late");
    assert_hears(&mut connection, "late");
    proxy.delay(DEADLINE * 60);
    send(&mut connection, "never");
    assert_silent(&mut connection);
    proxy.cut();
    assert_closed(&mut connection);
}

#[test]
fn a_server_that_is_not_there_closes() {
    let nobody = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
    let address = nobody.local_addr().expect("an address");
    drop(nobody);
    let proxy = Proxy::to(address);
    assert_closed(&mut connect(&proxy));
}

#[test]
fn nothing_is_left_of_a_dropped_proxy() {
    let echo = Echo::start();
    let proxy = Proxy::to(echo.address);
    let address = proxy.addr();
    let mut connection = connect(&proxy);
    send(&mut connection, "here");
    assert_hears(&mut connection, "here");
    drop(proxy);
    assert_closed(&mut connection);
    assert!(TcpStream::connect(address).is_err());
    // Also of one that was cut.
    let proxy = Proxy::to(echo.address);
    proxy.cut();
    drop(proxy);
}
