//! Sockets, child processes and the files of agents: everything of narrows that touches the
//! outside world, but for the command line.

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
pub mod hub;
pub mod intake;
mod listen;
mod metrics;
mod page;
mod routes;
pub mod run;
mod seldom;
mod serve;
pub mod source;
pub mod stream;

pub use app::App;
pub use config::{Limits, ServeConfig};
pub use error::{ErrorBody, ErrorInfo};
pub use page::Page;
pub use routes::{RouteInfo, openapi, route_list};
pub use serve::{Address, HiddenOptions, Server, owner_secret};
