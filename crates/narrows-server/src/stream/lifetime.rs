//! How long a stream lasts, and signs of life in it.

use crate::auth::Stay;
use narrows_engine::live::{self, Hub};
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
            () = live::closed(&mut closing) => Over::Closing,
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

/// What a socket has to do for its life.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Beat {
    /// Ask for a sign of life.
    Ask,
    /// Nothing was heard since it was asked for one.
    Dead,
}

/// Asks the other side of a socket for a sign of life now and then. Whatever is heard after that is one,
/// however soon it comes. Its timer is set when it rings: what is heard only notes that it was.
#[derive(Debug)]
pub(super) struct Pulse {
    every: Duration,
    patience: Duration,
    ask: Instant,
    /// Until when something must be heard; nothing while nobody was asked.
    due: Option<Instant>,
    timer: Pin<Box<Sleep>>,
}

impl Pulse {
    pub(super) fn new(every: Duration, patience: Duration) -> Self {
        let ask = Instant::now() + every;
        Pulse { every, patience, ask, due: None, timer: Box::pin(tokio::time::sleep_until(ask)) }
    }

    /// Something came from the other side.
    pub(super) fn heard(&mut self) {
        self.due = None;
    }

    /// Nobody listened since `began`, since something was sent: that time does not count.
    pub(super) fn was_deaf(&mut self, began: Instant) {
        if let Some(due) = &mut self.due {
            *due += began.elapsed();
        }
    }

    /// Waits until there is something to do.
    pub(super) async fn next(&mut self) -> Beat {
        loop {
            self.timer.as_mut().await;
            let now = Instant::now();
            if self.due.is_some_and(|due| now >= due) {
                return Beat::Dead;
            }
            let asks = now >= self.ask;
            if asks {
                self.ask = now + self.every;
                self.due.get_or_insert(now + self.patience);
            }
            self.timer.as_mut().reset(self.due.map_or(self.ask, |due| due.min(self.ask)));
            if asks {
                return Beat::Ask;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const EVERY: Duration = Duration::from_secs(25);
    const PATIENCE: Duration = Duration::from_secs(8);

    #[tokio::test(start_paused = true)]
    async fn whoever_answers_lives_for_ever() {
        let mut pulse = Pulse::new(EVERY, PATIENCE);
        for answer in [0, 1, 3999, 7999] {
            for _ in 0..1000 {
                assert_eq!(pulse.next().await, Beat::Ask, "an answer after {answer} ms");
                tokio::time::sleep(Duration::from_millis(answer)).await;
                pulse.heard();
            }
        }
    }

    #[tokio::test(start_paused = true)]
    async fn whoever_does_not_answer_is_dead() {
        let (mut pulse, began) = (Pulse::new(EVERY, PATIENCE), Instant::now());
        // What was heard before it was asked is no answer.
        tokio::time::sleep(EVERY.saturating_sub(Duration::from_millis(1))).await;
        pulse.heard();
        assert_eq!((pulse.next().await, began.elapsed()), (Beat::Ask, EVERY));
        assert_eq!((pulse.next().await, began.elapsed()), (Beat::Dead, EVERY + PATIENCE));
    }

    #[tokio::test(start_paused = true)]
    async fn the_time_in_which_nobody_listened_does_not_count() {
        let mut pulse = Pulse::new(EVERY, PATIENCE);
        assert_eq!(pulse.next().await, Beat::Ask);
        let sending = Instant::now();
        tokio::time::sleep(PATIENCE * 2).await;
        pulse.was_deaf(sending);
        let listening = Instant::now();
        assert_eq!((pulse.next().await, listening.elapsed()), (Beat::Dead, PATIENCE));
    }

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
