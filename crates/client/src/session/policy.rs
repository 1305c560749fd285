//! What to do when a session ends. Pure: how it ended and how long it lived go in, a decision comes out.

use std::fmt;
use std::time::Duration;

use crate::backoff::Backoff;
use crate::entropy::Entropy;
use crate::error::{Error, Problem};
use crate::limits::{AUTH_FAILURES_MAX, SESSION_STEADY};

/// How a session ended.
#[derive(Debug)]
pub(crate) enum End {
    /// The application is done with it.
    Done,
    /// It never opened.
    NotOpened(Error),
    /// The hub closed it, with this code.
    Closed(u16),
    /// The line broke, or the hub fell silent.
    Broken(String),
    /// The mailbox has another epoch than the session: its store was restored or made anew meanwhile.
    Moved,
}

impl fmt::Display for End {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Done => f.write_str("done"),
            Self::NotOpened(error) => f.write_str(&error.sentence()),
            Self::Closed(code) => write!(f, "closed with {code}"),
            Self::Broken(why) => write!(f, "broken: {why}"),
            Self::Moved => f.write_str("the mailbox has a new epoch"),
        }
    }
}

/// What a listener does when another session of the same agent takes over (close code 4409).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OnReplaced {
    /// Stops with [`Error::Replaced`]. Two processes that both listen would otherwise take turns for ever.
    #[default]
    Stop,
    /// Comes back after a pause that starts at up to 30 s and doubles: for the successor of a process that died.
    ComeBack,
}

/// What to do next.
#[derive(Debug)]
pub(crate) enum Next {
    Stop(Error),
    Wait { delay: Duration, reload_keys: bool },
}

/// Remembers how the last sessions ended.
#[derive(Debug, Clone)]
pub(crate) struct Reconnect {
    backoff: Backoff,
    on_replaced: OnReplaced,
    failures: u32,
    replaced: u32,
    auth_failures: u32,
    /// Whether a session was ever open, so that the URL is known to be that of the hub.
    has_opened: bool,
}

impl Reconnect {
    pub(crate) fn new(backoff: Backoff, on_replaced: OnReplaced) -> Self {
        Self {
            backoff,
            on_replaced,
            failures: 0,
            replaced: 0,
            auth_failures: 0,
            has_opened: false,
        }
    }

    /// `lived` is the time since the attempt to open it began.
    pub(crate) fn after(&mut self, end: End, lived: Duration, entropy: &Entropy) -> Next {
        let opened = !matches!(end, End::NotOpened(_));
        if opened {
            self.has_opened = true;
            self.auth_failures = 0;
            if lived >= SESSION_STEADY {
                (self.failures, self.replaced) = (0, 0);
            }
        }
        match end {
            End::Done => Next::Stop(Error::Closed),
            End::Closed(4409) | End::NotOpened(Error::Replaced) => self.after_takeover(entropy),
            End::Closed(4401) => {
                let problem = Problem::new("token_invalid", "the hub ended the authentication");
                self.after_auth_failure(Error::Refused(Box::new(problem)), entropy)
            }
            End::Closed(4429) => {
                // Too fast is not mended by trying at the usual pace.
                self.failures = self.failures.saturating_add(3);
                self.wait(None, entropy)
            }
            End::Closed(_) | End::Broken(_) | End::Moved => self.wait(None, entropy),
            End::NotOpened(error) => self.after_failure(error, entropy),
        }
    }

    fn after_failure(&mut self, error: Error, entropy: &Entropy) -> Next {
        match &error {
            Error::Refused(problem) if problem.is_transient() => self.wait(error.retry_after(), entropy),
            // A proxy that has no hub to ask answers as it likes: 404, 403, a redirect to a page that says sorry.
            Error::Refused(problem) if self.has_opened && !problem.is_of_hub() => {
                self.wait(error.retry_after(), entropy)
            }
            Error::Refused(problem) if is_auth(problem) => self.after_auth_failure(error, entropy),
            Error::Unreachable { .. } | Error::Answer { .. } => self.wait(None, entropy),
            _ => Next::Stop(error),
        }
    }

    /// The challenge may have run out on a slow line, or another process has rotated the keys: worth another look.
    fn after_auth_failure(&mut self, error: Error, entropy: &Entropy) -> Next {
        self.auth_failures += 1;
        if self.auth_failures >= AUTH_FAILURES_MAX {
            return Next::Stop(error);
        }
        match self.wait(None, entropy) {
            Next::Wait { delay, .. } => Next::Wait {
                delay,
                reload_keys: true,
            },
            stop @ Next::Stop(_) => stop,
        }
    }

    fn after_takeover(&mut self, entropy: &Entropy) -> Next {
        self.replaced = self.replaced.saturating_add(1);
        match self.on_replaced {
            OnReplaced::Stop => Next::Stop(Error::Replaced),
            OnReplaced::ComeBack => {
                // Half of the pause is certain: two that come back must not do so at speed, whatever they draw.
                let ceiling = Backoff::REPLACED.ceiling(self.replaced);
                let delay = ceiling / 2 + entropy.up_to(ceiling / 2);
                Next::Wait {
                    delay,
                    reload_keys: false,
                }
            }
        }
    }

    fn wait(&mut self, retry_after: Option<Duration>, entropy: &Entropy) -> Next {
        self.failures = self.failures.saturating_add(1);
        Next::Wait {
            delay: self.backoff.delay(self.failures, retry_after, entropy),
            reload_keys: false,
        }
    }
}

