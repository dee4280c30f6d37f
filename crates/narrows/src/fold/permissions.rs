//! Permission requests: items while they are open, and a note on the call once they are decided.

use super::Fold;
use crate::model::change::Change;
use crate::model::event::{Event, PermissionDecision, PermissionRequest};
use crate::model::item::{Item, ItemBody, ToolItem};
use crate::model::tool::Permission;
use crate::sanitize::Clean;

/// Requests that may be open at once; more drop the oldest one.
const MAX_OPEN_PERMISSIONS: usize = 2 * crate::limits::REQUESTS;

/// A permission request without a decision.
#[derive(Debug)]
pub(super) struct OpenPermission {
    pub(super) item: Clean,
    pub(super) request: Clean,
    pub(super) call: Clean,
}

impl Fold {
    pub(super) fn fold_permission_request(
        &mut self,
        event: &Event,
        request: &PermissionRequest,
        out: &mut Vec<Change>,
    ) {
        self.close_permissions(out, |open| open.request == request.request_id);
        let item = self.item_id("permission", event);
        let tool_item = |call| ToolItem { id: request.tool_call_id.clone(), call };
        let body = ItemBody::Permission {
            request_id: request.request_id.clone(),
            tool_call_id: request.tool_call_id.clone(),
            title: request.title.clone(),
            options: request.options.clone(),
            tool_call: request.call.as_deref().cloned().map(tool_item).map(Box::new),
        };
        self.put_item(event, item.clone(), body, out);
        let (request, call) = (request.request_id.clone(), request.tool_call_id.clone());
        self.open_permissions.push(OpenPermission { item, request, call });
        if self.open_permissions.len() > MAX_OPEN_PERMISSIONS {
            let oldest = self.open_permissions.remove(0);
            out.push(Change::Remove { id: oldest.item });
        }
    }

    /// Removes the item of a decided request; the decision stays on its call.
    pub(super) fn fold_permission_decision(
        &mut self,
        answer: &PermissionDecision,
        out: &mut Vec<Change>,
    ) {
        self.close_permissions(out, |open| open.request == answer.request_id);
        if let Some(open) = self.open_calls.get_mut(&answer.tool_call_id) {
            let set = open.set_permission(Permission::from(answer));
            out.push(Change::Set { id: answer.tool_call_id.clone(), set });
        }
    }

    /// Removes the items of the open requests that match.
    pub(super) fn close_permissions(
        &mut self,
        out: &mut Vec<Change>,
        matches: impl Fn(&OpenPermission) -> bool,
    ) {
        self.open_permissions.retain(|open| {
            let closes = matches(open);
            if closes {
                out.push(Change::Remove { id: open.item.clone() });
            }
            !closes
        });
    }

    pub(super) fn resume_permission(&mut self, item: &Item) {
        if let ItemBody::Permission { request_id, tool_call_id, .. } = &item.body {
            self.open_permissions.push(OpenPermission {
                item: item.id.clone(),
                request: request_id.clone(),
                call: tool_call_id.clone(),
            });
        }
    }
}
