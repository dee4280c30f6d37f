//! Waiting for what hardly ever happens.

use futures_util::task::AtomicWaker;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};

/// A future that is polled when it was woken, and not whenever something else that its task waits for
/// has happened. A stream that tells much waits for its token's end and for the server's in each turn of
/// its loop: for thousands of streams that adds up.
pub(crate) struct PollOnWake<F> {
    inner: Pin<Box<F>>,
    flag: Arc<WakeFlag>,
    waker: Waker,
}

struct WakeFlag {
    woken: AtomicBool,
    task: AtomicWaker,
}

impl Wake for WakeFlag {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.woken.store(true, Ordering::Release);
        self.task.wake();
    }
}

impl<F: Future> PollOnWake<F> {
    pub(crate) fn new(inner: F) -> Self {
        let flag = Arc::new(WakeFlag { woken: AtomicBool::new(true), task: AtomicWaker::new() });
        PollOnWake { inner: Box::pin(inner), waker: Waker::from(Arc::clone(&flag)), flag }
    }
}

impl<F: Future> Future for PollOnWake<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        let this = &mut *self;
        // First, so that no ring is missed.
        this.flag.task.register(cx.waker());
        if !this.flag.woken.swap(false, Ordering::Acquire) {
            return Poll::Pending;
        }
        this.inner.as_mut().poll(&mut Context::from_waker(&this.waker))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicU32;
    use std::time::Duration;
    use tokio::sync::watch;

    #[tokio::test]
    async fn poll_on_wake_without_wake_does_not_poll_inner() {
        let (polls, count) = (Arc::new(AtomicU32::new(0)), watch::Sender::new(0));
        let mut receiver = count.subscribe();
        let polled = Arc::clone(&polls);
        let mut future = PollOnWake::new(async move {
            let mut wait = Box::pin(receiver.wait_for(|n| *n == 2));
            std::future::poll_fn(|cx| {
                polled.fetch_add(1, Ordering::Relaxed);
                wait.as_mut().poll(cx).map(|n| n.is_ok())
            })
            .await
        });
        for _ in 0..100 {
            tokio::select! {
                biased;
                _ = &mut future => panic!("nothing has happened"),
                () = tokio::task::yield_now() => {}
            }
        }
        assert_eq!(polls.load(Ordering::Relaxed), 1);
        let later = async {
            for n in 1..=2 {
                tokio::time::sleep(Duration::from_millis(5)).await;
                count.send_replace(n);
            }
        };
        // Whoever waits is woken, also when it is another task than before.
        let (there, ()) = tokio::join!(tokio::spawn(future), later);
        assert!(there.expect("no panic"));
        assert_eq!(polls.load(Ordering::Relaxed), 3);
    }
}
