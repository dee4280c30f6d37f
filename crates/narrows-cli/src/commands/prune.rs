//! `narrows prune`: deletes sessions by age, size or tag.

use crate::args::PruneArgs;
use crate::client::Client;
use crate::config::{data_dir, retention};
use crate::error::CliError;
use crate::runtime::runtime;
use narrows_server::api::Pruned;
use narrows_store::{Options, Store};
use std::io::{Write, stdout};

pub(crate) fn run(args: &PruneArgs) -> Result<(), CliError> {
    let data = data_dir(&args.data)?;
    let retention = retention(&args.retention, args.tag.clone());
    if retention.max_age.is_none() && retention.max_bytes.is_none() {
        return Err(CliError::new("cannot prune without a limit")
            .hint("use --retain-days or --retain-bytes"));
    }
    let pruned: Pruned = match Client::find(&data)? {
        Some(client) => {
            // Deleted by the server, so that clients are notified.
            let body = serde_json::json!({
                "maxAgeMs": retention.max_age, "maxBytes": retention.max_bytes,
                "tag": retention.tag, "keepTags": retention.keep_tags, "dryRun": args.dry_run,
            });
            client.post("/api/prune", &body)?
        }
        None => runtime()?.block_on(async {
            let store = Store::open(&data, &Options::default()).map_err(CliError::new)?;
            let pruned = store.clear(retention, args.dry_run).await.map_err(CliError::new)?;
            store.close().await;
            Ok::<_, CliError>(Pruned { sessions: pruned.sessions, bytes: pruned.bytes })
        })?,
    };
    let mut out = stdout().lock();
    let verb = if args.dry_run { "would delete" } else { "deleted" };
    pruned
        .sessions
        .iter()
        .try_for_each(|id| writeln!(out, "{id}"))
        .and_then(|()| {
            let (sessions, bytes) = (pruned.sessions.len(), pruned.bytes);
            writeln!(out, "{verb} {sessions} sessions, {bytes} bytes of logs")
        })
        .map_err(CliError::stdout)
}
