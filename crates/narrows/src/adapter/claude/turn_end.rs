//! The ends of turns.

use super::attachment::turn_limit_notice;
use super::record::ClaudeRecord;
use super::truncation::is_error_result;
use super::usage::parse_usage;
use super::{ClaudeParser, unknown};
use crate::adapter::output::AdapterOutput;
use crate::adapter::stop_notice;
use crate::json::{Json, Kind};
use crate::model::event::{Body, TurnEnd};
use crate::sanitize::Raw;
use std::borrow::Cow;

impl ClaudeParser {
    /// Ends a turn by the stop reason of its last message: session files contain no result. A
    /// truncated or refused message need not be the last: the program may ask the model to continue.
    pub(super) fn end_turn_of_message(
        &mut self,
        message: &str,
        reason: Option<Json<'_>>,
        out: &mut AdapterOutput,
    ) {
        let reason = reason.and_then(Json::str);
        let Some(reason) = reason.filter(|r| matches!(&**r, "end_turn" | "stop_sequence")) else {
            return;
        };
        if self.last_message.as_deref() != Some(message) {
            self.last_message = Some(message.into());
            out.push(Body::PromptResponse(Box::new(TurnEnd {
                stop_reason: Some(Raw::new(reason)),
                ..TurnEnd::default()
            })));
        }
    }

    /// Ends a turn that the program ended.
    pub(super) fn end_turn_early(&mut self, reason: &'static str, out: &mut AdapterOutput) {
        self.last_message = Some("".into());
        let stop_reason = Some(Raw::new(reason));
        out.push(Body::PromptResponse(Box::new(TurnEnd { stop_reason, ..TurnEnd::default() })));
    }

    /// Reopens the turn when a record of another message follows.
    pub(super) fn continue_turn(&mut self, message: Option<&str>, parent: Option<&Raw>) {
        if parent.is_none() {
            self.last_message.take_if(|last| message != Some(last));
        }
    }

    /// Handles the result of a turn.
    pub(super) fn result(
        &mut self,
        r: &ClaudeRecord<'_>,
        object: Json<'_>,
        out: &mut AdapterOutput,
    ) {
        let Some(subtype) = r.subtype.as_deref() else {
            return unknown("result", object, out);
        };
        self.close_compaction(out);
        let text = |name: &str| object.text(name);
        let terminal_reason = text("terminal_reason").unwrap_or_default();
        let stop_reason = text("stop_reason");
        let is_aborted = terminal_reason.starts_with("aborted");
        let is_error = is_error_result(object);
        let error_messages = || {
            let errors = object.get("errors").into_iter().flat_map(Json::items);
            errors.filter_map(Json::str).collect::<Vec<_>>().join("\n")
        };
        let mut error = None;
        let stop_reason = match subtype {
            _ if is_aborted => Some("cancelled".to_owned()),
            "success" if is_error => {
                error = Some(text("result").unwrap_or_default().into_owned());
                Some("error".to_owned())
            }
            "success" => {
                self.end_truncation(stop_reason.as_deref(), out);
                stop_reason.map(Cow::into_owned)
            }
            "error_max_turns" => {
                turn_limit_notice(None, out);
                Some("max_turns".to_owned())
            }
            "error_max_budget_usd" => {
                stop_notice::notice_for("max_budget")
                    .into_iter()
                    .for_each(|note| out.push(Body::Notice(note)));
                Some("max_budget".to_owned())
            }
            // Older versions report an interruption by the user like this.
            "error_during_execution" if error_messages().is_empty() => Some("cancelled".to_owned()),
            _ if subtype.starts_with("error") => {
                error = Some(error_messages());
                Some("error".to_owned())
            }
            other => Some(other.to_owned()),
        };
        // A failure without a message is shown too.
        let default_message = || format!("The turn failed: {}.", subtype.replace('_', " "));
        let error = error.map(|text| match (text.is_empty(), subtype) {
            (false, _) => text,
            (true, "success") => "The turn failed, and the agent does not say why.".to_owned(),
            (true, _) => default_message(),
        });
        let usage = object.get("usage").filter(|u| u.kind() == Kind::Object).map(parse_usage);
        let cost_usd = object.get("total_cost_usd").and_then(Json::f64);
        self.usage.cost = cost_usd;
        out.push(Body::PromptResponse(Box::new(TurnEnd {
            stop_reason: stop_reason.map(Raw::new),
            usage,
            failed: self.last_message.take().is_some(),
            error: error.map(Raw::new),
            // Older versions report the usage with each message, and here the sum of several turns.
            usage_is_exact: !self.is_before_2_1(),
            cost_usd,
            duration_ms: object.get("duration_ms").and_then(Json::u64),
        })));
    }
}
