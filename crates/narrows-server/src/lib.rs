//! The HTTP API of narrows: routes, authorization, server-sent events, sockets and the web page.
//! Ingest, live streams, discovery and runs are in `narrows-engine`.

pub mod api;
pub mod api_item;
pub mod api_limits;
pub mod api_overview;
pub mod api_run;
pub mod api_ws;
mod app;
pub mod auth;
mod config;
mod error;
pub mod export;
mod listen;
mod metrics;
mod page;
mod routes;
mod seldom;
mod serve;
pub mod stream;

pub use app::App;
pub use config::{Limits, ServeConfig};
pub use error::{ErrorBody, ErrorInfo};
pub use page::Page;
pub use routes::{RouteInfo, openapi, route_list};
pub use serve::{Address, HiddenOptions, Server, owner_secret};
