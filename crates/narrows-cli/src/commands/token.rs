//! `narrows token` and `narrows login-url`.

use crate::args::{DataArgs, TokenArgs, TokenCommand, TokenCreateArgs};
use crate::client::Client;
use crate::config::data_dir;
use crate::error::CliError;
use crate::runtime::runtime;
use narrows_server::api::{MadeToken, Ticket, TokenInfo, TokenList};
use narrows_server::auth::{NewToken, Tokens};
use narrows_store::{Options, Scope, Scopes, Sight, Store, TokenKind, now};
use std::io::{Write, stdout};
use std::path::Path;

pub(crate) fn run(args: &TokenArgs) -> Result<(), CliError> {
    let data = data_dir(&args.data)?;
    let Some(client) = Client::find(&data)? else {
        return runtime()?.block_on(run_on_store(args, &data));
    };
    match &args.command {
        TokenCommand::Create(create) => {
            let body = serde_json::json!({
                "name": create.name, "scopes": create.scopes,
                "sessions": unless_empty(&create.session), "tags": unless_empty(&create.tag),
                "ttlSeconds": create.ttl,
            });
            let created: MadeToken = client.post("/api/tokens", &body)?;
            print_secret(&created.id, &created.token)
        }
        TokenCommand::List => print_list(&client.get::<TokenList>("/api/tokens")?.tokens),
        TokenCommand::Revoke { id } => client.delete(&format!("/api/tokens/{id}")),
    }
}

/// Does it without a server.
async fn run_on_store(args: &TokenArgs, data: &Path) -> Result<(), CliError> {
    let store = Store::open(data, &Options::default()).map_err(CliError::new)?;
    let tokens = Tokens::load(store.clone(), 0, 0).await.map_err(CliError::new)?;
    match &args.command {
        TokenCommand::Create(create) => {
            let owner = tokens.owner();
            let token = new_token(create)?;
            let created = tokens.make(TokenKind::Made, token, owner.as_deref()).await;
            let (id, secret) = created.map_err(CliError::new)?;
            print_secret(&id, &secret)?;
        }
        TokenCommand::List => {
            let infos = tokens.list().await.map_err(CliError::new)?.into_iter();
            print_list(&infos.map(TokenInfo::from).collect::<Vec<_>>())?;
        }
        TokenCommand::Revoke { id } => tokens.revoke(id).await.map_err(CliError::new)?,
    }
    store.close().await;
    Ok(())
}

fn new_token(create: &TokenCreateArgs) -> Result<NewToken, CliError> {
    let scopes: Result<Scopes, _> = create.scopes.iter().map(|s| s.parse::<Scope>()).collect();
    let scopes = scopes.map_err(CliError::new)?;
    let sight = Sight { sessions: unless_empty(&create.session), tags: unless_empty(&create.tag) };
    let ttl = create.ttl.map(|s| i64::try_from(s.saturating_mul(1000)).unwrap_or(i64::MAX));
    Ok(NewToken { name: create.name.clone(), scopes, sight, ttl })
}

fn unless_empty(names: &[String]) -> Option<Vec<String>> {
    (!names.is_empty()).then(|| names.to_vec())
}

fn print_secret(id: &str, secret: &str) -> Result<(), CliError> {
    // Standard output gets the secret alone, for scripts.
    let _ = writeln!(std::io::stderr(), "token {id}: the secret is not shown again");
    writeln!(stdout().lock(), "{secret}").map_err(CliError::stdout)
}

fn print_list(tokens: &[TokenInfo]) -> Result<(), CliError> {
    let mut out = stdout().lock();
    let width = tokens.iter().map(|t| t.name.chars().count()).max().unwrap_or(4).max(4);
    let mut print_row = |id: &str, name: &str, scopes: &str, limits: &str| {
        let text = format!("{id:<16}  {name:<width$}  {scopes:<30}  {limits}");
        writeln!(out, "{}", text.trim_end())
    };
    let printed = print_row("ID", "NAME", "SCOPES", "LIMITS").and_then(|()| {
        tokens.iter().try_for_each(|t| {
            let sessions = t.sessions.iter().flatten().map(|s| format!("session {s}"));
            let tags = t.tags.iter().flatten().map(|s| format!("tag {s}"));
            let minutes_left = |expires_at: i64| (expires_at - now()).max(0) / 60_000;
            let expiry = t.expires_at.map(|at| format!("{} min left", minutes_left(at)));
            let limits: Vec<String> = sessions.chain(tags).chain(expiry).collect();
            print_row(&t.id, &t.name, &t.scopes.join(","), &limits.join(", "))
        })
    });
    printed.map_err(CliError::stdout)
}

/// `narrows login-url`.
pub(crate) fn login_url(args: &DataArgs) -> Result<(), CliError> {
    let data = data_dir(args)?;
    let Some(client) = Client::find(&data)? else {
        return Err(CliError::new(
            "cannot create a login URL: no server runs on this data directory",
        )
        .hint("start one with `narrows serve`"));
    };
    let ticket: Ticket = client.post("/api/tickets", &serde_json::json!({}))?;
    writeln!(stdout().lock(), "{}{}", client.url(), ticket.path).map_err(CliError::stdout)
}
