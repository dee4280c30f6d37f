//! How long a stream lasts, and signs of life in it.

use crate::auth::StreamPermit;
use narrows_engine::live::{self, Hub};
use std::pin::Pin;
use std::time::Duration;
use tokio::time::{Instant, Sleep};

/// Why a stream ends though there is more to tell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CloseReason {
    /// Its token was revoked, or may see less.
    Revoked,
    /// The server ends.
    Closing,
}

impl CloseReason {
    pub(super) fn reason(self) -> &'static str {
        match self {
            CloseReason::Revoked => "revoked",
            CloseReason::Closing => "closing",
        }
    }
}

/// Waits until a stream is over.
pub(super) fn closed(
    hub: &Hub,
    mut permit: StreamPermit,
) -> impl Future<Output = CloseReason> + use<> {
    let mut closing = hub.closing();
    async move {
        tokio::select! {
            biased;
            () = permit.revoked() => CloseReason::Revoked,
            () = live::closed(&mut closing) => CloseReason::Closing,
        }
    }
}

/// Tells when there was nothing to send for a while. Its timer is set once and looked at when it rings:
/// what is sent only notes the time.
#[derive(Debug)]
pub(super) struct KeepAlive {
    timeout: Duration,
    since: Instant,
    timer: Pin<Box<Sleep>>,
}

impl KeepAlive {
    pub(super) fn new(timeout: Duration) -> Self {
        KeepAlive { timeout, since: Instant::now(), timer: Box::pin(tokio::time::sleep(timeout)) }
    }

    /// Something was sent, and there is room for more.
    pub(super) fn reset(&mut self) {
        self.since = Instant::now();
    }

    /// Waits until nothing was sent for that long.
    pub(super) async fn expired(&mut self) {
        while self.since.elapsed() < self.timeout {
            self.timer.as_mut().await;
            self.timer.as_mut().reset((self.since + self.timeout).max(Instant::now()));
        }
    }
}

/// What a socket has to do for its life.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum HeartbeatAction {
    /// Ask for a sign of life.
    Ping,
    /// Nothing was heard since it was asked for one.
    Dead,
}

/// Asks the other side of a socket for a sign of life now and then. Whatever is heard after that is one,
/// however soon it comes. Its timer is set when it rings: what is heard only notes that it was.
#[derive(Debug)]
pub(super) struct Heartbeat {
    interval: Duration,
    timeout: Duration,
    ask: Instant,
    /// Until when something must be heard; nothing while nobody was asked.
    due: Option<Instant>,
    timer: Pin<Box<Sleep>>,
}

impl Heartbeat {
    pub(super) fn new(interval: Duration, timeout: Duration) -> Self {
        let ask = Instant::now() + interval;
        Heartbeat {
            interval,
            timeout,
            ask,
            due: None,
            timer: Box::pin(tokio::time::sleep_until(ask)),
        }
    }

    /// Something came from the other side.
    pub(super) fn on_message(&mut self) {
        self.due = None;
    }

    /// Nobody listened since `began`, since something was sent: that time does not count.
    pub(super) fn exclude_since(&mut self, began: Instant) {
        if let Some(due) = &mut self.due {
            *due += began.elapsed();
        }
    }

    /// Waits until there is something to do.
    pub(super) async fn next(&mut self) -> HeartbeatAction {
        loop {
            self.timer.as_mut().await;
            let now = Instant::now();
            if self.due.is_some_and(|due| now >= due) {
                return HeartbeatAction::Dead;
            }
            let asks = now >= self.ask;
            if asks {
                self.ask = now + self.interval;
                self.due.get_or_insert(now + self.timeout);
            }
            self.timer.as_mut().reset(self.due.map_or(self.ask, |due| due.min(self.ask)));
            if asks {
                return HeartbeatAction::Ping;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const INTERVAL: Duration = Duration::from_secs(25);
    const TIMEOUT: Duration = Duration::from_secs(8);

    #[tokio::test(start_paused = true)]
    async fn heartbeat_with_replies_never_expires() {
        let mut heartbeat = Heartbeat::new(INTERVAL, TIMEOUT);
        for answer in [0, 1, 3999, 7999] {
            for _ in 0..1000 {
                assert_eq!(
                    heartbeat.next().await,
                    HeartbeatAction::Ping,
                    "an answer after {answer} ms"
                );
                tokio::time::sleep(Duration::from_millis(answer)).await;
                heartbeat.on_message();
            }
        }
    }

    #[tokio::test(start_paused = true)]
    async fn heartbeat_without_reply_expires_after_timeout() {
        let (mut heartbeat, began) = (Heartbeat::new(INTERVAL, TIMEOUT), Instant::now());
        // What was heard before it was asked is no answer.
        tokio::time::sleep(INTERVAL.saturating_sub(Duration::from_millis(1))).await;
        heartbeat.on_message();
        assert_eq!((heartbeat.next().await, began.elapsed()), (HeartbeatAction::Ping, INTERVAL));
        assert_eq!(
            (heartbeat.next().await, began.elapsed()),
            (HeartbeatAction::Dead, INTERVAL + TIMEOUT)
        );
    }

    #[tokio::test(start_paused = true)]
    async fn heartbeat_excludes_time_spent_sending() {
        let mut heartbeat = Heartbeat::new(INTERVAL, TIMEOUT);
        assert_eq!(heartbeat.next().await, HeartbeatAction::Ping);
        let sending = Instant::now();
        tokio::time::sleep(TIMEOUT * 2).await;
        heartbeat.exclude_since(sending);
        let listening = Instant::now();
        assert_eq!((heartbeat.next().await, listening.elapsed()), (HeartbeatAction::Dead, TIMEOUT));
    }

    #[tokio::test]
    async fn keep_alive_expires_after_last_send() {
        let most = Duration::from_millis(60);
        let mut keep_alive = KeepAlive::new(most);
        for _ in 0..3 {
            let early = tokio::time::timeout(most / 3, keep_alive.expired()).await;
            assert!(early.is_err() || keep_alive.since.elapsed() >= most);
            keep_alive.reset();
        }
        let since = keep_alive.since;
        keep_alive.expired().await;
        assert!(since.elapsed() >= most);
        // It goes on as long as nothing is sent.
        keep_alive.reset();
        keep_alive.expired().await;
        assert!(since.elapsed() >= 2 * most);
    }
}
