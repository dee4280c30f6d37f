//! How far reading is, on a terminal: from looking for sessions until all of them can be searched.

use super::PATIENCE;
use indicatif::{HumanBytes, ProgressBar, ProgressDrawTarget, ProgressStyle};
use narrows_server::source::{Progress, Sums};
use narrows_store::Store;
use std::future::Future;
use std::time::{Duration, Instant};

/// Reading that is over sooner is not worth a word.
const SOON: Duration = Duration::from_millis(400);
/// The length of the bar, and how much of it is reading: about a third of the time.
const WHOLE: u64 = 1000;
const READING: u64 = 350;

/// How far reading is, as a part of the whole.
fn reading(sums: Sums) -> u64 {
    let all = sums.bytes.max(sums.read);
    // Nothing is known before something was found.
    if all == 0 { 0 } else { share(sums.read, all, READING) }
}

/// How far it is when of `most` items that waited for the index so many still do.
fn indexing(waiting: u64, most: u64) -> u64 {
    READING + share(most.saturating_sub(waiting), most.max(1), WHOLE - READING)
}

fn share(part: u64, all: u64, of: u64) -> u64 {
    u64::try_from(u128::from(part) * u128::from(of) / u128::from(all.max(1))).unwrap_or(of).min(of)
}

/// The bar.
pub(super) struct Bar {
    bar: ProgressBar,
    began: Instant,
}

impl Bar {
    pub(super) fn new(shown: bool) -> Bar {
        let bar = ProgressBar::hidden();
        if shown {
            bar.set_draw_target(ProgressDrawTarget::stderr_with_hz(8));
        }
        if let Ok(style) = ProgressStyle::with_template("{msg} {wide_bar:.dim} {percent} %, {eta}")
        {
            bar.set_style(style);
        }
        bar.set_length(WHOLE);
        Bar { bar, began: Instant::now() }
    }

    fn show(&self, at: u64, words: String) {
        if self.began.elapsed() > SOON {
            // What is found on the way makes the whole longer: the bar stands still then.
            self.bar.set_position(at.max(self.bar.position()));
            self.bar.set_message(words);
        }
    }

    pub(super) async fn over<T>(&self, work: impl Future<Output = T>, progress: &Progress) -> T {
        tokio::pin!(work);
        let mut every = tokio::time::interval(Duration::from_millis(120));
        loop {
            tokio::select! {
                done = &mut work => return done,
                _ = every.tick() => {
                    let sums = progress.sums();
                    let words = match (sums.done, sums.sessions) {
                        (_, 0) => "looking for sessions".to_owned(),
                        (done, all) => {
                            let size = HumanBytes(sums.bytes.max(sums.read));
                            format!("reading sessions {done}/{all}, {} of {size}", HumanBytes(sums.read))
                        }
                    };
                    self.show(reading(sums), words);
                }
            }
        }
    }

    pub(super) async fn indexing(&self, store: &Store) {
        let (mut least, mut most, mut since) = (u64::MAX, 0, Instant::now());
        while let Ok(waiting @ 1..) = store.waiting().await {
            most = most.max(waiting);
            // On a disk that is full or damaged it may never come to an end.
            if waiting < least {
                (least, since) = (waiting, Instant::now());
            } else if store.damaged_places() > 0 || since.elapsed() > PATIENCE {
                break;
            }
            self.show(indexing(waiting, most), format!("making them searchable, {waiting} left"));
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        self.show(WHOLE - 1, "closing the store".to_owned());
    }

    pub(super) fn end(&self) {
        self.bar.finish_and_clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_whole_time_is_one_bar() {
        let sums = |read, bytes| Sums { read, bytes, ..Sums::default() };
        let mut all = vec![reading(sums(0, 0))];
        all.extend((0..=10).map(|n| reading(sums(n * 100, 1000))));
        all.extend((0..=10).rev().map(|n| indexing(n * 7, 70)));
        assert!(all.is_sorted(), "{all:?}");
        assert_eq!((all.first(), all.last()), (Some(&0), Some(&WHOLE)));
        // Reading is not all of it.
        assert!(reading(sums(1000, 1000)) < WHOLE / 2);
        // What grows while it is read, and sizes beyond all bounds.
        assert_eq!(reading(sums(1001, 1000)), READING);
        assert_eq!(reading(sums(u64::MAX, u64::MAX)), READING);
        assert_eq!(indexing(0, 0), READING);
    }
}
