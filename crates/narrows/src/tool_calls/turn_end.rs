//! Turns that fail: each has one error, whoever tells it.

use super::Calls;
use crate::model::event::{Body, Event, Failure, Response};
use crate::model::id::EventId;
use crate::model::time::Time;
use crate::sanitize::Clean;

impl Calls {
    /// The end of a turn: an error that only it tells comes before it, and one that was told is not
    /// told again.
    pub(super) fn fail_late(
        &mut self,
        response: &mut Response<Clean>,
        time: Option<&Time>,
        out: &mut Vec<Event>,
    ) {
        if let Some(message) = response.error.take().filter(|_| !self.failed) {
            let (code, details, retryable) = (None, None, None);
            let failure = Failure { message, code, details, retryable, is_end: false };
            let (id, began) = (EventId::default(), EventId::default());
            let body = Body::Error(Box::new(failure));
            self.merge(Event { id, began, time: time.cloned(), parent: None, body }, out);
        }
        response.failed = std::mem::take(&mut self.failed);
    }
}
