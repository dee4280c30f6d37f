//! The output of a call: merged into the state, and cut down to what is new.

use crate::model::tool::{ChangedFields, ToolCall, ToolKind, ToolOutput};

/// Copies the texts of the first diff into the call; the output of an edit is its new text.
pub(super) fn derive_edit_texts(call: &ToolCall, update: &mut ToolCall) {
    if let Some(first) = update.diffs.as_ref().and_then(|list| list.first()) {
        update.old_content.clone_from(&first.old_text);
        update.new_content.clone_from(&first.new_text);
    }
    if call.kind == ToolKind::Edit {
        match &update.new_content {
            Some(text) => update.output = Some(ToolOutput::Whole(text.clone())),
            // "Wrote file successfully." says less than the text that was written.
            None if call.new_content.is_some() => update.output = None,
            None => {}
        }
    }
}

/// Merges output. Returns where the new part starts if a full output repeats the old one and extends it.
pub(super) fn merge_output(
    call: &mut ToolCall,
    update: Option<ToolOutput>,
    changed: &mut ChangedFields,
) -> Option<usize> {
    let old = match &mut call.output {
        Some(ToolOutput::Whole(old)) => Some(old),
        _ => None,
    };
    match (old, update) {
        (_, None) => None,
        (Some(old), Some(ToolOutput::Whole(new))) if *old == new => None,
        (Some(old), Some(ToolOutput::Whole(new)))
            if !old.is_empty() && new.starts_with(old.as_str()) =>
        {
            changed.mark_output();
            let from = old.len();
            *old = new;
            Some(from)
        }
        (_, Some(ToolOutput::Whole(new))) => {
            changed.mark_output();
            call.output = Some(ToolOutput::Whole(new));
            None
        }
        (_, Some(ToolOutput::More(more))) if more.is_empty() => None,
        (Some(old), Some(ToolOutput::More(more))) => {
            changed.mark_output();
            let from = old.len();
            old.push(&more);
            Some(from)
        }
        // The start of the output was too long to retain.
        (None, Some(ToolOutput::More(more))) => {
            changed.mark_output();
            call.output = Some(ToolOutput::More(more));
            None
        }
    }
}

/// The part of the output that the next event has to carry.
pub(super) fn take_delta(call: &mut ToolCall, output_from: Option<usize>) -> Option<ToolOutput> {
    match (&call.output, output_from) {
        (Some(ToolOutput::Whole(text)), Some(from)) => text.after(from).map(ToolOutput::More),
        // Taken out of the state, so that the next piece is not appended to this one.
        (Some(ToolOutput::More(_)), _) => call.output.take(),
        (output, _) => output.clone(),
    }
}
