//! The one guard: Host, Origin, Sec-Fetch-Site, token, scope. Every route and transport passes it.

use crate::auth::Grant;
use crate::error::ApiError;
use crate::state::AppState;
use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, Uri, header};
use narrows_store::Scope;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Instant;

/// What a route asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RequiredScope {
    /// Nothing: it tells nothing and does nothing.
    None,
    /// A token with this scope.
    Scope(Scope),
    /// A token with this scope, or a ticket for one request: a browser can set no header here.
    Ticket(Scope),
}

const CSP: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; \
     connect-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'; \
     require-trusted-types-for 'script'; trusted-types 'none'";

/// Before routing: where the request comes from, and what every response says.
pub(crate) async fn outer(State(app): State<AppState>, request: Request, next: Next) -> Response {
    let began = Instant::now();
    let origin = request.headers().get(header::ORIGIN).cloned();
    let allowed = origin.as_ref().filter(|o| app.config.allows_origin(o)).cloned();
    let method = request.method().clone();
    let mut response = match check_origin(&app, &request) {
        Err(error) => error.into_response(),
        Ok(()) if is_preflight(&request) && allowed.is_some() => {
            StatusCode::NO_CONTENT.into_response()
        }
        Ok(()) => next.run(request).await,
    };
    let headers = response.headers_mut();
    for (name, value) in [
        ("content-security-policy", CSP),
        ("x-content-type-options", "nosniff"),
        ("referrer-policy", "no-referrer"),
        ("cross-origin-opener-policy", "same-origin"),
        ("cross-origin-resource-policy", "same-origin"),
    ] {
        headers.insert(HeaderName::from_static(name), HeaderValue::from_static(value));
    }
    if !headers.contains_key(header::CACHE_CONTROL) {
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    }
    if let Some(origin) = allowed {
        cors(headers, origin);
    }
    app.metrics.request(&method, response.status(), began.elapsed());
    response
}

