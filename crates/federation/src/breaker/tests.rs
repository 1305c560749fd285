//! The breaker opens, probes and closes as spec §8 says.

use super::*;

fn at(secs: u64) -> Timestamp {
    Timestamp::from_unix_millis(1_796_000_000_000) + Duration::from_secs(secs)
}

fn opened(secs: u64) -> Breaker {
    let mut breaker = Breaker::new(BreakerConfig::default());
    for _ in 0..5 {
        breaker.failed(at(secs));
    }
    breaker
}

#[test]
fn five_failures_in_a_row_open_it_and_four_do_not() {
    let mut breaker = Breaker::new(BreakerConfig::default());
    for _ in 0..4 {
        breaker.failed(at(0));
    }
    assert_eq!(breaker.state(at(0)), BreakerState::Closed);
    breaker.succeeded(at(0));
    for _ in 0..4 {
        breaker.failed(at(40));
    }
    assert_eq!(breaker.state(at(40)), BreakerState::Closed);
    breaker.failed(at(40));
    assert_eq!(breaker.state(at(40)), BreakerState::Open { until: at(50) });
}

#[test]
fn half_of_twenty_in_thirty_seconds_open_it() {
    let mut breaker = Breaker::new(BreakerConfig::default());
    for second in 0..19 {
        if second % 2 == 0 {
            breaker.succeeded(at(second));
        } else {
            breaker.failed(at(second));
        }
    }
    assert_eq!(breaker.state(at(19)), BreakerState::Closed, "nine of nineteen");
    breaker.failed(at(19));
    assert_eq!(breaker.state(at(19)), BreakerState::Open { until: at(29) });
}

#[test]
fn the_same_share_over_a_longer_time_does_not() {
    let mut breaker = Breaker::new(BreakerConfig::default());
    for second in 0..100 {
        if second % 2 == 0 {
            breaker.succeeded(at(second * 2));
        } else {
            breaker.failed(at(second * 2));
        }
    }
    assert_eq!(breaker.state(at(200)), BreakerState::Closed);
}

#[test]
fn probes_come_after_10_s_doubling_to_15_min() {
    let mut breaker = opened(0);
    let mut now = 0;
    for pause in [10, 20, 40, 80, 160, 320, 640, 900, 900] {
        let until = at(now + pause);
        assert_eq!(breaker.state(at(now)), BreakerState::Open { until });
        now += pause;
        assert_eq!(breaker.state(at(now)), BreakerState::HalfOpen);
        breaker.failed(at(now));
    }
}

#[test]
fn a_success_closes_it_and_it_starts_anew() {
    let mut breaker = opened(0);
    breaker.failed(at(10));
    breaker.succeeded(at(30));
    assert_eq!(breaker.state(at(30)), BreakerState::Closed);
    for _ in 0..4 {
        breaker.failed(at(31));
    }
    assert_eq!(breaker.state(at(31)), BreakerState::Closed);
    breaker.failed(at(31));
    assert_eq!(breaker.state(at(31)), BreakerState::Open { until: at(41) });
}

#[test]
fn an_attempt_from_before_it_opened_does_not_lengthen_the_pause() {
    let mut breaker = opened(0);
    breaker.failed(at(5));
    assert_eq!(breaker.state(at(5)), BreakerState::Open { until: at(10) });
    breaker.succeeded(at(6));
    assert_eq!(breaker.state(at(6)), BreakerState::Closed);
}

#[test]
fn an_inbound_request_allows_a_probe_and_closes_nothing() {
    let mut breaker = opened(0);
    breaker.half_open(at(5));
    assert_eq!(breaker.state(at(5)), BreakerState::HalfOpen);
    breaker.failed(at(6));
    assert_eq!(breaker.state(at(6)), BreakerState::Open { until: at(26) });
    let mut closed = Breaker::new(BreakerConfig::default());
    closed.half_open(at(5));
    assert_eq!(closed.state(at(5)), BreakerState::Closed);
}
