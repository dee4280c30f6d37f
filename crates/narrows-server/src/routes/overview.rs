//! What is told at a glance: of a session, of all sessions, of where they come from.

use super::extract::{PathParams, QueryParams, limit, session};
use crate::api::overview::{Facets, Indexing, OutlineQuery, SourceFolder, Sources};
use crate::auth::Grant;
use crate::error::{ApiResult, ErrorBody};
use crate::state::AppState;
use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use narrows_engine::discovery::{SourceOptions, agents};
use serde::Serialize;
use std::path::Path;

const DEFAULT_TURNS: usize = 1000;
const MAX_TURNS: usize = 5000;

#[derive(Serialize)]
struct OutlineResponse {
    cursor: String,
    #[serde(flatten)]
    outline: narrows_store::Outline,
}

/// A session at a glance: its turns, changed files, todos and open questions.
#[utoipa::path(get, path = "/api/sessions/{id}/outline",
    params(("id" = String, Path, description = "The session"), OutlineQuery),
    security(("token" = ["read"])), responses(
    (status = 200, description = "The outline", body = crate::api::overview::Outline),
    (status = "4XX", description = "Refused", body = ErrorBody),
))]
pub(super) async fn outline(
    State(app): State<AppState>,
    grant: Grant,
    PathParams(id): PathParams<String>,
    QueryParams(query): QueryParams<OutlineQuery>,
) -> ApiResult<Response> {
    let found = session(&app, &grant, &id).await?;
    let limit = limit(query.limit, DEFAULT_TURNS, MAX_TURNS)?;
    let outline = app.store.outline(found.key, query.after, limit).await?;
    let cursor = format!("{}-{}", outline.epoch, outline.seq);
    Ok(Json(OutlineResponse { cursor, outline }).into_response())
}

/// What the sessions that the caller sees have in common.
#[utoipa::path(get, path = "/api/facets", security(("token" = ["read"])), responses(
    (status = 200, description = "Agents and projects, with counts", body = Facets),
    (status = "4XX", description = "Refused", body = ErrorBody),
))]
pub(super) async fn facets(State(app): State<AppState>, grant: Grant) -> ApiResult<Response> {
    Ok(Json(app.store.facets(grant.sight).await?).into_response())
}

/// Where sessions are read from, and how far that is.
#[utoipa::path(get, path = "/api/sources", security(("token" = ["read"])), responses(
    (status = 200, description = "The folders", body = Sources),
    (status = "4XX", description = "Refused", body = ErrorBody),
))]
pub(super) async fn sources(State(app): State<AppState>, grant: Grant) -> Json<Sources> {
    let mut told = Sources { following: false, folders: Vec::new(), indexing: None };
    let Some(options) = app.config.sources.clone() else { return Json(told) };
    told.following = true;
    // Whoever sees only some sessions is not told what else there is.
    if grant.sight.is_all() {
        let waiting = app.reading.get().and_then(|progress| progress.waiting());
        told.indexing = waiting.map(|(done, total)| Indexing { done, total });
        // A disk may be slow.
        let folders = tokio::task::spawn_blocking(move || folders(&options)).await;
        told.folders = folders.unwrap_or_default();
    }
    Json(told)
}

fn folders(options: &SourceOptions) -> Vec<SourceFolder> {
    let mut all = Vec::new();
    for agent in agents(options) {
        all.extend(agent.places().into_iter().map(|place| SourceFolder {
            agent: agent.name().to_owned(),
            path: shown(&place, options.home.as_deref()),
            exists: place.is_dir(),
        }));
    }
    all
}

/// A folder of this machine as it may be told: the home directory has no name, and neither has
/// what lies above the last two names of any other place.
fn shown(path: &Path, home: Option<&Path>) -> String {
    let name = |part: std::path::Component<'_>| part.as_os_str().to_string_lossy().into_owned();
    let plain = home.filter(|home| home.components().count() > 1);
    if let Some(below) = plain.and_then(|home| path.strip_prefix(home).ok()) {
        let names = std::iter::once("~".to_owned()).chain(below.components().map(name));
        return names.collect::<Vec<_>>().join("/");
    }
    let mut names: Vec<String> = path
        .components()
        .filter(|part| matches!(part, std::path::Component::Normal(_)))
        .map(name)
        .collect();
    let last = names.split_off(names.len().saturating_sub(2));
    format!("…/{}", last.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_are_told_without_where_they_lie() {
        let home = Some(Path::new("/users/jane"));
        for (path, home, expected) in [
            ("/users/jane/.claude/projects", home, "~/.claude/projects"),
            ("/users/jane", home, "~"),
            ("/users/janet/.claude/projects", home, "…/.claude/projects"),
            ("/srv/agents/claude/projects", home, "…/claude/projects"),
            ("/srv/agents/claude/projects", None, "…/claude/projects"),
            ("/projects", None, "…/projects"),
            // A home that is everything hides nothing.
            ("/srv/agents/claude/projects", Some(Path::new("/")), "…/claude/projects"),
        ] {
            assert_eq!(shown(Path::new(path), home), expected);
        }
    }
}
