//! Messages about the session itself: agent, model, mode, title, commands, usage.

use crate::adapter::output::AdapterOutput;
use crate::json::{Json, Kind};
use crate::model::event::{Body, Notice, SessionUpdate, SlashCommand, UsageUpdate};
use crate::sanitize::Raw;

/// The number of commands or options that are read from a list.
const MAX_LIST: usize = 512;

fn text(json: Option<Json<'_>>) -> Option<Raw> {
    json.and_then(Json::str).filter(|t| !t.is_empty()).map(Raw::new)
}

fn emit(info: SessionUpdate<Raw>, out: &mut AdapterOutput) {
    if info == SessionUpdate::default() {
        out.ignore();
    } else {
        out.push(Body::SessionInfo(Box::new(info)));
    }
}

pub(super) fn mode(id: Option<Json<'_>>, out: &mut AdapterOutput) {
    emit(SessionUpdate { mode: text(id), ..SessionUpdate::default() }, out);
}

pub(super) fn model(id: Option<Json<'_>>, out: &mut AdapterOutput) {
    emit(SessionUpdate { model: text(id), ..SessionUpdate::default() }, out);
}

/// Emits the agent from the response to `initialize`.
pub(super) fn agent(result: Json<'_>, out: &mut AdapterOutput) {
    let agent = result.get("agentInfo");
    let info = SessionUpdate {
        agent: text(agent.and_then(|a| a.any(&["title", "name"]))),
        version: text(agent.and_then(|a| a.get("version"))),
        ..SessionUpdate::default()
    };
    emit(info, out);
}

/// Emits the session from the response to `session/new` or `session/load`.
pub(super) fn session(result: Json<'_>, out: &mut AdapterOutput) {
    let (model, mode) = model_and_mode(result.get("configOptions"));
    let info = SessionUpdate {
        native_id: text(result.get("sessionId")),
        mode: text(result.path(&["modes", "currentModeId"])).or(mode),
        model: text(result.path(&["models", "currentModelId"])).or(model),
        ..SessionUpdate::default()
    };
    emit(info, out);
}

/// Returns the model and the mode among the options of a session.
fn model_and_mode(list: Option<Json<'_>>) -> (Option<Raw>, Option<Raw>) {
    let (mut model, mut mode) = (None, None);
    // A group contains options.
    let each = list.into_iter().flat_map(Json::items).take(MAX_LIST);
    let each = each.flat_map(|o| {
        let group = o.get("options").filter(|_| o.get("currentValue").is_none());
        let group = group.into_iter().flat_map(Json::items).take(MAX_LIST);
        std::iter::once(o).chain(group)
    });
    for option in each {
        let Some(value) = text(option.get("currentValue")) else { continue };
        let value = Some(value);
        let text = |name: &str| option.get(name).and_then(Json::str);
        match text("category").or_else(|| text("id")).or_else(|| text("configId")).as_deref() {
            Some("model") => model = value,
            Some("mode") if mode.is_none() => mode = value,
            _ => {}
        }
    }
    (model, mode)
}

pub(super) fn config(update: Json<'_>, out: &mut AdapterOutput) {
    let (model, mode) = model_and_mode(update.any(&["configOptions", "config_options"]));
    emit(SessionUpdate { model, mode, ..SessionUpdate::default() }, out);
}

pub(super) fn title(update: Json<'_>, out: &mut AdapterOutput) {
    let codex = update.path(&["_meta", "codex"]);
    if let Some(error) = codex.and_then(|c| c.get("error")) {
        let details = error.text("additionalDetails").map(|d| format!(": {d}"));
        let message = error.text("message").unwrap_or_default();
        let text = Raw::new(format!("{message}{}", details.unwrap_or_default()));
        out.push(Body::Notice(Notice { kind: Raw::new("retry"), text }));
        return;
    }
    let status = text(codex.and_then(|c| c.path(&["threadStatus", "type"])));
    emit(
        SessionUpdate { title: text(update.get("title")), status, ..SessionUpdate::default() },
        out,
    );
}

pub(super) fn commands(update: Json<'_>, out: &mut AdapterOutput) {
    let list = update.any(&["availableCommands", "available_commands"]);
    let commands: Vec<_> = list
        .into_iter()
        .flat_map(Json::items)
        .filter(|c| c.kind() == Kind::Object)
        .take(MAX_LIST)
        .filter_map(|c| {
            Some(SlashCommand {
                name: text(c.get("name"))?,
                description: text(c.get("description")),
            })
        })
        .collect();
    emit(SessionUpdate { commands: Some(commands), ..SessionUpdate::default() }, out);
}

pub(super) fn usage(update: Json<'_>, out: &mut AdapterOutput) {
    let cost =
        update.get("cost").filter(|c| c.text("currency").is_none_or(|currency| currency == "USD"));
    out.push(Body::Usage(Box::new(UsageUpdate {
        used: update.get("used").and_then(Json::u64),
        size: update.get("size").and_then(Json::u64),
        cost_usd: cost.and_then(|c| c.get("amount")).and_then(Json::f64),
        answer: None,
    })));
}
