//! Answers that ended early, and words of the program that may tell why a turn failed.

use super::said::Place;
use super::{Claude, record::Record};
use crate::adapter::{Yield, stops};
use crate::change::Items;
use crate::event::Body;
use crate::item::ItemBody;
use crate::json::Json;
use crate::sanitize::Raw;
use crate::time::Time;

/// Longest words that wait for the next record.
const MAX_DOUBT: usize = 64 << 10;
/// How the program asks for the rest of an answer that was cut off.
const RESUME: &str = "Output token limit hit.";

/// The last answer that was told to be cut off: whose it is, and its message.
#[derive(Debug, Default)]
pub(super) struct Cut(Option<(Option<Raw>, Box<str>)>);

impl Cut {
    /// Something of this message comes: an earlier one is over.
    pub(super) fn goes_on(&mut self, message: &str, parent: Option<&Raw>) {
        self.0.take_if(|(of, told)| of.as_ref() == parent && **told != *message);
    }

    fn is_told(&self, parent: Option<&Raw>) -> bool {
        self.0.as_ref().is_some_and(|(of, _)| of.as_ref() == parent)
    }

    /// What was told before the reader began.
    pub(super) fn recall(&mut self, items: &Items) {
        let mut last = None;
        for item in items.iter() {
            let parent = item.parent.as_ref().map(|p| Raw::new(p.as_str()));
            match &item.body {
                ItemBody::Text { block_id: Some(block), .. }
                | ItemBody::Thinking { block_id: Some(block), .. } => {
                    last = block.rsplit_once(':').map(|(message, _)| message);
                    self.goes_on(last.unwrap_or_default(), parent.as_ref());
                }
                ItemBody::Notice { kind, .. } if stops::is_cut(kind) => {
                    self.0 = Some((parent, last.unwrap_or_default().into()));
                }
                _ => {}
            }
        }
    }
}

/// What the program said in the model's place without saying that it is a failure: the result of
/// the turn tells.
#[derive(Debug)]
pub(super) struct Doubt {
    message: Option<String>,
    number: u32,
    text: String,
    time: Option<Time>,
}

impl Claude {
    /// An answer that was cut off says so once, however many records it has.
    pub(super) fn stopped(
        &mut self,
        message: &str,
        reason: Option<Json<'_>>,
        parent: Option<&Raw>,
        out: &mut Yield,
    ) {
        self.cut.goes_on(message, parent);
        let note = reason.and_then(Json::str).and_then(|reason| stops::mark(&reason));
        if let Some(note) = note.filter(|note| stops::is_cut(note.kind.peek()))
            && !self.cut.is_told(parent)
        {
            self.cut.0 = Some((parent.cloned(), message.into()));
            out.push_in(parent.cloned(), Body::Notice(note));
        }
    }

    /// The turn is over: where no record of the answer told why it ended, this does.
    pub(super) fn ended(&mut self, reason: Option<&str>, out: &mut Yield) {
        let note = reason.and_then(stops::mark).filter(|note| stops::is_cut(note.kind.peek()));
        if let Some(note) = note.filter(|_| !self.cut.is_told(None)) {
            out.push(Body::Notice(note));
        }
        self.cut.0.take_if(|(of, _)| of.is_none());
    }

    /// Whether the program asks the model for the rest of an answer: then it was cut off.
    pub(super) fn resumes(&mut self, text: &str, parent: Option<&Raw>, out: &mut Yield) -> bool {
        if !text.starts_with(RESUME) {
            return false;
        }
        let note = stops::mark("max_tokens").filter(|_| !self.cut.is_told(parent));
        out.quiet += u64::from(note.is_none());
        if let Some(note) = note {
            self.cut.0 = Some((parent.cloned(), "".into()));
            out.push_in(parent.cloned(), Body::Notice(note));
        }
        true
    }

    /// Words of the program in the model's place.
    pub(super) fn program_said(
        &mut self,
        text: &str,
        kept: bool,
        place: &Place<'_>,
        out: &mut Yield,
    ) {
        if text == "No response requested." {
            return;
        }
        self.settle_doubt(out);
        if kept || place.parent.is_some() || text.len() > MAX_DOUBT {
            return self.block("text", Raw::new(text), false, place, out);
        }
        self.doubt = Some(Doubt {
            message: place.message.map(str::to_owned),
            number: place.number,
            text: text.to_owned(),
            time: out.time.clone(),
        });
    }

    /// Looks at the record behind words that may tell a failure.
    pub(super) fn doubt(&mut self, r: &Record<'_>, object: Json<'_>, out: &mut Yield) {
        let Some(doubt) = &self.doubt else { return };
        let fails = r.kind.as_deref() == Some("result") && is_failed(object);
        if fails && object.text("result").is_some_and(|result| *result == *doubt.text) {
            self.doubt = None;
        }
        self.settle_doubt(out);
    }

    /// They tell none.
    pub(super) fn settle_doubt(&mut self, out: &mut Yield) {
        let Some(Doubt { message, number, text, time }) = self.doubt.take() else { return };
        let now = std::mem::replace(&mut out.time, time);
        let place = Place { message: message.as_deref(), number, parent: None };
        self.block("text", Raw::new(text), false, &place, out);
        out.time = now;
    }
}

/// Whether a result tells that its turn failed.
pub(super) fn is_failed(result: Json<'_>) -> bool {
    result.get("is_error").and_then(Json::bool) == Some(true)
}
