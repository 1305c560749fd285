//! The machine: time, open files, ports.

use std::net::{SocketAddr, TcpListener};

use aip_protocol::time::Timestamp;

use super::Finding;
use crate::clock;
use crate::config::Settings;
use crate::process;

pub(super) fn examine(settings: &Settings) -> Vec<Finding> {
    vec![time(clock::wall()), files(settings)]
}

fn time(now: Timestamp) -> Finding {
    if clock::is_plausible(now) {
        Finding::Good(format!("the clock says {now}"))
    } else {
        Finding::Bad(format!(
            "the clock says {now}, which is past: set it, and let a time service keep it"
        ))
    }
}

fn files(settings: &Settings) -> Finding {
    let limit = process::raise_open_files();
    let shown = limit.map_or_else(|| "unlimited".to_owned(), |limit| limit.to_string());
    let wanted = settings.http.connections_max;
    if process::enough_files(limit, wanted) {
        Finding::Good(format!("open files: {shown}"))
    } else {
        Finding::Doubtful(format!(
            "open files: {shown}, too few for http.connections_max = {wanted}: raise the limit (LimitNOFILE in the \
             unit, ulimits in compose), or lower the setting"
        ))
    }
}

/// Whether both listeners could be bound, when no hub runs.
pub(super) fn ports(settings: &Settings) -> Vec<Finding> {
    vec![
        port("http.listen", settings.http.listen),
        port("http.operator_listen", settings.http.operator_listen),
    ]
}

fn port(key: &str, address: SocketAddr) -> Finding {
    match TcpListener::bind(address) {
        Ok(_) => Finding::Good(format!("{key} = {address} is free")),
        Err(error) => Finding::Bad(format!(
            "{key} = {address} cannot be bound ({error}): stop what holds the port, or choose another"
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn row_86_a_taken_port_is_named() {
        let taken = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = taken.local_addr().unwrap();
        let Finding::Bad(text) = port("http.listen", address) else {
            panic!("a taken port is bad")
        };
        assert!(text.contains(&address.to_string()), "{text}");
        drop(taken);
        assert!(matches!(port("http.listen", address), Finding::Good(_)));
    }

    #[test]
    fn a_clock_in_the_past_is_bad() {
        assert!(matches!(time(Timestamp::UNIX_EPOCH), Finding::Bad(_)));
        assert!(matches!(
            time(Timestamp::parse("2026-11-29T00:00:00Z").unwrap()),
            Finding::Good(_)
        ));
    }
}