fn is_auth(problem: &Problem) -> bool {
    matches!(
        problem.code.as_str(),
        "token_invalid" | "challenge_invalid" | "key_unknown" | "signature_invalid"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHORT: Duration = Duration::from_secs(1);

    fn reconnect(on_replaced: OnReplaced) -> Reconnect {
        Reconnect::new(
            Backoff {
                base: Duration::from_secs(1),
                cap: Duration::from_mins(1),
            },
            on_replaced,
        )
    }

    fn delay(next: &Next) -> Duration {
        match next {
            Next::Wait { delay, .. } => *delay,
            Next::Stop(error) => panic!("stopped: {error}"),
        }
    }

    fn refused(code: &str) -> End {
        End::NotOpened(Error::Refused(Box::new(Problem::new(code, ""))))
    }

    #[test]
    fn row_32_two_clients_of_one_agent_do_not_evict_each_other_at_speed() {
        let entropy = Entropy::system();
        let stopped = reconnect(OnReplaced::Stop).after(End::Closed(4409), SHORT, &entropy);
        assert!(matches!(stopped, Next::Stop(Error::Replaced)));
        let mut damped = reconnect(OnReplaced::ComeBack);
        let mut total = Duration::ZERO;
        for _ in 0..4 {
            total += delay(&damped.after(End::Closed(4409), SHORT, &entropy));
        }
        // 15 + 30 + 60 + 120 s at least: in 60 s there is room for three takeovers, not for forty a second.
        assert!(total >= Duration::from_secs(225), "{total:?}");
    }

    #[test]
    fn row_43_a_dropped_session_is_opened_again_every_time() {
        let entropy = Entropy::system();
        let mut reconnect = reconnect(OnReplaced::Stop);
        for _ in 0..1000 {
            assert!(delay(&reconnect.after(End::Closed(1001), SHORT, &entropy)) <= Duration::from_mins(1));
            assert!(
                delay(&reconnect.after(End::Broken(String::new()), SHORT, &entropy))
                    <= Duration::from_mins(1)
            );
        }
    }

    #[test]
    fn a_session_that_held_starts_the_delays_anew() {
        let entropy = Entropy::system();
        let mut reconnect = reconnect(OnReplaced::Stop);
        for _ in 0..10 {
            delay(&reconnect.after(End::Closed(1006), SHORT, &entropy));
        }
        let after_long = delay(&reconnect.after(End::Closed(1006), SESSION_STEADY, &entropy));
        assert!(after_long <= Duration::from_secs(1), "{after_long:?}");
    }

    #[test]
    fn a_refused_authentication_is_tried_again_with_fresh_keys_but_not_for_ever() {
        let entropy = Entropy::system();
        let mut reconnect = reconnect(OnReplaced::Stop);
        for _ in 0..2 {
            let next = reconnect.after(refused("key_unknown"), SHORT, &entropy);
            assert!(matches!(
                next,
                Next::Wait {
                    reload_keys: true,
                    ..
                }
            ));
        }
        assert!(matches!(
            reconnect.after(refused("key_unknown"), SHORT, &entropy),
            Next::Stop(Error::Refused(_))
        ));
    }

    #[test]
    fn a_hub_that_is_away_is_waited_for_for_ever_and_its_wish_is_honoured() {
        let entropy = Entropy::system();
        let mut reconnect = reconnect(OnReplaced::Stop);
        for status in [502, 503, 504, 429, 520].into_iter().cycle().take(500) {
            let mut problem = Problem::new(format!("http_{status}"), "");
            (problem.status, problem.retry_after_secs) = (status, Some(7));
            let next = reconnect.after(End::NotOpened(Error::Refused(Box::new(problem))), SHORT, &entropy);
            let waits = delay(&next);
            assert!(
                waits >= Duration::from_secs(7) && waits <= Duration::from_secs(67),
                "{waits:?}"
            );
        }
    }

    #[test]
    fn a_proxy_s_404_ends_a_listener_that_never_was_open_and_no_other() {
        let entropy = Entropy::system();
        let mut reconnect = reconnect(OnReplaced::Stop);
        assert!(matches!(
            reconnect.after(refused("http_404"), SHORT, &entropy),
            Next::Stop(_)
        ));
        delay(&reconnect.after(End::Closed(1001), SHORT, &entropy));
        for _ in 0..100 {
            delay(&reconnect.after(refused("http_404"), SHORT, &entropy));
        }
        assert!(matches!(
            reconnect.after(refused("sender_deactivated"), SHORT, &entropy),
            Next::Stop(_)
        ));
    }

    #[test]
    fn a_mailbox_that_moved_is_opened_again() {
        let next = reconnect(OnReplaced::Stop).after(End::Moved, SHORT, &Entropy::system());
        assert!(delay(&next) <= Duration::from_secs(1));
    }

    #[test]
    fn what_waiting_does_not_mend_stops_at_once() {
        let entropy = Entropy::system();
        for code in ["sender_deactivated", "sender_unknown", "http_404"] {
            assert!(matches!(
                reconnect(OnReplaced::Stop).after(refused(code), SHORT, &entropy),
                Next::Stop(_)
            ));
        }
        let waits = reconnect(OnReplaced::Stop).after(refused("unavailable"), SHORT, &entropy);
        assert!(matches!(
            waits,
            Next::Wait {
                reload_keys: false,
                ..
            }
        ));
    }
}
