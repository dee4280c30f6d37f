//! `narrows prune`.

use crate::Fault;
use crate::args::PruneArgs;
use crate::client::Client;
use crate::settings::{data_dir, retention};
use narrows_server::api::Pruned;
use narrows_store::{Options, Store};
use std::io::{Error, Write, stdout};

pub(crate) fn run(args: &PruneArgs) -> Result<(), Fault> {
    let failed = |e: narrows_store::Error| Fault::new("")(Error::other(e));
    let data = data_dir(&args.data)?;
    let keep = retention(&args.keep, args.tag.clone());
    if keep.max_age.is_none() && keep.max_bytes.is_none() {
        let what = "say what to keep: --keep-days, --keep-bytes";
        return Err(Fault::new("")(Error::other(what)));
    }
    let cleared: Pruned = match Client::find(&data)? {
        Some(client) => {
            // The server deletes: whoever follows a session is told.
            let body = serde_json::json!({
                "maxAgeMs": keep.max_age, "maxBytes": keep.max_bytes, "tag": keep.tag,
                "keepTags": keep.keep_tags, "dryRun": args.dry_run,
            });
            client.post("/api/prune", &body)?
        }
        None => crate::serve::runtime()?.block_on(async {
            let store = Store::open(&data, &Options::default()).map_err(failed)?;
            let cleared = store.clear(keep, args.dry_run).await.map_err(failed)?;
            store.close().await;
            Ok::<_, Fault>(Pruned { sessions: cleared.sessions, bytes: cleared.bytes })
        })?,
    };
    let mut out = stdout().lock();
    let verb = if args.dry_run { "would delete" } else { "deleted" };
    let told = cleared.sessions.iter().try_for_each(|id| writeln!(out, "{id}")).and_then(|()| {
        writeln!(out, "{verb} {} sessions, {} bytes of logs", cleared.sessions.len(), cleared.bytes)
    });
    told.map_err(Fault::new("standard output"))
}
