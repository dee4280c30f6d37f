//! The HTTP API of narrows: routes, authorization, server-sent events, sockets and the web UI.
//!
//! Ingest, live streams, discovery and runs are in `narrows-engine`, rows in `narrows-store`. Start with
//! [`Server::start`], then the table of routes in `routes/mod.rs`.

pub mod api;
pub mod auth;
mod config;
mod error;
pub mod export;
mod guard;
mod listen;
mod metrics;
mod poll_on_wake;
mod routes;
mod server;
mod state;
pub mod stream;
mod web_ui;

pub use api::{overview as api_overview, stream as api_ws};
pub use config::{Limits, ServeConfig};
pub use error::{ErrorBody, ErrorInfo};
pub use routes::{RouteInfo, openapi, route_list};
pub use server::{
    RedactionOptions as HiddenOptions, Server, ServerAddress as Address, owner_secret,
};
pub use state::AppState as App;
pub use web_ui::WebAssets as Page;
