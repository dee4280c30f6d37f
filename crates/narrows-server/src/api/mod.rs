//! JSON shapes of requests and responses, as the OpenAPI document describes them.
//!
//! They hold data only: `routes` fills and checks them. Doc comments here are descriptions of the document.

pub mod item;
mod item_page;
pub mod limits;
mod operations;
pub mod overview;
mod packet;
pub mod run;
mod search;
mod session;
pub mod stream;
mod token;

pub use item_page::{ItemPage, ItemQuery};
pub use operations::{AuditEntry, AuditPage, AuditQuery, Checking, Health, Live};
pub use packet::{PacketAnswer, PacketQuery, PacketState, SourceState};
pub use search::{Hit, HitPart, SearchPage, SearchQuery};
pub use session::{NewSession, Prune, Pruned, Session, SessionPage, SessionQuery, TagChange};
pub use stream::StreamQuery;
pub use token::{
    LoggedIn, Login, MadeToken, Me, NewTokenBody, RequestTicket, Ticket, TokenInfo, TokenList,
};
