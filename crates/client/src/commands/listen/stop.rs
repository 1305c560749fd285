//! The signals that end a listener.

use tokio::sync::watch;

/// Turns true at the first signal.
#[derive(Debug)]
pub(in crate::commands) struct Stopped(watch::Receiver<bool>);

impl Stopped {
    /// Waits for the signal. Safe to abandon and to ask again.
    pub(in crate::commands) async fn wait(&mut self) {
        // The sender lives as long as the process.
        drop(self.0.wait_for(|stopped| *stopped).await);
    }
}

/// Listens for SIGINT and SIGTERM from here on. A second one ends the process at once.
pub(in crate::commands) fn on_signal() -> std::io::Result<Stopped> {
    let (sender, receiver) = watch::channel(false);
    let mut signals = Signals::new()?;
    tokio::spawn(async move {
        signals.next().await;
        sender.send_replace(true);
        signals.next().await;
        std::process::exit(130);
    });
    Ok(Stopped(receiver))
}

#[cfg(unix)]
struct Signals {
    interrupt: tokio::signal::unix::Signal,
    terminate: tokio::signal::unix::Signal,
}

#[cfg(unix)]
impl Signals {
    fn new() -> std::io::Result<Self> {
        use tokio::signal::unix::{SignalKind, signal};
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
        })
    }

    async fn next(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }
}

#[cfg(not(unix))]
struct Signals;

#[cfg(not(unix))]
impl Signals {
    fn new() -> std::io::Result<Self> {
        Ok(Self)
    }

    async fn next(&mut self) {
        drop(tokio::signal::ctrl_c().await);
    }
}
