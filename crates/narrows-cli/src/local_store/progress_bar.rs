//! Progress bars on standard error, if that is a terminal.

use indicatif::{HumanBytes, ProgressBar, ProgressDrawTarget, ProgressStyle};
use narrows_engine::discovery::{Progress, Sums};
use narrows_store::Store;
use std::future::Future;
use std::io::{self, IsTerminal};
use std::time::{Duration, Instant};

const REDRAWS_PER_SECOND: u8 = 8;
/// An import that is done sooner shows no bar.
const SHOW_DELAY: Duration = Duration::from_millis(400);
const IMPORT_POLL_INTERVAL: Duration = Duration::from_millis(120);
const INDEX_POLL_INTERVAL: Duration = Duration::from_millis(20);
/// Indexing that makes no progress for this long is left to the next command: on a full or damaged
/// disk it may never end.
const INDEX_STALL_TIMEOUT: Duration = Duration::from_secs(3);
/// The length of the bar, and the part of it for reading: about a third of the time.
const BAR_LENGTH: u64 = 1000;
const IMPORT_LENGTH: u64 = 350;

fn import_position(sums: Sums) -> u64 {
    let total = sums.bytes.max(sums.read);
    // The total is unknown until something is found.
    if total == 0 { 0 } else { scale(sums.read, total, IMPORT_LENGTH) }
}

fn index_position(pending: u64, max_pending: u64) -> u64 {
    let done = max_pending.saturating_sub(pending);
    IMPORT_LENGTH + scale(done, max_pending.max(1), BAR_LENGTH - IMPORT_LENGTH)
}

/// Scales `part` of `total` to `length`.
fn scale(part: u64, total: u64, length: u64) -> u64 {
    let scaled = u128::from(part) * u128::from(length) / u128::from(total.max(1));
    u64::try_from(scaled).unwrap_or(length).min(length)
}

fn bar(shown: bool, template: &str) -> ProgressBar {
    let bar = ProgressBar::hidden();
    if shown {
        bar.set_draw_target(ProgressDrawTarget::stderr_with_hz(REDRAWS_PER_SECOND));
    }
    if let Ok(style) = ProgressStyle::with_template(template) {
        bar.set_style(style);
    }
    bar
}

/// A bar that counts steps.
pub(crate) fn step_bar() -> ProgressBar {
    bar(io::stderr().is_terminal(), "{msg} {wide_bar:.dim} {pos}/{len}")
}

/// One bar for an import, from discovery to the search index.
pub(crate) struct ImportProgressBar {
    bar: ProgressBar,
    started: Instant,
}

impl ImportProgressBar {
    pub(crate) fn new(shown: bool) -> ImportProgressBar {
        let bar = bar(shown, "{msg} {wide_bar:.dim} {percent} %, {eta}");
        bar.set_length(BAR_LENGTH);
        ImportProgressBar { bar, started: Instant::now() }
    }

    fn show(&self, position: u64, message: String) {
        if self.started.elapsed() > SHOW_DELAY {
            // The total grows while sessions are discovered: the bar then stands still.
            self.bar.set_position(position.max(self.bar.position()));
            self.bar.set_message(message);
        }
    }

    /// Runs an import and shows how far it is.
    pub(crate) async fn track_import<T>(
        &self,
        import: impl Future<Output = T>,
        progress: &Progress,
    ) -> T {
        tokio::pin!(import);
        let mut interval = tokio::time::interval(IMPORT_POLL_INTERVAL);
        loop {
            tokio::select! {
                result = &mut import => return result,
                _ = interval.tick() => {
                    let sums = progress.sums();
                    let message = match (sums.done, sums.sessions) {
                        (_, 0) => "discovering sessions".to_owned(),
                        (done, all) => {
                            let (read, total) = (sums.read, sums.bytes.max(sums.read));
                            let (read, total) = (HumanBytes(read), HumanBytes(total));
                            format!("importing sessions {done}/{all}, {read} of {total}")
                        }
                    };
                    self.show(import_position(sums), message);
                }
            }
        }
    }

    /// Waits until the search index is complete, or makes no progress.
    pub(crate) async fn track_indexing(&self, store: &Store) {
        let (mut min, mut max, mut since) = (u64::MAX, 0, Instant::now());
        while let Ok(pending @ 1..) = store.waiting().await {
            max = max.max(pending);
            if pending < min {
                (min, since) = (pending, Instant::now());
            } else if store.damaged_places() > 0 || since.elapsed() > INDEX_STALL_TIMEOUT {
                break;
            }
            self.show(index_position(pending, max), format!("indexing, {pending} items left"));
            tokio::time::sleep(INDEX_POLL_INTERVAL).await;
        }
        self.show(BAR_LENGTH - 1, "closing the store".to_owned());
    }

    pub(crate) fn finish(&self) {
        self.bar.finish_and_clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_grow_over_import_and_indexing() {
        let sums = |read, bytes| Sums { read, bytes, ..Sums::default() };
        let mut all = vec![import_position(sums(0, 0))];
        all.extend((0..=10).map(|n| import_position(sums(n * 100, 1000))));
        all.extend((0..=10).rev().map(|n| index_position(n * 7, 70)));
        assert!(all.is_sorted(), "{all:?}");
        assert_eq!((all.first(), all.last()), (Some(&0), Some(&BAR_LENGTH)));
        assert!(import_position(sums(1000, 1000)) < BAR_LENGTH / 2);
        // A file that grows while it is read, and overflowing sizes.
        assert_eq!(import_position(sums(1001, 1000)), IMPORT_LENGTH);
        assert_eq!(import_position(sums(u64::MAX, u64::MAX)), IMPORT_LENGTH);
        assert_eq!(index_position(0, 0), IMPORT_LENGTH);
    }
}
