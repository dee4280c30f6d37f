//! How long a stream lasts, and signs of life in it.

use crate::auth::Stay;
use crate::hub::{self, Hub};
use std::pin::Pin;
use std::time::Duration;
use tokio::time::{Instant, Sleep};

/// Why a stream ends though there is more to tell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Over {
    /// Its token was revoked, or may see less.
    Revoked,
    /// The server ends.
    Closing,
}

impl Over {
    pub(super) fn reason(self) -> &'static str {
        match self {
            Over::Revoked => "revoked",
            Over::Closing => "closing",
        }
    }
}

/// Waits until a stream is over.
pub(super) fn over(hub: &Hub, mut stay: Stay) -> impl Future<Output = Over> + use<> {
    let mut closing = hub.closing();
    async move {
        tokio::select! {
            biased;
            () = stay.revoked() => Over::Revoked,
            () = hub::closed(&mut closing) => Over::Closing,
        }
    }
}

/// Tells when there was nothing to send for a while. Its timer is set once and looked at when it rings:
/// what is sent only notes the time.
#[derive(Debug)]
pub(super) struct Quiet {
    most: Duration,
    since: Instant,
    timer: Pin<Box<Sleep>>,
}

impl Quiet {
    pub(super) fn new(most: Duration) -> Self {
        Quiet { most, since: Instant::now(), timer: Box::pin(tokio::time::sleep(most)) }
    }

    /// Something was sent, and there is room for more.
    pub(super) fn broken(&mut self) {
        self.since = Instant::now();
    }

    /// Waits until nothing was sent for that long.
    pub(super) async fn passed(&mut self) {
        while self.since.elapsed() < self.most {
            self.timer.as_mut().await;
            self.timer.as_mut().reset((self.since + self.most).max(Instant::now()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn quiet_is_counted_from_what_was_sent_last() {
        let most = Duration::from_millis(60);
        let mut quiet = Quiet::new(most);
        for _ in 0..3 {
            let early = tokio::time::timeout(most / 3, quiet.passed()).await;
            assert!(early.is_err() || quiet.since.elapsed() >= most);
            quiet.broken();
        }
        let since = quiet.since;
        quiet.passed().await;
        assert!(since.elapsed() >= most);
        // It goes on as long as nothing is sent.
        quiet.broken();
        quiet.passed().await;
        assert!(since.elapsed() >= 2 * most);
    }
}
