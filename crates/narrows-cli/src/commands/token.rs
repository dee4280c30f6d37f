//! `narrows token` and `narrows open`.

use crate::args::{DataArgs, TokenArgs, TokenCommand, TokenMakeArgs};
use crate::client::Client;
use crate::settings::data_dir;
use crate::{Fault, serve};
use narrows_server::api::{MadeToken, Ticket, TokenInfo, TokenList};
use narrows_server::auth::{NewToken, Tokens};
use narrows_store::{Options, Scope, Scopes, Sight, Store, TokenKind, now};
use std::io::{Error, Write, stdout};

pub(crate) fn run(args: &TokenArgs) -> Result<(), Fault> {
    let data = data_dir(&args.data)?;
    let Some(client) = Client::find(&data)? else {
        return serve::runtime()?.block_on(beside(args, &data));
    };
    match &args.what {
        TokenCommand::Make(new) => {
            let list = |names: &Vec<String>| (!names.is_empty()).then(|| names.clone());
            let body = serde_json::json!({
                "name": new.name, "scopes": new.scopes, "sessions": list(&new.session),
                "tags": list(&new.tag), "ttlSeconds": new.ttl,
            });
            let made: MadeToken = client.post("/api/tokens", &body)?;
            tell(&made.id, &made.token)
        }
        TokenCommand::List => print_list(&client.get::<TokenList>("/api/tokens")?.tokens),
        TokenCommand::Revoke { id } => client.delete(&format!("/api/tokens/{id}")),
    }
}

/// No server runs: the store itself.
async fn beside(args: &TokenArgs, data: &std::path::Path) -> Result<(), Fault> {
    let failed = |e: narrows_store::Error| Fault::new("")(Error::other(e));
    let store = Store::open(data, &Options::default()).map_err(failed)?;
    let tokens = Tokens::load(store.clone(), 0, 0).await.map_err(failed)?;
    match &args.what {
        TokenCommand::Make(make) => {
            let owner = tokens.owner();
            let new = new_token(make)?;
            let done = tokens.make(TokenKind::Made, new, owner.as_deref()).await;
            let (id, secret) = done.map_err(failed)?;
            tell(&id, &secret)?;
        }
        TokenCommand::List => {
            let shown = tokens.list().await.map_err(failed)?.into_iter().map(TokenInfo::from);
            print_list(&shown.collect::<Vec<_>>())?;
        }
        TokenCommand::Revoke { id } => tokens.revoke(id).await.map_err(failed)?,
    }
    store.close().await;
    Ok(())
}

fn new_token(make: &TokenMakeArgs) -> Result<NewToken, Fault> {
    let scopes: Result<Scopes, _> = make.scopes.iter().map(|s| s.parse::<Scope>()).collect();
    let scopes = scopes.map_err(|e| Fault::new("")(Error::other(e)))?;
    let list = |names: &Vec<String>| (!names.is_empty()).then(|| names.clone());
    let sight = Sight { sessions: list(&make.session), tags: list(&make.tag) };
    let ttl = make.ttl.map(|s| i64::try_from(s.saturating_mul(1000)).unwrap_or(i64::MAX));
    Ok(NewToken { name: make.name.clone(), scopes, sight, ttl })
}

fn tell(id: &str, secret: &str) -> Result<(), Fault> {
    // The secret alone on standard output, for scripts.
    let _ = writeln!(std::io::stderr(), "token {id}: shown this once");
    writeln!(stdout().lock(), "{secret}").map_err(Fault::new("standard output"))
}

fn print_list(tokens: &[TokenInfo]) -> Result<(), Fault> {
    let mut out = stdout().lock();
    let width = tokens.iter().map(|t| t.name.chars().count()).max().unwrap_or(4).max(4);
    let mut line = |id: &str, name: &str, scopes: &str, rest: &str| {
        let text = format!("{id:<16}  {name:<width$}  {scopes:<30}  {rest}");
        writeln!(out, "{}", text.trim_end())
    };
    let done = line("ID", "NAME", "SCOPES", "LIMITS").and_then(|()| {
        tokens.iter().try_for_each(|t| {
            let sessions = t.sessions.iter().flatten().map(|s| format!("session {s}"));
            let tags = t.tags.iter().flatten().map(|s| format!("tag {s}"));
            let end = t.expires_at.map(|end| format!("{} min left", (end - now()).max(0) / 60_000));
            let limits: Vec<String> = sessions.chain(tags).chain(end).collect();
            line(&t.id, &t.name, &t.scopes.join(","), &limits.join(", "))
        })
    });
    done.map_err(Fault::new("standard output"))
}

/// `narrows open`.
pub(crate) fn open(args: &DataArgs) -> Result<(), Fault> {
    let data = data_dir(args)?;
    let Some(client) = Client::find(&data)? else {
        let what = "no server runs on this data directory: start one with `narrows serve`";
        return Err(Fault::new("")(Error::other(what)));
    };
    let ticket: Ticket = client.post("/api/tickets", &serde_json::json!({}))?;
    writeln!(stdout().lock(), "{}{}", client.url(), ticket.path)
        .map_err(Fault::new("standard output"))
}