fn cors(headers: &mut HeaderMap, origin: HeaderValue) {
    headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin);
    headers.append(header::VARY, HeaderValue::from_static("Origin"));
    for (name, value) in [
        (header::ACCESS_CONTROL_ALLOW_METHODS, "GET, POST, PATCH, DELETE"),
        (
            header::ACCESS_CONTROL_ALLOW_HEADERS,
            "authorization, content-type, idempotency-key, last-event-id, x-narrows",
        ),
        (header::ACCESS_CONTROL_EXPOSE_HEADERS, "retry-after"),
        (header::ACCESS_CONTROL_MAX_AGE, "600"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
}

fn is_preflight(request: &Request) -> bool {
    request.method() == Method::OPTIONS
        && request.headers().contains_key(header::ACCESS_CONTROL_REQUEST_METHOD)
}

/// What tells whether the server works: answered by any address, since those who ask know no name. A name
/// that is not the server's may be one that a page has made lead here.
const PROBE_PATHS: [&str; 3] = ["/healthz", "/livez", "/readyz"];

/// Bytes of a request's head.
const MAX_HEAD_BYTES: usize = 64 << 10;

/// The length of a request's head, as it was sent.
fn head_length(request: &Request) -> usize {
    let line = request.method().as_str().len() + request.uri().to_string().len() + 12;
    let headers = request.headers().iter();
    line + headers.map(|(name, value)| name.as_str().len() + value.len() + 4).sum::<usize>() + 2
}

/// Whether a `Host` is the address of a machine, with or without a port.
fn is_address(host: &str) -> bool {
    let bare = host.strip_prefix('[').and_then(|h| h.strip_suffix(']')).unwrap_or(host);
    host.parse::<SocketAddr>().is_ok() || bare.parse::<IpAddr>().is_ok()
}

fn check_origin(app: &AppState, request: &Request) -> Result<(), ApiError> {
    let headers = request.headers();
    if head_length(request) > MAX_HEAD_BYTES {
        let what = format!("the head of a request has at most {MAX_HEAD_BYTES} bytes");
        let status = StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE;
        return Err(ApiError::new(status, "HEAD_TOO_LARGE", what).closing());
    }
    // A page of another name that leads here must not get in.
    let mut hosts = headers.get_all(header::HOST).iter();
    let host = hosts.next().and_then(|h| h.to_str().ok()).unwrap_or_default();
    let named = request.uri().authority().map(http::uri::Authority::as_str);
    let probe = PROBE_PATHS.contains(&request.uri().path())
        && [Some(host), named].into_iter().flatten().all(is_address);
    if hosts.next().is_some()
        || (!probe
            && (!app.config.allows_host(host)
                || named.is_some_and(|name| !app.config.allows_host(name))))
    {
        return Err(ApiError::misdirected());
    }
    let foreign = |what| Err(ApiError::new(StatusCode::FORBIDDEN, "FORBIDDEN_ORIGIN", what));
    if headers.get_all(header::ORIGIN).iter().nth(1).is_some() {
        return foreign("a request has one origin");
    }
    if let Some(origin) = headers.get(header::ORIGIN) {
        let scheme = if app.config.is_secure() { "https" } else { "http" };
        // A probe answers to any address, but a page of such an address is still a stranger's.
        let own = format!("{scheme}://{}", host.to_ascii_lowercase());
        let same = app.config.allows_host(host) && origin.as_bytes() == own.as_bytes();
        if !same && !app.config.allows_origin(origin) {
            return foreign("this origin is not allowed: start the server with --allow-origin");
        }
    } else {
        // Without an origin: a program, or a browser that says where the request comes from.
        let site = headers.get("sec-fetch-site").and_then(|s| s.to_str().ok());
        if site.is_some_and(|s| s != "same-origin" && s != "none") {
            return foreign("a request from another site");
        }
    }
    Ok(())
}

/// What a path's methods need.
#[derive(Debug, Clone)]
pub(crate) struct RouteGuard {
    pub(crate) app: AppState,
    pub(crate) required: std::sync::Arc<[(Method, RequiredScope)]>,
}

/// After routing: whether the caller may do this.
pub(crate) async fn guard(
    State(gate): State<RouteGuard>,
    mut request: Request,
    next: Next,
) -> Response {
    let method = if request.method() == Method::HEAD { &Method::GET } else { request.method() };
    let Some((_, need)) = gate.required.iter().find(|(known, _)| known == method) else {
        return ApiError::new(
            StatusCode::METHOD_NOT_ALLOWED,
            "METHOD_NOT_ALLOWED",
            "no such method here",
        )
        .into_response();
    };
    let (scope, ticket) = match need {
        RequiredScope::None => return next.run(request).await,
        RequiredScope::Scope(scope) => (*scope, None),
        RequiredScope::Ticket(scope) => (*scope, remove_ticket(&mut request)),
    };
    match authenticate(&gate.app, Credentials::from_request(&request, ticket), scope).await {
        Ok(grant) => drop(request.extensions_mut().insert(grant)),
        Err(error) => return error.into_response(),
    }
    next.run(request).await
}

/// Takes the ticket out of a request's address, so that nothing that follows sees it.
fn remove_ticket(request: &mut Request) -> Option<String> {
    let uri = request.uri();
    let is_ticket = |pair: &&str| pair.starts_with("ticket=");
    let ticket = uri.query()?.split('&').find(is_ticket)?.strip_prefix("ticket=")?.to_owned();
    let rest: Vec<&str> = uri.query()?.split('&').filter(|pair| !is_ticket(pair)).collect();
    let address = match rest.join("&") {
        none if none.is_empty() => uri.path().to_owned(),
        query => format!("{}?{query}", uri.path()),
    };
    let mut parts = uri.clone().into_parts();
    parts.path_and_query = Some(address.parse().ok()?);
    *request.uri_mut() = Uri::from_parts(parts).ok()?;
    // Whatever only looks does not use it up.
    (request.method() == Method::GET).then_some(ticket)
}

/// What a request says of who sends it.
struct Credentials {
    secret: Option<String>,
    /// The secret is a ticket for this request.
    is_ticket_secret: bool,
    from: IpAddr,
}

impl Credentials {
    /// A cookie says nothing: browsers send it to every port of a host.
    fn from_request(request: &Request, ticket: Option<String>) -> Credentials {
        let token = bearer(request.headers());
        let from = request.extensions().get::<SocketAddr>();
        Credentials {
            is_ticket_secret: token.is_none() && ticket.is_some(),
            secret: token.or(ticket),
            from: from.map_or(IpAddr::V4(Ipv4Addr::LOCALHOST), SocketAddr::ip),
        }
    }
}

async fn authenticate(app: &AppState, asked: Credentials, scope: Scope) -> Result<Grant, ApiError> {
    let Credentials { secret, is_ticket_secret, from } = asked;
    let blocked = app.throttle.is_blocked(from);
    let grant = match &secret {
        None => None,
        Some(_) if is_ticket_secret && blocked && app.store.is_shared() => None,
        Some(ticket) if is_ticket_secret => {
            app.tickets.redeem_for_request(ticket, &app.tokens).await?
        }
        // Whoever guesses does not make the store work.
        Some(secret) if blocked => app.tokens.grant(secret),
        Some(secret) => app.tokens.find(secret).await?,
    };
    let Some(grant) = grant else {
        if secret.is_some() && app.throttle.record_failure(from) {
            let error =
                ApiError::new(StatusCode::TOO_MANY_REQUESTS, "THROTTLED", "too many wrong tokens");
            return Err(error.retry_after(60));
        }
        return Err(ApiError::unauthorized());
    };
    if !grant.scopes.has(scope) {
        let what = format!("the token lacks the scope `{}`", scope.name());
        return Err(ApiError::new(StatusCode::FORBIDDEN, "FORBIDDEN", what));
    }
    Ok(grant)
}

/// A token in the header that is made for it, or among the protocols of a socket: browsers can
/// set no other header there.
fn bearer(headers: &HeaderMap) -> Option<String> {
    if let Some(value) = headers.get(header::AUTHORIZATION) {
        let (scheme, token) = value.to_str().ok()?.split_once(' ')?;
        return scheme.eq_ignore_ascii_case("bearer").then(|| token.trim().to_owned());
    }
    if !headers.contains_key(header::UPGRADE) {
        return None;
    }
    let protocols = headers.get_all(header::SEC_WEBSOCKET_PROTOCOL).iter();
    let mut protocols = protocols.filter_map(|v| v.to_str().ok()).flat_map(|v| v.split(','));
    protocols.find_map(|p| p.trim().strip_prefix("bearer.").map(str::to_owned))
}
