//! The sessions that an agent keeps by itself. `narrows agents NAME`.

use super::own_server;
use crate::args::AgentsArgs;
use crate::client::Client;
use crate::settings::data_dir;
use crate::when::Clock;
use crate::{Fault, fault, serve};
use narrows_show::escape;
use serde_json::Value;
use std::io::Write;

/// Lists them.
pub(crate) fn sessions(args: &AgentsArgs, agent: &str) -> Result<(), Fault> {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    if agent.is_empty() || !agent.chars().all(plain) {
        return Err(fault(format!("there is no agent `{agent}`: `narrows agents` lists them")));
    }
    let data = data_dir(&args.data)?;
    let runtime = serve::runtime()?;
    let told: Value = runtime.block_on(async {
        let path = format!("/api/agents/{agent}/sessions");
        if let Some(client) = Client::find(&data)? {
            return client.get(&path);
        }
        let server = own_server(&args.hide, &data).await?;
        let client = Client::find(&data)?.ok_or_else(|| fault("the server is not there"));
        let told = client.and_then(|client| client.get(&path));
        server.stop().await;
        told
    })?;
    let mut out = std::io::stdout().lock();
    let failed = |e| Fault::new("standard output")(e);
    if args.json {
        let text = serde_json::to_string_pretty(&told["sessions"]);
        let text = text.map_err(|e| failed(e.into()))?;
        return writeln!(out, "{text}").map_err(failed);
    }
    let clock = Clock::here();
    let text = |value: &Value| escape::line(value.as_str().unwrap_or_default());
    for session in told["sessions"].as_array().into_iter().flatten() {
        let (id, project) = (text(&session["id"]), text(&session["project"]));
        let (at, title) = (text(&session["updatedAt"]), text(&session["title"]));
        let at = clock.short_of(&at).unwrap_or_default();
        let title: String = title.chars().take(200).collect();
        let line = format!("{id}  {at:<12}  {project:<16}  {title}");
        writeln!(out, "{}", line.trim_end()).map_err(failed)?;
    }
    Ok(())
}
