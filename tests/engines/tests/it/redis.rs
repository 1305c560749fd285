//! Redis.

use aip_engines::{Redis, RedisOptions};

use crate::processes::{folder, state};
use crate::wire::redis;

#[test]
fn a_server_answers() {
    let address = Redis::shared().address();
    assert_eq!(redis(address, "PING"), "+PONG");
    assert_eq!(Redis::shared().url(), format!("redis://{address}/"));
}

#[test]
fn only_what_is_appended_survives_a_kill() {
    for (append_only, kept) in [(true, ":1"), (false, ":0")] {
        let mut server = Redis::start(RedisOptions {
            append_only,
            ..RedisOptions::default()
        });
        assert_eq!(redis(server.address(), "SET key value"), "+OK");
        let pid = server.pid().expect("it runs");
        server.kill();
        assert_eq!((server.pid(), state(pid)), (None, None));
        server.restart();
        assert_eq!(redis(server.address(), "EXISTS key"), kept);
    }
}

#[test]
fn a_paused_server_stands_still() {
    let mut server = Redis::start(RedisOptions::default());
    let pid = server.pid().expect("it runs");
    server.pause();
    assert_eq!(state(pid), Some('T'));
    server.resume();
    assert_eq!(redis(server.address(), "PING"), "+PONG");
}

#[test]
fn nothing_is_left_of_a_dropped_server() {
    let server = Redis::start(RedisOptions {
        settings: vec![("maxmemory".to_owned(), "10mb".to_owned())],
        ..RedisOptions::default()
    });
    let pid = server.pid().expect("it runs");
    assert!(server.resident_bytes().expect("it holds memory") > 1 << 20);
    let folder = folder(pid);
    drop(server);
    assert_eq!(state(pid), None);
    assert!(!folder.exists());
}
